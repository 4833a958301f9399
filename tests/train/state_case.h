/* state_case.h - small training runs and a scratch folder for checkpoint tests. */
#ifndef BJ_TESTS_STATE_CASE_H
#define BJ_TESTS_STATE_CASE_H

/* The including file must define _XOPEN_SOURCE as 700. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/sha256.h"
#include "support/test.h"
#include "train/trainer.h"

static char folder[64]; /* scratch folder of the test */

/* Returns a path in the scratch folder. The last 32 paths stay valid. */
static inline const char *in_folder(const char *name) {
    static char paths[32][512];
    static int next;
    char *path = paths[next++ % 32];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static inline int count_entries(const char *path) {
    DIR *dir = opendir(path);
    int count = -2; /* . and .. */
    while (dir && readdir(dir)) count++;
    if (dir) closedir(dir);
    return count;
}

static inline int is_there(const char *path) { return access(path, F_OK) == 0; }

static inline void remove_tree(const char *path) {
    DIR *dir = opendir(path);
    char inside[1024];
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        snprintf(inside, sizeof inside, "%.500s/%.500s", path, entry->d_name);
        struct stat info;
        if (lstat(inside, &info) == 0 && S_ISDIR(info.st_mode)) remove_tree(inside);
        else remove(inside);
    }
    if (dir) closedir(dir);
    rmdir(path);
}

/* ----------------------------------------------------------------------------------------- runs */

enum { SCENES = 12, BATCHES = 4 };

static inline bj_arch small_arch(bj_model_kind kind, bj_scales scales) {
    return (bj_arch){.kind = kind,
                     .scales = scales,
                     .obs = 5,
                     .fut = 10,
                     .neighbors = 3,
                     .polylines = 4,
                     .points = 3,
                     .embed = 8,
                     .heads = 2,
                     .token_hidden = 11,
                     .latent = 12,
                     .proj_hidden = 9,
                     .atoms = 3,
                     .atom_hidden = 10,
                     .router_hidden = 6,
                     .decoder_hidden = 13,
                     .trunk = 14,
                     .dt = 0.1};
}

static bj_scenes *scenes[BATCHES];

typedef struct run {
    bj_model *model;
    bj_trainer *trainer;
    bj_rng rng; /* chooses the batch of a step */
    double loss;
} run;

static inline run run_create(const bj_arch *arch, const bj_trainer_options *options,
                             uint64_t seed) {
    bj_error err = {0};
    run r = {.rng = bj_rng_seed(seed)};
    CHECK_OK(bj_model_create(&r.model, arch, seed, &err), err);
    if (r.model) CHECK_OK(bj_trainer_create(&r.trainer, r.model, options, &err), err);
    if (!r.trainer) exit(test_report("state"));
    return r;
}

static inline void run_free(run *r) {
    bj_trainer_free(r->trainer);
    bj_model_free(r->model);
}

static inline bj_trainer_options options_of(bj_objective_kind kind, int threads) {
    return (bj_trainer_options){.objective = bj_objective_default(kind),
                                .optim = bj_optim_default(),
                                .max_batch = SCENES,
                                .threads = threads};
}

static inline void advance(run *r, int steps) {
    bj_error err = {0};
    for (int i = 0; i < steps; i++) {
        const bj_batch *batch = bj_scenes_batch(scenes[bj_rng_next(&r->rng) % BATCHES]);
        const bj_schedule schedule = {BJ_SCHEDULE_COSINE, 3e-3, 0, 25, 5};
        const double lr = bj_lr_at(&schedule, bj_trainer_updates(r->trainer));
        bj_step_report report = {0};
        CHECK_OK(bj_trainer_step(r->trainer, batch, lr, &report, &err), err);
        r->loss = report.loss.total;
    }
}

/* Returns a digest of everything that a checkpoint must restore. */
static inline const char *print_of(const run *r) {
    static char prints[4][BJ_SHA256_HEX];
    static int next;
    char *hex = prints[next++ % 4];
    const bj_trainer *t = r->trainer;
    const size_t all = t->model->layout.size * sizeof(bj_real);
    bj_sha256 hash;
    bj_sha256_init(&hash);
    bj_sha256_update(&hash, t->model->weights, all);
    bj_sha256_update(&hash, t->mean, all);
    bj_sha256_update(&hash, t->variance, all);
    bj_sha256_update(&hash, t->target_weights, t->model->layout.encoder_size * sizeof(bj_real));
    bj_sha256_update(&hash, &t->step, sizeof t->step);
    bj_sha256_update(&hash, &r->rng, sizeof r->rng);
    bj_sha256_final(&hash, hex);
    return hex;
}

static inline void save(const run *r, const char *dir) {
    static const bj_fact facts[] = {{"seed", "7"}, {"note", "of a test"}};
    bj_error err = {0};
    CHECK_OK(bj_trainer_save(r->trainer, dir, &r->rng, facts, 2, &err), err);
}

static inline void load(run *r, const char *dir) {
    bj_error err = {0};
    CHECK_OK(bj_trainer_load(r->trainer, dir, &r->rng, &err), err);
}

/* Creates the scratch folder in `place`, or in `other` if that fails. */
static inline void case_begin(const char *place, const char *other) {
    bj_error err = {0};
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    snprintf(folder, sizeof folder, "%s/test_state.XXXXXX", place);
    if (!mkdtemp(folder)) snprintf(folder, sizeof folder, "%s/test_state.XXXXXX", other);
    if (!is_there(folder) && !mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
    for (int i = 0; i < BATCHES; i++)
        CHECK_OK(bj_scenes_synthetic(&scenes[i], &arch, SCENES, (uint64_t)i, &err), err);
}

static inline void case_end(void) {
    for (int i = 0; i < BATCHES; i++) bj_scenes_free(scenes[i]);
    remove_tree(folder);
}

#endif
