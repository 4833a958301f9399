/* temporary.h - hidden files and folders under which an output is written before it is renamed.
 *
 * The name is .<name>.<process>-<n>.tmp, in the directory of the final name. Process ids repeat, in
 * containers after every start, so the name does not identify the writer. The writer holds a lock
 * (flock) on its temporary instead. A temporary without a lock belongs to a process that died.
 *
 * Invariants
 *   1. bj_temporary_create removes the leftovers of dead processes for the same final name.
 *   2. A temporary that another process holds locked is never removed. Neither is a file on a file
 *      system without locks.
 *   3. bj_remove_temporaries (branchjepa/files.h) removes every temporary of this process and can be
 *      called by a signal handler.
 * Test: tests/core/test_file.c
 */
#ifndef BJ_CORE_TEMPORARY_H
#define BJ_CORE_TEMPORARY_H

#include "core/file_internal.h"

typedef struct bj_temporary {
    int parent;               /* directory that contains the temporary; owned by the caller */
    int fd;                   /* the open, locked file or folder; -1: none */
    int exists;               /* 1 until the temporary is renamed or removed */
    int slot;                 /* in the list for bj_remove_temporaries; -1: none */
    const char *const *files; /* a folder's possible files, ends with NULL; NULL for a file */
    char name[BJ_FILE_NAME];
} bj_temporary;

enum { BJ_TEMPORARY_TARGET = 200 }; /* chars of the final name in the name of a temporary */

/* Creates and opens a temporary for the final name `target` in the directory `parent`. Messages
 * show `path`. */
BJ_CHECK bj_status bj_temporary_create(bj_temporary *t, int parent, const char *target,
                                       const char *const *files, const char *path, bj_error *err);
/* Closes the descriptor so that delayed write errors are reported, but keeps the lock with a second
 * descriptor. Returns 0, or -1 with errno set. */
int bj_temporary_flush(bj_temporary *t);
/* Closes the descriptor, which releases the lock. */
void bj_temporary_close(bj_temporary *t);
/* Renames the temporary to `target` and sets `exists` to 0. Returns the result of renameat(). */
int bj_temporary_rename(bj_temporary *t, const char *target);
/* Marks the temporary as gone, because its name now belongs to another file or folder. */
void bj_temporary_forget(bj_temporary *t);
/* Closes and removes the temporary, if there is one. */
void bj_temporary_remove(bj_temporary *t);

/* Removes the files that belong to an unlocked folder, and the folder if it is empty afterwards.
 * Errors are ignored, because the next writer tries again. */
void bj_temporary_remove_folder(int parent, const char *name, const char *const *files);
/* Returns 1 if the entry is one of `files`, or a temporary of one of them. */
int bj_temporary_belongs(const char *entry, const char *const *files);

#endif
