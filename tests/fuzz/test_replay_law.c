/* test_replay_law.c - runs the fuzz target of true distributions (laws) without a fuzzer. */
#include "fuzz_law.c"
#include "support/mutate.h"

int main(void) {
    static const mutate_fragment fragments[] = {
        FRAGMENT("\0\0\0\0"),
        FRAGMENT("\377\377\377\377"),
        FRAGMENT("\0\0\200\177"),
        FRAGMENT("\0\0\300\177"),
        FRAGMENT("[0,0]"),
        FRAGMENT("1"),
        FRAGMENT("[]"),
        FRAGMENT("\"")};
    return mutate_replay(&(mutate_target){.name = "law",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 3000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .least = 5,
                                          .most = 900});
}
