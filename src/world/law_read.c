/* law_read.c - implements the public functions bj_law_*, which read law files.
 *
 * bj_law_open checks everything except the digests, so later calls need no checks: tensors and
 * shapes, 1 to 8 modes per scene, ids sorted and terminated, positive weights that sum to one,
 * intents and realized modes in range, finite frames. bj_law_verify recomputes the digest of a
 * scene.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "world/law_file.h"

enum { NAME = BJ_SCENARIO_NAME, HASH = 32, INTENTS_MAX = 64, MODE_FLOATS = BJ_LAW_STEPS * 2 };

struct bj_law {
    bj_safetensors *file;
    int64_t scenes, modes;
    int factors, intent_count;
    double jitter;
    const char *ids; /* (scenes,64) */
    const int64_t *start;
    const double *weight, *origin, *heading;
    const float *mean, *factor;
    const int32_t *realized;
    const uint8_t *intent, *sha256;
    yyjson_doc *names;
    const char *intents[INTENTS_MAX];
};

void bj_law_free(bj_law *law) {
    if (!law) return;
    yyjson_doc_free(law->names);
    bj_safetensors_close(law->file);
    bj_free(law);
}

static bj_status refuse(const bj_law *law, const char *what, int64_t scene, bj_error *err) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: %s (scene %lld of %lld)", bj_safetensors_path(law->file),
                   what, (long long)scene, (long long)law->scenes);
}

/* Returns the data of a tensor after checking its type, shape and alignment. */
static bj_status take(const void **out, const bj_law *law, const char *name, bj_dtype dtype,
                      int rank, int64_t a, int64_t b, int64_t c, int64_t d, bj_error *err) {
    const int64_t shape[4] = {a, b, c, d};
    const bj_tensor_view *view;
    BJ_TRY(bj_safetensors_require(&view, law->file, name, rank, shape, err));
    if (view->dtype != dtype || (uintptr_t)view->data % bj_dtype_size(dtype))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor '%s' is %s%s, expected %s, aligned",
                       bj_safetensors_path(law->file), name, bj_dtype_name(view->dtype),
                       view->dtype == dtype ? ", not aligned" : "", bj_dtype_name(dtype));
    *out = view->data;
    return BJ_OK;
}

#define TAKE(field, name, dtype, rank, a, b, c, d)                                                 \
    do {                                                                                           \
        const void *taken_;                                                                        \
        BJ_TRY(take(&taken_, law, name, dtype, rank, a, b, c, d, err));                            \
        law->field = taken_;                                                                       \
    } while (0)

static bj_status read_facts(bj_law *law, bj_error *err) {
    const char *path = bj_safetensors_path(law->file);
    const char *format = bj_safetensors_metadata(law->file, "format");
    const char *version = bj_safetensors_metadata(law->file, "version");
    const char *jitter = bj_safetensors_metadata(law->file, "jitter");
    const char *intents = bj_safetensors_metadata(law->file, "intents");
    if (!format || strcmp(format, "branchjepa-law"))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: format is '%s', expected 'branchjepa-law'", path,
                       format ? format : "not stated");
    if (!version || strcmp(version, "1"))
        return BJ_FAIL(err, BJ_EVERSION, "%s: version is '%s', expected '1'", path,
                       version ? version : "not stated");
    if (!jitter || !bj_json_number_read(&law->jitter, jitter) || law->jitter < 0)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: jitter is '%s', expected a number", path,
                       jitter ? jitter : "not stated");
    if (!intents) return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata has no intents", path);
    BJ_TRY(bj_json_parse(&law->names, intents, strlen(intents), path, err));
    yyjson_val *list = yyjson_doc_get_root(law->names), *name;
    yyjson_arr_iter walk;
    if (yyjson_arr_iter_init(list, &walk))
        while ((name = yyjson_arr_iter_next(&walk)) && law->intent_count < INTENTS_MAX)
            if (yyjson_is_str(name)) law->intents[law->intent_count++] = yyjson_get_str(name);
    if (!law->intent_count || (size_t)law->intent_count != yyjson_arr_size(list))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: intents is '%.100s', expected a JSON list of names",
                       path, intents);
    return BJ_OK;
}

static bj_status read_tensors(bj_law *law, bj_error *err) {
    const bj_tensor_view *ids = bj_safetensors_find(law->file, "scenario_id");
    const bj_tensor_view *weight = bj_safetensors_find(law->file, "weight");
    const bj_tensor_view *factor = bj_safetensors_find(law->file, "factor");
    if (!ids || !weight || !factor || ids->rank != 2 || weight->rank != 1 || factor->rank != 4)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: expected the tensors scenario_id (rank 2), "
                       "weight (rank 1) and factor (rank 4)",
                       bj_safetensors_path(law->file));
    const int64_t s = law->scenes = ids->shape[0], m = law->modes = weight->shape[0];
    if (factor->shape[1] > BJ_LAW_FACTORS_MAX)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: %lld factors, expected at most %d",
                       bj_safetensors_path(law->file), (long long)factor->shape[1],
                       BJ_LAW_FACTORS_MAX);
    law->factors = (int)factor->shape[1];
    TAKE(ids, "scenario_id", BJ_DTYPE_U8, 2, s, NAME, 0, 0);
    TAKE(start, "mode_start", BJ_DTYPE_I64, 1, s + 1, 0, 0, 0);
    TAKE(weight, "weight", BJ_DTYPE_F64, 1, m, 0, 0, 0);
    TAKE(origin, "origin", BJ_DTYPE_F64, 2, s, 2, 0, 0);
    TAKE(heading, "heading", BJ_DTYPE_F64, 1, s, 0, 0, 0);
    TAKE(mean, "mean", BJ_DTYPE_F32, 3, m, BJ_LAW_STEPS, 2, 0);
    TAKE(factor, "factor", BJ_DTYPE_F32, 4, m, law->factors, BJ_LAW_STEPS, 2);
    TAKE(realized, "realized", BJ_DTYPE_I32, 1, s, 0, 0, 0);
    TAKE(intent, "intent", BJ_DTYPE_U8, 1, m, 0, 0, 0);
    TAKE(sha256, "sha256", BJ_DTYPE_U8, 2, s, HASH, 0, 0);
    return BJ_OK;
}

static bj_status check_scenes(const bj_law *law, bj_error *err) {
    if (law->start[0] != 0) return refuse(law, "mode_start does not begin with 0", 0, err);
    for (int64_t i = 0; i < law->scenes; i++) {
        const char *id = law->ids + i * NAME;
        const int64_t first = law->start[i], end = law->start[i + 1];
        if (!id[0] || !memchr(id, '\0', NAME))
            return refuse(law, "an id is empty or too long", i, err);
        if (i && strcmp(id - NAME, id) >= 0) return refuse(law, "ids do not ascend", i, err);
        if (end <= first || end > law->modes || end - first > BJ_LAW_MODES)
            return refuse(law, "mode_start does not ascend by 1 to 8", i, err);
        if (law->realized[i] < 0 || law->realized[i] >= end - first)
            return refuse(law, "the realized mode is not one of its modes", i, err);
        double sum = 0;
        for (int64_t m = first; m < end; m++) {
            if (!(law->weight[m] > 0)) return refuse(law, "a weight is not positive", i, err);
            if (law->intent[m] >= law->intent_count)
                return refuse(law, "an intent has no name", i, err);
            sum += law->weight[m];
        }
        if (!(fabs(sum - 1) < 1e-9)) return refuse(law, "weights do not sum to one", i, err);
        if (!isfinite(law->origin[2 * i] + law->origin[2 * i + 1] + law->heading[i]))
            return refuse(law, "its frame is not finite", i, err);
    }
    if (law->start[law->scenes] != law->modes)
        return refuse(law, "mode_start does not end with the number of modes", law->scenes, err);
    return BJ_OK;
}

bj_status bj_law_open(bj_law **out, const char *path, bj_error *err) {
    bj_law *law;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(law, 1, err));
    bj_status status = bj_safetensors_open(&law->file, path, err);
    if (status == BJ_OK) status = read_facts(law, err);
    if (status == BJ_OK) status = read_tensors(law, err);
    if (status == BJ_OK) status = check_scenes(law, err);
    if (status != BJ_OK) {
        bj_law_free(law);
        return status;
    }
    *out = law;
    return BJ_OK;
}

int64_t bj_law_count(const bj_law *law) { return law->scenes; }

const char *bj_law_fact(const bj_law *law, const char *key) {
    return bj_safetensors_metadata(law->file, key);
}

int64_t bj_law_find(const bj_law *law, const char *scenario_id) {
    int64_t low = 0, high = law->scenes;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(law->ids + middle * NAME, scenario_id);
        if (order == 0) return middle;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return -1;
}

bj_law_scene bj_law_at(const bj_law *law, int64_t i) {
    const int64_t m = law->start[i];
    return (bj_law_scene){
        .scenario_id = law->ids + i * NAME,
        .origin = {law->origin[2 * i], law->origin[2 * i + 1]},
        .heading = law->heading[i],
        .modes = (int)(law->start[i + 1] - m),
        .factors = law->factors,
        .realized = law->realized[i],
        .jitter = law->jitter,
        .weights = law->weight + m,
        .intents = law->intent + m,
        .means = law->mean + m * MODE_FLOATS,
        .factor = law->factor + m * law->factors * MODE_FLOATS,
    };
}

const char *bj_law_intent(const bj_law *law, int intent) {
    return intent >= 0 && intent < law->intent_count ? law->intents[intent] : NULL;
}

static void digest_scene(uint8_t digest[HASH], const bj_law *law, int64_t i) {
    const size_t m = (size_t)law->start[i], n = (size_t)law->start[i + 1] - m;
    const size_t row = (size_t)law->factors * MODE_FLOATS;
    bj_sha256 hash;
    bj_sha256_init(&hash);
    bj_sha256_update(&hash, law->ids + i * NAME, NAME);
    bj_sha256_update(&hash, law->origin + 2 * i, 2 * sizeof *law->origin);
    bj_sha256_update(&hash, law->heading + i, sizeof *law->heading);
    bj_sha256_update(&hash, law->realized + i, sizeof *law->realized);
    bj_sha256_update(&hash, law->weight + m, n * sizeof *law->weight);
    bj_sha256_update(&hash, law->intent + m, n);
    bj_sha256_update(&hash, law->mean + m * MODE_FLOATS, n * MODE_FLOATS * sizeof(float));
    bj_sha256_update(&hash, law->factor + m * row, n * row * sizeof(float));
    bj_sha256_final_bytes(&hash, digest);
}

bj_status bj_law_digest(char hex[65], const bj_law *law, bj_error *err) {
    (void)err; /* nothing fails */
    bj_sha256_memory(hex, law->sha256, (size_t)law->scenes * HASH);
    return BJ_OK;
}

bj_status bj_law_verify(const bj_law *law, int64_t i, bj_error *err) {
    uint8_t digest[HASH];
    digest_scene(digest, law, i);
    if (memcmp(digest, law->sha256 + i * HASH, HASH))
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: the distribution of scene %s is damaged, "
                       "because its digest differs",
                       bj_safetensors_path(law->file), law->ids + i * NAME);
    return BJ_OK;
}

int bj_law_sample(double *future, const bj_law_scene *scene, bj_rng *rng) {
    double u = bj_rng_uniform(rng), z[BJ_LAW_FACTORS_MAX];
    int mode = 0;
    for (; mode + 1 < scene->modes; mode++)
        if ((u -= scene->weights[mode]) < 0) break;
    for (int f = 0; f < scene->factors; f++) z[f] = bj_world_normal(rng);
    const float *mean = scene->means + mode * MODE_FLOATS;
    const float *factor = scene->factor + mode * scene->factors * MODE_FLOATS;
    for (int i = 0; i < MODE_FLOATS; i++) {
        double x = (double)mean[i];
        for (int f = 0; f < scene->factors; f++) x += z[f] * (double)factor[f * MODE_FLOATS + i];
        future[i] = x + scene->jitter * bj_world_jitter(rng);
    }
    return mode;
}
