/* gallery.c - screens every scene of a cache and chooses cases among the strict ones.
 *
 *   1. Batches are processed in the order of the cache: forecasts of both models, screen,
 *      containment (look_at).
 *   2. The rule chooses among the strict cases (choose.c).
 *   3. The batches of the chosen cases are predicted again, and the forecasts of these cases are
 *      kept.
 *
 * Invariants
 *   1. The cache is opened blind, so no function can return a future.
 *   2. Forecasts are used unchanged. They are not moved, reweighted or left out.
 *   3. The values of a scene depend neither on the number of threads nor on the number of requested
 *      cases.
 * Tests: tests/gallery/test_gallery.c, tests/cli/gallery.sh
 */
#include <string.h>

#include "core/alloc.h"
#include "gallery/gallery_internal.h"

enum { BATCH = BJ_GALLERY_BATCH, MODELS = BJ_GALLERY_MODELS };

/* -------------------------------------------------------------------------------------- looking */

/* Returns the drivable areas of a map for a worker. Scenes of one town share a map. */
static bj_status prepare(bj_drivable **out, bj_gallery *g, int64_t map, int worker, bj_error *err) {
    *out = g->areas[worker];
    if (g->maps[worker] == map) return BJ_OK;
    g->maps[worker] = -1;
    BJ_TRY(bj_drivable_set_cache(*out, g->cache, map, BJ_AUDIT_TOLERANCE, err));
    g->maps[worker] = map;
    return BJ_OK;
}

/* Copies a forecast of the batch and converts it to double. `local` receives the trajectories. */
static void forecast_of(double *weights, double *local, const bj_gallery *g, int model, int item) {
    const size_t K = (size_t)g->K[model], n = 2 * K * (size_t)g->arch.fut;
    const bj_real *w = g->weights[model] + (size_t)item * K;
    const bj_real *y = g->trajectories[model] + (size_t)item * n;
    for (size_t k = 0; k < K; k++) weights[k] = (double)w[k];
    for (size_t i = 0; i < n; i++) local[i] = (double)y[i];
}

static double *own(double *buffer, const bj_gallery *g, int worker) {
    const int most = g->K[0] > g->K[1] ? g->K[0] : g->K[1];
    return buffer + (size_t)worker * (size_t)most * 2 * (size_t)g->arch.fut;
}

/* Checks whether the candidates of both models are inside the drivable areas. */
static bj_status contain(bj_gallery_look *look, bj_gallery *g, const bj_scene_info *info, int item,
                         int worker) {
    double weights[BJ_MAX_ATOMS];
    double *const local = own(g->local, g, worker), *const city = own(g->city, g, worker);
    bj_drivable *areas;
    BJ_TRY(prepare(&areas, g, info->map, worker, &look->error));
    look->strict = 1;
    for (int m = 0; m < MODELS; m++) {
        forecast_of(weights, local, g, m, item);
        bj_to_city(city, local, g->K[m] * g->arch.fut, info->origin, info->heading);
        bj_audit_measure(&look->audit[m], areas, g->K[m], g->arch.fut, weights, city);
        look->strict &= look->audit[m].contained;
    }
    return BJ_OK;
}

typedef struct turn {
    bj_gallery *gallery;
    const int64_t *numbers; /* indices of the batch's scenes in the cache */
} turn;

static void look_at(void *context, int item, int worker) {
    const turn *t = context;
    bj_gallery *g = t->gallery;
    bj_gallery_look *look = &g->look[item];
    const bj_scene_info info = bj_cache_info(g->cache, t->numbers[item]);
    const bj_scene_floats at = bj_cache_floats(g->cache, t->numbers[item]);
    double weights[BJ_MAX_ATOMS], *const local = own(g->local, g, worker);
    memset(look, 0, sizeof *look);
    for (int m = 0; m < MODELS; m++) {
        forecast_of(weights, local, g, m, item);
        bj_proxy_measure(&look->proxy[m], at.polylines, info.polylines, g->arch.points, g->K[m],
                         g->arch.fut, weights, local);
        if (m == BJ_GALLERY_BRANCH)
            look->maneuvers = bj_gallery_maneuvers(g->K[m], g->arch.fut, weights, local);
    }
    look->audited = bj_audit_takes(info.focal_type);
    if (look->audited && look->proxy[0].strict && look->proxy[1].strict)
        look->status = contain(look, g, &info, item, worker);
}

/* Predicts one batch and examines its scenes. *numbers are the scene numbers from
 * bj_loader_batch. */
static bj_status look_at_batch(int *count, const int64_t **numbers, bj_gallery *g, int64_t step,
                               bj_error *err) {
    const bj_batch *batch;
    BJ_TRY(bj_loader_batch(&batch, numbers, g->loader, 0, step, err));
    for (int m = 0; m < MODELS; m++)
        BJ_TRY(bj_predict(g->predictor[m], batch, g->weights[m], g->trajectories[m], NULL, err));
    turn t = {g, *numbers};
    bj_pool_run(g->pool, look_at, &t, batch->B);
    for (int i = 0; i < batch->B; i++)
        if (g->look[i].status != BJ_OK)
            return BJ_FAIL(err, g->look[i].status, "scene '%s': %s",
                           bj_cache_info(g->cache, (*numbers)[i]).scenario_id,
                           g->look[i].error.message);
    *count = batch->B;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ screening */

static bj_status keep_strict(bj_gallery *g, int64_t scene, unsigned maneuvers, bj_error *err) {
    if (g->strict_count == g->strict_room) {
        const int64_t room = g->strict_room ? 2 * g->strict_room : 64;
        bj_strict_case *more;
        BJ_TRY(BJ_ALLOC(more, (size_t)room, err));
        if (g->strict_count) memcpy(more, g->strict, (size_t)g->strict_count * sizeof *more);
        bj_free(g->strict);
        g->strict = more;
        g->strict_room = room;
    }
    const bj_scene_info info = bj_cache_info(g->cache, scene);
    bj_strict_case *c = &g->strict[g->strict_count];
    *c = (bj_strict_case){.scene = scene, .map = info.map, .maneuvers = maneuvers};
    bj_gallery_order(c->order, g->options.seed, info.scenario_id);
    g->strict_count++;
    return BJ_OK;
}

static bj_status count_in(bj_gallery *g, const bj_gallery_look *look, int64_t scene,
                          bj_error *err) {
    bj_gallery_counts *c = &g->counts;
    for (int m = 0; m < MODELS; m++) {
        c->passes[m] += look->proxy[m].passes;
        c->near[m] += look->proxy[m].strict;
    }
    c->audited += look->audited;
    if (!look->strict) return BJ_OK;
    c->strict++;
    c->several += (look->maneuvers & (look->maneuvers - 1)) != 0;
    return keep_strict(g, scene, look->maneuvers, err);
}

static bj_status screen(bj_gallery *g, bj_error *err) {
    bj_status status = BJ_OK;
    for (int64_t first = 0; first < g->counts.scenes && status == BJ_OK; first += BATCH) {
        const int64_t *numbers;
        int count = 0;
        status = look_at_batch(&count, &numbers, g, first / BATCH, err);
        if (first + count > g->counts.scenes) count = (int)(g->counts.scenes - first);
        for (int i = 0; i < count && status == BJ_OK; i++)
            status = count_in(g, &g->look[i], numbers[i], err);
        if (status == BJ_OK && g->options.progress &&
            g->options.progress(g->options.context, first + count, g->counts.scenes))
            status = BJ_FAIL(err, BJ_ELOCKED, "stopped before all scenes were screened");
    }
    return status;
}

/* ------------------------------------------------------------------------------------- choosing */

/* Stores one case with its properties and forecasts. */
static bj_status keep_case(bj_gallery *g, int place, int item, const bj_strict_case *from,
                           bj_error *err) {
    const size_t F = (size_t)g->arch.fut, row = 1 + 2 * F;
    bj_gallery_case *c = &g->cases[place];
    double *room = g->forecasts + (size_t)place * (size_t)(g->K[0] + g->K[1]) * row;
    *c = (bj_gallery_case){.scene = from->scene, .maneuvers = g->look[item].maneuvers};
    for (int m = 0; m < MODELS; m++) {
        double *trajectories = room + g->K[m];
        forecast_of(room, trajectories, g, m, item);
        c->weights[m] = room;
        c->trajectories[m] = trajectories;
        c->proxy[m] = g->look[item].proxy[m];
        c->audit[m] = g->look[item].audit[m];
        room += (size_t)g->K[m] * row;
    }
    bj_sha256_hex(c->order, from->order);
    BJ_TRY(bj_gallery_observed(c->observed, g->cache, c->scene, err));
    return bj_gallery_areas(c->areas, g->cache, from->map, err);
}

static bj_status choose(bj_gallery *g, bj_error *err) {
    const size_t row = 1 + 2 * (size_t)g->arch.fut, each = (size_t)(g->K[0] + g->K[1]) * row;
    int64_t chosen[BJ_GALLERY_CASES];
    const int found = bj_gallery_choose(chosen, g->options.cases, g->strict, g->strict_count);
    BJ_TRY(BJ_ALLOC(g->cases, BJ_GALLERY_CASES, err));
    BJ_TRY(BJ_ALLOC(g->forecasts, (size_t)(found + 1) * each, err));
    for (int i = 0; i < found; i++) {
        const bj_strict_case *c = &g->strict[chosen[i]];
        const int64_t *numbers;
        int count;
        BJ_TRY(look_at_batch(&count, &numbers, g, c->scene / BATCH, err));
        BJ_TRY(keep_case(g, i, (int)(c->scene % BATCH), c, err));
    }
    g->counts.cases = found;
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- handle */

static bj_status add_model(bj_gallery *g, int m, const bj_model *model, bj_error *err) {
    const bj_arch *arch = bj_model_arch(model);
    const bj_predictor_options how = {
        .max_batch = BATCH, .threads = g->options.threads, .isa = g->options.isa};
    const size_t n = BATCH * (size_t)arch->atoms;
    g->K[m] = arch->atoms;
    BJ_TRY(bj_arch_fits(arch, &g->arch, err));
    BJ_TRY(bj_predictor_create(&g->predictor[m], model, &how, err));
    BJ_TRY(BJ_ALLOC(g->weights[m], n, err));
    return BJ_ALLOC(g->trajectories[m], n * 2 * (size_t)arch->fut, err);
}

static bj_status add_workers(bj_gallery *g, bj_error *err) {
    BJ_TRY(bj_pool_create(&g->pool, g->options.threads, err));
    const size_t workers = (size_t)bj_pool_threads(g->pool);
    const size_t most = (size_t)(g->K[0] > g->K[1] ? g->K[0] : g->K[1]);
    BJ_TRY(BJ_ALLOC(g->local, workers * most * 2 * (size_t)g->arch.fut, err));
    BJ_TRY(BJ_ALLOC(g->city, workers * most * 2 * (size_t)g->arch.fut, err));
    BJ_TRY(BJ_ALLOC(g->look, BATCH, err));
    BJ_TRY(BJ_ALLOC(g->maps, workers, err));
    BJ_TRY(BJ_ALLOC(g->areas, workers, err));
    for (size_t i = 0; i < workers; i++) {
        g->maps[i] = -1;
        BJ_TRY(bj_drivable_create(&g->areas[i], err));
    }
    return BJ_OK;
}

static bj_status make(bj_gallery *g, const char *cache, const bj_model *branch,
                      const bj_model *point, bj_error *err) {
    const bj_loader_options in_order = {.part = BJ_PART_ALL, .batch = BATCH};
    BJ_TRY(bj_cache_open(&g->cache, cache, 1, err));
    g->arch = bj_cache_arch(g->cache);
    const int64_t count = bj_cache_count(g->cache), limit = g->options.limit;
    g->counts.scenes = limit > 0 && limit < count ? limit : count;
    BJ_TRY(bj_loader_create(&g->loader, g->cache, &in_order, err));
    BJ_TRY(add_model(g, BJ_GALLERY_BRANCH, branch, err));
    BJ_TRY(add_model(g, BJ_GALLERY_POINT, point, err));
    BJ_TRY(add_workers(g, err));
    BJ_TRY(bj_gallery_digest_of(g->digest, g->cache, g->counts.scenes, err));
    BJ_TRY(screen(g, err));
    return choose(g, err);
}

bj_status bj_gallery_create(bj_gallery **out, const char *cache, const bj_model *branch,
                            const bj_model *point, const bj_gallery_options *options,
                            bj_error *err) {
    bj_gallery *g;
    if (!out || !cache || !branch || !point || !options)
        return BJ_FAIL(err, BJ_EARG, "gallery: output, cache, models or options are missing");
    *out = NULL;
    if (options->cases < 1 || options->cases > BJ_GALLERY_CASES)
        return BJ_FAIL(err, BJ_EARG, "gallery: %d cases, expected 1 to %d", options->cases,
                       BJ_GALLERY_CASES);
    if (bj_model_arch(point)->atoms != 1)
        return BJ_FAIL(err, BJ_EARG, "gallery: the point model has K = %d, expected 1",
                       bj_model_arch(point)->atoms);
    BJ_TRY(BJ_ALLOC(g, 1, err));
    g->options = *options;
    const bj_status status = make(g, cache, branch, point, err);
    if (status == BJ_OK) *out = g;
    else bj_gallery_free(g);
    return status;
}

void bj_gallery_free(bj_gallery *g) {
    if (!g) return;
    for (int i = 0; g->areas && i < bj_pool_threads(g->pool); i++) bj_drivable_free(g->areas[i]);
    for (int m = 0; m < MODELS; m++) {
        bj_predictor_free(g->predictor[m]);
        bj_free(g->weights[m]);
        bj_free(g->trajectories[m]);
    }
    bj_free(g->areas);
    bj_free(g->maps);
    bj_free(g->look);
    bj_free(g->local);
    bj_free(g->city);
    bj_free(g->strict);
    bj_free(g->cases);
    bj_free(g->forecasts);
    bj_pool_free(g->pool);
    bj_loader_free(g->loader);
    bj_cache_free(g->cache);
    bj_free(g);
}

bj_gallery_counts bj_gallery_count(const bj_gallery *g) { return g->counts; }
const bj_cache *bj_gallery_cache(const bj_gallery *g) { return g->cache; }
const char *bj_gallery_digest(const bj_gallery *g) { return g->digest; }
const bj_gallery_case *bj_gallery_at(const bj_gallery *g, int place) { return &g->cases[place]; }

const char *bj_gallery_isa(const bj_gallery *g) {
    return bj_predictor_isa(g->predictor[BJ_GALLERY_BRANCH]);
}
