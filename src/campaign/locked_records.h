/* locked_records.h - checks the JSON files of a locked evaluation against each other.
 *
 *   lock.json          its runs are the grid in campaign.json
 *   completion.json    has the digests of the other files, and the counts of the lock
 *   seed_table.json    has rows of the evaluated runs, in the order of the lock, and no others
 *   run_summary.json   its means, standard deviations and usage follow from seed_table.json; groups
 *                      and calibration have the right counts and add up to the means
 *
 * None of these checks needs a checkpoint or the data. Every failure is BJ_EMISMATCH or
 * BJ_EFORMAT with the name of the file. A missing file gives BJ_ELOCKED.
 * Test: tests/campaign/test_locked.c, tests/cli/tamper.sh
 */
#ifndef BJ_CAMPAIGN_LOCKED_RECORDS_H
#define BJ_CAMPAIGN_LOCKED_RECORDS_H

#include "campaign/locked_write.h"

enum { BJ_RECORD_LOCK, BJ_RECORD_COMPLETION, BJ_RECORD_SUMMARY, BJ_RECORD_SEEDS, BJ_RECORDS };

/* The files of an evaluation, and their content. */
typedef struct bj_records {
    bj_locked_text text[BJ_RECORDS];
    char path[BJ_RECORDS][BJ_FOLDER_PATH];
    char folder[BJ_FOLDER_PATH]; /* DIR/locked */
    bj_lock lock;
    int evaluated; /* 0: DIR/locked does not exist, and the fields below are empty */
    bj_completion completion;
    bj_locked_results results; /* arms, seeds, values and usage of seed_table.json */
} bj_records;

/* Reads lock.json and, after the evaluation, completion.json, and compares the digests of the files
 * with completion.json. Sets `records` to zero first. */
BJ_CHECK bj_status bj_records_read(bj_records *records, const char *dir, bj_error *err);
/* Compares the lock with the campaign and checks the content of the files. */
BJ_CHECK bj_status bj_records_check(bj_records *records, const bj_campaign *campaign,
                                    bj_error *err);
/* Checks run_summary.json. Used by bj_records_check. */
BJ_CHECK bj_status bj_records_check_summary(const bj_records *records, bj_error *err);
void bj_records_reset(bj_records *records); /* accepts records that are all zero */

#endif
