/* test_lock.c - tests locking: the selection rule, the file, and every reason for rejection. */
#define _XOPEN_SOURCE 700
#include "campaign/lock_case.h"

#include "campaign/locked_check.h"
#include "campaign/locked_json.h"
#include "data/cache_case.h"

static bj_error err;
static char self[GRID_PATH]; /* stands for the evaluator */

/* ----------------------------------------------------------------------------------- pure parts */

static void test_rule(void) {
    bj_epoch rows[6];
    const double es[6] = {1, 5, 3, NAN, 3, 4}, ade[6] = {1, 9, 2, 7, 3, 7};
    for (int i = 0; i < 6; i++) {
        rows[i] = (bj_epoch){.epoch = i, .decoder_ade = ade[i], .eligible = i == 3 || i == 5};
        rows[i].dev.traj_es = es[i];
    }
    CHECK(bj_lock_choose(BJ_FULLSET, rows, 6) == 2); /* epoch 0 is ignored, and the first of two
                                                        equal epochs is chosen */
    CHECK(bj_lock_choose(BJ_ANCHOR_B, rows, 6) == 2);
    CHECK(bj_lock_choose(BJ_FULLSET, rows, 2) == 1);
    CHECK(bj_lock_choose(BJ_FULLSET, rows, 1) == -1 && bj_lock_choose(BJ_FULLSET, rows, 0) == -1);
    CHECK(bj_lock_choose(BJ_FULLSET, rows + 3, 1) == -1); /* NaN */
    CHECK(bj_lock_choose(BJ_FULLSET, rows + 3, 3) == 1);
    CHECK(bj_lock_choose(BJ_ANCHOR_A, rows, 6) == 3); /* eligible ones only */
    CHECK(bj_lock_choose(BJ_ANCHOR_A, rows, 3) == -1);
}

static void fill_hex(char *hex, int digit) {
    memset(hex, "0123456789abcdef"[digit % 16], BJ_SHA256_HEX - 1);
    hex[BJ_SHA256_HEX - 1] = '\0';
}

static void test_file(void) {
    bj_lock_run runs[2] = {{.arm = "fullset",
                            .seed = 0,
                            .dir = "runs/fullset/seed-0",
                            .evaluated = 1,
                            .best_epoch = 29,
                            .dev = 2.0766},
                           {.arm = "anchor-a",
                            .seed = 999999999999999999,
                            .dir = "runs/anchor-a/seed-9",
                            .best_epoch = 3,
                            .dev = 0.1}};
    bj_lock lock = {.campaign = "say \"hi\"",
                    .version = "0.1.0",
                    .data = "/data/val.bjc",
                    .data_bytes = 123456789012,
                    .scenes = 24988,
                    .runs = runs,
                    .count = 2};
    bj_lock again;
    char hex[BJ_SHA256_HEX], same[BJ_SHA256_HEX];
    fill_hex(lock.campaign_sha256, 1);
    fill_hex(lock.evaluator_sha256, 2);
    fill_hex(lock.data_sha256, 3);
    fill_hex(lock.data_digest, 4);
    for (int i = 0; i < 2 * BJ_LOCK_RUN_FILES; i++)
        fill_hex(runs[i / BJ_LOCK_RUN_FILES].sha256[i % BJ_LOCK_RUN_FILES], 5 + i);
    char path[GRID_PATH];
    snprintf(path, sizeof path, "%s", grid_at("one.json"));
    CHECK_OK(bj_lock_write(&lock, path, hex, &err), err);
    CHECK_OK(bj_lock_read(&again, path, same, &err), err);
    CHECK(!strcmp(hex, same) && again.count == 2);
    CHECK(!strcmp(again.campaign, lock.campaign) && !strcmp(again.data, lock.data));
    CHECK(again.data_bytes == lock.data_bytes && again.scenes == lock.scenes);
    CHECK(!memcmp(again.campaign_sha256, lock.campaign_sha256, BJ_SHA256_HEX));
    CHECK(!memcmp(again.evaluator_sha256, lock.evaluator_sha256, BJ_SHA256_HEX));
    CHECK(!memcmp(again.data_sha256, lock.data_sha256, BJ_SHA256_HEX));
    CHECK(!memcmp(again.data_digest, lock.data_digest, BJ_SHA256_HEX));
    for (int i = 0; i < 2; i++) {
        const bj_lock_run *a = &again.runs[i], *b = &runs[i];
        CHECK(!strcmp(a->arm, b->arm) && !strcmp(a->dir, b->dir) && a->seed == b->seed);
        CHECK(a->evaluated == b->evaluated && a->best_epoch == b->best_epoch && a->dev == b->dev);
        CHECK(!memcmp(a->sha256, b->sha256, sizeof a->sha256));
    }
    CHECK_OK(bj_lock_write(&again, path, same, &err), err); /* the same bytes */
    CHECK(!strcmp(hex, same));
    bj_lock_reset(&again);

    static const struct {
        const char *after, *old, *new, *named;
    } flaws[] = {
        {"{", "branchjepa.lock/1", "branchjepa.lock/2", "schema"},
        {"\"campaign\"", "\"sha256\"", "\"sha\"", "'sha256' is missing"},
        {"\"evaluator\"", "2222", "222g", "64 hexadecimal digits"},
        {"\"evaluator\"", "2222", "222", "64 hexadecimal digits"},
        {"\"bytes\"", "123456789012", "-1", "'bytes'"},
        {"\"scenes\"", "24988", "2.5", "'scenes'"},
        {"\"metrics\"", "\"brier\"", "\"breir\"", "list of metrics"},
        {"\"real\"", "\"real\": \"", "\"real\": \"long ", "the number type"},
        {"\"batch\"", "128", "129", "batch is 129"},
        {"\"least_scenes\"", "10", "1", "least_scenes is 1"},
        {"\"runs\"", "runs/fullset", "runs/../fullset", "expected a folder in the campaign folder"},
        {"\"runs\"", "runs/fullset", "/runs/fullset", "expected a folder in the campaign folder"},
        {"\"runs\"", "true", "1", "run 0: 'evaluated'"},
        {"anchor-a", "ckpt/best/state.safetensors", "state",
         "run 1: 'ckpt/best/state.safetensors'"},
        {"anchor-a", "999999999999999999", "\"9\"", "run 1: 'seed' is string"},
        {"\"runs\"", "\"runs\": [", "\"more\": [", "'runs' is missing"},
    };
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        grid_kept kept = grid_edit(path, flaws[i].after, flaws[i].old, flaws[i].new);
        err.message[0] = '\0';
        CHECK(bj_lock_read(&again, path, same, &err) != BJ_OK && !again.runs);
        CHECK_CONTAINS(err.message, flaws[i].named);
        CHECK_CONTAINS(err.message, "one.json");
        grid_restore(&kept);
    }
    for (long n = 0;; n++) { /* every allocation may fail */
        bj_alloc_fail_after(n);
        const bj_status read = bj_lock_read(&again, path, same, &err);
        if (read == BJ_OK) bj_lock_reset(&again);
        const bj_status written = bj_lock_write(&lock, grid_at("two.json"), same, &err);
        bj_alloc_fail_after(-1);
        if (read == BJ_OK && written == BJ_OK) break;
        CHECK(read == BJ_ENOMEM || (read == BJ_OK && written == BJ_ENOMEM));
        CHECK(!grid_exists(grid_at("two.json")));
    }
}

/* Tests two compatible runs, then changes one fact of the second run. */
static void test_grid(void) {
    bj_lock_run runs[2] = {{.arm = "fullset", .seed = 1, .evaluated = 1},
                           {.arm = "mdn", .seed = 1, .evaluated = 1}};
    bj_lock_facts one = {.arch = bj_arch_paper()};
    fill_hex(one.data, 1), fill_hex(one.order, 2), fill_hex(one.split, 3);
    fill_hex(one.initial, 4), fill_hex(one.anchor, 5);
    bj_lock_facts facts[2] = {one, one};
    facts[1].arch.weighting = BJ_WEIGHTS_UNIFORM;
    CHECK_OK(bj_lock_check_grid(runs, facts, 2, &err), err);
    char *const others[] = {facts[1].data, facts[1].order, facts[1].split, facts[1].initial};
    static const char *const named[] = {"data", "order", "development scenes", "initial weights"};
    for (int i = 0; i < 4; i++) {
        fill_hex(others[i], 9);
        CHECK(bj_lock_check_grid(runs, facts, 2, &err) == BJ_ELOCKED);
        CHECK_CONTAINS(err.message, "mdn, seed 1");
        CHECK_CONTAINS(err.message, named[i]);
        runs[1].seed = 2; /* another seed is another matter */
        CHECK_OK(bj_lock_check_grid(runs, facts, 2, &err), err);
        runs[1].seed = 1;
        facts[1] = facts[0];
    }
    fill_hex(facts[1].initial, 9); /* other sizes, other weights */
    facts[1].arch = bj_arch_point();
    CHECK_OK(bj_lock_check_grid(runs, facts, 2, &err), err);
    facts[1].arch = facts[0].arch;
    facts[1].arch.scales = BJ_SCALES_GLOBAL;
    CHECK_OK(bj_lock_check_grid(runs, facts, 2, &err), err);
    facts[1] = facts[0];
    fill_hex(facts[1].anchor, 9);
    CHECK_OK(bj_lock_check_grid(runs, facts, 2, &err), err);
    facts[0].stage_b = facts[1].stage_b = 1;
    CHECK(bj_lock_check_grid(runs, facts, 2, &err) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "frozen anchor");
    facts[1] = facts[0];
    runs[0].evaluated = runs[1].evaluated = 0;
    CHECK(bj_lock_check_grid(runs, facts, 2, &err) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "no run of the campaign makes forecasts");
}

/* ------------------------------------------------------------------------------- rejected input */

static bj_status lock_with(const char *data) {
    const bj_lock_options options = {.data = data, .evaluator = self};
    bj_lock_report report;
    err = (bj_error){0};
    const bj_status status = bj_campaign_lock(&report, grid_dir, &options, &err);
    CHECK(grid_exists(grid_at("run/lock.json")) == (status == BJ_OK));
    return status;
}

static void refused(bj_status code, const char *first, const char *second) {
    const bj_status status = lock_with(grid_val);
    CHECK_MSG(status == code, "%d, expected %d: %s", (int)status, (int)code, err.message);
    CHECK_CONTAINS(err.message, first);
    CHECK_CONTAINS(err.message, second);
}

static void test_runs(void) {
    static const struct {
        const char *file, *after, *old, *new, *first, *second;
    } flaws[] = {
        {"runs/point/seed-4/result.json", "{", "\"done\"", "\"stopped\"", "point, seed 4",
         "outcome is 'stopped'"},
        {"runs/anchor-a/seed-3/result.json", "{", "\"done\"", "\"no_pass\"", "anchor-a, seed 3",
         "outcome is 'no_pass'"},
        {"runs/uniform/seed-3/config.resolved.json", "optim", "0.0003", "0.0004", "uniform, seed 3",
         "optim.lr is 0.0004, but campaign.json has 0.0003"},
        {"runs/uniform/seed-3/manifest.json", "\"data\"", "\"digest\": \"", "\"digest\": \"00",
         "uniform, seed 3", "data.digest"},
        {"runs/fullset/seed-3/result.json", "best_epoch", "\": ", "\": 1", "fullset, seed 3",
         "its checkpoint is from epoch 1"},
        {"runs/fullset/seed-3/result.json", "checkpoint", "model.safetensors", "model",
         "result.json", "'model.safetensors' is missing"},
        {"runs/anchor-b/seed-4/result.json", "sha256_after", "\": \"", "\": \"0",
         "anchor-b, seed 4", "anchor"},
    };
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        char path[GRID_PATH];
        snprintf(path, sizeof path, "%s/%s", grid_dir, flaws[i].file);
        grid_kept kept = grid_edit(path, flaws[i].after, flaws[i].old, flaws[i].new);
        const bj_status code = strstr(flaws[i].second, "is missing") ? BJ_EFORMAT : BJ_ELOCKED;
        refused(code, flaws[i].first, flaws[i].second);
        grid_restore(&kept);
    }
    static const char history[] = "run/runs/uniform/seed-4/metrics.jsonl";
    CHECK(rename(grid_at(history), grid_at("moved")) == 0);
    refused(BJ_ELOCKED, "uniform, seed 4", "metrics.jsonl has no epochs");
    CHECK(rename(grid_at("moved"), grid_at(history)) == 0);
}

/* Finds the hex digits of a digest in the manifest of a run. */
static void edit_digest(grid_kept *kept, const char *run, const char *key) {
    char path[GRID_PATH];
    snprintf(path, sizeof path, "%s/runs/%s/manifest.json", grid_dir, run);
    *kept = grid_keep(path);
    char *at = kept->bytes ? strstr(kept->bytes, key) : NULL;
    CHECK_MSG(at != NULL, "no %s in %s", key, path);
    if (!at) return;
    at = strstr(at + strlen(key) - 1, "\": \"") + 4;
    const char was = *at;
    *at = was == '0' ? '1' : '0';
    grid_put(path, kept->bytes, kept->size);
    *at = was;
}

static void test_facts(void) {
    static const struct {
        const char *run, *key, *named;
    } flaws[] = {
        {"uniform/seed-4", "\"initial\": {\n    \"sha256", "initial weights"},
        {"point/seed-3", "\"order\": {\n    \"sha256", "order of scenes"},
        {"point/seed-3", "\"dev_sha256", "development scenes"},
    };
    for (int i = 0; i < 3; i++) {
        grid_kept kept;
        edit_digest(&kept, flaws[i].run, flaws[i].key);
        refused(BJ_ELOCKED, flaws[i].named, "though the seed is the same");
        grid_restore(&kept);
    }
    grid_kept kept;
    edit_digest(&kept, "point/seed-4", "\"digest"); /* of the data */
    refused(BJ_ELOCKED, "point, seed 4", "trained on data with the digest");
    grid_restore(&kept);
    kept = grid_edit(grid_at("run/runs/point/seed-4/manifest.json"), "\"dev_data\"", "\"digest\"",
                     "\"digst\"");
    refused(BJ_ELOCKED, "point, seed 4", "evaluated on development data");
    grid_restore(&kept);
}

/* Tests a history whose lowest score is in another epoch, and a truncated history. */
static void test_history(void) {
    bj_campaign *campaign = NULL;
    bj_run *run = NULL;
    char path[GRID_PATH];
    snprintf(path, sizeof path, "%s", grid_at("run/runs/fullset/seed-4/metrics.jsonl"));
    CHECK_OK(bj_campaign_open(&campaign, grid_dir, &err), err);
    CHECK_OK(bj_run_open(&run, grid_at("run/runs/fullset/seed-4"), &err), err);
    if (!campaign || !run) return;
    const int best = bj_run_epoch(run, bj_run_best(run)).epoch, other = best == 1 ? 2 : 1;
    char after[64], expected[64];
    snprintf(after, sizeof after, "\"epoch\":%d", other);
    snprintf(expected, sizeof expected, "chooses epoch %d", other);
    grid_kept kept = grid_edit(path, after, "\"traj_es\":", "\"traj_es\":-");
    refused(BJ_ELOCKED, "fullset, seed 4", expected);
    grid_restore(&kept);

    kept = grid_keep(path);
    const char *last = kept.bytes ? strstr(kept.bytes, "{\"schema\":\"branchjepa.epoch/1\"") : NULL;
    for (int i = 0; last && i < GRID_EPOCHS; i++) last = strchr(last, '\n') + 1;
    if (last) grid_put(path, kept.bytes, (size_t)(last - kept.bytes));
    refused(BJ_ELOCKED, "fullset, seed 4", "ends with epoch 1 of 2");
    grid_restore(&kept);
    bj_run_free(run);
    bj_campaign_free(campaign);
}

/* Tests a checkpoint with a changed byte, and a valid checkpoint from another epoch or run. */
static void test_checkpoint(void) {
    for (int i = 0; i < 2; i++) {
        char path[GRID_PATH];
        snprintf(path, sizeof path, "%s/runs/anchor-a/seed-4/%s", grid_dir, bj_lock_run_files[i]);
        grid_kept kept = grid_flip(path);
        refused(BJ_ELOCKED, "anchor-a, seed 4", bj_lock_run_files[i]);
        CHECK_CONTAINS(err.message, "result.json has");
        grid_restore(&kept);
        CHECK(rename(path, grid_at("moved")) == 0);
        refused(BJ_EMISMATCH, path, "is missing");
        CHECK(rename(grid_at("moved"), path) == 0);
    }
    /* Tests a checkpoint from another epoch together with a matching result.json. */
    bj_run *run = NULL;
    char hex[65], old[65];
    char model[GRID_PATH], result[GRID_PATH];
    snprintf(model, sizeof model, "%s",
             grid_at("run/runs/point/seed-3/ckpt/best/model.safetensors"));
    snprintf(result, sizeof result, "%s", grid_at("run/runs/point/seed-3/result.json"));
    CHECK_OK(bj_run_open(&run, grid_at("run/runs/point/seed-3"), &err), err);
    if (!run) return;
    const char *const metadata[2] = {"\"run.evaluated\":\"1\"", "\"run.evaluated\":\"2\""};
    const int best = bj_run_epoch(run, bj_run_best(run)).epoch;
    bj_run_free(run);
    grid_kept kept = grid_keep(model);
    char *at = NULL;
    for (size_t i = 0; kept.bytes && !at && i + 20 < kept.size; i++)
        if (!memcmp(kept.bytes + i, metadata[best - 1], strlen(metadata[0]))) at = kept.bytes + i;
    CHECK(at != NULL);
    if (!at) return;
    bj_sha256_memory(old, kept.bytes, kept.size);
    at[strlen(metadata[0]) - 2] = (char)('3' - best);
    bj_sha256_memory(hex, kept.bytes, kept.size);
    grid_put(model, kept.bytes, kept.size);
    at[strlen(metadata[0]) - 2] = (char)('0' + best);
    grid_kept kept_result = grid_edit(result, "checkpoint", old, hex);
    refused(BJ_ELOCKED, "point, seed 3", "model.safetensors is from epoch");
    grid_restore(&kept_result);
    grid_restore(&kept);
}

static void test_data(void) {
    char path[GRID_PATH], train[GRID_PATH];
    snprintf(path, sizeof path, "%s", grid_at("other.bjc"));
    snprintf(train, sizeof train, "%s", grid_at("train.bjc"));
    CHECK(lock_with(train) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "is the campaign's training data");
    CHECK(lock_with(grid_at("dev.bjc")) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "is the campaign's development data");
    grid_cache("other.bjc", "train", GRID_TRAIN - 8); /* another file, the same scenes */
    CHECK(lock_with(path) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "40 of its scenes are also in the training data");
    grid_remove(path);
    grid_cache("other.bjc", "dev", GRID_DEV + 4);
    CHECK(lock_with(path) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "16 of its scenes are also in the development data");
    grid_remove(path);
    grid_cache("other.bjc", "few", 9);
    CHECK(lock_with(path) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "found 9 scenes, expected at least 10");
    grid_remove(path);
    bj_prep_report prep; /* made-up scenes, some without a future */
    CHECK_OK(case_write(path, 30, 1, &prep, &err), err);
    CHECK(lock_with(path) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "scenes have no future");
    grid_remove(path);
    CHECK(lock_with(grid_at("none.bjc")) == BJ_EIO);
    grid_kept kept = grid_flip(grid_val);
    CHECK(lock_with(grid_val) == BJ_EFORMAT);
    grid_restore(&kept);
    /* Tests that if the training data was changed, it cannot be proved that the held-out data is
     * separate. */
    kept = grid_keep(train);
    grid_remove(train);
    grid_cache("train.bjc", "train", GRID_TRAIN + 1);
    CHECK(lock_with(grid_val) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "train.bjc: its digest is");
    grid_restore(&kept);
}

static int stop_at_once(void *context, int64_t done, int64_t total) {
    int *calls = context;
    CHECK(done > 0 && done <= total);
    return ++*calls == 2;
}

static void test_success(void) {
    int calls = 0;
    bj_lock_report report;
    bj_lock_options options = {
        .data = grid_val, .evaluator = self, .progress = stop_at_once, .context = &calls};
    CHECK(bj_campaign_lock(&report, grid_dir, &options, &err) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "stopped");
    CHECK(calls == 2 && !grid_exists(grid_at("run/lock.json")));

    CHECK(mkdir(grid_at("run/locked"), 0777) == 0);
    refused(BJ_ELOCKED, "run/locked", "already evaluated");
    CHECK(rmdir(grid_at("run/locked")) == 0);

    options.progress = NULL;
    CHECK_OK(bj_campaign_lock(&report, grid_dir, &options, &err), err);
    CHECK(report.runs == 10 && report.arms == 5 && report.seeds == 2);
    CHECK(report.scenes == GRID_VAL);
    char hex[65], expected[65];
    CHECK_OK(bj_sha256_file(hex, grid_at("run/lock.json"), &err), err);
    CHECK(!strcmp(hex, report.digest));

    bj_lock lock;
    CHECK_OK(bj_lock_read(&lock, grid_at("run/lock.json"), hex, &err), err);
    CHECK(lock.count == 10 && lock.data[0] == '/' && lock.scenes == GRID_VAL);
    for (int i = 0; i < lock.count; i++) {
        const bj_lock_run *run = &lock.runs[i];
        char path[BJ_FOLDER_PATH];
        CHECK(run->seed == 3 + i / 5 && run->best_epoch >= 1 && isfinite(run->dev));
        CHECK(run->evaluated == (strcmp(run->arm, "anchor-a") != 0));
        for (int f = 0; f < BJ_LOCK_RUN_FILES; f++) {
            snprintf(path, sizeof path, "%s/%s/%s", grid_dir, run->dir, bj_lock_run_files[f]);
            CHECK_OK(bj_sha256_file(expected, path, &err), err);
            CHECK(!strcmp(run->sha256[f], expected));
        }
    }
    bj_lock_reset(&lock);
    CHECK(bj_campaign_lock(&report, grid_dir, &options, &err) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "already locked");
    options.evaluator = NULL;
    CHECK(bj_campaign_lock(&report, grid_dir, &options, &err) == BJ_EARG);
}

int main(int argc, char **argv) {
    (void)argc;
    snprintf(self, sizeof self, "%s", argv[0]);
    bj_campaign *campaign = grid_begin(2);
    test_rule();
    test_file();
    test_grid();
    refused(BJ_ELOCKED, "2 of 10 runs are not done", "anchor-a seed 4");
    CHECK_OK(grid_train(campaign, 8, &err), err);
    refused(BJ_ELOCKED, "1 of 10 runs", "anchor-b seed 4");
    CHECK_OK(grid_train(campaign, 9, &err), err);
    bj_campaign_free(campaign);
    test_runs();
    test_facts();
    test_history();
    test_checkpoint();
    test_data();
    test_success();
    grid_remove(grid_folder);
    return test_report("lock");
}
