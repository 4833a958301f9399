/* law_write.c - the writer declared in law_file.h. */
#define _POSIX_C_SOURCE 200809L /* pread, close */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/sha256.h"
#include "core/temporary.h"
#include "world/law_file.h"

/* Larger elements come first, so every tensor is aligned. */
typedef enum column {
    MODE_START,
    WEIGHT,
    ORIGIN,
    HEADING,
    MEAN,
    FACTOR,
    REALIZED,
    SCENARIO_ID,
    INTENT,
    SHA256,
    COLUMNS
} column;

enum { BUFFER = 1 << 18, NAME = BJ_SCENARIO_NAME, HASH = 32, HEADER = 8192 };

typedef struct part { /* one tensor under construction */
    int file;         /* -1 if not open */
    char *buffer;
    size_t filled;
    int64_t bytes; /* total number of bytes */
} part;

struct bj_law_writer {
    char *path;
    part parts[COLUMNS];
    int64_t scenes, modes;
    char last[NAME];
    bj_sha256 hash;
};

void bj_law_record_fill(bj_law_record *r, const bj_world_scene *scene) {
    const bj_row *frame = &scene->rows[0][BJ_WORLD_OBSERVED - 1];
    double s, c;
    bj_world_sincos(&s, &c, frame->heading);
    memset(r->id, 0, sizeof r->id);
    snprintf(r->id, sizeof r->id, "%s", scene->id);
    r->origin[0] = frame->x, r->origin[1] = frame->y;
    r->heading = frame->heading;
    r->realized = scene->mode;
    r->count = scene->law.count;
    for (int m = 0; m < r->count; m++) {
        const bj_mode *mode = &scene->law.modes[m];
        r->weight[m] = mode->weight;
        r->intent[m] = (uint8_t)mode->intent;
        for (int t = 0; t < BJ_LAW_STEPS; t++) {
            const double dx = mode->mean[t][0] - frame->x, dy = mode->mean[t][1] - frame->y;
            r->mean[m][t][0] = (float)(c * dx + s * dy);
            r->mean[m][t][1] = (float)(-s * dx + c * dy);
            for (int f = 0; f < BJ_LAW_FACTORS; f++) {
                const double *v = mode->factor[f][t];
                r->factor[m][f][t][0] = (float)(c * v[0] + s * v[1]);
                r->factor[m][f][t][1] = (float)(-s * v[0] + c * v[1]);
            }
        }
    }
}

/* --------------------------------------------------------------------------------------- parts */

static bj_status part_flush(const bj_law_writer *w, part *p, bj_error *err) {
    for (size_t done = 0; done < p->filled;) {
        const ssize_t n = write(p->file, p->buffer + done, p->filled - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return BJ_FAIL(err, BJ_EIO, "%s: cannot write: %s", w->path,
                           n < 0 ? strerror(errno) : "no space");
        done += (size_t)n;
    }
    p->filled = 0;
    return BJ_OK;
}

static bj_status part_add(const bj_law_writer *w, part *p, const void *data, size_t size,
                          bj_error *err) {
    p->bytes += (int64_t)size;
    for (const char *from = data; size;) {
        const size_t n = size < BUFFER - p->filled ? size : BUFFER - p->filled;
        memcpy(p->buffer + p->filled, from, n);
        p->filled += n;
        from += n;
        size -= n;
        if (p->filled == BUFFER) BJ_TRY(part_flush(w, p, err));
    }
    return BJ_OK;
}

/* Opens a file without a name, which disappears when it is closed. */
static bj_status part_open(const bj_law_writer *w, part *p, bj_error *err) {
    char name[BJ_FILE_NAME];
    bj_temporary file;
    int parent;
    BJ_TRY(BJ_ALLOC(p->buffer, BUFFER, err));
    BJ_TRY(bj_file_open_parent(&parent, name, w->path, w->path, err));
    const bj_status status = bj_temporary_create(&file, parent, name, NULL, w->path, err);
    p->file = file.fd;
    file.fd = -1; /* stays open */
    bj_temporary_remove(&file);
    close(parent);
    return status;
}

/* ------------------------------------------------------------------------------------- writing */

void bj_law_writer_abort(bj_law_writer **writer) {
    bj_law_writer *w = *writer;
    if (!w) return;
    for (int i = 0; i < COLUMNS; i++) {
        if (w->parts[i].file >= 0) close(w->parts[i].file);
        bj_free(w->parts[i].buffer);
    }
    bj_free(w->path);
    bj_free(w);
    *writer = NULL;
}

bj_status bj_law_writer_open(bj_law_writer **out, const char *path, bj_error *err) {
    bj_law_writer *w;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(w, 1, err));
    for (int i = 0; i < COLUMNS; i++) w->parts[i].file = -1;
    bj_status status = BJ_OK;
    w->path = bj_strdup(path);
    if (!w->path) status = bj_alloc_failed(strlen(path) + 1, 1, err);
    for (int i = 0; i < COLUMNS && status == BJ_OK; i++)
        status = part_open(w, &w->parts[i], err);
    const int64_t zero = 0;
    if (status == BJ_OK) status = part_add(w, &w->parts[MODE_START], &zero, sizeof zero, err);
    if (status != BJ_OK) bj_law_writer_abort(&w);
    *out = w;
    return status;
}

/* Appends data to a tensor and to the scene's digest. */
static bj_status store(bj_law_writer *w, column at, const void *data, size_t size, bj_error *err) {
    bj_sha256_update(&w->hash, data, size);
    return part_add(w, &w->parts[at], data, size, err);
}

bj_status bj_law_writer_add(bj_law_writer *w, const bj_law_record *r, bj_error *err) {
    const size_t n = (size_t)r->count;
    uint8_t digest[HASH];
    if (w->scenes && strcmp(w->last, r->id) >= 0)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: scene '%s' comes after '%s', but ids must be in ascending order",
                       w->path, r->id, w->last);
    memcpy(w->last, r->id, sizeof w->last);
    w->scenes++;
    w->modes += r->count;
    bj_sha256_init(&w->hash);
    BJ_TRY(store(w, SCENARIO_ID, r->id, NAME, err));
    BJ_TRY(store(w, ORIGIN, r->origin, sizeof r->origin, err));
    BJ_TRY(store(w, HEADING, &r->heading, sizeof r->heading, err));
    BJ_TRY(store(w, REALIZED, &r->realized, sizeof r->realized, err));
    BJ_TRY(store(w, WEIGHT, r->weight, n * sizeof r->weight[0], err));
    BJ_TRY(store(w, INTENT, r->intent, n, err));
    BJ_TRY(store(w, MEAN, r->mean, n * sizeof r->mean[0], err));
    BJ_TRY(store(w, FACTOR, r->factor, n * sizeof r->factor[0], err));
    bj_sha256_final_bytes(&w->hash, digest);
    BJ_TRY(part_add(w, &w->parts[SHA256], digest, sizeof digest, err));
    return part_add(w, &w->parts[MODE_START], &w->modes, sizeof w->modes, err);
}

/* ----------------------------------------------------------------------------------- finishing */

static size_t header_text(char text[HEADER], const bj_law_writer *w, int version, uint64_t seed,
                          const char *split) {
    static const struct {
        const char *name, *dtype, *rest; /* dimensions after the first */
    } tensors[COLUMNS] = {{"mode_start", "I64", ""}, {"weight", "F64", ""},
                          {"origin", "F64", ",2"},   {"heading", "F64", ""},
                          {"mean", "F32", ",60,2"},  {"factor", "F32", ",4,60,2"},
                          {"realized", "I32", ""},   {"scenario_id", "U8", ",64"},
                          {"intent", "U8", ""},      {"sha256", "U8", ",32"}};
    const int64_t first[COLUMNS] = {w->scenes + 1, w->modes,  w->scenes, w->scenes, w->modes,
                                    w->modes,      w->scenes, w->scenes, w->modes,  w->scenes};
    int n = snprintf(text, HEADER,
                     "{\"__metadata__\":{\"format\":\"branchjepa-law\",\"version\":\"1\",%s"
                     "\"seed\":\"%llu\",\"split\":\"%s\",\"jitter\":\"%s\",\"intents\":\"[",
                     version == 1 ? "" : "\"world\":\"2\",", (unsigned long long)seed, split,
                     BJ_LAW_JITTER_TEXT);
    for (int i = 0; i < BJ_INTENTS; i++)
        n += snprintf(text + n, (size_t)(HEADER - n), "%s\\\"%s\\\"", i ? "," : "",
                      bj_intent_name((bj_intent)i));
    n += snprintf(text + n, (size_t)(HEADER - n), "]\"}");
    int64_t at = 0;
    for (int i = 0; i < COLUMNS; i++) {
        n += snprintf(text + n, (size_t)(HEADER - n),
                      ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%lld%s],\"data_offsets\":[%lld,%lld]}",
                      tensors[i].name, tensors[i].dtype, (long long)first[i], tensors[i].rest,
                      (long long)at, (long long)(at + w->parts[i].bytes));
        at += w->parts[i].bytes;
    }
    n += snprintf(text + n, (size_t)(HEADER - n), "}");
    while (n % 8) text[n++] = ' ';
    return (size_t)n;
}

static bj_status copy_part(bj_file_writer *file, const bj_law_writer *w, part *p, bj_error *err) {
    BJ_TRY(part_flush(w, p, err));
    if (lseek(p->file, 0, SEEK_SET) != 0)
        return BJ_FAIL(err, BJ_EIO, "%s: cannot seek: %s", w->path, strerror(errno));
    for (int64_t left = p->bytes; left > 0;) {
        const ssize_t n = read(p->file, p->buffer, BUFFER);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return BJ_FAIL(err, BJ_EIO, "%s: cannot read back: %s", w->path,
                           n < 0 ? strerror(errno) : "shorter than written");
        BJ_TRY(bj_file_writer_write(file, p->buffer, (size_t)n, err));
        left -= n;
    }
    close(p->file); /* frees the file's disk space */
    p->file = -1;
    return BJ_OK;
}

bj_status bj_law_writer_finish(bj_law_writer **writer, int version, uint64_t seed,
                               const char *split, int64_t *bytes, bj_error *err) {
    bj_law_writer *w = *writer;
    bj_file_writer *file = NULL;
    char text[HEADER];
    const size_t size = header_text(text, w, version, seed, split);
    unsigned char length[8];
    for (int i = 0; i < 8; i++) length[i] = (unsigned char)((uint64_t)size >> 8 * i);
    *bytes = 8 + (int64_t)size;
    bj_status status = bj_file_writer_open(&file, w->path, err);
    if (status == BJ_OK) status = bj_file_writer_write(file, length, sizeof length, err);
    if (status == BJ_OK) status = bj_file_writer_write(file, text, size, err);
    for (int i = 0; i < COLUMNS && status == BJ_OK; i++) {
        *bytes += w->parts[i].bytes;
        status = copy_part(file, w, &w->parts[i], err);
    }
    if (status == BJ_OK) status = bj_file_writer_commit(&file, err);
    else bj_file_writer_abort(&file);
    bj_law_writer_abort(writer);
    return status;
}
