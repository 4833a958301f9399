/* run_open.c - reads the description of a run from its folder. Settings come from
 * config.resolved.json, facts from manifest.json, epochs from metrics.jsonl. A run is finished if
 * result.json exists. Test: tests/run/test_train.c */
#include <string.h>

#include "core/file.h"
#include "core/alloc.h"
#include "run/history.h"
#include "run/run.h"

struct bj_run {
    bj_settings settings;
    bj_config *manifest;
    bj_epoch *rows;
    int count, finished, collapsed, best;
    bj_plan plan;
};

static bj_status read_settings(bj_settings *out, const char *dir, bj_error *err) {
    char path[BJ_RUN_FILE];
    bj_config *config;
    bj_assignment *list = NULL;
    BJ_TRY(bj_run_path(path, dir, "config.resolved.json", err));
    BJ_TRY(bj_config_read(&config, path, err));
    const int count = bj_config_count(config);
    bj_status status = BJ_ALLOC(list, (size_t)count + 1, err);
    for (int i = 0; status == BJ_OK && i < count; i++) list[i] = bj_config_at(config, i);
    if (status == BJ_OK) status = bj_settings_resolve(out, NULL, list, count, err);
    bj_free(list);
    bj_config_free(config);
    return status;
}

bj_status bj_run_open(bj_run **out, const char *dir, bj_error *err) {
    char path[BJ_RUN_FILE], result[BJ_RUN_FILE];
    bj_run *run;
    *out = NULL;
    BJ_TRY(bj_run_path(path, dir, "manifest.json", err));
    BJ_TRY(bj_run_path(result, dir, "result.json", err));
    if (!bj_file_exists(path))
        return BJ_FAIL(err, BJ_EIO, "%s: is not a run, because it has no manifest.json", dir);
    BJ_TRY(BJ_ALLOC(run, 1, err));
    bj_status status;
    BJ_GOTO(status, fail, bj_config_read(&run->manifest, path, err));
    BJ_GOTO(status, fail, read_settings(&run->settings, dir, err));
    BJ_GOTO(status, fail, bj_history_read(&run->rows, &run->count, dir, err));
    BJ_GOTO(status, fail, bj_plan_read(&run->plan, run->manifest, &run->settings, path, err));
    run->finished = bj_file_exists(result);
    run->collapsed = run->finished && run->count &&
                     run->settings.arch.encoder != BJ_ENCODER_SCENE &&
                     !run->rows[run->count - 1].eligible;
    run->best = run->collapsed ? -1 : bj_run_choose(&run->settings, run->rows, run->count);
    *out = run;
    return BJ_OK;
fail:
    bj_run_free(run);
    return status;
}

void bj_run_free(bj_run *run) {
    if (!run) return;
    bj_config_free(run->manifest);
    bj_free(run->rows);
    bj_free(run);
}

const bj_settings *bj_run_settings(const bj_run *run) { return &run->settings; }
const char *bj_run_fact(const bj_run *run, const char *key) {
    return bj_config_get(run->manifest, key);
}
int bj_run_epochs(const bj_run *run) { return run->count; }
bj_epoch bj_run_epoch(const bj_run *run, int index) { return run->rows[index]; }
int bj_run_finished(const bj_run *run) { return run->finished; }
int bj_run_collapsed(const bj_run *run) { return run->collapsed; }
int bj_run_best(const bj_run *run) { return run->best; }
int bj_run_planned(const bj_run *run) { return bj_plan_end(&run->plan); }
int bj_run_extended(const bj_run *run) {
    int epochs = 0;
    for (int i = 1; i < run->plan.count; i++) epochs += run->plan.segment[i].epochs;
    return epochs;
}
int bj_run_complete(const bj_run *run) {
    return bj_run_over(&run->settings, &run->plan, run->rows, run->count);
}
