/* events.c - TensorBoard event files; see events.h and docs/RUNS.md.
 *
 * Fields of the messages, by their numbers on the wire (tensorflow/core/util/event.proto):
 *
 *   Event       1 wall_time double, 2 step int64, 3 file_version string, 5 summary Summary,
 *               7 session_log SessionLog
 *   Summary     1 value Value, repeated       Value  1 tag string, 2 simple_value float
 *   SessionLog  1 status enum (1: START)
 *
 * Invariants
 *   1. Every file has the version in the first record and the start in the second record. The first
 *      file of a folder needs a start, too, because TensorBoard treats the first start as the
 *      beginning and only later ones as restarts.
 *   2. Files are only appended to. A flush that fails truncates the file to its previous size and
 *      keeps the records for the next flush, so no record follows an incomplete one.
 *   3. Readers read the files of a folder in the order of their names, and a restart discards
 *      earlier steps. TIME is therefore larger than that of every existing file, even if the clock
 *      was set back or two files start within a second.
 * Tests: tests/run/test_events.c, tests/run/peer_events.py
 */
#define _XOPEN_SOURCE 700 /* openat, gethostname */
#include "run/events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file_internal.h"
#include "core/utf8.h"
#include "run/epoch_fields.h"

#define PREFIX "events.out.tfevents."
#define LAST_TIME                                                                                  \
    9999999999 /* largest number with TIME_DIGITS digits; the fixed width makes names sort by time \
                */

enum {
    TIME_DIGITS = 10, /* of seconds */
    MAX_TAG = 1024,
    HEAD = 12,    /* bytes of a record before its message */
    TAIL = 4,     /* bytes of a record after its message */
    MESSAGE = 64, /* max bytes of an Event without its summary or version */
    VALUE = 32,   /* max bytes of a Value without its tag */
    PATH = 4096
};

typedef struct bytes {
    unsigned char *data; /* (room) */
    size_t used, room;
} bytes;

struct bj_events {
    int fd;
    int broken;    /* errno of the failure that left an incomplete record */
    off_t size;    /* bytes of complete records in the file */
    bytes records; /* bytes that are not in the file yet */
    bytes summary; /* start of the current event */
    char path[PATH];
};

/* ----------------------------------------------------------------------------------------- wire */

static bj_status reserve(bytes *b, size_t more, bj_error *err) {
    unsigned char *larger;
    if (more <= b->room - b->used) return BJ_OK;
    const size_t wanted = 2 * (b->used + more);
    BJ_TRY(BJ_ALLOC(larger, wanted, err));
    if (b->used) memcpy(larger, b->data, b->used);
    bj_free(b->data);
    b->data = larger;
    b->room = wanted;
    return BJ_OK;
}

/* The following functions write to reserved memory. */
static void put_fixed(bytes *b, uint64_t value, int size) {
    for (int i = 0; i < size; i++) b->data[b->used++] = (unsigned char)(value >> (8 * i));
}

static void put_varint(bytes *b, uint64_t value) {
    for (; value >= 128; value >>= 7) b->data[b->used++] = (unsigned char)(value | 128);
    b->data[b->used++] = (unsigned char)value;
}

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5 }; /* wire types */

static void put_key(bytes *b, int field, int type) { put_varint(b, (uint64_t)(field << 3 | type)); }

static void put_block(bytes *b, int field, const void *data, size_t size) {
    put_key(b, field, LENGTH);
    put_varint(b, size);
    if (size) memcpy(b->data + b->used, data, size);
    b->used += size;
}

static uint32_t masked_crc(const void *data, size_t size) {
    const uint32_t crc = bj_crc32c(data, size);
    return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Writes a record with one Event. Its payload is a version, a summary or a session log. */
static bj_status add_event(bj_events *events, int64_t step, int field, const void *data,
                           size_t size, bj_error *err) {
    bytes *const b = &events->records;
    const double wall_time = now();
    uint64_t bits;
    memcpy(&bits, &wall_time, sizeof bits);
    BJ_TRY(reserve(b, HEAD + MESSAGE + size + TAIL, err));
    const size_t begin = b->used;
    b->used += HEAD; /* the length and its checksum are filled in at the end */
    put_key(b, 1, FIXED64);
    put_fixed(b, bits, 8);
    if (step) { /* a missing number means zero */
        put_key(b, 2, VARINT);
        put_varint(b, (uint64_t)step);
    }
    put_block(b, field, data, size);
    const size_t end = b->used, length = end - begin - HEAD;
    b->used = begin;
    put_fixed(b, length, 8);
    put_fixed(b, masked_crc(b->data + begin, 8), 4);
    b->used = end;
    put_fixed(b, masked_crc(b->data + begin + HEAD, length), 4);
    return BJ_OK;
}

/* Adds a value to the summary, unless it is NaN. */
static bj_status add_value(bytes *summary, const char *tag, double value, bj_error *err) {
    const size_t size = strlen(tag);
    uint32_t bits;
    if (isnan(value)) return BJ_OK;
    /* In C, converting a double outside the range of float is undefined behavior. */
    const float single = fabs(value) <= FLT_MAX ? (float)value : value > 0 ? INFINITY : -INFINITY;
    memcpy(&bits, &single, sizeof bits);
    BJ_TRY(reserve(summary, VALUE + size, err));
    put_key(summary, 1, LENGTH);
    /* a Value: field key, length in one or two bytes, tag, field key, number */
    put_varint(summary, 1 + (size < 128 ? 1u : 2u) + size + 5);
    put_block(summary, 1, tag, size);
    put_key(summary, 2, FIXED32);
    put_fixed(summary, bits, 4);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- events */

static bj_status check_step(const bj_events *events, int64_t step, bj_error *err) {
    return step >= 0 ? BJ_OK
                     : BJ_FAIL(err, BJ_EARG, "%s: step is %lld, expected 0 or more", events->path,
                               (long long)step);
}

/* Readers reject a record whose strings are not UTF-8. */
static bj_status check_tag(const bj_events *events, const char *tag, bj_error *err) {
    const size_t size = tag ? strlen(tag) : 0;
    if (size == 0 || size > MAX_TAG)
        return BJ_FAIL(err, BJ_EARG, "%s: a tag has %zu bytes, expected 1 to %d", events->path,
                       size, MAX_TAG);
    for (size_t i = 0, n; i < size; i += n)
        if (!(n = bj_utf8_sequence(tag + i, size - i)))
            return BJ_FAIL(err, BJ_EARG,
                           "%s: a tag is not UTF-8 at byte %zu of %zu", events->path,
                           i, size);
    return BJ_OK;
}

static bj_status add_summary(bj_events *events, int64_t step, bj_error *err) {
    const size_t size = events->summary.used;
    return size ? add_event(events, step, 5, events->summary.data, size, err) : BJ_OK;
}

bj_status bj_events_scalar(bj_events *events, int64_t step, const char *tag, double value,
                           bj_error *err) {
    BJ_TRY(check_step(events, step, err));
    BJ_TRY(check_tag(events, tag, err));
    events->summary.used = 0;
    BJ_TRY(add_value(&events->summary, tag, value, err));
    return add_summary(events, step, err);
}

bj_status bj_events_epoch(bj_events *events, const bj_epoch *row, bj_error *err) {
    BJ_TRY(check_step(events, row->step, err));
    events->summary.used = 0;
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const bj_epoch_field *field = &bj_epoch_fields[f];
        if (field->tag && !(field->optional && isnan(bj_epoch_real(row, field))))
            BJ_TRY(add_value(&events->summary, field->tag, bj_epoch_real(row, field), err));
    }
    return add_summary(events, row->step, err);
}

bj_status bj_events_flush(bj_events *events, bj_error *err) {
    const bytes *const b = &events->records;
    size_t done = 0;
    if (events->broken) return bj_file_fail(err, events->broken, events->path, "write");
    while (done < b->used) {
        const ssize_t n = write(events->fd, b->data + done, b->used - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            const int number = errno;
            if (done && ftruncate(events->fd, events->size)) events->broken = number;
            return bj_file_fail(err, number, events->path, "write");
        }
        done += (size_t)n;
    }
    events->size += (off_t)done;
    events->records.used = 0;
    return fsync(events->fd) ? bj_file_fail(err, errno, events->path, "sync") : BJ_OK;
}

/* ----------------------------------------------------------------------------------------- file */

/* Returns the seconds in the name of an event file, or -1. */
static long long time_in(const char *name) {
    long long seconds = 0;
    if (strncmp(name, PREFIX, strlen(PREFIX))) return -1;
    name += strlen(PREFIX);
    for (int i = 0; i < TIME_DIGITS; i++, name++) {
        if (*name < '0' || *name > '9') return -1;
        seconds = 10 * seconds + (*name - '0');
    }
    return *name == '.' ? seconds : -1;
}

/* Returns the latest time found in the file names of the folder, or -1. */
static bj_status latest_time(long long *out, const char *dir, bj_error *err) {
    DIR *const list = opendir(dir);
    if (!list) return bj_file_fail(err, errno, dir, "open the directory");
    *out = -1;
    for (const struct dirent *entry; (errno = 0, entry = readdir(list));) {
        const long long seconds = time_in(entry->d_name);
        if (seconds > *out) *out = seconds;
    }
    const int number = errno;
    closedir(list);
    return number ? bj_file_fail(err, number, dir, "list the directory") : BJ_OK;
}

static void host_name(char host[65]) {
    if (gethostname(host, 65)) host[0] = '\0';
    host[64] = '\0';
    for (char *c = host; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", *c))
            *c = '_';
    if (!*host) memcpy(host, "localhost", sizeof "localhost");
}

/* Creates a file whose name sorts after every other event file in the folder. */
static bj_status create_file(bj_events *events, const char *dir, bj_error *err) {
    char host[65], number[16] = "";
    long long latest = -1;
    BJ_TRY(latest_time(&latest, dir, err));
    long long seconds = (long long)now();
    if (seconds <= latest) seconds = latest < LAST_TIME ? latest + 1 : LAST_TIME;
    host_name(host);
    for (int n = 1; n < 1000; n++) {
        const int size = snprintf(events->path, PATH, "%s/" PREFIX "%0*lld.%s.%ld%s", dir,
                                  (int)TIME_DIGITS, seconds, host, (long)getpid(), number);
        if (size >= PATH) return bj_file_fail(err, ENAMETOOLONG, dir, "create an event file");
        events->fd = open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (events->fd >= 0 || (errno != EEXIST && errno != EINTR)) break;
        snprintf(number, sizeof number, ".%d", n);
    }
    return events->fd < 0 ? bj_file_fail(err, errno, events->path, "create") : BJ_OK;
}

static bj_status sync_folder(const char *dir, bj_error *err) {
    const int fd = bj_file_open(dir, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return bj_file_fail(err, errno, dir, "open the directory");
    const bj_status status = bj_file_sync_folder(fd, dir, "sync the directory", err);
    close(fd);
    return status;
}

bj_status bj_events_create(bj_events **out, const char *dir, int64_t step, bj_error *err) {
    static const char version[] = "brain.Event:2";
    static const unsigned char start[] = {1 << 3 | VARINT, 1}; /* SessionLog: status START */
    bj_events *events;
    bj_status status;
    *out = NULL;
    if (step < 0)
        return BJ_FAIL(err, BJ_EARG, "%s: the first step is %lld, expected 0 or more", dir,
                       (long long)step);
    BJ_TRY(BJ_ALLOC(events, 1, err));
    events->fd = -1;
    BJ_GOTO(status, failed, add_event(events, 0, 3, version, sizeof version - 1, err));
    BJ_GOTO(status, failed, add_event(events, step, 7, start, sizeof start, err));
    BJ_GOTO(status, failed, create_file(events, dir, err));
    BJ_GOTO(status, failed, bj_events_flush(events, err));
    BJ_GOTO(status, failed, sync_folder(dir, err));
    *out = events;
    return BJ_OK;
failed:
    if (events->fd >= 0) unlink(events->path);
    bj_events_free(events);
    return status;
}

void bj_events_free(bj_events *events) {
    if (!events) return;
    if (events->fd >= 0) close(events->fd);
    bj_free(events->records.data);
    bj_free(events->summary.data);
    bj_free(events);
}
