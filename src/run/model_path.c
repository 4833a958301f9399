/* model_path.c - finds the model file that a user named. Test: tests/run/test_init.c,
 * tests/cli/predict.sh */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <stdio.h>
#include <sys/stat.h>

#include "core/file.h"
#include "core/status.h"

bj_status bj_model_path(char *path, size_t size, const char *model, bj_error *err) {
    static const char *const inside[] = {"/", "/ckpt/best/", "/ckpt/last/"};
    struct stat info;
    if (stat(model, &info) || !S_ISDIR(info.st_mode)) { /* loading reports a missing file */
        if (snprintf(path, size, "%s", model) < (int)size) return BJ_OK;
        return BJ_FAIL(err, BJ_EARG, "%.64s...: the path is too long", model);
    }
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        if (snprintf(path, size, "%s%s%s", model, inside[i], BJ_CHECKPOINT_MODEL) >= (int)size)
            return BJ_FAIL(err, BJ_EARG, "%.64s...: the path is too long", model);
        if (bj_file_exists(path)) return BJ_OK;
    }
    return BJ_FAIL(err, BJ_EIO,
                   "%s: no " BJ_CHECKPOINT_MODEL " in it, nor in its ckpt/best or ckpt/last",
                   model);
}
