/* locked_data.c - checks that training has not used the held-out data; see locked_check.h. */
#define _XOPEN_SOURCE 700 /* realpath */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "campaign/locked_check.h"
#include "core/file_internal.h"

/* Checks that no scenario in the held-out cache is in the other cache. Also checks that the other
 * cache has the digest that the campaign stores. */
static bj_status check_apart(const bj_cache *held_out, const char *data, const char *other,
                             const char *digest, const char *what, bj_error *err) {
    bj_cache *seen;
    int64_t shared = 0, first = -1;
    bj_status status = BJ_OK;
    BJ_TRY(bj_cache_open(&seen, other, 1, err));
    if (digest && strcmp(bj_cache_digest(seen), digest)) {
        status = BJ_FAIL(err, BJ_ELOCKED,
                         "not locked: %s: its digest is %.16s..., "
                         "but the digest of the campaign's %s is %.16s...",
                         other, bj_cache_digest(seen), what, digest);
    } else if (!strcmp(bj_cache_digest(seen), bj_cache_digest(held_out))) {
        status = BJ_FAIL(err, BJ_ELOCKED, "not locked: %s is the campaign's %s, not held-out data",
                         data, what);
    } else {
        for (int64_t i = 0; i < bj_cache_count(held_out); i++) {
            if (bj_cache_find(seen, bj_cache_info(held_out, i).scenario_id) < 0) continue;
            if (!shared++) first = i;
        }
        if (shared)
            status =
                BJ_FAIL(err, BJ_ELOCKED,
                        "not locked: %s: %lld of its scenes are also in the %s; "
                        "the first is scenario %s",
                        data, (long long)shared, what, bj_cache_info(held_out, first).scenario_id);
    }
    bj_cache_free(seen);
    return status;
}

/* Checks that no scenario in the held-out cache is one of a run's fresh scenes. */
static bj_status check_apart_fresh(const bj_cache *held_out, const char *data, const char *other,
                                   bj_error *err) {
    bj_fresh_spec spec;
    BJ_TRY(bj_fresh_parse(&spec, other, err));
    for (int64_t i = 0; i < bj_cache_count(held_out); i++) {
        const char *id = bj_cache_info(held_out, i).scenario_id;
        if (bj_fresh_has(&spec, id))
            return BJ_FAIL(err, BJ_ELOCKED,
                           "not locked: %s: scenario %s is a training or development scene of %s",
                           data, id, other);
    }
    return BJ_OK;
}

static bj_status check_scenes(const bj_cache *held_out, const char *data, bj_error *err) {
    const int64_t count = bj_cache_count(held_out);
    int64_t without = 0;
    if (count < BJ_LOCK_LEAST)
        return BJ_FAIL(err, BJ_ELOCKED,
                       "not locked: %s: found %lld scenes, expected at least %d, "
                       "because results on fewer scenes would reveal individual scenes",
                       data, (long long)count, BJ_LOCK_LEAST);
    for (int64_t i = 0; i < count; i++) without += !bj_cache_info(held_out, i).has_future;
    if (without)
        return BJ_FAIL(err, BJ_ELOCKED, "not locked: %s: %lld of its %lld scenes have no future",
                       data, (long long)without, (long long)count);
    for (int64_t i = 0; i < count; i++) BJ_TRY(bj_cache_verify(held_out, i, err));
    return BJ_OK;
}

bj_status bj_lock_check_data(bj_lock *lock, bj_arch *scenes, const char *data, const char *train,
                             const char *train_digest, const char *dev, bj_error *err) {
    struct stat info;
    char absolute[PATH_MAX];
    bj_cache *held_out;
    bj_status status;
    BJ_TRY(bj_cache_open(&held_out, data, 0, err));
    BJ_GOTO(status, done, check_scenes(held_out, data, err));
    BJ_GOTO(status, done,
            bj_fresh_is_spec(train)
                ? check_apart_fresh(held_out, data, train, err)
                : check_apart(held_out, data, train, train_digest, "training data", err));
    if (dev) BJ_GOTO(status, done, check_apart(held_out, data, dev, NULL, "development data", err));
    if (!realpath(data, absolute) || stat(absolute, &info)) {
        status = bj_file_fail(err, errno, data, "resolve");
        goto done;
    }
    if (strlen(absolute) >= sizeof lock->data) {
        status = BJ_FAIL(err, BJ_EARG, "%.100s...: the path is too long", absolute);
        goto done;
    }
    memcpy(lock->data, absolute, strlen(absolute) + 1);
    lock->data_bytes = (int64_t)info.st_size;
    lock->scenes = bj_cache_count(held_out);
    snprintf(lock->data_digest, sizeof lock->data_digest, "%s", bj_cache_digest(held_out));
    *scenes = bj_cache_arch(held_out);
done:
    bj_cache_free(held_out);
    return status;
}
