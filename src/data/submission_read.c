/* submission_read.c - reads a challenge submission; see submission.h.
 *
 * Columns are decoded as a whole, which takes about 1 kB per row. Rows are sorted by scenario and
 * track with two stable counting sorts, so the rows of a track keep their file order.
 *
 * Invariants
 *   1. Only the column types are checked here, not the values.
 *   2. Every distinct id is copied once and terminated. An id that contains a zero byte is
 *      rejected.
 * Tests: tests/eval/test_score.c, tests/eval/peer_score.py
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "data/submission.h"
#include "parquet/distinct.h"

/* Distinct ids of a column. */
typedef struct names {
    int32_t *code; /* (rows) -1 if there is no id */
    char **text;   /* (count) points into pool */
    char *pool;
    int32_t count;
} names;

struct bj_submission {
    bj_parquet *file;
    char *path;
    int64_t rows;
    names scenario, track;
    const double *probability;
    const uint8_t *has_probability;
    const int64_t *x_start, *y_start;
    const double *x, *y;
    int64_t *order; /* (rows) sorted by scenario, track, row */
    int64_t *begin; /* (tracks + 1) offsets into order */
    int64_t tracks;
    int64_t *first_track; /* (scenarios + 2) entry s + 1 belongs to scenario s, so that index -1
                             also has an entry */
    int32_t *sorted;      /* (scenarios) scenario indices sorted by id, bytewise */
};

int bj_sums_to_one(double sum) { return fabs(1 - sum) <= 1e-8 + 1e-5 * fabs(sum); }

/* ---------------------------------------------------------------------------------------- ids */

static void names_free(names *n) {
    bj_free(n->code);
    bj_free(n->text);
    bj_free(n->pool);
}

static bj_status copy_names(names *n, const bj_text *texts, const bj_distinct *distinct,
                            const char *path, const char *column, bj_error *err) {
    size_t bytes = 0;
    for (int32_t i = 0; i < distinct->count; i++) bytes += texts[distinct->first[i]].size + 1;
    BJ_TRY(BJ_ALLOC(n->pool, bytes, err));
    BJ_TRY(BJ_ALLOC(n->text, (size_t)distinct->count, err));
    char *at = n->pool;
    for (int32_t i = 0; i < distinct->count; i++) {
        const bj_text *text = &texts[distinct->first[i]];
        if (text->size && memchr(text->data, 0, text->size))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: column '%s': the string in row %lld contains a zero byte", path,
                           column, (long long)distinct->first[i]);
        n->text[i] = at;
        if (text->size) memcpy(at, text->data, text->size);
        at += text->size + 1;
    }
    n->count = distinct->count;
    return BJ_OK;
}

/* Removes the empty string from the ids, because the reader returns nulls as empty strings. */
static void drop_empty(names *n, int64_t rows) {
    int32_t empty = 0;
    while (empty < n->count && *n->text[empty]) empty++;
    if (empty == n->count) return;
    n->count--;
    for (int32_t i = empty; i < n->count; i++) n->text[i] = n->text[i + 1];
    for (int64_t r = 0; r < rows; r++) {
        if (n->code[r] == empty) n->code[r] = -1;
        else n->code[r] -= n->code[r] > empty;
    }
}

static bj_status read_names(names *n, bj_submission *s, const char *column, bj_error *err) {
    const bj_text *texts;
    const uint8_t *valid;
    bj_distinct distinct = {0};
    bj_status status;
    int index, found;
    BJ_TRY(bj_parquet_require(&index, s->file, column, err));
    BJ_TRY(bj_parquet_read_text(&texts, &valid, s->file, index, err));
    BJ_GOTO(status, done, bj_distinct_texts(&distinct, &found, texts, s->rows, s->rows, err));
    BJ_GOTO(status, done, copy_names(n, texts, &distinct, s->path, column, err));
    n->code = distinct.codes;
    distinct.codes = NULL;
    drop_empty(n, s->rows);
done:
    bj_distinct_free(&distinct);
    return status;
}

/* ---------------------------------------------------------------------------------------- order */

/* Stable sort. Fills `out` with the entries of `in`, sorted by key[entry]. NULL stands for the
 * entries 0, 1, ... */
static bj_status sort_by(int64_t *out, const int64_t *in, int64_t count, const int32_t *key,
                         int32_t keys, bj_error *err) {
    int64_t *place;
    BJ_TRY(BJ_ALLOC(place, (size_t)keys + 2, err));
    for (int64_t i = 0; i < count; i++) place[key[i] + 2]++;
    for (int32_t k = 0; k <= keys; k++) place[k + 1] += place[k];
    for (int64_t i = 0; i < count; i++) {
        const int64_t entry = in ? in[i] : i;
        out[place[key[entry] + 1]++] = entry;
    }
    bj_free(place);
    return BJ_OK;
}

static bj_status sort_rows(bj_submission *s, bj_error *err) {
    const size_t n = (size_t)s->rows;
    int64_t *by_track;
    bj_status status;
    BJ_TRY(BJ_ALLOC(s->order, n, err));
    BJ_TRY(BJ_ALLOC(s->begin, n + 1, err));
    BJ_TRY(BJ_ALLOC(s->first_track, (size_t)s->scenario.count + 2, err));
    BJ_TRY(BJ_ALLOC(by_track, n, err));
    BJ_GOTO(status, done, sort_by(by_track, NULL, s->rows, s->track.code, s->track.count, err));
    BJ_GOTO(status, done,
            sort_by(s->order, by_track, s->rows, s->scenario.code, s->scenario.count, err));
    int32_t scenario = -2;
    for (int64_t i = 0; i < s->rows; i++) {
        const int64_t row = s->order[i], previous = i ? s->order[i - 1] : -1;
        const int32_t own = s->scenario.code[row];
        if (i && own == s->scenario.code[previous] && s->track.code[row] == s->track.code[previous])
            continue;
        while (scenario < own) s->first_track[++scenario + 1] = s->tracks;
        s->begin[s->tracks++] = i;
    }
    while (scenario < s->scenario.count) s->first_track[++scenario + 1] = s->tracks;
    s->begin[s->tracks] = s->rows;
done:
    bj_free(by_track);
    return status;
}

/* Sorts scenario indices by id with a heap sort, which has no quadratic worst case. */
static void sort_names(int32_t *at, int32_t count, char *const *text) {
    for (int32_t i = 0; i < count; i++) at[i] = i;
    for (int32_t end = count, top = count / 2; end > 1;) {
        int32_t moved;
        if (top > 0) {
            moved = at[--top];
        } else {
            moved = at[--end];
            at[end] = at[0];
        }
        int32_t hole = top;
        for (int32_t child; (child = 2 * hole + 1) < end; hole = child) {
            if (child + 1 < end && strcmp(text[at[child]], text[at[child + 1]]) < 0) child++;
            if (strcmp(text[moved], text[at[child]]) >= 0) break;
            at[hole] = at[child];
        }
        at[hole] = moved;
    }
}

/* --------------------------------------------------------------------------------------- handle */

static bj_status read_list(const int64_t **start, const double **values, bj_submission *s,
                           const char *column, bj_error *err) {
    int index;
    BJ_TRY(bj_parquet_require(&index, s->file, column, err));
    return bj_parquet_read_double_list(start, values, s->file, index, err);
}

static bj_status read_file(bj_submission *s, bj_error *err) {
    int index;
    BJ_TRY(bj_parquet_create(&s->file, err));
    BJ_TRY(bj_parquet_open(s->file, s->path, err));
    s->rows = bj_parquet_rows(s->file);
    if (s->rows > INT32_MAX - 2)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %lld rows, expected at most %d", s->path,
                       (long long)s->rows, INT32_MAX - 2);
    BJ_TRY(read_names(&s->scenario, s, "scenario_id", err));
    BJ_TRY(read_names(&s->track, s, "track_id", err));
    BJ_TRY(bj_parquet_require(&index, s->file, "probability", err));
    BJ_TRY(bj_parquet_read_double(&s->probability, &s->has_probability, s->file, index, err));
    BJ_TRY(read_list(&s->x_start, &s->x, s, "predicted_trajectory_x", err));
    BJ_TRY(read_list(&s->y_start, &s->y, s, "predicted_trajectory_y", err));
    BJ_TRY(sort_rows(s, err));
    BJ_TRY(BJ_ALLOC(s->sorted, (size_t)s->scenario.count, err));
    sort_names(s->sorted, s->scenario.count, s->scenario.text);
    return BJ_OK;
}

bj_status bj_submission_open(bj_submission **out, const char *path, bj_error *err) {
    bj_submission *s;
    if (!out || !path) return BJ_FAIL(err, BJ_EARG, "submission: output or path is missing");
    *out = NULL;
    BJ_TRY(BJ_ALLOC(s, 1, err));
    s->path = bj_strdup(path);
    const bj_status status =
        s->path ? read_file(s, err) : BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory", path);
    if (status != BJ_OK) {
        bj_submission_free(s);
        return status;
    }
    *out = s;
    return BJ_OK;
}

void bj_submission_free(bj_submission *s) {
    if (!s) return;
    bj_parquet_free(s->file);
    bj_free(s->path);
    names_free(&s->scenario);
    names_free(&s->track);
    bj_free(s->order);
    bj_free(s->begin);
    bj_free(s->first_track);
    bj_free(s->sorted);
    bj_free(s);
}

/* --------------------------------------------------------------------------------------- access */

const char *bj_submission_path(const bj_submission *s) { return s->path; }
int64_t bj_submission_rows(const bj_submission *s) { return s->rows; }

static const char *name_of(const names *n, int64_t row) {
    return n->code[row] < 0 ? NULL : n->text[n->code[row]];
}

bj_submission_row bj_submission_at(const bj_submission *s, int64_t row) {
    return (bj_submission_row){.scenario_id = name_of(&s->scenario, row),
                               .track_id = name_of(&s->track, row),
                               .probability = s->has_probability[row] ? s->probability[row] : NAN,
                               .x = s->x + s->x_start[row],
                               .y = s->y + s->y_start[row],
                               .x_count = s->x_start[row + 1] - s->x_start[row],
                               .y_count = s->y_start[row + 1] - s->y_start[row]};
}

int64_t bj_submission_scenarios(const bj_submission *s) { return s->scenario.count; }

const char *bj_submission_scenario(const bj_submission *s, int64_t scenario) {
    return s->scenario.text[scenario];
}

int64_t bj_submission_find(const bj_submission *s, const char *scenario_id) {
    int64_t low = 0, high = s->scenario.count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(s->scenario.text[s->sorted[middle]], scenario_id) < 0) low = middle + 1;
        else high = middle;
    }
    if (low == s->scenario.count || strcmp(s->scenario.text[s->sorted[low]], scenario_id))
        return -1;
    return s->sorted[low];
}

int64_t bj_submission_tracks(const bj_submission *s) { return s->tracks; }

int64_t bj_submission_first_track(const bj_submission *s, int64_t scenario) {
    return s->first_track[scenario + 1];
}

int64_t bj_submission_find_track(const bj_submission *s, int64_t scenario, const char *id) {
    const int64_t end = bj_submission_first_track(s, scenario + 1);
    for (int64_t i = bj_submission_first_track(s, scenario); i < end; i++) {
        const bj_submission_track t = bj_submission_track_at(s, i);
        if (t.track && !strcmp(t.track, id)) return i;
    }
    return -1;
}

bj_submission_track bj_submission_track_at(const bj_submission *s, int64_t index) {
    const int64_t begin = s->begin[index], row = s->order[begin];
    return (bj_submission_track){s->scenario.code[row], name_of(&s->track, row), s->order + begin,
                                 s->begin[index + 1] - begin};
}

const int64_t *bj_submission_rows_of(int64_t *count, const bj_submission *s, int64_t scenario) {
    const int64_t begin = s->begin[bj_submission_first_track(s, scenario)];
    *count = s->begin[bj_submission_first_track(s, scenario + 1)] - begin;
    return s->order + begin;
}
