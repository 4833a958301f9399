/* state.c - writes checkpoints of a run and resumes from them.
 *
 * The checkpoint also stores what the training loop needs, as metadata: the number of evaluated
 * epochs, and the sums of the current epoch as hexadecimal floats, which are exact. The checkpoint
 * does not contain times or machine names, so repeating a run produces the same bytes.
 * Test  tests/run/test_train.c, tests/cli/train.sh
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hex_double.h"
#include "core/folder.h"
#include "objective/regularizers.h"
#include "run/history.h"
#include "run/run.h"

enum {
    SUMS = sizeof(bj_epoch_sums) / sizeof(double),
    REGULARIZERS = (sizeof(bj_loss) - offsetof(bj_loss, sigreg)) / sizeof(double),
    NUMBER = 32
};
_Static_assert(sizeof(bj_epoch_sums) % sizeof(double) == 0, "sums are doubles and nothing else");
_Static_assert(offsetof(bj_epoch_sums, loss) + sizeof(bj_loss) == sizeof(bj_epoch_sums),
               "the sums of the regularizers come last");

/* Sums of the current epoch that a checkpoint stores. Earlier versions had no regularizers, and a
 * run without regularizers does not store their sums. */
static int sums_of(const bj_train_run *r) {
    return bj_regularizers_active(&r->settings.objective) ? SUMS : SUMS - REGULARIZERS;
}

bj_status bj_run_save(const bj_train_run *r, const char *name, bj_error *err) {
    char path[BJ_RUN_FILE], folder[64], digest[BJ_SHA256_HEX];
    char seed[NUMBER], evaluated[NUMBER], sums[SUMS * NUMBER] = "";
    double values[SUMS];
    memcpy(values, &r->sums, sizeof values);
    size_t at = 0;
    for (int i = 0; i < sums_of(r); i++) {
        char number[BJ_HEX_DOUBLE];
        bj_hex_double_write(number, values[i]);
        at += (size_t)snprintf(sums + at, sizeof sums - at, "%s%s", i ? " " : "", number);
    }
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)r->settings.seed);
    snprintf(evaluated, sizeof evaluated, "%d", r->evaluated);
    snprintf(folder, sizeof folder, "ckpt/%s", name);
    BJ_TRY(bj_settings_digest(digest, &r->settings, err));
    const bj_fact facts[] = {{"run.arm", r->settings.arm},
                             {"run.recipe", r->settings.recipe},
                             {"run.seed", seed},
                             {"run.settings_sha256", digest},
                             {"run.data_digest", bj_run_data_digest(r)},
                             {"run.evaluated", evaluated},
                             {"run.sums", sums}};
    BJ_TRY(bj_run_path(path, r->options->dir, folder, err));
    return bj_trainer_save(r->trainer, path, NULL, facts, sizeof facts / sizeof *facts, err);
}

static bj_status bad_fact(const char *path, const char *key, const char *value, bj_error *err) {
    return BJ_FAIL(err, BJ_EFORMAT,
                   "%s: metadata '%s' is '%.80s', expected a value written by a training run", path,
                   key, value ? value : "missing");
}

static bj_status read_sums(bj_train_run *r, const char *path, const char *text, bj_error *err) {
    double values[SUMS] = {0};
    const char *at = text ? text : "";
    for (int i = 0; i < sums_of(r); i++) {
        at = bj_hex_double_read(&values[i], at);
        if (!at) return bad_fact(path, "run.sums", text, err);
    }
    if (*at) return bad_fact(path, "run.sums", text, err);
    memcpy(&r->sums, values, sizeof values);
    return BJ_OK;
}

static bj_status read_facts(bj_train_run *r, const char *path, bj_error *err) {
    bj_facts *facts;
    BJ_TRY(bj_facts_read(&facts, path, err));
    const char *evaluated = bj_facts_get(facts, "run.evaluated");
    bj_status status = read_sums(r, path, bj_facts_get(facts, "run.sums"), err);
    char *end = NULL;
    const long epochs = evaluated ? strtol(evaluated, &end, 10) : -2;
    if (status == BJ_OK && (epochs < -1 || epochs > bj_plan_end(&r->plan) || !end || *end))
        status = bad_fact(path, "run.evaluated", evaluated, err);
    r->evaluated = (int)epochs;
    bj_facts_free(facts);
    return status;
}

bj_status bj_run_restore(bj_train_run *r, bj_error *err) {
    char dir[BJ_RUN_FILE], model[BJ_FOLDER_PATH];
    bj_epoch *rows;
    int count;
    BJ_TRY(bj_run_path(dir, r->options->dir, "ckpt/last", err));
    BJ_TRY(bj_folder_find(model, dir, BJ_CHECKPOINT_MODEL, err));
    BJ_TRY(bj_trainer_load(r->trainer, dir, NULL, err));
    BJ_TRY(read_facts(r, model, err));
    const int64_t step = bj_trainer_updates(r->trainer);
    if (step < (int64_t)r->evaluated * r->steps || step > (int64_t)(r->evaluated + 1) * r->steps)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: %lld updates do not match %d evaluated epochs with %lld updates each",
                       model, (long long)step, r->evaluated, (long long)r->steps);
    BJ_TRY(bj_history_read(&rows, &count, r->options->dir, err));
    bj_status status = BJ_OK;
    if (count < r->evaluated + 1)
        status = BJ_FAIL(err, BJ_EFORMAT,
                         "%s: metrics.jsonl has %d epochs, expected %d, as in ckpt/last",
                         r->options->dir, count, r->evaluated + 1);
    for (int i = 0; status == BJ_OK && i <= r->evaluated; i++) r->rows[i] = rows[i];
    bj_free(rows);
    if (status != BJ_OK) return status;
    /* Include the time after the last epoch of a process, which checkpoints do not store. */
    r->wall = fmax(r->evaluated >= 0 ? r->rows[r->evaluated].wall_s : 0,
                   bj_run_status_wall(r->options->dir));
    r->best = bj_run_choose(&r->settings, r->rows, r->evaluated + 1);
    return BJ_OK;
}
