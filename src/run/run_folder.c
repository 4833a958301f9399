/* run_folder.c - the folder of a run and the files that describe its state (docs/RUNS.md).
 *
 *   .lock            locked by the process that trains
 *   status.json      current progress, updated about once per second
 *   result.json      the outcome; exists only for finished runs
 *   failures.jsonl   reasons for unexpected stops
 * Test  tests/run/test_train.c, tests/run/test_train_fails.c, tests/cli/train.sh
 */
#define _DEFAULT_SOURCE /* flock */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/folder.h"
#include "run/epoch_fields.h"
#include "run/run.h"

/* --------------------------------------------------------------------------------------- folder */

bj_status bj_run_path(char path[BJ_RUN_FILE], const char *dir, const char *name, bj_error *err) {
    const int length = snprintf(path, BJ_RUN_FILE, "%s/%s", dir, name);
    if (length < 0 || length >= BJ_RUN_FILE)
        return BJ_FAIL(err, BJ_EARG, "%.64s...: the path is too long", dir);
    return BJ_OK;
}

bj_status bj_run_write_doc(bj_doc *doc, const char *dir, const char *name, bj_error *err) {
    char path[BJ_RUN_FILE], *text;
    size_t size;
    BJ_TRY(bj_doc_text(&text, &size, doc, 1, err));
    bj_status status = bj_run_path(path, dir, name, err);
    if (status == BJ_OK) status = bj_file_write(path, text, size, err);
    bj_free(text);
    return status;
}

bj_status bj_run_enter(int *lock, const char *dir, bj_error *err) {
    char path[BJ_RUN_FILE];
    BJ_TRY(bj_run_path(path, dir, "ckpt", err));
    BJ_TRY(bj_folders_make(path, err));
    BJ_TRY(bj_run_path(path, dir, ".lock", err));
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0) return BJ_FAIL(err, BJ_EIO, "%s: cannot write there: %s", path, strerror(errno));
    if (flock(*lock, LOCK_EX | LOCK_NB)) {
        const int reason = errno;
        close(*lock);
        *lock = -1;
        return reason == EWOULDBLOCK
                   ? BJ_FAIL(err, BJ_ELOCKED, "%s: another process is training in this folder", dir)
                   : BJ_FAIL(err, BJ_EIO, "%s: cannot be locked: %s", path, strerror(reason));
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- result */

static const char *const outcomes[] = {
    [BJ_RUN_DONE] = "done", [BJ_RUN_STOPPED] = "stopped", [BJ_RUN_NO_PASS] = "no_pass",
    [BJ_RUN_COLLAPSED] = "collapsed"};

static bj_status add_checkpoint(bj_doc *j, const bj_train_run *r, bj_error *err) {
    static const char *const files[] = {BJ_CHECKPOINT_MODEL, BJ_CHECKPOINT_STATE};
    yyjson_mut_val *checkpoint = bj_doc_child(j, j->root, "checkpoint");
    for (int i = 0; i < 2; i++) {
        char name[64], path[BJ_RUN_FILE], hex[BJ_SHA256_HEX];
        snprintf(name, sizeof name, "ckpt/best/%s", files[i]);
        BJ_TRY(bj_run_path(path, r->options->dir, name, err));
        BJ_TRY(bj_sha256_file(hex, path, err));
        bj_doc_add_text(j, checkpoint, files[i], hex);
    }
    return BJ_OK;
}

/* Adds statistics of the latents and, unless the latents have collapsed, the graph metrics. */
static void add_maze(bj_doc *j, const bj_train_run *r, bj_run_outcome outcome) {
    const bj_epoch *row = &r->rows[r->evaluated];
    const int collapsed = outcome == BJ_RUN_COLLAPSED;
    yyjson_mut_val *latents = bj_doc_child(j, j->root, "latents");
    bj_doc_add_text(j, latents, "verdict", collapsed ? "collapsed" : "separated");
    yyjson_mut_val *maze = collapsed ? NULL : bj_doc_child(j, j->root, "maze");
    for (int i = 0; i < bj_epoch_field_count; i++) {
        const bj_epoch_field *field = &bj_epoch_fields[i];
        yyjson_mut_val *to = field->spread ? latents : bj_epoch_field_in(field, "maze") ? maze : NULL;
        if (to) bj_doc_add_number(j, to, bj_epoch_field_name(field), bj_epoch_real(row, field));
    }
}

bj_status bj_run_write_result(const bj_train_run *r, bj_run_outcome outcome, bj_error *err) {
    char settings[BJ_SHA256_HEX], anchor[BJ_SHA256_HEX] = "";
    bj_doc j;
    BJ_TRY(bj_settings_digest(settings, &r->settings, err));
    if (*r->anchor_digest) BJ_TRY(bj_trainer_anchor_digest(r->trainer, anchor, err));
    BJ_TRY(bj_doc_begin(&j, "branchjepa.result/1", err));
    bj_doc_add_text(&j, j.root, "outcome", outcomes[outcome]);
    bj_doc_add_text(&j, j.root, "arm", r->settings.arm);
    bj_doc_add_unsigned(&j, j.root, "seed", r->settings.seed);
    bj_doc_add_text(&j, bj_doc_child(&j, j.root, "settings"), "sha256", settings);
    bj_doc_add_text(&j, bj_doc_child(&j, j.root, "data"), "digest", bj_run_data_digest(r));
    bj_doc_add_integer(&j, j.root, "epochs", r->evaluated);
    bj_doc_add_integer(&j, j.root, "step", bj_trainer_updates(r->trainer));
    bj_doc_add_text(&j, j.root, "rule",
                    r->maze ? "last epoch; a run with collapsed latents has no score"
                    : r->settings.objective.kind == BJ_ANCHOR_A
                        ? "lowest decoder ADE among the epochs that pass every gate"
                        : "lowest trajectory Energy Score on the development scenes");
    bj_status status = BJ_OK;
    if (r->maze) add_maze(&j, r, outcome);
    if (r->best >= 0 && outcome != BJ_RUN_COLLAPSED) {
        bj_doc_add_integer(&j, j.root, "best_epoch", r->rows[r->best].epoch);
        if (!r->maze)
            bj_doc_add_number(&j, j.root, "best",
                              bj_run_criterion(&r->settings, &r->rows[r->best]));
        status = add_checkpoint(&j, r, err);
    }
    if (*anchor) {
        yyjson_mut_val *drift = bj_doc_child(&j, j.root, "anchor");
        bj_doc_add_text(&j, drift, "sha256_before", r->anchor_digest);
        bj_doc_add_text(&j, drift, "sha256_after", anchor);
    }
    bj_doc_add_number(&j, j.root, "wall_s", r->rows[r->evaluated].wall_s);
    if (status != BJ_OK) {
        bj_doc_free(&j);
        return status;
    }
    return bj_run_write_doc(&j, r->options->dir, "result.json", err);
}

/* --------------------------------------------------------------------------------------- status */

void bj_run_write_status(const bj_train_run *r, const bj_run_progress *p) {
    char path[BJ_RUN_FILE], temporary[BJ_RUN_FILE], *out;
    bj_doc j;
    size_t size;
    if (bj_run_path(path, r->options->dir, "status.json", NULL) != BJ_OK ||
        bj_run_path(temporary, r->options->dir, ".status.json.tmp", NULL) != BJ_OK ||
        bj_doc_begin(&j, "branchjepa.status/1", NULL) != BJ_OK)
        return;
    bj_doc_add_text(&j, j.root, "phase", p->phase);
    bj_doc_add_integer(&j, j.root, "pid", (int64_t)getpid());
    bj_doc_add_integer(&j, j.root, "epoch", p->epoch);
    bj_doc_add_integer(&j, j.root, "epochs", p->epochs);
    bj_doc_add_integer(&j, j.root, "step", p->step);
    bj_doc_add_integer(&j, j.root, "steps", p->steps);
    bj_doc_add_number(&j, j.root, "scenes_per_s", p->scenes_per_s);
    bj_doc_add_number(&j, j.root, "eta_s", p->eta_s);
    bj_doc_add_number(&j, j.root, "loss", p->loss.total);
    bj_doc_add_number(&j, j.root, "dev", p->last ? bj_run_shown(&r->settings, p->last) : NAN);
    bj_doc_add_number(&j, j.root, "best", p->best ? bj_run_shown(&r->settings, p->best) : NAN);
    bj_doc_add_integer(&j, j.root, "best_epoch", p->best ? p->best->epoch : -1);
    bj_doc_add_number(&j, j.root, "wall_s", r->wall + bj_seconds() - r->started);
    if (bj_doc_text(&out, &size, &j, 0, NULL) != BJ_OK) return;
    FILE *file = fopen(temporary, "w");
    if (file) {
        const int written = fwrite(out, 1, size, file) == size;
        if (fclose(file) == 0 && written) rename(temporary, path);
    }
    bj_free(out);
}

double bj_run_status_wall(const char *dir) {
    char path[BJ_RUN_FILE], *text;
    size_t size;
    yyjson_doc *doc;
    double wall = NAN;
    if (bj_run_path(path, dir, "status.json", NULL) != BJ_OK ||
        bj_file_read(&text, &size, path, 1 << 20, NULL) != BJ_OK)
        return NAN;
    if (bj_json_parse(&doc, text, size, path, NULL) == BJ_OK) {
        yyjson_val *value = yyjson_obj_get(yyjson_doc_get_root(doc), "wall_s");
        if (yyjson_is_num(value)) wall = yyjson_get_num(value);
        yyjson_doc_free(doc);
    }
    bj_free(text);
    return wall;
}

/* ------------------------------------------------------------------------------------- failures */

bj_status bj_run_note_failure(const bj_train_run *r, const char *message, bj_error *err) {
    bj_doc j;
    char path[BJ_RUN_FILE], *old = NULL, *line = NULL, *all = NULL;
    size_t size, old_size = 0;
    bj_status status;
    BJ_TRY(bj_run_path(path, r->options->dir, "failures.jsonl", err));
    BJ_TRY(bj_doc_begin(&j, "branchjepa.failure/1", err));
    bj_doc_add_text(&j, j.root, "type", "failure");
    bj_doc_add_integer(&j, j.root, "step", bj_trainer_updates(r->trainer));
    bj_doc_add_integer(&j, j.root, "epoch", r->evaluated + 1);
    bj_doc_add_number(&j, j.root, "wall_s", r->wall + bj_seconds() - r->started);
    bj_doc_add_text(&j, j.root, "message", message);
    BJ_TRY(bj_doc_text(&line, &size, &j, 0, err));
    if (bj_file_exists(path))
        BJ_GOTO(status, done, bj_file_read(&old, &old_size, path, 16 << 20, err));
    BJ_GOTO(status, done, BJ_ALLOC(all, old_size + size, err));
    if (old_size) memcpy(all, old, old_size);
    memcpy(all + old_size, line, size);
    status = bj_file_write(path, all, old_size + size, err);
done:
    bj_free(all);
    bj_free(old);
    bj_free(line);
    return status;
}
