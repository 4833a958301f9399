/* file_internal.h - what those that open files themselves share: file.c, folder.c, and in data/
 * walk.c and the writer of caches. */
#ifndef BJ_CORE_FILE_INTERNAL_H
#define BJ_CORE_FILE_INTERNAL_H

#include "core/status.h"

enum { BJ_FILE_NAME = 256 }; /* longest file name and its terminator */

/* "PATH: cannot WHAT: reason", the reason being that of an errno. */
bj_status bj_file_fail(bj_error *err, int number, const char *path, const char *what);

/* open() that outlives signals. */
int bj_file_open(const char *path, int flags);

/* Opens the directory `final` lies in and sets name to its last part; messages speak of `path`. */
BJ_CHECK bj_status bj_file_open_parent(int *dir, char name[BJ_FILE_NAME], const char *final,
                                       const char *path, bj_error *err);

/* Makes the names in a directory durable. */
BJ_CHECK bj_status bj_file_sync_folder(int dir, const char *path, const char *what, bj_error *err);

#endif
