/* locked_completion.h - completion.json, the record of a locked evaluation.
 *
 *   {"schema": "branchjepa.completion/2", "campaign",
 *    "sha256": {"run_summary.json", "seed_table.json", "lock.json", "evaluator", "data"},
 *    "version", "scenes", "checkpoints", "isa", "real", "threads", "started", "finished",
 *    "digest"}
 *
 * Invariants
 *   1. "digest" is the SHA-256 of the file without that member, so a change of any byte is
 *      detected. Files of schema 1 have no digest.
 *   2. A file is accepted only if its members, written again, give the same bytes. So there is one
 *      spelling of every number, and no unknown or duplicate member.
 * Test: tests/campaign/test_locked.c
 */
#ifndef BJ_CAMPAIGN_LOCKED_COMPLETION_H
#define BJ_CAMPAIGN_LOCKED_COMPLETION_H

#include "campaign/locked_json.h"

enum { BJ_DONE_SUMMARY, BJ_DONE_SEEDS, BJ_DONE_LOCK, BJ_DONE_EVALUATOR, BJ_DONE_DATA, BJ_DONE_FILES };
extern const char *const bj_completion_files[BJ_DONE_FILES];

typedef struct bj_completion {
    int schema; /* 1 or 2 */
    char campaign[BJ_NAME_SIZE];
    char sha256[BJ_DONE_FILES][BJ_SHA256_HEX];
    char version[32], isa[32], real[8];
    int64_t scenes, checkpoints, threads;
    char started[24], finished[24]; /* UTC, "2026-01-31T12:00:00Z" */
} bj_completion;

BJ_CHECK bj_status bj_completion_text(bj_locked_text *out, const bj_completion *completion,
                                      bj_error *err);
/* Reads and checks the text of the file `path`. */
BJ_CHECK bj_status bj_completion_parse(bj_completion *completion, const bj_locked_text *text,
                                       const char *path, bj_error *err);
/* Writes a time as text. `seconds` are since 1970. */
void bj_completion_time(char out[24], double seconds);

#endif
