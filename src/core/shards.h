/* shards.h - fixed summation order for sums over a batch.
 *
 * A batch of B scenes is split into BJ_SHARDS shards, for any number of workers. Shard s contains
 * scenes [B*s/BJ_SHARDS, B*(s+1)/BJ_SHARDS). In a small batch every shard gets BJ_SHARD_LEAST
 * scenes until none are left, because adding up the shards costs as much as a few of their rows.
 * Inside a shard the rows are added in order, starting from zero. The shard sums are added in a
 * balanced binary tree ((0+1)+(2+3))+..., where empty shards are zero. The number of threads
 * decides only which thread computes a shard, so it does not change the result.
 */
#ifndef BJ_CORE_SHARDS_H
#define BJ_CORE_SHARDS_H

enum {
    BJ_SHARDS = 16,
    BJ_SHARD_LEVELS = 5, /* log2(BJ_SHARDS) + 1 */
    BJ_SHARD_LEAST = 32  /* min scenes per shard; the last nonempty shard may have fewer */
};

static inline int bj_shard_begin(int B, int shard) {
    if (B >= BJ_SHARDS * BJ_SHARD_LEAST) return (int)((long)B * shard / BJ_SHARDS);
    return shard * BJ_SHARD_LEAST < B ? shard * BJ_SHARD_LEAST : B;
}

/* Returns the sum of value[b * stride] over the batch, added in the fixed order. */
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
