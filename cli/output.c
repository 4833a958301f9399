/* output.c - see output.h. */
#define _XOPEN_SOURCE 700
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bj_status refused(const char *path, const char *what, bj_error *err) {
    return cli_error(err, BJ_EIO, "%s: cannot %s: %s", path, what, strerror(errno));
}

bj_status cli_path(char path[CLI_PATH_SIZE], const char *folder, const char *name, bj_error *err) {
    const size_t length = strlen(folder);
    const char *separator = length && folder[length - 1] == '/' ? "" : "/";
    if (snprintf(path, CLI_PATH_SIZE, "%s%s%s", folder, separator, name) >= CLI_PATH_SIZE)
        return cli_error(err, BJ_EARG, "%.64s...: the path has %zu characters, expected at most %d",
                         folder, length + 1 + strlen(name), CLI_PATH_SIZE - 1);
    return BJ_OK;
}

int cli_exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

int cli_ends_in(const char *name, const char *suffix) {
    const size_t n = strlen(name), m = strlen(suffix);
    return n > m && !strcmp(name + n - m, suffix);
}

bj_status cli_folder(int *created, const char *folder, bj_error *err) {
    struct stat info;
    *created = mkdir(folder, 0777) == 0;
    if (!*created && errno != EEXIST) return refused(folder, "create the folder", err);
    if (stat(folder, &info) != 0) return refused(folder, "read the folder", err);
    if (!S_ISDIR(info.st_mode))
        return cli_error(err, BJ_EIO, "%s: is a file, expected a folder", folder);
    if (access(folder, W_OK | X_OK) != 0) return refused(folder, "write to the folder", err);
    return BJ_OK;
}

bj_status cli_file_open(cli_file *file, const char *path, bj_error *err) {
    snprintf(file->path, sizeof file->path, "%s", path);
    bj_status status = bj_file_writer_open(&file->writer, path, err);
    if (status != BJ_OK) return status;
    const int fd = fcntl(bj_file_writer_descriptor(file->writer), F_DUPFD_CLOEXEC, 0);
    file->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (file->stream) return BJ_OK;
    status = refused(path, "write the file", err);
    if (fd >= 0) close(fd);
    bj_file_writer_abort(&file->writer);
    return status;
}

bj_status cli_file_commit(cli_file *file, bj_error *err) {
    const int failed = ferror(file->stream);
    if (cli_out_of_memory()) {
        cli_file_abort(file);
        return cli_error(err, BJ_ENOMEM, "%s: out of memory", file->path);
    }
    if (!fclose(file->stream) && !failed) return bj_file_writer_commit(&file->writer, err);
    if (failed) errno = EIO; /* the number of the failed write is lost */
    const bj_status status = refused(file->path, "write the file", err);
    bj_file_writer_abort(&file->writer);
    return status;
}

void cli_file_abort(cli_file *file) {
    fclose(file->stream);
    bj_file_writer_abort(&file->writer);
}
