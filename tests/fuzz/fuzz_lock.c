/* fuzz_lock.c - fuzz target of the JSON records of a locked campaign (lock.json).
 *
 * For any input, the reader must fail with a message that starts with the path, or return runs with
 * names and digests that are written and read back to the same lock. Violations abort.
 * Corpus: tests/fuzz/corpus/lock
 */
#define _XOPEN_SOURCE 700 /* mkstemp, pwrite */
#include "campaign/locked_file.h"
#include "core/alloc.h"
#include "fuzz_file.h"

/* Writes the lock, reads it, and checks that writing it again gives the same digest. */
static void round_trip(const bj_lock *lock) {
    char path[64], first[BJ_SHA256_HEX], second[BJ_SHA256_HEX];
    bj_lock back;
    snprintf(path, sizeof path, "%s.again", fuzz_path);
    demand(bj_lock_write(lock, path, first, NULL) == BJ_OK);
    demand(bj_lock_read(&back, path, second, NULL) == BJ_OK && !strcmp(first, second));
    demand(back.count == lock->count);
    demand(bj_lock_write(&back, path, second, NULL) == BJ_OK && !strcmp(first, second));
    bj_lock_reset(&back);
    demand(unlink(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    char hex[BJ_SHA256_HEX];
    bj_lock lock;
    bj_error err = {0};
    const bj_status status = bj_lock_read(&lock, fuzz_file(data, size), hex, &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) round_trip(&lock);
    else fuzz_rejected(status, &err);
    bj_lock_reset(&lock);
    demand(bj_alloc_live() == live);
    return 0;
}
