/* cache_open.c - creates a cache or resumes an interrupted one. cache_writer.h is the interface,
 * cache_partial.h describes the files. Test: tests/data/test_cache_resume.c */
#define _DEFAULT_SOURCE   /* flock */
#define _XOPEN_SOURCE 700 /* openat, realpath */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/clock.h"
#include "core/file.h"
#include "data/cache_partial.h"

static const char facts_name[] = "facts", facts_temporary[] = "facts.new";
static const char partial_suffix[] = ".partial";

/* -------------------------------------------------------------------------------------- removing
 */

void bj_cache_remove_partial(int parent, const char *below, int folder) {
    for (int f = 0; f < BJ_FILES; f++) (void)unlinkat(folder, bj_cache_file_names[f], 0);
    (void)unlinkat(folder, facts_temporary, 0);
    (void)unlinkat(folder, facts_name, 0); /* removed last, see invariant 4 */
    (void)unlinkat(parent, below, AT_REMOVEDIR);
}

void bj_cache_writer_free(bj_cache_writer *w) {
    if (!w) return;
    for (int f = 0; f < BJ_FILES; f++)
        if (w->fd[f] >= 0) close(w->fd[f]);
    if (w->folder >= 0) close(w->folder); /* also releases the lock */
    if (w->parent >= 0) close(w->parent);
    for (int i = 0; i < w->fact_count; i++) {
        bj_free((void *)(uintptr_t)w->facts[i].key);
        bj_free((void *)(uintptr_t)w->facts[i].value);
    }
    bj_free(w->facts);
    bj_free(w->digests);
    bj_free(w->table);
    bj_free(w->rows);
    bj_free(w->path);
    bj_free(w->partial);
    bj_free(w);
}

void bj_cache_writer_close(bj_cache_writer **writer) {
    bj_cache_writer_free(*writer);
    *writer = NULL;
}

/* --------------------------------------------------------------------------------------- folder */

/* Determines the paths of the cache and of its partial folder, and opens their parent directory. */
static bj_status locate(bj_cache_writer *w, const char *path, bj_error *err) {
    char final[PATH_MAX];
    struct stat info;
    if (strlen(path) + sizeof partial_suffix >= sizeof final)
        return bj_file_fail(err, ENAMETOOLONG, path, "create");
    memcpy(final, path, strlen(path) + 1);
    if (stat(path, &info) == 0) {
        if (!S_ISREG(info.st_mode))
            return BJ_FAIL(err, BJ_EIO, "%s: cannot replace: not a regular file", path);
        char whole[PATH_MAX];
        if (!realpath(path, whole)) return bj_file_fail(err, errno, path, "resolve");
        memcpy(final, whole, strlen(whole) + 1);
    } else if (lstat(path, &info) == 0) {
        return BJ_FAIL(err, BJ_EIO, "%s: cannot create: broken symbolic link", path);
    }
    BJ_TRY(bj_file_open_parent(&w->parent, w->name, final, path, err));
    if (strlen(w->name) + sizeof partial_suffix > sizeof w->below)
        return bj_file_fail(err, ENAMETOOLONG, path, "create");
    memcpy(w->below, w->name, strlen(w->name));
    memcpy(w->below + strlen(w->name), partial_suffix, sizeof partial_suffix);
    w->path = bj_strdup(final);
    w->partial = bj_alloc(strlen(final) + sizeof partial_suffix, 1);
    if (!w->path || !w->partial) return bj_alloc_failed(strlen(final), 1, err);
    memcpy(w->partial, final, strlen(final));
    memcpy(w->partial + strlen(final), partial_suffix, sizeof partial_suffix);
    return BJ_OK;
}

/* Opens and locks the folder. Leaves w->folder at -1 if the folder does not exist and `make` is
 * 0. */
static bj_status lock_folder(bj_cache_writer *w, int make, bj_error *err) {
    for (int attempt = 0; attempt < 100; attempt++) {
        struct stat mine, named;
        if (make && mkdirat(w->parent, w->below, 0777) && errno != EEXIST)
            return bj_file_fail(err, errno, w->partial, "create the folder");
        w->folder = openat(w->parent, w->below, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (w->folder < 0 && errno == ENOENT && !make) return BJ_OK;
        if (w->folder < 0 && errno == ENOENT) continue; /* another writer has just removed it */
        if (w->folder < 0) return bj_file_fail(err, errno, w->partial, "open the folder");
        if (flock(w->folder, LOCK_EX | LOCK_NB)) {
            if (errno == EWOULDBLOCK)
                return BJ_FAIL(err, BJ_ELOCKED, "%s: another process is writing it", w->partial);
            return bj_file_fail(err, errno, w->partial, "lock");
        }
        if (!fstat(w->folder, &mine) &&
            !fstatat(w->parent, w->below, &named, AT_SYMLINK_NOFOLLOW) &&
            mine.st_dev == named.st_dev && mine.st_ino == named.st_ino)
            return BJ_OK;
        close(w->folder); /* the folder is locked, but its name now refers to another folder */
        w->folder = -1;
    }
    return BJ_FAIL(err, BJ_ELOCKED, "%s: other processes keep replacing it", w->partial);
}

static int exists(const bj_cache_writer *w, const char *name) {
    struct stat info;
    return fstatat(w->folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ----------------------------------------------------------------------------------------- facts
 */

/* Formats the settings, one per line. The settings common to all caches come first. */
static bj_status facts_text(char **out, const bj_cache_writer *w, bj_error *err) {
    char fixed[256];
    size_t size = (size_t)snprintf(fixed, sizeof fixed,
                                   "version=%s\nfeatures=%s\nsizes=%d,%d,%d,%d,%d\nrow=%d\n",
                                   BJ_CACHE_VERSION, BJ_FEATURES_VERSION, BJ_AV2_OBS, BJ_AV2_FUT,
                                   BJ_AV2_NEIGHBORS, BJ_AV2_POLYLINES, BJ_AV2_POINTS, BJ_ROW_SIZE);
    size_t room = size + 1;
    for (int i = 0; i < w->fact_count; i++)
        room += strlen(w->facts[i].key) + strlen(w->facts[i].value) + 2;
    BJ_TRY(BJ_ALLOC(*out, room, err));
    memcpy(*out, fixed, size);
    for (int i = 0; i < w->fact_count; i++)
        size += (size_t)snprintf(*out + size, room - size, "%s=%s\n", w->facts[i].key,
                                 w->facts[i].value);
    return BJ_OK;
}

static bj_status write_facts(bj_cache_writer *w, const char *text, bj_error *err) {
    const int fd =
        openat(w->folder, facts_temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    const size_t size = strlen(text);
    if (fd < 0) return bj_file_fail(err, errno, w->partial, "create its file facts");
    /* A small file is written in one call, so a short write means that the disk is full. */
    errno = ENOSPC;
    int failed = write(fd, text, size) != (ssize_t)size || fsync(fd) ? errno : 0;
    close(fd);
    if (!failed && renameat(w->folder, facts_temporary, w->folder, facts_name)) failed = errno;
    if (failed) return bj_file_fail(err, failed, w->partial, "write its file facts");
    BJ_TRY(bj_file_sync_folder(w->folder, w->partial, "sync the folder", err));
    return bj_file_sync_folder(w->parent, w->partial, "sync the folder above", err);
}

/* Fails if a setting differs. The message contains the first difference. */
static bj_status compare_facts(const bj_cache_writer *w, const char *mine, const char *theirs,
                               bj_error *err) {
    while (*mine && *theirs) {
        const size_t a = strcspn(mine, "\n"), b = strcspn(theirs, "\n");
        if (a != b || memcmp(mine, theirs, a))
            return BJ_FAIL(err, BJ_EARG,
                           "%s: contains an interrupted run with different settings: "
                           "found '%.*s', expected '%.*s'",
                           w->partial, (int)(b < 100 ? b : 100), theirs, (int)(a < 100 ? a : 100),
                           mine);
        mine += a + (mine[a] == '\n');
        theirs += b + (theirs[b] == '\n');
    }
    if (!*mine && !*theirs) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG, "%s: is an interrupted run with %s settings", w->partial,
                   *mine ? "fewer" : "more");
}

static bj_status check_facts(int *fresh, bj_cache_writer *w, const char *text, bj_error *err) {
    char path[PATH_MAX], *theirs = NULL;
    size_t size;
    *fresh = !exists(w, facts_name);
    if (*fresh) return BJ_OK;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", w->partial, facts_name) >= sizeof path)
        return bj_file_fail(err, ENAMETOOLONG, w->partial, "open its file facts");
    BJ_TRY(bj_file_read(&theirs, &size, path, 1 << 20, err));
    const bj_status status = compare_facts(w, text, theirs, err);
    bj_free(theirs);
    return status;
}

static bj_status copy_facts(bj_cache_writer *w, const bj_fact *facts, int count, bj_error *err) {
    BJ_TRY(BJ_ALLOC(w->facts, (size_t)count, err));
    for (int i = 0; i < count; i++) {
        if (strpbrk(facts[i].key, "=\n") || strchr(facts[i].value, '\n'))
            return BJ_FAIL(err, BJ_EARG, "metadata '%s' contains a newline or '='", facts[i].key);
        w->fact_count++;
        w->facts[i] = (bj_fact){bj_strdup(facts[i].key), bj_strdup(facts[i].value)};
        if (!w->facts[i].key || !w->facts[i].value)
            return bj_alloc_failed(strlen(facts[i].value), 1, err);
    }
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- together
 */

static bj_status open_files(bj_cache_writer *w, int fresh, bj_error *err) {
    for (int f = 0; f < BJ_FILES; f++) {
        w->fd[f] = openat(w->folder, bj_cache_file_names[f],
                          O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | (fresh ? O_TRUNC : 0), 0666);
        if (w->fd[f] < 0) return bj_cache_file_failed(w, (bj_cache_file)f, errno, "open", err);
    }
    return BJ_OK;
}

static bj_status start(bj_cache_writer *w, int restart, bj_error *err) {
    char *text = NULL;
    int fresh = 0;
    bj_status status;
    BJ_TRY(lock_folder(w, 1, err));
    BJ_TRY(facts_text(&text, w, err));
    /* A folder without records is left over from a published cache, so there is nothing to
     * resume. */
    if (restart || (exists(w, facts_name) && !exists(w, bj_cache_file_names[BJ_FILE_RECORDS])))
        (void)unlinkat(w->folder, facts_name, 0);
    BJ_GOTO(status, done, check_facts(&fresh, w, text, err));
    BJ_GOTO(status, done, open_files(w, fresh, err));
    BJ_GOTO(status, done, bj_cache_resume(w, err));
    if (fresh) status = write_facts(w, text, err);
    w->synced = bj_seconds();
done:
    bj_free(text);
    return status;
}

static bj_status writer_create(bj_cache_writer **out, const char *path, bj_error *err) {
    bj_cache_writer *w;
    BJ_TRY(BJ_ALLOC(w, 1, err));
    w->parent = w->folder = -1;
    for (int f = 0; f < BJ_FILES; f++) w->fd[f] = -1;
    bj_status status = BJ_ALLOC(w->rows, BJ_ROWS_READ, err);
    if (status == BJ_OK) status = locate(w, path, err);
    if (status == BJ_OK) *out = w;
    else bj_cache_writer_free(w);
    return status;
}

bj_status bj_cache_writer_open(bj_cache_writer **out, const char *path, const bj_fact *facts,
                               int fact_count, int restart, bj_error *err) {
    bj_cache_writer *w = NULL;
    *out = NULL;
    BJ_TRY(writer_create(&w, path, err));
    bj_status status = copy_facts(w, facts, fact_count, err);
    if (status == BJ_OK) status = start(w, restart, err);
    if (status == BJ_OK) *out = w;
    else bj_cache_writer_free(w);
    return status;
}

bj_status bj_cache_writer_tidy(int64_t *items, const char *path, bj_error *err) {
    bj_cache_writer *w = NULL;
    struct stat info;
    *items = -1;
    BJ_TRY(writer_create(&w, path, err));
    const bj_status status = lock_folder(w, 0, err);
    if (status == BJ_OK && w->folder >= 0 && !exists(w, bj_cache_file_names[BJ_FILE_RECORDS])) {
        const char *journal = bj_cache_file_names[BJ_FILE_JOURNAL];
        if (exists(w, facts_name))
            *items = fstatat(w->folder, journal, &info, 0) ? 0 : info.st_size / BJ_ROW_SIZE;
        bj_cache_remove_partial(w->parent, w->below, w->folder);
    }
    bj_cache_writer_free(w);
    return status;
}
