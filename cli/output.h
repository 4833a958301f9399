/* output.h - folders and files that a command writes.
 *
 * A file is written under a hidden name in the same folder, synced and renamed, so other processes
 * see either the old file, no file or the complete new file.
 */
#ifndef BJEPA_OUTPUT_H
#define BJEPA_OUTPUT_H

#include "cli.h"

#include <stdio.h>

enum { CLI_PATH_SIZE = 4096 };

/* Writes "folder/name". Fails if the result does not fit. */
BJ_CHECK bj_status cli_path(char path[CLI_PATH_SIZE], const char *folder, const char *name,
                            bj_error *err);

/* Returns 1 if the name ends with the suffix and has at least one character before it. */
/* Returns 0 if there is certainly no file of that name. An input/output error counts as existing, so
 * that reading the file reports it. */
int cli_exists(const char *path);
int cli_ends_in(const char *name, const char *suffix);

/* Makes sure that the folder exists and is writable. Sets *created if it did not exist before. */
BJ_CHECK bj_status cli_folder(int *created, const char *folder, bj_error *err);

/* Rejects a path that is not a regular file. */
BJ_CHECK bj_status cli_file_replaceable(const char *path, bj_error *err);

typedef struct cli_file {
    FILE *stream;
    char path[CLI_PATH_SIZE], temporary[CLI_PATH_SIZE + 32];
} cli_file;

BJ_CHECK bj_status cli_file_open(cli_file *file, const char *path, bj_error *err);
/* Publishes the file that was written to the stream, or removes it and reports the reason. */
BJ_CHECK bj_status cli_file_commit(cli_file *file, bj_error *err);
/* Removes it; what had the name before stays. */
void cli_file_abort(cli_file *file);

#endif
