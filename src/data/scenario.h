/* scenario.h - one motion-forecasting scenario: tracks of road users over 110 steps at 10 Hz.
 *
 * A scenario is a list of rows (track, step, state). Tracks are numbered in the order of their
 * first row in the file; rows of a track may come in any order and need not be adjacent.
 * Coordinates are the city's, in meters; headings in radians; velocities in meters a second.
 *
 * The arrays belong to whoever filled them: the reader below, or the simulated world.
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
    int focal; /* track */
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

/* Reads scenarios one after the other and keeps its buffers. */
typedef struct bj_scenario_reader bj_scenario_reader;

BJ_CHECK bj_status bj_scenario_reader_create(bj_scenario_reader **out, bj_error *err);
void bj_scenario_reader_free(bj_scenario_reader *reader); /* accepts NULL */
/* What it hands out lives until the next read. Refused, with file and reason: a column that is
 * missing or of another type, a null, no rows, a step outside 0 .. 109, a number that is not
 * finite, several scenario ids, focal ids or cities, a focal track that has no rows, and names
 * that are empty, longer than BJ_SCENARIO_NAME - 1 bytes or have control characters. */
BJ_CHECK bj_status bj_scenario_read(bj_scenario *out, bj_scenario_reader *reader, const char *path,
                                    bj_error *err);
BJ_CHECK bj_status bj_scenario_read_memory(bj_scenario *out, bj_scenario_reader *reader,
                                           const void *data, size_t size, const char *label,
                                           bj_error *err);
/* After a refusal, where it happened, in one word: "focal" (the focal track), "step" (the steps) or
 * "parquet" (anything else). */
const char *bj_scenario_stage(const bj_scenario_reader *reader);

/* A name as a terminated string; the reader refuses those that would not fit. */
void bj_scenario_name(char out[BJ_SCENARIO_NAME], bj_text text);

#endif
