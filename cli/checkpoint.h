/* checkpoint.h - where the weights are that a command was pointed to. */
#ifndef BJEPA_CHECKPOINT_H
#define BJEPA_CHECKPOINT_H

#include "output.h"

/* The file itself; of a checkpoint or run folder the model file in it. */
BJ_CHECK bj_status cli_checkpoint_path(char path[CLI_PATH_SIZE], const char *checkpoint,
                                       bj_error *err);

#endif
