/* stream.c - generates scenes in a fixed order, one window of towns at a time (branchjepa/fresh.h).
 *
 *   position p = w * W + k    window w, W = towns * 32 scenes, k = order_w^-1(scene number - w * W)
 *   order_w                   Fisher-Yates shuffle of 0 .. W - 1, seeded with (seed, split, w);
 *                             the identity in an ordered stream
 *
 * A window is generated as a whole, and each town by one worker. The scene number determines where
 * a scene is stored, so the number of threads does not change the result. Window w is stored in
 * slot w % 2, and a batch crosses at most one window boundary.
 *
 * Shapes  arrays of a scene: focal (T,7), neighbors (n,T,7), polylines (p,Q,6), future (F,2)
 * Memory  a slot is allocated for its first window; nothing is allocated afterwards
 * Tests   tests/world/test_stream.c
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/threads.h"
#include "data/scene_view.h"
#include "world/town_worker.h"

enum { SPLIT_SIZE = 32, SLOTS = 2, MAX_TOWNS = 4096 };
_Static_assert((int)BJ_FRESH_TOWN_SCENES == (int)BJ_WORLD_TOWN_SCENES, "one size of towns");

typedef struct worker {
    bj_town_worker at;
    bj_error why; /* first failure in this window; its code is BJ_OK if there is none */
} worker;

typedef struct slot {
    int64_t window;    /* -1 if empty */
    bj_scene *scenes;  /* (W) in stream order */
    int64_t *numbers;  /* (W) scene numbers */
    bj_real *features; /* (W,bj_scene_room) */
} slot;

struct bj_world_stream {
    int version;
    uint64_t seed;
    char split[SPLIT_SIZE];
    int towns, ordered;
    int64_t W;
    bj_arch arch;
    bj_pool *pool;
    worker *workers; /* (bj_pool_threads) */
    slot slots[SLOTS];
    int *place; /* (W) position of a scene in the window; used during generation */
    int64_t making;
    bj_scene *scenes; /* (W) scenes of the last read */
    int64_t *numbers; /* (W) scene numbers of the last read */
    double seconds;
};

bj_arch bj_world_stream_arch(void) {
    return (bj_arch){.obs = BJ_AV2_OBS,
                     .fut = BJ_AV2_FUT,
                     .neighbors = BJ_AV2_NEIGHBORS,
                     .polylines = BJ_AV2_POLYLINES,
                     .points = BJ_AV2_POINTS,
                     .dt = 0.1};
}

/* --------------------------------------------------------------------------------------- making */

static bj_real *copy(bj_real **room, const float *source, size_t count) {
    bj_real *const to = *room;
    for (size_t i = 0; i < count; i++) to[i] = (bj_real)source[i];
    *room += count;
    return to;
}

static void store(const bj_world_stream *s, const slot *to, const bj_features *f, int64_t number) {
    const int at = s->place[number - s->making * s->W];
    bj_real *room = to->features + (size_t)at * bj_scene_room(&s->arch);
    bj_scene *scene = &to->scenes[at];
    scene->neighbor_count = f->neighbors;
    scene->polyline_count = f->polylines;
    scene->focal = copy(&room, f->focal, BJ_AV2_TRACK);
    scene->neighbors = copy(&room, f->neighbor[0], (size_t)f->neighbors * BJ_AV2_TRACK);
    scene->polylines = copy(&room, f->polyline[0], (size_t)f->polylines * BJ_AV2_LINE);
    scene->future = copy(&room, f->future, BJ_AV2_FUTURE);
    to->numbers[at] = number;
}

static bj_status make_town(const bj_world_stream *s, bj_town_worker *w, int64_t number,
                           bj_error *err) {
    const slot *to = &s->slots[s->making % SLOTS];
    bj_map map;
    BJ_TRY(bj_town_worker_make(w, &map, s->version, s->seed, s->split, number, err));
    BJ_TRY(bj_features_prepare(w->maker, &map, err));
    const int64_t first = number * BJ_WORLD_TOWN_SCENES;
    for (int64_t i = first; i < first + BJ_WORLD_TOWN_SCENES; i++) {
        bj_world_scene_make_short(w->scene, w->town, s->seed, s->split, i);
        BJ_TRY(bj_features_make_prepared(w->features, w->maker, &w->scene->scenario, &map,
                                         w->scene->id, err));
        store(s, to, w->features, i);
    }
    return BJ_OK;
}

static void task(void *context, int item, int number) {
    bj_world_stream *s = context;
    worker *w = &s->workers[number];
    bj_error why = {0};
    if (make_town(s, &w->at, s->making * s->towns + item, &why) != BJ_OK && w->why.code == BJ_OK)
        w->why = why;
}

static void fill_places(bj_world_stream *s, int64_t window) {
    const uint64_t name = bj_world_hash_text(s->split);
    bj_rng rng = bj_rng_seed(bj_world_hash(s->seed, name, (uint64_t)window, 2000));
    for (int i = 0; i < (int)s->W; i++) s->place[i] = i;
    if (s->ordered) return;
    for (int i = (int)s->W - 1; i > 0; i--) {
        const int k = bj_world_integer(&rng, 0, i), swap = s->place[i];
        s->place[i] = s->place[k];
        s->place[k] = swap;
    }
}

static bj_status allocate_slot(bj_world_stream *s, slot *to, bj_error *err) {
    const size_t W = (size_t)s->W;
    if (!to->scenes) BJ_TRY(BJ_ALLOC(to->scenes, W, err));
    if (!to->numbers) BJ_TRY(BJ_ALLOC(to->numbers, W, err));
    if (!to->features) BJ_TRY(BJ_ALLOC(to->features, W * bj_scene_room(&s->arch), err));
    return BJ_OK;
}

static bj_status make_window(bj_world_stream *s, int64_t window, bj_error *err) {
    slot *to = &s->slots[window % SLOTS];
    const double start = bj_seconds();
    BJ_TRY(allocate_slot(s, to, err));
    to->window = -1;
    s->making = window;
    fill_places(s, window);
    const int workers = bj_pool_threads(s->pool);
    for (int i = 0; i < workers; i++) s->workers[i].why = (bj_error){0};
    bj_pool_run(s->pool, task, s, s->towns);
    for (int i = 0; i < workers; i++) {
        const bj_error *why = &s->workers[i].why;
        if (why->code != BJ_OK)
            return BJ_FAIL(err, why->code, "window %lld of the simulated world: %.300s",
                           (long long)window, why->message);
    }
    to->window = window;
    s->seconds += bj_seconds() - start;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ interface */

bj_status bj_world_stream_read(const bj_scene **scenes, const int64_t **numbers, bj_world_stream *s,
                               int64_t first, int count, bj_error *err) {
    const int64_t end = ((int64_t)1 << 32) / s->W * s->W;
    if (count < 1 || count > s->W)
        return BJ_FAIL(err, BJ_EARG, "stream: found %d scenes per batch, expected 1 to %lld", count,
                       (long long)s->W);
    if (first < 0 || first > end - count)
        return BJ_FAIL(err, BJ_EARG,
                       "stream: scenes %lld to %lld were requested, expected 0 to %lld",
                       (long long)first, (long long)first + count - 1, (long long)end - 1);
    for (int64_t w = first / s->W; w <= (first + count - 1) / s->W; w++)
        if (s->slots[w % SLOTS].window != w) BJ_TRY(make_window(s, w, err));
    for (int i = 0; i < count; i++) {
        const slot *from = &s->slots[(first + i) / s->W % SLOTS];
        s->scenes[i] = from->scenes[(first + i) % s->W];
        s->numbers[i] = from->numbers[(first + i) % s->W];
    }
    *scenes = s->scenes;
    if (numbers) *numbers = s->numbers;
    return BJ_OK;
}

void bj_world_stream_id(char id[64], void *stream, int64_t number) {
    const bj_world_stream *s = stream;
    bj_world_scene_id(id, s->version, s->seed, s->split, number);
}

double bj_world_stream_seconds(const bj_world_stream *s) { return s->seconds; }

static bj_status create_workers(bj_world_stream *s, bj_error *err) {
    const int count = bj_pool_threads(s->pool);
    BJ_TRY(BJ_ALLOC(s->workers, (size_t)count, err));
    for (int i = 0; i < count; i++) BJ_TRY(bj_town_worker_init(&s->workers[i].at, err));
    return BJ_OK;
}

static bj_status build(bj_world_stream *s, const bj_world_stream_options *o, bj_error *err) {
    const char *split = o->split ? o->split : "train";
    BJ_TRY(bj_world_check_split(split, err));
    BJ_TRY(bj_world_choose_version(&s->version, o->version, err));
    if (o->towns < 0 || o->towns > MAX_TOWNS)
        return BJ_FAIL(err, BJ_EARG, "stream: a window has %d towns, expected 0 to %d", o->towns,
                       MAX_TOWNS);
    s->seed = o->seed;
    snprintf(s->split, sizeof s->split, "%s", split);
    s->towns = o->towns ? o->towns : BJ_FRESH_WINDOW_TOWNS;
    s->ordered = o->ordered;
    s->W = (int64_t)s->towns * BJ_WORLD_TOWN_SCENES;
    s->arch = bj_world_stream_arch();
    for (int i = 0; i < SLOTS; i++) s->slots[i].window = -1;
    BJ_TRY(BJ_ALLOC(s->place, (size_t)s->W, err));
    BJ_TRY(BJ_ALLOC(s->scenes, (size_t)s->W, err));
    BJ_TRY(BJ_ALLOC(s->numbers, (size_t)s->W, err));
    BJ_TRY(bj_pool_create(&s->pool, o->threads, err));
    return create_workers(s, err);
}

bj_status bj_world_stream_create(bj_world_stream **out, const bj_world_stream_options *options,
                                 bj_error *err) {
    bj_world_stream *s;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(s, 1, err));
    const bj_status status = build(s, options, err);
    if (status == BJ_OK) *out = s;
    else bj_world_stream_free(s);
    return status;
}

void bj_world_stream_free(bj_world_stream *s) {
    if (!s) return;
    for (int i = 0; s->workers && i < bj_pool_threads(s->pool); i++)
        bj_town_worker_reset(&s->workers[i].at);
    for (int i = 0; i < SLOTS; i++) {
        bj_free(s->slots[i].scenes);
        bj_free(s->slots[i].numbers);
        bj_free(s->slots[i].features);
    }
    bj_free(s->workers);
    bj_free(s->place);
    bj_free(s->scenes);
    bj_free(s->numbers);
    bj_pool_free(s->pool);
    bj_free(s);
}
