/* json.c - see json.h. */
#include "core/json.h"

#include <string.h>

#include "core/alloc.h"

static void *json_malloc(void *context, size_t size) {
    (void)context;
    return bj_alloc(size, 1);
}

static void *json_realloc(void *context, void *old, size_t old_size, size_t size) {
    (void)context;
    void *memory = bj_alloc(size, 1);
    if (!memory) return NULL;
    if (old) memcpy(memory, old, old_size < size ? old_size : size);
    bj_free(old);
    return memory;
}

static void json_free(void *context, void *memory) {
    (void)context;
    bj_free(memory);
}

const yyjson_alc bj_json_alc = {json_malloc, json_realloc, json_free, NULL};

bj_status bj_json_parse(yyjson_doc **out, const char *text, size_t size, const char *what,
                        bj_error *err) {
    yyjson_read_err problem;
    /* The cast is safe because yyjson copies the text unless YYJSON_READ_INSITU is set. */
    *out =
        yyjson_read_opts((char *)(uintptr_t)text, size, YYJSON_READ_NOFLAG, &bj_json_alc, &problem);
    if (*out) return BJ_OK;
    if (problem.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory while parsing %zu bytes of JSON", what,
                       size);
    return BJ_FAIL(err, BJ_EFORMAT, "%s: not JSON at byte %zu of %zu: %s", what, problem.pos, size,
                   problem.msg);
}

int bj_json_number_read(double *out, const char *text) {
    yyjson_val value;
    const char *end = yyjson_read_number(text, &value, YYJSON_READ_NOFLAG, &bj_json_alc, NULL);
    if (!end || *end) return 0;
    *out = yyjson_get_num(&value);
    return 1;
}

int bj_json_number_write(char text[BJ_JSON_NUMBER], double value) {
    char memory[1024];
    yyjson_alc pool;
    yyjson_val number = {0};
    size_t size = 0;
    number.tag = YYJSON_TYPE_NUM | YYJSON_SUBTYPE_REAL;
    number.uni.f64 = value;
    if (!yyjson_alc_pool_init(&pool, memory, sizeof memory)) return 0;
    const char *written = yyjson_val_write_opts(&number, YYJSON_WRITE_NOFLAG, &pool, &size, NULL);
    if (!written || size >= BJ_JSON_NUMBER) return 0;
    memcpy(text, written, size + 1);
    return 1;
}
