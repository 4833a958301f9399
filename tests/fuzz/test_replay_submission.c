/* test_replay_submission.c - runs the fuzz target of submissions without a fuzzer. */
#include "fuzz_submission.c"
#include "support/mutate.h"

int main(void) {
    static const mutate_fragment fragments[] = {
        FRAGMENT("\0\0\0\0"),
        FRAGMENT("\377\377\377\377"),
        FRAGMENT("\177"),
        FRAGMENT("PAR1"),
        FRAGMENT("\x15\x02"),
        FRAGMENT("\x19\x1c")};
    return mutate_replay(&(mutate_target){.name = "submission",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 5000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .least = 2,
                                          .most = 900});
}
