/* audit_arms.c - results of an audit by arm and seed, and the difference between two arms.
 *
 *   mean, sd    over the seeds' means; population SD, sqrt(sum (x_i - mean)^2 / n)
 *   values      per scene, averaged over the seeds of the arm
 *   difference  mean over scenes of values(a) - values(b). For the interval, scenes are drawn with
 *               replacement, using the same scenes for both arms (stats/bootstrap.c). The interval
 *               is conditional on the models.
 *
 * Shapes  sums (BJ_AUDIT_METRICS,scenes)
 * Test    tests/audit/test_audit.c
 */
#include <math.h>
#include <string.h>

#include "audit/audit_internal.h"
#include "core/alloc.h"

typedef bj_audit_arm_data arm;

/* ----------------------------------------------------------------------------------- collecting */

static bj_status more_arms(bj_audit *a, bj_error *err) {
    arm *larger;
    const int room = a->arm_room ? 2 * a->arm_room : 16;
    BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
    if (a->arms) memcpy(larger, a->arms, (size_t)a->arm_count * sizeof *larger);
    bj_free(a->arms);
    a->arms = larger;
    a->arm_room = room;
    return BJ_OK;
}

static bj_status more_reports(arm *at, bj_error *err) {
    bj_audit_report *larger;
    const int room = at->room ? 2 * at->room : 8;
    BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
    if (at->reports) memcpy(larger, at->reports, (size_t)at->count * sizeof *larger);
    bj_free(at->reports);
    at->reports = larger;
    at->room = room;
    return BJ_OK;
}

static int has_seed(const arm *at, int64_t seed) {
    for (int i = 0; i < at->count; i++)
        if (at->reports[i].seed == seed) return 1;
    return 0;
}

bj_status bj_audit_place(arm **out, bj_audit *a, const char *name, int64_t seed, bj_error *err) {
    const int found = bj_audit_find_arm(a, name);
    *out = NULL;
    if (found < 0 && a->arm_count == a->arm_room) BJ_TRY(more_arms(a, err));
    arm *const at = &a->arms[found < 0 ? a->arm_count : found];
    if (has_seed(at, seed))
        return BJ_FAIL(err, BJ_EARG, "audit: arm '%s' already has a model with seed %lld", name,
                       (long long)seed);
    *out = at;
    if (!at->sums) BJ_TRY(BJ_ALLOC(at->sums, BJ_AUDIT_METRICS * (size_t)a->counts.scenes, err));
    if (!at->name && !(at->name = bj_strdup(name)))
        return BJ_FAIL(err, BJ_ENOMEM, "audit: out of memory for an arm name");
    return at->count < at->room ? BJ_OK : more_reports(at, err);
}

void bj_audit_keep(bj_audit *a, arm *at, const bj_audit_report *report, const double *values) {
    const size_t numbers = BJ_AUDIT_METRICS * (size_t)a->counts.scenes;
    for (size_t i = 0; i < numbers; i++) at->sums[i] += values[i];
    at->reports[at->count++] = *report;
    if (at == a->arms + a->arm_count) a->arm_count++;
}

void bj_audit_give_back(bj_audit *a, arm *at) {
    if (at && at == a->arms + a->arm_count) bj_audit_arm_free(at);
}

void bj_audit_arm_free(arm *at) {
    bj_free(at->name);
    bj_free(at->reports);
    bj_free(at->sums);
    memset(at, 0, sizeof *at);
}

/* -------------------------------------------------------------------------------------- looking */

int bj_audit_arms(const bj_audit *a) { return a->arm_count; }
const char *bj_audit_arm(const bj_audit *a, int index) { return a->arms[index].name; }

int bj_audit_find_arm(const bj_audit *a, const char *name) {
    for (int i = 0; i < a->arm_count; i++)
        if (!strcmp(a->arms[i].name, name)) return i;
    return -1;
}

int bj_audit_seeds(const bj_audit *a, int index) { return a->arms[index].count; }

bj_audit_report bj_audit_report_at(const bj_audit *a, int index, int seed) {
    return a->arms[index].reports[seed];
}

bj_audit_summary bj_audit_summarize(const bj_audit *a, int index, int metric) {
    const arm *at = &a->arms[index];
    double sum = 0, squares = 0;
    for (int i = 0; i < at->count; i++) sum += at->reports[i].mean[metric];
    const double mean = sum / at->count;
    for (int i = 0; i < at->count; i++) {
        const double d = at->reports[i].mean[metric] - mean;
        squares += d * d;
    }
    return (bj_audit_summary){at->count, mean, sqrt(squares / at->count)};
}

void bj_audit_values(double *values, const bj_audit *a, int index, int metric) {
    const arm *at = &a->arms[index];
    const double *sums = at->sums + metric * a->counts.scenes;
    for (int64_t i = 0; i < a->counts.scenes; i++) values[i] = sums[i] / at->count;
}

/* ----------------------------------------------------------------------------------- comparison */

static bj_status check_seeds(const arm *a, const arm *b, bj_error *err) {
    for (int i = 0; i < a->count; i++)
        if (!has_seed(b, a->reports[i].seed))
            return BJ_FAIL(err, BJ_EARG, "audit: arm '%s' has seed %lld, but arm '%s' does not",
                           a->name, (long long)a->reports[i].seed, b->name);
    return BJ_OK;
}

bj_status bj_audit_compare(bj_bootstrap out[BJ_AUDIT_METRICS], const bj_audit *audit, int a, int b,
                           int resamples, uint64_t seed, double level, bj_error *err) {
    const int64_t n = audit->counts.scenes;
    double *values;
    bj_status status = BJ_OK;
    if (a < 0 || a >= audit->arm_count || b < 0 || b >= audit->arm_count)
        return BJ_FAIL(err, BJ_EARG, "audit: the arm numbers are %d and %d, expected 0 to %d", a, b,
                       audit->arm_count - 1);
    BJ_TRY(check_seeds(&audit->arms[a], &audit->arms[b], err));
    BJ_TRY(check_seeds(&audit->arms[b], &audit->arms[a], err));
    BJ_TRY(BJ_ALLOC(values, 2 * (size_t)n, err));
    for (int m = 0; m < BJ_AUDIT_METRICS && status == BJ_OK; m++) {
        bj_audit_values(values, audit, a, m);
        bj_audit_values(values + n, audit, b, m);
        status = bj_bootstrap_paired(&out[m], values, values + n, n, resamples, seed, level,
                                     audit->options.threads, err);
    }
    bj_free(values);
    return status;
}
