/* test_replay_seeds.c - runs the fuzz target of seed tables without a fuzzer. */
#include "fuzz_seeds.c"
#include "support/mutate.h"

int main(void) {
    static const mutate_fragment fragments[] = {
        FRAGMENT(","),
        FRAGMENT("\n"),
        FRAGMENT("\r\n"),
        FRAGMENT("\""),
        FRAGMENT("\"\""),
        FRAGMENT("1e999"),
        FRAGMENT("nan"),
        FRAGMENT("-0"),
        FRAGMENT("18446744073709551615"),
        FRAGMENT("-1"),
        FRAGMENT("fullset,"),
        FRAGMENT("traj_es"),
        FRAGMENT("\xef\xbb\xbf"),
        FRAGMENT("\0"),
        FRAGMENT("\xff")};
    return mutate_replay(&(mutate_target){.name = "seeds",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 6000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .least = 5,
                                          .most = 900});
}
