/* test_train_fails.c - tests runs that cannot start, cannot resume, or have to stop.
 *
 * In every case the message contains the reason, an existing checkpoint can be loaded, and the run
 * resumes when the cause is gone. tests/cli/train.sh tests full disks and signals.
 */
#define _XOPEN_SOURCE 700
#include "core/safetensors.h"
#include "run_case.h"

/* ------------------------------------------------------------------------------- rejected input */

static bj_settings nested_settings;
static bj_status nested_status;
static bj_error nested_error;

static bj_run_answer train_within(void *context, const bj_run_progress *p) {
    bj_run_report report;
    int *calls = context;
    (void)p;
    if (++*calls == 3)
        nested_status = case_train(&report, &nested_settings, "busy", 1, 1, NULL, &nested_error);
    return BJ_RUN_GO_ON;
}

/* checks that resuming the run "held" in another way fails with CODE and a message that contains
 * PART */
static void expect(const bj_settings *s, const bj_run_options *o, bj_status code,
                   const char *part) {
    bj_run_report report;
    bj_error err = {0};
    const bj_status status = bj_run_train(&report, s, o, &err);
    CHECK_MSG(status == code, "%d, expected %d: %s", (int)status, (int)code, err.message);
    CHECK_CONTAINS(err.message, part);
}

/* Changes one byte of a run's manifest, `offset` bytes after the text. */
static void change_manifest(const char *run, const char *text, size_t offset) {
    char path[CASE_PATH], name[64], *content = NULL;
    size_t size;
    bj_error err = {0};
    snprintf(name, sizeof name, "%s/manifest.json", run);
    CHECK_OK(bj_file_read(&content, &size, case_path(path, name), 1 << 20, &err), err);
    char *at = content ? strstr(content, text) : NULL;
    CHECK(at != NULL);
    if (at) {
        at[offset] ^= 1;
        CHECK_OK(bj_file_write(path, content, size, &err), err);
    }
    bj_free(content);
}

static void count_warnings(void *context, const char *line) {
    *(int *)context += strstr(line, "warning:") == line && strstr(line, "build") != NULL;
}

/* Tests that a run cannot be continued by another build. A run of an earlier version, which does
 * not record its build, continues with a warning. */
static void test_build(void) {
    const bj_settings s = case_settings("fullset", "");
    char data[CASE_PATH], dir[CASE_PATH];
    int warnings = 0;
    const bj_run_options o = {.data = case_path(data, "data.bjc"),
                              .dir = case_path(dir, "built"),
                              .threads = 1,
                              .resume = 1,
                              .note = count_warnings,
                              .context = &warnings};
    bj_run_report report;
    bj_error err = {0};
    CHECK_OK(case_train(&report, &s, "built", 0, 1, &(case_stop){.at = 5}, &err), err);
    const size_t value = strlen("\"build\":\"") + 1;
    change_manifest("built", "\"build\"", value + 1);
    expect(&s, &o, BJ_EMISMATCH, "a different build of the library");
    CHECK(warnings == 0);
    change_manifest("built", "\"build\"", value + 1);
    change_manifest("built", "\"build\"", 2);
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && warnings == 1);
    case_remove("built");
}

static void test_refusals(void) {
    const bj_settings s = case_settings("fullset", "");
    char data[CASE_PATH], other[CASE_PATH], dir[CASE_PATH], path[CASE_PATH];
    bj_run_options o = {
        .data = case_path(data, "data.bjc"), .dir = case_path(dir, "held"), .threads = 1};
    bj_run_report report;
    bj_error err = {0};
    case_cache("other.bjc", 4, CASE_SCENES);
    CHECK_OK(case_train(&report, &s, "held", 0, 1, &(case_stop){.at = 5}, &err), err);
    expect(&s, &o, BJ_EARG, "already contains a run");
    o.resume = 1;
    bj_settings t = case_settings("mdn", "");
    expect(&t, &o, BJ_EMISMATCH, "arm was 'fullset' and is now 'mdn'");
    t = case_settings("fullset", "seed=5");
    expect(&t, &o, BJ_EMISMATCH, "seed was '0' and is now '5'");
    t = case_settings("fullset", "optim.lr=1e-3");
    expect(&t, &o, BJ_EMISMATCH, "optim.lr was '0.0003' and is now '0.001'");
    t = case_settings("fullset", "train.precision=mixed");
    expect(&t, &o, BJ_EMISMATCH, "train.precision was 'single' and is now 'mixed'");
    o.data = case_path(other, "other.bjc");
    expect(&s, &o, BJ_EMISMATCH, "different data: data.digest was");
    o.data = data;
    o.dev = other;
    expect(&s, &o, BJ_EMISMATCH, "different development data: dev_data.digest was missing");
    o.dev = NULL;
    o.isa = "c";
    bj_run *held = case_open("held");
    const int is_c = !strcmp(bj_run_fact(held, "isa"), "c");
    bj_run_free(held);
    if (!is_c) expect(&s, &o, BJ_EMISMATCH, "isa was");
    o.isa = NULL;
    /* None of it did any harm. */
    expect(&s, &(bj_run_options){.data = data, .dir = dir, .threads = 1}, BJ_EARG, "held: already contains");
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE);

    /* Checkpoints of nobody knows what. */
    case_remove("held/manifest.json");
    expect(&s, &o, BJ_EARG, "contains checkpoints but no manifest.json");
    case_remove("held");

    /* Two at a time. */
    int calls = 0;
    nested_settings = s;
    o = (bj_run_options){.data = data,
                         .dir = case_path(path, "busy"),
                         .threads = 1,
                         .progress = train_within,
                         .context = &calls};
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && nested_status == BJ_ELOCKED);
    CHECK_CONTAINS(nested_error.message, "another process is training in this folder");
    case_remove("busy");

    /* Tests folders that cannot be created, and missing data. */
    o = (bj_run_options){.data = data, .dir = case_path(path, "data.bjc/run"), .threads = 1};
    expect(&s, &o, BJ_EIO, "data.bjc/run: cannot create the folder");
    o = (bj_run_options){
        .data = case_path(other, "none.bjc"), .dir = case_path(path, "none"), .threads = 1};
    expect(&s, &o, BJ_EIO, "none.bjc");
    CHECK(!case_exists("none", "."));
    case_cache("few.bjc", 3, 2); /* none of them is for development */
    o.data = case_path(other, "few.bjc");
    expect(&s, &o, BJ_EARG, "few.bjc: no development scenes");
    CHECK(!case_exists("none", "."));
    o.dev = data; /* with development scenes of their own */
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.fit == 2 && report.dev == CASE_SCENES);
    case_remove("none");
    o.data = data, o.dev = case_path(other, "other.bjc"); /* all of the data is fitted then */
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.fit == CASE_SCENES && report.dev == CASE_SCENES);
    CHECK(bj_run_open(&held, case_path(path, "nowhere"), &err) == BJ_EIO && !held);
    CHECK_CONTAINS(err.message, "not a run");
    case_remove("none");
}

/* ----------------------------------------------------------------------------------- divergence */

/* Checks that ckpt/last can be loaded, which fails if a number is not finite. */
static void check_finite_checkpoint(const char *run) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    bj_model *model = NULL;
    bj_target *target = NULL;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/ckpt/last", case_path(dir, run));
    CHECK_OK(bj_target_load(&target, path, &err), err);
    snprintf(path, sizeof path, "%s/ckpt/last/model.safetensors", dir);
    CHECK_OK(bj_model_load(&model, path, &err), err);
    for (int i = 0; model && i < bj_model_tensor_count(model); i++) {
        const bj_tensor t = bj_model_tensor(model, i);
        for (size_t j = 0; j < t.size; j++)
            if (!isfinite(t.data[j])) exit(test_report("check_finite_checkpoint"));
    }
    bj_target_free(target);
    bj_model_free(model);
}

/* Updates that ckpt/last has behind it. */
static long saved_step(const char *run) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    bj_safetensors *st = NULL;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/ckpt/last/state.safetensors", case_path(dir, run));
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    const char *text = st ? bj_safetensors_metadata(st, "step") : NULL;
    const long step = text ? atol(text) : -1;
    bj_safetensors_close(st);
    return step;
}

static int count_lines(const char *run, const char *file) {
    size_t size;
    int lines = 0;
    char *text = case_read(&size, run, file);
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    bj_free(text);
    return lines;
}

/* Returns settings with which weights grow a hundredfold per update. `how` sets the number of
 * updates. */
static void diverge(const char *arm, const char *how, const char *part) {
    char more[256], step[64];
    snprintf(more, sizeof more,
             "optim.lr=1 optim.weight_decay=100 train.warmup=0 train.epochs=90 %s", how);
    const bj_settings s = case_settings(arm, more);
    for (int resume = 0; resume < 2; resume++) {
        bj_run_report report;
        bj_error err = {0};
        const long live = bj_alloc_live();
        const bj_status status = case_train(&report, &s, "far", resume, 1, NULL, &err);
        CHECK(bj_alloc_live() == live);
        CHECK_MSG(status == BJ_ENONFINITE, "%d: %s", (int)status, err.message);
        CHECK_CONTAINS(err.message, part);
        CHECK_CONTAINS(err.message, "ckpt/last");
        check_finite_checkpoint("far");
        CHECK(count_lines("far", "failures.jsonl") == resume + 1);
        size_t size;
        char *text = case_read(&size, "far", "failures.jsonl");
        CHECK_CONTAINS(text, "{\"schema\":\"branchjepa.failure/1\",\"type\":\"failure\",\"step\":");
        CHECK_CONTAINS(text, part);
        /* the state before the failed update, not that of the last epoch */
        snprintf(step, sizeof step, "\"step\":%ld,", saved_step("far"));
        CHECK_CONTAINS(text, step);
        const char *update = strstr(err.message, "update ");
        if (update) CHECK(atol(update + 7) == saved_step("far") + 1);
        CHECK(saved_step("far") >= 1);
        bj_free(text);
        CHECK(!case_exists("far", "result.json"));
    }
    case_remove("far");
}

/* Tests that the message names one of the scenes that cause the failure, even if they are in a
 * separate cache. */
static void test_scenario(void) {
    char data[CASE_PATH], dev[CASE_PATH], dir[CASE_PATH], id[64] = "";
    const bj_settings s =
        case_settings("fullset", "optim.lr=1 optim.weight_decay=100 "
                                 "train.warmup=0 train.epochs=90 train.batch=256");
    const bj_run_options o = {.data = case_path(data, "few.bjc"),
                              .dev = case_path(dev, "other.bjc"),
                              .dir = case_path(dir, "far"),
                              .threads = 1};
    bj_run_report report;
    bj_cache *cache = NULL;
    bj_error err = {0};
    CHECK(bj_run_train(&report, &s, &o, &err) == BJ_ENONFINITE);
    const char *at = strstr(err.message, "development scenes (scenario ");
    CHECK_MSG(at && sscanf(at + strlen("development scenes (scenario "), "%63[^)]", id) == 1, "%s",
              err.message);
    CHECK_OK(bj_cache_open(&cache, dev, 0, &err), err);
    CHECK_MSG(cache && bj_cache_find(cache, id) >= 0, "'%s'", id);
    bj_cache_free(cache);
    case_remove("far");
}

static void test_divergence(void) {
    /* Tests a failure in an update. An epoch has 28 updates, which is enough to overflow in double
     * precision, too. */
    diverge("fullset", "train.batch=4", "epoch 1, update ");
    diverge("fullset", "train.batch=4", " (scenario 0");
    /* Tests a failure in an evaluation, with one update per epoch. */
    diverge("fullset", "train.batch=256", "development scenes (scenario 0");
    diverge("anchor-a", "train.batch=256", "development scenes (scenario 0");
}

/* ---------------------------------------------------------------------------------- allocations */

static void test_allocations(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=1");
    bj_run_report report;
    bj_error err = {0};
    case_run(&s, "whole");
    const long before = bj_alloc_count();
    case_run(&s, "count");
    const long needed = bj_alloc_count() - before, live = bj_alloc_live();
    CHECK(needed > 100);
    case_remove("count");
    int failures = 0, resumed = 0;
    for (long n = 0; n < needed; n += 1 + needed / 40) {
        bj_alloc_fail_after(n);
        const bj_status status = case_train(&report, &s, "poor", 0, 1, NULL, &err);
        bj_alloc_fail_after(-1);
        failures += status == BJ_ENOMEM;
        CHECK_MSG(status == BJ_ENOMEM || status == BJ_OK, "allocation %ld: %d: %s", n, (int)status,
                  err.message);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld: %ld blocks more", n,
                  bj_alloc_live() - live);
        CHECK_OK(case_train(&report, &s, "poor", 1, 1, NULL, &err), err);
        resumed += report.resumed_at >= 0;
        CHECK_MSG(case_same_run("whole", "poor"), "allocation %ld", n);
        case_remove("poor");
    }
    CHECK_MSG(failures >= 30 && resumed >= 5, "%d failures, %d resumed", failures, resumed);
    case_remove("whole");
}

int main(void) {
    case_begin();
    test_build();
    test_refusals();
    test_divergence();
    test_scenario();
    test_allocations();
    return test_report("train_fails");
}
