/* test_replay_map.c - runs the fuzz target of the map reader without a fuzzer. */
#include "fuzz_map.c"
#include "support/mutate.h"

int main(void) {
    static const mutate_fragment fragments[] = {FRAGMENT("0"),
                                                FRAGMENT("1"),
                                                FRAGMENT("-1"),
                                                FRAGMENT("1e3"),
                                                FRAGMENT("1e999"),
                                                FRAGMENT("0.01"),
                                                FRAGMENT("9223372036854775807"),
                                                FRAGMENT("18446744073709551615"),
                                                JSON_FRAGMENTS,
                                                FRAGMENT("true"),
                                                FRAGMENT("false"),
                                                FRAGMENT("\"\""),
                                                FRAGMENT("\\u0061"),
                                                FRAGMENT("\\\""),
                                                FRAGMENT("\xc3\xa9"),
                                                FRAGMENT("\xff"),
                                                FRAGMENT(" "),
                                                FRAGMENT("\n"),
                                                FRAGMENT("{\"x\":1,\"y\":2,\"z\":3},"),
                                                FRAGMENT("\"id\":7,"),
                                                FRAGMENT("\"x\":1,"),
                                                FRAGMENT("\"drivable_areas\":{},"),
                                                FRAGMENT("\"is_intersection\":true,")};
    return mutate_replay(&(mutate_target){.name = "map",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 50000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .least = 10,
                                          .most = 700});
}
