/* test_replay_safetensors.c - runs the fuzz target of the safetensors reader without a fuzzer. */
#include "fuzz_safetensors.c"
#include "support/mutate.h"

/* Repairs the header length, which is stored in the first eight bytes. */
static void repair(uint8_t *file, size_t size, size_t at, ptrdiff_t grown) {
    uint64_t header = 0;
    if (size < 8 || at < 8) return;
    for (int i = 0; i < 8; i++) header |= (uint64_t)file[i] << 8 * i;
    if (header > 1 << 20 || at > 8 + header) return;
    header += (uint64_t)grown;
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)(header >> 8 * i);
}

int main(void) {
    static const mutate_fragment fragments[] = {
        FRAGMENT("0"),
        FRAGMENT("1"),
        FRAGMENT("4"),
        FRAGMENT("8"),
        FRAGMENT("-1"),
        FRAGMENT("18446744073709551615"),
        FRAGMENT("9223372036854775807"),
        FRAGMENT("1e3"),
        JSON_FRAGMENTS,
        FRAGMENT("\"F32\""),
        FRAGMENT("\"F64\""),
        FRAGMENT("\"BOOL\""),
        FRAGMENT("\"U8\""),
        FRAGMENT("\"\""),
        FRAGMENT("\\u0000"),
        FRAGMENT("\\u0061"),
        FRAGMENT("\xc3\xa9"),
        FRAGMENT("\xff"),
        FRAGMENT(" "),
        FRAGMENT("\"__metadata__\":{},"),
        FRAGMENT("\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},")};
    return mutate_replay(&(mutate_target){.name = "safetensors",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 200000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .repair = repair,
                                          .least = 10,
                                          .most = 500});
}
