/* test_replay_parquet.c - runs the fuzz target of the Parquet reader without a fuzzer. */
#include "fuzz_parquet.c"
#include "support/mutate.h"

/* Repairs the footer length, which is stored before the last four bytes of the file. */
static void repair(uint8_t *file, size_t size, size_t at, ptrdiff_t grown) {
    if (size < 12 || at > size - 8) return;
    uint8_t *end = file + size - 8;
    const uint32_t before = end[0] | (uint32_t)end[1] << 8 | (uint32_t)end[2] << 16;
    const uint32_t after = before + (uint32_t)grown;
    if (after > size - 12 || at + after < size - 8) return; /* not in the footer */
    for (int i = 0; i < 4; i++) end[i] = (uint8_t)(after >> 8 * i);
}

int main(void) {
    static const mutate_fragment fragments[] = {FRAGMENT("\0"),
                                                FRAGMENT("\1"),
                                                FRAGMENT("\2"),
                                                FRAGMENT("\x7f"),
                                                FRAGMENT("\xff"),
                                                FRAGMENT("\x15\2"),
                                                FRAGMENT("\x15\4"),
                                                FRAGMENT("\x16\2"),
                                                FRAGMENT("\x19\x1c"),
                                                FRAGMENT("\x1c\0"),
                                                FRAGMENT("\x18\1x"),
                                                FRAGMENT("\x25\0"),
                                                FRAGMENT("\x15\x0c"),
                                                FRAGMENT("\xff\xff\xff\x7f"),
                                                FRAGMENT("\xfe\xff\xff\xff\x0f"),
                                                FRAGMENT("\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1"),
                                                FRAGMENT("\x80\x80\1"),
                                                FRAGMENT("PAR1"),
                                                FRAGMENT("\2\0\0\0\2\1"),
                                                FRAGMENT("\x80\1\4\x0c\0")};
    return mutate_replay(&(mutate_target){.name = "parquet",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 50000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .repair = repair,
                                          .least = 200,
                                          .most = 900});
}
