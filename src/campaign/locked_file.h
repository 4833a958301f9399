/* locked_file.h - lock.json: everything that must not change between the choice of checkpoints and
 * their evaluation.
 *
 *   {"schema": "branchjepa.lock/1",
 *    "campaign":  {"name", "sha256"},                   of DIR/campaign.json
 *    "evaluator": {"version", "sha256"},                of the program
 *    "data":      {"path", "bytes", "sha256", "digest", "scenes"},
 *    "protocol":  {"metrics": [...], "precision", "real", "batch", "least_scenes"},
 *    "runs":      [{"arm", "seed", "dir", "evaluated", "rule", "best_epoch", "dev",
 *                   "sha256": {FILE: digest, ...}}, ...]}      in the order of the campaign
 *
 * Invariants
 *   1. Run paths are relative to DIR, so a campaign can be moved. The data path is absolute.
 *   2. Every file that can change a number of the evaluation, or the choice of a checkpoint, is in
 *      the list of bj_lock_bound. Locking fills in the digests, and evaluating and verifying
 *      compare them.
 *   3. The protocol in the file is that of this library. Any other protocol is rejected.
 * Test: tests/campaign/test_lock.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_FILE_H
#define BJ_CAMPAIGN_LOCKED_FILE_H

#include "core/folder.h"
#include "core/sha256.h"

enum {
    BJ_LOCK_RUN_FILES = 6,
    BJ_LOCK_RUNS_MAX = 4096,
    BJ_LOCK_BATCH = 128, /* scenes per batch for every model */
    BJ_LOCK_LEAST = 10   /* min scenes of a published mean */
};

/* Names of the locked files in a run folder. The first two are the checkpoint. */
extern const char *const bj_lock_run_files[BJ_LOCK_RUN_FILES];
enum { BJ_LOCK_MODEL, BJ_LOCK_STATE };

typedef struct bj_lock_run {
    char arm[BJ_NAME_SIZE];
    int64_t seed;
    char dir[BJ_RUN_PATH_SIZE]; /* relative to the campaign folder */
    int evaluated;              /* 0 for stage A of the frozen anchor, which is locked but not
                                   evaluated */
    int best_epoch;
    double dev; /* value by which the epoch was chosen */
    char sha256[BJ_LOCK_RUN_FILES][BJ_SHA256_HEX];
} bj_lock_run;

typedef struct bj_lock {
    char campaign[BJ_NAME_SIZE], campaign_sha256[BJ_SHA256_HEX];
    char version[32], evaluator_sha256[BJ_SHA256_HEX];
    char data[BJ_FOLDER_PATH], data_sha256[BJ_SHA256_HEX], data_digest[BJ_SHA256_HEX];
    int64_t data_bytes, scenes;
    bj_lock_run *runs; /* (count) */
    int count;
} bj_lock;

BJ_CHECK bj_status bj_lock_write(const bj_lock *lock, const char *path, char hex[BJ_SHA256_HEX],
                                 bj_error *err);
/* Reads a lock file. `lock` is set to zero first. `hex` receives the SHA-256 of the file. */
BJ_CHECK bj_status bj_lock_read(bj_lock *lock, const char *path, char hex[BJ_SHA256_HEX],
                                bj_error *err);
void bj_lock_reset(bj_lock *lock); /* accepts a lock that is all zero */

/* Writes "DIR/NAME". Fails if the result does not fit. */
BJ_CHECK bj_status bj_lock_path(char path[BJ_FOLDER_PATH], const char *dir, const char *name,
                                bj_error *err);

/* ------------------------------------------------------------------------------------ hashing */

/* A locked file. The order is campaign.json, the evaluator, the data, then the files of the runs.
 * */
typedef struct bj_lock_bound {
    char path[BJ_FOLDER_PATH];
    char what[BJ_NAME_SIZE + 64]; /* "evaluator", "fullset, seed 0" */
    char *sha256;                 /* in the lock */
} bj_lock_bound;

int bj_lock_bound_count(const bj_lock *lock);
BJ_CHECK bj_status bj_lock_bound_at(bj_lock_bound *out, bj_lock *lock, const char *dir,
                                    const char *evaluator, int index, bj_error *err);

/* Reports progress. A nonzero return value stops. */
typedef struct bj_locked_watch {
    int (*tell)(void *context, const char *phase, int64_t done, int64_t total); /* or NULL */
    void *context;
} bj_locked_watch;

/* File attributes that reveal whether a file was changed or replaced. */
typedef struct bj_lock_stamp {
    uint64_t device, inode, size, seconds, nanoseconds;
} bj_lock_stamp;

/* Hashes all locked files. If `fill` is set, stores the digests in the lock. Otherwise compares
 * them with the lock and fails with BJ_EMISMATCH; the message names the first changed file and
 * counts the others. stamps (bj_lock_bound_count) may be NULL. */
BJ_CHECK bj_status bj_lock_hash(bj_lock *lock, bj_lock_stamp *stamps, const char *dir,
                                const char *evaluator, int fill, const bj_locked_watch *watch,
                                bj_error *err);
/* Fails if a file has changed since it was hashed. */
BJ_CHECK bj_status bj_lock_untouched(bj_lock *lock, const bj_lock_stamp *stamps, const char *dir,
                                     const char *evaluator, bj_error *err);

#endif
