/* config.h - bj_config_read for text that is in memory already; the rest is in <branchjepa/run.h>.
 */
#ifndef BJ_RUN_CONFIG_H
#define BJ_RUN_CONFIG_H

#include <stddef.h>

#include "core/status.h"

enum {
    BJ_CONFIG_BYTES = 1 << 20, /* of a file */
    BJ_CONFIG_DEPTH = 16,
    BJ_CONFIG_NODES = 4096,  /* values, mappings and sequences */
    BJ_CONFIG_KEY_SIZE = 256 /* of a whole key, dots and terminator included */
};

/* `name` stands for the file in origins and messages. */
BJ_CHECK bj_status bj_config_parse(bj_config **out, const char *text, size_t size, const char *name,
                                   bj_error *err);

#endif
