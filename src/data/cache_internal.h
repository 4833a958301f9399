/* cache_internal.h - the struct of an open cache, used only by cache.c and cache_check.c. */
#ifndef BJ_DATA_CACHE_INTERNAL_H
#define BJ_DATA_CACHE_INTERNAL_H

#include <stdatomic.h>

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
    /* Bit i % 32 of element i / 32: scene or map i has the right digest. */
    atomic_uint *checked_scenes, *checked_maps;
};

/* Returns a tensor as an array of `type`; see bj_cache_columns for the types. */
#define COLUMN(cache, type, name) ((const type *)(cache)->column[BJ_COLUMN_##name])

/* Checks the rules listed in cache.h and fills the remaining fields. cache->file must be open. */
BJ_CHECK bj_status bj_cache_check(bj_cache *cache, int flags, bj_error *err);

#endif
