/* scenario.h - one motion-forecasting scenario: tracks of road users over 110 steps at 10 Hz.
 *
 * A scenario is a list of rows (track, step, state). Tracks are numbered in the order of their
 * first row in the file. Rows of a track may come in any order and need not be adjacent.
 * Coordinates are city coordinates in meters, headings are in radians, velocities in meters per
 * second.
 *
 * The arrays belong to the code that filled them: the reader below or the simulated world.
 * Tests: tests/data/test_scenario.c
 */
#ifndef BJ_DATA_SCENARIO_H
#define BJ_DATA_SCENARIO_H

#include <stdint.h>

#include "core/status.h"
#include "parquet/reader.h"

enum { BJ_SCENARIO_STEPS = 110, BJ_SCENARIO_OBSERVED = 50, BJ_SCENARIO_NAME = 64 };

typedef struct bj_scenario {
    bj_text id, city;
    int focal; /* index of the focal track */
    int tracks;
    const bj_text *track_id; /* (tracks) */
    const bj_text *type;     /* (tracks) object_type of the track's first row */
    int64_t rows;
    const int32_t *track;  /* (rows) */
    const int64_t *step;   /* (rows) 0 .. 109 */
    const double *x, *y;   /* (rows) */
    const double *vx, *vy; /* (rows) */
    const double *heading; /* (rows) */
} bj_scenario;

/* Reads scenarios and reuses its buffers from one scenario to the next. */
typedef struct bj_scenario_reader bj_scenario_reader;

BJ_CHECK bj_status bj_scenario_reader_create(bj_scenario_reader **out, bj_error *err);
void bj_scenario_reader_free(bj_scenario_reader *reader); /* accepts NULL */
/* Reads a scenario, which is valid until the next read. Fails, with a message that contains the
 * file and the reason, if
 *   - a column is missing or has another type, or a value is null,
 *   - there are no rows, a step is outside 0 .. 109, or a number is not finite,
 *   - there are several scenario ids, focal ids or cities, or the focal track has no rows,
 *   - a name is empty, longer than BJ_SCENARIO_NAME - 1 bytes or has control characters. */
BJ_CHECK bj_status bj_scenario_read(bj_scenario *out, bj_scenario_reader *reader, const char *path,
                                    bj_error *err);
BJ_CHECK bj_status bj_scenario_read_memory(bj_scenario *out, bj_scenario_reader *reader,
                                           const void *data, size_t size, const char *label,
                                           bj_error *err);
/* Returns the stage at which the last read failed: "focal" (the focal track), "step" (the steps) or
 * "parquet" (anything else). */
const char *bj_scenario_stage(const bj_scenario_reader *reader);

/* Copies a name as a terminated string. Names from the reader always fit. */
void bj_scenario_name(char out[BJ_SCENARIO_NAME], bj_text text);

#endif
