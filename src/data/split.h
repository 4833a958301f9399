/* split.h - assigns a scene to the fit or development scenes by its scenario id.
 *
 *   dev  <=>  (first 8 bytes of SHA-256(id), big-endian) / 2^64  <  9944 / 199908
 *
 * The result depends only on the id, not on other scenes, so no list needs to be stored. bj_is_dev
 * (branchjepa.h) applies the rule.
 * Test: tests/data/test_split.c
 */
#ifndef BJ_DATA_SPLIT_H
#define BJ_DATA_SPLIT_H

#include <stdint.h>

/* The smallest integer that is at least 2^64 * 9944 / 199908, which makes the comparison exact. */
#define BJ_SPLIT_THRESHOLD UINT64_C(0x0cbbf31238606c5a)

#endif
