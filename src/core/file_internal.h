/* file_internal.h - file helpers shared by file.c, folder.c, data/walk.c and the cache writer in
 * data/. */
#ifndef BJ_CORE_FILE_INTERNAL_H
#define BJ_CORE_FILE_INTERNAL_H

#include "core/status.h"

enum { BJ_FILE_NAME = 256 }; /* longest file name, including the terminator */

/* Fails with "PATH: cannot WHAT: REASON", where REASON is the text of errno value `number`. */
bj_status bj_file_fail(bj_error *err, int number, const char *path, const char *what);

/* Calls open() and retries if a signal interrupts it. */
int bj_file_open(const char *path, int flags);

/* Opens the parent directory of `final` and sets `name` to the last path component. Messages show
 * `path`. */
BJ_CHECK bj_status bj_file_open_parent(int *dir, char name[BJ_FILE_NAME], const char *final,
                                       const char *path, bj_error *err);

/* Syncs a directory, which makes its names durable. */
BJ_CHECK bj_status bj_file_sync_folder(int dir, const char *path, const char *what, bj_error *err);

#endif
