/* locked_hash.c - finds and hashes the locked files; see locked_file.h. */
#define _POSIX_C_SOURCE 200809L /* st_mtim */
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
                           .seconds = (uint64_t)info->st_mtim.tv_sec,
                           .nanoseconds = (uint64_t)info->st_mtim.tv_nsec};
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
        return BJ_FAIL(err, BJ_EMISMATCH, "%s (%s): is missing", bound->path, bound->what);
    if (fd < 0) return bj_file_fail(err, errno, bound->path, "open");
    if (fstat(fd, &info)) status = bj_file_fail(err, errno, bound->path, "examine");
    else if (!S_ISREG(info.st_mode))
        status =
            BJ_FAIL(err, BJ_EMISMATCH, "%s (%s): is not a regular file", bound->path, bound->what);
    if (status != BJ_OK) goto done;
    *stamp = stamp_of(&info);
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

static bj_status hash_bound(int *changed, char *first, size_t room, hashing *h,
                            const bj_lock_bound *bound, bj_lock_stamp *stamp, int fill,
                            bj_error *err) {
    char hex[BJ_SHA256_HEX];
    bj_error own = {0};
    bj_status status = hash_file(hex, stamp, h, bound, &own);
    if (status == BJ_OK && fill) memcpy(bound->sha256, hex, sizeof hex);
    else if (status == BJ_OK && strcmp(hex, bound->sha256))
        status = BJ_FAIL(&own, BJ_EMISMATCH,
                         "%s (%s): the file was changed; its SHA-256 is %.16s..., "
                         "but the lock has %.16s...",
                         bound->path, bound->what, hex, bound->sha256);
    if (status == BJ_OK) return BJ_OK;
    if (status != BJ_EMISMATCH || fill) return BJ_FAIL(err, status, "%s", own.message);
    if (!(*changed)++) snprintf(first, room, "%s", own.message);
    return BJ_OK;
}

static int64_t size_of(const char *path) {
    struct stat info;
    return stat(path, &info) ? 0 : (int64_t)info.st_size;
}

bj_status bj_lock_hash(bj_lock *lock, bj_lock_stamp *stamps, const char *dir, const char *evaluator,
                       int fill, const bj_locked_watch *watch, bj_error *err) {
    const int count = bj_lock_bound_count(lock);
    hashing h = {.watch = watch};
    bj_lock_bound bound;
    bj_lock_stamp stamp;
    char first[sizeof err->message];
    int changed = 0;
    bj_status status;
    for (int i = 0; i < count; i++) {
        BJ_TRY(bj_lock_bound_at(&bound, lock, dir, evaluator, i, err));
        h.total += size_of(bound.path);
    }
    BJ_GOTO(status, done, BJ_ALLOC(h.piece, PIECE, err));
    for (int i = 0; i < count; i++) {
        BJ_GOTO(status, done, bj_lock_bound_at(&bound, lock, dir, evaluator, i, err));
        BJ_GOTO(status, done,
                hash_bound(&changed, first, sizeof first, &h, &bound, stamps ? &stamps[i] : &stamp,
                           fill, err));
    }
    if (changed == 1) status = BJ_FAIL(err, BJ_EMISMATCH, "%s", first);
    if (changed > 1)
        status =
            BJ_FAIL(err, BJ_EMISMATCH, "%.440s; %d other locked files (of %d) have also changed",
                    first, changed - 1, count);
done:
    bj_free(h.piece);
    return status;
}

bj_status bj_lock_untouched(bj_lock *lock, const bj_lock_stamp *stamps, const char *dir,
                            const char *evaluator, bj_error *err) {
    for (int i = 0; i < bj_lock_bound_count(lock); i++) {
        bj_lock_bound bound;
        struct stat info;
        BJ_TRY(bj_lock_bound_at(&bound, lock, dir, evaluator, i, err));
        const int gone = stat(bound.path, &info);
        const bj_lock_stamp now = gone ? (bj_lock_stamp){0} : stamp_of(&info);
        if (gone || memcmp(&now, &stamps[i], sizeof now))
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s (%s): the file was changed during the evaluation; "
                           "nothing was written",
                           bound.path, bound.what);
    }
    return BJ_OK;
}
