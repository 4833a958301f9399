/* zip.c - reads the directory of a ZIP archive; see zip.h.
 *
 *   members ... | central directory | [ZIP64 end, locator] | end record, comment
 *
 *   end record      22 bytes  PK 5 6, disks, entries, size and offset of the directory, comment
 *   locator         20 bytes  PK 6 7, disk, offset of the ZIP64 end, disks
 *   ZIP64 end       56 bytes  PK 6 6, ..., the same numbers with 64 bits
 *   directory entry 46 bytes  PK 1 2, ..., name, extra fields, comment
 *
 * A number that does not fit is stored as all ones. Its value is then in the extra field 1 of the
 * entry or in the ZIP64 end.
 *
 * Invariants
 *   1. Sizes are checked against the file size before memory is allocated.
 *   2. The header and the packed bytes of every member are before the directory.
 */
#define _POSIX_C_SOURCE 200809L /* pread */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file_internal.h"
#include "npz/zip_internal.h"

enum {
    END = 22,
    LOCATOR = 20,
    END64 = 56,
    ENTRY = 46,
    LOCAL = 30,
    MAX_COMMENT = 0xffff,
    MAX_DIRECTORY = 16 << 20,
    MAX_IO = 1 << 30
};

bj_status bj_zip_fetch(const bj_zip *zip, void *out, uint64_t at, size_t n, bj_error *err) {
    if (zip->memory) {
        memcpy(out, zip->memory + at, n);
        return BJ_OK;
    }
    for (size_t done = 0; done < n;) {
        const size_t want = n - done < MAX_IO ? n - done : MAX_IO;
        const ssize_t got = pread(zip->fd, (char *)out + done, want, (off_t)(at + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return bj_file_fail(err, errno, zip->path, "read");
        if (got == 0)
            return BJ_FAIL(err, BJ_EIO,
                           "%s: the file had %llu bytes but was truncated while it was read",
                           zip->path, (unsigned long long)zip->size);
        done += (size_t)got;
    }
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------- the end */

typedef struct directory {
    uint64_t at, size, entries;
} directory;

/* Finds the last end record whose comment ends exactly at the end of the file. */
static bj_status find_end(uint64_t *at, uint8_t end[END], const bj_zip *zip, bj_error *err) {
    const size_t room = zip->size < END + MAX_COMMENT ? (size_t)zip->size : END + MAX_COMMENT;
    uint8_t *tail;
    BJ_TRY(BJ_ALLOC(tail, room, err));
    bj_status status = bj_zip_fetch(zip, tail, zip->size - room, room, err);
    if (status == BJ_OK) {
        size_t i = room < END ? 0 : room - END + 1;
        while (i && (memcmp(tail + i - 1, "PK\5\6", 4) ||
                     i - 1 + END + bj_zip_u16(tail + i - 1 + 20) != room))
            i--;
        if (i) {
            *at = zip->size - room + i - 1;
            memcpy(end, tail + i - 1, END);
        } else {
            status = BJ_FAIL(err, BJ_EFORMAT,
                             "%s: found no ZIP directory at the end of the %llu bytes; "
                             "the file is truncated or is not an .npz archive",
                             zip->path, (unsigned long long)zip->size);
        }
    }
    bj_free(tail);
    return status;
}

/* Replaces the numbers with those of the ZIP64 end record if there is one. */
static bj_status read_end64(directory *d, uint64_t *limit, const bj_zip *zip, uint64_t end,
                            bj_error *err) {
    uint8_t locator[LOCATOR], record[END64];
    if (end < LOCATOR) return BJ_OK;
    BJ_TRY(bj_zip_fetch(zip, locator, end - LOCATOR, LOCATOR, err));
    if (memcmp(locator, "PK\6\7", 4)) return BJ_OK;
    const uint64_t at = bj_zip_u64(locator + 8);
    if (at > end - LOCATOR || end - LOCATOR - at < END64)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the ZIP64 end record is at byte %llu, expected it before byte %llu",
                       zip->path, (unsigned long long)at, (unsigned long long)(end - LOCATOR));
    BJ_TRY(bj_zip_fetch(zip, record, at, END64, err));
    if (memcmp(record, "PK\6\6", 4))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: there is no ZIP64 end record at byte %llu, where its locator points",
                       zip->path, (unsigned long long)at);
    if (bj_zip_u32(record + 16) || bj_zip_u32(record + 20))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the archive spans several disks, expected one",
                       zip->path);
    d->entries = bj_zip_u64(record + 32);
    d->size = bj_zip_u64(record + 40);
    d->at = bj_zip_u64(record + 48);
    *limit = at;
    return BJ_OK;
}

static bj_status find_directory(directory *d, const bj_zip *zip, bj_error *err) {
    uint8_t end[END] = {0};
    uint64_t limit = 0;
    BJ_TRY(find_end(&limit, end, zip, err));
    const unsigned disk = bj_zip_u16(end + 4), start = bj_zip_u16(end + 6);
    if ((disk && disk != 0xffff) || (start && start != 0xffff))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the archive spans several disks, expected one",
                       zip->path);
    d->entries = bj_zip_u16(end + 10);
    d->size = bj_zip_u32(end + 12);
    d->at = bj_zip_u32(end + 16);
    BJ_TRY(read_end64(d, &limit, zip, limit, err));
    if (d->at > limit || d->size > limit - d->at)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the directory has %llu bytes and starts at byte %llu, "
                       "expected it to end before byte %llu",
                       zip->path, (unsigned long long)d->size, (unsigned long long)d->at,
                       (unsigned long long)limit);
    if (d->size > MAX_DIRECTORY)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the directory has %llu bytes, expected at most %d",
                       zip->path, (unsigned long long)d->size, (int)MAX_DIRECTORY);
    if (d->entries > BJ_ZIP_MEMBERS)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %llu members, expected at most %d", zip->path,
                       (unsigned long long)d->entries, (int)BJ_ZIP_MEMBERS);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ directory */

/* Reads the sizes that did not fit into 32 bits from the extra fields. Returns 0 if they are
 * missing. */
static int read_extra(bj_zip_member *m, const uint8_t *extra, size_t size) {
    const int wants_size = m->size == 0xffffffff, wants_packed = m->packed == 0xffffffff;
    const int wants_header = m->header == 0xffffffff;
    if (!wants_size && !wants_packed && !wants_header) return 1;
    while (size >= 4) {
        const size_t length = bj_zip_u16(extra + 2);
        if (length > size - 4) return 0;
        if (bj_zip_u16(extra) == 1) {
            const uint8_t *p = extra + 4;
            if (length < 8 * (size_t)(wants_size + wants_packed + wants_header)) return 0;
            if (wants_size) m->size = bj_zip_u64(p), p += 8;
            if (wants_packed) m->packed = bj_zip_u64(p), p += 8;
            if (wants_header) m->header = bj_zip_u64(p);
            return 1;
        }
        extra += 4 + length;
        size -= 4 + length;
    }
    return 0;
}

/* Reads the entry at *at and advances *at and *left past it. Copies the name to *names. */
static bj_status read_entry(bj_zip *zip, const uint8_t **at, size_t *left, char **names,
                            bj_error *err) {
    const uint8_t *p = *at;
    if (*left < ENTRY || memcmp(p, "PK\1\2", 4))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: directory entry %d is damaged", zip->path, zip->count);
    const size_t name = bj_zip_u16(p + 28), extra = bj_zip_u16(p + 30);
    const size_t whole = ENTRY + name + extra + bj_zip_u16(p + 32);
    if (whole > *left)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: directory entry %d has %zu bytes, but only %zu are left", zip->path,
                       zip->count, whole, *left);
    bj_zip_member *m = &zip->members[zip->count++];
    *m = (bj_zip_member){.name = *names,
                         .flags = (int)bj_zip_u16(p + 8),
                         .method = (int)bj_zip_u16(p + 10),
                         .crc = bj_zip_u32(p + 16),
                         .packed = bj_zip_u32(p + 20),
                         .size = bj_zip_u32(p + 24),
                         .header = bj_zip_u32(p + 42)};
    memcpy(*names, p + ENTRY, name);
    *names += name + 1;
    if (memchr(m->name, '\0', name))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%s' has a zero byte in its name", zip->path,
                       m->name);
    if (!read_extra(m, p + ENTRY + name, extra))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%.200s' has no ZIP64 sizes", zip->path,
                       m->name);
    if (m->header > zip->directory || zip->directory - m->header < LOCAL + name ||
        m->packed > zip->directory - m->header - LOCAL - name)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: member '%.200s' has %llu bytes and starts at byte %llu, "
                       "expected it to end before byte %llu",
                       zip->path, m->name, (unsigned long long)m->packed,
                       (unsigned long long)m->header, (unsigned long long)zip->directory);
    *at += whole;
    *left -= whole;
    return BJ_OK;
}

static bj_status read_directory(bj_zip *zip, bj_error *err) {
    directory d = {0, 0, 0};
    uint8_t *bytes = NULL;
    bj_status status;
    BJ_TRY(find_directory(&d, zip, err));
    if (d.size / ENTRY < d.entries)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: a directory of %llu members does not fit in %llu bytes", zip->path,
                       (unsigned long long)d.entries, (unsigned long long)d.size);
    zip->directory = d.at;
    BJ_TRY(BJ_ALLOC(zip->members, (size_t)d.entries, err));
    BJ_TRY(BJ_ALLOC(zip->names, (size_t)d.size, err)); /* enough for all names */
    BJ_GOTO(status, done, BJ_ALLOC(bytes, (size_t)d.size, err));
    BJ_GOTO(status, done, bj_zip_fetch(zip, bytes, d.at, (size_t)d.size, err));
    const uint8_t *at = bytes;
    size_t left = (size_t)d.size;
    char *names = zip->names;
    for (uint64_t i = 0; i < d.entries; i++)
        BJ_GOTO(status, done, read_entry(zip, &at, &left, &names, err));
    if (left)
        status = BJ_FAIL(err, BJ_EFORMAT, "%s: found %zu bytes after the %d directory entries",
                         zip->path, left, zip->count);
done:
    bj_free(bytes);
    return status;
}

/* --------------------------------------------------------------------------------------- handle */

static bj_status open_file(bj_zip *zip, bj_error *err) {
    struct stat info;
    zip->fd = bj_file_open(zip->path, O_RDONLY);
    if (zip->fd < 0) return bj_file_fail(err, errno, zip->path, "open");
    if (fstat(zip->fd, &info)) return bj_file_fail(err, errno, zip->path, "examine");
    if (S_ISDIR(info.st_mode)) return bj_file_fail(err, EISDIR, zip->path, "read");
    if (!S_ISREG(info.st_mode))
        return BJ_FAIL(err, BJ_EIO,
                       "%s: not a regular file, which is required to read the archive from its end",
                       zip->path);
    zip->size = (uint64_t)info.st_size;
    return BJ_OK;
}

static bj_status open_any(bj_zip **out, const char *path, const void *data, size_t size,
                          bj_error *err) {
    bj_zip *zip;
    bj_status status = BJ_OK;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(zip, 1, err));
    zip->fd = -1;
    zip->memory = data;
    zip->size = size;
    if (!(zip->path = bj_strdup(path))) status = bj_alloc_failed(strlen(path) + 1, 1, err);
    if (status == BJ_OK && !data) status = open_file(zip, err);
    if (status == BJ_OK) status = read_directory(zip, err);
    if (status == BJ_OK) *out = zip;
    else bj_zip_close(zip);
    return status;
}

bj_status bj_zip_open(bj_zip **out, const char *path, bj_error *err) {
    return open_any(out, path, NULL, 0, err);
}

bj_status bj_zip_open_memory(bj_zip **out, const void *data, size_t size, const char *name,
                             bj_error *err) {
    return open_any(out, name, data ? data : "", size, err);
}

void bj_zip_close(bj_zip *zip) {
    if (!zip) return;
    if (zip->fd >= 0) close(zip->fd);
    bj_free(zip->members);
    bj_free(zip->names);
    bj_free(zip->path);
    bj_free(zip);
}

const char *bj_zip_path(const bj_zip *zip) { return zip->path; }
int bj_zip_count(const bj_zip *zip) { return zip->count; }
const bj_zip_member *bj_zip_at(const bj_zip *zip, int index) { return &zip->members[index]; }
