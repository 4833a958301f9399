/* config.h - reads a configuration from memory. <branchjepa/run.h> declares the other bj_config
 * functions. */
#ifndef BJ_RUN_CONFIG_H
#define BJ_RUN_CONFIG_H

#include <stddef.h>

#include "core/status.h"

enum {
    BJ_CONFIG_BYTES = 1 << 20, /* bytes of a file */
    BJ_CONFIG_DEPTH = 16,
    BJ_CONFIG_NODES = 4096,  /* values, mappings and sequences */
    BJ_CONFIG_KEY_SIZE = 256 /* bytes of a key, including dots and terminator */
};

/* Parses `text`. `name` is the file name used in origins and messages. */
BJ_CHECK bj_status bj_config_parse(bj_config **out, const char *text, size_t size, const char *name,
                                   bj_error *err);

#endif
