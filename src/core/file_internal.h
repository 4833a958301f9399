/* file_internal.h - file helpers shared by file.c, folder.c, temporary.c, data/walk.c and the cache writer in
 * data/. */
#ifndef BJ_CORE_FILE_INTERNAL_H
#define BJ_CORE_FILE_INTERNAL_H

#include <dirent.h>

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

/* Opens the folder `name` in the directory `parent` for listing. Returns NULL on failure. Uses libc's
 * own memory. */
DIR *bj_file_list(int parent, const char *name);
/* Returns the next name other than "." and "..", or NULL at the end. */
const char *bj_file_next(DIR *dir);

/* Syncs a directory, which makes its names durable. */
BJ_CHECK bj_status bj_file_sync_folder(int dir, const char *path, const char *what, bj_error *err);

#endif
