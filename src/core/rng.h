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

#endif
