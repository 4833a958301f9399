/* test_scene_export.c - tests the export of a scene to safetensors: names, shapes, padding and
 * facts.
 *
 * Also writes input files for the scripts in tests/cli:
 *   test_scene_export cache PATH SCENES     the scenes of loader_case.h
 *   test_scene_export model PATH STEPS      a small network for scenes of STEPS observed steps
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <unistd.h>

#include "loader_case.h"
#include "core/alloc.h"
#include "core/safetensors.h"
#include "test.h"

enum { SCENES = 30, N = BJ_AV2_NEIGHBORS, P = BJ_AV2_POLYLINES, T = BJ_AV2_OBS };

static char folder[] = "/tmp/test_scene_export.XXXXXX";
static char cache_path[64], scene_path[64];

/* Returns a tensor of that type and shape, or zeros if there is none. */
static const void *tensor(const bj_safetensors *st, const char *name, bj_dtype dtype, int rank,
                          int64_t a, int64_t b, int64_t c) {
    static const double nothing[8000];
    const int64_t shape[] = {a, b, c};
    const bj_tensor_view *view = NULL;
    bj_error err;
    CHECK_OK(bj_safetensors_require(&view, st, name, rank, shape, &err), err);
    CHECK(view && view->dtype == dtype);
    return view && view->dtype == dtype ? view->data : nothing;
}

static float float_at(const void *data, int64_t i) {
    float x;
    memcpy(&x, (const char *)data + i * (int64_t)sizeof x, sizeof x);
    return x;
}

/* Checks that used slots contain the values of their array and that all other slots are zero. */
static void check_slots(const void *data, int slots, int used, int width, int64_t scene,
                        int array) {
    int wrong = 0;
    for (int s = 0; s < slots; s++)
        for (int i = 0; i < width; i++)
            wrong += float_at(data, (int64_t)s * width + i) !=
                     (s < used ? loader_case_value(scene, array + s, i) : 0);
    CHECK_MSG(wrong == 0, "scene %lld, arrays from %d: %d numbers", (long long)scene, array, wrong);
}

static void check_mask(const uint8_t *mask, int count, int used) {
    for (int i = 0; i < count; i++) CHECK(mask[i] == (i < used));
}

static void check_fact(const bj_safetensors *st, const char *key, const char *value) {
    const char *found = bj_safetensors_metadata(st, key);
    CHECK_MSG(found && !strcmp(found, value), "%s is %s, expected %s", key, found ? found : "none",
              value);
}

static void check_export(const bj_cache *cache, int64_t s, int blind) {
    bj_safetensors *st = NULL;
    bj_error err;
    CHECK_OK(bj_cache_export(cache, s, scene_path, &err), err);
    CHECK_OK(bj_safetensors_open(&st, scene_path, &err), err);
    if (!st) return;
    const int neighbors = loader_case_neighbors(s), polylines = loader_case_polylines(s);
    const int future = !blind && loader_case_has_future(s);
    CHECK(bj_safetensors_count(st) == 11);
    check_slots(tensor(st, "focal", BJ_DTYPE_F32, 2, T, 7, 0), 1, 1, T * 7, s, 0);
    check_slots(tensor(st, "neighbors", BJ_DTYPE_F32, 3, N, T, 7), N, neighbors, T * 7, s, 1);
    check_slots(tensor(st, "polylines", BJ_DTYPE_F32, 3, P, 10, 6), P, polylines, 60, s, 20);
    check_slots(tensor(st, "future", BJ_DTYPE_F32, 2, 60, 2, 0), 1, future, 120, s, 70);
    check_mask(tensor(st, "nmask", BJ_DTYPE_U8, 1, N, 0, 0), N, neighbors);
    check_mask(tensor(st, "pmask", BJ_DTYPE_U8, 1, P, 0, 0), P, polylines);
    check_mask(tensor(st, "neighbor_valid", BJ_DTYPE_U8, 2, N, T, 0), N * T, neighbors * T);
    check_mask(tensor(st, "future_valid", BJ_DTYPE_U8, 1, 60, 0, 0), 60, future ? 60 : 0);
    const uint8_t *valid = tensor(st, "focal_valid", BJ_DTYPE_U8, 1, T, 0, 0);
    for (int t = 0; t < T; t++) CHECK(valid[t] == (t != s % 40));
    double frame[3];
    memcpy(frame, tensor(st, "origin", BJ_DTYPE_F64, 1, 2, 0, 0), 2 * sizeof *frame);
    memcpy(frame + 2, tensor(st, "heading", BJ_DTYPE_F64, 0, 0, 0, 0), sizeof *frame);
    const bj_scene_info info = bj_cache_info(cache, s);
    CHECK(frame[0] == 1000.25 + (double)s && frame[1] == -2000.5 - (double)s);
    CHECK(frame[2] == info.heading);
    check_fact(st, "scenario_id", info.scenario_id);
    check_fact(st, "city", s % 2 ? "here" : "there");
    check_fact(st, "focal_id", info.focal_id);
    check_fact(st, "has_future", future ? "1" : "0");
    check_fact(st, "features", BJ_FEATURES_VERSION);
    check_fact(st, "split", "train");
    CHECK_CONTAINS(bj_safetensors_metadata(st, "map_sha256"), "010203000000");
    bj_safetensors_close(st);
}

static void test_errors(const bj_cache *cache) {
    bj_error err;
    CHECK(bj_cache_export(cache, -1, scene_path, &err) == BJ_EARG);
    CHECK(bj_cache_export(cache, SCENES, scene_path, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "scene number is 30, expected 0 to 29");
    CHECK(bj_cache_export(cache, 0, "/tmp/no such folder/scene.safetensors", &err) == BJ_EIO);
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    for (int n = 0; n < 400 && status == BJ_ENOMEM; n++) {
        bj_alloc_fail_after(n);
        status = bj_cache_export(cache, 16, scene_path, &err);
        bj_alloc_fail_after(-1);
        CHECK(bj_alloc_live() == live);
    }
    CHECK(status == BJ_OK);
}

/* ---------------------------------------------------------------------------- input for scripts */

static bj_status write_model(const char *path, int steps, bj_error *err) {
    bj_arch arch = bj_arch_paper();
    arch.obs = steps;
    arch.embed = 16, arch.heads = 4, arch.token_hidden = 16, arch.latent = 16;
    arch.proj_hidden = arch.atom_hidden = arch.router_hidden = arch.decoder_hidden = 16;
    bj_model *model = NULL;
    bj_status status = bj_model_create(&model, &arch, 1, err);
    if (status == BJ_OK) status = bj_model_save(model, path, NULL, 0, err);
    bj_model_free(model);
    return status;
}

static int serve(const char *what, const char *path, int number) {
    bj_error err;
    const bj_status status = !strcmp(what, "cache") ? loader_case_write(path, number, &err)
                                                    : write_model(path, number, &err);
    if (status != BJ_OK) printf("%s\n", err.message);
    return status != BJ_OK;
}

int main(int argc, char **argv) {
    bj_error err;
    if (argc == 4) return serve(argv[1], argv[2], atoi(argv[3]));
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(cache_path, sizeof cache_path, "%s/cache", folder);
    snprintf(scene_path, sizeof scene_path, "%s/scene", folder);
    const long live = bj_alloc_live();
    CHECK_OK(loader_case_write(cache_path, SCENES, &err), err);
    for (int blind = 0; blind < 2; blind++) {
        bj_cache *cache = NULL;
        CHECK_OK(bj_cache_open(&cache, cache_path, blind, &err), err);
        if (!cache) break;
        for (int64_t s = 0; s < SCENES; s++) check_export(cache, s, blind);
        test_errors(cache);
        bj_cache_free(cache);
    }
    CHECK(bj_alloc_live() == live);
    unlink(scene_path);
    unlink(cache_path);
    CHECK(rmdir(folder) == 0);
    return test_report("scene_export");
}
