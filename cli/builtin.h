/* builtin.h - the pretrained model that comes with the program.
 *
 * It is a data file, not part of the program or the library. Wherever a command takes a checkpoint,
 * the name `builtin` stands for this file; './builtin' is a file of that name.
 * Test: tests/cli/builtin.sh
 */
#ifndef BJEPA_BUILTIN_H
#define BJEPA_BUILTIN_H

#include "output.h"

#define CLI_BUILTIN "builtin"
#define CLI_BUILTIN_NAME "branchjepa-world2-v1"
#define CLI_BUILTIN_FILE CLI_BUILTIN_NAME ".safetensors"
#define CLI_BUILTIN_CARD "CARD-" CLI_BUILTIN_NAME ".md"

/* Returns 1 if the name stands for the pretrained model. */
int cli_is_builtin(const char *name);

/* Finds the file, in this order: $BJEPA_BUILTIN, the data folder of the installation, the folder
 * models/ of the source tree that the program was built in. Fails with BJ_EIO and a hint. */
BJ_CHECK bj_status cli_builtin_path(char path[CLI_PATH_SIZE], bj_error *err);

/* Finds the model card next to a model file. Returns 0 and an empty path if there is none. */
int cli_builtin_card(char path[CLI_PATH_SIZE], const char *model_path);

#endif
