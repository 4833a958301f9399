/* cache_internal.h - an open cache, for cache.c and cache_check.c alone. */
#ifndef BJ_DATA_CACHE_INTERNAL_H
#define BJ_DATA_CACHE_INTERNAL_H

#include "core/json.h"
#include "data/cache.h"
#include "data/cache_format.h"

typedef struct bj_cache_names {
    const char **text; /* (count) owned by doc */
    int count;
    yyjson_doc *doc;
} bj_cache_names;

struct bj_cache {
    bj_safetensors *file;
    int blind;
    bj_arch arch;
    bj_cache_sizes sizes;
    bj_cache_names cities, types;
    const void *column[BJ_COLUMNS];
    char digest[BJ_SHA256_HEX];
};

/* The tensors under their types; see bj_cache_columns. */
#define COLUMN(cache, type, name) ((const type *)(cache)->column[BJ_COLUMN_##name])

/* Everything the header of cache.h promises; fills the cache whose file is open. */
BJ_CHECK bj_status bj_cache_check(bj_cache *cache, int flags, bj_error *err);

#endif
