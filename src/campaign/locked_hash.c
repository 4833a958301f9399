/* locked_hash.c - finds and hashes the locked files; see locked_file.h. */
#define _POSIX_C_SOURCE 200809L /* st_mtim, st_ctim */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "campaign/locked_file.h"
#include "core/alloc.h"
#include "core/file_internal.h"

enum { PIECE = 1 << 20 };
enum { BOUND_CAMPAIGN, BOUND_EVALUATOR, BOUND_DATA, BOUND_RUNS };

int bj_lock_bound_count(const bj_lock *lock) {
    return BOUND_RUNS + lock->count * BJ_LOCK_RUN_FILES;
}

bj_status bj_lock_bound_at(bj_lock_bound *out, bj_lock *lock, const char *dir,
                           const char *evaluator, int index, bj_error *err) {
    char inside[BJ_RUN_PATH_SIZE + 64];
    const char *other = index == BOUND_EVALUATOR ? evaluator : lock->data;
    switch (index) {
    case BOUND_CAMPAIGN:
        snprintf(out->what, sizeof out->what, "campaign");
        out->sha256 = lock->campaign_sha256;
        return bj_lock_path(out->path, dir, "campaign.json", err);
    case BOUND_EVALUATOR:
    case BOUND_DATA:
        snprintf(out->what, sizeof out->what, "%s",
                 index == BOUND_DATA ? "held-out data" : "evaluator");
        out->sha256 = index == BOUND_DATA ? lock->data_sha256 : lock->evaluator_sha256;
        if (snprintf(out->path, sizeof out->path, "%s", other) >= (int)sizeof out->path)
            return BJ_FAIL(err, BJ_EARG, "%.100s...: the path is too long", other);
        return BJ_OK;
    default: break;
    }
    bj_lock_run *run = &lock->runs[(index - BOUND_RUNS) / BJ_LOCK_RUN_FILES];
    const int file = (index - BOUND_RUNS) % BJ_LOCK_RUN_FILES;
    snprintf(out->what, sizeof out->what, "%s, seed %lld", run->arm, (long long)run->seed);
    snprintf(inside, sizeof inside, "%s/%s", run->dir, bj_lock_run_files[file]);
    out->sha256 = run->sha256[file];
    return bj_lock_path(out->path, dir, inside, err);
}

static bj_lock_stamp stamp_of(const struct stat *info) {
    return (bj_lock_stamp){.device = (uint64_t)info->st_dev,
                           .inode = (uint64_t)info->st_ino,
                           .size = (uint64_t)info->st_size,
                           .modified = {info->st_mtim.tv_sec, info->st_mtim.tv_nsec},
                           .changed = {info->st_ctim.tv_sec, info->st_ctim.tv_nsec}};
}

static int is_missing(const bj_lock_stamp *stamp) { return !stamp->device && !stamp->inode; }

int bj_lock_has_run(const bj_lock_hashes *hashes, int run) {
    int has = 1;
    for (int i = 0; i < BJ_LOCK_RUN_FILES; i++)
        has &= !is_missing(&hashes->stamps[BOUND_RUNS + run * BJ_LOCK_RUN_FILES + i]);
    return has;
}

int bj_lock_has_data(const bj_lock_hashes *hashes) {
    return !is_missing(&hashes->stamps[BOUND_DATA]);
}

/* ------------------------------------------------------------------------------------- one file */

typedef struct hashing {
    bj_sha256 hash;
    unsigned char *piece; /* (PIECE) */
    const bj_locked_watch *watch;
    int64_t done, total; /* bytes */
} hashing;

static bj_status hash_file(char hex[BJ_SHA256_HEX], bj_lock_stamp *stamp, hashing *h,
                           const bj_lock_bound *bound, bj_error *err) {
    struct stat info;
    bj_status status = BJ_OK;
    const int fd = bj_file_open(bound->path, O_RDONLY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return BJ_FAIL(err, BJ_EMISMATCH, "%s (%s): is missing, but lock.json lists it",
                       bound->path, bound->what);
    if (fd < 0) return bj_file_fail(err, errno, bound->path, "open");
    if (fstat(fd, &info)) {
        status = bj_file_fail(err, errno, bound->path, "examine");
        goto done;
    }
    *stamp = stamp_of(&info);
    if (!S_ISREG(info.st_mode)) {
        status =
            BJ_FAIL(err, BJ_EMISMATCH, "%s (%s): is not a regular file", bound->path, bound->what);
        goto done;
    }
    bj_sha256_init(&h->hash);
    for (;;) {
        const ssize_t got = read(fd, h->piece, PIECE);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            status = bj_file_fail(err, errno, bound->path, "read");
            goto done;
        }
        if (got == 0) break;
        bj_sha256_update(&h->hash, h->piece, (size_t)got);
        h->done += got;
        if (h->watch->tell && h->watch->tell(h->watch->context, "verify", h->done, h->total)) {
            status = BJ_FAIL(err, BJ_ELOCKED, "stopped; nothing was written");
            goto done;
        }
    }
    bj_sha256_final(&h->hash, hex);
done:
    close(fd);
    return status;
}

/* ------------------------------------------------------------------------------------ all files */

/* Counts changed files and keeps the message of the first one. */
typedef struct changes {
    int count;
    bj_error first;
} changes;

static bj_status hash_bound(changes *changed, bj_lock_hashes *hashes, hashing *h,
                            const bj_lock_bound *bound, bj_lock_stamp *stamp, bj_lock_hashing how,
                            bj_error *err) {
    char hex[BJ_SHA256_HEX];
    bj_error own = {0};
    bj_status status = hash_file(hex, stamp, h, bound, &own);
    if (status == BJ_EMISMATCH && is_missing(stamp) && how == BJ_LOCK_PRESENT) {
        if (!hashes->missing++) memcpy(hashes->first, bound->path, sizeof hashes->first);
        return BJ_OK;
    }
    if (status == BJ_OK && how == BJ_LOCK_FILL) memcpy(bound->sha256, hex, sizeof hex);
    else if (status == BJ_OK && strcmp(hex, bound->sha256))
        status = BJ_FAIL(
            &own, BJ_EMISMATCH,
            "%s (%s): the file was changed: its SHA-256 is %.16s..., but lock.json has %.16s...",
            bound->path, bound->what, hex, bound->sha256);
    if (status == BJ_OK) return BJ_OK;
    if (status != BJ_EMISMATCH || how == BJ_LOCK_FILL)
        return BJ_FAIL(err, status, "%s", own.message);
    if (!changed->count++) changed->first = own;
    return BJ_OK;
}

static int64_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) ? 0 : (int64_t)info.st_size;
}

static int is_left_out(int index, const char *evaluator) {
    return index == BOUND_EVALUATOR && !evaluator;
}

bj_status bj_lock_hash(bj_lock *lock, bj_lock_hashes *hashes, const char *dir,
                       const char *evaluator, bj_lock_hashing how, const bj_locked_watch *watch,
                       bj_error *err) {
    const int count = bj_lock_bound_count(lock);
    hashing h = {.watch = watch};
    changes changed = {0};
    bj_lock_bound bound;
    bj_status status;
    for (int i = 0; i < count; i++) {
        hashes->stamps[i] = (bj_lock_stamp){0};
        if (is_left_out(i, evaluator)) continue;
        BJ_TRY(bj_lock_bound_at(&bound, lock, dir, evaluator, i, err));
        h.total += size_of(bound.path);
    }
    BJ_GOTO(status, done, BJ_ALLOC(h.piece, PIECE, err));
    for (int i = 0; i < count; i++) {
        if (is_left_out(i, evaluator)) continue;
        BJ_GOTO(status, done, bj_lock_bound_at(&bound, lock, dir, evaluator, i, err));
        BJ_GOTO(status, done,
                hash_bound(&changed, hashes, &h, &bound, &hashes->stamps[i], how, err));
    }
    if (changed.count == 1) status = BJ_FAIL(err, BJ_EMISMATCH, "%s", changed.first.message);
    if (changed.count > 1)
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%.440s; %d more of the %d locked files have changed, "
                         "too",
                         changed.first.message, changed.count - 1, count);
done:
    bj_free(h.piece);
    return status;
}

bj_status bj_lock_untouched(bj_lock *lock, const bj_lock_hashes *hashes, const char *dir,
                            const char *evaluator, const char *when, bj_error *err) {
    for (int i = 0; i < bj_lock_bound_count(lock); i++) {
        bj_lock_bound bound;
        struct stat info;
        if (is_left_out(i, evaluator)) continue;
        BJ_TRY(bj_lock_bound_at(&bound, lock, dir, evaluator, i, err));
        const int gone = stat(bound.path, &info);
        const bj_lock_stamp now = gone ? (bj_lock_stamp){0} : stamp_of(&info);
        if (memcmp(&now, &hashes->stamps[i], sizeof now))
            return BJ_FAIL(err, BJ_EMISMATCH, "%s (%s): was changed %s", bound.path, bound.what,
                           when);
    }
    return BJ_OK;
}
