/* test_gallery.c - tests galleries of a cache: counts, cases, independence of futures, threads,
 * memory.
 *
 * It also writes the inputs of tests/cli/gallery.sh:
 *   test_gallery model PATH SEED ATOMS FACTOR   a small network; FACTOR stretches its forecasts
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "support/reseal.h"
#include "support/test.h"

enum { SCENES = 150, F = 60 };

/* -------------------------------------------------------------------------------- made-up input */

static bj_status make_model(bj_model **out, uint64_t seed, int atoms, double factor,
                            bj_error *err) {
    bj_arch arch = bj_arch_paper();
    arch.embed = 16, arch.heads = 4, arch.token_hidden = 16, arch.latent = 16;
    arch.proj_hidden = arch.atom_hidden = arch.router_hidden = arch.decoder_hidden = 16;
    arch.atoms = atoms;
    BJ_TRY(bj_model_create(out, &arch, seed, err));
    for (int i = 0; i < bj_model_tensor_count(*out); i++) {
        const bj_tensor t = bj_model_tensor(*out, i);
        if (strncmp(t.name, "decoder.2", 9)) continue;
        for (size_t k = 0; k < t.size; k++) t.data[k] = (bj_real)(t.data[k] * factor);
    }
    return BJ_OK;
}

static bj_status save_model(const char *path, uint64_t seed, int atoms, double factor,
                            bj_error *err) {
    bj_model *model = NULL;
    bj_status status = make_model(&model, seed, atoms, factor, err);
    if (status == BJ_OK) status = bj_model_save(model, path, NULL, 0, err);
    bj_model_free(model);
    return status;
}

/* Writes a copy in which `most` bytes of one tensor are changed, starting at `first`, and updates
 * the digests. */
static bj_status change_tensor(const char *from, const char *to, const char *name, size_t first,
                               size_t most, bj_error *err) {
    bj_safetensors *file = NULL;
    char *bytes = NULL;
    size_t size;
    bj_status status = bj_file_read(&bytes, &size, from, (size_t)1 << 30, err);
    if (status == BJ_OK) status = bj_safetensors_open_memory(&file, bytes, size, from, err);
    if (status == BJ_OK) {
        const bj_tensor_view *view = bj_safetensors_find(file, name);
        CHECK(view && view->bytes > 0);
        if (view) {
            const size_t at = (size_t)((const char *)view->data - bytes);
            for (size_t i = first; i < view->bytes && i - first < most; i++) bytes[at + i] ^= 1;
        }
        status = reseal(bytes, size, err);
        if (status == BJ_OK) status = bj_file_write(to, bytes, size, err);
    }
    bj_safetensors_close(file);
    bj_free(bytes);
    return status;
}

static char folder[] = "/tmp/test_gallery.XXXXXX", cache_path[64], other_path[64];
static bj_model *six, *one, *still, *wide;

static bj_gallery *open_gallery(const char *path, int cases, uint64_t seed, int threads,
                                int64_t limit) {
    const bj_gallery_options options = {
        .cases = cases, .seed = seed, .threads = threads, .isa = "c", .limit = limit};
    bj_error err = {0};
    bj_gallery *gallery = NULL;
    CHECK_OK(bj_gallery_create(&gallery, path, six, one, &options, &err), err);
    return gallery;
}

/* ------------------------------------------------------------------------------- scene by scene */

typedef struct found {
    bj_proxy proxy[2];
    bj_audit_scene audit[2];
    double weights[2][6], paths[2][6 * F * 2];
    int strict;
} found;

/* One scene alone, by the public functions. */
static void look(found *out, const bj_cache *cache, bj_predictor *const predictor[2],
                 const bj_batch *batch, int64_t scene) {
    const bj_scene_info info = bj_cache_info(cache, scene);
    bj_drivable *areas = NULL;
    bj_error err = {0};
    CHECK_OK(bj_drivable_create(&areas, &err), err);
    CHECK_OK(bj_drivable_set_cache(areas, cache, info.map, BJ_AUDIT_TOLERANCE, &err), err);
    out->strict = !strcmp(info.focal_type, "vehicle") || !strcmp(info.focal_type, "bus");
    for (int m = 0; m < 2; m++) {
        const int K = m == BJ_GALLERY_POINT ? 1 : 6;
        bj_real w[6], y[6 * F * 2];
        double city[6 * F * 2];
        CHECK_OK(bj_predict(predictor[m], batch, w, y, NULL, &err), err);
        for (int k = 0; k < K; k++) out->weights[m][k] = (double)w[k];
        for (int i = 0; i < K * F * 2; i++) out->paths[m][i] = (double)y[i];
        bj_proxy_measure(&out->proxy[m], bj_cache_floats(cache, scene).polylines, info.polylines,
                         bj_cache_arch(cache).points, K, F, out->weights[m], out->paths[m]);
        bj_to_city(city, out->paths[m], K * F, info.origin, info.heading);
        bj_audit_measure(&out->audit[m], areas, K, F, out->weights[m], city);
        out->strict &= out->proxy[m].strict && out->audit[m].contained;
    }
    bj_drivable_free(areas);
}

static void check_case(const bj_gallery_case *c, const found *f) {
    CHECK(f->strict);
    CHECK(strlen(c->order) == 64 && strlen(c->observed) == 64 && strlen(c->areas) == 64);
    for (int m = 0; m < 2; m++) {
        const int K = m == BJ_GALLERY_POINT ? 1 : 6;
        CHECK(c->proxy[m].K == K && c->audit[m].K == K && c->audit[m].F == F);
        for (int k = 0; k < K; k++) {
            CHECK_NEAR(c->weights[m][k], f->weights[m][k], 1e-6);
            CHECK(c->proxy[m].outside[k] == 0 && c->audit[m].inside[k] == F);
        }
        for (int i = 0; i < K * F * 2; i++) CHECK_NEAR(c->trajectories[m][i], f->paths[m][i], 1e-4);
    }
}

/* `limits` contains the min and max number of strict cases among the first 100 scenes. */
static void test_scene_by_scene(const bj_model *branch, const bj_model *point, int least,
                                int most) {
    const bj_loader_options each = {.part = BJ_PART_ALL, .batch = 1};
    const bj_predictor_options how = {.max_batch = 1, .threads = 1, .isa = "c"};
    const int limit = 100;
    const bj_gallery_options options = {.cases = 64, .threads = 1, .isa = "c", .limit = limit};
    bj_gallery *gallery = NULL;
    bj_predictor *predictor[2] = {NULL, NULL};
    bj_loader *loader = NULL;
    bj_cache *cache = NULL;
    bj_error err = {0};
    CHECK_OK(bj_gallery_create(&gallery, cache_path, branch, point, &options, &err), err);
    if (!gallery) return;
    CHECK_OK(bj_cache_open(&cache, cache_path, 1, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &each, &err), err);
    CHECK_OK(bj_predictor_create(&predictor[BJ_GALLERY_BRANCH], branch, &how, &err), err);
    CHECK_OK(bj_predictor_create(&predictor[BJ_GALLERY_POINT], point, &how, &err), err);
    const bj_gallery_counts counts = bj_gallery_count(gallery);
    int64_t passes[2] = {0, 0}, near[2] = {0, 0}, strict = 0, shown = 0;
    for (int i = 0; i < limit; i++) {
        static found f;
        const bj_batch *batch;
        CHECK_OK(bj_loader_batch(&batch, NULL, loader, 0, i, &err), err);
        look(&f, cache, predictor, batch, i);
        for (int m = 0; m < 2; m++) {
            passes[m] += f.proxy[m].passes;
            near[m] += f.proxy[m].strict;
        }
        strict += f.strict;
        for (int c = 0; c < counts.cases; c++)
            if (bj_gallery_at(gallery, c)->scene == i) {
                check_case(bj_gallery_at(gallery, c), &f);
                shown++;
            }
    }
    CHECK(counts.scenes == limit && counts.audited < limit && counts.audited > limit / 2);
    for (int m = 0; m < 2; m++) CHECK(counts.passes[m] == passes[m] && counts.near[m] == near[m]);
    CHECK(counts.strict == strict && strict > least && strict < most);
    CHECK(counts.several <= strict && (counts.several > 0) == (branch == six));
    CHECK(shown == counts.cases && counts.cases == (strict < 64 ? strict : 64));
    for (int m = 0; m < 2; m++) bj_predictor_free(predictor[m]);
    bj_loader_free(loader);
    bj_cache_free(cache);
    bj_gallery_free(gallery);
}

/* ---------------------------------------------------------------------------------- same or not */

static int same_cases(const bj_gallery *a, const bj_gallery *b) {
    const bj_gallery_counts x = bj_gallery_count(a), y = bj_gallery_count(b);
    int same = !memcmp(&x, &y, sizeof x) && !strcmp(bj_gallery_digest(a), bj_gallery_digest(b));
    for (int i = 0; same && i < x.cases; i++) {
        const bj_gallery_case *c = bj_gallery_at(a, i), *d = bj_gallery_at(b, i);
        same = c->scene == d->scene && c->maneuvers == d->maneuvers &&
               !strcmp(c->order, d->order) && !strcmp(c->observed, d->observed) &&
               !strcmp(c->areas, d->areas);
        for (int m = 0; same && m < 2; m++)
            same = !memcmp(c->weights[m], d->weights[m], (m ? 1 : 6) * sizeof(double)) &&
                   !memcmp(c->trajectories[m], d->trajectories[m],
                           (size_t)(m ? 1 : 6) * F * 2 * sizeof(double)) &&
                   !memcmp(&c->proxy[m], &d->proxy[m], sizeof c->proxy[m]);
    }
    return same;
}

static void test_blind_threads_and_seed(void) {
    bj_gallery *a = open_gallery(cache_path, 4, 0, 1, 0), *b = open_gallery(cache_path, 4, 0, 3, 0);
    bj_gallery *c = open_gallery(cache_path, 4, 1, 1, 0);
    bj_error err = {0};
    CHECK_OK(change_tensor(cache_path, other_path, "future", 0, SIZE_MAX, &err), err);
    bj_gallery *d = open_gallery(other_path, 4, 0, 1, 0);
    if (a && b && c && d) {
        CHECK(bj_gallery_count(a).cases == 4);
        CHECK(same_cases(a, b));
        CHECK(same_cases(a, d)); /* other futures, same gallery */
        CHECK(!same_cases(a, c));
        CHECK(bj_gallery_count(a).strict == bj_gallery_count(c).strict);
        CHECK(!strcmp(bj_gallery_isa(a), "c"));
        CHECK(bj_cache_floats(bj_gallery_cache(a), 0).future == NULL);
        CHECK(bj_cache_info(bj_gallery_cache(a), 0).map >= 0);
    }
    bj_gallery_free(a);
    bj_gallery_free(b);
    bj_gallery_free(c);
    bj_gallery_free(d);
}

/* Tests that the digest of a scene depends on every observed part and not on the future. */
static void test_digests(void) {
    const size_t track = 50 * BJ_FOCAL_FEATURES * sizeof(float);
    bj_error err = {0};
    bj_cache *cache = NULL;
    CHECK_OK(bj_cache_open(&cache, cache_path, 1, &err), err);
    const bj_scene_info info = bj_cache_info(cache, 0);
    CHECK(info.neighbors > 0 && info.polylines > 0);
    const size_t lines = (1 + (size_t)info.neighbors) * track;
    const struct {
        const char *tensor;
        size_t first, bytes;
        int observed, areas; /* 1: changes */
    } parts[] = {{"records", 0, 1, 1, 0},     {"records", track - 4, 1, 1, 0},
                 {"records", track, 1, 1, 0}, {"records", lines - 4, 1, 1, 0},
                 {"records", lines, 1, 1, 0}, {"future", 0, SIZE_MAX, 0, 0},
                 {"points_cm", 0, 1, 0, 1}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char a[65], b[65];
        bj_cache *other = NULL;
        CHECK_OK(change_tensor(cache_path, other_path, parts[i].tensor, parts[i].first,
                               parts[i].bytes, &err),
                 err);
        CHECK_OK(bj_cache_open(&other, other_path, 1, &err), err);
        if (!other) break;
        CHECK_OK(bj_gallery_observed(a, cache, 0, &err), err);
        CHECK_OK(bj_gallery_observed(b, other, 0, &err), err);
        CHECK_MSG((strcmp(a, b) != 0) == parts[i].observed, "part %zu", i);
        CHECK_OK(bj_gallery_digest_of(a, cache, 2, &err), err);
        CHECK_OK(bj_gallery_digest_of(b, other, 2, &err), err);
        CHECK_MSG((strcmp(a, b) != 0) == parts[i].observed, "part %zu, all", i);
        CHECK_OK(bj_gallery_areas(a, cache, 0, &err), err);
        CHECK_OK(bj_gallery_areas(b, other, 0, &err), err);
        CHECK_MSG((strcmp(a, b) != 0) == parts[i].areas, "part %zu, areas", i);
        bj_cache_free(other);
    }
    bj_cache_free(cache);
}

static void test_bytes(void) {
    static const char abc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    char hex[65];
    bj_error err = {0};
    CHECK_OK(bj_memory_digest(hex, "abc", 3, &err), err);
    CHECK(!strcmp(hex, abc));
    CHECK_OK(bj_file_write(other_path, "abc", 3, &err), err);
    CHECK_OK(bj_file_digest(hex, other_path, &err), err);
    CHECK(!strcmp(hex, abc));
    CHECK(bj_file_digest(hex, "/nonexistent/file", &err) == BJ_EIO);
}

/* ------------------------------------------------------------------------------ refusals, memory
 */

static int stop_at_once(void *context, int64_t done, int64_t total) {
    *(int64_t *)context = done;
    return total > 0;
}

static void test_refused(void) {
    int64_t done = 0;
    bj_gallery_options o = {.cases = 8, .isa = "c", .threads = 1};
    bj_gallery *gallery = NULL;
    bj_cache *cache = NULL;
    bj_error err = {0};
    char hex[65];
    CHECK(bj_gallery_create(NULL, cache_path, six, one, &o, &err) == BJ_EARG);
    CHECK(bj_gallery_create(&gallery, cache_path, six, one, NULL, &err) == BJ_EARG);
    CHECK(bj_gallery_create(&gallery, cache_path, six, six, &o, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "K = 6, expected 1");
    o.cases = 0;
    CHECK(bj_gallery_create(&gallery, cache_path, six, one, &o, &err) == BJ_EARG);
    o.cases = BJ_GALLERY_CASES + 1;
    CHECK(bj_gallery_create(&gallery, cache_path, six, one, &o, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "65 cases, expected 1 to 64");
    o.cases = 8;
    CHECK(bj_gallery_create(&gallery, "/nonexistent", six, one, &o, &err) == BJ_EIO);
    o.progress = stop_at_once, o.context = &done;
    CHECK(bj_gallery_create(&gallery, cache_path, six, one, &o, &err) == BJ_ELOCKED);
    CHECK(done == 64 && gallery == NULL);
    bj_arch arch = *bj_model_arch(six);
    bj_model *other = NULL;
    arch.obs = 40;
    CHECK_OK(bj_model_create(&other, &arch, 0, &err), err);
    CHECK(bj_gallery_create(&gallery, cache_path, other, one, &o, &err) != BJ_OK);
    bj_model_free(other);
    CHECK_OK(bj_cache_open(&cache, cache_path, 1, &err), err);
    CHECK(bj_gallery_observed(hex, cache, SCENES, &err) == BJ_EARG);
    CHECK(bj_gallery_observed(hex, cache, -1, &err) == BJ_EARG);
    CHECK(bj_gallery_digest_of(hex, cache, SCENES + 1, &err) == BJ_EARG);
    CHECK(bj_gallery_areas(hex, cache, -1, &err) == BJ_EARG);
    bj_cache_free(cache);
    bj_gallery_free(NULL);
}

static void test_memory(void) {
    const bj_gallery_options options = {.cases = 2, .threads = 1, .limit = 20, .isa = "c"};
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    long steps = 0;
    for (; status != BJ_OK && steps < 10000; steps++) { /* the n-th allocation fails */
        bj_error err = {0};
        bj_gallery *gallery = NULL;
        bj_alloc_fail_after(steps);
        status = bj_gallery_create(&gallery, cache_path, six, one, &options, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_OK || status == BJ_ENOMEM, "%s", err.message);
        bj_gallery_free(gallery);
        CHECK(bj_alloc_live() == live);
    }
    CHECK(status == BJ_OK && steps > 20);
}

static int run_tests(void) {
    bj_error err = {0};
    bj_world_report report;
    const bj_world_options world = {.seed = 4, .split = "val", .scenes = SCENES, .jobs = 1};
    if (!mkdtemp(folder)) return 1;
    snprintf(cache_path, sizeof cache_path, "%s/val.bjc", folder);
    snprintf(other_path, sizeof other_path, "%s/other.bjc", folder);
    CHECK_OK(bj_world_to_cache(&report, cache_path, &world, &err), err);
    CHECK_OK(make_model(&six, 0, 6, 12, &err), err);
    CHECK_OK(make_model(&one, 100, 1, 3, &err), err);
    CHECK_OK(make_model(&still, 0, 6, 0.01, &err), err);
    CHECK_OK(make_model(&wide, 100, 1, 8, &err), err);
    if (!test_failed) {
        test_scene_by_scene(six, one, 2, 50);
        test_scene_by_scene(still, wide, 2, 90); /* the point model alone decides */
        test_blind_threads_and_seed();
        test_digests();
        test_bytes();
        test_refused();
        test_memory();
    }
    bj_model_free(six);
    bj_model_free(one);
    bj_model_free(still);
    bj_model_free(wide);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
    return test_report("gallery");
}

int main(int argc, char **argv) {
    bj_error err = {0};
    if (argc == 1) return run_tests();
    if (argc != 6 || strcmp(argv[1], "model")) return 2;
    if (save_model(argv[2], strtoull(argv[3], NULL, 10), atoi(argv[4]), strtod(argv[5], NULL),
                   &err) == BJ_OK)
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}
