/* test_replay_lock.c - runs the fuzz target of lock files without a fuzzer. */
#include "fuzz_lock.c"
#include "support/mutate.h"

int main(void) {
    if (strcmp(bj_lock_real(), "float")) {
        puts("skipped: the lock in the corpus is of a program in single precision");
        return 77;
    }
    static const mutate_fragment fragments[] = {
        JSON_FRAGMENTS,
        FRAGMENT("0"),
        FRAGMENT("-1"),
        FRAGMENT("1e999"),
        FRAGMENT("18446744073709551615"),
        FRAGMENT("true"),
        FRAGMENT("\"arm\":\"x\","),
        FRAGMENT("\\u0000"),
        FRAGMENT("../"),
        FRAGMENT("\xff")};
    return mutate_replay(&(mutate_target){.name = "lock",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 4000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .least = 5,
                                          .most = 900});
}
