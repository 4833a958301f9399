/* history.h - metrics.jsonl and metrics.csv of a run, with one line per epoch. Both files are
 * written as a whole after each epoch and renamed, so a killed run never leaves an incomplete line.
 * An unknown number (NaN) is null in JSON and empty in CSV. */
#ifndef BJ_RUN_HISTORY_H
#define BJ_RUN_HISTORY_H

#include <branchjepa/branchjepa.h>

/* Writes rows (count), sorted by epoch. */
BJ_CHECK bj_status bj_history_write(const char *dir, const bj_epoch *rows, int count, bj_error *err);
/* Reads the rows from a folder and allocates them (core/alloc.h). A folder without metrics.jsonl
 * has no rows. Numbers are read back exactly as they were written. */
BJ_CHECK bj_status bj_history_read(bj_epoch **rows, int *count, const char *dir, bj_error *err);

#endif
