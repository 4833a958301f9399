/* checkpoint.c - see checkpoint.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "checkpoint.h"

#include <string.h>
#include <sys/stat.h>

bj_status cli_checkpoint_path(char path[CLI_PATH_SIZE], const char *checkpoint, bj_error *err) {
    static const char *const inside[] = {"", "ckpt/best/", "ckpt/last/"};
    struct stat info;
    if (stat(checkpoint, &info) || !S_ISDIR(info.st_mode)) {
        if (strlen(checkpoint) >= CLI_PATH_SIZE)
            return cli_error(err, BJ_EARG, "%.64s...: the path is too long", checkpoint);
        memcpy(path, checkpoint, strlen(checkpoint) + 1); /* loading says what is wrong with it */
        return BJ_OK;
    }
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s" BJ_CHECKPOINT_MODEL, inside[i]);
        const bj_status status = cli_path(path, checkpoint, name, err);
        if (status != BJ_OK || stat(path, &info) == 0) return status;
    }
    return cli_error(err, BJ_EIO,
                     "%s: no " BJ_CHECKPOINT_MODEL " in it, nor in its ckpt/best or "
                     "ckpt/last",
                     checkpoint);
}
