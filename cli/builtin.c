/* builtin.c - see builtin.h. */
#define _XOPEN_SOURCE 700 /* readlink, access, realpath */
#include "builtin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Paths relative to the folder of the program. CMake defines the first one from the installation
 * folders. */
static const char *const folders[] = {BJ_DATA_FROM_BIN, "../../models"};

int cli_is_builtin(const char *name) { return !strcmp(name, CLI_BUILTIN); }

/* Writes the folder of this program. */
static int program_folder(char folder[CLI_PATH_SIZE]) {
    const ssize_t size = readlink(CLI_SELF, folder, CLI_PATH_SIZE - 1);
    if (size <= 0) return 0;
    folder[size] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash) return 0;
    slash[slash == folder] = '\0';
    return 1;
}

bj_status cli_builtin_path(char path[CLI_PATH_SIZE], bj_error *err) {
    const char *given = getenv("BJEPA_BUILTIN");
    char folder[CLI_PATH_SIZE], name[256];
    if (given && *given) {
        if (snprintf(path, CLI_PATH_SIZE, "%s", given) >= CLI_PATH_SIZE)
            return cli_error(err, BJ_EARG, "BJEPA_BUILTIN: %.64s...: the path is too long", given);
        if (!access(path, R_OK)) return BJ_OK;
        return cli_error(err, BJ_EIO,
                         "BJEPA_BUILTIN: %s: cannot read the pretrained model\n"
                         "hint: unset BJEPA_BUILTIN to use the installed model",
                         given);
    }
    for (size_t i = 0; program_folder(folder) && i < sizeof folders / sizeof *folders; i++) {
        snprintf(name, sizeof name, "%s/" CLI_BUILTIN_FILE, folders[i]);
        const bj_status status = cli_path(path, folder, name, err);
        if (status != BJ_OK) return status;
        char *resolved = realpath(path, NULL); /* a path without ".." for messages and records */
        if (resolved && strlen(resolved) < CLI_PATH_SIZE) {
            memcpy(path, resolved, strlen(resolved) + 1);
            free(resolved);
            return BJ_OK;
        }
        free(resolved);
    }
    return cli_error(err, BJ_EIO,
                     CLI_BUILTIN ": the pretrained model " CLI_BUILTIN_FILE " is not installed\n"
                                 "hint: put the file into models/ of the source tree "
                                 "or share/branchjepa of the installation, "
                                 "or set BJEPA_BUILTIN to its path");
}

int cli_builtin_card(char path[CLI_PATH_SIZE], const char *model_path) {
    const char *slash = strrchr(model_path, '/'), *name = slash ? slash + 1 : model_path;
    const int folder = (int)(name - model_path);
    const size_t length = strlen(name);
    static const char suffix[] = ".safetensors";
    *path = '\0';
    if (!cli_ends_in(name, suffix)) return 0;
    const int stem = (int)(length - (sizeof suffix - 1));
    if (snprintf(path, CLI_PATH_SIZE, "%.*sCARD-%.*s.md", folder, model_path, stem, name) <
            CLI_PATH_SIZE &&
        !access(path, R_OK))
        return 1;
    *path = '\0';
    return 0;
}
