/* files.h - writes files and folders that appear complete or not at all.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>.
 *
 * An output is written under a hidden name in the directory of the final name, synced and renamed.
 * Symbolic links are followed, and the permissions of a replaced file or folder are kept. The next
 * writer for the same name removes what a killed process left behind.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_FILES_H
#define BRANCHJEPA_FILES_H

typedef struct bj_file_writer bj_file_writer;

/* Fails if bj_file_writer_open would reject the path, without creating a file. Character devices and
 * pipes are accepted and written directly. */
BJ_API BJ_CHECK bj_status bj_file_writable(const char *path, bj_error *err);
BJ_API BJ_CHECK bj_status bj_file_writer_open(bj_file_writer **out, const char *path,
                                              bj_error *err);
/* Appends to the file. After a failure, all further writes and the commit fail too. */
BJ_API BJ_CHECK bj_status bj_file_writer_write(bj_file_writer *writer, const void *data,
                                               size_t size, bj_error *err);
/* Returns the descriptor of the hidden file for callers that write to it themselves. The writer
 * closes it. */
BJ_API int bj_file_writer_descriptor(bj_file_writer *writer);
/* Publishes the file, or removes it on failure. Frees the writer and sets it to NULL in both
 * cases. */
BJ_API BJ_CHECK bj_status bj_file_writer_commit(bj_file_writer **writer, bj_error *err);
BJ_API void bj_file_writer_abort(bj_file_writer **writer); /* accepts NULL */

typedef struct bj_folder_writer bj_folder_writer;

/* Opens a writer. `files` lists every file that the folder may contain, ends with NULL and must
 * outlive the writer. A folder with other content is not replaced. */
BJ_API BJ_CHECK bj_status bj_folder_writer_open(bj_folder_writer **out, const char *path,
                                                const char *const *files, bj_error *err);
/* Returns the path of the hidden folder, into which the caller writes the files. */
BJ_API const char *bj_folder_writer_path(const bj_folder_writer *writer);
/* Publishes the folder, or removes it on failure. Frees the writer and sets it to NULL in both
 * cases. */
BJ_API BJ_CHECK bj_status bj_folder_writer_commit(bj_folder_writer **writer, bj_error *err);
BJ_API void bj_folder_writer_abort(bj_folder_writer **writer); /* accepts NULL */

/* Removes the hidden files and folders of all open writers of this process. A program calls this
 * function in a signal handler that ends the process. */
BJ_API void bj_remove_temporaries(void);

#endif
