/* blocks.h - how scenes are cut into items of work.
 *
 * Large blocks first, small ones last: the tail of a round is what a busy core makes everybody
 * wait for. The cut never shows in the results, as a row's bits do not depend on its block.
 */
#ifndef BJ_CORE_BLOCKS_H
#define BJ_CORE_BLOCKS_H

enum { BJ_BLOCK = 32 /* most scenes of a block */ };

/* Fills begin (at most B + 1 entries) and returns the number of blocks. */
static inline int bj_blocks_cut(int *begin, int B) {
    int n = 0;
    for (int b = 0; b < B; n++) {
        const int left = B - b;
        const int size = left >= 3 * BJ_BLOCK ? BJ_BLOCK : left > BJ_BLOCK ? BJ_BLOCK / 2 : 8;
        begin[n] = b;
        b += size < left ? size : left;
    }
    begin[n] = B;
    return n;
}

#endif
