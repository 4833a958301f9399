/* snappy_pack.h - compresses pages in the snappy format.
 *
 * libsnappy is written in C++ and ends the process if it cannot allocate its working memory, and its
 * output differs between versions. Pages are therefore compressed here. Decompression uses
 * libsnappy, which allocates nothing for it. Test: tests/parquet/test_codecs.c
 */
#ifndef BJ_PARQUET_SNAPPY_PACK_H
#define BJ_PARQUET_SNAPPY_PACK_H

#include <stddef.h>
#include <stdint.h>

enum { BJ_SNAPPY_TABLE = 1 << 13 };

/* Returns the max compressed size of `size` bytes. */
size_t bj_snappy_bound(size_t size);
/* Compresses less than 4 GiB and returns the compressed size. `table` is working memory. */
size_t bj_snappy_pack(uint8_t *out, const uint8_t *in, size_t size,
                      uint16_t table[BJ_SNAPPY_TABLE]);

#endif
