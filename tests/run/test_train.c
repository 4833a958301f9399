/* test_train.c - training runs: what they leave, their bits, stopping, going on, failing.
 *
 * Runs of a tiny model on 120 simulated scenes: four updates an epoch, one batch of development
 * scenes. Reference for everything that is interrupted: the files of a run that was not.
 * tests/cli/train_kill.sh does the same with kill -9.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>

#include "core/json.h"
#include "run/epoch_fields.h"
#include "run_case.h"

/* ----------------------------------------------------------------------------------------- bits */

static void test_bits(void) {
    const bj_settings s = case_settings("fullset", "train.epochs=3");
    bj_run_report report;
    bj_error err = {0};
    report = case_run(&s, "ref");
    CHECK(report.outcome == BJ_RUN_DONE && report.epochs == 3 && report.step == 12);
    CHECK(report.resumed_at == -1 && report.fit == CASE_FIT && report.fit + report.dev == CASE_SCENES);
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

/* As TensorBoard reads it: a start forgets what was said about its step and later ones. */
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

/* The steps that TensorBoard shows; returns the number of files. */
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

/* Every epoch of the run is there once, in order. */
static int events_complete(const char *run, int epochs) {
    told t;
    CHECK(read_events(&t, run) > 0);
    int good = t.count == epochs + 1;
    for (int i = 0; good && i <= epochs; i++) good = t.steps[i] == 4 * i;
    return good;
}

/* ------------------------------------------------------------------------------------- stopping */

/* The same history but for what the clock says. */
static int same_rows(const char *a, const char *b) {
    bj_run *ra = case_open(a), *rb = case_open(b);
    int same = bj_run_epochs(ra) == bj_run_epochs(rb);
    for (int i = 0; same && i < bj_run_epochs(ra); i++) {
        const bj_epoch x = bj_run_epoch(ra, i), y = bj_run_epoch(rb, i);
        for (int f = 0; same && f < bj_epoch_field_count; f++) {
            const bj_epoch_field *field = &bj_epoch_fields[f];
            if (!strcmp(field->path, "wall_s") || !strcmp(field->path, "scenes_per_s")) continue;
            const size_t size = field->type == BJ_EPOCH_STEP   ? sizeof(int64_t)
                                : field->type == BJ_EPOCH_REAL ? sizeof(double)
                                                               : sizeof(int);
            same = !memcmp((const char *)&x + field->offset, (const char *)&y + field->offset, size);
            if (!same) fprintf(stderr, "epoch %d: %s differs\n", x.epoch, field->path);
        }
    }
    bj_run_free(ra);
    bj_run_free(rb);
    return same;
}

static int same_run(const char *a, const char *b) {
    return case_same(a, b) && same_rows(a, b) &&
           case_same_file(a, b, "config.resolved.json");
}

/* Once at every call of the progress function, whatever the run is doing then. */
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
        CHECK_MSG(same_run("ref", "stop"), "stopped at call %d, %s", at, stop.phase);
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
    CHECK(same_run("ref", "stop") && events_complete("stop", 3));

    /* A finished run is left as it is. */
    CHECK_OK(case_train(&report, &s, "stop", 1, 1, NULL, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.epochs == 3 && report.step == 12);
    CHECK(report.best.dev.traj_es > 0 && report.fit == CASE_FIT);
    told t;
    CHECK(read_events(&t, "stop") == processes);
    case_remove("stop");
}

/* "save and go on": a checkpoint appears, and nothing else changes. */
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
    CHECK(same_run("ref", "save"));
    case_remove("save");

    /* A checkpoint after every update changes nothing but the setting that asks for it. */
    const bj_settings often = case_settings("fullset", "train.epochs=3 train.save_minutes=0");
    case_run(&often, "save");
    CHECK(same_rows("ref", "save"));
    case_remove("save");
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

    /* Killed after metrics.jsonl and before ckpt/last of the next epoch: it is ahead. */
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
    CHECK(same_run("ref", "crash") && events_complete("crash", 3));

    /* Killed between two renames, where a system cannot exchange folders (core/folder.h). */
    case_remove("crash");
    stop = (case_stop){.at = 8};
    CHECK_OK(case_train(&report, &s, "crash", 0, 1, &stop, &err), err);
    move("crash", "ckpt/last", "ckpt/.last.old");
    CHECK_OK(case_train(&report, &s, "crash", 1, 1, NULL, &err), err);
    CHECK(report.resumed_at == 2 && same_run("ref", "crash"));

    /* Rows that ckpt/last was written after are gone. */
    case_remove("crash");
    CHECK_OK(case_train(&report, &s, "crash", 0, 1, &(case_stop){.at = 8}, &err), err);
    case_remove("crash/metrics.jsonl");
    CHECK(case_train(&report, &s, "crash", 1, 1, NULL, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "metrics.jsonl has 0 epochs, expected 2");
    case_remove("crash");
}

/* Pauses do not count, work that was lost does. */
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

/* ------------------------------------------------------------------------------------- refusals */

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

/* expect CODE PART of the message, when the run "held" is resumed in another way */
static void expect(const bj_settings *s, const bj_run_options *o, bj_status code, const char *part) {
    bj_run_report report;
    bj_error err = {0};
    const bj_status status = bj_run_train(&report, s, o, &err);
    CHECK_MSG(status == code, "%d, expected %d: %s", (int)status, (int)code, err.message);
    CHECK_CONTAINS(err.message, part);
}

static void test_refusals(void) {
    const bj_settings s = case_settings("fullset", "");
    char data[CASE_PATH], other[CASE_PATH], dir[CASE_PATH], path[CASE_PATH];
    bj_run_options o = {.data = case_path(data, "data.bjc"),
                        .dir = case_path(dir, "held"),
                        .threads = 1};
    bj_run_report report;
    bj_error err = {0};
    case_cache("other.bjc", 4, CASE_SCENES);
    CHECK_OK(case_train(&report, &s, "held", 0, 1, &(case_stop){.at = 5}, &err), err);
    expect(&s, &o, BJ_EARG, "holds a run already");
    o.resume = 1;
    bj_settings t = case_settings("mdn", "");
    expect(&t, &o, BJ_EMISMATCH, "arm is 'fullset', now it is 'mdn'");
    t = case_settings("fullset", "seed=5");
    expect(&t, &o, BJ_EMISMATCH, "seed is '0', now it is '5'");
    t = case_settings("fullset", "optim.lr=1e-3");
    expect(&t, &o, BJ_EMISMATCH, "optim.lr is '0.0003', now it is '0.001'");
    o.data = case_path(other, "other.bjc");
    expect(&s, &o, BJ_EMISMATCH, "other data: data.digest is");
    o.data = data;
    o.dev = other;
    expect(&s, &o, BJ_EMISMATCH, "other development data: dev_data.digest is missing");
    o.dev = NULL;
    o.isa = "c";
    bj_run *held = case_open("held");
    const int is_c = !strcmp(bj_run_fact(held, "isa"), "c");
    bj_run_free(held);
    if (!is_c) expect(&s, &o, BJ_EMISMATCH, "isa is");
    o.isa = NULL;
    /* None of it did any harm. */
    expect(&s, &(bj_run_options){.data = data, .dir = dir, .threads = 1}, BJ_EARG, "held: holds");
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE);

    /* Checkpoints of nobody knows what. */
    case_remove("held/manifest.json");
    expect(&s, &o, BJ_EARG, "holds checkpoints, but no manifest.json");
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

    /* Folders that cannot be, data that is not there. */
    o = (bj_run_options){.data = data, .dir = case_path(path, "data.bjc/run"), .threads = 1};
    expect(&s, &o, BJ_EIO, "data.bjc/run: cannot create the folder");
    o = (bj_run_options){.data = case_path(other, "none.bjc"),
                         .dir = case_path(path, "none"),
                         .threads = 1};
    expect(&s, &o, BJ_EIO, "none.bjc");
    CHECK(!case_exists("none", "."));
    case_cache("few.bjc", 3, 2); /* none of them is for development */
    o.data = case_path(other, "few.bjc");
    expect(&s, &o, BJ_EARG, "few.bjc: nothing to choose a checkpoint by");
    CHECK(!case_exists("none", "."));
    o.dev = data; /* with development scenes of their own */
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.fit == 2 && report.dev == CASE_SCENES);
    CHECK(bj_run_open(&held, case_path(path, "nowhere"), &err) == BJ_EIO && !held);
    CHECK_CONTAINS(err.message, "not a run");
    case_remove("none");
}

/* ----------------------------------------------------------------------------------- divergence */

/* What is in ckpt/last can be loaded, which no number that is not finite survives. */
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

static int count_lines(const char *run, const char *file) {
    size_t size;
    int lines = 0;
    char *text = case_read(&size, run, file);
    for (size_t i = 0; i < size; i++) lines += text[i] == '\n';
    bj_free(text);
    return lines;
}

/* Weights that grow a hundredfold with every update: how = settings that say how many there are. */
static void diverge(const char *arm, const char *how, const char *part, int step) {
    char more[256], facts[64];
    snprintf(more, sizeof more, "optim.lr=1 optim.weight_decay=100 train.warmup=0 train.epochs=90 %s",
             how);
    const bj_settings s = case_settings(arm, more);
    for (int resume = 0; resume < 2; resume++) {
        bj_run_report report;
        bj_error err = {0};
        const bj_status status = case_train(&report, &s, "far", resume, 1, NULL, &err);
        CHECK_MSG(status == BJ_ENONFINITE, "%d: %s", (int)status, err.message);
        CHECK_CONTAINS(err.message, part);
        CHECK_CONTAINS(err.message, "ckpt/last");
        check_finite_checkpoint("far");
        CHECK(count_lines("far", "failures.jsonl") == resume + 1);
        size_t size;
        char *text = case_read(&size, "far", "failures.jsonl");
        CHECK_CONTAINS(text, "{\"schema\":\"branchjepa.failure/1\",\"type\":\"failure\",\"step\":");
        CHECK_CONTAINS(text, part);
        snprintf(facts, sizeof facts, "\"step\":%d,", step);
        if (step >= 0) CHECK_CONTAINS(text, facts);
        bj_free(text);
        CHECK(!case_exists("far", "result.json"));
    }
    case_remove("far");
}

static void test_divergence(void) {
    /* In an update: four of them in an epoch. */
    diverge("fullset", "", "epoch 1, update ", -1);
    diverge("fullset", "", " (scenario 0", -1);
    /* In an evaluation: one update in an epoch, and each makes a step that the next meets first. */
    diverge("fullset", "train.batch=256", "development scenes (scenario 0", -1);
    diverge("anchor-a", "train.batch=256", "development scenes (scenario 0", -1);
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
        CHECK_MSG(same_run("whole", "poor"), "allocation %ld", n);
        case_remove("poor");
    }
    CHECK_MSG(failures >= 30 && resumed >= 5, "%d failures, %d resumed", failures, resumed);
    case_remove("whole");
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
    test_open();
    test_stops();
    test_save();
    test_crashes();
    test_wall();
    test_refusals();
    test_divergence();
    test_allocations();
    case_end();
    return test_report("train");
}
