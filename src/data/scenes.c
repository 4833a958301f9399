/* scenes.c - batches that own their arrays. They are created from padded tensors or generated.
 *
 * Invariant: rows of neighbors and polylines are ordered by scene, then by slot. Empty slots have
 * no row.
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

struct bj_scenes {
    bj_batch batch;
    bj_scene *table; /* (B) points into the arrays below */
    bj_real *focal, *neighbors, *polylines, *future;
};

const bj_batch *bj_scenes_batch(const bj_scenes *scenes) { return &scenes->batch; }

void bj_scenes_free(bj_scenes *s) {
    if (!s) return;
    bj_free(s->focal);
    bj_free(s->neighbors);
    bj_free(s->polylines);
    bj_free(s->future);
    bj_free(s->table);
    bj_free(s);
}

/* Allocates arrays for B scenes with the given total row counts. All scenes start empty. */
static bj_status create(bj_scenes **out, const bj_arch *a, int B, size_t neighbors,
                        size_t polylines, int has_future, bj_error *err) {
    const size_t b = (size_t)B, track = (size_t)a->obs * BJ_FOCAL_FEATURES;
    const size_t line = 2 * (size_t)a->fut;
    *out = NULL;
    bj_scenes *s;
    BJ_TRY(BJ_ALLOC(s, 1, err));
    bj_status status;
    BJ_GOTO(status, fail, BJ_ALLOC(s->focal, b * track, err));
    BJ_GOTO(status, fail, BJ_ALLOC(s->neighbors, neighbors * track, err));
    BJ_GOTO(status, fail,
            BJ_ALLOC(s->polylines, polylines * (size_t)a->points * BJ_POLYLINE_FEATURES, err));
    if (has_future) BJ_GOTO(status, fail, BJ_ALLOC(s->future, b * line, err));
    BJ_GOTO(status, fail, BJ_ALLOC(s->table, b, err));
    for (size_t i = 0; i < b; i++)
        s->table[i] = (bj_scene){.focal = s->focal + i * track,
                                 .future = has_future ? s->future + i * line : NULL};
    s->batch = (bj_batch){.B = B, .scenes = s->table};
    *out = s;
    return BJ_OK;
fail:
    bj_scenes_free(s);
    return status;
}

/* Copies the occupied slots of a scene, shape (slots,width), and returns their count. */
static int compact(bj_real *rows, const bj_real *padded, const uint8_t *mask, int slots,
                   size_t width) {
    int n = 0;
    for (size_t i = 0; i < (size_t)slots; i++)
        if (mask[i]) memcpy(rows + (size_t)n++ * width, padded + i * width, width * sizeof *rows);
    return n;
}

static size_t count_present(const uint8_t *mask, size_t n) {
    size_t present = 0;
    for (size_t i = 0; i < n; i++) present += mask[i] != 0;
    return present;
}

bj_status bj_scenes_from_padded(bj_scenes **out, const bj_arch *a, int B, const bj_real *focal,
                                const bj_real *neighbors, const uint8_t *nmask,
                                const bj_real *polylines, const uint8_t *pmask,
                                const bj_real *future, bj_error *err) {
    *out = NULL;
    if (B < 1) return BJ_FAIL(err, BJ_EARG, "%d scenes, expected at least 1", B);
    BJ_TRY(bj_arch_check(a, err));
    const size_t b = (size_t)B, track = (size_t)a->obs * BJ_FOCAL_FEATURES;
    const size_t line = (size_t)a->points * BJ_POLYLINE_FEATURES;
    BJ_TRY(create(out, a, B, count_present(nmask, b * (size_t)a->neighbors),
                  count_present(pmask, b * (size_t)a->polylines), future != NULL, err));
    bj_scenes *s = *out;
    memcpy(s->focal, focal, b * track * sizeof *focal);
    if (future) memcpy(s->future, future, b * 2 * (size_t)a->fut * sizeof *future);
    bj_real *next_track = s->neighbors, *next_line = s->polylines;
    const size_t N = (size_t)a->neighbors, P = (size_t)a->polylines;
    for (size_t i = 0; i < b; i++) {
        bj_scene *scene = &s->table[i];
        scene->neighbors = next_track;
        scene->polylines = next_line;
        scene->neighbor_count =
            compact(next_track, neighbors + i * N * track, nmask + i * N, a->neighbors, track);
        scene->polyline_count =
            compact(next_line, polylines + i * P * line, pmask + i * P, a->polylines, line);
        next_track += (size_t)scene->neighbor_count * track;
        next_line += (size_t)scene->polyline_count * line;
    }
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------- synthetic */

enum { STATE = BJ_FOCAL_FEATURES };

/* Models motion with constant speed and constant turn rate. Time 0 is the last observed step. */
typedef struct motion {
    double x, y, speed, heading, turn;
} motion;

static void state_at(bj_real state[STATE], const motion *m, double time, double type) {
    const double h = m->heading + m->turn * time;
    const double values[STATE] = {m->x + m->speed * time * cos(h),
                                  m->y + m->speed * time * sin(h),
                                  m->speed * cos(h),
                                  m->speed * sin(h),
                                  cos(h),
                                  sin(h),
                                  type};
    for (int i = 0; i < STATE; i++) state[i] = (bj_real)values[i];
}

static void make_focal(bj_scenes *s, const bj_arch *a, bj_rng *rng, int b) {
    const motion past = {0, 0, 15 * bj_rng_uniform(rng), 0, 0};
    motion future = past;
    future.turn = 0.08 * bj_rng_normal(rng);
    for (int t = 0; t < a->obs; t++)
        state_at(s->focal + ((size_t)b * (size_t)a->obs + (size_t)t) * STATE, &past,
                 (t - a->obs + 1) * a->dt, 0);
    for (int t = 0; t < a->fut; t++) {
        bj_real state[STATE];
        state_at(state, &future, (t + 1) * a->dt, 0);
        for (int c = 0; c < 2; c++)
            s->future[((size_t)b * (size_t)a->fut + (size_t)t) * 2 + (size_t)c] =
                state[c] + (bj_real)(0.02 * bj_rng_normal(rng));
    }
}

static void make_neighbor(bj_real *track, const bj_arch *a, bj_rng *rng) {
    const motion m = {40 * bj_rng_normal(rng), 40 * bj_rng_normal(rng), 15 * bj_rng_uniform(rng),
                      6.283185307179586 * bj_rng_uniform(rng), 0.05 * bj_rng_normal(rng)};
    const double type = bj_rng_uniform(rng) < 0.2;
    /* Most tracks are complete, but some start late. */
    const double appears = (bj_rng_uniform(rng) - 0.4) * a->obs;
    for (int t = 0; t < a->obs; t++)
        if (t >= appears) state_at(track + (size_t)t * STATE, &m, (t - a->obs + 1) * a->dt, type);
}

static void make_polyline(bj_real *line, const bj_arch *a, bj_rng *rng) {
    const double direction = 6.283185307179586 * bj_rng_uniform(rng);
    const double length = 5 + 25 * bj_rng_uniform(rng);
    const double x = 50 * bj_rng_normal(rng), y = 50 * bj_rng_normal(rng);
    const double crossing = bj_rng_uniform(rng) < 0.3, crosswalk = bj_rng_uniform(rng) < 0.1;
    for (int i = 0; i < a->points; i++, line += BJ_POLYLINE_FEATURES) {
        const double along = a->points > 1 ? length * i / (a->points - 1) : 0;
        line[0] = (bj_real)(x + along * cos(direction));
        line[1] = (bj_real)(y + along * sin(direction));
        line[2] = (bj_real)cos(direction);
        line[3] = (bj_real)sin(direction);
        line[4] = (bj_real)crossing;
        line[5] = (bj_real)crosswalk;
    }
}

bj_status bj_scenes_synthetic(bj_scenes **out, const bj_arch *a, int B, uint64_t seed,
                              bj_error *err) {
    *out = NULL;
    if (B < 1) return BJ_FAIL(err, BJ_EARG, "%d scenes, expected at least 1", B);
    BJ_TRY(bj_arch_check(a, err));
    const size_t b = (size_t)B;
    BJ_TRY(create(out, a, B, b * (size_t)a->neighbors, b * (size_t)a->polylines, 1, err));
    bj_scenes *s = *out;
    bj_rng rng = bj_rng_seed(seed);
    const int least = a->polylines / 6;
    bj_real *track = s->neighbors, *line = s->polylines;
    for (int i = 0; i < B; i++) {
        bj_scene *scene = &s->table[i];
        scene->neighbor_count = (int)((a->neighbors + 1) * bj_rng_uniform(&rng));
        scene->polyline_count = least + (int)((a->polylines - least + 1) * bj_rng_uniform(&rng));
        scene->neighbors = track;
        scene->polylines = line;
        make_focal(s, a, &rng, i);
        for (int n = 0; n < scene->neighbor_count; n++, track += (size_t)a->obs * STATE)
            make_neighbor(track, a, &rng);
        for (int p = 0; p < scene->polyline_count; p++)
            make_polyline(line, a, &rng), line += (size_t)a->points * BJ_POLYLINE_FEATURES;
    }
    return BJ_OK;
}
