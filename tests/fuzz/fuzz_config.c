/* fuzz_config.c - fuzz target of the config reader and of the settings that use it.
 *
 * For any input, the reader must fail with a message that starts with the name, or return distinct
 * keys with their lines. If the input is also JSON, the result must equal that of yyjson, without
 * nulls and repeated keys. Settings that resolve must resolve from their own texts to the same
 * digest. Violations abort.
 * Corpus: tests/fuzz/corpus/config
 */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "fuzz.h"
#include "run/config.h"
#include "run/settings.h"

/* Compares the values of a JSON document with ours, in order. */
static void examine_json(yyjson_val *value, const char *prefix, const bj_config *config, int *at) {
    char key[BJ_CONFIG_KEY_SIZE];
    size_t i, count;
    yyjson_val *name, *item;
    const char *dot = *prefix ? "." : "";
    if (yyjson_is_obj(value)) {
        yyjson_obj_foreach(value, i, count, name, item) {
            const int size = snprintf(key, sizeof key, "%s%s%s", prefix, dot, yyjson_get_str(name));
            demand(size > 0 && size < (int)sizeof key);
            demand(strlen(yyjson_get_str(name)) == yyjson_get_len(name));
            examine_json(item, key, config, at);
        }
    } else if (yyjson_is_arr(value)) {
        yyjson_arr_foreach(value, i, count, item) {
            demand(snprintf(key, sizeof key, "%s%s%zu", prefix, dot, i) < (int)sizeof key);
            examine_json(item, key, config, at);
        }
    } else {
        const bj_assignment ours = bj_config_at(config, (*at)++);
        demand(!yyjson_is_null(value) && ours.key && !strcmp(ours.key, prefix));
        if (yyjson_is_bool(value))
            demand(!strcmp(ours.value, yyjson_get_bool(value) ? "true" : "false"));
        else if (yyjson_is_raw(value)) demand(!strcmp(ours.value, yyjson_get_raw(value)));
        else demand(yyjson_is_str(value) && !strcmp(ours.value, yyjson_get_str(value)));
    }
}

static void examine_list(const bj_config *config, size_t lines) {
    for (int i = 0; i < bj_config_count(config); i++) {
        const bj_assignment a = bj_config_at(config, i);
        demand(a.key[0] && strlen(a.key) < BJ_CONFIG_KEY_SIZE && !strncmp(a.origin, "fuzz:", 5));
        const long line = strtol(a.origin + 5, NULL, 10);
        demand(line >= 1 && (size_t)line <= lines);
        demand(bj_config_get(config, a.key) == a.value); /* this is the first entry with that key */
    }
}

static void examine_settings(const bj_config *config) {
    static bj_assignment list[BJ_CONFIG_NODES + 1];
    static char text[BJ_SETTINGS_MAX][BJ_SETTING_TEXT_SIZE];
    char before[65], after[65];
    bj_settings s;
    bj_error err = {0};
    int count = 0;
    list[count++] = (bj_assignment){"arm", "fullset", "fuzz"};
    for (int i = 0; i < bj_config_count(config); i++) list[count++] = bj_config_at(config, i);
    const bj_status status = bj_settings_resolve(&s, NULL, list, count, &err);
    if (status != BJ_OK) {
        demand(status == BJ_EARG && err.code == status && err.message[0]);
        return;
    }
    demand(bj_settings_digest(before, &s, NULL) == BJ_OK);
    for (count = 0; count < bj_setting_count(); count++) {
        bj_setting_text(text[count], &s, count);
        list[count] = (bj_assignment){bj_setting_at(count).key, text[count], "text"};
    }
    demand(bj_settings_resolve(&s, NULL, list, count, NULL) == BJ_OK);
    demand(bj_settings_digest(after, &s, NULL) == BJ_OK && !strcmp(before, after));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_config *config;
    bj_error err = {0};
    const bj_status status = bj_config_parse(&config, (const char *)data, size, "fuzz", &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) {
        size_t lines = 2; /* including an empty line after the end */
        for (size_t i = 0; i < size; i++) lines += data[i] == '\n' || data[i] == '\r';
        examine_list(config, lines);
        examine_settings(config);
        yyjson_doc *doc = yyjson_read((const char *)data, size, YYJSON_READ_NUMBER_AS_RAW);
        if (doc) {
            int at = 0;
            demand(yyjson_is_obj(yyjson_doc_get_root(doc)));
            examine_json(yyjson_doc_get_root(doc), "", config, &at);
            demand(at == bj_config_count(config));
        }
        yyjson_doc_free(doc);
    } else {
        demand(status == BJ_EARG && err.code == status && !strncmp(err.message, "fuzz:", 5));
        demand(!config);
    }
    bj_config_free(config);
    demand(bj_alloc_live() == live);
    return 0;
}
