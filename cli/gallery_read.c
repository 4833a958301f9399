/* gallery_read.c - reads the manifest of a gallery; see gallery_manifest.h.
 *
 * Only fields that are needed for drawing are read. The type and range of each field are checked.
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "gallery_manifest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <yyjson.h>

enum { MOST_BYTES = 64 << 20 };

bj_status gallery_read_file(char **bytes, size_t *size, const char *path, bj_error *err) {
    struct stat info;
    FILE *from = stat(path, &info) == 0 && S_ISREG(info.st_mode) ? fopen(path, "rb") : NULL;
    *bytes = NULL;
    if (!from)
        return cli_error(err, BJ_EIO, "%s: cannot read the file: %s", path,
                         errno ? strerror(errno) : "not a regular file");
    *size = (size_t)info.st_size;
    if (info.st_size > MOST_BYTES) {
        fclose(from);
        return cli_error(err, BJ_EFORMAT, "%s: has %zu bytes, expected at most %d", path, *size,
                         MOST_BYTES);
    }
    *bytes = malloc(*size + 1);
    const int read = *bytes && fread(*bytes, 1, *size, from) == *size;
    fclose(from);
    if (read) {
        (*bytes)[*size] = '\0';
        return BJ_OK;
    }
    const bj_status status = *bytes ? cli_error(err, BJ_EIO, "%s: cannot read the file", path)
                                    : cli_error(err, BJ_ENOMEM, "out of memory");
    free(*bytes);
    *bytes = NULL;
    return status;
}

/* --------------------------------------------------------------------------------------- fields */

typedef struct reader {
    const char *path;
    bj_error *err;
    bj_status status; /* of the first field that is wrong */
} reader;

static void refuse(reader *r, const char *key, const char *expected) {
    if (r->status == BJ_OK)
        r->status =
            cli_error(r->err, BJ_EFORMAT, "%s: '%s' is missing or not %s", r->path, key, expected);
}

static void get_text(char *out, size_t room, reader *r, yyjson_val *object, const char *key) {
    yyjson_val *value = yyjson_obj_get(object, key);
    const size_t length = yyjson_get_len(value);
    *out = '\0';
    if (!yyjson_is_str(value) || length >= room || strlen(yyjson_get_str(value)) != length)
        refuse(r, key, "a text of the expected length");
    else memcpy(out, yyjson_get_str(value), length + 1);
}

static void get_digest(char out[GALLERY_DIGEST], reader *r, yyjson_val *object, const char *key) {
    get_text(out, GALLERY_DIGEST, r, object, key);
    if (strspn(out, "0123456789abcdef") != 64) refuse(r, key, "64 digits of a SHA-256");
}

static double get_number(reader *r, yyjson_val *object, const char *key, double least,
                         double most) {
    yyjson_val *value = yyjson_obj_get(object, key);
    const double number = yyjson_get_num(value);
    if (yyjson_is_num(value) && number >= least && number <= most) return number;
    refuse(r, key, "a number in its range");
    return least;
}

static yyjson_val *get_object(reader *r, yyjson_val *object, const char *key) {
    yyjson_val *value = yyjson_obj_get(object, key);
    if (!yyjson_is_obj(value)) refuse(r, key, "an object");
    return value;
}

static yyjson_val *get_list(int *count, reader *r, yyjson_val *object, const char *key, int most) {
    yyjson_val *value = yyjson_obj_get(object, key);
    *count = 0;
    if (!yyjson_is_arr(value) || yyjson_arr_size(value) > (size_t)most) refuse(r, key, "a list");
    else *count = (int)yyjson_arr_size(value);
    return value;
}

/* ---------------------------------------------------------------------------------------- parts */

static void read_model(gallery_model *model, reader *r, yyjson_val *from) {
    get_text(model->path, sizeof model->path, r, from, "path");
    get_digest(model->sha256, r, from, "sha256");
}

static void read_case(gallery_case *c, reader *r, yyjson_val *from) {
    get_text(c->scenario_id, sizeof c->scenario_id, r, from, "scenario_id");
    get_digest(c->map_sha256, r, from, "map_sha256");
    get_digest(c->areas_sha256, r, from, "areas_sha256");
    get_digest(c->observed_sha256, r, from, "observed_sha256");
}

static void read_panel(gallery_panel *p, reader *r, yyjson_val *from, int cases) {
    const double far = 1e6;
    p->place = (int)get_number(r, from, "place", 1, cases) - 1;
    p->x = get_number(r, from, "x", 0, far);
    p->y = get_number(r, from, "y", 0, far);
    p->width = (int)get_number(r, from, "width", 1, far);
    p->height = (int)get_number(r, from, "height", 1, far);
    p->window.b.x0 = get_number(r, from, "back", -far, far);
    p->window.b.y1 = get_number(r, from, "left", -far, far);
    p->window.scale = get_number(r, from, "pixels_per_meter", 1e-6, far);
}

/* A name that stays in the folder. */
static void read_file_name(char name[GALLERY_NAME], reader *r, yyjson_val *from) {
    char file[GALLERY_NAME + 4];
    get_text(file, sizeof file, r, from, "file");
    const size_t length = strspn(file, "abcdefghijklmnopqrstuvwxyz0123456789_");
    *name = '\0';
    if (!length || strcmp(file + length, ".svg") || length >= GALLERY_NAME)
        refuse(r, "file", "a file name with the suffix .svg");
    else memcpy(name, file, length), name[length] = '\0';
}

static void read_image(gallery_image *image, reader *r, yyjson_val *from, int cases) {
    yyjson_val *legend = get_object(r, from, "legend");
    yyjson_val *panels = get_list(&image->panel_count, r, from, "panels", 2 * BJ_GALLERY_CASES);
    read_file_name(image->name, r, from);
    get_digest(image->sha256, r, from, "sha256");
    image->legend.x = get_number(r, legend, "x", 0, 1e6);
    image->legend.y = get_number(r, legend, "y", 0, 1e6);
    image->legend.unit = get_number(r, legend, "unit", 1e-3, 1e3);
    image->panels = calloc((size_t)image->panel_count + 1, sizeof *image->panels);
    if (!image->panels) {
        image->panel_count = 0;
        if (r->status == BJ_OK) r->status = cli_error(r->err, BJ_ENOMEM, "out of memory");
    }
    for (int i = 0; i < image->panel_count; i++)
        read_panel(&image->panels[i], r, yyjson_arr_get(panels, (size_t)i), cases);
}

static void read_manifest(gallery_manifest *m, reader *r, yyjson_val *root) {
    yyjson_val *models = get_object(r, root, "models"), *data = get_object(r, root, "data");
    for (int i = 0; i < GALLERY_MODELS; i++)
        read_model(&m->model[i], r, get_object(r, models, gallery_model_name(i)));
    get_text(m->version, sizeof m->version, r, root, "version");
    get_text(m->isa, sizeof m->isa, r, root, "isa");
    m->seed = yyjson_get_uint(yyjson_obj_get(root, "seed"));
    m->wanted = (int)get_number(r, get_object(r, root, "counts"), "wanted", 1, BJ_GALLERY_CASES);
    m->scenes = (int64_t)get_number(r, data, "scenes", 0, 2147483647);
    get_digest(m->data_sha256, r, data, "observed_sha256");
    yyjson_val *cases = get_list(&m->case_count, r, root, "cases", BJ_GALLERY_CASES);
    for (int i = 0; i < m->case_count; i++)
        read_case(&m->cases[i], r, yyjson_arr_get(cases, (size_t)i));
    int count;
    yyjson_val *images = get_list(&count, r, root, "images", GALLERY_IMAGES);
    for (int i = 0; i < count; i++, m->image_count++)
        read_image(&m->images[i], r, yyjson_arr_get(images, (size_t)i), m->case_count);
}

static bj_status parse(gallery_manifest *m, const char *path, char *text, size_t size,
                       bj_error *err) {
    reader r = {path, err, BJ_OK};
    yyjson_read_err why;
    yyjson_doc *doc = yyjson_read_opts(text, size, 0, NULL, &why);
    if (!doc)
        return cli_error(err,
                         why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION ? BJ_ENOMEM : BJ_EFORMAT,
                         "%s: byte %zu: %s", path, why.pos, why.msg);
    yyjson_val *root = yyjson_doc_get_root(doc);
    const char *schema = yyjson_get_str(yyjson_obj_get(root, "schema"));
    if (!schema || strcmp(schema, GALLERY_SCHEMA))
        r.status = cli_error(err, schema ? BJ_EVERSION : BJ_EFORMAT,
                             "%s: schema is '%.60s', expected '" GALLERY_SCHEMA "'", path,
                             schema ? schema : "missing");
    else read_manifest(m, &r, root);
    yyjson_doc_free(doc);
    return r.status;
}

bj_status gallery_manifest_read(gallery_manifest *m, const char *folder, bj_error *err) {
    char path[CLI_PATH_SIZE], *text = NULL;
    size_t size = 0;
    memset(m, 0, sizeof *m);
    bj_status status = cli_path(path, folder, GALLERY_MANIFEST, err);
    if (status == BJ_OK) status = gallery_read_file(&text, &size, path, err);
    if (status == BJ_OK) status = bj_memory_digest(m->sha256, text, size, err);
    if (status == BJ_OK) status = parse(m, path, text, size, err);
    free(text);
    if (status != BJ_OK) gallery_manifest_free(m);
    return status;
}
