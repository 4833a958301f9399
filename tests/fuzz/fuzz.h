/* fuzz.h - what every fuzz target shares.
 *
 * A target fuzz_<name>.c defines LLVMFuzzerTestOneInput, which must survive any bytes: whatever is
 * demanded and does not hold aborts. It sets fuzz_accepted, so that the replay of
 * test_replay_<name>.c can tell whether its mutations reach beyond the first check.
 *
 *   tests/fuzz/run.sh <name> SECONDS     with libFuzzer, from the files in corpus/<name>
 */
#ifndef BJ_TESTS_FUZZ_H
#define BJ_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes were taken for what they claim to be. libFuzzer has its own meaning for every result
 * but 0. */
static int fuzz_accepted;

static inline void demand(int condition) {
    if (!condition) abort();
}

#endif
