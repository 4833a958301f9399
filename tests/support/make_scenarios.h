/* make_scenarios.h - made-up scenarios in the official file format, for tests.
 *
 * Every scenario is a folder ID/ with scenario_ID.parquet and log_map_archive_ID.json. Traffic and
 * maps are drawn from a seed: tracks on arcs, some with gaps, lanes beside each other, crossings,
 * drivable areas. Nothing comes from a real data set. The same arguments give the same bytes.
 */
#ifndef BJ_TESTS_MAKE_SCENARIOS_H
#define BJ_TESTS_MAKE_SCENARIOS_H

#include <stdint.h>

#include "core/status.h"

/* What can be wrong with a scenario. */
typedef enum test_flaw {
    TEST_GOOD,
    TEST_TRUNCATED,      /* the parquet file ends early */
    TEST_NO_FOCAL,       /* the focal track has no rows */
    TEST_NO_FOCAL_AT_49, /* ... or none at the last observed step */
    TEST_STEP_OUTSIDE,   /* a step of 110 */
    TEST_NOT_FINITE,     /* a position is NaN */
    TEST_OTHER_ID,       /* scenario_id is not that of the file name */
    TEST_BROKEN_MAP,     /* the map ends early */
    TEST_NO_MAP,         /* no map file */
    TEST_NO_SCENARIO,    /* no parquet file */
    TEST_FLAWS
} test_flaw;

extern const char *const test_flaw_codes[TEST_FLAWS]; /* as in the list of rejects; "" for good */

typedef struct test_recipe {
    uint64_t seed;
    int steps;  /* 110, or 50 for the test split */
    int tracks; /* besides the focal one */
    int lanes;
    int same_map; /* the drivable areas do not depend on the seed */
    test_flaw flaw;
} test_recipe;

/* A recipe with everything drawn from the seed. */
test_recipe test_recipe_draw(uint64_t seed);
enum { TEST_ID = 37 };
/* The id such a scenario has: looks like a UUID, ascends in no order. */
void test_scenario_id(char id[TEST_ID], uint64_t seed);
/* Writes FOLDER/ID/...; FOLDER exists. */
BJ_CHECK bj_status test_make_scenario(const char *folder, const test_recipe *recipe, bj_error *err);

#endif
