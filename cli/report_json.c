/* report_json.c - see report_json.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "report_json.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_BYTES = 64 << 20 };

bj_status report_json_open(yyjson_doc **out, const char *folder, const char *name, bj_error *err) {
    char path[CLI_PATH_SIZE];
    struct stat info;
    yyjson_read_err why;
    *out = NULL;
    const bj_status status = cli_path(path, folder, name, err);
    if (status != BJ_OK) return status;
    if (stat(path, &info) != 0) {
        if (errno == ENOENT) return BJ_OK;
        return cli_error(err, BJ_EIO, "%s: cannot read the file: %s", path, strerror(errno));
    }
    if (!S_ISREG(info.st_mode) || info.st_size > MOST_BYTES)
        return cli_error(err, BJ_EFORMAT, "%s: expected a file of at most %d bytes", path,
                         MOST_BYTES);
    *out = yyjson_read_file(path, 0, NULL, &why);
    if (!*out)
        return cli_error(err,
                         why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION ? BJ_ENOMEM : BJ_EFORMAT,
                         "%s: byte %zu: %s", path, why.pos, why.msg);
    if (yyjson_is_obj(yyjson_doc_get_root(*out))) return BJ_OK;
    yyjson_doc_free(*out);
    *out = NULL;
    return cli_error(err, BJ_EFORMAT, "%s: expected an object", path);
}

void report_json_text(char *out, size_t room, yyjson_val *object, const char *key) {
    const char *text = yyjson_get_str(yyjson_obj_get(object, key));
    snprintf(out, room, "%s", text ? text : "");
}

double report_json_number(yyjson_val *object, const char *key) {
    yyjson_val *value = yyjson_obj_get(object, key);
    return yyjson_is_num(value) ? yyjson_get_num(value) : NAN;
}

bj_status report_json_list(yyjson_val **out, yyjson_val *object, const char *key, size_t most,
                           const char *file, bj_error *err) {
    *out = yyjson_obj_get(object, key);
    if (!yyjson_is_arr(*out))
        return cli_error(err, BJ_EFORMAT, "%s: '%s' is %s, expected a list", file, key,
                         *out ? yyjson_get_type_desc(*out) : "missing");
    if (yyjson_arr_size(*out) > most)
        return cli_error(err, BJ_EFORMAT, "%s: '%s' has %zu items, expected at most %zu", file, key,
                         yyjson_arr_size(*out), most);
    return BJ_OK;
}
