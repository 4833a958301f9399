/* zip.h - reads the members of a ZIP archive sequentially, without loading a whole member.
 *
 * Sizes, checksums and offsets are read from the central directory at the end of the file, because
 * streaming writers omit them in the local headers or write 0xffffffff. ZIP64 is supported, and
 * members may be stored or deflated. Archives with other data in front or on several disks are
 * rejected.
 *
 * Memory: the directory, at most 16 MiB, and for each open stream 64 KiB plus zlib's window.
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
    const char *name; /* valid until the archive is closed */
    uint64_t header;  /* offset of the local header */
    uint64_t packed;  /* bytes in the file */
    uint64_t size;    /* unpacked bytes */
    uint32_t crc;     /* CRC-32 of the unpacked bytes */
    int method, flags;
} bj_zip_member;

BJ_CHECK bj_status bj_zip_open(bj_zip **out, const char *path, bj_error *err);
/* Opens an archive in memory. The buffer must outlive the archive. Messages use `name` in place of
 * the path. */
BJ_CHECK bj_status bj_zip_open_memory(bj_zip **out, const void *data, size_t size, const char *name,
                                      bj_error *err);
void bj_zip_close(bj_zip *zip);
const char *bj_zip_path(const bj_zip *zip);
int bj_zip_count(const bj_zip *zip);
const bj_zip_member *bj_zip_at(const bj_zip *zip, int index);

/* -------------------------------------------------------------------------------------- streams */

/* Reads one member from its first byte. The archive must outlive the stream. */
typedef struct bj_zip_stream bj_zip_stream;

BJ_CHECK bj_status bj_zip_stream_open(bj_zip_stream **out, const bj_zip *zip, int index,
                                      bj_error *err);
void bj_zip_stream_close(bj_zip_stream *stream);
/* Restarts at the first byte. */
BJ_CHECK bj_status bj_zip_stream_rewind(bj_zip_stream *stream, bj_error *err);
/* Reads exactly n bytes, or skips them if `out` is NULL. The read that reaches the end of the
 * member also checks the CRC and the end of the compressed data. */
BJ_CHECK bj_status bj_zip_stream_read(bj_zip_stream *stream, void *out, uint64_t n, bj_error *err);

#endif
