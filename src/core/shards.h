/* shards.h - the fixed order in which anything is summed over a batch.
 *
 * A batch of B scenes is cut into BJ_SHARDS shards, whatever the number of workers: shard s holds
 * scenes [B*s/BJ_SHARDS, B*(s+1)/BJ_SHARDS), or of a batch too small for that BJ_SHARD_LEAST scenes
 * each until none is left, for adding up shards costs as much as a few of their rows. Inside a
 * shard rows are added in order, from zero; shard sums are added in a balanced binary tree
 * ((0+1)+(2+3))+..., where empty shards are zeros.
 * Threads, and later ranks, only decide who computes which shard: the bits stay.
 */
#ifndef BJ_CORE_SHARDS_H
#define BJ_CORE_SHARDS_H

enum {
    BJ_SHARDS = 16,
    BJ_SHARD_LEVELS = 5, /* log2(BJ_SHARDS) + 1 */
    BJ_SHARD_LEAST = 32  /* scenes of a shard, unless it is the last or empty */
};

static inline int bj_shard_begin(int B, int shard) {
    if (B >= BJ_SHARDS * BJ_SHARD_LEAST) return (int)((long)B * shard / BJ_SHARDS);
    return shard * BJ_SHARD_LEAST < B ? shard * BJ_SHARD_LEAST : B;
}

/* Sum of value[b * stride] over the batch in the fixed order. */
static inline double bj_shards_sum(const double *value, int B, int stride) {
    double sum[BJ_SHARDS];
    for (int s = 0; s < BJ_SHARDS; s++) {
        sum[s] = 0;
        for (int b = bj_shard_begin(B, s); b < bj_shard_begin(B, s + 1); b++)
            sum[s] += value[(long)b * stride];
    }
    for (int width = 1; width < BJ_SHARDS; width *= 2)
        for (int s = 0; s < BJ_SHARDS; s += 2 * width) sum[s] += sum[s + width];
    return sum[0];
}

#endif
