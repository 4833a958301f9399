/* crc32c.h - CRC-32C (Castagnoli, RFC 3720), the checksum of TensorBoard records.
 *
 * Test: tests/run/test_events.c
 */
#ifndef BJ_CORE_CRC32C_H
#define BJ_CORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t bj_crc32c(const void *data, size_t size);

#endif
