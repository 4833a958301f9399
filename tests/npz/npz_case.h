/* npz_case.h - writes valid and invalid NumPy archives to memory or a file.
 *
 *   npz_maker m = {0};
 *   npz_add(&m, "x", "<f4", "(3, 2)", data, bytes, NPZ_DEFLATED);
 *   npz_finish(&m);    m.bytes, m.size; free(m.bytes)
 *
 * The options of npz_lie falsify the metadata of a member. zip64 stores its sizes, and the end of
 * the archive, in the ZIP64 records.
 */
#ifndef BJ_TESTS_NPZ_CASE_H
#define BJ_TESTS_NPZ_CASE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { NPZ_STORED = 0, NPZ_DEFLATED = 8, NPZ_MOST = 64 };

typedef struct npz_lie {
    int method; /* declared compression method plus one; 0 declares the actual method */
    int flags;
    long size, packed; /* added to the declared sizes */
    int crc;           /* flips a bit of the CRC */
    int local;         /* damages the local header */
    int zip64;         /* stores the sizes in the extra field */
    long cut;          /* compressed bytes to omit */
} npz_lie;

typedef struct npz_maker {
    uint8_t *bytes;
    size_t size;
    struct {
        char name[96];
        size_t at, packed, size;
        uint32_t crc;
        int method;
        npz_lie lie;
    } member[NPZ_MOST];
    int count;
    int zip64;           /* ZIP64 end record */
    const char *comment; /* of the archive, or NULL */
} npz_maker;

static inline void npz_put(npz_maker *m, const void *data, size_t n) {
    m->bytes = realloc(m->bytes, m->size + n + 1);
    if (!m->bytes) abort();
    if (n) memcpy(m->bytes + m->size, data, n);
    m->size += n;
}

static inline void npz_number(npz_maker *m, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) {
        const uint8_t byte = (uint8_t)(value >> 8 * i);
        npz_put(m, &byte, 1);
    }
}

static inline size_t npz_pack(uint8_t **out, const void *data, size_t n) {
    z_stream z;
    memset(&z, 0, sizeof z);
    if (deflateInit2(&z, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK) abort();
    const size_t room = deflateBound(&z, (uLong)n) + 16;
    *out = malloc(room);
    if (!*out) abort();
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)n;
    z.next_out = *out;
    z.avail_out = (uInt)room;
    if (deflate(&z, Z_FINISH) != Z_STREAM_END) abort();
    deflateEnd(&z);
    return room - z.avail_out;
}

/* Adds a member with any content. `name` is the full name. */
static inline void npz_add_raw(npz_maker *m, const char *name, const void *data, size_t n,
                               int method, const npz_lie *lie) {
    static const npz_lie honest = {0};
    uint8_t *packed = NULL;
    size_t length = n;
    const int k = m->count++;
    if (!lie) lie = &honest;
    if (method == NPZ_DEFLATED) length = npz_pack(&packed, data, n);
    length -= (size_t)lie->cut;
    snprintf(m->member[k].name, sizeof m->member[k].name, "%s", name);
    m->member[k].at = m->size;
    m->member[k].size = n + (size_t)lie->size;
    m->member[k].packed = length + (size_t)lie->packed;
    m->member[k].crc = (uint32_t)crc32(0, data, (uInt)n) ^ (lie->crc ? 1u << 13 : 0);
    m->member[k].method = lie->method ? lie->method - 1 : method;
    m->member[k].lie = *lie;
    npz_put(m, lie->local ? "PK\3\5" : "PK\3\4", 4);
    npz_number(m, 45, 2);
    npz_number(m, (uint64_t)lie->flags, 2);
    npz_number(m, (uint64_t)m->member[k].method, 2);
    npz_number(m, 0, 4); /* time and date */
    npz_number(m, 0, 4); /* readers use the directory instead */
    npz_number(m, 0xffffffff, 4);
    npz_number(m, 0xffffffff, 4);
    npz_number(m, strlen(name), 2);
    npz_number(m, 5, 2); /* an extra field that is not in the directory */
    npz_put(m, name, strlen(name));
    npz_put(m, "\1\2\1\0x", 5);
    npz_put(m, packed ? packed : data, length);
    free(packed);
}

/* Adds an array with an .npy header of version 1 or 2. */
static inline void npz_add_header(npz_maker *m, const char *name, const char *header, int version,
                                  const void *data, size_t n, int method, const npz_lie *lie) {
    char full[96];
    npz_maker inner = {0};
    const size_t begin = version > 1 ? 12 : 10, length = strlen(header);
    const size_t padded = (begin + length + 1 + 63) / 64 * 64 - begin;
    npz_put(&inner, "\x93NUMPY", 6);
    npz_number(&inner, (uint64_t)version, 1);
    npz_number(&inner, 0, 1);
    npz_number(&inner, padded, version > 1 ? 4 : 2);
    npz_put(&inner, header, length);
    while (inner.size < begin + padded - 1) npz_put(&inner, " ", 1);
    npz_put(&inner, "\n", 1);
    npz_put(&inner, data, n);
    snprintf(full, sizeof full, "%.80s.npy", name);
    npz_add_raw(m, full, inner.bytes, inner.size, method, lie);
    free(inner.bytes);
}

static inline void npz_add(npz_maker *m, const char *name, const char *descr, const char *shape,
                           const void *data, size_t n, int method) {
    char header[200];
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
             shape);
    npz_add_header(m, name, header, 1, data, n, method, NULL);
}

static inline void npz_finish(npz_maker *m) {
    const size_t at = m->size;
    for (int k = 0; k < m->count; k++) {
        const int big = m->member[k].lie.zip64;
        npz_put(m, "PK\1\2", 4);
        npz_number(m, 45, 2);
        npz_number(m, 45, 2);
        npz_number(m, (uint64_t)m->member[k].lie.flags, 2);
        npz_number(m, (uint64_t)m->member[k].method, 2);
        npz_number(m, 0, 4);
        npz_number(m, m->member[k].crc, 4);
        npz_number(m, big ? 0xffffffff : m->member[k].packed, 4);
        npz_number(m, big ? 0xffffffff : m->member[k].size, 4);
        npz_number(m, strlen(m->member[k].name), 2);
        npz_number(m, big ? 28 + 5 : 0, 2);
        npz_number(m, 0, 2);
        npz_number(m, 0, 2);
        npz_number(m, 0, 2);
        npz_number(m, 0, 4);
        npz_number(m, big ? 0xffffffff : m->member[k].at, 4);
        npz_put(m, m->member[k].name, strlen(m->member[k].name));
        if (!big) continue;
        npz_put(m, "\7\0\1\0x", 5); /* another field first */
        npz_number(m, 1, 2);
        npz_number(m, 24, 2);
        npz_number(m, m->member[k].size, 8);
        npz_number(m, m->member[k].packed, 8);
        npz_number(m, m->member[k].at, 8);
    }
    const size_t length = m->size - at, end = m->size;
    if (m->zip64) {
        npz_put(m, "PK\6\6", 4);
        npz_number(m, 44, 8);
        npz_number(m, 45, 2);
        npz_number(m, 45, 2);
        npz_number(m, 0, 8);
        npz_number(m, (uint64_t)m->count, 8);
        npz_number(m, (uint64_t)m->count, 8);
        npz_number(m, length, 8);
        npz_number(m, at, 8);
        npz_put(m, "PK\6\7", 4);
        npz_number(m, 0, 4);
        npz_number(m, end, 8);
        npz_number(m, 1, 4);
    }
    npz_put(m, "PK\5\6", 4);
    npz_number(m, 0, 4);
    npz_number(m, m->zip64 ? 0xffff : (uint64_t)m->count, 2);
    npz_number(m, m->zip64 ? 0xffff : (uint64_t)m->count, 2);
    npz_number(m, m->zip64 ? 0xffffffff : length, 4);
    npz_number(m, m->zip64 ? 0xffffffff : at, 4);
    npz_number(m, m->comment ? strlen(m->comment) : 0, 2);
    if (m->comment) npz_put(m, m->comment, strlen(m->comment));
}

/* Finishes the archive, writes it to a file and resets the maker. */
static inline void npz_write(npz_maker *m, const char *path) {
    npz_finish(m);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(m->bytes, 1, m->size, file) != m->size || fclose(file)) abort();
    free(m->bytes);
    memset(m, 0, sizeof *m);
}

#endif
