/* gallery_draw.c - bjepa gallery draw: verifies the locked cases, then adds the true futures.
 *
 * Invariants
 *   1. No future can be read before the two model files, the observed part of all scenes, the maps
 *      of the cases and the bytes of every picture were compared with the manifest, and the manifest
 *      was computed again and has the same bytes.
 *   2. The pictures with hindsight are the locked bytes with one line put in.
 *   3. atlas_hindsight.svg is the last file that appears.
 * Tests: tests/cli/gallery.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "checkpoint.h"
#include "gallery.h"
#include "gallery_plan.h"
#include "picture.h"

static const char verb[] = "gallery draw";

typedef struct draw_options {
    const char *folder, *data;
    const char *model[GALLERY_MODELS]; /* where they are now; NULL: where they were */
    int png, pdf, quiet;
} draw_options;

static int parse(draw_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "CACHE", &o->data, 0, 0,
         "cache of the scenes, including their futures"},
        {"branch", 0, CLI_TEXT, "CHECKPOINT", &o->model[BJ_GALLERY_BRANCH], 0, 0,
         "new path of the model with several branches, if it was moved"},
        {"point", 0, CLI_TEXT, "CHECKPOINT", &o->model[BJ_GALLERY_POINT], 0, 0,
         "new path of the point model, if it was moved"},
        {"png", 0, CLI_FLAG, NULL, &o->png, 0, 0, "also write the two views as PNG"},
        {"pdf", 0, CLI_FLAG, NULL, &o->pdf, 0, 0, "also write the two views as PDF"},
        {"quiet", 'q', CLI_FLAG, NULL, &o->quiet, 0, 0, "do not list the files"},
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "verify the locked cases, then add the outcome",
        .operands = "GALLERY",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa gallery draw gallery --data val.bjc\n"
                    "bjepa gallery draw gallery --data val.bjc --png --pdf\n",
        .options = options,
    };
    const int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE) return code;
    if (!o->data) return cli_misuse(verb, "--data CACHE is missing");
    o->folder = argv[1];
    return CLI_CONTINUE;
}

/* ------------------------------------------------------------------------------------- verifying
 */

static bj_status compare(const char *what, const char *name, const char *found, const char *locked,
                         bj_error *err) {
    if (!strcmp(found, locked)) return BJ_OK;
    return cli_error(err, BJ_EMISMATCH,
                     "%s: %s changed since the gallery was locked: "
                     "found SHA-256 %s, expected %s",
                     name, what, found, locked);
}

static bj_status check_there(const char *path, const char *what, const char *hint, bj_error *err) {
    struct stat info;
    if (stat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR)) return BJ_OK;
    return cli_error(err, BJ_EMISMATCH, "%s: %s is missing%s", path, what, hint);
}

static const char *model_path(const gallery_manifest *m, const draw_options *o, int i) {
    return o->model[i] ? o->model[i] : m->model[i].path;
}

static bj_status verify_models(const gallery_manifest *m, const draw_options *o, bj_error *err) {
    for (int i = 0; i < GALLERY_MODELS; i++) {
        char path[CLI_PATH_SIZE], found[GALLERY_DIGEST], what[32], hint[64];
        snprintf(what, sizeof what, "the %s model", gallery_model_name(i));
        const char *given = model_path(m, o, i);
        snprintf(hint, sizeof hint, "; give its new path with --%s", gallery_model_name(i));
        bj_status status = check_there(given, what, hint, err);
        if (status == BJ_OK) status = cli_checkpoint_path(path, given, err);
        if (status == BJ_OK) status = bj_file_digest(found, path, err);
        if (status == BJ_OK) status = compare(what, path, found, m->model[i].sha256, err);
        if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

static bj_status verify_case(const gallery_case *c, const bj_cache *blind, const char *data,
                             bj_error *err) {
    char found[GALLERY_DIGEST], name[CLI_PATH_SIZE + 128];
    snprintf(name, sizeof name, "%s: scenario '%s'", data, c->scenario_id);
    const int64_t scene = bj_cache_find(blind, c->scenario_id);
    if (scene < 0) return cli_error(err, BJ_EMISMATCH, "%.300s is missing", name);
    const bj_scene_info info = bj_cache_info(blind, scene);
    for (int i = 0; i < 32; i++) snprintf(found + 2 * i, 3, "%02x", info.map_sha256[i]);
    bj_status status = compare("its raw map", name, found, c->map_sha256, err);
    if (status == BJ_OK) status = bj_gallery_areas(found, blind, info.map, err);
    if (status == BJ_OK) status = compare("its drivable area", name, found, c->areas_sha256, err);
    if (status == BJ_OK) status = bj_gallery_observed(found, blind, scene, err);
    if (status == BJ_OK)
        status = compare("the observed part of the scene", name, found, c->observed_sha256, err);
    return status;
}

static bj_status verify_data(const gallery_manifest *m, const char *data, bj_error *err) {
    char found[GALLERY_DIGEST];
    bj_cache *blind = NULL;
    bj_status status = bj_cache_open(&blind, data, 1, err);
    if (status == BJ_OK && bj_cache_count(blind) < m->scenes)
        status = cli_error(err, BJ_EMISMATCH,
                           "%s: has %lld scenes, expected at least %lld, as in the locked gallery",
                           data, (long long)bj_cache_count(blind), (long long)m->scenes);
    for (int i = 0; i < m->case_count && status == BJ_OK; i++)
        status = verify_case(&m->cases[i], blind, data, err);
    if (status == BJ_OK) status = bj_gallery_digest_of(found, blind, m->scenes, err);
    if (status == BJ_OK)
        status = compare("the observed part of its scenes", data, found, m->data_sha256, err);
    bj_cache_free(blind);
    return status;
}

/* A locked picture, and where hindsight goes. */
typedef struct locked {
    char *bytes;
    size_t size, at;
} locked;

static bj_status open_locked(locked *l, const gallery_image *image, const char *folder,
                             bj_error *err) {
    char path[CLI_PATH_SIZE], name[GALLERY_NAME + 8], found[GALLERY_DIGEST];
    snprintf(name, sizeof name, "%s.svg", image->name);
    bj_status status = cli_path(path, folder, name, err);
    if (status == BJ_OK) status = check_there(path, "the picture", "", err);
    if (status == BJ_OK) status = gallery_read_file(&l->bytes, &l->size, path, err);
    if (status == BJ_OK) status = bj_memory_digest(found, l->bytes, l->size, err);
    if (status == BJ_OK) status = compare("the picture", path, found, image->sha256, err);
    if (status != BJ_OK) return status;
    const char *labels = strstr(l->bytes, GALLERY_LABELS);
    if (!labels) return cli_error(err, BJ_EFORMAT, "%s: has no placeholder for the outcome", path);
    l->at = (size_t)(labels - l->bytes);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ manifest */

/* Fails with the first line in which the two texts differ. */
static bj_status fail_line(const char *path, const char *found, const char *expected,
                           bj_error *err) {
    int line = 1;
    for (; *found && *found == *expected; found++, expected++) line += *found == '\n';
    while (found[-1] != '\n' && line > 1) found--, expected--;
    return cli_error(err, BJ_EMISMATCH,
                     "%s: line %d changed since the gallery was locked: found '%.*s', expected "
                     "'%.*s'",
                     path, line, (int)strcspn(found, "\n"), found, (int)strcspn(expected, "\n"),
                     expected);
}

/* Writes the manifest to a temporary file and reads it back. The caller frees the text. */
static bj_status manifest_text(char **text, const gallery_manifest *m, const bj_gallery *gallery,
                               const bj_gallery_options *options, bj_error *err) {
    FILE *file = tmpfile();
    if (file) gallery_manifest_put(file, m, gallery, options);
    const long size = file && !ferror(file) ? ftell(file) : -1;
    *text = size < 0 ? NULL : malloc((size_t)size + 1);
    if (*text) rewind(file);
    const int read = *text && fread(*text, 1, (size_t)size, file) == (size_t)size;
    if (read) (*text)[size] = '\0';
    if (file) fclose(file);
    if (read) return BJ_OK;
    return size < 0 || *text ? cli_error(err, BJ_EIO, "cannot write a temporary file: %s",
                                         strerror(errno))
                             : cli_error(err, BJ_ENOMEM, "out of memory");
}

static bj_status compare_manifest(const gallery_manifest *again, const gallery_manifest *m,
                                  const bj_gallery *gallery, const bj_gallery_options *options,
                                  const char *folder, bj_error *err) {
    char path[CLI_PATH_SIZE], found[GALLERY_DIGEST], *expected = NULL, *file = NULL;
    size_t size;
    bj_status status = manifest_text(&expected, again, gallery, options, err);
    if (status == BJ_OK) status = bj_memory_digest(found, expected, strlen(expected), err);
    if (status == BJ_OK && strcmp(found, m->sha256)) {
        status = cli_path(path, folder, GALLERY_MANIFEST, err);
        if (status == BJ_OK) status = gallery_read_file(&file, &size, path, err);
        if (status == BJ_OK) status = fail_line(path, file, expected, err);
    }
    free(expected);
    free(file);
    return status;
}

/* Screens the scenes again, chooses the cases again, and compares the result with the manifest. The
 * digests of the pictures are taken from the manifest, because open_locked compared them. */
static bj_status verify_manifest(const gallery_manifest *m, const draw_options *o, bj_error *err) {
    static gallery_manifest again;
    static gallery_plan plan;
    const bj_gallery_options options = {
        .cases = m->wanted, .seed = m->seed, .limit = (int)m->scenes};
    bj_model *model[GALLERY_MODELS] = {NULL, NULL};
    bj_gallery *gallery = NULL;
    bj_status status = BJ_OK;
    for (int i = 0; i < GALLERY_MODELS && status == BJ_OK; i++) {
        status = gallery_plan_model(&model[i], &again.model[i], model_path(m, o, i), i, err);
        memcpy(again.model[i].path, m->model[i].path, sizeof again.model[i].path);
    }
    if (status == BJ_OK)
        status = bj_gallery_create(&gallery, o->data, model[BJ_GALLERY_BRANCH],
                                   model[BJ_GALLERY_POINT], &options, err);
    if (status == BJ_OK && strcmp(bj_gallery_isa(gallery), m->isa))
        status = cli_error(err, BJ_EMISMATCH,
                           "%s: was locked with the instruction set '%s', but this process uses "
                           "'%s'\nhint: set the environment variable BJ_ISA=%s",
                           o->folder, m->isa, bj_gallery_isa(gallery), m->isa);
    if (status == BJ_OK) {
        memcpy(again.version, m->version, sizeof again.version);
        gallery_plan_sheets(&plan, &again, gallery);
    }
    for (int i = 0; i < plan.count && status == BJ_OK; i++) {
        status = gallery_plan_image(&again.images[again.image_count++], &plan, i, err);
        memcpy(again.images[i].sha256, m->images[i].sha256, GALLERY_DIGEST);
    }
    if (status == BJ_OK) status = compare_manifest(&again, m, gallery, &options, o->folder, err);
    for (int i = 0; i < GALLERY_MODELS; i++) bj_model_free(model[i]);
    bj_gallery_free(gallery);
    gallery_manifest_free(&again);
    return status;
}

/* -------------------------------------------------------------------------------------- drawing */

typedef struct drawing {
    const draw_options *o;
    const gallery_manifest *m;
    locked pictures[GALLERY_IMAGES];
    const float *futures[BJ_GALLERY_CASES]; /* NULL: unknown */
    int F;
} drawing;

/* hindsight is 0 for the locked view, or 1 with the true future. */
static bj_status write_view(const drawing *d, int index, int hindsight, const char *format,
                            bj_error *err) {
    const gallery_image *image = &d->m->images[index];
    const locked *l = &d->pictures[index];
    char path[CLI_PATH_SIZE], name[GALLERY_NAME + 24];
    cli_file file;
    snprintf(name, sizeof name, "%s%s.%s", image->name, hindsight ? "_hindsight" : "", format);
    bj_status status = cli_path(path, d->o->folder, name, err);
    if (status == BJ_OK) status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    fwrite(l->bytes, 1, l->at, file.stream);
    if (hindsight)
        gallery_svg_hindsight(file.stream, image->panels, image->panel_count, &image->legend,
                              d->futures, d->F);
    fwrite(l->bytes + l->at, 1, l->size - l->at, file.stream);
    status = cli_picture_commit(&file, err);
    if (status == BJ_OK && !d->o->quiet) puts(path);
    return status;
}

static bj_status write_image(const drawing *d, int index, bj_error *err) {
    const struct {
        const char *format;
        int wanted;
    } formats[] = {{"png", d->o->png}, {"pdf", d->o->pdf}};
    bj_status status = BJ_OK;
    for (int i = 0; i < 4 && status == BJ_OK; i++)
        if (formats[i / 2].wanted) status = write_view(d, index, i % 2, formats[i / 2].format, err);
    return status == BJ_OK ? write_view(d, index, 1, "svg", err) : status;
}

static bj_status draw(drawing *d, bj_error *err) {
    bj_cache *seeing = NULL;
    int unknown = 0;
    bj_status status = bj_cache_open(&seeing, d->o->data, 0, err);
    if (status != BJ_OK) return status;
    d->F = bj_cache_arch(seeing).fut;
    for (int i = 0; i < d->m->case_count && status == BJ_OK; i++) {
        const int64_t scene = bj_cache_find(seeing, d->m->cases[i].scenario_id);
        if (scene >= 0) {
            status = bj_cache_check_scene(seeing, scene, err);
            d->futures[i] = bj_cache_floats(seeing, scene).future;
        }
        unknown += !d->futures[i];
    }
    if (status == BJ_OK && unknown)
        fprintf(stderr, "bjepa %s: note: the cache has no future for %d of %d cases\n", verb,
                unknown, d->m->case_count);
    for (int i = 0; i < d->m->image_count && status == BJ_OK; i++) status = write_image(d, i, err);
    bj_cache_free(seeing);
    return status;
}

int cmd_gallery_draw(int argc, char **argv) {
    static gallery_manifest manifest;
    static draw_options o;
    static drawing d = {.o = &o, .m = &manifest};
    bj_error err = {0};
    const int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    bj_status status = gallery_manifest_read(&manifest, o.folder, &err);
    if (status == BJ_OK) status = verify_models(&manifest, &o, &err);
    if (status == BJ_OK) status = verify_data(&manifest, o.data, &err);
    for (int i = 0; i < manifest.image_count && status == BJ_OK; i++)
        status = open_locked(&d.pictures[i], &manifest.images[i], o.folder, &err);
    if (status == BJ_OK) status = verify_manifest(&manifest, &o, &err);
    if (status == BJ_OK) status = draw(&d, &err);
    for (int i = 0; i < manifest.image_count; i++) free(d.pictures[i].bytes);
    gallery_manifest_free(&manifest);
    return status == BJ_OK ? CLI_OK : cli_fail(verb, &err);
}
