/* seeds.c - metric values by arm, metric and seed, read from a CSV file or passed as a list.
 *
 *   arm,seed,metric,value        columns in any order; other columns are ignored
 *
 * Invariants
 *   1. A value is finite, a seed is an integer >= 0, and a name is not empty and has no control
 *      characters.
 *   2. An (arm, seed, metric) triple has one value. A second value is rejected, even if it equals
 *      the first.
 *   3. Messages contain the line or list entry, what was found and what was expected.
 *   4. Sizes are limited before anything is allocated, because the grid of all triples is stored in
 *      full.
 *
 * Shape   values (arms,metrics,seeds), NaN if there is no value
 * Tests   tests/stats/test_seeds.c, tests/cli/table.sh
 */
#define _POSIX_C_SOURCE 200809L /* S_ISDIR */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "stats/csv.h"

enum {
    MAX_FILE = 32 << 20, /* bytes */
    MAX_NAMES = 1024,    /* max number of arms, and of metrics */
    MAX_SEEDS = 4096,
    MAX_CELLS = 1 << 22,
    NAME_SIZE = 64, /* longest name, including its terminator */
    NAMED = 8       /* max missing pairs listed in a message */
};

typedef struct names {
    int count;
    char text[MAX_NAMES][NAME_SIZE];
} names;

typedef struct record {
    int64_t seed;
    double value;
    long line;
    int arm, metric;
} record;

struct bj_seeds {
    char *path;
    names arms, metrics; /* metrics: directory order, then order of appearance */
    int64_t *seed;       /* (seeds), ascending */
    double *values;      /* (arms,metrics,seeds) */
    int seeds;
};

/* State of the reader. For a list, only `path` and `line` of csv are used. */
typedef struct reading {
    bj_csv csv;
    const char *place; /* what `line` counts, for messages: "line", or "entry" for a list */
    bj_seeds *s;
    record *records; /* (count), with room for `room` */
    int count, room;
    int column[4], columns;
} reading;

enum { ARM, SEED, METRIC, VALUE, COLUMNS };
static const char *const column_names[COLUMNS] = {"arm", "seed", "metric", "value"};

/* --------------------------------------------------------------------------------------- fields */

static int find_name(const names *list, const char *name) {
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->text[i], name)) return i;
    return -1;
}

static bj_status take_name(int *out, names *list, const reading *r, int column, const char *name,
                           bj_error *err) {
    const char *path = r->csv.path, *place = r->place, *what = column_names[column];
    const long line = r->csv.line;
    const size_t length = strlen(name);
    if (!length)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s %ld: %s is empty, expected a name", path, place,
                       line, what);
    if (length >= NAME_SIZE)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: %s %ld: %s '%.20s...' has %zu bytes, "
                       "expected at most %d",
                       path, place, line, what, name, length, NAME_SIZE - 1);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: %s %ld: %s has the control character 0x%02x", path,
                           place, line, what, (unsigned)*c);
    *out = find_name(list, name);
    if (*out >= 0) return BJ_OK;
    if (list->count == MAX_NAMES)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s %ld: '%s' is the %dth %s, expected at most %d", path,
                       place, line, name, MAX_NAMES + 1, what, MAX_NAMES);
    memcpy(list->text[list->count], name, length + 1);
    *out = list->count++;
    return BJ_OK;
}

static bj_status take_seed(int64_t *out, const reading *r, bj_error *err) {
    const char *text = r->csv.fields[r->column[SEED]], *c = text;
    int64_t seed = 0;
    for (; *c >= '0' && *c <= '9' && c - text < 18; c++) seed = 10 * seed + (*c - '0');
    if (c == text || *c)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: line %ld: seed is '%.40s', expected an integer from 0 to 10^18 - 1",
                       r->csv.path, r->csv.line, text);
    *out = seed;
    return BJ_OK;
}

/* Parses a JSON number. Also accepts a plus sign and a missing digit before the decimal point. */
static bj_status take_value(double *out, const reading *r, bj_error *err) {
    const char *text = r->csv.fields[r->column[VALUE]], *digits = text;
    char number[64];
    const int minus = *digits == '-';
    if (minus || *digits == '+') digits++;
    const int length = snprintf(number, sizeof number, "%s%s%s", minus ? "-" : "",
                                *digits == '.' ? "0" : "", digits);
    const int plain = (*digits >= '0' && *digits <= '9') || *digits == '.';
    if (!plain || length >= (int)sizeof number || !bj_json_number_read(out, number))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: line %ld: value is '%.40s', expected a finite number",
                       r->csv.path, r->csv.line, text);
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- records */

static bj_status read_header(reading *r, bj_error *err) {
    int found;
    BJ_TRY(bj_csv_next(&r->csv, &found, err));
    if (!found)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: is empty, expected the columns arm, seed, metric, value", r->csv.path);
    r->columns = r->csv.count;
    for (int c = 0; c < COLUMNS; c++) {
        r->column[c] = -1;
        for (int f = 0; f < r->csv.count; f++) {
            if (strcmp(r->csv.fields[f], column_names[c])) continue;
            if (r->column[c] >= 0)
                return BJ_FAIL(err, BJ_EFORMAT, "%s: line %ld: column '%s' occurs twice",
                               r->csv.path, r->csv.line, column_names[c]);
            r->column[c] = f;
        }
        if (r->column[c] < 0)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: line %ld: no column '%s', expected arm, seed, metric, value",
                           r->csv.path, r->csv.line, column_names[c]);
    }
    return BJ_OK;
}

static bj_status more_room(reading *r, bj_error *err) {
    record *larger;
    if (r->count < r->room) return BJ_OK;
    const int room = r->room ? 2 * r->room : 1024;
    BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
    if (r->count) memcpy(larger, r->records, (size_t)r->count * sizeof *larger);
    bj_free(r->records);
    r->records = larger;
    r->room = room;
    return BJ_OK;
}

static bj_status read_records(reading *r, bj_error *err) {
    for (;;) {
        int found;
        BJ_TRY(bj_csv_next(&r->csv, &found, err));
        if (!found) break;
        if (r->csv.count != r->columns)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: line %ld: found %d fields, expected %d as in the header",
                           r->csv.path, r->csv.line, r->csv.count, r->columns);
        BJ_TRY(more_room(r, err));
        record *next = &r->records[r->count];
        next->line = r->csv.line;
        char *const *fields = r->csv.fields;
        BJ_TRY(take_name(&next->arm, &r->s->arms, r, ARM, fields[r->column[ARM]], err));
        BJ_TRY(take_seed(&next->seed, r, err));
        BJ_TRY(take_name(&next->metric, &r->s->metrics, r, METRIC, fields[r->column[METRIC]], err));
        BJ_TRY(take_value(&next->value, r, err));
        r->count++;
    }
    if (!r->count) return BJ_FAIL(err, BJ_EFORMAT, "%s: no line after the header", r->csv.path);
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- grid */

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bj_status collect_seeds(const reading *r, bj_error *err) {
    bj_seeds *s = r->s;
    BJ_TRY(BJ_ALLOC(s->seed, (size_t)r->count, err));
    for (int i = 0; i < r->count; i++) s->seed[i] = r->records[i].seed;
    qsort(s->seed, (size_t)r->count, sizeof *s->seed, by_value);
    s->seeds = 1;
    for (int i = 1; i < r->count; i++)
        if (s->seed[i] != s->seed[s->seeds - 1]) s->seed[s->seeds++] = s->seed[i];
    if (s->seeds > MAX_SEEDS)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: has %d different seeds, expected at most %d", s->path,
                       s->seeds, MAX_SEEDS);
    return BJ_OK;
}

/* Sorts the metrics in directory order, with unknown metrics last, and updates the records. */
static bj_status sort_metrics(const reading *r, bj_error *err) {
    names *list = &r->s->metrics, *sorted;
    int place[MAX_NAMES];
    BJ_TRY(BJ_ALLOC(sorted, 1, err));
    for (int pass = 0; pass < bj_metric_count() + list->count; pass++) {
        const int known = pass < bj_metric_count();
        const int i = known ? find_name(list, bj_metric_at(pass).name) : pass - bj_metric_count();
        if (i < 0 || (!known && bj_metric_find(list->text[i]) >= 0)) continue;
        memcpy(sorted->text[sorted->count], list->text[i], NAME_SIZE);
        place[i] = sorted->count++;
    }
    *list = *sorted;
    bj_free(sorted);
    for (int i = 0; i < r->count; i++) r->records[i].metric = place[r->records[i].metric];
    return BJ_OK;
}

static size_t cell(const bj_seeds *s, int arm, int metric, int seed) {
    return ((size_t)arm * (size_t)s->metrics.count + (size_t)metric) * (size_t)s->seeds +
           (size_t)seed;
}

static bj_status fill_grid(const reading *r, bj_error *err) {
    bj_seeds *s = r->s;
    bj_status status = BJ_OK;
    int *first = NULL; /* index of the record that filled a cell, plus one */
    const size_t cells = (size_t)s->arms.count * (size_t)s->metrics.count * (size_t)s->seeds;
    if (cells > MAX_CELLS)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: found %d arms x %d metrics x %d seeds, "
                       "expected at most %d cells",
                       s->path, s->arms.count, s->metrics.count, s->seeds, MAX_CELLS);
    BJ_TRY(BJ_ALLOC(s->values, cells, err));
    BJ_GOTO(status, done, BJ_ALLOC(first, cells, err));
    for (size_t i = 0; i < cells; i++) s->values[i] = NAN;
    for (int i = 0; i < r->count; i++) {
        const record *q = &r->records[i];
        const int64_t *seed =
            bsearch(&q->seed, s->seed, (size_t)s->seeds, sizeof *s->seed, by_value);
        const size_t at = cell(s, q->arm, q->metric, (int)(seed - s->seed));
        if (first[at]) {
            status = BJ_FAIL(err, BJ_EFORMAT,
                             "%s: %s %ld: duplicate value for arm '%s', seed %lld, metric '%s'; "
                             "the first is in %s %ld",
                             s->path, r->place, q->line, s->arms.text[q->arm], (long long)q->seed,
                             s->metrics.text[q->metric], r->place, r->records[first[at] - 1].line);
            goto done;
        }
        first[at] = i + 1;
        s->values[at] = q->value;
    }
done:
    bj_free(first);
    return status;
}

static bj_status build(const reading *r, bj_error *err) {
    BJ_TRY(collect_seeds(r, err));
    BJ_TRY(sort_metrics(r, err));
    return fill_grid(r, err);
}

/* Returns the path of the file with the values. For a folder, that is its seeds.csv. */
static bj_status source_of(char **out, const char *path, bj_error *err) {
    static const char file[] = "/seeds.csv";
    struct stat info;
    const int folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    const size_t length = strlen(path);
    BJ_TRY(BJ_ALLOC(*out, length + sizeof file, err));
    memcpy(*out, path, length);
    if (folder) memcpy(*out + length, file, sizeof file);
    return BJ_OK;
}

bj_status bj_seeds_read(bj_seeds **out, const char *path, bj_error *err) {
    bj_status status;
    char *text = NULL;
    size_t size;
    reading r = {.place = "line"};
    *out = NULL;
    BJ_TRY(BJ_ALLOC(r.s, 1, err));
    BJ_GOTO(status, done, source_of(&r.s->path, path, err));
    const char *kind = bj_file_kind(r.s->path);
    if (kind && strcmp(kind, "a folder")) {
        status = BJ_FAIL(err, BJ_EFORMAT, "%s: found %s, expected a CSV file or a campaign folder",
                         path, kind);
        goto done;
    }
    BJ_GOTO(status, done, bj_file_read(&text, &size, r.s->path, MAX_FILE, err));
    bj_csv_begin(&r.csv, text, size, r.s->path);
    BJ_GOTO(status, done, read_header(&r, err));
    BJ_GOTO(status, done, read_records(&r, err));
    status = build(&r, err);
done:
    bj_free(text);
    bj_free(r.records);
    if (status == BJ_OK) *out = r.s;
    else bj_seeds_free(r.s);
    return status;
}

static bj_status take_values(reading *r, const bj_seed_value *values, int count, bj_error *err) {
    if (count < 1) return BJ_FAIL(err, BJ_EFORMAT, "%s: contains no values", r->csv.path);
    for (r->csv.line = 0; r->csv.line < count; r->csv.line++) {
        const bj_seed_value *value = &values[r->csv.line];
        BJ_TRY(more_room(r, err));
        record *next = &r->records[r->count];
        *next = (record){.seed = value->seed, .value = value->value, .line = r->csv.line};
        BJ_TRY(take_name(&next->arm, &r->s->arms, r, ARM, value->arm, err));
        BJ_TRY(take_name(&next->metric, &r->s->metrics, r, METRIC, value->metric, err));
        if (value->seed < 0 || !isfinite(value->value))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: %s %ld: seed is %lld and value is %g, "
                           "expected a seed of at least 0 and a finite value",
                           r->csv.path, r->place, r->csv.line, (long long)value->seed,
                           value->value);
        r->count++;
    }
    return BJ_OK;
}

bj_status bj_seeds_create(bj_seeds **out, const char *source, const bj_seed_value *values,
                          int count, bj_error *err) {
    bj_status status;
    reading r = {.place = "entry"};
    *out = NULL;
    BJ_TRY(BJ_ALLOC(r.s, 1, err));
    r.s->path = bj_strdup(source);
    r.csv.path = r.s->path;
    if (!r.s->path) {
        status = bj_alloc_failed(strlen(source) + 1, 1, err);
        goto done;
    }
    BJ_GOTO(status, done, take_values(&r, values, count, err));
    status = build(&r, err);
done:
    bj_free(r.records);
    if (status == BJ_OK) *out = r.s;
    else bj_seeds_free(r.s);
    return status;
}

void bj_seeds_free(bj_seeds *s) {
    if (!s) return;
    bj_free(s->path);
    bj_free(s->seed);
    bj_free(s->values);
    bj_free(s);
}

/* -------------------------------------------------------------------------------------- queries */

int bj_seeds_arm_count(const bj_seeds *s) { return s->arms.count; }
const char *bj_seeds_arm(const bj_seeds *s, int arm) { return s->arms.text[arm]; }
int bj_seeds_find_arm(const bj_seeds *s, const char *name) { return find_name(&s->arms, name); }
int bj_seeds_metric_count(const bj_seeds *s) { return s->metrics.count; }
int bj_seeds_count(const bj_seeds *s) { return s->seeds; }
int64_t bj_seeds_seed(const bj_seeds *s, int seed) { return s->seed[seed]; }

int bj_seeds_find_metric(const bj_seeds *s, const char *name) {
    return find_name(&s->metrics, name);
}

bj_metric_info bj_seeds_metric(const bj_seeds *s, int metric) {
    const char *name = s->metrics.text[metric];
    const int known = bj_metric_find(name);
    return known >= 0 ? bj_metric_at(known) : (bj_metric_info){name, name, 0, 4, ""};
}

double bj_seeds_value(const bj_seeds *s, int arm, int metric, int seed) {
    return s->values[cell(s, arm, metric, seed)];
}

static int measured(const bj_seeds *s, int arm, int metric) {
    for (int i = 0; i < s->seeds; i++)
        if (!isnan(bj_seeds_value(s, arm, metric, i))) return 1;
    return 0;
}

bj_status bj_seeds_check(const bj_seeds *s, const int *arms, int arm_count, int metric,
                         bj_error *err) {
    char pairs[NAMED * (NAME_SIZE + 24)] = "";
    int missing = 0, used = 0;
    for (int i = 0; i < s->seeds; i++) {
        int wanted = 0;
        for (int a = 0; a < arm_count; a++) wanted |= !isnan(bj_seeds_value(s, arms[a], metric, i));
        for (int a = 0; a < arm_count && wanted; a++) {
            if (!isnan(bj_seeds_value(s, arms[a], metric, i)) || !measured(s, arms[a], metric))
                continue;
            if (missing++ < NAMED)
                used += snprintf(pairs + used, sizeof pairs - (size_t)used, "%s(%s, %lld)",
                                 used ? ", " : "", s->arms.text[arms[a]], (long long)s->seed[i]);
        }
    }
    if (!missing) return BJ_OK;
    char more[32] = "";
    if (missing > NAMED) snprintf(more, sizeof more, " and %d more", missing - NAMED);
    return BJ_FAIL(err, BJ_EFORMAT, "%s: metric '%s' has no value for the (arm, seed) pairs %s%s",
                   s->path, s->metrics.text[metric], pairs, more);
}

bj_summary bj_seeds_summary(const bj_seeds *s, int arm, int metric) {
    double values[MAX_SEEDS];
    int n = 0;
    for (int i = 0; i < s->seeds; i++) {
        const double value = bj_seeds_value(s, arm, metric, i);
        if (!isnan(value)) values[n++] = value;
    }
    return bj_summarize(values, n);
}

bj_status bj_seeds_compare(bj_comparison *out, const bj_seeds *s, int a, int b, int metric,
                           double level, int partial, bj_error *err) {
    const int arms[2] = {a, b};
    double values[2][MAX_SEEDS];
    int n = 0;
    for (int k = 0; k < 2; k++)
        if (!measured(s, arms[k], metric))
            return BJ_FAIL(err, BJ_EFORMAT, "%s: arm '%s' has no value for metric '%s'", s->path,
                           s->arms.text[arms[k]], s->metrics.text[metric]);
    if (!partial) BJ_TRY(bj_seeds_check(s, arms, 2, metric, err));
    for (int i = 0; i < s->seeds; i++) {
        const double x = bj_seeds_value(s, a, metric, i), y = bj_seeds_value(s, b, metric, i);
        if (isnan(x) || isnan(y)) continue;
        values[0][n] = x;
        values[1][n++] = y;
    }
    if (!n)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: arms '%s' and '%s' have no seed in common for metric '%s'", s->path,
                       s->arms.text[a], s->arms.text[b], s->metrics.text[metric]);
    return bj_compare_paired(out, values[0], values[1], n, bj_seeds_metric(s, metric).better, level,
                             err);
}
