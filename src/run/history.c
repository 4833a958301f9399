/* history.c - reads and writes metrics.jsonl and metrics.csv; see history.h and docs/RUNS.md.
 *
 *   {"schema":"branchjepa.epoch/1","type":"epoch","step":48,"epoch":1,...,"train":{"loss":...},...}
 *
 * Invariants
 *   1. Writing and reading use the table of epoch_fields.h.
 *   2. Rows have consecutive epochs, and everything that is written can be read.
 *   3. A double is written as the shortest text that is parsed to the same double, and NaN as null.
 *      Infinities are rejected before a file is changed.
 *   4. Reading ignores unknown members, so later versions may add some. A member that is missing,
 *      repeated or of another type is rejected, and the message contains file, line and name.
 *      The optional fields of a group (epoch_fields.h) are all absent or all present, except for
 *      fields that earlier versions did not write.
 *   5. metrics.csv is renamed first, so metrics.jsonl, which is read again, is never ahead of it.
 * Test: tests/run/test_history.c
 */
#define _POSIX_C_SOURCE 200809L /* lstat */
#include "run/history.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "run/epoch_fields.h"

#define SCHEMA "branchjepa.epoch/1"
#define SCHEMA_NAME "branchjepa.epoch/" /* members of every version */

enum { PATH = 4096, NAME = 64, LIMIT = 256 << 20 /* max bytes of metrics.jsonl */ };

static bj_status path_of(char path[PATH], const char *dir, const char *name, bj_error *err) {
    if (snprintf(path, PATH, "%s/%s", dir, name) >= PATH)
        return BJ_FAIL(err, BJ_EARG,
                       "%.60s...: the path of the run has more than %d bytes", dir, PATH);
    return BJ_OK;
}

/* Splits the path of a field. Sets `group` to the name of the object that contains the field, or to
 * "" for a field of the line itself, and returns the name of the field. */
static const char *split(char group[NAME], const char *path) {
    const char *const dot = strchr(path, '.');
    snprintf(group, NAME, "%.*s", dot ? (int)(dot - path) : 0, path);
    return dot ? dot + 1 : path;
}

/* -------------------------------------------------------------------------------------- writing */

static bj_status check_rows(const char *path, const bj_epoch *rows, int count, bj_error *err) {
    for (int i = 0; i < count; i++) {
        const bj_epoch *row = &rows[i];
        if (row->epoch < 0)
            return BJ_FAIL(err, BJ_EARG, "%s: row %d has epoch %d, expected 0 or more", path, i,
                           row->epoch);
        if (i > 0 && row->epoch - 1 != rows[i - 1].epoch)
            return BJ_FAIL(err, BJ_EARG, "%s: row %d has epoch %d, expected the epoch after %d",
                           path, i, row->epoch, rows[i - 1].epoch);
        if (row->step < 0)
            return BJ_FAIL(err, BJ_EARG, "%s: epoch %d: step is %" PRId64 ", expected 0 or more",
                           path, row->epoch, row->step);
        for (int f = 0; f < bj_epoch_field_count; f++) {
            const bj_epoch_field *field = &bj_epoch_fields[f];
            if (field->type == BJ_EPOCH_REAL && isinf(bj_epoch_real(row, field)))
                return BJ_FAIL(err, BJ_ENONFINITE,
                               "%s: epoch %d: %s is infinite, expected a number or NaN", path,
                               row->epoch, field->path);
        }
    }
    return BJ_OK;
}

/* Formats the value of a field. Writes `unknown` if the value is NaN. */
static void format(char text[BJ_JSON_NUMBER], const bj_epoch *row, const bj_epoch_field *field,
                   const char *no, const char *yes, const char *unknown) {
    const void *const at = (const char *)row + field->offset;
    const int *const integer = at; /* valid for the corresponding type */
    switch (field->type) {
    case BJ_EPOCH_STEP: snprintf(text, BJ_JSON_NUMBER, "%" PRId64, *(const int64_t *)at); break;
    case BJ_EPOCH_INT: snprintf(text, BJ_JSON_NUMBER, "%d", *integer); break;
    case BJ_EPOCH_FLAG: snprintf(text, BJ_JSON_NUMBER, "%s", *integer ? yes : no); break;
    case BJ_EPOCH_REAL:
        if (!bj_json_number_write(text, bj_epoch_real(row, field)))
            snprintf(text, BJ_JSON_NUMBER, "%s", unknown);
        break;
    }
}

static bj_status put(bj_file_writer *file, const char *text, bj_error *err) {
    return bj_file_writer_write(file, text, strlen(text), err);
}

/* Returns 1 if an optional field in the group of `field` has a number in any row. */
static int applies(const bj_epoch_field *field, const bj_epoch *rows, int count) {
    char group[NAME];
    split(group, field->path);
    for (int i = 0; i < count; i++)
        for (int f = 0; f < bj_epoch_field_count; f++)
            if (bj_epoch_fields[f].optional && bj_epoch_field_in(&bj_epoch_fields[f], group) &&
                !isnan(bj_epoch_real(&rows[i], &bj_epoch_fields[f])))
                return 1;
    return 0;
}

/* Sets *out to an array with one flag per field, which is 1 if the field is written. The caller
 * frees the array. */
static bj_status choose_fields(char **out, const bj_epoch *rows, int count, bj_error *err) {
    BJ_TRY(BJ_ALLOC(*out, (size_t)bj_epoch_field_count, err));
    for (int f = 0; f < bj_epoch_field_count; f++)
        (*out)[f] = !bj_epoch_fields[f].optional || applies(&bj_epoch_fields[f], rows, count);
    return BJ_OK;
}

static bj_status write_line(bj_file_writer *file, const bj_epoch *row, const char *written,
                            bj_error *err) {
    char open[NAME] = "", group[NAME], value[BJ_JSON_NUMBER], text[4 * NAME];
    BJ_TRY(put(file, "{\"schema\":\"" SCHEMA "\",\"type\":\"epoch\"", err));
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const bj_epoch_field *field = &bj_epoch_fields[f];
        const char *const name = split(group, field->path);
        const char *comma = ",";
        if (!written[f]) continue;
        if (strcmp(group, open)) { /* groups are consecutive and not nested */
            if (*open) BJ_TRY(put(file, "}", err));
            if (*group) {
                snprintf(text, sizeof text, ",\"%s\":{", group);
                BJ_TRY(put(file, text, err));
                comma = "";
            }
            memcpy(open, group, sizeof open);
        }
        format(value, row, field, "false", "true", "null");
        snprintf(text, sizeof text, "%s\"%s\":%s", comma, name, value);
        BJ_TRY(put(file, text, err));
    }
    return put(file, *open ? "}}\n" : "}\n", err);
}

static bj_status write_csv(bj_file_writer *file, const bj_epoch *rows, int count,
                           const char *written, bj_error *err) {
    char value[BJ_JSON_NUMBER];
    for (int i = -1; i < count; i++) { /* -1 for the column names */
        for (int f = 0; f < bj_epoch_field_count; f++) {
            const bj_epoch_field *field = &bj_epoch_fields[f];
            if (!written[f]) continue;
            if (i >= 0) format(value, &rows[i], field, "0", "1", "");
            if (f > 0) BJ_TRY(put(file, ",", err));
            BJ_TRY(put(file, i < 0 ? field->path : value, err));
        }
        BJ_TRY(put(file, "\n", err));
    }
    return BJ_OK;
}

bj_status bj_history_write(const char *dir, const bj_epoch *rows, int count, bj_error *err) {
    char csv[PATH], jsonl[PATH], *written = NULL;
    bj_file_writer *files[2] = {NULL, NULL};
    bj_status status;
    BJ_TRY(path_of(csv, dir, "metrics.csv", err));
    BJ_TRY(path_of(jsonl, dir, "metrics.jsonl", err));
    BJ_TRY(check_rows(jsonl, rows, count, err));
    BJ_TRY(choose_fields(&written, rows, count, err));
    BJ_GOTO(status, failed, bj_file_writer_open(&files[0], csv, err));
    BJ_GOTO(status, failed, write_csv(files[0], rows, count, written, err));
    BJ_GOTO(status, failed, bj_file_writer_open(&files[1], jsonl, err));
    for (int i = 0; i < count; i++)
        BJ_GOTO(status, failed, write_line(files[1], &rows[i], written, err));
    bj_free(written);
    return bj_file_writer_commit_all(files, 2, err);
failed:
    bj_free(written);
    bj_file_writer_abort(&files[0]);
    bj_file_writer_abort(&files[1]);
    return status;
}

/* -------------------------------------------------------------------------------------- reading */

/* Returns the member with that name, which must be unique. `where` is "FILE:LINE", and `path` is
 * the full name. */
static bj_status member(yyjson_val **out, yyjson_val *object, const char *name, const char *path,
                        const char *where, bj_error *err) {
    yyjson_obj_iter walk = yyjson_obj_iter_with(object);
    *out = NULL;
    for (yyjson_val *key; (key = yyjson_obj_iter_next(&walk));) {
        if (!yyjson_equals_str(key, name)) continue;
        if (*out) return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%s' occurs twice", where, path);
        *out = yyjson_obj_iter_get_val(key);
    }
    return *out ? BJ_OK : BJ_FAIL(err, BJ_EFORMAT, "%s: member '%s' is missing", where, path);
}

static bj_status wrong(const char *where, const char *path, const yyjson_val *value,
                       const char *expected, bj_error *err) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%s' is of type %s, expected %s", where, path,
                   yyjson_get_type_desc((yyjson_val *)(uintptr_t)value), expected);
}

static bj_status integer(int64_t *out, const yyjson_val *value, int64_t most, const char *path,
                         const char *where, bj_error *err) {
    yyjson_val *const v = (yyjson_val *)(uintptr_t)value; /* yyjson's getters are not const */
    if (!yyjson_is_int(v)) return wrong(where, path, value, "an integer", err);
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) > (uint64_t)most)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member '%s' is out of range, expected 0 to %" PRId64,
                       where, path, most);
    *out = (int64_t)yyjson_get_uint(v);
    return BJ_OK;
}

static bj_status read_field(bj_epoch *row, const bj_epoch_field *field, yyjson_val *value,
                            const char *where, bj_error *err) {
    void *const at = (char *)row + field->offset;
    int64_t number = 0;
    double real;
    int small;
    switch (field->type) {
    case BJ_EPOCH_STEP:
        BJ_TRY(integer(&number, value, INT64_MAX, field->path, where, err));
        memcpy(at, &number, sizeof number);
        break;
    case BJ_EPOCH_INT:
        BJ_TRY(integer(&number, value, INT_MAX, field->path, where, err));
        small = (int)number;
        memcpy(at, &small, sizeof small);
        break;
    case BJ_EPOCH_FLAG:
        if (!yyjson_is_bool(value)) return wrong(where, field->path, value, "true or false", err);
        small = yyjson_get_bool(value);
        memcpy(at, &small, sizeof small);
        break;
    case BJ_EPOCH_REAL:
        if (!yyjson_is_num(value) && !yyjson_is_null(value))
            return wrong(where, field->path, value, "a number or null", err);
        real = yyjson_is_null(value) ? NAN : yyjson_get_num(value);
        memcpy(at, &real, sizeof real);
        break;
    }
    return BJ_OK;
}

static bj_status check_kind(yyjson_val *line, const char *where, bj_error *err) {
    yyjson_val *schema = NULL, *type = NULL;
    if (!yyjson_is_obj(line))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: the line is of type %s, expected an object", where,
                       yyjson_get_type_desc(line));
    BJ_TRY(member(&schema, line, "schema", "schema", where, err));
    if (!yyjson_equals_str(schema, SCHEMA)) {
        const char *const found = yyjson_get_str(schema); /* NULL unless it is a string */
        const int other = found && !strncmp(found, SCHEMA_NAME, strlen(SCHEMA_NAME));
        return BJ_FAIL(err, other ? BJ_EVERSION : BJ_EFORMAT,
                       "%s: member 'schema' is '%.60s', expected '%s'", where, found ? found : "",
                       SCHEMA);
    }
    BJ_TRY(member(&type, line, "type", "type", where, err));
    if (!yyjson_equals_str(type, "epoch"))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: member 'type' is '%.60s', expected 'epoch'", where,
                       yyjson_is_str(type) ? yyjson_get_str(type) : "");
    return BJ_OK;
}

static void forget(bj_epoch *row, const bj_epoch_field *field) {
    const double unknown = NAN;
    memcpy((char *)row + field->offset, &unknown, sizeof unknown);
}

static bj_status read_line(bj_epoch *row, yyjson_val *line, const char *where, bj_error *err) {
    char open[NAME] = "", group[NAME];
    yyjson_val *object = line, *value = NULL;
    BJ_TRY(check_kind(line, where, err));
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const bj_epoch_field *field = &bj_epoch_fields[f];
        const char *const name = split(group, field->path);
        if (field->optional && !yyjson_obj_get(line, group)) { /* the run has no such group */
            forget(row, field);
            continue;
        }
        if (strcmp(group, open)) {
            object = line;
            if (*group) BJ_TRY(member(&object, line, group, group, where, err));
            if (!yyjson_is_obj(object)) return wrong(where, group, object, "an object", err);
            memcpy(open, group, sizeof open);
        }
        if (field->optional == BJ_EPOCH_ADDED && !yyjson_obj_get(object, name)) {
            forget(row, field);
            continue;
        }
        BJ_TRY(member(&value, object, name, field->path, where, err));
        BJ_TRY(read_field(row, field, value, where, err));
    }
    return BJ_OK;
}

/* The buffer grows with the number of rows that were read. No count from the file is trusted. */
static bj_status make_room(bj_epoch **rows, int *room, int count, bj_error *err) {
    bj_epoch *larger;
    if (count < *room) return BJ_OK;
    const int wanted = *room ? 2 * *room : 64;
    BJ_TRY(BJ_ALLOC(larger, (size_t)wanted, err));
    if (count) memcpy(larger, *rows, (size_t)count * sizeof *larger);
    bj_free(*rows);
    *rows = larger;
    *room = wanted;
    return BJ_OK;
}

static bj_status read_text(bj_epoch **rows, int *count, const char *path, const char *text,
                           size_t size, bj_error *err) {
    char where[PATH + 16];
    int room = 0;
    const char *const end = text + size;
    for (const char *next = text; next < end;) {
        const char *const begin = next;
        const char *const stop = memchr(begin, '\n', (size_t)(end - begin));
        yyjson_doc *doc = NULL;
        next = stop ? stop + 1 : end;
        snprintf(where, sizeof where, "%s:%d", path, *count + 1);
        BJ_TRY(make_room(rows, &room, *count, err));
        BJ_TRY(bj_json_parse(&doc, begin, (size_t)((stop ? stop : end) - begin), where, err));
        bj_epoch *const row = &(*rows)[*count];
        const bj_status status = read_line(row, yyjson_doc_get_root(doc), where, err);
        yyjson_doc_free(doc);
        if (status != BJ_OK) return status;
        if (*count > 0 && row->epoch - 1 != row[-1].epoch)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: member 'epoch' is %d, expected the epoch after %d",
                           where, row->epoch, row[-1].epoch);
        ++*count;
    }
    return BJ_OK;
}

bj_status bj_history_read(bj_epoch **rows, int *count, const char *dir, bj_error *err) {
    char path[PATH], *text = NULL;
    size_t size = 0;
    struct stat info;
    *rows = NULL;
    *count = 0;
    BJ_TRY(path_of(path, dir, "metrics.jsonl", err));
    /* A dangling link does not count as a missing file. Reading the link reports the error. */
    if (lstat(path, &info) && errno == ENOENT) return BJ_OK;
    BJ_TRY(bj_file_read(&text, &size, path, LIMIT, err));
    const bj_status status = read_text(rows, count, path, text, size, err);
    bj_free(text);
    if (status != BJ_OK) {
        bj_free(*rows);
        *rows = NULL;
        *count = 0;
    }
    return status;
}
