/* split.c - see split.h. */
#include "data/split.h"

#include <string.h>

bj_status bj_split_dev(int *dev, bj_sha256 *hash, const char *scenario_id, bj_error *err) {
    unsigned char digest[BJ_SHA256_BYTES];
    uint64_t first = 0;
    BJ_TRY(bj_sha256_init(hash, err));
    BJ_TRY(bj_sha256_update(hash, scenario_id, strlen(scenario_id), err));
    BJ_TRY(bj_sha256_final_bytes(hash, digest, err));
    for (int i = 0; i < 8; i++) first = first << 8 | digest[i];
    *dev = first < BJ_SPLIT_THRESHOLD;
    return BJ_OK;
}

int bj_is_dev(const char *scenario_id) {
    bj_sha256 hash = {0};
    int dev = 0;
    const bj_status status = bj_split_dev(&dev, &hash, scenario_id, NULL);
    bj_sha256_reset(&hash);
    return status == BJ_OK ? dev : -1;
}
