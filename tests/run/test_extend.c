/* test_extend.c - tests extensions of a finished run: the learning-rate cycle, reproducible bits,
 * stopping and resuming within an extension, rejected input.
 *
 * The reference is a training loop without checkpoints and logging that uses explicit learning
 * rates. Interrupted extensions are compared with an uninterrupted one.
 */
#define _XOPEN_SOURCE 700
#include "core/file.h"
#include "run_case.h"

enum { FIRST = 2, MORE = 3 }; /* epochs; four updates each */

/* -------------------------------------------------------------------------------------- helpers */

static bj_status extend(bj_run_report *report, const bj_settings *s, const char *name, int epochs,
                        int threads, case_stop *stop, bj_error *err) {
    char data[CASE_PATH], dir[CASE_PATH];
    const bj_run_options options = {.data = case_path(data, "data.bjc"),
                                    .dir = case_path(dir, name),
                                    .resume = 1,
                                    .extend = epochs,
                                    .threads = threads,
                                    .progress = stop ? case_progress : NULL,
                                    .context = stop};
    return bj_run_train(report, s, &options, err);
}

static void expect(const bj_settings *s, const char *name, int epochs, bj_status code,
                   const char *part) {
    bj_run_report report;
    bj_error err = {0};
    const bj_status status = extend(&report, s, name, epochs, 1, NULL, &err);
    CHECK_MSG(status == code, "%d, expected %d: %s", (int)status, (int)code, err.message);
    CHECK_CONTAINS(err.message, part);
}

static void check_fact(const char *name, const char *key, const char *expected) {
    bj_run *run = case_open(name);
    const char *found = bj_run_fact(run, key);
    CHECK_MSG(expected ? found && !strcmp(found, expected) : !found, "%s: %s is %s, expected %s",
              name, key, found ? found : "missing", expected ? expected : "missing");
    bj_run_free(run);
}

/* Checks the plan of a run and the number of its rows. */
static void check_plan(const char *name, int planned, int extended, int epochs, int complete) {
    bj_run *run = case_open(name);
    CHECK_MSG(bj_run_planned(run) == planned && bj_run_extended(run) == extended &&
                  bj_run_epochs(run) == epochs + 1 && bj_run_complete(run) == complete,
              "%s: %d, %d, %d, %d", name, bj_run_planned(run), bj_run_extended(run),
              bj_run_epochs(run), bj_run_complete(run));
    bj_run_free(run);
}

/* ------------------------------------------------------------------------------------ reference */

/* Compares weights and learning rates with the loop without checkpoints and logging. */
static void test_reference(const bj_settings *s) {
    /* Returns the learning rate: a warm-up over one epoch of four updates, then the cosine over the
     * remaining epochs. */
    const double first[] = {.25, .5, .75, 1, 1, .85355339059327373, .5, .14644660940672621};
    const bj_trainer_options how = {
        .objective = s->objective, .optim = s->optim, .max_batch = s->batch, .threads = 1};
    const bj_loader_options order = {
        .part = BJ_PART_FIT, .batch = s->batch, .shuffle = 1, .seed = s->seed, .needs_future = 1};
    char path[CASE_PATH];
    bj_cache *cache = NULL;
    bj_loader *loader = NULL;
    bj_trainer *trainer = NULL;
    bj_model *model = NULL, *saved = NULL;
    bj_error err = {0};
    bj_run *run = case_open("ref");
    CHECK_OK(bj_cache_open(&cache, case_path(path, "data.bjc"), 0, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    CHECK_OK(bj_model_load(&saved, case_path(path, "ref/ckpt/last/model.safetensors"), &err), err);
    if (test_failed) exit(test_report("test_reference"));
    CHECK_OK(bj_model_create(&model, bj_model_arch(saved), s->seed, &err), err);
    CHECK_OK(bj_trainer_create(&trainer, model, &how, &err), err);
    CHECK(bj_loader_steps(loader) == 4);
    for (int i = 0; i < 4 * (FIRST + MORE); i++) {
        const bj_batch *batch;
        bj_step_report report;
        const int within = i - 4 * FIRST;
        const bj_schedule schedule = {
            .base = s->lr, .updates = 4 * (within < 0 ? FIRST : MORE), .warmup = 4};
        const double lr = bj_lr_at(&schedule, within < 0 ? i : within);
        if (i < 8) CHECK_NEAR(lr, first[i] * s->lr, 1e-15);
        if (within >= 0 && within < 4) CHECK_NEAR(lr, (within + 1) / 4. * s->lr, 1e-15);
        if (i % 4 == 3) CHECK(bj_run_epoch(run, i / 4 + 1).lr == lr);
        CHECK_OK(bj_loader_batch(&batch, NULL, loader, i / 4, i % 4, &err), err);
        CHECK_OK(bj_trainer_step(trainer, batch, lr, &report, &err), err);
    }
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor a = bj_model_tensor(model, i), b = bj_model_tensor(saved, i);
        CHECK_MSG(!memcmp(a.data, b.data, a.size * sizeof *a.data), "%s", a.name);
    }
    bj_run_free(run);
    bj_trainer_free(trainer);
    bj_model_free(model);
    bj_model_free(saved);
    bj_loader_free(loader);
    bj_cache_free(cache);
}

/* Tests that rows, events and the manifest continue, and that all rows are considered when the
 * checkpoint is chosen. */
static void test_files(void) {
    bj_run *run = case_open("ref");
    int least = 1;
    for (int i = 0; i < bj_run_epochs(run); i++) {
        const bj_epoch row = bj_run_epoch(run, i);
        CHECK(row.epoch == i && row.step == 4 * i);
        if (i > 1 && row.dev.traj_es < bj_run_epoch(run, least).dev.traj_es) least = i;
    }
    CHECK(bj_run_best(run) == least && bj_run_finished(run));
    bj_run_free(run);
    check_plan("ref", FIRST + MORE, MORE, FIRST + MORE, 1);
    check_fact("ref", "extensions.0.epochs", "3");
    check_fact("ref", "extensions.0.step", "8");
    check_fact("ref", "extensions.1.epochs", NULL);
    check_fact("base", "extensions.0.epochs", NULL);
    bj_run *a = case_open("base"), *b = case_open("ref");
    CHECK(!strcmp(bj_run_fact(a, "settings.sha256"), bj_run_fact(b, "settings.sha256")));
    CHECK(!strcmp(bj_run_fact(a, "initial.sha256"), bj_run_fact(b, "initial.sha256")));
    bj_run_free(a);
    bj_run_free(b);
}

/* ------------------------------------------------------------------------------------- stopping */

/* Tests stops at every call of the progress function within the extension. */
static void test_stops(const bj_settings *s) {
    bj_run_report report;
    bj_error err = {0};
    for (int at = 1, more = 1; more && test_failed < 20; at++) {
        case_stop stop = {.at = at};
        case_run(s, "stop");
        CHECK_OK(extend(&report, s, "stop", MORE, 1, &stop, &err), err);
        more = stop.calls == at;
        if (more) {
            CHECK(report.outcome == BJ_RUN_STOPPED && !case_exists("stop", "result.json"));
            /* Tests that the extension continues with the same command, or with --resume alone. */
            CHECK_OK(extend(&report, s, "stop", at % 2 ? MORE : 0, 1 + at % 3, NULL, &err), err);
        }
        CHECK(report.outcome == BJ_RUN_DONE && report.epochs == FIRST + MORE);
        CHECK_MSG(case_same_run("ref", "stop"), "stopped at call %d, %s", at, stop.phase);
        CHECK(case_exists("stop", "result.json"));
        check_plan("stop", FIRST + MORE, MORE, FIRST + MORE, 1);
        case_remove("stop");
    }
}

/* Tests the states that a killed process may leave. */
static void test_crashes(const bj_settings *s) {
    char path[CASE_PATH], *result;
    size_t size;
    bj_run_report report;
    bj_error err = {0};

    /* Tests a kill between replacing the manifest and removing result.json. */
    case_run(s, "crash");
    result = case_read(&size, "crash", "result.json");
    CHECK_OK(extend(&report, s, "crash", MORE, 1, &(case_stop){.at = 1}, &err), err);
    case_path(path, "crash/result.json");
    CHECK_OK(bj_file_write(path, result, size, &err), err);
    check_plan("crash", FIRST + MORE, MORE, FIRST, 0);
    CHECK_OK(extend(&report, s, "crash", MORE, 1, &(case_stop){.at = 1}, &err), err);
    CHECK(report.outcome == BJ_RUN_STOPPED && !case_exists("crash", "result.json"));
    check_fact("crash", "extensions.1.epochs", NULL);

    /* Tests that a run without ckpt/last starts again, with the cycles listed in its manifest. */
    case_remove("crash/ckpt/last");
    CHECK_OK(extend(&report, s, "crash", 0, 1, NULL, &err), err);
    CHECK(report.resumed_at == -1 && case_same_run("ref", "crash"));

    /* Tests a kill before result.json was written. The same command then only finishes the run. */
    CHECK(unlink(path) == 0);
    CHECK_OK(extend(&report, s, "crash", MORE, 1, NULL, &err), err);
    check_fact("crash", "extensions.1.epochs", NULL);
    CHECK(case_exists("crash", "result.json") && case_same_run("ref", "crash"));
    bj_free(result);

    /* A finished extension is extended once more. */
    CHECK_OK(extend(&report, s, "crash", MORE, 1, NULL, &err), err);
    check_fact("crash", "extensions.1.step", "20");
    check_plan("crash", FIRST + 2 * MORE, 2 * MORE, FIRST + 2 * MORE, 1);
    bj_run *run = case_open("crash");
    CHECK(bj_run_epoch(run, FIRST + MORE + 1).lr == s->lr); /* the end of the warm-up */
    bj_run_free(run);
    case_remove("crash");
}

/* ------------------------------------------------------------------------------- rejected input */

/* Replaces a text in the manifest of the run "half". */
static void write_manifest(const char *find, const char *replace) {
    char path[CASE_PATH], copy[8192];
    size_t size;
    bj_error err = {0};
    char *text = case_read(&size, "half", "manifest.json");
    const size_t length = strlen(find);
    size_t at = 0;
    while (at < size && strncmp(text + at, find, length)) at++;
    CHECK(at < size);
    snprintf(copy, sizeof copy, "%.*s%s%s", (int)at, text, replace, text + at + length);
    CHECK_OK(bj_file_write(case_path(path, "half/manifest.json"), copy, strlen(copy), &err), err);
    bj_free(text);
}

static void test_refusals(const bj_settings *s) {
    bj_run_report report;
    bj_run *run;
    char dir[CASE_PATH];
    bj_error err = {0};
    expect(s, "nowhere", 3, BJ_EARG, "nowhere: contains no run to extend");
    CHECK(!case_exists("nowhere", "."));
    CHECK_OK(case_train(&report, s, "half", 0, 1, &(case_stop){.at = 6}, &err), err);
    expect(
        s, "half", 3, BJ_EARG,
        "the run is not finished (epoch 0 of 2), and only a finished run can be extended\nhint: ");
    CHECK_OK(case_train(&report, s, "half", 1, 1, NULL, &err), err);
    expect(s, "half", 1, BJ_EARG,
           "1 epochs has 4 updates, expected more than the 4 updates of the warm-up");
    CHECK(case_exists("half", "result.json") && case_same_run("half", "base"));
    CHECK_OK(extend(&report, s, "half", MORE, 1, &(case_stop){.at = 2}, &err), err);
    expect(s, "half", MORE + 1, BJ_EARG, "the run is not finished (epoch 2 of 5)");
    const bj_settings other = case_settings("fullset", "train.epochs=5");
    expect(&other, "half", MORE, BJ_EMISMATCH, "train.epochs was '2' and is now '5'");
    /* Manifests that no run writes. */
    static const char *const bad[] = {"\"step\": 6", "\"step\": 0", "\"step\": 80", "\"step\": -8"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_manifest("\"step\": 8", bad[i]);
        expect(s, "half", 0, BJ_EFORMAT, "manifest.json: extensions.0 adds 3 epochs after update ");
        CHECK(bj_run_open(&run, case_path(dir, "half"), &err) == BJ_EFORMAT);
        write_manifest(bad[i], "\"step\": 8");
    }
    CHECK_OK(extend(&report, s, "half", 0, 1, NULL, &err), err);
    CHECK(case_same_run("ref", "half"));
    case_remove("half");
}

/* Tests that patience counts from the beginning of the extension. */
static void test_patience(void) {
    const bj_settings s =
        case_settings("fullset", "train.epochs=40 train.patience=2 optim.lr=0.05 train.warmup=0");
    bj_run_report report;
    bj_error err = {0};
    const bj_run_report first = case_run(&s, "patient");
    CHECK_MSG(first.epochs < 40, "%d", first.epochs);
    check_plan("patient", 40, 0, first.epochs, 1);
    CHECK_OK(extend(&report, &s, "patient", 10, 1, NULL, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.epochs >= first.epochs + 2);
    check_plan("patient", first.epochs + 10, 10, report.epochs, 1);
    case_remove("patient");
}

/* Tests the other schedules with a warm-up in updates, by the last learning rate of each epoch. */
static void test_schedules(void) {
    static const struct {
        const char *more;
        double last[FIRST + MORE]; /* times optim.lr */
    } cases[] = {
        {"train.schedule=linear train.warmup_updates=2", {5 / 6., 1 / 6., .9, .5, .1}},
        {"train.schedule=trapezoid train.warmup_updates=2 train.decay=0.5",
         {1, .25, 1, 5 / 6., 1 / 6.}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bj_settings s = case_settings("fullset", cases[i].more);
        bj_run_report report;
        bj_error err = {0};
        case_run(&s, "other");
        CHECK_OK(extend(&report, &s, "other", MORE, 1, NULL, &err), err);
        bj_run *run = case_open("other");
        for (int e = 1; e <= FIRST + MORE; e++)
            CHECK_NEAR(bj_run_epoch(run, e).lr, cases[i].last[e - 1] * s.lr, 1e-15);
        bj_run_free(run);
        case_remove("other");
    }
}

static void test_allocations(const bj_settings *s) {
    bj_run_report report;
    bj_error err = {0};
    case_run(s, "full");
    const long live = bj_alloc_live();
    int failed = 0;
    bj_status status = BJ_ENOMEM;
    for (long n = 0; status != BJ_OK && n < 100000 && test_failed < 20; n++) {
        bj_alloc_fail_after(n);
        status = extend(&report, s, "full", MORE, 1, &(case_stop){.at = 1}, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_ENOMEM || status == BJ_OK, "allocation %ld: %s", n, err.message);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld: %ld blocks", n, bj_alloc_live() - live);
        failed += status == BJ_ENOMEM;
    }
    CHECK_MSG(failed > 100, "%d", failed);
    CHECK_OK(extend(&report, s, "full", 0, 1, NULL, &err), err);
    CHECK(case_same_run("ref", "full"));
    case_remove("full");
}

int main(void) {
    case_begin();
    const bj_settings s = case_settings("fullset", "train.epochs=2");
    bj_run_report report;
    bj_error err = {0};
    case_run(&s, "base");
    case_run(&s, "ref");
    CHECK_OK(extend(&report, &s, "ref", MORE, 1, NULL, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.epochs == FIRST + MORE && report.step == 20);
    test_reference(&s);
    test_files();
    test_stops(&s);
    test_crashes(&s);
    test_refusals(&s);
    test_patience();
    test_schedules();
    test_allocations(&s);
    return test_report("extend");
}
