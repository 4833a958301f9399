/* file.h - reads whole files and writes files atomically.
 *
 * A file is written under a hidden name in the same directory and renamed at the end:
 *
 *   bj_file_writer *writer = NULL;
 *   status = bj_file_writer_open(&writer, path, err);
 *   ... bj_file_writer_write(writer, data, size, err) ...
 *   status = bj_file_writer_commit(&writer, err);    or bj_file_writer_abort(&writer)
 *
 * Invariants
 *   1. Until the rename, the final name refers to the old file, or to no file if there was none.
 *   2. The rename happens only after every byte was written, synced and closed without error.
 *   3. The temporary file (core/temporary.h) is removed after a failure or an abort. Only a crash
 *      leaves it behind, and the next writer for the same name removes it.
 *   4. After a commit the directory is synced too, so the new name survives a power failure.
 *   5. Replacing a file keeps its permissions and follows symbolic links. A file without write
 *      permission is not replaced.
 *   6. Character devices and pipes (/dev/stdout, a shell's >(...)) are written directly, because
 *      they cannot be replaced by a rename. Other files that are not regular files are rejected.
 */
#ifndef BJ_CORE_FILE_H
#define BJ_CORE_FILE_H

#include <branchjepa/branchjepa.h>
#include <stddef.h>

#include "core/status.h"

/* ------------------------------------------------------------------------------------- reading */

/* Reads a whole file into memory that the caller releases with bj_free. A zero byte follows the
 * content and is not counted in `size`. Fails if the file has more than `limit` bytes, or is a
 * named pipe or a device. Pipes that the caller was given (/dev/stdin, /dev/fd/N) are read until end
 * of file. */
BJ_CHECK bj_status bj_file_read(char **out, size_t *size, const char *path, size_t limit,
                                bj_error *err);

/* Reads a whole file into a buffer that the caller reuses. *memory (initially NULL) has *room bytes
 * and is replaced if the file needs more. The caller owns the buffer even after a failure. */
BJ_CHECK bj_status bj_file_read_again(char **memory, size_t *room, size_t *size, const char *path,
                                      size_t limit, bj_error *err);

/* Returns 0 if there is certainly no file of that name. If the name cannot be examined, for example
 * because of an input/output error, returns 1, so that opening the file reports the error. */
int bj_file_exists(const char *path);

/* Returns a description of the file at `path` for error messages, based on its first bytes: "a
 * folder", "a Parquet file", "an npz archive" or "a safetensors file". Returns NULL for anything
 * else. */
const char *bj_file_kind(const char *path);

/* A regular file mapped read-only. If another process truncates the file while it is mapped, the
 * process is killed by SIGBUS. Replacing the file by a rename, as bj_file_writer does, is safe. */
typedef struct bj_file_map {
    const unsigned char *data; /* not NULL, even if size is 0 */
    size_t size;
} bj_file_map;

BJ_CHECK bj_status bj_file_map_open(bj_file_map *map, const char *path, size_t limit,
                                    bj_error *err);
void bj_file_map_close(bj_file_map *map); /* accepts a closed or zeroed map */

/* ------------------------------------------------------------------------------------- writing */

/* branchjepa/files.h declares bj_file_writer and its functions. */

/* Publishes several files that belong together. All files are complete on disk before the first one
 * is renamed, so a full disk publishes none of them. The files are renamed in the given order. Only
 * a crash between two renames can publish some of the files without the others, so the file that
 * proves that the set is complete should come last. */
BJ_CHECK bj_status bj_file_writer_commit_all(bj_file_writer **writers, int count, bj_error *err);

/* Opens a writer, writes `data` and commits the file. */
BJ_CHECK bj_status bj_file_write(const char *path, const void *data, size_t size, bj_error *err);

#endif
