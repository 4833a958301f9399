/* checkpoint.h - where the weights are that a command was pointed to. */
#ifndef BJEPA_CHECKPOINT_H
#define BJEPA_CHECKPOINT_H

#include "output.h"

/* Finds the model file: the file itself, the model file in a checkpoint or run folder, or the
 * pretrained model for the name `builtin`. */
BJ_CHECK bj_status cli_checkpoint_path(char path[CLI_PATH_SIZE], const char *checkpoint,
                                       bj_error *err);

/* Returns the number of scenes behind an epoch's weights, repeated ones included. */
int64_t cli_scenes_seen(const bj_run *run, const bj_epoch *epoch);

/* A checkpoint to look at: one that was named, or the chosen one of a run of a campaign. */
typedef struct cli_checkpoint {
    char path[CLI_PATH_SIZE]; /* as named, or DIR/runs/ARM/seed-S/ckpt/best */
    char arm[BJ_NAME_SIZE];   /* of the run; "": not of a campaign */
    int64_t seed;
} cli_checkpoint;

typedef struct cli_checkpoints {
    cli_checkpoint *item;
    int count;
} cli_checkpoints;

/* Adds the checkpoint `operand`, or the chosen one of every finished run when it is the folder of a
 * campaign; runs that are not finished are named on stderr, and stage A of the frozen anchor, which
 * predicts nothing, is left out. The list is freed by cli_checkpoints_free also after an error. */
BJ_CHECK bj_status cli_checkpoints_add(cli_checkpoints *list, const char *verb, const char *operand,
                                       bj_error *err);
void cli_checkpoints_free(cli_checkpoints *list);

#endif
