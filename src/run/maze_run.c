/* maze_run.c - opens a finished maze run and predicts with it.
 *
 * Invariants
 *   1. The files belong together: the settings have the digest in the manifest, the model file is
 *      the one in result.json and contains the digests of settings and data, and the state in the
 *      same folder was written with the model (bj_target_load).
 *   2. The weights are those of the last epoch in ckpt/best. A collapsed run has no score. It is
 *      rejected unless the options allow it, and its weights are in ckpt/last.
 *   3. The dataset is not opened before bj_maze_run_data, which rejects a dataset whose digest
 *      differs from the manifest's. The emissions of an archive can therefore not depend on the
 *      dataset.
 * Test: tests/run/test_maze_run.c
 */
#include "run/maze_run.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/folder.h"

enum { MOST = 256 };

/* ------------------------------------------------------------------------------------- checks */

static bj_status check_fact(const char *path, const char *key, const char *found,
                            const char *expected, bj_error *err) {
    if (found && expected && !strcmp(found, expected)) return BJ_OK;
    return BJ_FAIL(err, BJ_EMISMATCH, "%s: %s is '%.70s', expected '%.70s', as in manifest.json",
                   path, key, found ? found : "missing", expected ? expected : "missing");
}

/* Reads the outcome of the run and, if result.json contains it, the digest of its weights. */
static bj_status read_outcome(bj_maze_run *r, yyjson_val *root, const char *path, int collapsed_too,
                              bj_error *err) {
    const char *outcome = yyjson_get_str(yyjson_obj_get(root, "outcome"));
    const char *digest =
        yyjson_get_str(yyjson_obj_get(yyjson_obj_get(root, "checkpoint"), BJ_CHECKPOINT_MODEL));
    r->collapsed = outcome && !strcmp(outcome, "collapsed");
    if (r->collapsed && !collapsed_too)
        return BJ_FAIL(err, BJ_ELOCKED,
                       "%s: the latents of this run have collapsed, so the run has no score",
                       r->dir);
    if (!r->collapsed && (!outcome || strcmp(outcome, "done") || !digest))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: outcome is '%.40s'%s, "
                       "expected 'done' with a checkpoint, or 'collapsed'",
                       path, outcome ? outcome : "missing", digest ? "" : " without a checkpoint");
    if (digest) snprintf(r->checkpoint, sizeof r->checkpoint, "%.64s", digest);
    return BJ_OK;
}

static bj_status read_result(bj_maze_run *r, int collapsed_too, bj_error *err) {
    char path[BJ_RUN_FILE], *text;
    size_t size;
    yyjson_doc *doc;
    BJ_TRY(bj_run_path(path, r->dir, "result.json", err));
    if (!bj_file_exists(path))
        return BJ_FAIL(err, BJ_ELOCKED,
                       "%s: the run is not finished, "
                       "because there is no result.json",
                       r->dir);
    BJ_TRY(bj_file_read(&text, &size, path, 1 << 20, err));
    bj_status status = bj_json_parse(&doc, text, size, path, err);
    if (status == BJ_OK) {
        status = read_outcome(r, yyjson_doc_get_root(doc), path, collapsed_too, err);
        yyjson_doc_free(doc);
    }
    bj_free(text);
    return status;
}

/* Checks that the digest of the settings matches the manifest. */
static bj_status check_settings(const bj_maze_run *r, bj_error *err) {
    const bj_settings *s = bj_run_settings(r->run);
    char digest[BJ_SHA256_HEX], path[BJ_RUN_FILE];
    BJ_TRY(bj_run_path(path, r->dir, "config.resolved.json", err));
    if (s->arch.encoder == BJ_ENCODER_SCENE)
        return BJ_FAIL(err, BJ_EARG, "%s: this is a run of arm '%s', which is not a maze arm",
                       r->dir, s->arm);
    BJ_TRY(bj_settings_digest(digest, s, err));
    return check_fact(path, "SHA-256 of the settings", digest,
                      bj_run_fact(r->run, "settings.sha256"), err);
}

static bj_status check_model(bj_maze_run *r, const char *path, bj_error *err) {
    char digest[BJ_SHA256_HEX];
    bj_facts *facts;
    BJ_TRY(bj_sha256_file(digest, path, err));
    if (*r->checkpoint && strcmp(digest, r->checkpoint))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the SHA-256 is %.16s..., expected %.16s..., as in result.json", path,
                       digest, r->checkpoint);
    snprintf(r->checkpoint, sizeof r->checkpoint, "%s", digest);
    BJ_TRY(bj_facts_read(&facts, path, err));
    bj_status status =
        check_fact(path, "run.settings_sha256", bj_facts_get(facts, "run.settings_sha256"),
                   bj_run_fact(r->run, "settings.sha256"), err);
    if (status == BJ_OK)
        status = check_fact(path, "run.data_digest", bj_facts_get(facts, "run.data_digest"),
                            bj_run_fact(r->run, "data.digest"), err);
    bj_facts_free(facts);
    return status;
}

/* ------------------------------------------------------------------------------------- opening */

static bj_status keep_text(char **out, const char *text, bj_error *err) {
    *out = text ? bj_strdup(text) : NULL;
    return text && !*out ? bj_alloc_failed(strlen(text) + 1, 1, err) : BJ_OK;
}

/* Returns the path of the maze file of a run, or NULL for an official maze. */
static bj_status find_maze(bj_maze_run *r, bj_error *err) {
    const char *data = r->data ? r->data : bj_run_fact(r->run, "data.path");
    char path[BJ_RUN_FILE];
    if (!data || !bj_maze_beside(path, sizeof path, data))
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the run was trained in maze '%.60s', "
                       "whose file is not in the dataset folder\n"
                       "hint: name the file with --maze",
                       r->dir, bj_run_fact(r->run, "maze.name"));
    return keep_text(&r->named, path, err);
}

static bj_status open_maze(bj_maze_run *r, bj_error *err) {
    const char *name = bj_run_fact(r->run, "maze.name");
    const char *expected = bj_run_fact(r->run, "maze.sha256"); /* NULL for an official maze */
    char digest[BJ_SHA256_HEX];
    if (!name) return BJ_FAIL(err, BJ_EFORMAT, "%s: manifest.json does not name a maze", r->dir);
    if (expected && !r->named) BJ_TRY(find_maze(r, err));
    BJ_TRY(bj_maze_open(&r->maze, r->named ? r->named : name, err));
    if (strcmp(r->maze->name, name))
        return BJ_FAIL(err, BJ_EMISMATCH, "%s: was trained in maze '%s', expected '%s'", r->dir,
                       name, r->maze->name);
    if (!expected) return BJ_OK;
    BJ_TRY(bj_sha256_file(digest, r->named, err));
    return check_fact(r->named, "SHA-256 of the maze", digest, expected, err);
}

static bj_status open_weights(bj_maze_run *r, const bj_maze_run_options *o, bj_error *err) {
    char folder[BJ_RUN_FILE], path[BJ_FOLDER_PATH];
    bj_target *target;
    BJ_TRY(bj_run_path(folder, r->dir, r->collapsed ? "ckpt/last" : "ckpt/best", err));
    BJ_TRY(bj_folder_find(path, folder, BJ_CHECKPOINT_MODEL, err));
    BJ_TRY(check_model(r, path, err));
    BJ_TRY(bj_model_load(&r->model, path, err));
    BJ_TRY(bj_target_load(&target, folder, err));
    const bj_status status = bj_maze_view_open(&r->view, r->model, target, o->most ? o->most : MOST,
                                               o->threads, o->isa, err);
    bj_target_free(target);
    BJ_TRY(status);
    const bj_maze_view *v = &r->view;
    const size_t most = (size_t)v->options.max_batch;
    return BJ_ALLOC(r->scratch, most * ((size_t)v->K + (size_t)v->L * (size_t)v->D), err);
}

static bj_status open_run(bj_maze_run *r, const char *dir, const bj_maze_run_options *o,
                          bj_error *err) {
    if (o->most < 0) return BJ_FAIL(err, BJ_EARG, "%d observations together", o->most);
    BJ_TRY(bj_run_path(r->dir, dir, "", err));
    r->dir[strlen(dir)] = '\0';
    BJ_TRY(keep_text(&r->data, o->data, err));
    BJ_TRY(keep_text(&r->named, o->maze, err));
    BJ_TRY(bj_run_open(&r->run, dir, err));
    BJ_TRY(read_result(r, o->collapsed, err));
    BJ_TRY(check_settings(r, err));
    r->row = r->collapsed ? bj_run_epochs(r->run) - 1 : bj_run_best(r->run);
    if (r->row < 0)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metrics.jsonl has no epoch for these weights", dir);
    BJ_TRY(open_maze(r, err));
    return open_weights(r, o, err);
}

bj_status bj_maze_run_open(bj_maze_run **out, const char *dir, const bj_maze_run_options *options,
                           bj_error *err) {
    static const bj_maze_run_options plain = {0};
    bj_maze_run *r;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(r, 1, err));
    const bj_status status = open_run(r, dir, options ? options : &plain, err);
    if (status == BJ_OK) *out = r;
    else bj_maze_run_free(r);
    return status;
}

void bj_maze_run_free(bj_maze_run *r) {
    if (!r) return;
    bj_maze_source_free(r->source);
    bj_free(r->scratch);
    bj_maze_view_reset(&r->view);
    bj_model_free(r->model);
    bj_maze_free(r->maze);
    bj_run_free(r->run);
    bj_free(r->named);
    bj_free(r->data);
    bj_free(r);
}

/* ------------------------------------------------------------------------------------- answers */

const bj_run *bj_maze_run_folder(const bj_maze_run *r) { return r->run; }
const bj_maze *bj_maze_run_maze(const bj_maze_run *r) { return r->maze; }
const bj_arch *bj_maze_run_arch(const bj_maze_run *r) { return bj_model_arch(r->model); }
bj_epoch bj_maze_run_epoch(const bj_maze_run *r) { return bj_run_epoch(r->run, r->row); }
int bj_maze_run_collapsed(const bj_maze_run *r) { return r->collapsed; }
int bj_maze_run_candidates(const bj_maze_run *r) { return r->view.L; }

int bj_maze_run_routed(const bj_maze_run *r) {
    const bj_arch *arch = bj_model_arch(r->model);
    return arch->kind == BJ_MODEL_BRANCH && arch->atoms > 1;
}

int bj_maze_run_sees_points(const bj_maze_run *r) {
    const bj_arch *arch = bj_model_arch(r->model);
    return arch->encoder == BJ_ENCODER_STATE && arch->state == 2;
}

bj_status bj_maze_run_look(bj_maze_run *r, bj_real *latents, bj_real *candidates, bj_real *masses,
                           const bj_pair *pairs, int64_t n, bj_error *err) {
    bj_maze_view *v = &r->view;
    const size_t K = (size_t)v->K, L = (size_t)v->L, D = (size_t)v->D;
    const int64_t most = v->options.max_batch;
    if (latents) BJ_TRY(bj_maze_view_look(v, latents, NULL, NULL, pairs, n, err));
    for (int64_t i = 0; (candidates || masses) && i < n; i += most) {
        const int64_t count = n - i < most ? n - i : most;
        bj_real *weights = r->scratch; /* (count,K) */
        bj_real *to = candidates ? candidates + (size_t)i * L * D : weights + (size_t)most * K;
        BJ_TRY(bj_maze_view_look(v, NULL, to, weights, pairs + i, count, err));
        if (!masses) continue;
        bj_real *mass = masses + (size_t)i * L;
        for (size_t k = 0; k < (size_t)count * L; k++) /* the fused mixture has one candidate */
            mass[k] = K == L ? weights[k] : 1;
    }
    return BJ_OK;
}

bj_status bj_maze_run_centers(bj_maze_run *r, bj_real *latents, bj_real *candidates,
                              bj_real *masses, bj_error *err) {
    bj_pair *pairs; /* (C) */
    if (!bj_maze_run_sees_points(r))
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the run uses observations other than x and y, "
                       "so cell centers cannot be used as inputs",
                       r->dir);
    BJ_TRY(bj_maze_center_pairs(&pairs, r->maze, err));
    const bj_status status =
        bj_maze_run_look(r, latents, candidates, masses, pairs, r->maze->cells, err);
    bj_free(pairs);
    return status;
}

/* ----------------------------------------------------------------------------------------- data */

bj_status bj_maze_run_need_source(bj_maze_run *r, bj_error *err) {
    const char *path = r->data ? r->data : bj_run_fact(r->run, "data.path");
    const char *expected = bj_run_fact(r->run, "data.digest");
    const char *maze = r->named ? r->named : r->maze->name;
    char digest[BJ_SHA256_HEX];
    if (r->source) return BJ_OK;
    if (!path || !expected)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: manifest.json does not name the dataset", r->dir);
    bj_error detail;
    const bj_status found = bj_sha256_file(digest, path, &detail);
    if (found != BJ_OK)
        return BJ_FAIL(err, found, "%s: the dataset of the run: %.300s", r->dir, detail.message);
    if (strcmp(digest, expected))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: the SHA-256 is %.16s..., expected %.16s..., "
                       "because the run in %.200s was trained on another dataset",
                       path, digest, expected, r->dir);
    return bj_maze_source_open(&r->source, path, maze, bj_run_settings(r->run), err);
}

bj_status bj_maze_run_data(bj_maze_data **out, bj_maze_run *r, bj_error *err) {
    *out = NULL;
    BJ_TRY(bj_maze_run_need_source(r, err));
    *out = r->source->data;
    return BJ_OK;
}

bj_pair bj_maze_run_row(const bj_maze_run *r, int64_t row) {
    return bj_maze_source_row(r->source, row);
}
