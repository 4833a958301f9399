/* faults.c - makes the n-th input/output call or allocation of a program fail, or kills the program
 * there.
 *
 * A shared library for LD_PRELOAD. Tests run a command once to count its calls, then once for every
 * call, and check what the next run finds.
 *
 *   FAULT_OPS     names of calls, separated by commas: open read write sync rename mkdir unlink
 *                 close lock truncate stat map alloc
 *   FAULT_PATH    only calls on files whose path contains this text
 *   FAULT_N       number of the call that fails, from 1; 0: none
 *   FAULT_ACTION  EIO (default) or ENOSPC: the call fails
 *                 SHORT: a read or write transfers half of the bytes
 *                 KILL: SIGKILL before the call
 *                 WAIT: wait for a signal before the call
 *                 CUT: truncate the file of the call to 100 bytes
 *   FAULT_COUNT   file that receives the number of calls when the program exits
 *
 * Output streams of stdio are replaced by streams that call write(), because libc's own streams
 * cannot be intercepted.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum action { FAIL, SHORT, KILL, WAIT, CUT };

static struct {
    const char *ops, *path, *count;
    long n;
    enum action action;
    int number; /* errno of a failed call */
} fault;
static atomic_long calls;

__attribute__((constructor)) static void begin(void) {
    static const char *const names[] = {"EIO", "SHORT", "KILL", "WAIT", "CUT"};
    const char *n = getenv("FAULT_N"), *action = getenv("FAULT_ACTION");
    fault.path = getenv("FAULT_PATH");
    fault.count = getenv("FAULT_COUNT");
    fault.n = n ? atol(n) : 0;
    fault.number = action && !strcmp(action, "ENOSPC") ? ENOSPC : EIO;
    for (int i = 0; i < 5; i++)
        if (action && !strcmp(action, names[i])) fault.action = (enum action)i;
    fault.ops = getenv("FAULT_OPS");
}

static int selected(const char *op) { return fault.ops && strstr(fault.ops, op); }

/* Returns 1 if the call must fail or transfer less, with errno set. */
static int fails(const char *op, const char *path) {
    if (!selected(op) || (fault.path && !(path && strstr(path, fault.path)))) return 0;
    if (atomic_fetch_add(&calls, 1) + 1 != fault.n) return 0;
    if (fault.action == KILL) {
        syscall(SYS_kill, getpid(), SIGKILL);
        pause();
    }
    if (fault.action == WAIT) pause();
    if (fault.action == CUT) syscall(SYS_truncate, path, 100L);
    errno = fault.number;
    return fault.action == FAIL || fault.action == SHORT;
}

static int fails_at(const char *op, int fd) {
    char link[40], path[4096];
    if (fd <= 2 || !selected(op)) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    path[size < 0 ? 0 : size] = '\0';
    return fails(op, path);
}

__attribute__((destructor)) static void report(void) {
    char text[32];
    if (!fault.count) return;
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, fault.count, O_WRONLY | O_CREAT | O_TRUNC, 0666);
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

/* Defines a transfer that fails, or moves only half of the bytes. */
#define TRANSFER(op, name, parameters, arguments, half)                                            \
    ssize_t name parameters {                                                                      \
        static ssize_t(*next) parameters;                                                          \
        if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name);                                      \
        if (!fails_at(op, fd)) return next arguments;                                              \
        return fault.action == SHORT ? next half : -1;                                             \
    }

/* clang-format off */
TRANSFER("read", read, (int fd, void *to, size_t n), (fd, to, n), (fd, to, n / 2 + n % 2))
TRANSFER("read", pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), (fd, to, n / 2 + n % 2, at))
TRANSFER("write", write, (int fd, const void *from, size_t n), (fd, from, n), (fd, from, n / 2 + n % 2))
TRANSFER("write", pwrite, (int fd, const void *from, size_t n, off_t at), (fd, from, n, at), (fd, from, n / 2 + n % 2, at))
/* clang-format on */

/* ------------------------------------------------------------------------------- output streams */

static ssize_t stream_write(void *cookie, const char *from, size_t n) {
    return write((int)(intptr_t)cookie, from, n);
}

static int stream_seek(void *cookie, off64_t *to, int whence) {
    *to = lseek((int)(intptr_t)cookie, *to, whence);
    return *to < 0 ? -1 : 0;
}

static int stream_close(void *cookie) { return close((int)(intptr_t)cookie); }

FILE *fdopen(int fd, const char *how) {
    static FILE *(*next)(int, const char *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "fdopen");
    if (fails_at("open", fd)) return NULL;
    if (*how != 'w' || !selected("write")) return next(fd, how);
    return fopencookie((void *)(intptr_t)fd, how,
                       (cookie_io_functions_t){NULL, stream_write, stream_seek, stream_close});
}

/* ---------------------------------------------------------------------------------- allocations */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t count, size_t n);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t alignment, size_t n);

static int no_memory(void) {
    if (!fails("alloc", NULL)) return 0;
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t n) { return no_memory() ? NULL : __libc_malloc(n); }
void *calloc(size_t count, size_t n) { return no_memory() ? NULL : __libc_calloc(count, n); }
void *realloc(void *old, size_t n) { return no_memory() ? NULL : __libc_realloc(old, n); }
void *aligned_alloc(size_t alignment, size_t n) {
    return no_memory() ? NULL : __libc_memalign(alignment, n);
}
int posix_memalign(void **out, size_t alignment, size_t n) {
    void *memory = no_memory() ? NULL : __libc_memalign(alignment, n);
    if (memory) *out = memory;
    return memory ? 0 : ENOMEM;
}

/* --------------------------------------------------------------------------------- other calls */

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
