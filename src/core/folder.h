/* folder.h - replacing a directory of files in one step, so that they always belong together.
 *
 *   bj_folder_writer *writer = NULL;
 *   status = bj_folder_writer_open(&writer, path, files, err);
 *   ... write each file into bj_folder_writer_path(writer), with core/file.h ...
 *   status = bj_folder_writer_commit(&writer, err);    or bj_folder_writer_abort(&writer)
 *
 * Invariants
 *   1. The new folder is filled beside the final name under a hidden one,
 *      .<name>.<process>-<n>.tmp, and synced. Until it takes its place the final name shows what it
 *      showed before.
 *   2. A folder that is replaced changes places with the new one in one step (RENAME_EXCHANGE) and
 *      is removed afterwards. A process that is killed leaves the old or the new one, complete.
 *   3. Where the system cannot exchange, the old folder becomes .<name>.old first, then the new one
 *      takes the name. Killed in between, the old one is found by bj_folder_find, and the next
 *      writer puts it back before anything else.
 *   4. Leftovers of killed writers are removed by the next writer of the same place. A live one
 *      holds a lock (flock) on its hidden folder, which is left alone.
 *   5. Nothing is ever removed but the files named in `files`, their temporary versions, and
 *      folders without other content: a folder that holds anything else is not replaced.
 *   6. Replacing keeps the permissions of the folder and follows symbolic links to it.
 * One writer at a time for a place. Listing directories uses libc's own memory.
 * Test: tests/train/test_state_files.c
 */
#ifndef BJ_CORE_FOLDER_H
#define BJ_CORE_FOLDER_H

#include <stddef.h>

#include "core/status.h"

typedef struct bj_folder_writer bj_folder_writer;

/* `files` ends with NULL and outlives the writer. */
BJ_CHECK bj_status bj_folder_writer_open(bj_folder_writer **out, const char *path,
                                         const char *const *files, bj_error *err);
/* The folder to write into. */
const char *bj_folder_writer_path(const bj_folder_writer *writer);
/* Puts it in place, or removes it on failure. Frees the writer and sets it to NULL either way. */
BJ_CHECK bj_status bj_folder_writer_commit(bj_folder_writer **writer, bj_error *err);
void bj_folder_writer_abort(bj_folder_writer **writer); /* accepts NULL */

enum { BJ_FOLDER_PATH = 4096 };

/* The folder and those above it, where they are missing. */
BJ_CHECK bj_status bj_folders_make(const char *path, bj_error *err);

/* Path of `file` in the folder at `path`, or in what a crash left of it (invariant 3). */
BJ_CHECK bj_status bj_folder_find(char out[BJ_FOLDER_PATH], const char *path, const char *file,
                                  bj_error *err);

#endif
