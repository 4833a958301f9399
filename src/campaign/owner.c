/* owner.c - ownership of campaigns by locks (flock), which are released when the process ends.
 *
 *   1. The folder itself is locked for short steps: creating a campaign, opening a registry.
 *   2. The owner of a shard is the process that has locked .campaign-I-of-N.lock. The file contains
 *      the process id. It is not removed when the owner exits, because two processes could lock a
 *      removed file at once.
 *   3. Other processes test the lock with a shared lock, which they release immediately. An owner
 *      therefore retries for a moment before it fails.
 * Test: tests/campaign/test_registry.c
 */
#define _DEFAULT_SOURCE /* flock; includes POSIX.1-2008 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "campaign/campaign_internal.h"
#include "core/file_internal.h"

enum { TRIES = 50, PAUSE_NS = 10000000 };

static void short_pause(void) {
    const struct timespec pause = {0, PAUSE_NS};
    nanosleep(&pause, NULL);
}

static int lock_file(int file, int how) {
    int result;
    do result = flock(file, how);
    while (result && errno == EINTR);
    return result;
}

bj_status bj_campaign_turn(int *lock, const char *dir, bj_error *err) {
    *lock = bj_file_open(dir, O_RDONLY | O_DIRECTORY);
    if (*lock < 0) return bj_file_fail(err, errno, dir, "open");
    if (lock_file(*lock, LOCK_EX)) bj_campaign_turn_end(*lock), *lock = -1;
    return BJ_OK;
}

void bj_campaign_turn_end(int lock) {
    if (lock >= 0) close(lock);
}

static bj_status lock_path(char path[BJ_CAMPAIGN_PATH], const char *dir, int shard, int shards,
                           bj_error *err) {
    char name[64];
    snprintf(name, sizeof name, ".campaign-%d-of-%d.lock", shard, shards);
    return bj_campaign_path(path, dir, name, err);
}

static bj_status occupied(int file, const char *dir, int shard, int shards, bj_error *err) {
    char who[128] = "another process", text[128];
    const ssize_t n = pread(file, text, sizeof text - 1, 0);
    if (n > 0) {
        text[n] = '\0';
        text[strcspn(text, "\n")] = '\0';
        if (*text) snprintf(who, sizeof who, "%s", text);
    }
    return BJ_FAIL(err, BJ_ELOCKED, "%s: shard %d/%d is being run by %s", dir, shard, shards, who);
}

bj_status bj_campaign_own(int *lock, const char *dir, int shard, int shards, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH], host[64] = "", who[128];
    *lock = -1;
    BJ_TRY(lock_path(path, dir, shard, shards, err));
    int file;
    do file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    while (file < 0 && errno == EINTR);
    if (file < 0) return bj_file_fail(err, errno, path, "open");
    int result = -1;
    for (int i = 0; i < TRIES && (result = lock_file(file, LOCK_EX | LOCK_NB)); i++) {
        if (errno != EWOULDBLOCK) break;
        short_pause();
    }
    if (result) {
        const int number = errno;
        const bj_status status = number == EWOULDBLOCK ? occupied(file, dir, shard, shards, err)
                                                       : bj_file_fail(err, number, path, "lock");
        close(file);
        return status;
    }
    if (gethostname(host, sizeof host - 1)) snprintf(host, sizeof host, "unknown");
    const int n = snprintf(who, sizeof who, "process %ld on %s\n", (long)getpid(), host);
    if (ftruncate(file, 0) || pwrite(file, who, (size_t)n, 0) != n) { /* a courtesy */
        const bj_status status = bj_file_fail(err, errno, path, "write");
        close(file);
        return status;
    }
    *lock = file;
    return BJ_OK;
}

void bj_campaign_disown(int lock) {
    if (lock >= 0) close(lock);
}

int bj_campaign_owned(const char *dir, int shard, int shards) {
    char path[BJ_CAMPAIGN_PATH];
    if (lock_path(path, dir, shard, shards, NULL) != BJ_OK) return 0;
    const int file = bj_file_open(path, O_RDONLY);
    if (file < 0) return 0;
    const int owned = lock_file(file, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
    close(file);
    return owned;
}
