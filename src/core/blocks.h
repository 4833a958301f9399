/* blocks.h - splits a range of scenes into work items.
 *
 * Large blocks come first and small blocks last, so that all threads finish at about the same time
 * even if one core is busy. The split does not affect the results, because a row's result does not
 * depend on its block.
 */
#ifndef BJ_CORE_BLOCKS_H
#define BJ_CORE_BLOCKS_H

enum { BJ_BLOCK = 32 /* max scenes per block */ };

/* Splits scenes [b0,b1) into blocks. Fills `begin` (at most b1 - b0 + 1 entries) and returns the
 * number of blocks. */
static inline int bj_blocks_cut(int *begin, int b0, int b1) {
    int n = 0;
    for (int b = b0; b < b1; n++) {
        const int left = b1 - b;
        const int size = left >= 3 * BJ_BLOCK ? BJ_BLOCK : left > BJ_BLOCK ? BJ_BLOCK / 2 : 8;
        begin[n] = b;
        b += size < left ? size : left;
    }
    begin[n] = b1;
    return n;
}

#endif
