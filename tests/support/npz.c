/* npz.c - see npz.h. */
#include "support/npz.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"

static uint32_t u16(const char *p) {
    return (uint32_t)(unsigned char)p[0] | (uint32_t)(unsigned char)p[1] << 8;
}

static uint32_t u32(const char *p) { return u16(p) | u16(p + 2) << 16; }

/* Reads the shape at `text`, for example "(50, 7)" or "()". */
static int read_shape(npz_array *a, const char *text) {
    a->rank = 0;
    a->count = 1;
    for (const char *p = text + 1; *p && *p != ')'; p++) {
        char *end;
        const long size = strtol(p, &end, 10);
        if (end == p) continue; /* a comma or a space */
        if (a->rank == NPZ_RANK || size < 0) return 0;
        a->shape[a->rank++] = size;
        a->count *= size;
        p = end - 1;
    }
    return 1;
}

static int read_npy(npz_array *a, const char *data, size_t size) {
    char header[512];
    if (size < 10 || memcmp(data, "\x93NUMPY\x01", 7)) return 0;
    const size_t length = u16(data + 8);
    if (length > size - 10 || length >= sizeof header) return 0;
    memcpy(header, data + 10, length);
    header[length] = '\0';
    const char *type = strstr(header, "'descr': '"), *shape = strstr(header, "'shape': (");
    if (!type || !shape || !strstr(header, "'fortran_order': False")) return 0;
    if (sscanf(type + 10, "%15[^']", a->dtype) != 1 || !read_shape(a, shape + 9)) return 0;
    a->size = (size_t)strtol(a->dtype + 2, NULL, 10);
    a->data = data + 10 + length;
    return (size_t)a->count * a->size == size - 10 - length;
}

static int read_archive(npz *out, size_t size) {
    const char *b = out->bytes;
    size_t end = size < 22 ? 0 : size - 22;
    while (end && memcmp(b + end, "PK\5\6", 4)) end--;
    if (!end) return 0;
    const int members = (int)u16(b + end + 10);
    size_t at = u32(b + end + 16);
    if (members > NPZ_MEMBERS) return 0;
    for (int i = 0; i < members; i++) {
        npz_array *a = &out->array[i];
        if (at + 46 > end || memcmp(b + at, "PK\1\2", 4)) return 0;
        const size_t bytes = u32(b + at + 24), name = u16(b + at + 28), local = u32(b + at + 42);
        if (u16(b + at + 10) != 0 || name < 5 || name - 4 >= sizeof a->name) return 0;
        if (at + 46 + name > end || local + 30 > size) return 0;
        memcpy(a->name, b + at + 46, name - 4);
        const size_t data = local + 30 + u16(b + local + 26) + u16(b + local + 28);
        if (data > size || bytes > size - data || !read_npy(a, b + data, bytes)) return 0;
        out->count++;
        at += 46 + name + u16(b + at + 30) + u16(b + at + 32);
    }
    return 1;
}

int npz_open(npz *out, const char *path) {
    bj_error err = {0};
    size_t size;
    memset(out, 0, sizeof *out);
    if (bj_file_read(&out->bytes, &size, path, 64 << 20, &err) != BJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 0;
    }
    if (read_archive(out, size)) return 1;
    fprintf(stderr, "%s: expected uncompressed version 1 arrays (member %d)\n", path, out->count);
    npz_close(out);
    return 0;
}

void npz_close(npz *archive) {
    bj_free(archive->bytes);
    memset(archive, 0, sizeof *archive);
}

const npz_array *npz_find(const npz *archive, const char *name) {
    for (int i = 0; i < archive->count; i++)
        if (!strcmp(archive->array[i].name, name)) return &archive->array[i];
    return NULL;
}

double npz_number(const npz_array *a, long i) {
    const char *p = (const char *)a->data + (size_t)i * a->size;
    union {
        float f4;
        double f8;
        int32_t i4;
        int64_t i8;
    } v;
    if (i < 0 || i >= a->count || a->size > sizeof v) return NAN;
    memcpy(&v, p, a->size);
    if (!strcmp(a->dtype, "<f4")) return (double)v.f4;
    if (!strcmp(a->dtype, "<f8")) return v.f8;
    if (!strcmp(a->dtype, "<i4")) return v.i4;
    if (!strcmp(a->dtype, "<i8")) return (double)v.i8;
    if (!strcmp(a->dtype, "|u1")) return (double)(unsigned char)*p;
    return NAN;
}
