/* history_case.h - rows of a history for tests, with distinct values in every field. */
#ifndef BJ_TESTS_HISTORY_CASE_H
#define BJ_TESTS_HISTORY_CASE_H

#include <string.h>

#include "run/epoch_fields.h"

/* Field f of row i has the value 100 i + f + 1/4. Flags alternate between 0 and 1. */
static inline bj_epoch history_row(int i) {
    bj_epoch row = {.epoch = i, .step = 48 * (int64_t)i, .best = i % 2, .eligible = (i + 1) % 2};
    for (int f = 0; f < bj_epoch_field_count; f++) {
        const double value = 100.0 * i + f + .25;
        if (bj_epoch_fields[f].type == BJ_EPOCH_REAL)
            memcpy((char *)&row + bj_epoch_fields[f].offset, &value, sizeof value);
    }
    return row;
}

#endif
