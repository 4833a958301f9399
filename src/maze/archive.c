/* archive.c - target-blind archives: archive_emit.c writes emissions, this file adds successors.
 *
 * First file, safetensors
 *   context_cells (S) I32   candidates (S,K,D)   mass (S,K)   latents (C,D)   point (S,D), optional
 *   point_latents (C,D), optional: cell latents of the predictor of `point`
 *   metadata: format "branchjepa-emissions", version "1", maze (its name), the facts
 * Second file, JSON "branchjepa.successors/1"
 *   emissions_sha256, data_sha256, data, maze, threshold,
 *   contexts [{cell, successors [[v, crossings, hit]], candidates [[v, cosine, mass, hits]],
 *              point [v, cosine], coverage, mass_on_support, point_hit}], coverage, point_coverage
 *
 * Invariants
 *   1. bj_archive_emit takes no dataset, so its output cannot depend on one.
 *   2. bj_archive_reveal hashes the first file before it opens the dataset, uses the hashed bytes
 *      in memory, and writes the hash. A file without the hash `expected` is rejected before the
 *      dataset is opened.
 *   3. bj_archive_check recomputes the hash and fails with BJ_EMISMATCH if the first file has
 *      changed.
 * A candidate hits a successor if their cosine exceeds 0.5. Test: tests/maze/test_archive.c
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "maze/archive.h"
#include "maze/maze_json.h"

enum { MAX_BYTES = 1 << 30 };
#define SCHEMA "branchjepa.successors/1"

/* ------------------------------------------------------------------------------------ revealing */

/* The contents of the first file, with its tensors as unit vectors in double. */
typedef struct loaded {
    char *bytes;
    size_t size;
    char sha256[65], maze[128];
    int S, K, D, C, has_point;
    int32_t *cells;
    bj_real *raw;
    double *candidates, *latents, *point; /* (S,K,D), (C,D), (S,D) */
    double *point_latents;                /* (C,D), or NULL: latents */
    double *mass;                         /* (S,K) */
} loaded;

static void loaded_reset(loaded *l) {
    bj_free(l->bytes);
    bj_free(l->cells);
    bj_free(l->raw);
    bj_free(l->candidates);
    bj_free(l->latents);
    bj_free(l->point);
    bj_free(l->point_latents);
    bj_free(l->mass);
}

static bj_status load_units(double **out, loaded *l, const bj_safetensors *st, const char *name,
                            int rank, const int64_t *shape, bj_error *err) {
    size_t rows = 1;
    for (int k = 0; k + 1 < rank; k++) rows *= (size_t)shape[k];
    const size_t D = (size_t)l->D;
    bj_free(l->raw);
    l->raw = NULL;
    BJ_TRY(BJ_ALLOC(l->raw, rows * D, err));
    BJ_TRY(BJ_ALLOC(*out, rows * D, err));
    BJ_TRY(bj_safetensors_read_real(l->raw, st, name, rank, shape, err));
    for (size_t r = 0; r < rows; r++)
        BJ_TRY(bj_maze_unit(*out + r * D, l->raw + r * D, l->D, name, (int)r, err));
    return BJ_OK;
}

static bj_status load_parts(loaded *l, const bj_safetensors *st, bj_error *err) {
    const char *path = bj_safetensors_path(st), *format = bj_safetensors_metadata(st, "format");
    const char *version = bj_safetensors_metadata(st, "version");
    const char *maze = bj_safetensors_metadata(st, "maze");
    const bj_tensor_view *c = bj_safetensors_find(st, "candidates"), *view;
    const bj_tensor_view *latents = bj_safetensors_find(st, "latents");
    if (!format || strcmp(format, BJ_ARCHIVE_FORMAT))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: format is '%.60s', expected '%s'", path,
                       format ? format : "not stated", BJ_ARCHIVE_FORMAT);
    if (!version || strcmp(version, "1"))
        return BJ_FAIL(err, BJ_EVERSION, "%s: version is '%.60s', expected '1'", path,
                       version ? version : "not stated");
    if (!maze || strlen(maze) >= sizeof l->maze)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the metadata does not name a maze", path);
    strcpy(l->maze, maze);
    if (!c || c->rank != 3 || !latents || latents->rank != 2 || c->shape[0] < 1 ||
        c->shape[0] > BJ_ARCHIVE_MAX_CONTEXTS || c->shape[1] < 1 ||
        c->shape[1] > BJ_ARCHIVE_MAX_K || c->shape[2] < 1 || c->shape[2] > BJ_ARCHIVE_MAX_D ||
        latents->shape[0] < 1 || latents->shape[0] > BJ_MAZE_MAX_CELLS)
        return BJ_FAIL(
            err, BJ_EFORMAT,
            "%s: tensor 'candidates' (S,K,D) or 'latents' (C,D) is missing or has the wrong shape",
            path);
    l->S = (int)c->shape[0];
    l->K = (int)c->shape[1];
    l->D = (int)c->shape[2];
    l->C = (int)latents->shape[0];
    const int64_t S = l->S, K = l->K, D = l->D, C = l->C;
    const int64_t sk[] = {S, K}, skd[] = {S, K, D}, cd[] = {C, D}, sd[] = {S, D};
    BJ_TRY(bj_safetensors_require(&view, st, "context_cells", 1, &S, err));
    if (view->dtype != BJ_DTYPE_I32)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor 'context_cells' is %s, expected I32", path,
                       bj_dtype_name(view->dtype));
    BJ_TRY(BJ_ALLOC(l->cells, (size_t)S, err));
    memcpy(l->cells, view->data, (size_t)S * sizeof *l->cells);
    for (int s = 0; s < S; s++)
        if (l->cells[s] < 0 || l->cells[s] >= C)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: context %d is in cell %d, but there are only %d cells",
                           path, s, (int)l->cells[s], l->C);
    BJ_TRY(BJ_ALLOC(l->raw, (size_t)(S * K), err));
    BJ_TRY(BJ_ALLOC(l->mass, (size_t)(S * K), err));
    BJ_TRY(bj_safetensors_read_real(l->raw, st, "mass", 2, sk, err));
    for (int64_t i = 0; i < S * K; i++) l->mass[i] = (double)l->raw[i];
    BJ_TRY(load_units(&l->candidates, l, st, "candidates", 3, skd, err));
    BJ_TRY(load_units(&l->latents, l, st, "latents", 2, cd, err));
    l->has_point = bj_safetensors_find(st, "point") != NULL;
    if (!l->has_point) return BJ_OK;
    BJ_TRY(load_units(&l->point, l, st, "point", 2, sd, err));
    if (!bj_safetensors_find(st, "point_latents")) return BJ_OK;
    return load_units(&l->point_latents, l, st, "point_latents", 2, cd, err);
}

static bj_status load(loaded *l, const char *path, bj_error *err) {
    bj_safetensors *st = NULL;
    BJ_TRY(bj_file_read(&l->bytes, &l->size, path, MAX_BYTES, err));
    bj_sha256_memory(l->sha256, l->bytes, l->size);
    BJ_TRY(bj_safetensors_open_memory(&st, l->bytes, l->size, path, err));
    const bj_status status = load_parts(l, st, err);
    bj_safetensors_close(st);
    return status;
}

static double cosine_with(const double *latents, int D, const double *x, int cell) {
    return bj_maze_dot(x, latents + (size_t)cell * (size_t)D, D);
}

static int hits(const loaded *l, const double *x, int cell) {
    return cosine_with(l->latents, l->D, x, cell) > BJ_MAZE_THRESHOLD;
}

/* Returns the cell whose latent is nearest to x. */
static int nearest(double *cosine, const loaded *l, const double *latents, const double *x) {
    int best = 0;
    *cosine = -2;
    for (int c = 0; c < l->C; c++) {
        const double dot = cosine_with(latents, l->D, x, c);
        if (dot > *cosine) *cosine = dot, best = c;
    }
    return best;
}

/* Adds the counts of one context to `to`, and appends an entry for the context to the JSON list. */
static void judge(bj_archive_context *to, bj_doc *doc, yyjson_mut_val *list, const loaded *l, int s,
                  const bj_edge *edges, const int64_t *counts, int edge_count) {
    const size_t D = (size_t)l->D;
    const double *candidates = l->candidates + (size_t)s * (size_t)l->K * D;
    const double *point = l->has_point ? l->point + (size_t)s * D : NULL;
    const double *point_latents = l->point_latents ? l->point_latents : l->latents;
    double cosine;
    yyjson_mut_val *item = bj_doc_item(doc, list);
    *to = (bj_archive_context){.cell = l->cells[s]};
    bj_doc_add_integer(doc, item, "cell", to->cell);
    yyjson_mut_val *successors = bj_doc_list(doc, item, "successors");
    for (int e = 0; e < edge_count; e++) {
        if (edges[e].from != to->cell) continue;
        int hit = 0;
        for (int k = 0; k < l->K; k++) hit |= hits(l, candidates + (size_t)k * D, edges[e].to);
        to->successors++;
        to->hit += hit;
        if (point)
            to->point_hit +=
                cosine_with(point_latents, l->D, point, edges[e].to) > BJ_MAZE_THRESHOLD;
        yyjson_mut_val *row = doc->ok ? yyjson_mut_arr_add_arr(doc->json, successors) : NULL;
        doc->ok = doc->ok && row;
        bj_doc_item_integer(doc, row, edges[e].to);
        bj_doc_item_integer(doc, row, counts[e]);
        bj_doc_item_integer(doc, row, hit);
    }
    yyjson_mut_val *heads = bj_doc_list(doc, item, "candidates");
    for (int k = 0; k < l->K; k++) {
        const double *x = candidates + (size_t)k * D, mass = l->mass[s * l->K + k];
        const int best = nearest(&cosine, l, l->latents, x);
        int on = 0;
        for (int e = 0; e < edge_count; e++)
            on |= edges[e].from == to->cell && hits(l, x, edges[e].to);
        if (on) to->mass_on_support += mass;
        yyjson_mut_val *row = doc->ok ? yyjson_mut_arr_add_arr(doc->json, heads) : NULL;
        doc->ok = doc->ok && row;
        bj_doc_item_integer(doc, row, best);
        bj_doc_item_number(doc, row, cosine);
        bj_doc_item_number(doc, row, mass);
        bj_doc_item_integer(doc, row, on);
    }
    if (point) {
        yyjson_mut_val *at = bj_doc_list(doc, item, "point");
        bj_doc_item_integer(doc, at, nearest(&cosine, l, point_latents, point));
        bj_doc_item_number(doc, at, cosine);
    }
    to->coverage = to->successors ? (double)to->hit / to->successors : (double)NAN;
    bj_doc_add_number(doc, item, "coverage", to->coverage);
    bj_doc_add_number(doc, item, "mass_on_support", to->mass_on_support);
    if (l->has_point) bj_doc_add_integer(doc, item, "point_hit", to->point_hit);
}

static bj_status write_successors(bj_archive_report *out, const char *path, const loaded *l,
                                  const bj_maze_data *data, const char *dataset, bj_error *err) {
    const int edge_count = bj_maze_data_about(data).edges;
    double sum = 0, point = 0;
    int counted = 0;
    bj_doc doc;
    BJ_TRY(BJ_ALLOC(out->context, (size_t)l->S, err));
    BJ_TRY(bj_doc_begin(&doc, SCHEMA, err));
    bj_doc_add_text(&doc, doc.root, "emissions_sha256", out->emissions_sha256);
    bj_doc_add_text(&doc, doc.root, "data", dataset);
    bj_doc_add_text(&doc, doc.root, "data_sha256", out->data_sha256);
    bj_doc_add_text(&doc, doc.root, "maze", l->maze);
    bj_doc_add_number(&doc, doc.root, "threshold", BJ_MAZE_THRESHOLD);
    yyjson_mut_val *list = bj_doc_list(&doc, doc.root, "contexts");
    for (int s = 0; s < l->S; s++) {
        bj_archive_context *c = &out->context[s];
        judge(c, &doc, list, l, s, bj_maze_data_edges(data), bj_maze_data_counts(data), edge_count);
        if (!c->successors) continue;
        counted++;
        sum += c->coverage;
        point += (double)c->point_hit / c->successors;
    }
    out->contexts = l->S;
    out->K = l->K;
    out->has_point = l->has_point;
    out->coverage = counted ? sum / counted : (double)NAN;
    out->point_coverage = counted && l->has_point ? point / counted : (double)NAN;
    bj_doc_add_number(&doc, doc.root, "coverage", out->coverage);
    bj_doc_add_number(&doc, doc.root, "point_coverage", out->point_coverage);
    return bj_maze_json_commit(&doc, path, out->sha256, err);
}

bj_status bj_archive_reveal(bj_archive_report *out, const char *path, const char *emissions,
                            const char *expected, const bj_maze *maze, const char *dataset,
                            bj_error *err) {
    loaded l = {0};
    bj_maze_data *data = NULL;
    bj_status status;
    *out = (bj_archive_report){0};
    BJ_GOTO(status, done, load(&l, emissions, err));
    memcpy(out->emissions_sha256, l.sha256, sizeof l.sha256);
    if (expected && strcmp(expected, l.sha256))
        BJ_GOTO(status, done,
                BJ_FAIL(err, BJ_EMISMATCH, "%s: SHA-256 is %s, expected %.64s",
                        emissions, l.sha256, expected));
    if (strcmp(l.maze, maze->name) || l.C != maze->cells)
        BJ_GOTO(
            status, done,
            BJ_FAIL(err, BJ_EMISMATCH,
                    "%s: the emissions belong to maze '%s' with %d cells, expected '%.60s' with %d",
                    emissions, l.maze, l.C, maze->name, maze->cells));
    /* Open the dataset only after its hash has been checked. */
    BJ_GOTO(status, done, bj_maze_data_open(&data, dataset, maze, err));
    BJ_GOTO(status, done, bj_sha256_file(out->data_sha256, dataset, err));
    status = write_successors(out, path, &l, data, dataset, err);
done:
    bj_maze_data_free(data);
    loaded_reset(&l);
    if (status != BJ_OK) bj_archive_report_reset(out);
    return status;
}

/* ------------------------------------------------------------------------------------- checking */

bj_status bj_archive_check(const char *path, const char *emissions, bj_error *err) {
    yyjson_doc *doc;
    const char *named;
    char found[65];
    BJ_TRY(bj_maze_json_open(&doc, path, SCHEMA, err));
    bj_status status =
        bj_maze_json_text(&named, yyjson_doc_get_root(doc), "emissions_sha256", path, err);
    if (status == BJ_OK) status = bj_sha256_file(found, emissions, err);
    if (status == BJ_OK && strcmp(found, named))
        status = BJ_FAIL(err, BJ_EMISMATCH, "%s: the SHA-256 is %s, expected %.64s according to %s",
                         emissions, found, named, path);
    yyjson_doc_free(doc);
    return status;
}

void bj_archive_report_reset(bj_archive_report *report) {
    bj_free(report->context);
    *report = (bj_archive_report){0};
}
