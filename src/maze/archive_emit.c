/* archive_emit.c - writes the first file of a target-blind archive, which archive.c describes.
 *
 * Test: tests/maze/test_archive.c
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "maze/archive.h"

enum { META = 64 };

static bj_status check_emissions(const bj_emissions *e, const char *path, bj_error *err) {
    if (e->contexts < 1 || e->contexts > BJ_ARCHIVE_MAX_CONTEXTS || e->K < 1 ||
        e->K > BJ_ARCHIVE_MAX_K || e->D < 1 || e->D > BJ_ARCHIVE_MAX_D || e->fact_count < 0 ||
        e->fact_count > META - 3)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: a size is out of range: "
                       "%d contexts, K = %d, D = %d, %d metadata entries",
                       path, e->contexts, e->K, e->D, e->fact_count);
    for (int s = 0; s < e->contexts; s++) {
        double sum = 0;
        if (e->context_cells[s] < 0 || e->context_cells[s] >= e->maze->cells)
            return BJ_FAIL(err, BJ_EARG,
                           "%s: context %d is in cell %d, but there are only %d cells", path,
                           s, (int)e->context_cells[s], e->maze->cells);
        for (int k = 0; k < e->K; k++) {
            const double mass = (double)e->mass[s * e->K + k];
            if (!(mass >= 0))
                return BJ_FAIL(err, BJ_EARG, "%s: mass %d of context %d is %g, expected at least 0",
                               path, k, s, mass);
            sum += mass;
        }
        if (!(fabs(sum - 1) < 1e-3))
            return BJ_FAIL(err, BJ_EARG, "%s: the masses of context %d sum to %g, expected 1", path,
                           s, sum);
    }
    return BJ_OK;
}

static bj_status check_finite(const bj_real *x, size_t count, const char *what, const char *path,
                              bj_error *err) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(x[i]))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "%s: entry %zu of %s is %g, expected a finite number", path, i, what,
                           (double)x[i]);
    return BJ_OK;
}

bj_status bj_archive_emit(char sha256[65], const char *path, const bj_emissions *e, bj_error *err) {
    BJ_TRY(check_emissions(e, path, err));
    const int64_t S = e->contexts, K = e->K, D = e->D, C = e->maze->cells;
    const bj_tensor_view tensors[] = {
        {.name = "context_cells",
         .dtype = BJ_DTYPE_I32,
         .rank = 1,
         .shape = {S},
         .data = e->context_cells},
        {.name = "candidates",
         .dtype = BJ_DTYPE_REAL,
         .rank = 3,
         .shape = {S, K, D},
         .data = e->candidates},
        {.name = "mass", .dtype = BJ_DTYPE_REAL, .rank = 2, .shape = {S, K}, .data = e->mass},
        {.name = "latents", .dtype = BJ_DTYPE_REAL, .rank = 2, .shape = {C, D}, .data = e->latents},
        {.name = "point", .dtype = BJ_DTYPE_REAL, .rank = 2, .shape = {S, D}, .data = e->point},
        {.name = "point_latents",
         .dtype = BJ_DTYPE_REAL,
         .rank = 2,
         .shape = {C, D},
         .data = e->point_latents}};
    bj_fact facts[META] = {
        {"format", BJ_ARCHIVE_FORMAT}, {"version", "1"}, {"maze", e->maze->name}};
    BJ_TRY(check_finite(e->candidates, (size_t)(S * K * D), "the candidates", path, err));
    BJ_TRY(check_finite(e->latents, (size_t)(C * D), "the cell latents", path, err));
    if (e->point) BJ_TRY(check_finite(e->point, (size_t)(S * D), "the points", path, err));
    if (e->point_latents && !e->point)
        return BJ_FAIL(err, BJ_EARG, "%s: `point_latents` is present, but `point` is missing",
                       path);
    if (e->point_latents)
        BJ_TRY(check_finite(e->point_latents, (size_t)(C * D), "the cell latents of the points",
                            path, err));
    for (int k = 0; k < e->fact_count; k++) facts[3 + k] = e->facts[k];
    BJ_TRY(bj_safetensors_write(path, tensors, e->point ? e->point_latents ? 6 : 5 : 4, facts, 3 + e->fact_count, err));
    return bj_sha256_file(sha256, path, err);
}

/* ------------------------------------------------------------------------- latents from a file */

/* Reads a floating-point tensor as bj_real. *out is NULL if an optional tensor is missing. */
static bj_status take(bj_real **out, const bj_safetensors *st, const char *name, int rank,
                      const int64_t *shape, int optional, bj_error *err) {
    size_t count = 1;
    *out = NULL;
    if (optional && !bj_safetensors_find(st, name)) return BJ_OK;
    for (int k = 0; k < rank; k++) count *= (size_t)shape[k];
    BJ_TRY(BJ_ALLOC(*out, count, err));
    return bj_safetensors_read_real(*out, st, name, rank, shape, err);
}

static bj_status take_cells(int32_t **out, const bj_safetensors *st, int64_t S, bj_error *err) {
    const bj_tensor_view *view;
    BJ_TRY(bj_safetensors_require(&view, st, "context_cells", 1, &S, err));
    if (view->dtype != BJ_DTYPE_I32 && view->dtype != BJ_DTYPE_I64)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor 'context_cells' is %s, expected I32 or I64",
                       bj_safetensors_path(st), bj_dtype_name(view->dtype));
    BJ_TRY(BJ_ALLOC(*out, (size_t)S, err));
    for (int64_t s = 0; s < S; s++) {
        int64_t wide;
        if (view->dtype == BJ_DTYPE_I32) {
            memcpy(*out + s, (const char *)view->data + 4 * s, 4);
            continue;
        }
        memcpy(&wide, (const char *)view->data + 8 * s, 8);
        (*out)[s] = wide < 0 || wide > INT32_MAX ? -1 : (int32_t)wide; /* -1 is rejected later */
    }
    return BJ_OK;
}

bj_status bj_archive_emit_file(char sha256[65], const char *path, const char *latents,
                               const bj_maze *maze, bj_error *err) {
    bj_safetensors *st = NULL;
    bj_real *candidates = NULL, *mass = NULL, *cells = NULL, *point = NULL, *other = NULL;
    int32_t *contexts = NULL;
    char digest[BJ_SHA256_HEX];
    bj_status status;
    BJ_TRY(bj_sha256_file(digest, latents, err));
    BJ_TRY(bj_safetensors_open(&st, latents, err));
    const bj_tensor_view *c = bj_safetensors_find(st, "candidates");
    if (!c || c->rank != 3 || c->shape[0] > BJ_ARCHIVE_MAX_CONTEXTS ||
        c->shape[1] > BJ_ARCHIVE_MAX_K || c->shape[2] > BJ_ARCHIVE_MAX_D)
        BJ_GOTO(status, done,
                BJ_FAIL(err, BJ_EFORMAT, "%s: no tensor 'candidates' (contexts, K, D)", latents));
    const int64_t S = c->shape[0], K = c->shape[1], D = c->shape[2], C = maze->cells;
    const int64_t skd[] = {S, K, D}, sk[] = {S, K}, cd[] = {C, D}, sd[] = {S, D};
    BJ_GOTO(status, done, take_cells(&contexts, st, S, err));
    BJ_GOTO(status, done, take(&candidates, st, "candidates", 3, skd, 0, err));
    BJ_GOTO(status, done, take(&mass, st, "mass", 2, sk, 0, err));
    BJ_GOTO(status, done, take(&cells, st, "latents", 2, cd, 0, err));
    BJ_GOTO(status, done, take(&point, st, "point", 2, sd, 1, err));
    BJ_GOTO(status, done, take(&other, st, "point_latents", 2, cd, 1, err));
    const bj_fact fact = {"latents_sha256", digest};
    const bj_emissions emissions = {.maze = maze,
                                    .contexts = (int)S,
                                    .K = (int)K,
                                    .D = (int)D,
                                    .context_cells = contexts,
                                    .candidates = candidates,
                                    .mass = mass,
                                    .point = point,
                                    .latents = cells,
                                    .point_latents = other,
                                    .facts = &fact,
                                    .fact_count = 1};
    status = bj_archive_emit(sha256, path, &emissions, err);
    if (status == BJ_EARG) status = BJ_EFORMAT; /* the file is invalid, not the argument */
    if (status == BJ_EFORMAT && err) err->code = status;
done:
    bj_safetensors_close(st);
    bj_free(contexts);
    bj_free(candidates);
    bj_free(mass);
    bj_free(cells);
    bj_free(point);
    bj_free(other);
    return status;
}
