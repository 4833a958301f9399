/* split.c - see split.h. */
#include "data/split.h"

#include <string.h>

#include "branchjepa/branchjepa.h"
#include "core/sha256.h"

int bj_is_dev(const char *scenario_id) {
    unsigned char digest[BJ_SHA256_BYTES];
    uint64_t first = 0;
    bj_sha256_block(digest, scenario_id, strlen(scenario_id));
    for (int i = 0; i < 8; i++) first = first << 8 | digest[i];
    return first < BJ_SPLIT_THRESHOLD;
}
