/* exchange.c - measures how the Energy Score worsens if parts of scenes are exchanged; see
 * exchange.h.
 *
 * The scores are computed by a bj_evaluator, so they do not depend on the number of threads or the
 * batch size. Only pointers are copied, never the arrays of a scene.
 */
#include "eval/exchange.h"

#include <math.h>

#include "core/alloc.h"
#include "core/rng.h"

void bj_exchange_partners(int *partners, int n, uint64_t seed) {
    bj_rng rng = bj_rng_named(seed, "exchange");
    for (int i = 0; i < n; i++) partners[i] = i;
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)bj_rng_below(&rng, (uint64_t)i), moved = partners[i];
        partners[i] = partners[j];
        partners[j] = moved;
    }
}

bj_scene bj_exchange_scene(const bj_scene *scene, const bj_scene *partner, bj_exchange_part part) {
    bj_scene mixed = *scene;
    if (part == BJ_EXCHANGE_MAP) {
        mixed.polylines = partner->polylines;
        mixed.polyline_count = partner->polyline_count;
    } else if (part == BJ_EXCHANGE_NEIGHBORS) {
        mixed.neighbors = partner->neighbors;
        mixed.neighbor_count = partner->neighbor_count;
    } else if (part == BJ_EXCHANGE_FOCAL) {
        mixed.focal = partner->focal;
    }
    return mixed;
}

/* Returns 1 if any scene has the part. */
static int present(const bj_scene *scenes, int count, bj_exchange_part part) {
    int any = part == BJ_EXCHANGE_FOCAL;
    for (int i = 0; i < count && !any; i++)
        any = part == BJ_EXCHANGE_MAP ? scenes[i].polyline_count > 0 : scenes[i].neighbor_count > 0;
    return any;
}

typedef struct exchange {
    const bj_exchange_options *options;
    const bj_scene *scenes; /* (count) */
    int count;
    int *partners;   /* (count) */
    bj_scene *mixed; /* (max_batch) */
    bj_evaluator *evaluator;
    int64_t done, total; /* numbers of forecasts */
    int stopped;
} exchange;

/* Computes the mean trajectory Energy Score with one part exchanged. */
static bj_status measure(double *score, exchange *x, bj_exchange_part part, bj_error *err) {
    const bj_exchange_options *o = x->options;
    BJ_TRY(bj_evaluator_clear(x->evaluator, err));
    for (int first = 0; first < x->count && !x->stopped; first += o->max_batch) {
        const int left = x->count - first;
        const bj_batch batch = {.B = left < o->max_batch ? left : o->max_batch, .scenes = x->mixed};
        for (int b = 0; b < batch.B; b++) {
            const bj_scene *scene = &x->scenes[first + b];
            x->mixed[b] = bj_exchange_scene(scene, &x->scenes[x->partners[first + b]], part);
        }
        BJ_TRY(bj_evaluator_add(x->evaluator, &batch, NULL, err));
        x->done += batch.B;
        x->stopped = o->progress && o->progress(o->context, x->done, x->total);
    }
    *score = bj_evaluator_values(x->evaluator).traj_es;
    return BJ_OK;
}

static bj_status measure_all(bj_exchange_values *out, exchange *x, bj_error *err) {
    const double *known = x->options->plain;
    double score[BJ_EXCHANGE_PARTS];
    int wanted[BJ_EXCHANGE_PARTS];
    for (int i = 0; i < BJ_EXCHANGE_PARTS; i++) {
        score[i] = i == BJ_EXCHANGE_NONE && known ? *known : NAN;
        wanted[i] = i == BJ_EXCHANGE_NONE
                        ? !known
                        : x->count > 1 && present(x->scenes, x->count, (bj_exchange_part)i);
        x->total += wanted[i] ? x->count : 0;
    }
    for (int i = 0; i < BJ_EXCHANGE_PARTS && !x->stopped; i++)
        if (wanted[i]) BJ_TRY(measure(&score[i], x, (bj_exchange_part)i, err));
    if (x->stopped) return BJ_OK;
    const double plain = score[BJ_EXCHANGE_NONE];
    *out = (bj_exchange_values){.scenes = x->count,
                                .plain = plain,
                                .map = score[BJ_EXCHANGE_MAP] - plain,
                                .neighbors = score[BJ_EXCHANGE_NEIGHBORS] - plain,
                                .focal = score[BJ_EXCHANGE_FOCAL] - plain};
    return BJ_OK;
}

bj_status bj_exchange_measure(bj_exchange_values *out, const bj_model *model,
                              const bj_scene *scenes, int count, const bj_exchange_options *options,
                              bj_error *err) {
    const bj_evaluator_options how = {.max_batch = options->max_batch,
                                      .threads = options->threads,
                                      .precision = options->precision,
                                      .isa = options->isa};
    exchange x = {.options = options, .scenes = scenes, .count = count};
    bj_status status;
    *out = (bj_exchange_values){NAN, NAN, NAN, NAN, NAN};
    if (count < 1)
        return BJ_FAIL(err, BJ_EARG, "exchange: found %d scenes, expected at least 1", count);
    BJ_GOTO(status, done, bj_evaluator_create(&x.evaluator, model, NULL, &how, err));
    BJ_GOTO(status, done, BJ_ALLOC(x.partners, (size_t)count, err));
    BJ_GOTO(status, done, BJ_ALLOC(x.mixed, (size_t)options->max_batch, err));
    bj_exchange_partners(x.partners, count, BJ_EXCHANGE_SEED);
    status = measure_all(out, &x, err);
done:
    bj_free(x.mixed);
    bj_free(x.partners);
    bj_evaluator_free(x.evaluator);
    return status;
}
