/* folder.h - replaces a directory of files atomically, so that its files always match each other.
 *
 *   bj_folder_writer *writer = NULL;
 *   status = bj_folder_writer_open(&writer, path, files, err);
 *   ... write each file into bj_folder_writer_path(writer), with core/file.h ...
 *   status = bj_folder_writer_commit(&writer, err);    or bj_folder_writer_abort(&writer)
 *
 * Invariants
 *   1. The new folder is created next to the final name under a hidden name (core/temporary.h) and
 *      synced. Until it is published, the final name refers to the old folder, or to nothing if
 *      there was none.
 *   2. An existing folder is exchanged with the new one in one step (RENAME_EXCHANGE) and removed
 *      afterwards. If the process is killed, either the old or the new folder is left, complete.
 *   3. If the system does not support the exchange, the old folder is renamed to .<name>.old before
 *      the new one takes its name. If the process is killed in between, bj_folder_find returns the
 *      old folder, and the next writer restores its name first.
 *   4. The next writer for the same path removes the leftovers of killed writers. A running writer
 *      holds a lock (flock) on its hidden folder, so other writers leave that folder alone.
 *   5. Only the files named in `files`, their temporary versions and folders without other content
 *      are ever removed. A folder that contains anything else is not replaced.
 *   6. Replacing a folder keeps its permissions and follows symbolic links.
 * Only one writer at a time may write to a path. Listing directories uses libc's own memory.
 * Test: tests/train/test_state_files.c
 */
#ifndef BJ_CORE_FOLDER_H
#define BJ_CORE_FOLDER_H

#include <branchjepa/branchjepa.h>
#include <stddef.h>

#include "core/status.h"

/* branchjepa/files.h declares bj_folder_writer and its functions. */

enum { BJ_FOLDER_PATH = 4096 };

/* Creates the folder and all missing parent folders. */
BJ_CHECK bj_status bj_folders_make(const char *path, bj_error *err);

/* Returns the path of `file` in the folder `path`, or in the old folder if a crash left only the
 * old folder (invariant 3). */
BJ_CHECK bj_status bj_folder_find(char out[BJ_FOLDER_PATH], const char *path, const char *file,
                                  bj_error *err);

#endif
