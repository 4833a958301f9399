/* locked_file.h - lock.json: everything that must not change between the choice of checkpoints and
 * their evaluation.
 *
 *   {"schema": "branchjepa.lock/2",
 *    "campaign":  {"name", "sha256"},                   of DIR/campaign.json
 *    "evaluator": {"version", "sha256"},                of the program
 *    "data":      {"path", "bytes", "sha256", "digest", "scenes"},
 *    "protocol":  {"metrics": [...], "precision", "real", "batch", "least_scenes",
 *                  "map": [...], "latency_batch"},      the last two are not in schema 1
 *    "runs":      [{"arm", "seed", "dir", "evaluated", "rule", "best_epoch", "dev",
 *                   "sha256": {FILE: digest, ...}}, ...]}      in the order of the campaign
 *
 * Invariants
 *   1. Run paths are relative to DIR, so a campaign can be moved. The data path is absolute.
 *   2. Every file that can change a number of the evaluation, or the choice of a checkpoint, is in
 *      the list of bj_lock_bound. Locking fills in the digests, and evaluating and verifying
 *      compare them.
 *   3. The protocol in the file is that of this library. Any other protocol is rejected.
 *   4. A file is accepted only if its members, written again, give the same bytes.
 * Test: tests/campaign/test_lock.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_FILE_H
#define BJ_CAMPAIGN_LOCKED_FILE_H

#include "campaign/locked_json.h"
#include "core/folder.h"

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
    int schema; /* 1 or 2 */
    char campaign[BJ_NAME_SIZE], campaign_sha256[BJ_SHA256_HEX];
    char version[32], evaluator_sha256[BJ_SHA256_HEX];
    char data[BJ_FOLDER_PATH], data_sha256[BJ_SHA256_HEX], data_digest[BJ_SHA256_HEX];
    int64_t data_bytes, scenes;
    bj_lock_run *runs; /* (count) */
    int count;
} bj_lock;

BJ_CHECK bj_status bj_lock_text(bj_locked_text *out, const bj_lock *lock, bj_error *err);
/* Reads and checks the text of the file `path`. Sets `lock` to zero first. */
BJ_CHECK bj_status bj_lock_parse(bj_lock *lock, const bj_locked_text *text, const char *path,
                                 bj_error *err);
/* Returns the name of bj_real: "float" or "double". */
const char *bj_lock_real(void);
/* Returns the number of runs that are evaluated. */
int bj_lock_evaluated(const bj_lock *lock);
void bj_lock_reset(bj_lock *lock); /* accepts a lock that is all zero */

/* Writes "DIR/NAME". Fails if the result does not fit. */
BJ_CHECK bj_status bj_lock_path(char path[BJ_FOLDER_PATH], const char *dir, const char *name,
                                bj_error *err);
/* Fails if the campaign was already evaluated. */
BJ_CHECK bj_status bj_lock_unevaluated(const char *dir, bj_error *err);

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

/* File attributes that reveal whether a file was changed or replaced. All are zero for a missing
 * file. */
typedef struct bj_lock_stamp {
    uint64_t device, inode, size;
    int64_t modified[2], changed[2]; /* seconds and nanoseconds */
} bj_lock_stamp;

/* Results of bj_lock_hash. */
typedef struct bj_lock_hashes {
    bj_lock_stamp *stamps; /* (bj_lock_bound_count) by the caller */
    int missing;           /* number of files */
    char first[BJ_FOLDER_PATH]; /* the first missing file, or "" */
} bj_lock_hashes;

typedef enum bj_lock_hashing {
    BJ_LOCK_FILL,    /* store the digests in the lock */
    BJ_LOCK_COMPARE, /* compare the digests with the lock */
    BJ_LOCK_PRESENT  /* compare those of files that exist; missing files are counted */
} bj_lock_hashing;

/* Hashes all locked files; without the evaluator if it is NULL. Fails with BJ_EMISMATCH, the first
 * file that has changed and the number of further ones. */
BJ_CHECK bj_status bj_lock_hash(bj_lock *lock, bj_lock_hashes *hashes, const char *dir,
                                const char *evaluator, bj_lock_hashing how,
                                const bj_locked_watch *watch, bj_error *err);
/* Fails if a file has changed since it was hashed. The message ends with `when`. */
BJ_CHECK bj_status bj_lock_untouched(bj_lock *lock, const bj_lock_hashes *hashes, const char *dir,
                                     const char *evaluator, const char *when, bj_error *err);
/* Returns 1 if all files of a run were hashed. */
int bj_lock_has_run(const bj_lock_hashes *hashes, int run);
int bj_lock_has_data(const bj_lock_hashes *hashes);

#endif
