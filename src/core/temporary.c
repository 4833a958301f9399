/* temporary.c - see temporary.h for the contract. Test: tests/core/test_file.c */
#define _DEFAULT_SOURCE /* flock; includes POSIX.1-2008 */
#define _XOPEN_SOURCE 700
#include "core/temporary.h"

#include <branchjepa/branchjepa.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    NAMES = 1000, /* max names to try */
    SLOTS = 64    /* max temporaries that a signal handler can remove; others become leftovers */
};

/* Copies of the open temporaries. A signal handler reads them while another thread may free the
 * original. */
static struct {
    atomic_int used; /* 0 free, 1 changing, 2 complete */
    bj_temporary copy;
} slots[SLOTS];

static void enroll(bj_temporary *t) {
    for (int i = 0; i < SLOTS; i++) {
        int expected = 0;
        if (!atomic_compare_exchange_strong(&slots[i].used, &expected, 1)) continue;
        t->slot = i;
        slots[i].copy = *t;
        atomic_store(&slots[i].used, 2);
        return;
    }
}

void bj_temporary_forget(bj_temporary *t) {
    t->exists = 0;
    if (t->slot >= 0) atomic_store(&slots[t->slot].used, 0);
    t->slot = -1;
}

/* Calls only functions that POSIX allows in signal handlers. */
void bj_remove_temporaries(void) {
    for (int i = 0; i < SLOTS; i++) {
        const bj_temporary *t = &slots[i].copy;
        if (atomic_load(&slots[i].used) != 2) continue;
        for (const char *const *f = t->files; f && *f; f++) (void)unlinkat(t->fd, *f, 0);
        (void)unlinkat(t->parent, t->name, t->files ? AT_REMOVEDIR : 0);
    }
}

/* ------------------------------------------------------------------------------------ leftovers */

/* Checks for a name of the form .<target>.<digits>-<digits>.tmp. */
static int is_temporary(const char *entry, const char *target) {
    static const char digits[] = "0123456789";
    const size_t length = strlen(target);
    const size_t n = length < BJ_TEMPORARY_TARGET ? length : BJ_TEMPORARY_TARGET;
    if (entry[0] != '.' || strncmp(entry + 1, target, n) || entry[n + 1] != '.') return 0;
    entry += n + 2;
    const size_t process = strspn(entry, digits);
    if (!process || entry[process] != '-') return 0;
    entry += process + 1;
    const size_t number = strspn(entry, digits);
    return number && !strcmp(entry + number, ".tmp");
}

int bj_temporary_belongs(const char *entry, const char *const *files) {
    for (; *files; files++)
        if (!strcmp(entry, *files) || is_temporary(entry, *files)) return 1;
    return 0;
}

void bj_temporary_remove_folder(int parent, const char *name, const char *const *files) {
    DIR *dir = bj_file_list(parent, name);
    if (!dir) return;
    /* A folder has one writer at a time (folder.h), so a missing lock does not protect it. */
    if (!flock(dirfd(dir), LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK) {
        for (const char *entry; (entry = bj_file_next(dir));)
            if (bj_temporary_belongs(entry, files)) (void)unlinkat(dirfd(dir), entry, 0);
        (void)unlinkat(parent, name, AT_REMOVEDIR);
    }
    closedir(dir);
}

static void remove_file(int parent, const char *name) {
    struct stat info;
    const int fd = openat(parent, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    if (!fstat(fd, &info) && S_ISREG(info.st_mode) && !flock(fd, LOCK_EX | LOCK_NB))
        (void)unlinkat(parent, name, 0);
    close(fd);
}

static void remove_leftovers(int parent, const char *target, const char *const *files) {
    DIR *dir = bj_file_list(parent, ".");
    if (!dir) return;
    for (const char *entry; (entry = bj_file_next(dir));) {
        if (!is_temporary(entry, target)) continue;
        if (files) bj_temporary_remove_folder(parent, entry, files);
        else remove_file(parent, entry);
    }
    closedir(dir);
}

/* ------------------------------------------------------------------------------------- creating */

static int open_new(const bj_temporary *t) {
    if (!t->files)
        return openat(t->parent, t->name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (mkdirat(t->parent, t->name, 0777)) return -1;
    const int fd = openat(t->parent, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) (void)unlinkat(t->parent, t->name, AT_REMOVEDIR);
    return fd;
}

/* Locks the new temporary. Returns 0 if another process took it for a leftover in the meantime. */
static int keep(int fd) {
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) return 0;
    return fstat(fd, &info) || info.st_nlink > 0;
}

bj_status bj_temporary_create(bj_temporary *t, int parent, const char *target,
                              const char *const *files, const char *path, bj_error *err) {
    *t = (bj_temporary){.parent = parent, .fd = -1, .slot = -1, .files = files};
    remove_leftovers(parent, target, files);
    errno = EEXIST;
    for (int n = 0; n < NAMES && t->fd < 0; n++) {
        snprintf(t->name, sizeof t->name, ".%.*s.%ld-%d.tmp", (int)BJ_TEMPORARY_TARGET, target,
                 (long)getpid(), n);
        t->fd = open_new(t);
        if (t->fd < 0 && errno != EEXIST && errno != EINTR) break;
        if (t->fd >= 0 && !keep(t->fd)) bj_temporary_close(t), errno = EEXIST;
    }
    if (t->fd < 0)
        return bj_file_fail(err, errno, path,
                            files ? "create a temporary folder" : "create a temporary file");
    t->exists = 1;
    enroll(t);
    return BJ_OK;
}

int bj_temporary_flush(bj_temporary *t) {
    const int second = fcntl(t->fd, F_DUPFD_CLOEXEC, 0), first = t->fd;
    if (second < 0) return -1;
    t->fd = second;
    return close(first) && errno != EINTR ? -1 : 0;
}

void bj_temporary_close(bj_temporary *t) {
    if (t->fd >= 0) close(t->fd);
    t->fd = -1;
}

int bj_temporary_rename(bj_temporary *t, const char *target) {
    if (renameat(t->parent, t->name, t->parent, target)) return -1;
    bj_temporary_forget(t);
    return 0;
}

void bj_temporary_remove(bj_temporary *t) {
    bj_temporary_close(t);
    if (!t->exists) return;
    if (t->files) bj_temporary_remove_folder(t->parent, t->name, t->files);
    else (void)unlinkat(t->parent, t->name, 0);
    bj_temporary_forget(t);
}
