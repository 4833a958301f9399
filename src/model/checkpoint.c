/* checkpoint.c - see checkpoint.h.
 *
 * The digest is the SHA-256 over, in this order,
 *   each metadata entry except `sha256`, sorted by key:  key 0 value 0
 *   each tensor, sorted by name:                         name 0 dtype 0 rank shape... data
 * where 0 is a zero byte. The rank and the sizes are 8 bytes each, little-endian. Keys and names
 * are sorted bytewise. The digest depends only on the content, so it does not change if another
 * program rewrites the file.
 */
#include "model/checkpoint.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "model/model.h"

enum { FORMAT_VERSION = 1 };
static const char digest_key[] = BJ_CHECKPOINT_DIGEST;

/* --------------------------------------------------------------------------------- architecture */

static const struct {
    const char *name;
    size_t offset;
} sizes[] = {
#define SIZE(field)                                                                                \
    { #field, offsetof(bj_arch, field) }
    SIZE(obs),
    SIZE(fut),
    SIZE(neighbors),
    SIZE(polylines),
    SIZE(points),
    SIZE(embed),
    SIZE(heads),
    SIZE(token_hidden),
    SIZE(latent),
    SIZE(proj_hidden),
    SIZE(atoms),
    SIZE(atom_hidden),
    SIZE(router_hidden),
    SIZE(decoder_hidden),
    SIZE(trunk),
    /* Only for state and image encoders: */
    SIZE(state),
    SIZE(waves),
    SIZE(octaves),
    SIZE(height),
    SIZE(width),
    SIZE(channels),
    SIZE(patch_in),
    SIZE(patch_out),
    SIZE(action),
    SIZE(noise),
    SIZE(noise_hidden),
#undef SIZE
};
enum { SCENE_SIZES = 15, SIZES = sizeof sizes / sizeof *sizes };
_Static_assert(BJ_ARCH_FACTS == SIZES + 5, "kind, scales, weighting, encoder, sizes and dt");
_Static_assert(offsetof(bj_arch, trunk) == (SCENE_SIZES + 2) * sizeof(int) &&
                   sizeof(bj_arch) ==
                       offsetof(bj_arch, state) + (SIZES - SCENE_SIZES) * sizeof(int),
               "a size of bj_arch is not in the list");
_Static_assert((int)BJ_ARCH_FACT_SIZE >= (int)BJ_JSON_NUMBER, "dt must fit");

static const char *const kinds[] = {
    [BJ_MODEL_BRANCH] = "branch",     [BJ_MODEL_OUTPUT_ONLY] = "outputonly",
    [BJ_MODEL_FUSED] = "fused",       [BJ_MODEL_VARIATIONAL] = "variational",
    [BJ_MODEL_CODEBOOK] = "codebook", NULL};
static const char *const encoders[] = {
    [BJ_ENCODER_SCENE] = "scene", [BJ_ENCODER_STATE] = "state", [BJ_ENCODER_IMAGE] = "image", NULL};
static const char *const scales[] = {[BJ_SCALES_FIXED] = "fixed",
                                     [BJ_SCALES_GLOBAL] = "global",
                                     [BJ_SCALES_COMPONENT] = "component",
                                     NULL};

static const char *const weightings[] = {
    [BJ_WEIGHTS_ROUTER] = "router", [BJ_WEIGHTS_UNIFORM] = "uniform", NULL};

bj_status bj_arch_to_facts(bj_arch_facts *out, const bj_arch *arch, bj_error *err) {
    BJ_TRY(bj_arch_check(arch, err));
    bj_fact *fact = out->fact;
    *fact++ = (bj_fact){"model", kinds[arch->kind]};
    *fact++ = (bj_fact){"scales", scales[arch->scales]};
    *fact++ = (bj_fact){"weighting", weightings[arch->weighting]};
    const int scene = arch->encoder == BJ_ENCODER_SCENE;
    for (int i = 0; i < (scene ? SCENE_SIZES : SIZES); i++) {
        int value;
        memcpy(&value, (const char *)arch + sizes[i].offset, sizeof value);
        snprintf(out->text[i], sizeof out->text[i], "%d", value);
        *fact++ = (bj_fact){sizes[i].name, out->text[i]};
    }
    if (!bj_json_number_write(out->text[SIZES], arch->dt))
        return BJ_FAIL(err, BJ_EARG, "architecture: dt cannot be written");
    *fact++ = (bj_fact){"dt", out->text[SIZES]};
    if (!scene) *fact++ = (bj_fact){"encoder", encoders[arch->encoder]};
    out->count = (int)(fact - out->fact);
    return BJ_OK;
}

/* Copies a metadata value for an error message, truncated and without control characters. */
enum { SHOWN_SIZE = 65 };

static const char *shown(char text[SHOWN_SIZE], const char *value) {
    int i = 0;
    for (; value[i] && i < SHOWN_SIZE - 1; i++)
        text[i] = (unsigned char)value[i] < 0x20 || value[i] == 0x7f ? '?' : value[i];
    text[i] = '\0';
    return text;
}

bj_status bj_checkpoint_metadata(const char **out, const bj_safetensors *st, const char *key,
                                 bj_error *err) {
    *out = bj_safetensors_metadata(st, key);
    return *out ? BJ_OK
                : BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%s' is missing", bj_safetensors_path(st),
                          key);
}

bj_status bj_checkpoint_refuse(bj_error *err, bj_status code, const bj_safetensors *st,
                               const char *key, const char *value, const char *expected) {
    char text[SHOWN_SIZE];
    return BJ_FAIL(err, code, "%s: metadata '%s' is '%s', expected %s", bj_safetensors_path(st),
                   key, shown(text, value), expected);
}

static bj_status find_word(int *out, const bj_safetensors *st, const char *key,
                           const char *const *words, const char *expected, bj_error *err) {
    const char *value;
    BJ_TRY(bj_checkpoint_metadata(&value, st, key, err));
    for (*out = 0; words[*out]; ++*out)
        if (!strcmp(value, words[*out])) return BJ_OK;
    return bj_checkpoint_refuse(err, BJ_EFORMAT, st, key, value, expected);
}

bj_status bj_arch_from_metadata(bj_arch *out, const bj_safetensors *st, bj_error *err) {
    const char *value;
    int kind, scale, weighting = BJ_WEIGHTS_ROUTER, encoder = BJ_ENCODER_SCENE;
    memset(out, 0, sizeof *out);
    BJ_TRY(find_word(&kind, st, "model", kinds,
                     "branch, outputonly, fused, variational or codebook", err));
    if (bj_safetensors_metadata(st, "encoder")) /* missing for scene encoders */
        BJ_TRY(find_word(&encoder, st, "encoder", encoders, "scene, state or image", err));
    BJ_TRY(find_word(&scale, st, "scales", scales, "fixed, global or component", err));
    if (bj_safetensors_metadata(st, "weighting")) /* missing in older files */
        BJ_TRY(find_word(&weighting, st, "weighting", weightings, "router or uniform", err));
    out->kind = (bj_model_kind)kind;
    out->weighting = (bj_weighting)weighting;
    out->scales = (bj_scales)scale;
    out->encoder = (bj_encoder_kind)encoder;
    for (int i = 0; i < (encoder == BJ_ENCODER_SCENE ? SCENE_SIZES : SIZES); i++) {
        BJ_TRY(bj_checkpoint_metadata(&value, st, sizes[i].name, err));
        const size_t digits = strspn(value, "0123456789");
        if (!digits || digits > 9 || value[digits])
            return bj_checkpoint_refuse(err, BJ_EFORMAT, st, sizes[i].name, value,
                                        "an integer");
        const int number = atoi(value);
        memcpy((char *)out + sizes[i].offset, &number, sizeof number);
    }
    BJ_TRY(bj_checkpoint_metadata(&value, st, "dt", err));
    if (!bj_json_number_read(&out->dt, value))
        return bj_checkpoint_refuse(err, BJ_EFORMAT, st, "dt", value, "a number");
    bj_error detail;
    if (bj_arch_check(out, &detail) != BJ_OK)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %s", bj_safetensors_path(st), detail.message);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- digest */

static int compare_names(const void *a, const void *b) {
    const bj_tensor_view *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static int compare_keys(const void *a, const void *b) {
    const bj_fact *x = a, *y = b;
    return strcmp(x->key, y->key);
}

static void hash_text(bj_sha256 *hash, const char *text) {
    bj_sha256_update(hash, text, strlen(text) + 1);
}

static void hash_number(bj_sha256 *hash, uint64_t number) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(number >> 8 * i);
    bj_sha256_update(hash, bytes, sizeof bytes);
}

static void hash_tensor(bj_sha256 *hash, const bj_tensor_view *view) {
    size_t bytes = bj_dtype_size(view->dtype);
    hash_text(hash, view->name);
    hash_text(hash, bj_dtype_name(view->dtype));
    hash_number(hash, (uint64_t)view->rank);
    for (int d = 0; d < view->rank; d++) {
        hash_number(hash, (uint64_t)view->shape[d]);
        bytes *= (size_t)view->shape[d];
    }
    bj_sha256_update(hash, view->data, bytes);
}

/* Computes the digest. Sorts both lists in place. */
static void digest(char hex[BJ_SHA256_HEX], bj_tensor_view *tensors, int count, bj_fact *facts,
                   int facts_count) {
    bj_sha256 hash;
    if (count) qsort(tensors, (size_t)count, sizeof *tensors, compare_names);
    if (facts_count) qsort(facts, (size_t)facts_count, sizeof *facts, compare_keys);
    bj_sha256_init(&hash);
    for (int i = 0; i < facts_count; i++) {
        if (!strcmp(facts[i].key, digest_key)) continue;
        hash_text(&hash, facts[i].key);
        hash_text(&hash, facts[i].value);
    }
    for (int i = 0; i < count; i++) hash_tensor(&hash, &tensors[i]);
    bj_sha256_final(&hash, hex);
}

bj_status bj_checkpoint_check_digest(const bj_safetensors *st, bj_error *err) {
    const int count = bj_safetensors_count(st), facts_count = bj_safetensors_metadata_count(st);
    bj_tensor_view *tensors = NULL;
    bj_fact *facts = NULL;
    const char *stored;
    char hex[BJ_SHA256_HEX], text[SHOWN_SIZE];
    bj_status status;
    BJ_TRY(bj_checkpoint_metadata(&stored, st, digest_key, err));
    BJ_GOTO(status, done, BJ_ALLOC(tensors, (size_t)count, err));
    BJ_GOTO(status, done, BJ_ALLOC(facts, (size_t)facts_count, err));
    for (int i = 0; i < count; i++) tensors[i] = *bj_safetensors_at(st, i);
    for (int i = 0; i < facts_count; i++) facts[i] = bj_safetensors_metadata_at(st, i);
    digest(hex, tensors, count, facts, facts_count);
    if (strcmp(hex, stored))
        status = BJ_FAIL(err, BJ_EFORMAT,
                         "%s: the checksum of the content is %s, expected %s; "
                         "the file was changed",
                         bj_safetensors_path(st), hex, shown(text, stored));
done:
    bj_free(tensors);
    bj_free(facts);
    return status;
}

/* Describes the tensors as views for the writer. The caller frees *out with bj_free. */
static bj_status views_of(bj_tensor_view **out, const bj_tensor *tensors, int count,
                          bj_error *err) {
    BJ_TRY(BJ_ALLOC(*out, (size_t)count, err));
    for (int i = 0; i < count; i++) {
        const bj_tensor *t = &tensors[i];
        (*out)[i] = (bj_tensor_view){.name = t->name,
                                     .dtype = BJ_DTYPE_REAL,
                                     .rank = t->rank,
                                     .shape = {t->shape[0], t->shape[1]},
                                     .count = t->size,
                                     .bytes = t->size * sizeof(bj_real),
                                     .data = t->data};
    }
    return BJ_OK;
}

bj_status bj_checkpoint_digest(char hex[BJ_SHA256_HEX], const bj_tensor *tensors, int count,
                               bj_error *err) {
    bj_tensor_view *views;
    BJ_TRY(views_of(&views, tensors, count, err));
    digest(hex, views, count, NULL, 0);
    bj_free(views);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------ any checkpoint */

bj_status bj_checkpoint_check_format(const bj_safetensors *st, const char *format, bj_error *err) {
    const char *value;
    BJ_TRY(bj_checkpoint_metadata(&value, st, "format", err));
    if (strcmp(value, format))
        return bj_checkpoint_refuse(err, BJ_EFORMAT, st, "format", value, format);
    BJ_TRY(bj_checkpoint_metadata(&value, st, "format_version", err));
    char version[16], text[SHOWN_SIZE];
    snprintf(version, sizeof version, "%d", FORMAT_VERSION);
    if (strcmp(value, version))
        return BJ_FAIL(err, BJ_EVERSION, "%s: format version is '%s', but this library reads %s",
                       bj_safetensors_path(st), shown(text, value), version);
    return BJ_OK;
}

bj_status bj_checkpoint_check_finite(const char *path, const bj_tensor *tensors, int count,
                                     bj_error *err) {
    for (int i = 0; i < count; i++)
        for (size_t j = 0; j < tensors[i].size; j++)
            if (!isfinite(tensors[i].data[j]))
                return BJ_FAIL(
                    err, BJ_ENONFINITE,
                    "%s: not saved: tensor '%s': value %zu is %g, expected a finite number", path,
                    tensors[i].name, j, (double)tensors[i].data[j]);
    return BJ_OK;
}

bj_status bj_checkpoint_write_views(const char *path, const char *format,
                                    const bj_tensor_view *views, int count, const bj_fact *facts,
                                    int facts_count, bj_error *err) {
    enum { OWN = 3 };
    bj_tensor_view *sorted_views = NULL;
    bj_fact *all = NULL, *sorted = NULL;
    char hex[BJ_SHA256_HEX], version[16];
    bj_status status;
    for (int i = 0; i < facts_count; i++) /* check the metadata here, because it is compared below,
                                             before the writer checks it */
        if (!facts[i].key || !facts[i].value)
            return BJ_FAIL(err, BJ_EARG, "%s: fact %d has no key or no value", path, i);
    BJ_GOTO(status, done, BJ_ALLOC(sorted_views, (size_t)count, err));
    BJ_GOTO(status, done, BJ_ALLOC(all, (size_t)facts_count + OWN, err));
    BJ_GOTO(status, done, BJ_ALLOC(sorted, (size_t)facts_count + OWN, err));
    if (count) memcpy(sorted_views, views, (size_t)count * sizeof *views);
    snprintf(version, sizeof version, "%d", FORMAT_VERSION);
    all[0] = (bj_fact){"format", format};
    all[1] = (bj_fact){"format_version", version};
    all[2] = (bj_fact){digest_key, hex};
    for (int i = 0; i < facts_count; i++) all[OWN + i] = facts[i];
    memcpy(sorted, all, ((size_t)facts_count + OWN) * sizeof *all);
    digest(hex, sorted_views, count, sorted, OWN + facts_count);
    status = bj_safetensors_write(path, views, count, all, OWN + facts_count, err);
done:
    bj_free(sorted);
    bj_free(all);
    bj_free(sorted_views);
    return status;
}

bj_status bj_checkpoint_write(const char *path, const char *format, const bj_tensor *tensors,
                              int count, const bj_fact *facts, int facts_count, bj_error *err) {
    bj_tensor_view *views;
    BJ_TRY(bj_checkpoint_check_finite(path, tensors, count, err));
    BJ_TRY(views_of(&views, tensors, count, err));
    const bj_status status =
        bj_checkpoint_write_views(path, format, views, count, facts, facts_count, err);
    bj_free(views);
    return status;
}

static int is_listed(const char *name, const bj_tensor *tensors, int count) {
    for (int i = 0; i < count; i++)
        if (!strcmp(tensors[i].name, name)) return 1;
    return 0;
}

bj_status bj_checkpoint_check_tensors(const bj_safetensors *st, const bj_tensor *tensors, int count,
                                      bj_error *err) {
    const char *unknown = NULL;
    for (int i = 0; i < bj_safetensors_count(st) && !unknown; i++) {
        const char *name = bj_safetensors_at(st, i)->name;
        if (!is_listed(name, tensors, count)) unknown = name;
    }
    for (int i = 0; i < count; i++) {
        const bj_tensor *t = &tensors[i];
        const int64_t shape[2] = {t->shape[0], t->shape[1]};
        const bj_tensor_view *view;
        if (unknown && !bj_safetensors_find(st, t->name))
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: tensor '%s' is missing, but there is an unknown tensor '%.80s'",
                           bj_safetensors_path(st), t->name, unknown);
        BJ_TRY(bj_safetensors_require(&view, st, t->name, t->rank, shape, err));
    }
    if (unknown)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: tensor '%.80s' is unknown, because the architecture has no such tensor",
                       bj_safetensors_path(st), unknown);
    return BJ_OK;
}

bj_status bj_checkpoint_read_tensors(const bj_safetensors *st, const bj_tensor *tensors, int count,
                                     bj_error *err) {
    for (int i = 0; i < count; i++) {
        const bj_tensor *t = &tensors[i];
        const int64_t shape[2] = {t->shape[0], t->shape[1]};
        BJ_TRY(bj_safetensors_read_real(t->data, st, t->name, t->rank, shape, err));
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- models */

bj_status bj_model_save(const bj_model *model, const char *path, const bj_fact *facts, int count,
                        bj_error *err) {
    const int tensor_count = model->layout.count;
    bj_tensor *tensors = NULL;
    bj_fact *all = NULL;
    bj_arch_facts *arch = NULL;
    bj_status status;
    BJ_GOTO(status, done, BJ_ALLOC(tensors, (size_t)tensor_count, err));
    BJ_GOTO(status, done, BJ_ALLOC(all, (size_t)count + BJ_ARCH_FACTS, err));
    BJ_GOTO(status, done, BJ_ALLOC(arch, 1, err));
    BJ_GOTO(status, done, bj_arch_to_facts(arch, &model->arch, err));
    memcpy(all, arch->fact, (size_t)arch->count * sizeof *all);
    for (int i = 0; i < count; i++) all[arch->count + i] = facts[i];
    for (int i = 0; i < tensor_count; i++) tensors[i] = bj_model_tensor(model, i);
    status = bj_checkpoint_write(path, BJ_MODEL_FORMAT, tensors, tensor_count, all,
                                 arch->count + count, err);
done:
    bj_free(arch);
    bj_free(all);
    bj_free(tensors);
    return status;
}

bj_status bj_model_read(bj_model **out, const bj_safetensors *st, bj_error *err) {
    bj_arch arch;
    bj_layout layout = {0};
    bj_tensor *tensors = NULL;
    bj_model *model = NULL;
    bj_status status;
    *out = NULL;
    BJ_TRY(bj_checkpoint_check_format(st, BJ_MODEL_FORMAT, err));
    BJ_TRY(bj_arch_from_metadata(&arch, st, err));
    BJ_TRY(bj_layout_init(&layout, &arch, err));
    BJ_GOTO(status, done, BJ_ALLOC(tensors, (size_t)layout.count, err));
    for (int i = 0; i < layout.count; i++) {
        const bj_param *p = &layout.params[i];
        tensors[i] = (bj_tensor){p->name, p->rank, {p->shape[0], p->shape[1]}, p->size, NULL};
    }
    /* Compare the sizes with the file before allocating, so that memory use is limited by the file
     * size. */
    BJ_GOTO(status, done, bj_checkpoint_check_tensors(st, tensors, layout.count, err));
    BJ_GOTO(status, done, bj_model_create_empty(&model, &arch, err));
    for (int i = 0; i < layout.count; i++) tensors[i] = bj_model_tensor(model, i);
    BJ_GOTO(status, done, bj_checkpoint_read_tensors(st, tensors, layout.count, err));
    BJ_GOTO(status, done, bj_checkpoint_check_digest(st, err));
    *out = model;
    model = NULL;
done:
    bj_model_free(model);
    bj_free(tensors);
    bj_layout_reset(&layout);
    return status;
}

bj_status bj_model_load(bj_model **out, const char *path, bj_error *err) {
    bj_safetensors *st;
    *out = NULL;
    BJ_TRY(bj_safetensors_open(&st, path, err));
    const bj_status status = bj_model_read(out, st, err);
    bj_safetensors_close(st);
    return status;
}
