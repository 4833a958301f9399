/* fuzz_json.h - functions shared by the fuzz targets of JSON readers. */
#ifndef BJ_TESTS_FUZZ_JSON_H
#define BJ_TESTS_FUZZ_JSON_H

#include "core/json.h"
#include "fuzz.h"

/* Returns the value of a key. Aborts if the key is repeated, because the reader must reject
 * that. */
static inline yyjson_val *member(yyjson_val *object, const char *name) {
    yyjson_val *found = NULL, *key;
    yyjson_obj_iter items = yyjson_obj_iter_with(object);
    while ((key = yyjson_obj_iter_next(&items)))
        if (yyjson_equals_str(key, name)) {
            demand(!found);
            found = yyjson_obj_iter_get_val(key);
        }
    return found;
}

#endif
