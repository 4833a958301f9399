/* exam_blind.c - a lower bound on the discrepancy of forecasters that have only a model's inputs.
 *
 * Q is a law and M its mixture over everything that the inputs hide
 * (bj_law_blind_at). D^2 between Q and M is the discrepancy of the best such forecaster, even if it
 * can predict any distribution. With c_m the weight of mode m in Q minus its weight in M (modes of
 * both laws counted once) and Y_m drawn from mode m:
 *
 *   D^2 = - sum_mn c_m c_n E d(Y_m,Y_n')
 *
 * Modes of equal weight cancel, so D^2 is exactly 0 if nothing is hidden.
 * Test  tests/truth/test_exam_blind.c
 */
#include <string.h>

#include "core/alloc.h"
#include "core/threads.h"
#include "truth/exam_sum.h"

enum { ROW = BJ_EXAM_ROW, SAMPLES = 16, PARTS = 3 };

static const int parts[PARTS] = {BJ_HIDDEN_ALL, BJ_HIDDEN_CONTROL, BJ_HIDDEN_LIMITS};

/* ------------------------------------------------------------------------------------ two laws */

typedef struct both {
    bj_law_scene law; /* weights: a minus b */
    double *weights;
    float *means, *factor;
    double *draws, *groups;
} both;

static void both_free(both *u) {
    bj_free(u->weights);
    bj_free(u->means);
    bj_free(u->factor);
    bj_free(u->draws);
    bj_free(u->groups);
}

static void both_add(both *u, const bj_law_scene *law, double sign) {
    const size_t mean = ROW, factor = (size_t)law->factors * ROW;
    for (int m = 0; m < law->modes; m++) {
        const float *from = law->means + (size_t)m * mean,
                    *noise = law->factor + (size_t)m * factor;
        int at = 0;
        while (at < u->law.modes &&
               (memcmp(u->means + (size_t)at * mean, from, mean * sizeof *from) ||
                memcmp(u->factor + (size_t)at * factor, noise, factor * sizeof *noise)))
            at++;
        if (at == u->law.modes) {
            memcpy(u->means + (size_t)at * mean, from, mean * sizeof *from);
            memcpy(u->factor + (size_t)at * factor, noise, factor * sizeof *noise);
            u->weights[at] = 0;
            u->law.modes++;
        }
        u->weights[at] += sign * law->weights[m];
    }
}

bj_status bj_exam_between(bj_moment *out, const bj_law_scene *a, const bj_law_scene *b, int samples,
                          uint64_t seed, bj_error *err) {
    const size_t modes = (size_t)a->modes + (size_t)b->modes, factor = (size_t)a->factors * ROW;
    const int groups = samples / BJ_EXAM_GROUP;
    both u = {.law = *a};
    bj_status status = BJ_ALLOC(u.weights, modes, err);
    if (status == BJ_OK) status = BJ_ALLOC(u.means, modes * ROW, err);
    if (status == BJ_OK) status = BJ_ALLOC(u.factor, modes * factor + 1, err);
    if (status == BJ_OK) status = BJ_ALLOC(u.draws, modes * (size_t)samples * ROW, err);
    if (status == BJ_OK) status = BJ_ALLOC(u.groups, (size_t)groups, err);
    if (status == BJ_OK) {
        u.law.modes = 0;
        u.law.weights = u.weights;
        u.law.means = u.means;
        u.law.factor = u.factor;
        both_add(&u, a, 1);
        both_add(&u, b, -1);
        bj_exam_draw(u.draws, &u.law, samples, seed, "blind");
        for (int g = 0; g < groups; g++)
            u.groups[g] = -bj_exam_law_distance(&u.law, u.draws, samples, g);
        *out = bj_exam_moment(u.groups, groups);
    }
    both_free(&u);
    return status;
}

/* ---------------------------------------------------------------------------------- all scenes */

typedef struct blind_round {
    const bj_exam *exam;
    bj_law_blind **blind; /* (threads) */
    int64_t count;        /* total number of scenes */
    int64_t first;
    bj_moment *out; /* (step,PARTS) */
    bj_status *status;
    bj_error *errors; /* (step) */
} blind_round;

static bj_status measure(const blind_round *r, int item, int worker, bj_error *err) {
    const bj_exam *exam = r->exam;
    const int64_t number = (r->first + item) * bj_exam_scenes(exam) / r->count;
    const bj_law_scene law = bj_exam_law(exam, number);
    const int64_t at = bj_law_find(bj_exam_laws(exam), law.scenario_id);
    for (int p = 0; p < PARTS; p++) {
        bj_law_scene mixture;
        BJ_TRY(bj_law_blind_at(&mixture, r->blind[worker], at, parts[p], err));
        BJ_TRY(bj_exam_between(&r->out[item * PARTS + p], &law, &mixture, SAMPLES,
                               bj_exam_seed(exam), err));
    }
    return BJ_OK;
}

static void measure_item(void *context, int item, int worker) {
    blind_round *r = context;
    r->status[item] = measure(r, item, worker, &r->errors[item]);
}

static bj_status add_all(bj_moment_sum sums[PARTS], blind_round *r, bj_pool *pool, int step,
                         bj_error *err) {
    for (r->first = 0; r->first < r->count; r->first += step) {
        const int items = r->count - r->first < step ? (int)(r->count - r->first) : step;
        bj_pool_run(pool, measure_item, r, items);
        for (int i = 0; i < items; i++) {
            if (r->status[i] != BJ_OK)
                return BJ_FAIL(err, r->status[i], "%s", r->errors[i].message);
            for (int p = 0; p < PARTS; p++) bj_moment_sum_add(&sums[p], &r->out[i * PARTS + p]);
        }
        BJ_TRY(bj_exam_progress(r->exam, r->first + items, r->count, err));
    }
    return BJ_OK;
}

static bj_status run(bj_moment_sum sums[PARTS], blind_round *r, bj_pool *pool, bj_error *err) {
    const int threads = bj_pool_threads(pool), step = 4 * threads;
    BJ_TRY(BJ_ALLOC(r->out, (size_t)step * PARTS, err));
    BJ_TRY(BJ_ALLOC(r->status, (size_t)step, err));
    BJ_TRY(BJ_ALLOC(r->errors, (size_t)step, err));
    BJ_TRY(BJ_ALLOC(r->blind, (size_t)threads, err));
    for (int i = 0; i < threads; i++)
        BJ_TRY(bj_law_blind_create(&r->blind[i], bj_exam_laws(r->exam), err));
    return add_all(sums, r, pool, step, err);
}

bj_status bj_exam_blind(bj_blind_report *report, bj_exam *exam, int64_t scenes, bj_error *err) {
    if (!report || !exam || scenes < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "exam: the report or the exam is NULL, "
                       "or the number of scenes (%lld) is less than 1",
                       (long long)scenes);
    const int64_t all = bj_exam_scenes(exam);
    blind_round r = {.exam = exam, .count = scenes < all ? scenes : all};
    bj_moment_sum sums[PARTS] = {{0}};
    bj_pool *pool = NULL;
    bj_status status = bj_pool_create(&pool, bj_exam_threads(exam), err);
    if (status == BJ_OK) status = run(sums, &r, pool, err);
    for (int i = 0; r.blind && i < bj_pool_threads(pool); i++) bj_law_blind_free(r.blind[i]);
    bj_free(r.blind);
    bj_free(r.out);
    bj_free(r.status);
    bj_free(r.errors);
    bj_pool_free(pool);
    if (status != BJ_OK) return status;
    *report = (bj_blind_report){.scenes = r.count,
                                .discrepancy = bj_moment_sum_estimate(&sums[0], r.count),
                                .spread = bj_moment_sum_spread(&sums[0], r.count),
                                .control = bj_moment_sum_estimate(&sums[1], r.count),
                                .limits = bj_moment_sum_estimate(&sums[2], r.count)};
    return BJ_OK;
}
