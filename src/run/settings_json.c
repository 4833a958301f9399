/* settings_json.c - writes config.resolved.json with every setting, nested at the dots of the keys.
 *
 *   {"arm": "fullset", "recipe": "paper", "seed": 0, "model": {"atoms": 6, ...}, ...}
 *
 * Keys have the order of settings.def, and numbers are formatted by bj_setting_text. bj_config_read
 * can read the file, because JSON is a subset of YAML. Test: tests/run/test_settings.c
 */
#include <string.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/json.h"
#include "run/settings.h"

/* Returns the object that contains a key. Creates the object if necessary. Sets *name to the last
 * part of the key. Keys have at most one dot. */
static yyjson_mut_val *group_of(yyjson_mut_doc *doc, yyjson_mut_val *root, const char **name) {
    const char *dot = strchr(*name, '.');
    if (!dot) return root;
    yyjson_mut_val *group = yyjson_mut_obj_getn(root, *name, (size_t)(dot - *name));
    if (!group) {
        yyjson_mut_val *key = yyjson_mut_strncpy(doc, *name, (size_t)(dot - *name));
        group = yyjson_mut_obj(doc);
        if (!yyjson_mut_obj_add(root, key, group)) return NULL;
    }
    *name = dot + 1;
    return group;
}

static int add_all(yyjson_mut_doc *doc, const bj_settings *settings) {
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_mut_doc_set_root(doc, root);
    for (int i = 0; i < bj_setting_count(); i++) {
        const bj_setting_info info = bj_setting_at(i);
        char text[BJ_SETTING_TEXT_SIZE];
        const char *name = info.key;
        bj_setting_text(text, settings, i);
        yyjson_mut_val *group = group_of(doc, root, &name);
        yyjson_mut_val *value = info.type == BJ_SETTING_TEXT ? yyjson_mut_strcpy(doc, text)
                                                             : yyjson_mut_rawcpy(doc, text);
        if (!group || !yyjson_mut_obj_add(group, yyjson_mut_strcpy(doc, name), value)) return 0;
    }
    return 1;
}

bj_status bj_settings_write(const bj_settings *settings, const char *path, bj_error *err) {
    if (!settings || !path) return BJ_FAIL(err, BJ_EARG, "settings: settings or path are missing");
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&bj_json_alc);
    yyjson_write_err problem = {0};
    size_t size = 0;
    char *text = NULL;
    if (doc && add_all(doc, settings))
        text =
            yyjson_mut_write_opts(doc, YYJSON_WRITE_PRETTY_TWO_SPACES | YYJSON_WRITE_NEWLINE_AT_END,
                                  &bj_json_alc, &size, &problem);
    const bj_status status =
        text ? bj_file_write(path, text, size, err)
             : BJ_FAIL(err, problem.code == YYJSON_WRITE_ERROR_INVALID_STRING ? BJ_EARG : BJ_ENOMEM,
                       "%s: cannot put the settings into JSON: %s", path,
                       problem.msg ? problem.msg : "out of memory");
    bj_free(text);
    yyjson_mut_doc_free(doc);
    return status;
}
