/* rng.h - an explicit, serializable random generator (xoshiro256++, Blackman and Vigna).
 *
 * The state is four words a caller can store and restore; there is no hidden generator anywhere.
 */
#ifndef BJ_CORE_RNG_H
#define BJ_CORE_RNG_H

#include <stdint.h>

#include <branchjepa/branchjepa.h>

/* A stream for (seed, name): tensors of the same name get the same numbers whatever else exists. */
bj_rng bj_rng_named(uint64_t seed, const char *name);
/* Returns an integer from 0 to n - 1, all with equal probability. Rejects numbers of the generator
 * that are not below the largest multiple of n, so a call may advance the generator more than once. */
uint64_t bj_rng_below(bj_rng *rng, uint64_t n);

#endif
