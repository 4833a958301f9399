/* lock_case.h - trains a small campaign for the tests of lock and evaluation.
 *
 *   folder/train.bjc, dev.bjc, val.bjc   simulated scenes
 *   folder/grid.yaml                     fullset, uniform, point and the frozen anchor; two seeds
 *   folder/run/                          the campaign
 */
#ifndef BJ_TESTS_LOCK_GRID_H
#define BJ_TESTS_LOCK_GRID_H

#include <ftw.h>
#include <stdlib.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "campaign/locked_file.h"

#include "core/alloc.h"
#include "core/file.h"
#include "core/folder.h"
#include "support/test.h"

enum { GRID_TRAIN = 48, GRID_DEV = 16, GRID_VAL = 40, GRID_EPOCHS = 2, GRID_PATH = 256 };

static char grid_folder[] = "/tmp/test_lock.XXXXXX";
static char grid_dir[64], grid_val[64];

static const char *grid_at(const char *name) { /* the last four results stay valid */
    static char paths[4][GRID_PATH];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, GRID_PATH, "%s/%s", grid_folder, name);
    return path;
}

static inline void grid_cache(const char *name, const char *split, int scenes) {
    const bj_world_options options = {
        .seed = 5, .split = split, .scenes = scenes, .jobs = 1, .force = 1};
    bj_world_report report;
    bj_error err = {0};
    CHECK_OK(bj_world_to_cache(&report, grid_at(name), &options, &err), err);
}

static inline void grid_text(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fputs(text, file) >= 0 && !fclose(file));
}

/* Arms that a lock treats differently: arms with shared weights, arms of other sizes, and the
 * stages of the anchor. */
static const char grid_yaml[] =
    "name: small\n"
    "arms: [fullset, uniform, point, anchor-a, anchor-b]\n"
    "seeds: [3, 4]\n"
    "set:\n"
    "  train: {batch: 16, epochs: 2, warmup: 1, patience: 0}\n"
    "  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,\n"
    "          router_hidden: 8, decoder_hidden: 8}\n"
    "  gate: {ade: 1000, fde: 1000, std: 0, low_std: 1, rank: 0}\n";

static inline bj_status grid_train(const bj_campaign *campaign, int index, bj_error *err) {
    const bj_campaign_run run = bj_campaign_run_at(campaign, index);
    const bj_run_options options = {.data = bj_campaign_data(campaign),
                                    .dev = bj_campaign_dev(campaign),
                                    .dir = run.dir,
                                    .threads = 1};
    bj_run_report report;
    return bj_run_train(&report, run.settings, &options, err);
}

/* Creates the campaign and trains all runs except the last `left` ones. */
static inline bj_campaign *grid_begin(int left) {
    const bj_campaign_options options = {0};
    bj_campaign *campaign = NULL;
    bj_error err = {0};
    CHECK(mkdtemp(grid_folder) != NULL);
    snprintf(grid_dir, sizeof grid_dir, "%s/run", grid_folder);
    snprintf(grid_val, sizeof grid_val, "%s/val.bjc", grid_folder);
    grid_cache("train.bjc", "train", GRID_TRAIN);
    grid_cache("dev.bjc", "dev", GRID_DEV);
    grid_cache("val.bjc", "val", GRID_VAL);
    bj_campaign_options given = options;
    given.data = grid_at("train.bjc");
    given.dev = grid_at("dev.bjc");
    grid_text(grid_at("grid.yaml"), grid_yaml);
    CHECK_OK(bj_campaign_create(&campaign, grid_at("grid.yaml"), grid_dir, &given, &err), err);
    if (!campaign) exit(test_report("lock_case"));
    for (int i = 0; i < bj_campaign_runs(campaign) - left; i++)
        CHECK_OK(grid_train(campaign, i, &err), err);
    if (test_failed) exit(test_report("lock_case"));
    return campaign;
}

static int grid_remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static inline void grid_remove(const char *path) {
    nftw(path, grid_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline int grid_exists(const char *path) { return access(path, F_OK) == 0; }

/* Reads lock.json, and its SHA-256. */
static inline bj_status grid_read_lock(bj_lock *lock, const char *path, char hex[65],
                                       bj_error *err) {
    bj_locked_text text = {0};
    *lock = (bj_lock){0};
    bj_status status = bj_locked_text_read(&text, path, err);
    memcpy(hex, text.sha256, sizeof text.sha256);
    if (status == BJ_OK) status = bj_lock_parse(lock, &text, path, err);
    bj_locked_text_reset(&text);
    return status;
}

static inline bj_status grid_write_lock(const bj_lock *lock, const char *path, char hex[65],
                                        bj_error *err) {
    bj_locked_text text = {0};
    bj_status status = bj_lock_text(&text, lock, err);
    memcpy(hex, text.sha256, sizeof text.sha256);
    if (status == BJ_OK) status = bj_file_write(path, text.bytes, text.size, err);
    bj_locked_text_reset(&text);
    return status;
}

/* A saved file, to be restored. */
typedef struct grid_kept {
    char path[BJ_FOLDER_PATH];
    char *bytes;
    size_t size;
} grid_kept;

static inline void grid_put(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size && !fclose(file));
}

static inline grid_kept grid_keep(const char *path) {
    grid_kept kept = {0};
    bj_error err = {0};
    snprintf(kept.path, sizeof kept.path, "%s", path);
    CHECK_OK(bj_file_read(&kept.bytes, &kept.size, path, (size_t)1 << 30, &err), err);
    return kept;
}

static inline void grid_restore(grid_kept *kept) {
    grid_put(kept->path, kept->bytes, kept->size);
    bj_free(kept->bytes);
    kept->bytes = NULL;
}

/* Replaces the first occurrence of `old` after the first occurrence of `after` in the file. */
static inline grid_kept grid_edit(const char *path, const char *after, const char *old,
                                  const char *new) {
    grid_kept kept = grid_keep(path);
    const char *from = kept.bytes ? strstr(kept.bytes, after) : NULL;
    const char *at = from ? strstr(from, old) : NULL;
    CHECK_MSG(at != NULL, "%s has no '%s' behind '%s'", path, old, after);
    if (!at) return kept;
    FILE *file = fopen(path, "wb");
    const size_t head = (size_t)(at - kept.bytes), tail = head + strlen(old);
    CHECK(file && fwrite(kept.bytes, 1, head, file) == head && fputs(new, file) >= 0 &&
          fwrite(kept.bytes + tail, 1, kept.size - tail, file) == kept.size - tail &&
          !fclose(file));
    return kept;
}

/* Flips one bit in the middle. */
static inline grid_kept grid_flip(const char *path) {
    grid_kept kept = grid_keep(path);
    if (!kept.size) return kept;
    kept.bytes[kept.size / 2] ^= 1;
    grid_put(path, kept.bytes, kept.size);
    kept.bytes[kept.size / 2] ^= 1;
    return kept;
}

#endif
