/* zip_internal.h - what directory (zip.c) and streams (zip_stream.c) of an archive share. */
#ifndef BJ_NPZ_ZIP_INTERNAL_H
#define BJ_NPZ_ZIP_INTERNAL_H

#include "npz/zip.h"

struct bj_zip {
    char *path;
    int fd;                /* -1: in memory */
    const uint8_t *memory; /* NULL: in a file */
    uint64_t size;
    uint64_t directory; /* where it begins: members lie before */
    char *names;
    bj_zip_member *members;
    int count;
};

/* Fills out with the n bytes at `at`; the caller has checked that they lie inside. */
BJ_CHECK bj_status bj_zip_fetch(const bj_zip *zip, void *out, uint64_t at, size_t n, bj_error *err);

static inline uint32_t bj_zip_u16(const uint8_t *p) { return (uint32_t)p[0] | (uint32_t)p[1] << 8; }

static inline uint32_t bj_zip_u32(const uint8_t *p) {
    return bj_zip_u16(p) | bj_zip_u16(p + 2) << 16;
}

static inline uint64_t bj_zip_u64(const uint8_t *p) {
    return (uint64_t)bj_zip_u32(p) | (uint64_t)bj_zip_u32(p + 4) << 32;
}

#endif
