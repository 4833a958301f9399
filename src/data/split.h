/* split.h - fit or development, decided by the scenario id alone.
 *
 *   dev  <=>  (first 8 bytes of SHA-256(id), big-endian) / 2^64  <  9944 / 199908
 *
 * No list is stored: a scene keeps its part whatever other scenes a cache holds.
 * Test: tests/data/test_split.c
 */
#ifndef BJ_DATA_SPLIT_H
#define BJ_DATA_SPLIT_H

#include <stdint.h>

#include "core/sha256.h"

/* The smallest integer not below 2^64 * 9944 / 199908: comparing with it is exact. */
#define BJ_SPLIT_THRESHOLD UINT64_C(0x0cbbf31238606c5a)

/* Sets *dev to 0 or 1. `hash` may start as {0} and is used again from call to call; the caller
 * resets it. */
BJ_CHECK bj_status bj_split_dev(int *dev, bj_sha256 *hash, const char *scenario_id, bj_error *err);

#endif
