/* run_case.h - a scratch folder with a small cache, and training runs of a tiny model in it. */
#ifndef BJ_TESTS_RUN_CASE_H
#define BJ_TESTS_RUN_CASE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "run/epoch_fields.h"
#include "run/run.h"
#include "support/test.h"

enum { CASE_PATH = 512, CASE_SCENES = 120, CASE_FIT = 110 };

static char case_folder[64];

static inline const char *case_path(char path[CASE_PATH], const char *name) {
    snprintf(path, CASE_PATH, "%s/%s", case_folder, name);
    return path;
}

static int case_remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static inline void case_remove(const char *name) {
    char path[CASE_PATH];
    nftw(case_path(path, name), case_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void case_cache(const char *name, uint64_t seed, int64_t scenes) {
    char path[CASE_PATH];
    bj_error err = {0};
    bj_world_report report;
    const bj_world_options options = {.version = 1, .seed = seed, .scenes = scenes, .jobs = 1};
    CHECK_OK(bj_world_to_cache(&report, case_path(path, name), &options, &err), err);
}

static inline void case_end(void) { case_remove(""); }

/* Creates the scratch folder, in memory if possible, with data.bjc. The cache has CASE_FIT training
 * scenes, and the remaining scenes are for development. The folder is removed when the test
 * ends. */
static inline void case_begin(void) {
    snprintf(case_folder, sizeof case_folder, "%s/test_train.XXXXXX",
             access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(case_folder) || atexit(case_end)) exit(1);
    case_cache("data.bjc", 3, CASE_SCENES);
}

/* ------------------------------------------------------------------------------------- settings */

/* Returns the settings of a tiny model with two epochs, followed by the settings "key=value
 * key=value" of the test case. */
static inline bj_settings case_settings(const char *arm, const char *more) {
    static const char tiny[] =
        "model.embed=8 model.heads=2 model.token_hidden=8 model.latent=8 model.proj_hidden=8 "
        "model.router_hidden=8 model.decoder_hidden=8 model.trunk=8 model.atom_hidden=8 "
        "train.batch=32 train.epochs=2 train.warmup=1 ";
    enum { MOST = 64 };
    char text[2048];
    bj_assignment list[MOST] = {{"arm", arm, "test"}};
    int count = 1;
    bj_settings out;
    bj_error err = {0};
    snprintf(text, sizeof text, "%s%s", tiny, more);
    for (char *word = strtok(text, " "); word && count < MOST; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        if (!equals) exit(1);
        *equals = '\0';
        list[count++] = (bj_assignment){word, equals + 1, "test"};
    }
    const bj_status status = bj_settings_resolve(&out, NULL, list, count, &err);
    CHECK_OK(status, err);
    if (status != BJ_OK) exit(test_report("run_case"));
    return out;
}

/* ------------------------------------------------------------------------------------------ run */

/* Asks the run to stop at the n-th call, counted from 1; 0 means never. */
typedef struct case_stop {
    int at, calls;
    bj_run_answer answer; /* BJ_RUN_GO_ON, the value of a zeroed struct, means BJ_RUN_STOP */
    char phase[16];       /* in which it was asked */
} case_stop;

static bj_run_answer case_progress(void *context, const bj_run_progress *p) {
    case_stop *stop = context;
    if (++stop->calls != stop->at) return BJ_RUN_GO_ON;
    snprintf(stop->phase, sizeof stop->phase, "%s", p->phase);
    return stop->answer == BJ_RUN_GO_ON ? BJ_RUN_STOP : stop->answer;
}

/* Trains in the folder `name`. stop may be NULL. */
static inline bj_status case_train(bj_run_report *report, const bj_settings *settings,
                                   const char *name, int resume, int threads, case_stop *stop,
                                   bj_error *err) {
    char data[CASE_PATH], dir[CASE_PATH];
    const bj_run_options options = {.data = case_path(data, "data.bjc"),
                                    .dir = case_path(dir, name),
                                    .resume = resume,
                                    .threads = threads,
                                    .progress = stop ? case_progress : NULL,
                                    .context = stop};
    return bj_run_train(report, settings, &options, err);
}

/* A fresh run to its end. */
static inline bj_run_report case_run(const bj_settings *settings, const char *name) {
    bj_run_report report;
    bj_error err = {0};
    CHECK_OK(case_train(&report, settings, name, 0, 1, NULL, &err), err);
    return report;
}

static inline bj_run *case_open(const char *name) {
    char dir[CASE_PATH];
    bj_run *run = NULL;
    bj_error err = {0};
    CHECK_OK(bj_run_open(&run, case_path(dir, name), &err), err);
    if (!run) exit(test_report("run_case"));
    return run;
}

/* ---------------------------------------------------------------------------------------- files */

static inline int case_exists(const char *run, const char *file) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    snprintf(path, sizeof path, "%s/%s", case_path(dir, run), file);
    return access(path, F_OK) == 0;
}

/* Returns memory that is released with bj_free. The test ends if memory cannot be allocated. */
static inline char *case_read(size_t *size, const char *run, const char *file) {
    char dir[CASE_PATH], path[BJ_RUN_FILE], *text = NULL;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/%s", case_path(dir, run), file);
    CHECK_OK(bj_file_read(&text, size, path, (size_t)1 << 30, &err), err);
    if (!text) exit(test_report("run_case"));
    return text;
}

static inline int case_same_file(const char *a, const char *b, const char *file) {
    size_t na, nb;
    char *ta = case_read(&na, a, file), *tb = case_read(&nb, b, file);
    const int same = na == nb && !memcmp(ta, tb, na);
    bj_free(ta);
    bj_free(tb);
    return same;
}

/* Checks that both checkpoints of two runs have the same bytes. */
static inline int case_same(const char *a, const char *b) {
    static const char *const files[] = {
        "ckpt/last/model.safetensors", "ckpt/last/state.safetensors", "ckpt/best/model.safetensors",
        "ckpt/best/state.safetensors"};
    for (int i = 0; i < 4; i++)
        if (!case_same_file(a, b, files[i])) return 0;
    return 1;
}

/* Checks that two histories are equal except for times. */
static inline int case_same_rows(const char *a, const char *b) {
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
            same =
                !memcmp((const char *)&x + field->offset, (const char *)&y + field->offset, size);
            if (!same) fprintf(stderr, "epoch %d: %s differs\n", x.epoch, field->path);
        }
    }
    bj_run_free(ra);
    bj_run_free(rb);
    return same;
}

static inline int case_same_run(const char *a, const char *b) {
    return case_same(a, b) && case_same_rows(a, b) && case_same_file(a, b, "config.resolved.json");
}

#endif
