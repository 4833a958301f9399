/* settings.h - options that determine the settings of a run, shared by several verbs.
 *
 * Later sources override earlier ones: the file of --config, then BJEPA_RECIPE, BJEPA_ARM,
 * BJEPA_SEED and BJEPA_INIT, then --set in its order, then --recipe, --arm, --seed and --init.
 */
#ifndef BJEPA_SETTINGS_H
#define BJEPA_SETTINGS_H

#include "output.h"

typedef struct cli_settings_options {
    const char *arm, *recipe, *seed, *config, *init; /* NULL: not given */
    cli_list set;
} cli_settings_options;

/* clang-format off */
#define CLI_SETTINGS_OPTIONS(o)                                                                    \
    {"arm", 'a', CLI_TEXT, "NAME", &(o)->arm, 0, 0,                                                \
     "arm to train; 'bjepa config arms' lists the arms"},                                             \
    {"seed", 0, CLI_TEXT, "N", &(o)->seed, 0, 0,                                                   \
     "seed of the initial weights and the data order (default: 0)"},                               \
    {"recipe", 0, CLI_TEXT, "NAME", &(o)->recipe, 0, 0,                                            \
     "optimization settings: paper, fast or small (default: paper)"},                              \
    {"init", 0, CLI_TEXT, "MODEL", &(o)->init, 0, 0,                                               \
     "load the initial weights from a run, checkpoint folder or model file"},                      \
    {"config", 'c', CLI_TEXT, "FILE", &(o)->config, 0, 0, "read settings from a YAML or JSON file"},    \
    {"set", 0, CLI_LIST, "KEY=VALUE", &(o)->set, 0, 0,                                             \
     "change one setting, for example train.epochs=10; may be repeated"}
/* clang-format on */

/* Splits the "key=value" of a --set, in memory that the caller frees with free(). */
BJ_CHECK bj_status cli_split_set(bj_assignment *out, char **memory, const char *text,
                                 bj_error *err);

/* Replaces `init = builtin` by the path of the pretrained model, which is written to `path`. */
BJ_CHECK bj_status cli_resolve_builtin(bj_assignment *list, int count, char path[CLI_PATH_SIZE],
                                       bj_error *err);

/* Resolved settings, and what their origins point to. */
typedef struct cli_settings {
    bj_settings value;
    const char **origins; /* (bj_setting_count) */
    int in_file;          /* assignments of the file */
    bj_config *config;
    char *memory[CLI_LIST_SIZE];
    char builtin[CLI_PATH_SIZE]; /* path of the pretrained model, if `init` names it */
} cli_settings;

/* If arm_default is not NULL, it is the arm to use if no arm is named. */
BJ_CHECK bj_status cli_settings_open(cli_settings *out, const cli_settings_options *options,
                                     const char *arm_default, bj_error *err);
void cli_settings_close(cli_settings *settings); /* accepts a zeroed one, and one that failed */

#endif
