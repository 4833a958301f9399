/* test_scenario.c - tests reading scenarios from Parquet files, and the messages for invalid
 * files. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "data/scenario.h"
#include "parquet/writer.h"
#include "support/test.h"

enum { ROWS = 6, COLUMNS = 13 };

/* The columns of a file in arbitrary order. `observed` and `extra` are not read. */
enum { OBSERVED, Y, X, TRACK, STEP, TYPE, HEADING, VX, EXTRA, VY, FOCAL, CITY, ID };

typedef struct table {
    bj_parquet_field field[COLUMNS];
    bj_text track[ROWS], type[ROWS], focal[ROWS], city[ROWS], id[ROWS];
    uint8_t observed[ROWS];
    int64_t step[ROWS];
    double x[ROWS], y[ROWS], vx[ROWS], vy[ROWS], heading[ROWS];
} table;

static char folder[] = "/tmp/test_scenario.XXXXXX";
static char path[64];
static bj_scenario_reader *reader;
static bj_scenario s;
static bj_error err;

static bj_text text(const char *c) { return (bj_text){c, strlen(c)}; }

static int same(bj_text a, const char *b) {
    return a.size == strlen(b) && !memcmp(a.data, b, a.size);
}

/* Returns three tracks with interleaved rows. "b" comes first although "a" is smaller. */
static table good_table(void) {
    static const char *const names[COLUMNS] = {
        "observed",       "position_y", "position_x", "track_id", "timestep",
        "object_type",    "heading",    "velocity_x", "extra",    "velocity_y",
        "focal_track_id", "city",       "scenario_id"};
    static const char *const tracks[ROWS] = {"b", "a", "b", "AV", "a", "b"};
    table t = {0};
    for (int c = 0; c < COLUMNS; c++) {
        t.field[c].name = names[c];
        t.field[c].type = c == OBSERVED ? BJ_PARQUET_BOOLEAN
                          : c == STEP   ? BJ_PARQUET_INT64
                          : c == TRACK || c == TYPE || c == FOCAL || c == CITY || c == ID
                              ? BJ_PARQUET_BYTE_ARRAY
                              : BJ_PARQUET_DOUBLE;
        t.field[c].dictionary = c % 2;
    }
    for (int r = 0; r < ROWS; r++) {
        t.track[r] = text(tracks[r]);
        t.type[r] = text(r == 0 ? "bus" : r == 1 ? "cyclist" : r == 3 ? "static" : "vehicle");
        t.focal[r] = text("a");
        t.city[r] = text("town");
        t.id[r] = text("0000-1111");
        t.step[r] = r == 0 ? 0 : r == 5 ? 109 : 40 + r;
        t.x[r] = r + 0.25;
        t.y[r] = -r;
        t.vx[r] = 10 * r;
        t.vy[r] = 0.5;
        t.heading[r] = r - 3.0;
    }
    return t;
}

static void write_table(const table *t, int64_t rows) {
    const bj_parquet_data data[COLUMNS] = {[OBSERVED] = {.booleans = t->observed},
                                           [Y] = {.doubles = t->y},
                                           [X] = {.doubles = t->x},
                                           [TRACK] = {.texts = t->track},
                                           [STEP] = {.integers = t->step},
                                           [TYPE] = {.texts = t->type},
                                           [HEADING] = {.doubles = t->heading},
                                           [VX] = {.doubles = t->vx},
                                           [EXTRA] = {.doubles = t->vx},
                                           [VY] = {.doubles = t->vy},
                                           [FOCAL] = {.texts = t->focal},
                                           [CITY] = {.texts = t->city},
                                           [ID] = {.texts = t->id}};
    bj_parquet_writer *writer = NULL;
    CHECK_OK(bj_parquet_writer_create(&writer, t->field, COLUMNS, BJ_PARQUET_SNAPPY, &err), err);
    CHECK_OK(bj_parquet_writer_open(writer, path, &err), err);
    if (rows) CHECK_OK(bj_parquet_writer_rows(writer, rows, data, NULL, &err), err);
    CHECK_OK(bj_parquet_writer_commit(writer, &err), err);
    bj_parquet_writer_free(writer);
}

static void check_good(const table *t) {
    static const int tracks[ROWS] = {0, 1, 0, 2, 1, 0};
    CHECK(same(s.id, "0000-1111") && same(s.city, "town"));
    CHECK(s.rows == ROWS && s.tracks == 3 && s.focal == 1);
    if (s.rows != ROWS || s.tracks != 3) return;
    CHECK(same(s.track_id[0], "b") && same(s.track_id[1], "a") && same(s.track_id[2], "AV"));
    CHECK(same(s.type[0], "bus")); /* from the first row; later rows have "vehicle" */
    CHECK(same(s.type[1], "cyclist") && same(s.type[2], "static"));
    for (int r = 0; r < ROWS; r++) {
        CHECK(s.track[r] == tracks[r] && s.step[r] == t->step[r]);
        CHECK(s.x[r] == t->x[r] && s.y[r] == t->y[r] && s.heading[r] == t->heading[r]);
        CHECK(s.vx[r] == t->vx[r] && s.vy[r] == t->vy[r]);
    }
}

static void test_reading(void) {
    const table t = good_table();
    char *bytes;
    size_t size;
    write_table(&t, ROWS);
    for (int round = 0; round < 3; round++) {
        const long before = bj_alloc_count();
        CHECK_OK(bj_scenario_read(&s, reader, path, &err), err);
        check_good(&t);
        CHECK(round < 2 || bj_alloc_count() == before);
    }
    CHECK_OK(bj_file_read(&bytes, &size, path, 1 << 20, &err), err);
    CHECK_OK(bj_scenario_read_memory(&s, reader, bytes, size, "memory", &err), err);
    check_good(&t);
    CHECK(bj_scenario_read_memory(&s, reader, bytes, size - 5, "memory", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "memory");
    CHECK(s.rows == 0 && !s.x);
    bj_free(bytes);
    CHECK(bj_scenario_read(&s, reader, "absent.parquet", &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "absent.parquet");
}

/* Writes the table and checks that reading it fails with a message that contains the path and
 * `message`. */
static void refuse(const table *t, bj_status code, const char *message) {
    write_table(t, ROWS);
    const bj_status status = bj_scenario_read(&s, reader, path, &err);
    CHECK_MSG(status == code, "%d instead of %d for: %s", (int)status, (int)code, message);
    CHECK_CONTAINS(err.message, path);
    CHECK_CONTAINS(err.message, message);
    CHECK(s.rows == 0 && !s.x && !s.track);
    CHECK(bj_scenario_read(&s, reader, path, NULL) == code);
}

static void test_numbers(void) {
    static const int columns[5] = {X, Y, VX, VY, HEADING};
    for (int i = 0; i < 5; i++) {
        table t = good_table();
        double *values[5] = {t.x, t.y, t.vx, t.vy, t.heading};
        char message[64];
        values[i][4] = i % 2 ? NAN : -INFINITY;
        snprintf(message, sizeof message, "column '%s' is %s in row 4, expected a finite number",
                 t.field[columns[i]].name, i % 2 ? "nan" : "-inf");
        refuse(&t, BJ_ENONFINITE, message);
        values[i][4] = 1e300; /* finite, so the reader accepts it */
        write_table(&t, ROWS);
        CHECK_OK(bj_scenario_read(&s, reader, path, &err), err);
    }
    for (int i = 0; i < 3; i++) {
        static const int64_t steps[3] = {-1, 110, INT64_MIN};
        table t = good_table();
        t.step[2] = steps[i];
        refuse(&t, BJ_EFORMAT, "in row 2, expected 0 to 109");
    }
}

static void test_columns(void) {
    static const int read[] = {X, Y, TRACK, STEP, TYPE, HEADING, VX, VY, FOCAL, CITY, ID};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        table t = good_table();
        char message[64];
        const int c = read[i];
        snprintf(message, sizeof message, "'%s'", t.field[c].name);
        t.field[c].name = "other";
        refuse(&t, BJ_EFORMAT, message); /* missing column */
    }
    table t = good_table(); /* a text column with numbers, and a number column with texts */
    t.field[EXTRA].name = "city";
    t.field[CITY].name = "extra";
    refuse(&t, BJ_EFORMAT, "'city'");
    t = good_table();
    t.field[EXTRA].name = "track_id";
    t.field[TRACK].name = "extra";
    refuse(&t, BJ_EFORMAT, "'track_id'");
    t = good_table();
    t.field[X].name = "timestep";
    t.field[STEP].name = "position_x";
    refuse(&t, BJ_EFORMAT, "'timestep'"); /* x accepts integers, but steps do not accept doubles */
    t = good_table();
    t.field[TYPE].name = "heading";
    t.field[HEADING].name = "object_type";
    refuse(&t, BJ_EFORMAT, "'object_type'");

    t = good_table();
    write_table(&t, 0);
    CHECK(bj_scenario_read(&s, reader, path, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "no rows");
}

static void test_names(void) {
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    for (int i = 0; i < 5; i++) {
        table t = good_table();
        bj_text *columns[5] = {t.id, t.city, t.focal, t.track, t.type};
        static const char *const names[5] = {"scenario_id", "city", "focal_track_id", "track_id",
                                             "object_type"};
        char message[96];
        if (i < 3) {
            columns[i][5] = text("else");
            snprintf(message, sizeof message, "column '%s' has 2 different values", names[i]);
            refuse(&t, BJ_EFORMAT, message);
            CHECK_CONTAINS(err.message, "'else'");
        }
        for (int r = 0; r < ROWS; r++) columns[i][r] = (bj_text){longest, 64};
        snprintf(message, sizeof message, "column '%s' contains a string of 64 bytes", names[i]);
        refuse(&t, BJ_EFORMAT, message);
        for (int r = 0; r < ROWS; r++) columns[i][r] = text("");
        snprintf(message, sizeof message, "column '%s' contains an empty string", names[i]);
        refuse(&t, BJ_EFORMAT, message);
        for (int r = 0; r < ROWS; r++) columns[i][r] = text("a\033[2J");
        snprintf(message, sizeof message, "column '%s' contains a string with control", names[i]);
        refuse(&t, BJ_EFORMAT, message);
    }
    table t = good_table();
    for (int r = 0; r < ROWS; r++) {
        t.id[r] = (bj_text){longest, 63};
        t.focal[r] = text("c");
    }
    refuse(&t, BJ_EFORMAT, "focal track 'c' has no rows");
    for (int r = 0; r < ROWS; r++) t.focal[r] = text("A"); /* only a prefix of "AV" */
    refuse(&t, BJ_EFORMAT, "focal track 'A' has no rows");
    for (int r = 0; r < ROWS; r++) t.focal[r] = text("AV");
    write_table(&t, ROWS);
    CHECK_OK(bj_scenario_read(&s, reader, path, &err), err);
    CHECK(s.focal == 2 && s.id.size == 63);
}

static void test_memory(void) {
    const table t = good_table();
    int failures = 0;
    write_table(&t, ROWS);
    for (long n = 0;; n++) {
        bj_scenario_reader *fresh = NULL;
        const long live = bj_alloc_live();
        bj_alloc_fail_after(n);
        bj_status status = bj_scenario_reader_create(&fresh, &err);
        if (status == BJ_OK) status = bj_scenario_read(&s, fresh, path, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        if (fresh) {
            CHECK_OK(bj_scenario_read(&s, fresh, path, &err), err);
            check_good(&t);
        }
        bj_scenario_reader_free(fresh);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK || n > 1000) break;
        failures++;
    }
    CHECK(failures > 3 && failures < 1000);
    bj_scenario_reader_free(NULL);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/scenario_0.parquet", folder);
    CHECK_OK(bj_scenario_reader_create(&reader, &err), err);
    test_reading();
    test_numbers();
    test_columns();
    test_names();
    test_memory();
    bj_scenario_reader_free(reader);
    unlink(path);
    rmdir(folder);
    return test_report("scenario");
}
