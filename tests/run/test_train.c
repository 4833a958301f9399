/* test_train.c - tests training runs: reproducible bits, stopping, resuming and crashes.
 *
 * A tiny model is trained on 120 simulated scenes with four updates per epoch and one batch of
 * development scenes. The reference is a training loop without checkpoints and logging. Interrupted
 * runs are compared with an uninterrupted run. tests/cli/train_kill.sh does the same with kill -9.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>

#include "run_case.h"

/* ----------------------------------------------------------------------------------------- bits */

static void test_bits(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    bj_run_report report;
    bj_error err = {0};
    report = case_run(&s, "ref");
    CHECK(report.outcome == BJ_RUN_DONE && report.epochs == 3 && report.step == 12);
    CHECK(report.resumed_at == -1);
    CHECK(report.fit == CASE_FIT && report.fit + report.dev == CASE_SCENES);
    CHECK(report.best.best == 1 && report.best.epoch > 0);
    CHECK_OK(case_train(&report, &s, "again", 0, 1, NULL, &err), err);
    CHECK(case_same("ref", "again"));
    case_remove("again");
    CHECK_OK(case_train(&report, &s, "threads", 0, 3, NULL, &err), err);
    CHECK(case_same("ref", "threads"));
    case_remove("threads");
    const bj_settings other = case_settings("fullset", "train.epochs=3 seed=1");
    case_run(&other, "other");
    CHECK(!case_same_file("ref", "other", "ckpt/last/model.safetensors"));
    case_remove("other");
}

/* ------------------------------------------------------------------------------------ reference */

/* Reimplements the training loop without checkpoints and logging: applies the updates in order and
 * averages over the epoch. */
static void train_alone(bj_model *model, bj_epoch *means, const bj_settings *s, bj_cache *cache) {
    const bj_trainer_options how = {
        .objective = s->objective, .optim = s->optim, .max_batch = s->batch, .threads = 1};
    const bj_loader_options order = {
        .part = BJ_PART_FIT, .batch = s->batch, .shuffle = 1, .seed = s->seed, .needs_future = 1};
    bj_trainer *trainer = NULL;
    bj_loader *loader = NULL;
    bj_error err = {0};
    CHECK_OK(bj_trainer_create(&trainer, model, &how, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    if (test_failed) exit(test_report("train_alone"));
    const int64_t steps = bj_loader_steps(loader);
    for (int64_t i = 0; i < steps * s->epochs; i++) {
        const bj_batch *batch;
        bj_step_report report;
        bj_epoch *mean = &means[i / steps + 1];
        const bj_schedule cosine = {
            .base = s->lr, .updates = (long)steps * s->epochs, .warmup = (long)steps * s->warmup};
        mean->lr = bj_lr_at(&cosine, (long)i);
        CHECK_OK(bj_loader_batch(&batch, NULL, loader, i / steps, i % steps, &err), err);
        CHECK_OK(bj_trainer_step(trainer, batch, mean->lr, &report, &err), err);
        mean->train.total += report.loss.total / (double)steps;
        mean->train.latent += report.loss.latent / (double)steps;
        mean->train.rec += report.loss.rec / (double)steps;
        mean->grad_norm += report.grad_norm / (double)steps;
    }
    bj_loader_free(loader);
    bj_trainer_free(trainer);
}

/* Checks that a row contains the exchange losses of the model on all development scenes. */
static void check_exchange(const bj_epoch *row, const bj_model *model, const bj_cache *cache) {
    const bj_loader_options dev = {.part = BJ_PART_DEV, .batch = CASE_SCENES, .needs_future = 1};
    const bj_exchange_options how = {.max_batch = 3, .threads = 2};
    bj_exchange_values values = {0};
    bj_loader *loader = NULL;
    const bj_batch *batch;
    bj_error err = {0};
    CHECK_OK(bj_loader_create(&loader, cache, &dev, &err), err);
    CHECK_OK(bj_loader_batch(&batch, NULL, loader, 0, 0, &err), err);
    CHECK_OK(bj_exchange_measure(&values, model, batch->scenes, batch->B, &how, &err), err);
    CHECK(values.scenes == CASE_SCENES - CASE_FIT && values.map != 0 && values.focal != 0);
    CHECK(!memcmp(&values, &row->exchange, sizeof values));
    bj_loader_free(loader);
}

/* Tests that an evaluation of ckpt/last gives the values of the last epoch. */
static void check_evaluation(const bj_run *run, const bj_model *model, const bj_cache *cache) {
    const bj_epoch row = bj_run_epoch(run, bj_run_epochs(run) - 1);
    const bj_loader_options dev = {.part = BJ_PART_DEV, .batch = 3, .needs_future = 1};
    const bj_evaluator_options how = {.max_batch = 3, .threads = 1};
    char dir[CASE_PATH];
    bj_target *target = NULL;
    bj_evaluator *evaluator = NULL;
    bj_loader *loader = NULL;
    bj_latent_health health;
    bj_error err = {0};
    CHECK_OK(bj_target_load(&target, case_path(dir, "ref/ckpt/last"), &err), err);
    CHECK_OK(bj_evaluator_create(&evaluator, model, target, &how, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &dev, &err), err);
    if (test_failed) exit(test_report("check_evaluation"));
    for (int64_t i = 0; i < bj_loader_steps(loader); i++) {
        const bj_batch *batch;
        CHECK_OK(bj_loader_batch(&batch, NULL, loader, 0, i, &err), err);
        CHECK_OK(bj_evaluator_add(evaluator, batch, NULL, &err), err);
    }
    const bj_metric_values values = bj_evaluator_values(evaluator);
    CHECK(!memcmp(&values, &row.dev, sizeof values));
    CHECK_OK(bj_evaluator_health(&health, evaluator, &err), err);
    CHECK(!memcmp(&health, &row.health, sizeof health));
    double usage[BJ_MAX_ATOMS], least = 1, most = 0;
    bj_evaluator_usage(usage, evaluator);
    for (int k = 0; k < 6; k++) {
        least = fmin(least, usage[k]);
        most = fmax(most, usage[k]);
    }
    CHECK(row.usage_least == least && row.usage_most == most && least < most);
    const bj_encoder_values encoder = bj_evaluator_encoder(evaluator);
    CHECK(!memcmp(&encoder, &row.encoder, sizeof encoder));
    bj_loader_free(loader);
    check_exchange(&row, model, cache);
    bj_evaluator_free(evaluator);
    bj_target_free(target);
}

static void test_reference(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    char path[CASE_PATH];
    bj_cache *cache = NULL;
    bj_model *model = NULL, *saved = NULL;
    bj_epoch means[4] = {{0}};
    bj_error err = {0};
    CHECK_OK(bj_cache_open(&cache, case_path(path, "data.bjc"), 0, &err), err);
    CHECK_OK(bj_model_load(&saved, case_path(path, "ref/ckpt/last/model.safetensors"), &err), err);
    if (test_failed) exit(test_report("test_reference"));
    CHECK_OK(bj_model_create(&model, bj_model_arch(saved), s.seed, &err), err);
    train_alone(model, means, &s, cache);
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor a = bj_model_tensor(model, i), b = bj_model_tensor(saved, i);
        CHECK_MSG(a.size == b.size && !memcmp(a.data, b.data, a.size * sizeof *a.data), "%s",
                  a.name);
    }
    bj_run *run = case_open("ref");
    for (int e = 1; e <= 3; e++) {
        const bj_epoch row = bj_run_epoch(run, e);
        CHECK(row.epoch == e && row.step == 4 * e && row.lr == means[e].lr);
        CHECK_NEAR(row.train.total, means[e].train.total, 1e-9);
        CHECK_NEAR(row.train.latent, means[e].train.latent, 1e-9);
        CHECK_NEAR(row.train.rec, means[e].train.rec, 1e-9);
        CHECK_NEAR(row.grad_norm, means[e].grad_norm, 1e-9);
        CHECK(row.scenes_per_s > 0);
    }
    check_evaluation(run, saved, cache);
    bj_run_free(run);
    bj_model_free(model);
    bj_model_free(saved);
    bj_cache_free(cache);
}

/* --------------------------------------------------------------------------------------- events */

static uint64_t varint(const unsigned char **at) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        const unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return value;
    }
}

typedef struct told {
    int64_t steps[64];
    int count;
} told;

/* Reads events like TensorBoard, for which a START event discards its step and later steps in
 * earlier files. */
static void read_event(told *t, const unsigned char *at, const unsigned char *end) {
    int64_t step = 0;
    int summary = 0, start = 0;
    while (at < end) {
        const uint64_t key = varint(&at);
        if (key == (1 << 3 | 1)) at += 8;
        else if (key == 2 << 3) step = (int64_t)varint(&at);
        else {
            const uint64_t size = varint(&at);
            at += size;
            summary |= key >> 3 == 5;
            start |= key >> 3 == 7;
        }
    }
    CHECK(at == end);
    int kept = 0;
    for (int i = 0; start && i < t->count; i++)
        if (t->steps[i] < step) t->steps[kept++] = t->steps[i];
    if (start) t->count = kept;
    if (summary && t->count < 64) t->steps[t->count++] = step;
}

static int is_event_file(const struct dirent *entry) {
    return !strncmp(entry->d_name, "events.out.tfevents.", 20);
}

/* Lists the steps that TensorBoard shows and returns the number of files. */
static int read_events(told *t, const char *run) {
    char dir[CASE_PATH];
    struct dirent **list;
    const int count = scandir(case_path(dir, run), &list, is_event_file, alphasort);
    *t = (told){.count = 0};
    for (int i = 0; i < count; i++) {
        size_t size;
        char *bytes = case_read(&size, run, list[i]->d_name);
        for (size_t at = 0; at < size;) {
            uint64_t length = 0;
            for (int b = 0; b < 8; b++)
                length |= (uint64_t)(unsigned char)bytes[at + (size_t)b] << (8 * b);
            if (length > size - at - 16) exit(test_report("read_events"));
            read_event(t, (unsigned char *)bytes + at + 12,
                       (unsigned char *)bytes + at + 12 + length);
            at += length + 16;
        }
        bj_free(bytes);
        free(list[i]);
    }
    if (count >= 0) free(list);
    return count;
}

/* Checks that every epoch of the run occurs once, in order. */
static int events_complete(const char *run, int epochs) {
    told t;
    CHECK(read_events(&t, run) > 0);
    int good = t.count == epochs + 1;
    for (int i = 0; good && i <= epochs; i++) good = t.steps[i] == 4 * i;
    return good;
}

/* ------------------------------------------------------------------------------------- stopping */

/* Tests a stop at every call of the progress function. */
static void test_stops(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    int phases[3] = {0};
    for (int at = 1, more = 1; more; at++) {
        bj_run_report report;
        bj_error err = {0};
        case_stop stop = {.at = at};
        CHECK_OK(case_train(&report, &s, "stop", 0, 1, &stop, &err), err);
        more = stop.calls == at;
        if (more) {
            phases[0] += !strcmp(stop.phase, "train");
            phases[1] += !strcmp(stop.phase, "evaluate");
            phases[2] += !strcmp(stop.phase, "save");
            CHECK_MSG(report.outcome == BJ_RUN_STOPPED, "stopped at call %d", at);
            CHECK(!case_exists("stop", "result.json"));
            CHECK_OK(case_train(&report, &s, "stop", 1, 1, NULL, &err), err);
            CHECK(report.resumed_at >= 0);
        }
        CHECK(report.outcome == BJ_RUN_DONE);
        CHECK_MSG(case_same_run("ref", "stop"), "stopped at call %d, %s", at, stop.phase);
        CHECK_MSG(events_complete("stop", 3), "stopped at call %d, %s", at, stop.phase);
        case_remove("stop");
        if (test_failed > 20) return;
    }
    CHECK_MSG(phases[0] == 12 && phases[1] == 4 && phases[2] == 4, "%d, %d, %d", phases[0],
              phases[1], phases[2]);

    /* One call a process. */
    bj_run_report report = {.outcome = BJ_RUN_STOPPED};
    bj_error err = {0};
    int processes = 0;
    while (report.outcome == BJ_RUN_STOPPED && processes++ < 100) {
        case_stop stop = {.at = 2}; /* an evaluation that is stopped begins anew */
        CHECK_OK(case_train(&report, &s, "stop", 1, 1, &stop, &err), err);
    }
    CHECK_MSG(processes >= 8 && processes < 100, "%d processes", processes);
    CHECK(case_same_run("ref", "stop") && events_complete("stop", 3));

    /* A finished run is left as it is. */
    CHECK_OK(case_train(&report, &s, "stop", 1, 1, NULL, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.epochs == 3 && report.step == 12);
    CHECK(report.best.dev.traj_es > 0 && report.fit == CASE_FIT);
    told t;
    CHECK(read_events(&t, "stop") == processes);
    case_remove("stop");
}

/* Tests the answer "save and go on". A checkpoint is written, and nothing else changes. */
typedef struct watch {
    int calls, saved;
    ino_t before;
} watch;

static ino_t last_checkpoint(const char *run) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    struct stat info;
    snprintf(path, sizeof path, "%s/ckpt/last", case_path(dir, run));
    return stat(path, &info) ? 0 : info.st_ino;
}

static bj_run_answer save_at_six(void *context, const bj_run_progress *p) {
    watch *w = context;
    w->calls++;
    if (w->calls == 6) {
        CHECK(!strcmp(p->phase, "train") && p->step == 4 && p->epoch == 1);
        w->before = last_checkpoint("save");
        return BJ_RUN_SAVE;
    }
    if (w->calls == 7) w->saved = last_checkpoint("save") != w->before;
    return BJ_RUN_GO_ON;
}

static void test_save(void) {
    char data[CASE_PATH], dir[CASE_PATH];
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    watch w = {0};
    const bj_run_options options = {.data = case_path(data, "data.bjc"),
                                    .dir = case_path(dir, "save"),
                                    .threads = 1,
                                    .progress = save_at_six,
                                    .context = &w};
    bj_run_report report;
    bj_error err = {0};
    CHECK_OK(bj_run_train(&report, &s, &options, &err), err);
    CHECK(w.saved);
    CHECK(case_same_run("ref", "save"));
    case_remove("save");

    /* Tests that writing a checkpoint after every update changes only the setting that requests
     * it. */
    const bj_settings often = case_settings("fullset", "train.epochs=3 train.save_minutes=0");
    case_run(&often, "save");
    CHECK(case_same_rows("ref", "save"));
    case_remove("save");
}

/* --------------------------------------------------------------------------------- regularizers */

/* Tests that a run with SIGReg and VICReg resumes within an epoch with the same bits, and that the
 * history lists these terms only for runs that have them. */
static void test_regularizers(void) {
    const bj_settings s =
        case_settings("fullset", "train.epochs=2 loss.sigreg=0.05 loss.sigreg_slices=21 "
                                 "loss.vicreg_variance=0.6 loss.vicreg_covariance=0.9");
    bj_run_report report = case_run(&s, "reg");
    bj_error err = {0};
    CHECK(report.outcome == BJ_RUN_DONE);
    CHECK_OK(case_train(&report, &s, "threads", 0, 3, NULL, &err), err);
    CHECK(case_same_run("reg", "threads"));
    case_remove("threads");
    int within = 0; /* stops within an epoch, where sums must be saved */
    for (int at = 3; at <= 7; at++) {
        case_stop stop = {.at = at};
        CHECK_OK(case_train(&report, &s, "stop", 0, 1, &stop, &err), err);
        within += !strcmp(stop.phase, "train");
        CHECK_OK(case_train(&report, &s, "stop", 1, 1, NULL, &err), err);
        CHECK_MSG(case_same_run("reg", "stop"), "stopped at call %d, %s", at, stop.phase);
        case_remove("stop");
    }
    CHECK(within >= 3);
    bj_run *run = case_open("reg"), *plain = case_open("ref");
    const bj_loss train = bj_run_epoch(run, 2).train;
    CHECK(train.sigreg > 0 && train.vicreg_variance > 0 && train.vicreg_covariance > 0);
    CHECK(isnan(bj_run_epoch(plain, 2).train.sigreg));
    bj_run_free(run);
    bj_run_free(plain);
    size_t size;
    char *text = case_read(&size, "ref", "metrics.jsonl");
    CHECK(text && !strstr(text, "sigreg") && !strstr(text, "vicreg"));
    bj_free(text);
    case_remove("reg");
}

/* ------------------------------------------------------------------------------ mixed precision */

/* Tests that the manifest contains the precision, that the result of a mixed run depends neither on
 * the number of threads nor on a stop, and that a resume in single precision is rejected. */
static void check_mixed(const char *arm) {
    const bj_settings s = case_settings(arm, "train.precision=mixed"),
                      single = case_settings(arm, "");
    bj_run_report report = case_run(&s, "mixed");
    bj_error err = {0};
    CHECK(report.outcome == BJ_RUN_DONE);
    CHECK_OK(case_train(&report, &s, "other", 0, 3, NULL, &err), err);
    CHECK_MSG(case_same_run("mixed", "other"), "%s: three threads", arm);
    case_remove("other");
    CHECK_OK(case_train(&report, &s, "other", 0, 1, &(case_stop){.at = 4}, &err), err);
    CHECK(case_train(&report, &single, "other", 1, 1, NULL, &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "train.precision was 'mixed' and is now 'single'");
    CHECK_OK(case_train(&report, &s, "other", 1, 2, NULL, &err), err);
    CHECK_MSG(case_same_run("mixed", "other"), "%s: stopped", arm);
    case_remove("other");
    case_run(&single, "other");
    CHECK_MSG(!case_same_file("mixed", "other", "ckpt/last/model.safetensors"),
              "%s: the operands are not rounded", arm);
    bj_run *run = case_open("mixed"), *other = case_open("other");
    const char *precision = bj_run_fact(run, "precision");
    CHECK_MSG(precision && !strcmp(precision, "mixed"), "%s: precision in the manifest", arm);
    CHECK(!bj_run_fact(other, "precision"));
    bj_run_free(run);
    bj_run_free(other);
    case_remove("mixed");
    case_remove("other");
}

static void test_mixed(void) {
    static const char *const arms[] = {"fullset",        "uniform",     "softwta",   "sinkhorn",
                                       "specialization", "mdn",         "mdn-usage", "point",
                                       "outputonly",     "decoded-only"};
    for (size_t i = 0; i < sizeof arms / sizeof *arms; i++) check_mixed(arms[i]);
}

/* -------------------------------------------------------------------------------------- crashes */

static void move(const char *run, const char *from, const char *to) {
    char dir[CASE_PATH], a[BJ_RUN_FILE], b[BJ_RUN_FILE];
    snprintf(a, sizeof a, "%s/%s", case_path(dir, run), from);
    snprintf(b, sizeof b, "%s/%s", dir, to);
    CHECK_MSG(rename(a, b) == 0, "%s to %s", a, b);
}

static void test_crashes(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    bj_run_report report;
    bj_error err = {0};

    /* Tests a kill between writing metrics.jsonl and writing ckpt/last of the next epoch. */
    case_stop stop = {.at = 8}; /* "save" of epoch 1 */
    CHECK_OK(case_train(&report, &s, "crash", 0, 1, &stop, &err), err);
    CHECK(!strcmp(stop.phase, "save") && report.epochs == 1);
    move("crash", "ckpt/last", "kept");
    case_stop later = {.at = 8};
    CHECK(case_train(&report, &s, "crash", 1, 1, &later, &err) == BJ_OK);
    CHECK(report.resumed_at == -1); /* there was no checkpoint: from the beginning */
    stop = (case_stop){.at = 6};
    CHECK_OK(case_train(&report, &s, "crash", 1, 1, &stop, &err), err);
    CHECK(!strcmp(stop.phase, "save") && report.epochs == 2);
    case_remove("crash/ckpt/last");
    move("crash", "kept", "ckpt/last");
    CHECK_OK(case_train(&report, &s, "crash", 1, 1, NULL, &err), err);
    CHECK(report.resumed_at == 2);
    CHECK(case_same_run("ref", "crash") && events_complete("crash", 3));

    /* Tests a kill between two renames on a system that cannot exchange folders (core/folder.h). */
    case_remove("crash");
    stop = (case_stop){.at = 8};
    CHECK_OK(case_train(&report, &s, "crash", 0, 1, &stop, &err), err);
    move("crash", "ckpt/last", "ckpt/.last.old");
    CHECK_OK(case_train(&report, &s, "crash", 1, 1, NULL, &err), err);
    CHECK(report.resumed_at == 2 && case_same_run("ref", "crash"));

    /* Rows that ckpt/last was written after are gone. */
    case_remove("crash");
    CHECK_OK(case_train(&report, &s, "crash", 0, 1, &(case_stop){.at = 8}, &err), err);
    case_remove("crash/metrics.jsonl");
    CHECK(case_train(&report, &s, "crash", 1, 1, NULL, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "metrics.jsonl has 0 epochs, expected 2");
    case_remove("crash");
}

/* Tests that the recorded time excludes pauses and includes lost work. */
static void test_wall(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    bj_run_report report;
    bj_error err = {0};
    CHECK_OK(case_train(&report, &s, "wall", 0, 1, &(case_stop){.at = 9}, &err), err);
    snprintf(path, sizeof path, "%s/status.json", case_path(dir, "wall"));
    static const char status[] = "{\"eta_s\":null,\"wall_s\":1000.5}\n";
    CHECK_OK(bj_file_write(path, status, sizeof status - 1, &err), err);
    CHECK_OK(case_train(&report, &s, "wall", 1, 1, NULL, &err), err);
    bj_run *run = case_open("wall");
    CHECK(bj_run_epoch(run, 1).wall_s < 900);
    CHECK(bj_run_epoch(run, 2).wall_s > 1000.5 && bj_run_epoch(run, 2).wall_s < 1900);
    CHECK(bj_run_epoch(run, 3).wall_s > bj_run_epoch(run, 2).wall_s);
    bj_run_free(run);
    case_remove("wall");
}

/* ----------------------------------------------------------------------------------------- open */

static void test_open(void) {
    bj_run *run = case_open("ref");
    char digest[65];
    bj_error err = {0};
    CHECK(bj_run_finished(run) && bj_run_epochs(run) == 4);
    CHECK(!strcmp(bj_run_settings(run)->arm, "fullset") && bj_run_settings(run)->epochs == 3);
    CHECK_OK(bj_settings_digest(digest, bj_run_settings(run), &err), err);
    CHECK(!strcmp(bj_run_fact(run, "settings.sha256"), digest));
    CHECK(!strcmp(bj_run_fact(run, "version"), bj_version()));
    CHECK(bj_run_fact(run, "anchor.sha256") == NULL);
    const int best = bj_run_best(run);
    int least = 1;
    for (int i = 2; i < 4; i++)
        if (bj_run_epoch(run, i).dev.traj_es < bj_run_epoch(run, least).dev.traj_es) least = i;
    CHECK(best == least);
    for (int i = 0; i < 4; i++) CHECK(bj_run_epoch(run, i).best == (i == best));
    CHECK(isnan(bj_run_epoch(run, 0).train.total) && bj_run_epoch(run, 1).train.total > 0);
    bj_run_free(run);
}

int main(void) {
    case_begin();
    test_bits();
    test_reference();
    test_open();
    test_stops();
    test_save();
    test_regularizers();
    test_mixed();
    test_crashes();
    test_wall();
    return test_report("train");
}
