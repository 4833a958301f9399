/* audit_maze.c - computes rollouts of finished runs on held-out episodes.
 *
 *   context c of frame 0 --predict--> L latents u[1], masses m
 *   u[h+1,l] = the latent with the largest mass among those predicted from length * u[h,l]
 *
 * A context is the output of the online encoder, which has a length. A predicted latent is a unit
 * vector. Before it is used as a context, it is scaled to the mean length of the contexts of
 * training frames. maze/rollout.h compares rollouts with the true frames, and maze/probe.h computes
 * positions from latents.
 *
 * Invariants
 *   1. Probe and length use only training episodes, and contexts are only in held-out episodes.
 *   2. All eligible contexts (maze/split.c) are used, in the order of the file, and the first one
 *      is drawn. Neither depends on a model.
 *   3. All runs of an audit share dataset, split and stride, and therefore contexts.
 * Shapes  G contexts of a batch, R = G L rows of it, D latent width, K weights
 * Test    tests/run/test_audit_maze.c
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "maze/drive.h"
#include "maze/rollout.h"
#include "run/maze_run.h"

enum { ROWS = 1024 /* number of observations that are encoded together */ };

typedef struct audit {
    bj_rollout_audit *out;
    const bj_rollout_options *options;
    bj_maze_run *run;    /* the current run */
    int64_t *rows;       /* (contexts) of the dataset */
    int64_t *fit, *held; /* (fit_frames), (held_frames) */
    double *xy;          /* (steps,2) */
    int apart;           /* rows between frames */
    int64_t done, total; /* contexts of all arms */
    bj_probe *probe;     /* of the current run */
    int64_t G;
    bj_pair *pairs;            /* (max(ROWS, G(H+1))) */
    bj_real *truth, *u;        /* (G,H+1,D), (H,R,D) */
    bj_real *fed, *candidates; /* (max(ROWS,R),D), (R,L,D) */
    bj_real *weights, *mass;   /* (R,K), (G,L) */
} audit;

static bj_status tell(audit *a, int64_t contexts, bj_error *err) {
    const bj_rollout_options *o = a->options;
    a->done += contexts;
    if (o->progress && o->progress(o->context, a->done, a->total))
        return BJ_FAIL(err, BJ_ELOCKED, "stopped after %lld of %lld contexts", (long long)a->done,
                       (long long)a->total);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- frames */

/* Returns up to BJ_PROBE_FRAMES evenly spaced rows that lie in cells, from training or held-out
 * episodes. */
static bj_status list_frames(int64_t **out, int64_t *count, const bj_maze_source *s, int fitted,
                             bj_error *err) {
    const int64_t *episodes = bj_maze_data_episodes(s->data);
    const int16_t *cells = bj_maze_data_cells(s->data);
    int64_t stride = 1;
    *out = NULL;
    for (int pass = 0; pass < 2; pass++) {
        int64_t seen = 0;
        *count = 0;
        for (int64_t e = 0; e < s->info.episodes; e++)
            for (int64_t t = episodes[e]; s->fitted[e] == fitted && t < episodes[e + 1]; t++) {
                if (cells[t] < 0 || seen++ % stride) continue;
                if (pass) (*out)[*count] = t;
                ++*count;
            }
        if (pass) break;
        stride = (*count + BJ_PROBE_FRAMES - 1) / BJ_PROBE_FRAMES;
        if (stride < 1) stride = 1;
        BJ_TRY(BJ_ALLOC(*out, (size_t)(*count / stride + 1), err));
    }
    return BJ_OK;
}

/* Computes the SHA-256 over the rows as 64-bit numbers, lowest byte first. */
static void hash_order(char hex[65], const int64_t *rows, int64_t count) {
    bj_sha256 hash;
    bj_sha256_init(&hash);
    for (int64_t i = 0; i < count; i++) {
        unsigned char bytes[8];
        for (int k = 0; k < 8; k++) bytes[k] = (unsigned char)((uint64_t)rows[i] >> 8 * k);
        bj_sha256_update(&hash, bytes, sizeof bytes);
    }
    bj_sha256_final(&hash, hex);
}

/* Prepares everything that does not depend on a model. */
static bj_status prepare(audit *a, bj_error *err) {
    bj_rollout_audit *o = a->out;
    const bj_settings *s = bj_run_settings(a->run->run);
    const bj_maze_source *d = a->run->source;
    const int64_t *episodes = bj_maze_data_episodes(d->data);
    a->apart = s->horizon;
    o->stride = s->horizon * d->info.stride;
    o->episodes = d->info.episodes;
    o->held_episodes = d->held_out;
    o->held_out = s->held_out;
    o->split_seed = s->split_seed;
    memcpy(o->data_sha256, d->digest, sizeof o->data_sha256);
    BJ_TRY(BJ_ALLOC(a->xy, 2 * (size_t)d->info.steps, err));
    BJ_TRY(bj_maze_data_positions(a->xy, d->data, err));
    BJ_TRY(
        bj_audit_contexts(&a->rows, &o->contexts, d->data, d->fitted, a->apart, o->horizon, err));
    if (o->contexts < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: no context is eligible: in %lld held-out episodes, "
                       "no frame is followed by %d more frames in cells at intervals of %d rows",
                       a->run->dir, (long long)o->held_episodes, o->horizon, a->apart);
    hash_order(o->order_sha256, a->rows, o->contexts);
    BJ_TRY(list_frames(&a->fit, &o->fit_frames, d, 1, err));
    BJ_TRY(list_frames(&a->held, &o->held_frames, d, 0, err));
    BJ_TRY(BJ_ALLOC(o->truth, 2 * ((size_t)o->horizon + 1), err));
    o->first_row = a->rows[0];
    while (episodes[o->first_episode + 1] <= o->first_row) o->first_episode++;
    for (int h = 0; h <= o->horizon; h++)
        memcpy(o->truth + 2 * h, a->xy + 2 * (o->first_row + (int64_t)h * a->apart),
               2 * sizeof *o->truth);
    a->total = o->arms * o->contexts;
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- probe */

static double length_of(const bj_real *x, size_t D) {
    double sum = 0;
    for (size_t d = 0; d < D; d++) sum += (double)x[d] * (double)x[d];
    return sqrt(sum);
}

/* Fits the probe to training frames and computes the mean length of their contexts. */
static bj_status fit_probe(audit *a, bj_rollout_arm *arm, bj_error *err) {
    bj_maze_view *v = &a->run->view;
    const size_t D = (size_t)v->D;
    double sum = 0, xy[ROWS][2];
    BJ_TRY(bj_probe_create(&a->probe, v->D, err));
    for (int64_t i = 0; i < a->out->fit_frames; i += ROWS) {
        const int64_t left = a->out->fit_frames - i, n = left < ROWS ? left : ROWS;
        for (int64_t k = 0; k < n; k++) {
            a->pairs[k] = bj_maze_run_row(a->run, a->fit[i + k]);
            memcpy(xy[k], a->xy + 2 * a->fit[i + k], sizeof xy[k]);
        }
        BJ_TRY(bj_maze_view_look(v, a->fed, NULL, NULL, a->pairs, n, err));
        bj_probe_add(a->probe, a->fed, xy[0], n);
        BJ_TRY(bj_maze_view_encode(v, a->fed, a->pairs, n, err));
        for (int64_t k = 0; k < n; k++) sum += length_of(a->fed + (size_t)k * D, D);
        BJ_TRY(tell(a, 0, err));
    }
    arm->length = sum / (double)a->out->fit_frames;
    return bj_probe_solve(a->probe, BJ_PROBE_RIDGE, err);
}

/* Measures the error of the probe on held-out frames. */
static bj_status judge_probe(audit *a, bj_rollout_arm *arm, bj_error *err) {
    bj_maze_view *v = &a->run->view;
    double error = 0, wall = 0;
    const double count = (double)a->out->held_frames;
    for (int64_t i = 0; i < a->out->held_frames; i += ROWS) {
        const int64_t left = a->out->held_frames - i, n = left < ROWS ? left : ROWS;
        for (int64_t k = 0; k < n; k++) a->pairs[k] = bj_maze_run_row(a->run, a->held[i + k]);
        BJ_TRY(bj_maze_view_look(v, a->fed, NULL, NULL, a->pairs, n, err));
        for (int64_t k = 0; k < n; k++) {
            const double *at = a->xy + 2 * a->held[i + k];
            double q[2];
            bj_probe_read(q, a->probe, a->fed + (size_t)k * (size_t)v->D);
            error += hypot(q[0] - at[0], q[1] - at[1]);
            wall += bj_maze_cell(a->run->source->maze, q[0], q[1]) < 0;
        }
        BJ_TRY(tell(a, 0, err));
    }
    arm->probe_error = error / count;
    arm->probe_wall = wall / count;
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- rollouts */

/* Computes u (H,G,L,D), the masses and the target latents of a group of contexts, starting at
 * context `first`. */
static bj_status roll(audit *a, double length, int64_t first, int64_t n, bj_error *err) {
    bj_maze_view *v = &a->run->view;
    const int H = a->out->horizon;
    const size_t D = (size_t)v->D, R = (size_t)n * (size_t)v->L;
    for (int64_t g = 0; g < n; g++)
        for (int h = 0; h <= H; h++)
            a->pairs[g * (H + 1) + h] =
                bj_maze_run_row(a->run, a->rows[first + g] + (int64_t)h * a->apart);
    BJ_TRY(bj_maze_view_look(v, a->truth, NULL, NULL, a->pairs, n * (H + 1), err));
    for (int64_t g = 0; g < n; g++) a->pairs[g] = a->pairs[g * (H + 1)];
    BJ_TRY(bj_maze_run_look(a->run, NULL, a->u, a->mass, a->pairs, n, err));
    for (int h = 1; h < H; h++) {
        bj_real *last = a->u + (size_t)(h - 1) * R * D;
        for (size_t i = 0; i < R * D; i++) a->fed[i] = (bj_real)(length * (double)last[i]);
        BJ_TRY(bj_maze_view_go_on(v, a->candidates, a->weights, a->fed, (int64_t)R, err));
        bj_rollout_follow(last + R * D, a->candidates, a->weights, (int)R, v->L, v->K, v->D);
    }
    return BJ_OK;
}

static bj_status roll_all(audit *a, bj_rollout_arm *arm, bj_error *err) {
    const bj_maze_view *v = &a->run->view;
    const int H = a->out->horizon;
    const size_t D = (size_t)v->D, L = (size_t)v->L, frames = (size_t)H + 1;
    double *xy;
    bj_status status = BJ_OK;
    BJ_TRY(BJ_ALLOC(xy, 2 * frames, err));
    for (int64_t first = 0; first < a->out->contexts && status == BJ_OK; first += a->G) {
        const int64_t left = a->out->contexts - first, n = left < a->G ? left : a->G;
        BJ_GOTO(status, done, roll(a, arm->length, first, n, err));
        for (size_t g = 0; g < (size_t)n; g++) {
            const int64_t row = a->rows[first + (int64_t)g];
            for (size_t h = 0; h < frames; h++)
                memcpy(xy + 2 * h, a->xy + 2 * (row + (int64_t)h * a->apart), 2 * sizeof *xy);
            const bj_rollouts r = {.H = H,
                                   .L = v->L,
                                   .D = v->D,
                                   .latents = a->u + g * L * D,
                                   .stride = (size_t)n * L * D,
                                   .mass = a->mass + g * L,
                                   .truth = a->truth + g * frames * D,
                                   .xy = xy};
            const int drawn = first == 0 && g == 0;
            bj_rollout_add(arm->steps, drawn ? arm->paths : NULL, &r, a->probe,
                           a->run->source->maze);
            for (size_t l = 0; drawn && l < L; l++) arm->mass[l] = (double)a->mass[l];
        }
        status = tell(a, n, err);
    }
    bj_rollout_mean(arm->steps, H, a->out->contexts);
done:
    bj_free(xy);
    return status;
}

/* ------------------------------------------------------------------------------------------ arm */

static void release(audit *a) {
    bj_probe_free(a->probe);
    bj_free(a->pairs);
    bj_free(a->truth);
    bj_free(a->u);
    bj_free(a->fed);
    bj_free(a->candidates);
    bj_free(a->weights);
    bj_free(a->mass);
    bj_maze_run_free(a->run);
    a->probe = NULL;
    a->pairs = NULL;
    a->truth = a->u = a->fed = a->candidates = a->weights = a->mass = NULL;
    a->run = NULL;
}

static bj_status reserve(audit *a, bj_rollout_arm *arm, bj_error *err) {
    const bj_maze_view *v = &a->run->view;
    const size_t H = (size_t)a->out->horizon, D = (size_t)v->D, L = (size_t)v->L;
    const int64_t by_frames =
        16 * ROWS / ((int64_t)H + 1); /* because long horizons would need much memory */
    a->G = ROWS / v->L < by_frames ? ROWS / v->L : by_frames;
    if (a->G < 1) a->G = 1;
    const size_t G = (size_t)a->G, R = G * L, rows = R > ROWS ? R : ROWS;
    const size_t pairs = G * (H + 1) > ROWS ? G * (H + 1) : ROWS;
    arm->L = v->L;
    BJ_TRY(BJ_ALLOC(arm->steps, H, err));
    BJ_TRY(BJ_ALLOC(arm->mass, L, err));
    BJ_TRY(BJ_ALLOC(arm->paths, H * L * 2, err));
    BJ_TRY(BJ_ALLOC(a->pairs, pairs, err));
    BJ_TRY(BJ_ALLOC(a->truth, G * (H + 1) * D, err));
    BJ_TRY(BJ_ALLOC(a->u, H * R * D, err));
    BJ_TRY(BJ_ALLOC(a->fed, rows * D, err));
    BJ_TRY(BJ_ALLOC(a->candidates, R * L * D, err));
    BJ_TRY(BJ_ALLOC(a->weights, R * (size_t)v->K, err));
    return BJ_ALLOC(a->mass, R, err);
}

/* Checks that a run can be audited. All runs must have the dataset, the split and the stride of the
 * first run.
 */
static bj_status check_run(const audit *a, int index, bj_error *err) {
    const bj_settings *s = bj_run_settings(a->run->run);
    const bj_rollout_audit *o = a->out;
    const char *dir = a->run->dir;
    if (s->horizon < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: maze.horizon is 0, so its transitions end in the next cell; "
                       "expected at least 1, because rollouts need a fixed number of rows",
                       dir);
    if (!a->run->source->fitted)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: maze.held_out is 0, so the run was trained on every episode", dir);
    if (!index) return BJ_OK;
    if (strcmp(o->data_sha256, a->run->source->digest))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the run was trained on dataset %.16s..., "
                       "expected %.16s..., as in the first run",
                       dir, a->run->source->digest, o->data_sha256);
    if (s->held_out != o->held_out || s->split_seed != o->split_seed || s->horizon != a->apart)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: maze.held_out is %g, maze.split_seed is %llu, maze.horizon is %d; "
                       "expected %g, %llu and %d, as in the first run",
                       dir, s->held_out, (unsigned long long)s->split_seed, s->horizon, o->held_out,
                       (unsigned long long)o->split_seed, a->apart);
    return BJ_OK;
}

static bj_status audit_run(audit *a, const char *dir, int index, bj_error *err) {
    const bj_maze_run_options options = {.data = a->options->data,
                                         .maze = a->options->maze,
                                         .most = ROWS,
                                         .threads = a->options->threads,
                                         .isa = a->options->isa};
    bj_rollout_arm *arm = &a->out->arm[index];
    BJ_TRY(bj_maze_run_open(&a->run, dir, &options, err));
    BJ_TRY(bj_maze_run_need_source(a->run, err));
    BJ_TRY(check_run(a, index, err));
    if (!index) BJ_TRY(prepare(a, err));
    const bj_settings *s = bj_run_settings(a->run->run);
    const char *digest = bj_run_fact(a->run->run, "settings.sha256");
    memcpy(arm->arm, s->arm, sizeof arm->arm);
    arm->seed = s->seed;
    snprintf(arm->settings_sha256, sizeof arm->settings_sha256, "%.64s", digest ? digest : "");
    memcpy(arm->weights_sha256, a->run->checkpoint, sizeof arm->weights_sha256);
    BJ_TRY(reserve(a, arm, err));
    BJ_TRY(fit_probe(a, arm, err));
    BJ_TRY(judge_probe(a, arm, err));
    BJ_TRY(roll_all(a, arm, err));
    if (!index) { /* the picture needs it */
        a->out->maze = a->run->maze;
        a->run->maze = NULL;
    }
    return BJ_OK;
}

bj_status bj_rollout_audit_runs(bj_rollout_audit *out, const char *const *runs, int count,
                                const bj_rollout_options *options, bj_error *err) {
    static const bj_rollout_options plain = {0};
    audit a = {.out = out, .options = options ? options : &plain};
    bj_status status = BJ_OK;
    *out = (bj_rollout_audit){.arms = count, .horizon = a.options->horizon};
    if (!out->horizon) out->horizon = BJ_MAZE_HORIZON;
    if (count < 1 || count > BJ_ROLLOUT_ARMS || out->horizon < 1 ||
        out->horizon > BJ_ROLLOUT_MAX_HORIZON)
        return BJ_FAIL(
            err, BJ_EARG,
            "rollout audit: found %d runs and a horizon of %d, expected 1 to %d and 1 to %d",
            count, out->horizon, (int)BJ_ROLLOUT_ARMS, (int)BJ_ROLLOUT_MAX_HORIZON);
    for (int i = 0; i < count && status == BJ_OK; i++) {
        status = audit_run(&a, runs[i], i, err);
        release(&a);
    }
    bj_free(a.xy);
    bj_free(a.fit);
    bj_free(a.held);
    bj_rows_free(a.rows);
    if (status != BJ_OK) bj_rollout_audit_reset(out);
    return status;
}

void bj_rollout_audit_reset(bj_rollout_audit *a) {
    for (int i = 0; i < BJ_ROLLOUT_ARMS; i++) {
        bj_free(a->arm[i].steps);
        bj_free(a->arm[i].mass);
        bj_free(a->arm[i].paths);
    }
    bj_free(a->truth);
    bj_maze_free(a->maze);
    *a = (bj_rollout_audit){0};
}
