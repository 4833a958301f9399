/* fuzz.h - declarations shared by all fuzz targets.
 *
 * A target fuzz_<name>.c defines LLVMFuzzerTestOneInput, which must handle any input. A violated
 * condition aborts. The target sets fuzz_accepted, so the replay in test_replay_<name>.c can check
 * that some mutations pass the first checks.
 *
 *   tests/fuzz/run.sh <name> SECONDS     runs libFuzzer on the files in corpus/<name>
 */
#ifndef BJ_TESTS_FUZZ_H
#define BJ_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* 1 if the input was accepted. This is a variable because libFuzzer reserves return values other
 * than 0. */
static int fuzz_accepted;

static inline void demand(int condition) {
    if (!condition) abort();
}

#endif
