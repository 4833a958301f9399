/* file.c - see file.h for the contract. Test: tests/core/test_file.c */
#define _XOPEN_SOURCE 700 /* openat, realpath, the POSIX strerror_r */
#include "core/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/temporary.h"

enum {
    BUFFER_SIZE = 64 * 1024, /* small writes are buffered */
    MAX_IO = 1 << 30         /* max bytes per read or write call; Linux transfers at most 2 GiB */
};

bj_status bj_file_fail(bj_error *err, int number, const char *path, const char *what) {
    char text[128];
    if (strerror_r(number, text, sizeof text)) snprintf(text, sizeof text, "error %d", number);
    return BJ_FAIL(err, BJ_EIO, "%s: cannot %s: %s", path, what, text);
}

int bj_file_open(const char *path, int flags) {
    int fd;
    if ((flags & O_ACCMODE) == O_RDONLY) flags |= O_NONBLOCK; /* do not wait for a pipe's writer */
    do fd = open(path, flags | O_CLOEXEC);
    while (fd < 0 && errno == EINTR);
    return fd;
}

const char *bj_file_kind(const char *path) {
    unsigned char head[9] = {0};
    struct stat info;
    if (stat(path, &info)) return NULL;
    if (S_ISDIR(info.st_mode)) return "a folder";
    if (!S_ISREG(info.st_mode)) return NULL;
    const int fd = bj_file_open(path, O_RDONLY);
    const ssize_t size = fd < 0 ? 0 : read(fd, head, sizeof head);
    if (fd >= 0) close(fd);
    if (size < (ssize_t)sizeof head) return NULL;
    if (!memcmp(head, "PAR1", 4)) return "a Parquet file";
    if (!memcmp(head, "PK\3\4", 4)) return "an npz archive";
    /* A safetensors file starts with a header length below 16 MiB, followed by a brace. */
    if (head[8] == '{' && !head[3] && !head[4] && !head[5] && !head[6] && !head[7])
        return "a safetensors file";
    return NULL;
}

bj_status bj_file_open_parent(int *dir, char name[BJ_FILE_NAME], const char *final,
                              const char *path, bj_error *err) {
    char folder[PATH_MAX];
    const char *slash = strrchr(final, '/'), *base = slash ? slash + 1 : final;
    const size_t length = slash == final ? 1 : slash ? (size_t)(slash - final) : 0;
    if (!*base) return BJ_FAIL(err, BJ_EIO, "%s: cannot create: no file name given", path);
    if (strlen(base) >= BJ_FILE_NAME || length >= sizeof folder)
        return bj_file_fail(err, ENAMETOOLONG, path, "create");
    memcpy(folder, length ? final : ".", length ? length : 1);
    folder[length ? length : 1] = '\0';
    memcpy(name, base, strlen(base) + 1);
    *dir = bj_file_open(folder, O_RDONLY | O_DIRECTORY);
    return *dir < 0 ? bj_file_fail(err, errno, path, "open the directory") : BJ_OK;
}

DIR *bj_file_list(int parent, const char *name) {
    const int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir) close(fd);
    return dir;
}

const char *bj_file_next(DIR *dir) {
    for (const struct dirent *entry; (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) return entry->d_name;
    return NULL;
}

bj_status bj_file_sync_folder(int dir, const char *path, const char *what, bj_error *err) {
    /* Some file systems cannot sync a directory and return EINVAL, which is not an error here. */
    return fsync(dir) && errno != EINVAL ? bj_file_fail(err, errno, path, what) : BJ_OK;
}

/* -------------------------------------------------------------------------------------- reading */

static bj_status fail_limit(bj_error *err, const char *path, size_t limit) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: file has more than %zu bytes", path, limit);
}

/* Makes sure that the buffer has room for `wanted` bytes and a terminating zero. Keeps the first
 * `used` bytes. */
static bj_status make_room(char **memory, size_t *room, size_t used, size_t wanted, bj_error *err) {
    char *larger;
    if (wanted < *room) return BJ_OK;
    BJ_TRY(BJ_ALLOC(larger, wanted + 1, err));
    if (used) memcpy(larger, *memory, used);
    bj_free(*memory);
    *memory = larger;
    *room = wanted + 1;
    return BJ_OK;
}

/* Returns 1 if the path names a descriptor that the caller was given, for example by a shell's
 * <(...). The caller explicitly named this pipe, so it is correct to wait for its writer. */
static int is_passed(const char *path) {
    return !strcmp(path, "/dev/stdin") || !strncmp(path, "/dev/fd/", 8) ||
           !strncmp(path, "/proc/self/fd/", 14);
}

/* Fails unless the file is a regular file or a pipe for which is_passed returns 1, and is within
 * the limit. */
static bj_status check_kind(int fd, struct stat *info, const char *path, size_t limit,
                            bj_error *err) {
    if (fstat(fd, info)) return bj_file_fail(err, errno, path, "examine");
    if (S_ISDIR(info->st_mode)) return bj_file_fail(err, EISDIR, path, "read");
    if (S_ISREG(info->st_mode))
        return (uintmax_t)info->st_size > limit ? fail_limit(err, path, limit) : BJ_OK;
    if (!is_passed(path))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: cannot read: not a regular file", path);
    return fcntl(fd, F_SETFL, 0) ? bj_file_fail(err, errno, path, "examine") : BJ_OK;
}

bj_status bj_file_read_again(char **memory, size_t *room, size_t *size, const char *path,
                             size_t limit, bj_error *err) {
    size_t used = 0;
    bj_status status = BJ_OK;
    *size = 0;
    const int fd = bj_file_open(path, O_RDONLY);
    if (fd < 0) return bj_file_fail(err, errno, path, "open");

    struct stat info;
    BJ_GOTO(status, done, check_kind(fd, &info, path, limit, err));
    /* The size is only a hint, because pipes and /proc files have none and a file may grow while it
     * is read. The extra byte makes it possible to reach end of file without another allocation. */
    const int has_size = S_ISREG(info.st_mode) && info.st_size > 0;
    BJ_GOTO(status, done,
            make_room(memory, room, 0, has_size ? (size_t)info.st_size + 1 : BUFFER_SIZE, err));
    for (;;) {
        if (used + 1 == *room) BJ_GOTO(status, done, make_room(memory, room, used, 2 * used, err));
        const size_t want = *room - 1 - used < MAX_IO ? *room - 1 - used : MAX_IO;
        const ssize_t got = read(fd, *memory + used, want);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = bj_file_fail(err, errno, path, "read");
            goto done;
        }
        if (got == 0) break;
        used += (size_t)got;
        if (used > limit) {
            status = fail_limit(err, path, limit);
            goto done;
        }
    }
    (*memory)[used] = '\0';
    *size = used;
done:
    close(fd);
    return status;
}

bj_status bj_file_read(char **out, size_t *size, const char *path, size_t limit, bj_error *err) {
    size_t room = 0;
    *out = NULL;
    const bj_status status = bj_file_read_again(out, &room, size, path, limit, err);
    if (status == BJ_OK) return BJ_OK;
    bj_free(*out);
    *out = NULL;
    return status;
}

int bj_file_exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bj_status bj_file_map_open(bj_file_map *map, const char *path, size_t limit, bj_error *err) {
    static const unsigned char nothing[1];
    bj_status status = BJ_OK;
    *map = (bj_file_map){NULL, 0};
    const int fd = bj_file_open(path, O_RDONLY);
    if (fd < 0) return bj_file_fail(err, errno, path, "open");

    struct stat info;
    if (fstat(fd, &info)) {
        status = bj_file_fail(err, errno, path, "examine");
    } else if (S_ISDIR(info.st_mode)) {
        status = bj_file_fail(err, EISDIR, path, "read");
    } else if (!S_ISREG(info.st_mode)) {
        status = BJ_FAIL(err, BJ_EIO, "%s: cannot map: not a regular file", path);
    } else if ((uintmax_t)info.st_size > limit) {
        status = fail_limit(err, path, limit);
    } else if (info.st_size == 0) {
        map->data = nothing; /* mmap rejects empty files */
    } else {
        void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) {
            status = bj_file_fail(err, errno, path, "map");
        } else {
            map->data = data;
            map->size = (size_t)info.st_size;
        }
    }
    close(fd);
    return status;
}

void bj_file_map_close(bj_file_map *map) {
    if (map->size) munmap((void *)(uintptr_t)map->data, map->size);
    *map = (bj_file_map){NULL, 0};
}

/* -------------------------------------------------------------------------------------- writing */

struct bj_file_writer {
    char *path;                   /* as given by the caller, for messages */
    int dir;                      /* directory of both names; -1 if writing directly */
    bj_temporary temporary;       /* the hidden file; only its fd is used if writing directly */
    int failure;                  /* errno of the first failed write */
    char target[BJ_FILE_NAME];    /* final name in dir */
    size_t used;                  /* bytes in the buffer */
    unsigned char buffer[BUFFER_SIZE];
};

static void writer_free(bj_file_writer *writer) {
    if (!writer) return;
    bj_temporary_remove(&writer->temporary);
    if (writer->dir >= 0) close(writer->dir);
    bj_free(writer->path);
    bj_free(writer);
}

/* Opens the parent directory of `final` and creates a hidden file in it. */
static bj_status open_temporary(bj_file_writer *writer, const char *final, bj_error *err) {
    BJ_TRY(bj_file_open_parent(&writer->dir, writer->target, final, writer->path, err));
    return bj_temporary_create(&writer->temporary, writer->dir, writer->target, NULL, writer->path,
                               err);
}

/* Examines the path and fails if no file can be written there. `info` is zero if there is no file. */
static bj_status check_target(struct stat *info, const char *path, bj_error *err) {
    if (stat(path, info)) {
        if (errno != ENOENT) return bj_file_fail(err, errno, path, "create");
        if (lstat(path, info) == 0)
            return BJ_FAIL(err, BJ_EIO, "%s: cannot create: broken symbolic link", path);
        memset(info, 0, sizeof *info);
        return BJ_OK;
    }
    if (S_ISDIR(info->st_mode)) return bj_file_fail(err, EISDIR, path, "replace");
    if (!S_ISREG(info->st_mode) && !S_ISCHR(info->st_mode) && !S_ISFIFO(info->st_mode))
        return BJ_FAIL(err, BJ_EIO, "%s: cannot replace: not a regular file", path);
    return access(path, W_OK) ? bj_file_fail(err, errno, path, "replace") : BJ_OK;
}

bj_status bj_file_writable(const char *path, bj_error *err) {
    struct stat info;
    return check_target(&info, path, err);
}

static bj_status open_target(bj_file_writer *writer, bj_error *err) {
    const char *path = writer->path;
    struct stat info;
    BJ_TRY(check_target(&info, path, err));
    if (!info.st_mode) return open_temporary(writer, path, err);
    if (!S_ISREG(info.st_mode)) {
        writer->temporary.fd = bj_file_open(path, O_WRONLY | O_NOCTTY);
        return writer->temporary.fd < 0 ? bj_file_fail(err, errno, path, "open for writing")
                                        : BJ_OK;
    }
    char final[PATH_MAX];
    if (!realpath(path, final)) return bj_file_fail(err, errno, path, "resolve");
    BJ_TRY(open_temporary(writer, final, err));
    if (fchmod(writer->temporary.fd, info.st_mode & 07777))
        return bj_file_fail(err, errno, path, "keep the permissions");
    return BJ_OK;
}

bj_status bj_file_writer_open(bj_file_writer **out, const char *path, bj_error *err) {
    bj_file_writer *writer = NULL;
    bj_status status;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(writer, 1, err));
    writer->dir = writer->temporary.fd = writer->temporary.slot = -1;
    writer->path = bj_strdup(path);
    status = writer->path ? open_target(writer, err) : bj_alloc_failed(strlen(path) + 1, 1, err);
    if (status == BJ_OK) *out = writer;
    else writer_free(writer);
    return status;
}

static bj_status write_through(bj_file_writer *writer, const unsigned char *data, size_t size,
                               bj_error *err) {
    while (size) {
        const ssize_t done = write(writer->temporary.fd, data, size < MAX_IO ? size : MAX_IO);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            writer->failure = errno;
            return bj_file_fail(err, writer->failure, writer->path, "write");
        }
        data += done;
        size -= (size_t)done;
    }
    return BJ_OK;
}

static bj_status flush(bj_file_writer *writer, bj_error *err) {
    if (writer->failure) return bj_file_fail(err, writer->failure, writer->path, "write");
    const size_t used = writer->used;
    writer->used = 0;
    return write_through(writer, writer->buffer, used, err);
}

bj_status bj_file_writer_write(bj_file_writer *writer, const void *data, size_t size,
                               bj_error *err) {
    if (writer->failure) return bj_file_fail(err, writer->failure, writer->path, "write");
    if (size == 0) return BJ_OK;
    if (size > BUFFER_SIZE - writer->used) BJ_TRY(flush(writer, err));
    if (size >= BUFFER_SIZE) return write_through(writer, data, size, err);
    memcpy(writer->buffer + writer->used, data, size);
    writer->used += size;
    return BJ_OK;
}

/* Performs every step that can run out of disk space, so that publish() only has to rename. */
static bj_status finish(bj_file_writer *writer, bj_error *err) {
    BJ_TRY(flush(writer, err));
    if (writer->temporary.exists && fsync(writer->temporary.fd))
        return bj_file_fail(err, errno, writer->path, "sync");
    return bj_temporary_flush(&writer->temporary) ? bj_file_fail(err, errno, writer->path, "close")
                                                  : BJ_OK;
}

static bj_status publish(bj_file_writer *writer, bj_error *err) {
    if (!writer->temporary.exists) return BJ_OK;
    if (bj_temporary_rename(&writer->temporary, writer->target))
        return bj_file_fail(err, errno, writer->path, "rename the finished file");
    return bj_file_sync_folder(writer->dir, writer->path, "sync the directory of the finished file",
                               err);
}

int bj_file_writer_descriptor(bj_file_writer *writer) { return writer->temporary.fd; }

bj_status bj_file_writer_commit_all(bj_file_writer **writers, int count, bj_error *err) {
    bj_status status = BJ_OK;
    for (int i = 0; i < count && status == BJ_OK; i++) status = finish(writers[i], err);
    for (int i = 0; i < count && status == BJ_OK; i++) status = publish(writers[i], err);
    for (int i = 0; i < count; i++) bj_file_writer_abort(&writers[i]);
    return status;
}

bj_status bj_file_writer_commit(bj_file_writer **writer, bj_error *err) {
    return bj_file_writer_commit_all(writer, 1, err);
}

void bj_file_writer_abort(bj_file_writer **writer) {
    writer_free(*writer);
    *writer = NULL;
}

bj_status bj_file_write(const char *path, const void *data, size_t size, bj_error *err) {
    bj_file_writer *writer = NULL;
    bj_status status;
    BJ_TRY(bj_file_writer_open(&writer, path, err));
    BJ_GOTO(status, failed, bj_file_writer_write(writer, data, size, err));
    return bj_file_writer_commit(&writer, err);
failed:
    bj_file_writer_abort(&writer);
    return status;
}
