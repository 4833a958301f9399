/* settings.h - what the files about settings share; the interface is in <branchjepa/run.h>.
 *
 * Layers of a value, later ones win: the paper's or our default, the arm, the recipe, assignments.
 */
#ifndef BJ_RUN_SETTINGS_H
#define BJ_RUN_SETTINGS_H

#include "core/status.h"

enum { BJ_SETTINGS_MAX = 96 };

/* An arm or recipe in assignments; origins are literals. Ends with a NULL key. */
enum { BJ_LAYER_SIZE = 12 };

typedef struct bj_arm {
    bj_arm_info info;
    bj_objective_kind objective;
    bj_model_kind model;
    bj_scales scales;
    bj_weighting weighting;
    int one_atom;     /* K = 1 is what it is about */
    int needs_anchor; /* stage B */
    int maze;         /* trains on transitions of a maze's dataset */
    bj_assignment set[BJ_LAYER_SIZE];
} bj_arm;

/* Whether a setting came later than others, and its default as text: see settings.def. */
int bj_setting_is_added(int index);
void bj_setting_default(char text[BJ_SETTING_TEXT_SIZE], int index);

const bj_arm *bj_arm_row(int index);
const bj_assignment *bj_recipe_set(int index);

/* The arm or recipe of that name, or a message that suggests the nearest. */
BJ_CHECK bj_status bj_arm_named(const bj_arm **out, const char *name, const char *origin,
                                bj_error *err);
BJ_CHECK bj_status bj_recipe_named(int *out, const char *name, const char *origin, bj_error *err);

#endif
