/* zip_stream.c - reads the content of one ZIP member; see zip.h.
 *
 * Invariants
 *   1. At most `packed` bytes are read from the file, and at most `size` bytes are returned.
 *   2. The last read succeeds only if the CRC matches. The compressed data of a deflated member
 *      must end exactly there.
 *   3. After a failure every read fails until the stream is rewound.
 */
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "npz/zip_internal.h"

enum { LOCAL = 30, BUFFER = 64 * 1024, PASSED = 16 * 1024, ENCRYPTED = 1 | 1 << 6 | 1 << 13 };

struct bj_zip_stream {
    const bj_zip *zip;
    const bj_zip_member *member;
    uint64_t begin;         /* offset of the packed bytes */
    uint64_t taken, handed; /* packed bytes read so far, unpacked bytes returned so far */
    uint32_t crc;
    int failed, ended, has_inflater;
    z_stream inflater;
    uint8_t *buffer; /* (BUFFER) packed bytes, only for deflated members */
};

static bj_status fail(const bj_zip_stream *s, bj_error *err, const char *what) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.200s': %s", s->zip->path, s->member->name, what);
}

/* ----------------------------------------------------------------------------------------- open */

static voidpf zlib_alloc(voidpf context, uInt count, uInt size) {
    (void)context;
    return bj_alloc(count, size);
}

static void zlib_free(voidpf context, voidpf memory) {
    (void)context;
    bj_free(memory);
}

static bj_status check_method(const bj_zip_stream *s, bj_error *err) {
    static const struct {
        int method;
        const char *name;
    } known[] = {{9, "deflate64"}, {12, "bzip2"}, {14, "LZMA"}, {93, "Zstandard"}, {95, "XZ"}};
    const bj_zip_member *m = s->member;
    const char *name = "unknown";
    if (m->flags & ENCRYPTED) return fail(s, err, "is encrypted, expected plain data");
    if (m->method == BJ_ZIP_DEFLATED) return BJ_OK;
    if (m->method == BJ_ZIP_STORED) {
        if (m->packed == m->size) return BJ_OK;
        return BJ_FAIL(
            err, BJ_EFORMAT, "%s: member '%.200s': the stored data has %llu bytes, expected %llu",
            s->zip->path, m->name, (unsigned long long)m->packed, (unsigned long long)m->size);
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].method == m->method) name = known[i].name;
    return BJ_FAIL(err, BJ_EFORMAT,
                   "%s: member '%.200s': found compression method %d (%s), "
                   "expected stored (0) or deflate (8)",
                   s->zip->path, m->name, m->method, name);
}

/* Checks the name and the method in the local header, and finds the start of the packed bytes. */
static bj_status check_local(bj_zip_stream *s, bj_error *err) {
    const bj_zip_member *m = s->member;
    uint8_t local[LOCAL], piece[256];
    const size_t length = strlen(m->name);
    BJ_TRY(bj_zip_fetch(s->zip, local, m->header, LOCAL, err));
    if (memcmp(local, "PK\3\4", 4)) return fail(s, err, "no local header where it should be");
    if (bj_zip_u16(local + 26) != length || (int)bj_zip_u16(local + 8) != m->method)
        return fail(s, err, "its local header belongs to another member");
    for (size_t done = 0; done < length;) { /* in bounds, see read_entry */
        const size_t n = length - done < sizeof piece ? length - done : sizeof piece;
        BJ_TRY(bj_zip_fetch(s->zip, piece, m->header + LOCAL + done, n, err));
        if (memcmp(piece, m->name + done, n))
            return fail(s, err, "its local header has a different name");
        done += n;
    }
    const uint64_t before = LOCAL + (uint64_t)length + bj_zip_u16(local + 28);
    if (before > s->zip->directory - m->header ||
        m->packed > s->zip->directory - m->header - before)
        return fail(s, err,
                    "the data overlaps the directory, so the archive is truncated or damaged");
    s->begin = m->header + before;
    return BJ_OK;
}

static bj_status start(bj_zip_stream *s, bj_error *err) {
    s->taken = s->handed = 0;
    s->crc = 0;
    s->failed = s->ended = 0;
    if (s->member->method != BJ_ZIP_DEFLATED) return BJ_OK;
    s->inflater.next_in = s->buffer;
    s->inflater.avail_in = 0;
    if (s->has_inflater) {
        if (inflateReset(&s->inflater) != Z_OK) return fail(s, err, "zlib cannot restart");
        return BJ_OK;
    }
    s->inflater.zalloc = zlib_alloc;
    s->inflater.zfree = zlib_free;
    if (inflateInit2(&s->inflater, -15) != Z_OK) /* raw deflate, 32 KB window */
        return BJ_FAIL(err, BJ_ENOMEM, "%s: member '%.200s': out of memory for zlib", s->zip->path,
                       s->member->name);
    s->has_inflater = 1;
    return BJ_OK;
}

bj_status bj_zip_stream_open(bj_zip_stream **out, const bj_zip *zip, int index, bj_error *err) {
    bj_zip_stream *s;
    bj_status status;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(s, 1, err));
    s->zip = zip;
    s->member = &zip->members[index];
    BJ_GOTO(status, failed, check_method(s, err));
    BJ_GOTO(status, failed, check_local(s, err));
    if (s->member->method == BJ_ZIP_DEFLATED)
        BJ_GOTO(status, failed, BJ_ALLOC(s->buffer, BUFFER, err));
    BJ_GOTO(status, failed, start(s, err));
    *out = s;
    return BJ_OK;
failed:
    bj_zip_stream_close(s);
    return status;
}

void bj_zip_stream_close(bj_zip_stream *s) {
    if (!s) return;
    if (s->has_inflater) inflateEnd(&s->inflater);
    bj_free(s->buffer);
    bj_free(s);
}

bj_status bj_zip_stream_rewind(bj_zip_stream *s, bj_error *err) { return start(s, err); }

/* ----------------------------------------------------------------------------------------- read */

/* Calls zlib once, after refilling its input if it is empty. Writes up to n bytes and sets *got to
 * the number of bytes written. */
static bj_status inflate_some(bj_zip_stream *s, uint8_t *out, size_t n, size_t *got,
                              bj_error *err) {
    z_stream *z = &s->inflater;
    const uint64_t left = s->member->packed - s->taken;
    if (!z->avail_in && left) {
        const size_t want = left < BUFFER ? (size_t)left : BUFFER;
        BJ_TRY(bj_zip_fetch(s->zip, s->buffer, s->begin + s->taken, want, err));
        s->taken += want;
        z->next_in = s->buffer;
        z->avail_in = (uInt)want;
    }
    const size_t most = n < (1u << 30) ? n : 1u << 30;
    z->next_out = out;
    z->avail_out = (uInt)most;
    const int code = inflate(z, Z_NO_FLUSH);
    *got = most - z->avail_out;
    if (code == Z_STREAM_END) s->ended = 1;
    else if (code == Z_MEM_ERROR)
        return BJ_FAIL(err, BJ_ENOMEM, "%s: member '%.200s': out of memory for zlib", s->zip->path,
                       s->member->name);
    else if (code != Z_OK && code != Z_BUF_ERROR)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.200s': damaged after %llu of %llu bytes: %s",
                       s->zip->path, s->member->name, (unsigned long long)(s->handed + *got),
                       (unsigned long long)s->member->size, z->msg ? z->msg : "compressed data");
    return BJ_OK;
}

static bj_status fill_deflated(bj_zip_stream *s, uint8_t *out, size_t n, bj_error *err) {
    for (size_t done = 0; done < n;) {
        size_t got = 0;
        if (!s->ended) BJ_TRY(inflate_some(s, out + done, n - done, &got, err));
        done += got;
        if (done < n && !got &&
            (s->ended || (!s->inflater.avail_in && s->taken == s->member->packed)))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: member '%.200s': its compressed data ends after %llu bytes, "
                           "expected %llu",
                           s->zip->path, s->member->name, (unsigned long long)(s->handed + done),
                           (unsigned long long)s->member->size);
    }
    return BJ_OK;
}

/* After all bytes have been returned, checks that the compressed data ends there and that the CRC
 * matches. */
static bj_status finish(bj_zip_stream *s, bj_error *err) {
    while (s->member->method == BJ_ZIP_DEFLATED && !s->ended) {
        uint8_t more;
        size_t got = 0;
        BJ_TRY(inflate_some(s, &more, 1, &got, err));
        if (got)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.200s' unpacks to more than %llu bytes",
                           s->zip->path, s->member->name, (unsigned long long)s->member->size);
        if (!s->ended && !s->inflater.avail_in && s->taken == s->member->packed)
            return fail(s, err, "its compressed data has no end");
    }
    if (s->member->method == BJ_ZIP_DEFLATED &&
        (s->inflater.avail_in || s->taken < s->member->packed))
        return fail(s, err, "bytes are left over after its compressed data");
    if (s->crc != s->member->crc)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.200s': CRC-32 is %08lx, expected %08lx",
                       s->zip->path, s->member->name, (unsigned long)s->crc,
                       (unsigned long)s->member->crc);
    return BJ_OK;
}

static bj_status read_piece(bj_zip_stream *s, uint8_t *out, size_t n, bj_error *err) {
    if (s->member->method == BJ_ZIP_DEFLATED) BJ_TRY(fill_deflated(s, out, n, err));
    else BJ_TRY(bj_zip_fetch(s->zip, out, s->begin + s->handed, n, err));
    s->handed += n;
    s->crc = (uint32_t)crc32_z(s->crc, out, n);
    return BJ_OK;
}

static bj_status read_all(bj_zip_stream *s, uint8_t *out, uint64_t n, bj_error *err) {
    uint8_t passed[PASSED];
    if (n > s->member->size - s->handed)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.200s': %llu bytes requested, %llu remain",
                       s->zip->path, s->member->name, (unsigned long long)n,
                       (unsigned long long)(s->member->size - s->handed));
    while (n) {
        /* Process the data in pieces that stay in the CPU cache until their checksum is
         * computed. */
        const size_t most = out ? BUFFER : PASSED, piece = n < most ? (size_t)n : most;
        BJ_TRY(read_piece(s, out ? out : passed, piece, err));
        if (out) out += piece;
        n -= piece;
    }
    return s->handed == s->member->size ? finish(s, err) : BJ_OK;
}

bj_status bj_zip_stream_read(bj_zip_stream *s, void *out, uint64_t n, bj_error *err) {
    if (s->failed) return fail(s, err, "an earlier read failed");
    const bj_status status = read_all(s, out, n, err);
    s->failed = status != BJ_OK;
    return status;
}
