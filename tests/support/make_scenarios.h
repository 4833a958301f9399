/* make_scenarios.h - synthetic scenarios in the official file format, for tests.
 *
 * Every scenario is a folder ID/ with scenario_ID.parquet and log_map_archive_ID.json. Traffic and
 * maps are drawn from a seed: tracks on arcs, some with gaps, lanes, crossings and drivable areas.
 * Nothing comes from a real dataset. Equal arguments give equal bytes.
 */
#ifndef BJ_TESTS_MAKE_SCENARIOS_H
#define BJ_TESTS_MAKE_SCENARIOS_H

#include <stdint.h>

#include "core/status.h"

/* Defects of a scenario. */
typedef enum test_flaw {
    TEST_GOOD,
    TEST_TRUNCATED,      /* the parquet file ends early */
    TEST_NO_FOCAL,       /* the focal track has no rows */
    TEST_NO_FOCAL_AT_49, /* the focal track has no row at the last observed step */
    TEST_STEP_OUTSIDE,   /* a row has time step 110 */
    TEST_NOT_FINITE,     /* a position is NaN */
    TEST_OTHER_ID,       /* scenario_id differs from the file name */
    TEST_BROKEN_MAP,     /* the map ends early */
    TEST_NO_MAP,         /* no map file */
    TEST_NO_SCENARIO,    /* no parquet file */
    TEST_FLAWS
} test_flaw;

extern const char *const test_flaw_codes[TEST_FLAWS]; /* codes in the list of rejects; "" for a
                                                         valid scenario */

typedef struct test_recipe {
    uint64_t seed;
    int steps;  /* 110, or 50 for the test split */
    int tracks; /* in addition to the focal track */
    int lanes;
    int same_map; /* 1: the drivable areas do not depend on the seed */
    test_flaw flaw;
} test_recipe;

/* Returns a recipe with all fields drawn from the seed. */
test_recipe test_recipe_draw(uint64_t seed);
enum { TEST_ID = 37 };
/* Writes the id of the seed's scenario. Ids look like UUIDs and are not in seed order. */
void test_scenario_id(char id[TEST_ID], uint64_t seed);
/* Writes FOLDER/ID/... FOLDER must exist. */
BJ_CHECK bj_status test_make_scenario(const char *folder, const test_recipe *recipe, bj_error *err);

#endif
