/* rng.h - explicit, serializable random number generator (xoshiro256++, Blackman and Vigna).
 *
 * The state consists of four words that the caller can store and restore. There is no global
 * generator.
 */
#ifndef BJ_CORE_RNG_H
#define BJ_CORE_RNG_H

#include <stdint.h>

#include <branchjepa/branchjepa.h>

/* Returns the generator for (seed, name). Tensors with the same name get the same numbers, no
 * matter which other tensors exist. */
bj_rng bj_rng_named(uint64_t seed, const char *name);
/* Returns a uniformly distributed integer in [0, n). Discards random numbers at or above the
 * largest multiple of n, so one call may advance the generator more than once. */
uint64_t bj_rng_below(bj_rng *rng, uint64_t n);

#endif
