/* scenario.c - see scenario.h. Decodes eleven columns by name and skips all others.
 * Test: tests/data/test_scenario.c
 */
#include "data/scenario.h"

#include <stdint.h>
#include <string.h>

#include "core/alloc.h"

struct bj_scenario_reader {
    bj_parquet *parquet; /* owns the columns and the texts */
    bj_text *type;       /* (tracks) */
    size_t type_room;
    const char *label; /* path of the current file; only the end of a long path is kept */
    const char *stage; /* the part that is being read */
};

enum { LABEL_SHOWN = 200 };

bj_status bj_scenario_reader_create(bj_scenario_reader **out, bj_error *err) {
    bj_scenario_reader *reader;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(reader, 1, err));
    const bj_status status = bj_parquet_create(&reader->parquet, err);
    if (status == BJ_OK) *out = reader;
    else bj_free(reader);
    return status;
}

void bj_scenario_reader_free(bj_scenario_reader *reader) {
    if (!reader) return;
    bj_parquet_free(reader->parquet);
    bj_free(reader->type);
    bj_free(reader);
}

/* Checks a name, because names are used in messages, indexes and file names. */
static bj_status check_name(const bj_scenario_reader *reader, const char *column, bj_text name,
                            bj_error *err) {
    if (name.size == 0)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: column '%s' contains an empty string", reader->label,
                       column);
    if (name.size >= BJ_SCENARIO_NAME)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: column '%s' contains a string of %zu bytes, expected at most %d",
                       reader->label, column, name.size, BJ_SCENARIO_NAME - 1);
    for (size_t i = 0; i < name.size; i++)
        if ((unsigned char)name.data[i] < 0x20 || name.data[i] == 0x7f)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: column '%s' contains a string with control characters",
                           reader->label, column);
    return BJ_OK;
}

static bj_status read_codes(const int32_t **codes, const bj_text **texts, int *count,
                            const bj_scenario_reader *reader, const char *column, bj_error *err) {
    int index;
    BJ_TRY(bj_parquet_require(&index, reader->parquet, column, err));
    BJ_TRY(bj_parquet_read_codes(codes, texts, count, reader->parquet, index, err));
    for (int i = 0; i < *count; i++) BJ_TRY(check_name(reader, column, (*texts)[i], err));
    return BJ_OK;
}

/* Reads a column that must have the same text in every row. */
static bj_status read_constant(bj_text *out, const bj_scenario_reader *reader, const char *column,
                               bj_error *err) {
    const int32_t *codes;
    const bj_text *texts;
    int count;
    BJ_TRY(read_codes(&codes, &texts, &count, reader, column, err));
    if (count != 1)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: column '%s' has %d different values ('%.*s', '%.*s', ...), "
                       "expected a single value",
                       reader->label, column, count, (int)texts[0].size, texts[0].data,
                       (int)texts[1].size, texts[1].data);
    *out = texts[0];
    return BJ_OK;
}

static int is_finite(double value) {
    const uint64_t exponent = (uint64_t)0x7ff << 52;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & exponent) != exponent;
}

static bj_status read_numbers(const double **out, const bj_scenario_reader *reader,
                              const char *column, bj_error *err) {
    const int64_t rows = bj_parquet_rows(reader->parquet);
    int index, finite = 1;
    BJ_TRY(bj_parquet_require(&index, reader->parquet, column, err));
    BJ_TRY(bj_parquet_read_double(out, NULL, reader->parquet, index, err));
    for (int64_t row = 0; row < rows; row++) finite &= is_finite((*out)[row]);
    if (finite) return BJ_OK;
    for (int64_t row = 0;; row++)
        if (!is_finite((*out)[row]))
            return BJ_FAIL(err, BJ_ENONFINITE,
                           "%s: column '%s' is %g in row %lld, expected a finite number",
                           reader->label, column, (*out)[row], (long long)row);
}

static bj_status read_steps(const int64_t **out, const bj_scenario_reader *reader, bj_error *err) {
    const int64_t rows = bj_parquet_rows(reader->parquet);
    int index, inside = 1;
    BJ_TRY(bj_parquet_require(&index, reader->parquet, "timestep", err));
    BJ_TRY(bj_parquet_read_int64(out, NULL, reader->parquet, index, err));
    for (int64_t row = 0; row < rows; row++) inside &= (uint64_t)(*out)[row] < BJ_SCENARIO_STEPS;
    if (inside) return BJ_OK;
    for (int64_t row = 0;; row++)
        if ((uint64_t)(*out)[row] >= BJ_SCENARIO_STEPS)
            return BJ_FAIL(
                err, BJ_EFORMAT, "%s: column 'timestep' is %lld in row %lld, expected 0 to %d",
                reader->label, (long long)(*out)[row], (long long)row, BJ_SCENARIO_STEPS - 1);
}

/* Reads the tracks. The type of a track is taken from its first row. */
static bj_status read_tracks(bj_scenario *s, bj_scenario_reader *reader, bj_error *err) {
    const int32_t *type_codes;
    const bj_text *types;
    int type_count, met = 0;
    BJ_TRY(read_codes(&s->track, &s->track_id, &s->tracks, reader, "track_id", err));
    BJ_TRY(read_codes(&type_codes, &types, &type_count, reader, "object_type", err));
    if (reader->type_room < (size_t)s->tracks) {
        bj_free(reader->type);
        reader->type_room = 0;
        BJ_TRY(BJ_ALLOC(reader->type, (size_t)s->tracks, err));
        reader->type_room = (size_t)s->tracks;
    }
    for (int64_t row = 0; row < s->rows && met < s->tracks; row++)
        if (s->track[row] == met) reader->type[met++] = types[type_codes[row]];
    s->type = reader->type;
    return BJ_OK;
}

static bj_status find_focal(bj_scenario *s, const bj_scenario_reader *reader, bj_error *err) {
    bj_text focal = {NULL, 0};
    BJ_TRY(read_constant(&focal, reader, "focal_track_id", err));
    for (int k = 0; k < s->tracks; k++)
        if (s->track_id[k].size == focal.size &&
            !memcmp(s->track_id[k].data, focal.data, focal.size)) {
            s->focal = k;
            return BJ_OK;
        }
    return BJ_FAIL(err, BJ_EFORMAT, "%s: focal track '%.*s' has no rows", reader->label,
                   (int)focal.size, focal.data);
}

static bj_status read_columns(bj_scenario *s, bj_scenario_reader *reader, bj_error *err) {
    s->rows = bj_parquet_rows(reader->parquet);
    if (s->rows == 0) return BJ_FAIL(err, BJ_EFORMAT, "%s: no rows", reader->label);
    BJ_TRY(read_tracks(s, reader, err));
    reader->stage = "focal";
    BJ_TRY(find_focal(s, reader, err));
    reader->stage = "parquet";
    BJ_TRY(read_constant(&s->id, reader, "scenario_id", err));
    BJ_TRY(read_constant(&s->city, reader, "city", err));
    reader->stage = "step";
    BJ_TRY(read_steps(&s->step, reader, err));
    reader->stage = "parquet";
    BJ_TRY(read_numbers(&s->x, reader, "position_x", err));
    BJ_TRY(read_numbers(&s->y, reader, "position_y", err));
    BJ_TRY(read_numbers(&s->heading, reader, "heading", err));
    BJ_TRY(read_numbers(&s->vx, reader, "velocity_x", err));
    return read_numbers(&s->vy, reader, "velocity_y", err);
}

/* Reads a scenario. `out` is filled only on success. */
static bj_status read_labeled(bj_scenario *out, bj_scenario_reader *reader, const char *label,
                              bj_error *err) {
    const size_t length = strlen(label);
    bj_scenario scenario = {0};
    reader->label = length > LABEL_SHOWN ? label + length - LABEL_SHOWN : label;
    BJ_TRY(read_columns(&scenario, reader, err));
    *out = scenario;
    return BJ_OK;
}

bj_status bj_scenario_read(bj_scenario *out, bj_scenario_reader *reader, const char *path,
                           bj_error *err) {
    *out = (bj_scenario){0};
    reader->stage = "parquet";
    BJ_TRY(bj_parquet_open(reader->parquet, path, err));
    return read_labeled(out, reader, path, err);
}

bj_status bj_scenario_read_memory(bj_scenario *out, bj_scenario_reader *reader, const void *data,
                                  size_t size, const char *label, bj_error *err) {
    *out = (bj_scenario){0};
    reader->stage = "parquet";
    BJ_TRY(bj_parquet_open_memory(reader->parquet, data, size, label, err));
    return read_labeled(out, reader, label, err);
}

const char *bj_scenario_stage(const bj_scenario_reader *reader) { return reader->stage; }

void bj_scenario_name(char out[BJ_SCENARIO_NAME], bj_text text) {
    const size_t size = text.size < BJ_SCENARIO_NAME ? text.size : BJ_SCENARIO_NAME - 1;
    if (size) memcpy(out, text.data, size);
    out[size] = '\0';
}
