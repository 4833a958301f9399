/* history.h - metrics.jsonl and metrics.csv of a run: one line for each epoch.
 *
 * Both files are rewritten as a whole after an epoch and appear by rename, so a killed run never
 * leaves half a line. A number that is not known (NaN) is null in JSON and empty in CSV.
 */
#ifndef BJ_RUN_HISTORY_H
#define BJ_RUN_HISTORY_H

#include <branchjepa/branchjepa.h>

/* rows (count), in the order of their epochs. */
BJ_CHECK bj_status bj_history_write(const char *dir, const bj_epoch *rows, int count, bj_error *err);
/* *rows is allocated (core/alloc.h). A folder without metrics.jsonl has no rows. Every number reads
 * back with the bits it was written with. */
BJ_CHECK bj_status bj_history_read(bj_epoch **rows, int *count, const char *dir, bj_error *err);

#endif
