/* npz_write.c - see npz_write.h.
 *
 *   for each array     local header (30 bytes), name, .npy header (a multiple of 64 bytes), numbers
 *   central directory  46 bytes and the name per member
 *   end                22 bytes
 */
#include "npz/npz_write.h"

#include <stdio.h>
#include <string.h>

#include <zlib.h>

#include "core/file.h"

enum { MEMBERS = 64, NAME = 64, HEADER = 256, DOS_DATE = 0x21 /* January 1, 1980 */ };

typedef struct member {
    char name[NAME + 8]; /* including .npy */
    char header[HEADER]; /* .npy header */
    size_t header_size, bytes;
    uint32_t crc, offset;
} member;

static void put16(unsigned char *p, uint32_t v) {
    p[0] = (unsigned char)v;
    p[1] = (unsigned char)(v >> 8);
}

static void put32(unsigned char *p, uint32_t v) {
    put16(p, v & 0xffff);
    put16(p + 2, v >> 16);
}

static bj_status describe(member *m, const bj_npz_source *a, const char *path, bj_error *err) {
    static const char *const types[BJ_NPY_TYPES] = {"<f4", "<f8", "<i4", "<i8", "|u1", "|b1"};
    uint64_t count = 1;
    char shape[128];
    size_t used = 0;
    if (!*a->name || strlen(a->name) > NAME || a->rank < 1 || a->rank > 4)
        return BJ_FAIL(err, BJ_EARG, "%s: array '%.80s' of rank %d cannot be written", path,
                       a->name, a->rank);
    for (int k = 0; k < a->rank; k++) {
        if (a->shape[k] < 0 || a->shape[k] > UINT32_MAX)
            return BJ_FAIL(err, BJ_EARG, "%s: array '%s' has a dimension of %lld", path, a->name,
                           (long long)a->shape[k]);
        count *= (uint64_t)a->shape[k];
        if (count > UINT32_MAX) break;
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", k ? ", " : "",
                                 (long long)a->shape[k]);
    }
    if (count * bj_npy_size(a->type) > UINT32_MAX - 4096)
        return BJ_FAIL(err, BJ_EARG, "%s: array '%s' is larger than the archive limit of 4 GiB",
                       path, a->name);
    m->bytes = (size_t)count * bj_npy_size(a->type);
    snprintf(m->name, sizeof m->name, "%s.npy", a->name);
    memcpy(m->header, "\x93NUMPY\x01", 8); /* includes the zero of the minor version */
    const int text = snprintf(m->header + 10, HEADER - 10,
                              "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }",
                              types[a->type], shape, a->rank == 1 ? "," : "");
    m->header_size = (10 + (size_t)text + 1 + 63) / 64 * 64;
    memset(m->header + 10 + text, ' ', m->header_size - 10 - (size_t)text);
    m->header[m->header_size - 1] = '\n';
    put16((unsigned char *)m->header + 8, (uint32_t)m->header_size - 10);
    m->crc = (uint32_t)crc32(0, (const Bytef *)m->header, (uInt)m->header_size);
    m->crc = (uint32_t)crc32_z(m->crc, a->data, m->bytes);
    return BJ_OK;
}

/* Writes the 26 bytes that the local header and the directory entry have in common, starting with
 * "version needed". */
static void put_facts(unsigned char *p, const member *m) {
    const uint32_t size = (uint32_t)(m->header_size + m->bytes);
    put16(p, 20);
    put16(p + 8, DOS_DATE);
    put32(p + 10, m->crc);
    put32(p + 14, size);
    put32(p + 18, size);
    put16(p + 22, (uint32_t)strlen(m->name));
}

static bj_status write_all(bj_file_writer *to, member *members, const bj_npz_source *arrays,
                           int count, bj_error *err) {
    uint32_t at = 0, directory = 0;
    for (int k = 0; k < count; k++) {
        member *m = &members[k];
        unsigned char local[30] = {'P', 'K', 3, 4};
        put_facts(local + 4, m);
        m->offset = at;
        BJ_TRY(bj_file_writer_write(to, local, sizeof local, err));
        BJ_TRY(bj_file_writer_write(to, m->name, strlen(m->name), err));
        BJ_TRY(bj_file_writer_write(to, m->header, m->header_size, err));
        BJ_TRY(bj_file_writer_write(to, arrays[k].data, m->bytes, err));
        at += (uint32_t)(sizeof local + strlen(m->name) + m->header_size + m->bytes);
    }
    for (int k = 0; k < count; k++) {
        unsigned char entry[46] = {'P', 'K', 1, 2, 20};
        put_facts(entry + 6, &members[k]);
        put32(entry + 42, members[k].offset);
        BJ_TRY(bj_file_writer_write(to, entry, sizeof entry, err));
        BJ_TRY(bj_file_writer_write(to, members[k].name, strlen(members[k].name), err));
        directory += (uint32_t)(sizeof entry + strlen(members[k].name));
    }
    unsigned char end[22] = {'P', 'K', 5, 6};
    put16(end + 8, (uint32_t)count);
    put16(end + 10, (uint32_t)count);
    put32(end + 12, directory);
    put32(end + 16, at);
    return bj_file_writer_write(to, end, sizeof end, err);
}

bj_status bj_npz_write(const char *path, const bj_npz_source *arrays, int count, bj_error *err) {
    member members[MEMBERS];
    bj_file_writer *to = NULL;
    uint64_t total = 0;
    if (count < 1 || count > MEMBERS)
        return BJ_FAIL(err, BJ_EARG, "%s: %d arrays, expected 1 to %d", path, count, (int)MEMBERS);
    for (int k = 0; k < count; k++) {
        BJ_TRY(describe(&members[k], &arrays[k], path, err));
        total += members[k].bytes + members[k].header_size + 2 * (46 + NAME + 8);
    }
    if (total > UINT32_MAX - 64)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the arrays have %llu bytes, which exceeds the archive limit of 4 GiB",
                       path, (unsigned long long)total);
    BJ_TRY(bj_file_writer_open(&to, path, err));
    const bj_status status = write_all(to, members, arrays, count, err);
    if (status == BJ_OK) return bj_file_writer_commit(&to, err);
    bj_file_writer_abort(&to);
    return status;
}
