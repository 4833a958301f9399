/* zip.h - the members of a ZIP archive, read forward and never held as a whole.
 *
 * Sizes, checksums and places come from the central directory at the end of the file: writers that
 * stream leave them out of the local headers, or put 0xffffffff there. ZIP64 is read; members are
 * stored or deflated. Archives that start with something else or span disks are refused.
 *
 * Memory: the directory, at most 16 MiB of it, and 64 KiB and zlib's window for each open stream.
 * Test: tests/npz/test_npz.c, tests/fuzz/fuzz_npz.c
 */
#ifndef BJ_NPZ_ZIP_H
#define BJ_NPZ_ZIP_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

typedef struct bj_zip bj_zip;

enum { BJ_ZIP_STORED = 0, BJ_ZIP_DEFLATED = 8, BJ_ZIP_MEMBERS = 4096 };

typedef struct bj_zip_member {
    const char *name; /* lives as long as the archive */
    uint64_t header;  /* place of its local header */
    uint64_t packed;  /* bytes in the file */
    uint64_t size;    /* bytes when unpacked */
    uint32_t crc;     /* CRC-32 of these */
    int method, flags;
} bj_zip_member;

BJ_CHECK bj_status bj_zip_open(bj_zip **out, const char *path, bj_error *err);
/* From memory that stays the caller's; `name` stands for the path in messages. */
BJ_CHECK bj_status bj_zip_open_memory(bj_zip **out, const void *data, size_t size, const char *name,
                                      bj_error *err);
void bj_zip_close(bj_zip *zip);
const char *bj_zip_path(const bj_zip *zip);
int bj_zip_count(const bj_zip *zip);
const bj_zip_member *bj_zip_at(const bj_zip *zip, int index);

/* -------------------------------------------------------------------------------------- streams */

/* The content of one member from its first byte on. The archive must outlive it. */
typedef struct bj_zip_stream bj_zip_stream;

BJ_CHECK bj_status bj_zip_stream_open(bj_zip_stream **out, const bj_zip *zip, int index,
                                      bj_error *err);
void bj_zip_stream_close(bj_zip_stream *stream);
/* Back to the first byte. */
BJ_CHECK bj_status bj_zip_stream_rewind(bj_zip_stream *stream, bj_error *err);
/* The next n bytes, not fewer. The read that reaches the end of the member also checks its CRC, and
 * that the compressed data ends there too. out may be NULL: the bytes are passed over. */
BJ_CHECK bj_status bj_zip_stream_read(bj_zip_stream *stream, void *out, uint64_t n, bj_error *err);

#endif
