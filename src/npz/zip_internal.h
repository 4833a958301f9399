/* zip_internal.h - declarations shared by zip.c (directory) and zip_stream.c (members). */
#ifndef BJ_NPZ_ZIP_INTERNAL_H
#define BJ_NPZ_ZIP_INTERNAL_H

#include "npz/zip.h"

struct bj_zip {
    char *path;
    int fd;                /* -1 for an archive in memory */
    const uint8_t *memory; /* NULL for a file */
    uint64_t size;
    uint64_t directory; /* offset of the directory; members are before it */
    char *names;
    bj_zip_member *members;
    int count;
};

/* Reads the n bytes at offset `at`. The caller has checked the range. */
BJ_CHECK bj_status bj_zip_fetch(const bj_zip *zip, void *out, uint64_t at, size_t n, bj_error *err);

static inline uint32_t bj_zip_u16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static inline uint32_t bj_zip_u32(const uint8_t *p) {
    return bj_zip_u16(p) | bj_zip_u16(p + 2) << 16;
}

static inline uint64_t bj_zip_u64(const uint8_t *p) {
    return (uint64_t)bj_zip_u32(p) | (uint64_t)bj_zip_u32(p + 4) << 32;
}

#endif
