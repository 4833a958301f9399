/* file.h - reading whole files, and writing them so that nobody ever sees half of one.
 *
 * Writing goes to a hidden name beside the final one and is renamed at the end:
 *
 *   bj_file_writer *writer = NULL;
 *   status = bj_file_writer_open(&writer, path, err);
 *   ... bj_file_writer_write(writer, data, size, err) ...
 *   status = bj_file_writer_commit(&writer, err);    or bj_file_writer_abort(&writer)
 *
 * Invariants
 *   1. Until the rename the final name shows what it showed before: the old file, or none.
 *   2. The rename happens only after every byte was written, synced and closed without error.
 *   3. After a failure, or an abort, the temporary file is gone. It survives only a crash; its name
 *      is .<name>.<process>-<n>.tmp, and nothing ever opens it.
 *   4. After a commit the directory is synced too, so that the name survives a power cut.
 *   5. Replacing keeps the permissions of the old file and follows symbolic links to it; a file
 *      that may not be written is not replaced either.
 *   6. Character devices and pipes (/dev/stdout, a shell's >(...)) have no name to swap: they are
 *      written directly. Other things that are not regular files are refused.
 */
#ifndef BJ_CORE_FILE_H
#define BJ_CORE_FILE_H

#include <stddef.h>

#include "core/status.h"

/* ------------------------------------------------------------------------------------- reading */

/* Reads everything into memory the caller gives to bj_free; a zero byte follows the content and is
 * not counted in size. More than `limit` bytes are refused. Pipes are read until they end. */
BJ_CHECK bj_status bj_file_read(char **out, size_t *size, const char *path, size_t limit,
                                bj_error *err);

/* The same into memory that is kept: *memory (NULL at first) has *room bytes, is replaced when that
 * is not enough, and stays the caller's on failure too. */
BJ_CHECK bj_status bj_file_read_again(char **memory, size_t *room, size_t *size, const char *path,
                                      size_t limit, bj_error *err);

/* A regular file in the address space, read-only. Whoever shortens it meanwhile kills the reader
 * with SIGBUS; files that are replaced by renaming, as here, are safe. */
typedef struct bj_file_map {
    const unsigned char *data; /* not NULL, even when size is 0 */
    size_t size;
} bj_file_map;

BJ_CHECK bj_status bj_file_map_open(bj_file_map *map, const char *path, size_t limit,
                                    bj_error *err);
void bj_file_map_close(bj_file_map *map); /* accepts a closed or zeroed one */

/* ------------------------------------------------------------------------------------- writing */

typedef struct bj_file_writer bj_file_writer;

BJ_CHECK bj_status bj_file_writer_open(bj_file_writer **out, const char *path, bj_error *err);
/* After a failure every further write and the commit fail too. */
BJ_CHECK bj_status bj_file_writer_write(bj_file_writer *writer, const void *data, size_t size,
                                        bj_error *err);
/* Publishes the file, or removes it on failure. Frees the writer and sets it to NULL either way. */
BJ_CHECK bj_status bj_file_writer_commit(bj_file_writer **writer, bj_error *err);
/* The same for files that belong together: all are complete on disk before the first is renamed,
 * in the order given, so that a full disk publishes none of them. Only a crash between two renames
 * can publish some; put the file that vouches for the others last. */
BJ_CHECK bj_status bj_file_writer_commit_all(bj_file_writer **writers, int count, bj_error *err);
void bj_file_writer_abort(bj_file_writer **writer); /* accepts NULL */

/* All of the above for content that is already in memory. */
BJ_CHECK bj_status bj_file_write(const char *path, const void *data, size_t size, bj_error *err);

#endif
