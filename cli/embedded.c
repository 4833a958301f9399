/* embedded.c - see embedded.h. */
#include "embedded.h"

#include <string.h>

const cli_embedded *cli_embedded_find(const char *name) {
    for (const cli_embedded *file = cli_embedded_files; file->name; file++)
        if (!strcmp(file->name, name)) return file;
    return NULL;
}
