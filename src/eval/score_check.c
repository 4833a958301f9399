/* score_check.c - checks the rules of a submission; see score.h and docs/SCORE.md.
 *
 * All violations are counted, and the first ones are stored with a message. Row numbers start at 0.
 * Test: tests/eval/test_score.c
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "eval/score.h"

const char *bj_violation_name(bj_violation_kind kind) {
    static const char *const names[BJ_VIOLATION_KINDS] = {
        [BJ_VIOLATION_ID] = "id",
        [BJ_VIOLATION_POINTS] = "points",
        [BJ_VIOLATION_NONFINITE] = "nonfinite",
        [BJ_VIOLATION_PROBABILITY] = "probability",
        [BJ_VIOLATION_SUM] = "sum",
        [BJ_VIOLATION_MODES] = "modes",
        [BJ_VIOLATION_DUPLICATE] = "duplicate",
        [BJ_VIOLATION_INCONSISTENT] = "inconsistent",
        [BJ_VIOLATION_TRACK] = "track",
        [BJ_VIOLATION_UNKNOWN] = "unknown",
        [BJ_VIOLATION_MISSING] = "missing",
    };
    return kind >= 0 && kind < BJ_VIOLATION_KINDS ? names[kind] : "?";
}

void bj_violations_add(bj_violations *v, bj_violation_kind kind, int64_t row, const char *scenario,
                       const char *fmt, ...) {
    v->total++;
    v->count[kind]++;
    if (v->listed >= v->room) return;
    bj_violation *const entry = &v->list[v->listed++];
    va_list args;
    *entry = (bj_violation){.kind = kind, .row = row, .scenario_id = scenario};
    va_start(args, fmt);
    vsnprintf(entry->message, sizeof entry->message, fmt, args);
    va_end(args);
}

/* ----------------------------------------------------------------------------------------- rows */

/* Returns the index of the first value that is not finite, or -1. */
static int64_t first_bad(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i])) return i;
    return -1;
}

static int check_row(bj_violations *v, const bj_submission_row *r, int64_t row) {
    const int64_t total = v->total;
    const double p = r->probability;
    if (!r->scenario_id)
        bj_violations_add(v, BJ_VIOLATION_ID, row, r->scenario_id, "has no scenario_id");
    if (!r->track_id) bj_violations_add(v, BJ_VIOLATION_ID, row, r->scenario_id, "has no track_id");
    if (!(p >= 0 && p <= 1))
        bj_violations_add(v, BJ_VIOLATION_PROBABILITY, row, r->scenario_id,
                          "probability is %.9g, expected 0 to 1", p);
    if (r->x_count != BJ_SUBMISSION_STEPS || r->y_count != BJ_SUBMISSION_STEPS)
        bj_violations_add(v, BJ_VIOLATION_POINTS, row, r->scenario_id,
                          "trajectory has %lld x and %lld y values, expected %d",
                          (long long)r->x_count, (long long)r->y_count, BJ_SUBMISSION_STEPS);
    const int64_t x = first_bad(r->x, r->x_count), y = first_bad(r->y, r->y_count);
    if (x >= 0 || y >= 0) {
        const int use_x = x >= 0 && (y < 0 || x <= y);
        bj_violations_add(v, BJ_VIOLATION_NONFINITE, row, r->scenario_id,
                          "%c of point %lld is %g, expected a finite number", use_x ? 'x' : 'y',
                          (long long)(use_x ? x : y), use_x ? r->x[x] : r->y[y]);
    }
    return v->total == total;
}

static int same_values(const double *a, int64_t n, const double *b, int64_t m) {
    return n == m && (!n || !memcmp(a, b, (size_t)n * sizeof *a));
}

static int same_row(const bj_submission_row *a, const bj_submission_row *b) {
    return a->probability == b->probability && same_values(a->x, a->x_count, b->x, b->x_count) &&
           same_values(a->y, a->y_count, b->y, b->y_count);
}

/* Reports rows that repeat an earlier row of the track. Only the first BJ_MAX_ATOMS rows are
 * compared, because the cost is quadratic and a longer track is a violation anyway. */
static void check_duplicates(bj_violations *v, const bj_submission *s,
                             const bj_submission_track *t) {
    for (int64_t i = 1; i < t->count && i < BJ_MAX_ATOMS; i++)
        for (int64_t j = 0; j < i; j++) {
            const bj_submission_row a = bj_submission_at(s, t->rows[j]);
            const bj_submission_row b = bj_submission_at(s, t->rows[i]);
            if (!same_row(&a, &b)) continue;
            bj_violations_add(v, BJ_VIOLATION_DUPLICATE, t->rows[i], b.scenario_id,
                              "repeats row %lld of track '%s'", (long long)t->rows[j],
                              t->track ? t->track : "");
            break;
        }
}

/* --------------------------------------------------------------------------------------- tracks */

int bj_check_track(bj_violations *v, const bj_submission *s, const bj_submission_track *t,
                   int max_modes) {
    double sum = 0;
    int good = t->count <= BJ_MAX_ATOMS, weights = 1;
    for (int64_t i = 0; i < t->count; i++) {
        const bj_submission_row r = bj_submission_at(s, t->rows[i]);
        good &= check_row(v, &r, t->rows[i]);
        weights &= r.probability >= 0 && r.probability <= 1;
        sum += r.probability;
    }
    if (t->scenario < 0 || !t->track) return 0; /* rows without an id belong to no track */
    const char *scenario = bj_submission_scenario(s, t->scenario);
    if (weights && !bj_sums_to_one(sum)) { /* otherwise, the error has already been reported */
        bj_violations_add(v, BJ_VIOLATION_SUM, t->rows[0], scenario,
                          "probabilities of the %lld modes of track '%s' sum to %.9g, expected 1",
                          (long long)t->count, t->track, sum);
        good = 0;
    }
    if (t->count > max_modes)
        bj_violations_add(v, BJ_VIOLATION_MODES, t->rows[max_modes], scenario,
                          "track '%s' has %lld modes, expected at most %d", t->track,
                          (long long)t->count, max_modes);
    check_duplicates(v, s, t);
    return good;
}

/* Returns 1 if two tracks have the same probabilities in any order. Tracks with more than
 * BJ_MAX_ATOMS modes are not compared, because the cost is quadratic. */
static int same_weights(const bj_submission *s, const bj_submission_track *a,
                        const bj_submission_track *b) {
    for (int64_t i = 0; i < a->count && a->count <= BJ_MAX_ATOMS; i++) {
        const double p = bj_submission_at(s, a->rows[i]).probability;
        int64_t in_a = 0, in_b = 0;
        for (int64_t j = 0; j < a->count; j++) {
            in_a += bj_submission_at(s, a->rows[j]).probability == p;
            in_b += bj_submission_at(s, b->rows[j]).probability == p;
        }
        if (in_a != in_b) return 0;
    }
    return 1;
}

void bj_check_scenario(bj_violations *v, const bj_submission *s, int64_t begin, int64_t end) {
    bj_submission_track first = {0};
    for (int64_t i = begin; i < end; i++) {
        const bj_submission_track t = bj_submission_track_at(s, i);
        if (!t.track) continue;
        if (!first.track) {
            first = t;
            continue;
        }
        const char *scenario = bj_submission_scenario(s, t.scenario);
        if (t.count != first.count)
            bj_violations_add(v, BJ_VIOLATION_INCONSISTENT, t.rows[0], scenario,
                              "track '%s' has %lld modes, but track '%s' has %lld", t.track,
                              (long long)t.count, first.track, (long long)first.count);
        else if (!same_weights(s, &first, &t))
            bj_violations_add(v, BJ_VIOLATION_INCONSISTENT, t.rows[0], scenario,
                              "track '%s' and track '%s' have modes with different probabilities",
                              t.track, first.track);
    }
}
