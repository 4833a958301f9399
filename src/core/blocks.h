/* blocks.h - how scenes are cut into items of work.
 *
 * Large blocks first, small ones last: the tail of a round is what a busy core makes everybody
 * wait for. The cut never shows in the results, as a row's bits do not depend on its block.
 */
#ifndef BJ_CORE_BLOCKS_H
#define BJ_CORE_BLOCKS_H

enum { BJ_BLOCK = 32 /* most scenes of a block */ };

/* Cuts scenes [b0,b1). Fills begin (at most b1 - b0 + 1 entries) and returns the number of blocks. */
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
