/* body_pairs.h - pairs of bfloat16 numbers, the operands of products in mixed precision.
 *
 * A word has the size of a float and contains two bfloat16 numbers that are adjacent in k, the even
 * one in its lower half. Words are stored in arrays of bj_real. So a product over K numbers is a
 * product over (K + 1) / 2 words, with the same tiles and panels as in single precision. An odd K
 * is padded with zero.
 *
 * With BJ_BODY_BF16, one instruction adds the two products of a word to a sum. Otherwise a word is
 * split into two floats, and two multiply-adds give the sum. Both orders are fixed, so a sum has
 * the same bits in every tile of one instruction set.
 */
#ifndef BJ_KERNELS_BODY_PAIRS_H
#define BJ_KERNELS_BODY_PAIRS_H

#include "core/bf16.h"
#include "kernels/body_vec.h"

/* Returns the number of words of K numbers. */
INLINE int words_of(int K) { return (K + 1) / 2; }

#ifdef BJ_DOUBLE /* only the portable table supports mixed precision in this build */

enum { PARTS = 1 };
INLINE vec part_of(vec words, int part) { return part ? (vec){0} : words; }
INLINE vec add_part(vec sum, vec x, vec y) { return sum + x * y; }
INLINE vec pair_up(vec even, vec odd) { return even + odd; }
INLINE vec pair_in_order(vec first, vec second) { return first + second; }
INLINE bj_real word_of(bj_real even, bj_real odd) { return even + odd; }

#else

typedef uint32_t uvec __attribute__((vector_size(BJ_BODY_BYTES)));

/* Functions:
 *   PARTS, part_of, add_part   a word's products are added in PARTS steps: add_part adds the
 *                              product of part_of(x, part) and part_of(y, part)
 *   pair_up                    words of two vectors, (even[i], odd[i])
 *   pair_in_order              words of 2 LANES consecutive numbers */
#ifdef BJ_BODY_BF16
enum { PARTS = 1 };
INLINE vec part_of(vec words, int part) {
    (void)part;
    return words;
}
INLINE vec add_part(vec sum, vec x, vec y) {
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
}
INLINE vec pair_in_order(vec first, vec second) {
    return (vec)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
}
INLINE vec pair_up(vec even, vec odd) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9,
                                           24, 8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1,
                                           16, 0);
    return (vec)_mm512_permutexvar_epi16(order, (__m512i)pair_in_order(even, odd));
}
#else
enum { PARTS = 2 };
INLINE vec part_of(vec words, int part) {
    return part ? (vec)((uvec)words & 0xffff0000u) : (vec)((uvec)words << 16);
}
INLINE vec add_part(vec sum, vec x, vec y) { return sum + x * y; }
/* Rounds to nearest even. The upper halves contain the result. The lower halves are undefined. */
INLINE uvec round_halves(vec x) {
    const uvec bits = (uvec)x, nan = (uvec)(x != x);
    return ((bits + 0x7fff + (bits >> 16 & 1)) & ~nan) | ((bits | 0x400000) & nan);
}
INLINE vec pair_up(vec even, vec odd) {
    return (vec)(round_halves(even) >> 16 | (round_halves(odd) & 0xffff0000u));
}
INLINE vec pair_in_order(vec a, vec b) {
#if BJ_BODY_BYTES == 64
    return pair_up(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                           28, 30),
                   __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                           29, 31));
#else
    return pair_up(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
                   __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
#endif
}
#endif

INLINE bj_real word_of(bj_real even, bj_real odd) {
    const uint32_t bits = (uint32_t)bj_bf16_round(odd) << 16 | bj_bf16_round(even);
    bj_real word;
    memcpy(&word, &bits, sizeof word);
    return word;
}

/* Rounded rows of a left-hand side. A block of rows fits in the L1 or L2 cache. A word occupies
 * PARTS elements. If PARTS is 2, a row contains rounded floats, so that each part can be broadcast
 * directly. */
enum {
    WORD_ROWS = 32,
    WORD_DEPTH = 512, /* words per row of a block with WORD_ROWS rows */
    WORD_STRIDE = PARTS * WORD_DEPTH + 16,
    WORD_COUNT = 48 * WORD_STRIDE /* enough for one row of gate gradients with 16384 units */
};

/* Rounds M rows of K numbers. The row stride of the result is ldw. */
static void round_rows(bj_real *words, size_t ldw, const bj_real *a, size_t lda, int M, int K) {
    for (int m = 0; m < M; m++, words += ldw, a += lda) {
        int k = 0;
#ifdef BJ_BODY_BF16
        for (; k + 2 * LANES <= K; k += 2 * LANES)
            store(words + k / 2, pair_in_order(load(a + k), load(a + k + LANES)));
        for (; k < K; k += 2) words[k / 2] = word_of(a[k], k + 1 < K ? a[k + 1] : 0);
#else
        for (; k + LANES <= K; k += LANES)
            store(words + k, (vec)(round_halves(load(a + k)) & 0xffff0000u));
        for (; k < K; k++) words[k] = bj_bf16_widen(bj_bf16_round(a[k]));
        if (K % 2) words[K] = 0;
#endif
    }
}

#endif

#endif
