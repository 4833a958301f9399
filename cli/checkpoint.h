/* checkpoint.h - finds the weights that a command line argument refers to. */
#ifndef BJEPA_CHECKPOINT_H
#define BJEPA_CHECKPOINT_H

#include "output.h"

/* Finds the model file: the file itself, the model file in a checkpoint or run folder, or the
 * pretrained model for the name `builtin`. */
BJ_CHECK bj_status cli_checkpoint_path(char path[CLI_PATH_SIZE], const char *checkpoint,
                                       bj_error *err);

/* Returns the number of scenes on which the weights of an epoch were trained, including repeated
 * ones. */
int64_t cli_scenes_seen(const bj_run *run, const bj_epoch *epoch);

/* A checkpoint to examine: one that was named, or the chosen checkpoint of a run in a campaign. */
typedef struct cli_checkpoint {
    char path[CLI_PATH_SIZE]; /* as named, or DIR/runs/ARM/seed-S/ckpt/best */
    char arm[BJ_NAME_SIZE];   /* of the run; "": not of a campaign */
    int64_t seed;
} cli_checkpoint;

typedef struct cli_checkpoints {
    cli_checkpoint *item;
    int count;
} cli_checkpoints;

/* Adds the checkpoint `operand` or, if `operand` is a campaign folder, the chosen checkpoint of
 * every finished run. Unfinished runs are listed on stderr. Stage A of the frozen anchor is left
 * out, because it predicts nothing. The list must be freed with cli_checkpoints_free even after an
 * error. */
BJ_CHECK bj_status cli_checkpoints_add(cli_checkpoints *list, const char *verb, const char *operand,
                                       bj_error *err);
void cli_checkpoints_free(cli_checkpoints *list);

#endif
