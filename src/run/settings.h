/* settings.h - declarations shared by the settings files; the interface is in <branchjepa/run.h>.
 *
 * Values come from four layers: defaults, the arm, the recipe and assignments. Later layers
 * override earlier ones.
 */
#ifndef BJ_RUN_SETTINGS_H
#define BJ_RUN_SETTINGS_H

#include "core/status.h"

enum { BJ_SETTINGS_MAX = 96 };

/* Assignments made by an arm or a recipe. Origins are string literals. A NULL key ends the list. */
enum { BJ_LAYER_SIZE = 12 };

typedef struct bj_arm {
    bj_arm_info info;
    bj_objective_kind objective;
    bj_model_kind model;
    bj_scales scales;
    bj_weighting weighting;
    int one_atom;     /* the arm is defined by K = 1 */
    int needs_anchor; /* stage B */
    int maze;         /* trains on transitions of a maze dataset */
    bj_assignment set[BJ_LAYER_SIZE];
} bj_arm;

/* Return whether a setting was added in a later version, and its default as text; see settings.def.
 * */
int bj_setting_is_added(int index);
void bj_setting_default(char text[BJ_SETTING_TEXT_SIZE], int index);

const bj_arm *bj_arm_row(int index);
const bj_assignment *bj_recipe_set(int index);

/* Find the arm or recipe with that name. If there is none, the message suggests the closest name.
 * */
BJ_CHECK bj_status bj_arm_named(const bj_arm **out, const char *name, const char *origin,
                                bj_error *err);
BJ_CHECK bj_status bj_recipe_named(int *out, const char *name, const char *origin, bj_error *err);

#endif
