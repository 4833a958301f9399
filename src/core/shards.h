/* shards.h - the fixed order in which anything is summed over a batch.
 *
 * A batch of B scenes is cut into BJ_SHARDS shards, whatever the number of workers:
 * shard s holds scenes [B*s/BJ_SHARDS, B*(s+1)/BJ_SHARDS), possibly none. Inside a shard rows are
 * added in order, from zero; shard sums are added in a balanced binary tree ((0+1)+(2+3))+...
 * Threads, and later ranks, only decide who computes which shard: the bits stay.
 */
#ifndef BJ_CORE_SHARDS_H
#define BJ_CORE_SHARDS_H

enum { BJ_SHARDS = 16, BJ_SHARD_LEVELS = 5 /* log2(BJ_SHARDS) + 1 */ };

static inline int bj_shard_begin(int B, int shard) {
    return (int)((long)B * shard / BJ_SHARDS);
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
