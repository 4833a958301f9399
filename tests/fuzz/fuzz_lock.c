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

/* Checks that writing, reading and writing the lock again gives the same text. */
static void round_trip(const bj_lock *lock) {
    bj_locked_text first = {0}, second = {0};
    bj_lock back;
    demand(bj_lock_text(&first, lock, NULL) == BJ_OK);
    demand(bj_lock_parse(&back, &first, fuzz_path, NULL) == BJ_OK && back.count == lock->count);
    demand(bj_lock_text(&second, &back, NULL) == BJ_OK && !strcmp(first.sha256, second.sha256));
    bj_lock_reset(&back);
    bj_locked_text_reset(&first);
    bj_locked_text_reset(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    const char *path = fuzz_file(data, size);
    bj_locked_text text = {0};
    bj_lock lock = {0};
    bj_error err = {0};
    bj_status status = bj_locked_text_read(&text, path, &err);
    if (status == BJ_OK) status = bj_lock_parse(&lock, &text, path, &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) round_trip(&lock);
    else fuzz_rejected(status, &err);
    bj_lock_reset(&lock);
    bj_locked_text_reset(&text);
    demand(bj_alloc_live() == live);
    return 0;
}
