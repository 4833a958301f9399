/* faults.c - makes the n-th input/output call of a program fail, or kills the program there.
 *
 * A shared library for LD_PRELOAD. Tests run a command once to count its calls, then once for every
 * call, and check what the next run finds.
 *
 *   FAULT_OPS     names of calls, separated by commas: open read write sync rename mkdir unlink
 *                 close lock truncate stat map
 *   FAULT_PATH    only calls on files whose path contains this text
 *   FAULT_N       number of the call that fails, from 1; 0: none
 *   FAULT_ACTION  EIO (default), KILL for SIGKILL before the call, or WAIT to wait for a signal
 *   FAULT_COUNT   file that receives the number of calls when the program exits
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_long calls;

static int matches(const char *path) {
    const char *part = getenv("FAULT_PATH");
    return !part || (path && strstr(path, part));
}

/* Returns 1 if the call must fail, with errno set. */
static int fails(const char *op, const char *path) {
    const char *ops = getenv("FAULT_OPS"), *n = getenv("FAULT_N"), *action = getenv("FAULT_ACTION");
    const char *at = ops ? strstr(ops, op) : NULL;
    if (!at || !matches(path)) return 0;
    const long call = atomic_fetch_add(&calls, 1) + 1;
    if (!n || call != atol(n)) return 0;
    if (action && !strcmp(action, "KILL")) {
        syscall(SYS_kill, getpid(), SIGKILL);
        pause();
    }
    if (action && !strcmp(action, "WAIT")) {
        pause();
        return 0;
    }
    errno = EIO;
    return 1;
}

static int fails_at(const char *op, int fd) {
    char link[40], path[4096];
    if (fd <= 2 || !getenv("FAULT_OPS")) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = '\0';
    return fails(op, path);
}

__attribute__((destructor)) static void report(void) {
    const char *file = getenv("FAULT_COUNT");
    char text[32];
    if (!file) return;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
    syscall(SYS_write, fd, text, (size_t)size);
    syscall(SYS_close, fd);
}

/* Defines a function that calls the next one of that name unless `condition` holds. */
#define WRAP(type, failure, name, parameters, arguments, condition)                                \
    type name parameters {                                                                         \
        static type(*next) parameters;                                                             \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                      \
        if (condition) return failure;                                                             \
        return next arguments;                                                                     \
    }

/* clang-format off */
WRAP(ssize_t, -1, read, (int fd, void *to, size_t n), (fd, to, n), fails_at("read", fd))
WRAP(ssize_t, -1, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), fails_at("read", fd))
WRAP(ssize_t, -1, write, (int fd, const void *from, size_t n), (fd, from, n), fails_at("write", fd))
WRAP(ssize_t, -1, pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at), fails_at("write", fd))
WRAP(int, -1, fsync, (int fd), (fd), fails_at("sync", fd))
WRAP(int, -1, fdatasync, (int fd), (fd), fails_at("sync", fd))
WRAP(int, -1, ftruncate, (int fd, off_t n), (fd, n), fails_at("truncate", fd))
WRAP(int, -1, flock, (int fd, int how), (fd, how), fails_at("lock", fd))
WRAP(int, -1, rename, (const char *a, const char *b), (a, b), fails("rename", b))
WRAP(int, -1, renameat, (int d, const char *a, int e, const char *b), (d, a, e, b), fails("rename", b))
WRAP(int, -1, mkdir, (const char *a, mode_t m), (a, m), fails("mkdir", a))
WRAP(int, -1, mkdirat, (int d, const char *a, mode_t m), (d, a, m), fails("mkdir", a))
WRAP(int, -1, unlink, (const char *a), (a), fails("unlink", a))
WRAP(int, -1, unlinkat, (int d, const char *a, int f), (d, a, f), fails("unlink", a))
WRAP(int, -1, rmdir, (const char *a), (a), fails("unlink", a))
WRAP(int, -1, stat, (const char *a, struct stat *s), (a, s), fails("stat", a))
WRAP(int, -1, lstat, (const char *a, struct stat *s), (a, s), fails("stat", a))
WRAP(int, -1, fstat, (int fd, struct stat *s), (fd, s), fails_at("stat", fd))
WRAP(int, -1, fstatat, (int d, const char *a, struct stat *s, int f), (d, a, s, f), fails("stat", a))
WRAP(int, -1, access, (const char *a, int how), (a, how), fails("stat", a))
WRAP(FILE *, NULL, fopen, (const char *a, const char *how), (a, how), fails("open", a))
WRAP(void *, MAP_FAILED, mmap, (void *a, size_t n, int p, int f, int fd, off_t at), (a, n, p, f, fd, at), fails_at("map", fd))
/* clang-format on */

int close(int fd) {
    static int (*next)(int);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "close");
    const int failed = fails_at("close", fd), number = errno, result = next(fd);
    if (failed) errno = number;
    return failed ? -1 : result;
}

static mode_t mode_of(int flags, va_list list) {
    return flags & O_CREAT ? (mode_t)va_arg(list, int) : 0;
}

int open(const char *path, int flags, ...) {
    static int (*next)(const char *, int, ...);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "open");
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return fails("open", path) ? -1 : next(path, flags, mode);
}

int openat(int dir, const char *path, int flags, ...) {
    static int (*next)(int, const char *, int, ...);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "openat");
    va_list list;
    va_start(list, flags);
    const mode_t mode = mode_of(flags, list);
    va_end(list);
    return fails("open", path) ? -1 : next(dir, path, flags, mode);
}
