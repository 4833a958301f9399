/* score_case.h - synthetic scenarios and submissions for score tests.
 *
 * A scenario has a focal track with rows chosen by the test. It contains the official columns that
 * the ground truth needs. Submissions are built row by row and may be invalid. No real data is
 * used.
 */
#ifndef BJ_TESTS_SCORE_CASE_H
#define BJ_TESTS_SCORE_CASE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "parquet/writer.h"

enum { CASE_STEPS = 110, CASE_LAST = 49, CASE_F = 60, CASE_PATH = 512 };

/* ----------------------------------------------------------------------------------- scenarios */

typedef struct case_scenario {
    const char *id, *focal, *type, *city;
    double x[CASE_STEPS], y[CASE_STEPS]; /* city coordinates */
    double heading, speed;
    int present[CASE_STEPS];
} case_scenario;

/* Makes a road user that drives straight along `heading` at one meter per
 * step and is at (x, y) at the last observed step. */
static inline case_scenario case_drive(const char *id, double x, double y, double heading) {
    case_scenario s = {.id = id, .focal = "17", .type = "vehicle", .city = "austin"};
    s.heading = heading;
    s.speed = 10;
    for (int t = 0; t < CASE_STEPS; t++) {
        s.x[t] = x + (t - CASE_LAST) * cos(heading);
        s.y[t] = y + (t - CASE_LAST) * sin(heading);
        s.present[t] = 1;
    }
    return s;
}

static inline bj_text case_text(const char *text) { return (bj_text){text, strlen(text)}; }

/* Writes FOLDER/ID/scenario_ID.parquet and an empty map next to it. The focal rows are in reverse
 * order, after the rows of another track. */
static inline bj_status case_write_scenario(const char *folder, const case_scenario *s,
                                            bj_error *err) {
    static const bj_parquet_field fields[] = {{"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                              {"object_type", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                              {"object_category", BJ_PARQUET_INT64, 0, 1},
                                              {"timestep", BJ_PARQUET_INT64, 0, 1},
                                              {"position_x", BJ_PARQUET_DOUBLE, 0, 0},
                                              {"position_y", BJ_PARQUET_DOUBLE, 0, 0},
                                              {"heading", BJ_PARQUET_DOUBLE, 0, 0},
                                              {"velocity_x", BJ_PARQUET_DOUBLE, 0, 0},
                                              {"velocity_y", BJ_PARQUET_DOUBLE, 0, 0},
                                              {"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                              {"focal_track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                              {"city", BJ_PARQUET_BYTE_ARRAY, 0, 1}};
    enum { FIELDS = sizeof fields / sizeof *fields, ROWS = 2 * CASE_STEPS };
    bj_text texts[5][ROWS];
    int64_t category[ROWS], step[ROWS], n = 0;
    double numbers[5][ROWS];
    char path[CASE_PATH];
    bj_parquet_writer *writer = NULL;
    for (int r = 0; r < ROWS; r++) {
        const int focal = r >= CASE_STEPS, t = focal ? ROWS - 1 - r : r;
        if (focal && !s->present[t]) continue;
        texts[0][n] = case_text(focal ? s->focal : "AV");
        texts[1][n] = case_text(focal ? s->type : "vehicle");
        texts[2][n] = case_text(s->id);
        texts[3][n] = case_text(s->focal);
        texts[4][n] = case_text(s->city);
        category[n] = focal ? 3 : 1;
        step[n] = t;
        numbers[0][n] = focal ? s->x[t] : s->x[CASE_LAST] + 5;
        numbers[1][n] = focal ? s->y[t] : s->y[CASE_LAST] - 5;
        numbers[2][n] = s->heading;
        numbers[3][n] = focal ? s->speed * cos(s->heading) : 0;
        numbers[4][n] = focal ? s->speed * sin(s->heading) : 0;
        n++;
    }
    const bj_parquet_data data[FIELDS] = {
        {.texts = texts[0]},     {.texts = texts[1]},     {.integers = category},
        {.integers = step},      {.doubles = numbers[0]}, {.doubles = numbers[1]},
        {.doubles = numbers[2]}, {.doubles = numbers[3]}, {.doubles = numbers[4]},
        {.texts = texts[2]},     {.texts = texts[3]},     {.texts = texts[4]}};
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, s->id);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/log_map_archive_%s.json", folder, s->id, s->id);
    FILE *map = fopen(path, "w");
    if (map) {
        fputs("{\"drivable_areas\":{},\"lane_segments\":{},\"pedestrian_crossings\":{}}", map);
        fclose(map);
    }
    snprintf(path, sizeof path, "%s/%s/scenario_%s.parquet", folder, s->id, s->id);
    bj_status status = bj_parquet_writer_create(&writer, fields, FIELDS, BJ_PARQUET_SNAPPY, err);
    if (status == BJ_OK) status = bj_parquet_writer_open(writer, path, err);
    if (status == BJ_OK) status = bj_parquet_writer_rows(writer, n, data, NULL, err);
    if (status == BJ_OK) status = bj_parquet_writer_commit(writer, err);
    bj_parquet_writer_free(writer);
    return status;
}

/* --------------------------------------------------------------------------------- submissions */

typedef struct case_row {
    const char *scenario, *track;
    double p;
    int x_count, y_count;
    double x[2 * CASE_F], y[2 * CASE_F];
} case_row;

typedef struct case_file {
    int rows;
    case_row row[64];
} case_file;

/* Adds a row: the true future shifted by `ahead` and `left` meters in the scene's directions. */
static inline case_row *case_add(case_file *f, const case_scenario *s, double p, double ahead,
                                 double left) {
    case_row *r = &f->row[f->rows++];
    const double c = cos(s->heading), n = sin(s->heading);
    *r = (case_row){s->id, s->focal, p, CASE_F, CASE_F, {0}, {0}};
    for (int k = 0; k < CASE_F; k++) {
        r->x[k] = s->x[CASE_LAST + 1 + k] + c * ahead - n * left;
        r->y[k] = s->y[CASE_LAST + 1 + k] + n * ahead + c * left;
    }
    return r;
}

/* Shifts point k of the row to the left. */
static inline void case_shift(case_row *r, const case_scenario *s, int k, double left) {
    r->x[k] -= sin(s->heading) * left;
    r->y[k] += cos(s->heading) * left;
}

static inline bj_status case_write_file(const char *path, const case_file *f, bj_error *err) {
    static const bj_parquet_field fields[5] = {{"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                               {"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
                                               {"probability", BJ_PARQUET_DOUBLE, 0, 1},
                                               {"predicted_trajectory_x", BJ_PARQUET_DOUBLE, 1, 0},
                                               {"predicted_trajectory_y", BJ_PARQUET_DOUBLE, 1, 1}};
    enum { MOST = 64 };
    bj_text scenario[MOST], track[MOST];
    double p[MOST], x[MOST * 2 * CASE_F], y[MOST * 2 * CASE_F];
    int64_t x_start[MOST + 1] = {0}, y_start[MOST + 1] = {0};
    bj_parquet_writer *writer = NULL;
    for (int r = 0; r < f->rows; r++) {
        const case_row *row = &f->row[r];
        scenario[r] = case_text(row->scenario);
        track[r] = case_text(row->track);
        p[r] = row->p;
        memcpy(x + x_start[r], row->x, (size_t)row->x_count * sizeof *x);
        memcpy(y + y_start[r], row->y, (size_t)row->y_count * sizeof *y);
        x_start[r + 1] = x_start[r] + row->x_count;
        y_start[r + 1] = y_start[r] + row->y_count;
    }
    const bj_parquet_data data[5] = {
        {.texts = scenario}, {.texts = track}, {.doubles = p}, {.doubles = x}, {.doubles = y}};
    const int64_t *const starts[5] = {NULL, NULL, NULL, x_start, y_start};
    bj_status status = bj_parquet_writer_create(&writer, fields, 5, BJ_PARQUET_SNAPPY, err);
    if (status == BJ_OK) status = bj_parquet_writer_open(writer, path, err);
    if (status == BJ_OK) status = bj_parquet_writer_rows(writer, f->rows, data, starts, err);
    if (status == BJ_OK) status = bj_parquet_writer_commit(writer, err);
    bj_parquet_writer_free(writer);
    return status;
}

#endif
