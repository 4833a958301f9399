/* output.h - paths, and the folders and files that a command writes.
 *
 * A cli_file is a bj_file_writer (branchjepa/files.h) with a stdio stream. Call bj_file_writable
 * before long work to check an output path early.
 */
#ifndef BJEPA_OUTPUT_H
#define BJEPA_OUTPUT_H

#include "cli.h"

#include <stdio.h>

enum { CLI_PATH_SIZE = 4096 };

/* Writes "folder/name" to `path`. Fails if the result does not fit. */
BJ_CHECK bj_status cli_path(char path[CLI_PATH_SIZE], const char *folder, const char *name,
                            bj_error *err);

/* Returns 0 if there is certainly no file of that name. An input/output error counts as existing, so
 * that reading the file reports it. */
int cli_exists(const char *path);
/* Returns 1 if the name ends in the suffix and has other characters before it. */
int cli_ends_in(const char *name, const char *suffix);

/* Creates the folder if necessary and checks that it is writable. Sets *created to 1 if it is new. */
BJ_CHECK bj_status cli_folder(int *created, const char *folder, bj_error *err);

typedef struct cli_file {
    FILE *stream;
    bj_file_writer *writer;
    char path[CLI_PATH_SIZE];
} cli_file;

BJ_CHECK bj_status cli_file_open(cli_file *file, const char *path, bj_error *err);
/* Publishes what was written to the stream, or removes it and returns the reason. */
BJ_CHECK bj_status cli_file_commit(cli_file *file, bj_error *err);
/* Removes what was written. An existing file of that name is not changed. */
void cli_file_abort(cli_file *file);

#endif
