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

bj_status cli_file_replaceable(const char *path, bj_error *err) {
    struct stat info;
    if (lstat(path, &info) != 0)
        return errno == ENOENT ? BJ_OK : refused(path, "examine the file", err);
    if (!S_ISREG(info.st_mode))
        return cli_error(err, BJ_EIO, "%s: cannot be replaced, because it is not a regular file",
                         path);
    return BJ_OK;
}

/* Where the last component of a path starts. */
static size_t name_start(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

bj_status cli_file_open(cli_file *file, const char *path, bj_error *err) {
    const int folder = (int)name_start(path);
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->temporary, sizeof file->temporary, "%.*s.%s.%ld.tmp", folder, path,
             path + folder, (long)getpid());
    const int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return refused(file->temporary, "create the file", err);
    file->stream = fdopen(fd, "w");
    if (file->stream) return BJ_OK;
    const bj_status status = refused(file->temporary, "write the file", err);
    close(fd);
    unlink(file->temporary);
    return status;
}

/* A rename survives a power failure only if the folder is synced, which some file systems do not
 * support. */
static void sync_folder(const char *path) {
    char folder[CLI_PATH_SIZE];
    snprintf(folder, sizeof folder, "%.*s", (int)name_start(path), path);
    const int fd = open(*folder ? folder : ".", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

bj_status cli_file_commit(cli_file *file, bj_error *err) {
    errno = EIO; /* for a write that failed earlier */
    const int failed = ferror(file->stream) || fflush(file->stream) || fsync(fileno(file->stream));
    bj_status status = failed ? refused(file->path, "write the file", err) : BJ_OK;
    if (fclose(file->stream) && status == BJ_OK)
        status = refused(file->path, "write the file", err);
    if (status == BJ_OK && rename(file->temporary, file->path) != 0)
        status = refused(file->path, "rename the finished file", err);
    if (status == BJ_OK) sync_folder(file->path);
    else unlink(file->temporary);
    return status;
}

void cli_file_abort(cli_file *file) {
    fclose(file->stream);
    unlink(file->temporary);
}
