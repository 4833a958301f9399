/* exchange.h - exchanges parts of the observations between scenes.
 *
 * Partners  A random cycle through all scenes (Sattolo's algorithm) without a fixed point:
 *
 *             g = the generator of (seed, "exchange")
 *             for i = n - 1 .. 1:  swap partner i with partner j, j uniform in 0 .. i - 1 from g
 *
 *           starting from partner i = i. The cycle depends only on the seed and the number of
 *           scenes.
 * Exchange  Scene i gets the pointers and the count of its partner's part. The arrays stay in the
 *           partner's frame, whose origin and direction are those of its focal road user. The
 *           future and all other parts are still those of scene i.
 * Test      tests/eval/test_exchange.c
 */
#ifndef BJ_EVAL_EXCHANGE_H
#define BJ_EVAL_EXCHANGE_H

#include "core/status.h"

enum { BJ_EXCHANGE_SEED = 1 };

typedef enum bj_exchange_part {
    BJ_EXCHANGE_NONE,
    BJ_EXCHANGE_MAP,
    BJ_EXCHANGE_NEIGHBORS,
    BJ_EXCHANGE_FOCAL,
    BJ_EXCHANGE_PARTS
} bj_exchange_part;

/* Assigns a partner to each of the n scenes. A single scene is its own partner. */
void bj_exchange_partners(int *partners, int n, uint64_t seed);
/* Returns a copy of `scene` with one part replaced by that of its partner. */
bj_scene bj_exchange_scene(const bj_scene *scene, const bj_scene *partner, bj_exchange_part part);

#endif
