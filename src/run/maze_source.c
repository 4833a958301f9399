/* maze_source.c - see maze_source.h. */
#include "run/maze_source.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <branchjepa/maze_drive.h>

#include "core/file.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/rng.h"
#include "maze/maze.h"
#include "run/run.h"

/* -------------------------------------------------------------------------------- observations */

enum { BYTES_MOST = 1 << 30 }; /* max bytes of observations in memory */

static bj_status read_observations(bj_maze_source *s, const char *path, bj_error *err) {
    const bj_maze_data_info *i = &s->info;
    s->numbers = 1;
    for (int d = 0; d < i->rank; d++) s->numbers *= (size_t)i->shape[d];
    const int image = i->rank == 3;
    const double bytes =
        (double)i->steps * (double)s->numbers * (double)(image ? 1 : sizeof(bj_real));
    if (bytes > BYTES_MOST)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: observations of %lld steps take %.0f bytes, "
                       "expected at most %d",
                       path, (long long)i->steps, bytes, (int)BYTES_MOST);
    const size_t size = (size_t)i->steps * s->numbers;
    if (image) {
        BJ_TRY(BJ_ALLOC(s->images, size, err));
        return bj_maze_data_read_bytes(s->images, s->data, 0, i->steps, err);
    }
    BJ_TRY(BJ_ALLOC(s->states, size, err));
    return bj_maze_data_read(s->states, s->data, 0, i->steps, err);
}

static double observed(const bj_maze_source *s, int64_t row, size_t i) {
    const size_t at = (size_t)row * s->numbers + i;
    return s->images ? s->images[at] / 255.0 : (double)s->states[at];
}

/* Computes the mean and standard deviation of the inputs from the first observations of a limited
 * number of transitions. */
static bj_status measure_inputs(bj_maze_source *s, bj_error *err) {
    enum { MOST = 20000 };
    const int64_t n = bj_transitions_count(s->transitions), stride = n / MOST + 1;
    double *sum;
    s->inputs = s->images ? s->info.shape[2] : (int)s->numbers;
    const size_t inputs = (size_t)s->inputs;
    BJ_TRY(BJ_ALLOC(s->mean, inputs, err));
    BJ_TRY(BJ_ALLOC(s->scale, inputs, err));
    BJ_TRY(BJ_ALLOC(sum, inputs, err));
    for (int pass = 0; pass < 2; pass++) {
        double count = 0;
        memset(sum, 0, inputs * sizeof *sum);
        for (int64_t k = 0; k < n; k += stride) {
            const int64_t row = bj_transitions_at(s->transitions, k).from;
            for (size_t i = 0; i < s->numbers; i++) {
                const double x = observed(s, row, i) - (pass ? (double)s->mean[i % inputs] : 0);
                sum[i % inputs] += pass ? x * x : x;
            }
            count += (double)(s->numbers / inputs);
        }
        for (size_t i = 0; i < inputs; i++) {
            const double value = pass ? sqrt(sum[i] / count) : sum[i] / count;
            /* a constant number is only shifted, not scaled */
            if (pass) s->scale[i] = value < 1e-6 ? 1 : (bj_real)(float)value;
            else s->mean[i] = (bj_real)(float)value;
        }
    }
    bj_free(sum);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------- transitions */

static bj_status withhold(bj_maze_source *s, double fraction, bj_error *err) {
    const int n = s->info.edges;
    int32_t *order;
    BJ_TRY(BJ_ALLOC(s->held, (size_t)n + 1, err));
    BJ_TRY(BJ_ALLOC(s->withheld, (size_t)n + 1, err));
    BJ_TRY(BJ_ALLOC(order, (size_t)n + 1, err));
    bj_withhold_order(order, n, s->seed);
    const bj_edge *edges = bj_maze_data_edges(s->data);
    int chosen;
    const bj_status status = bj_withhold(s->held, &chosen, edges, n, order, fraction, err);
    bj_free(order);
    for (int k = 0; status == BJ_OK && k < n; k++)
        if (s->held[k]) s->withheld[s->withheld_count++] = edges[k];
    return status;
}

/* Selects the training episodes. All other episodes are held out. */
static bj_status hold_out(bj_maze_source *s, const char *path, const bj_settings *settings,
                          bj_error *err) {
    const int64_t n = s->info.episodes;
    if (settings->held_out <= 0) return BJ_OK;
    BJ_TRY(BJ_ALLOC(s->fitted, (size_t)n, err));
    BJ_TRY(bj_episode_split(s->fitted, n, 1 - settings->held_out, settings->split_seed, err));
    for (int64_t e = 0; e < n; e++) s->held_out += !s->fitted[e];
    if (s->held_out < 1 || s->held_out >= n)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: maze.held_out is %g, which holds out %lld of %lld episodes; "
                       "expected at least one episode to fit and one to hold out",
                       path, settings->held_out, (long long)s->held_out, (long long)n);
    return BJ_OK;
}

/* Sorts the transitions by their pairs of cells. */
static bj_status sort_by_cells(bj_maze_source *s, bj_error *err) {
    const int64_t n = bj_transitions_count(s->transitions);
    const int16_t *cells = bj_maze_data_cells(s->data);
    const size_t C = (size_t)s->maze->cells;
    int64_t *count;
    BJ_TRY(BJ_ALLOC(s->order, (size_t)n, err));
    BJ_TRY(BJ_ALLOC(s->begin, C * C + 1, err));
    BJ_TRY(BJ_ALLOC(count, C * C + 1, err));
    for (int64_t k = 0; k < n; k++) {
        const bj_transition t = bj_transitions_at(s->transitions, k);
        count[(size_t)cells[t.from] * C + (size_t)cells[t.to] + 1]++;
    }
    for (size_t i = 0; i < C * C; i++) { /* existing pairs, consecutively */
        if (count[i + 1]) s->begin[s->pairs++] = count[i];
        count[i + 1] += count[i];
    }
    s->begin[s->pairs] = n;
    for (int64_t k = 0; k < n; k++) {
        const bj_transition t = bj_transitions_at(s->transitions, k);
        s->order[count[(size_t)cells[t.from] * C + (size_t)cells[t.to]]++] = k;
    }
    bj_free(count);
    return BJ_OK;
}

static bj_status draw_queries(bj_maze_source *s, bj_error *err) {
    const bj_maze *m = s->maze;
    BJ_TRY(bj_graph_queries(&s->plan, &s->plan_count, m->graph, m->cells, BJ_MAZE_QUERIES,
                            BJ_QUERIES_PLAN, s->seed, err));
    return bj_graph_queries(&s->verified, &s->verified_count, m->graph, m->cells, BJ_MAZE_QUERIES,
                            BJ_QUERIES_VERIFIED, s->seed, err);
}

int bj_maze_beside(char *path, size_t room, const char *data) {
    const char *end = strrchr(data, '.');
    return end && snprintf(path, room, "%.*s.json", (int)(end - data), data) < (int)room &&
           bj_file_exists(path);
}

/* Finds the maze. It is the given name or file, the maze in the name of the dataset, or NAME.json
 * next to NAME.npz. */
static bj_status open_maze(bj_maze_source *s, const char *path, const char *maze, bj_error *err) {
    char beside[BJ_RUN_FILE];
    const char *name = maze ? maze : bj_maze_guess(path), *kind = bj_file_kind(path);
    if (kind && strcmp(kind, "an npz archive"))
        return BJ_FAIL(err, strcmp(kind, "a folder") ? BJ_EFORMAT : BJ_EIO,
                       "%s: is %s, expected an OGBench dataset (.npz)\n"
                       "hint: maze arms are trained on datasets; "
                       "'bjepa config arms' lists the arms for scenes",
                       path, strcmp(kind, "a safetensors file") ? kind : "a cache");
    const size_t length = strlen(path);
    if (!name && length > 4 && !strcmp(path + length - 4, ".npz") &&
        bj_maze_beside(beside, sizeof beside, path))
        name = beside;
    if (!name)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the maze is unknown, because the file name contains no maze name, "
                       "and there is no maze file (.json) with the same name\n"
                       "hint: name the maze or its file with --maze",
                       path);
    BJ_TRY(bj_maze_open(&s->maze, name, err));
    return strpbrk(name, "./") ? bj_sha256_file(s->maze_digest, name, err) : BJ_OK;
}

static bj_status build(bj_maze_source *s, const char *path, const char *maze,
                       const bj_settings *settings, bj_error *err) {
    BJ_TRY(open_maze(s, path, maze, err));
    BJ_TRY(bj_maze_data_open(&s->data, path, s->maze, err));
    BJ_TRY(bj_sha256_file(s->digest, path, err));
    s->info = bj_maze_data_about(s->data);
    s->seed = settings->seed;
    s->batch = settings->batch;
    s->middle = settings->middle && !settings->horizon;
    BJ_TRY(withhold(s, settings->withheld, err));
    BJ_TRY(hold_out(s, path, settings, err));
    const bj_transition_options options = {
        .kind = settings->horizon ? BJ_TRANSITION_STEP : BJ_TRANSITION_CROSSING,
        .horizon = settings->horizon,
        .held = s->held,
        .episodes = s->fitted};
    BJ_TRY(bj_transitions_create(&s->transitions, s->data, &options, err));
    if (bj_transitions_count(s->transitions) < 1)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: contains no transitions", path);
    BJ_TRY(read_observations(s, path, err));
    BJ_TRY(measure_inputs(s, err));
    if (settings->balance) BJ_TRY(sort_by_cells(s, err));
    BJ_TRY(draw_queries(s, err));
    BJ_TRY(BJ_ALLOC(s->table, (size_t)s->batch, err));
    return BJ_ALLOC(s->rows, (size_t)s->batch, err);
}

bj_status bj_maze_source_open(bj_maze_source **out, const char *path, const char *maze,
                              const bj_settings *settings, bj_error *err) {
    bj_maze_source *s;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(s, 1, err));
    const bj_status status = build(s, path, maze, settings, err);
    if (status == BJ_OK) *out = s;
    else bj_maze_source_free(s);
    return status;
}

void bj_maze_source_free(bj_maze_source *s) {
    if (!s) return;
    bj_free(s->rows);
    bj_free(s->table);
    bj_edges_free(s->verified);
    bj_edges_free(s->plan);
    bj_free(s->begin);
    bj_free(s->order);
    bj_free(s->scale);
    bj_free(s->mean);
    bj_free(s->images);
    bj_free(s->states);
    bj_transitions_free(s->transitions);
    bj_free(s->withheld);
    bj_free(s->held);
    bj_free(s->fitted);
    bj_maze_data_free(s->data);
    bj_maze_free(s->maze);
    bj_free(s);
}

/* --------------------------------------------------------------------------------------- model */

void bj_maze_source_fit(bj_arch *arch, const bj_maze_source *s) {
    if (!s->images) {
        arch->encoder = BJ_ENCODER_STATE;
        arch->state = (int)s->numbers;
        arch->patch_in = arch->patch_out = 0;
        return;
    }
    arch->encoder = BJ_ENCODER_IMAGE;
    arch->state = arch->waves = arch->octaves = 0;
    arch->height = s->info.shape[0];
    arch->width = s->info.shape[1];
    arch->channels = s->info.shape[2];
    if (!arch->patch_in) arch->patch_in = 32;
    if (!arch->patch_out) arch->patch_out = 128;
}

bj_status bj_maze_source_standardize(bj_model *model, const bj_maze_source *s, bj_error *err) {
    bj_tensor mean, scale;
    BJ_TRY(bj_model_find(&mean, model, "input.mean", err));
    BJ_TRY(bj_model_find(&scale, model, "input.scale", err));
    memcpy(mean.data, s->mean, mean.size * sizeof *s->mean);
    memcpy(scale.data, s->scale, scale.size * sizeof *s->scale);
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- batches */

bj_pair bj_maze_source_row(const bj_maze_source *s, int64_t row) {
    const size_t at = (size_t)row * s->numbers;
    if (s->images) return (bj_pair){.image = s->images + at, .next_image = s->images + at};
    return (bj_pair){.state = s->states + at, .next = s->states + at};
}

bj_status bj_maze_source_frames(int64_t **rows, int *count, const bj_maze_source *s, int most,
                                bj_error *err) {
    const int64_t *episodes = bj_maze_data_episodes(s->data);
    int64_t all = 0, passed = 0;
    for (int64_t e = 0; e < s->info.episodes; e++)
        if (!s->fitted || !s->fitted[e]) all += episodes[e + 1] - episodes[e];
    *count = (int)(all < most ? all : most);
    BJ_TRY(BJ_ALLOC(*rows, (size_t)*count + 1, err));
    const int64_t stride = *count ? all / *count : 1;
    int n = 0;
    for (int64_t e = 0; e < s->info.episodes; e++) {
        if (s->fitted && s->fitted[e]) continue;
        const int64_t length = episodes[e + 1] - episodes[e];
        while (n < *count && n * stride < passed + length) {
            (*rows)[n] = episodes[e] + n * stride - passed;
            n++;
        }
        passed += length;
    }
    return BJ_OK;
}

/* Returns the middle row of the visit that starts in this row. Rows outside of cells do not belong
 * to a visit. */
static int64_t middle_of_visit(const bj_maze_source *s, int64_t row) {
    const int16_t *cells = bj_maze_data_cells(s->data);
    const int64_t *episodes = bj_maze_data_episodes(s->data);
    int64_t low = 0, high = s->info.episodes, last = row;
    while (high - low > 1) { /* the episode of the row */
        const int64_t at = (low + high) / 2;
        if (episodes[at] <= row) low = at;
        else high = at;
    }
    while (last + 1 < episodes[low + 1] && cells[last + 1] == cells[row]) last++;
    return row + (last - row) / 2;
}

bj_pair bj_maze_source_pair(const bj_maze_source *s, int64_t index) {
    const bj_transition t = bj_transitions_at(s->transitions, index);
    bj_pair pair = bj_maze_source_row(s, t.from);
    const int64_t to = s->middle ? middle_of_visit(s, t.to) : t.to;
    const bj_pair next = bj_maze_source_row(s, to);
    pair.next = next.next;
    pair.next_image = next.next_image;
    return pair;
}

bj_batch bj_maze_source_batch(const int64_t **rows, bj_maze_source *s, int64_t epoch,
                              int64_t step) {
    char name[64];
    snprintf(name, sizeof name, "transitions %lld %lld", (long long)epoch, (long long)step);
    bj_rng rng = bj_rng_named(s->seed, name);
    for (int b = 0; b < s->batch; b++) {
        int64_t k;
        if (s->order) {
            const uint64_t pair = bj_rng_below(&rng, (uint64_t)s->pairs);
            const int64_t begin = s->begin[pair], n = s->begin[pair + 1] - begin;
            k = s->order[begin + (int64_t)bj_rng_below(&rng, (uint64_t)n)];
        } else {
            k = (int64_t)bj_rng_below(&rng, (uint64_t)bj_transitions_count(s->transitions));
        }
        s->table[b] = bj_maze_source_pair(s, k);
        s->rows[b] = bj_transitions_at(s->transitions, k).from;
    }
    if (rows) *rows = s->rows;
    return (bj_batch){.B = s->batch, .pairs = s->table};
}
