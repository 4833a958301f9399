/* test_audit.c - tests audits of models on a cache.
 *
 * Covers means, seeds, intervals, threads and failed allocations, and checks that no future is
 * read.
 *
 * Also writes the inputs of tests/cli/audit.sh:
 *   test_audit model PATH SEED ATOMS      a small network whose forecasts sometimes leave the road
 *   test_audit zero CACHE PATH            a copy of the cache with all futures set to zero
 *   test_audit campaign DIR CACHE         arms fullset and point, seeds 0 and 1; seed 1 of point is
 *                                         not finished
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "support/reseal.h"
#include "support/test.h"

enum { SCENES = 150 };

/* -------------------------------------------------------------------------------- made-up input */

static bj_status make_model(bj_model **out, uint64_t seed, int atoms, bj_error *err) {
    bj_arch arch = bj_arch_paper();
    arch.embed = 16, arch.heads = 4, arch.token_hidden = 16, arch.latent = 16;
    arch.proj_hidden = arch.atom_hidden = arch.router_hidden = arch.decoder_hidden = 16;
    arch.atoms = atoms;
    BJ_TRY(bj_model_create(out, &arch, seed, err));
    for (int i = 0; i < bj_model_tensor_count(*out); i++) { /* scale up the forecasts from
                                                               centimeters to meters */
        const bj_tensor t = bj_model_tensor(*out, i);
        const double factor = !strncmp(t.name, "decoder.2", 9)  ? 25
                              : !strncmp(t.name, "router.2", 8) ? 20
                                                                : 1;
        for (size_t k = 0; k < t.size; k++) t.data[k] = (bj_real)(t.data[k] * factor);
    }
    return BJ_OK;
}

/* Copies a cache and changes only its futures and their digests. */
static bj_status zero_futures(const char *from, const char *to, bj_error *err) {
    bj_safetensors *file = NULL;
    const bj_tensor_view *view;
    char *bytes = NULL;
    size_t size;
    bj_status status = bj_file_read(&bytes, &size, from, (size_t)1 << 30, err);
    if (status == BJ_OK) status = bj_safetensors_open_memory(&file, bytes, size, from, err);
    if (status == BJ_OK) {
        view = bj_safetensors_find(file, "future");
        CHECK(view && view->bytes > 0);
        const size_t at = (size_t)((const char *)view->data - bytes);
        int differs = 0;
        for (size_t i = 0; i < view->bytes; i++) differs |= bytes[at + i] != 0;
        CHECK(differs); /* otherwise, the test would be meaningless */
        memset(bytes + at, 0, view->bytes);
        status = reseal(bytes, size, err);
        if (status == BJ_OK) status = bj_file_write(to, bytes, size, err);
    }
    bj_safetensors_close(file);
    bj_free(bytes);
    return status;
}

static bj_status save_model(const char *path, uint64_t seed, int atoms, bj_error *err) {
    bj_model *model = NULL;
    bj_status status = make_model(&model, seed, atoms, err);
    if (status == BJ_OK) status = bj_model_save(model, path, NULL, 0, err);
    bj_model_free(model);
    return status;
}

static bj_status fill_run(const bj_campaign_run *run, int finished, bj_error *err) {
    static const char *const parts[] = {"", "/ckpt", "/ckpt/best"};
    char path[4096];
    const char *dir = run->dir;
    for (const char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(path, sizeof path, "%.*s", (int)(slash - dir), dir);
        mkdir(path, 0777);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s%s", dir, parts[i]);
        mkdir(path, 0777);
    }
    snprintf(path, sizeof path, "%s/ckpt/best/%s", dir, BJ_CHECKPOINT_MODEL);
    const int point = !strcmp(run->settings->arm, "point");
    BJ_TRY(save_model(path, run->settings->seed + (point ? 100 : 0), point ? 1 : 6, err));
    snprintf(path, sizeof path, "%s/result.json", dir);
    return finished ? bj_file_write(path, "{}", 2, err) : BJ_OK;
}

static bj_status make_campaign(const char *dir, const char *cache, bj_error *err) {
    static const char text[] = "name: audit\nseeds: [0, 1]\narms: [fullset, point]\n";
    const bj_campaign_options options = {.data = cache};
    bj_campaign *campaign = NULL;
    char file[4096];
    snprintf(file, sizeof file, "%s.yaml", dir);
    BJ_TRY(bj_file_write(file, text, sizeof text - 1, err));
    bj_status status = bj_campaign_create(&campaign, file, dir, &options, err);
    for (int i = 0; status == BJ_OK && i < bj_campaign_runs(campaign); i++) {
        const bj_campaign_run run = bj_campaign_run_at(campaign, i);
        status = fill_run(&run, strcmp(run.settings->arm, "point") || run.settings->seed == 0, err);
    }
    bj_campaign_free(campaign);
    return status;
}

/* --------------------------------------------------------------------------------------- values */

static char folder[] = "/tmp/test_audit.XXXXXX", cache_path[64], blind_path[64];
static bj_model *six[2], *one[2];

static bj_audit *open_audit(const char *path, int threads, int64_t limit) {
    const bj_audit_options options = {.threads = threads, .limit = limit, .isa = "c"};
    bj_error err = {0};
    bj_audit *audit = NULL;
    CHECK_OK(bj_audit_open(&audit, path, &options, &err), err);
    return audit;
}

/* Returns all values of a model, computed in a separate audit. */
static double *values_of(const char *path, int threads, const bj_model *model) {
    bj_error err = {0};
    bj_audit *audit = open_audit(path, threads, 0);
    const size_t n = (size_t)bj_audit_count(audit).scenes * BJ_AUDIT_METRICS;
    double *values = malloc(n * sizeof *values);
    CHECK_OK(bj_audit_add(audit, "x", 3, model, values, &err), err);
    const bj_audit_report r = bj_audit_report_at(audit, 0, 0);
    CHECK(r.seed == 3 && r.atoms == bj_model_arch(model)->atoms);
    int64_t empty = 0;
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        double sum = 0;
        const int64_t scenes = bj_audit_count(audit).scenes;
        for (int64_t i = 0; i < scenes; i++) sum += values[m * scenes + i];
        CHECK_NEAR(r.mean[m], sum / (double)scenes, 1e-15);
        for (int64_t i = 0; m == BJ_AUDIT_ENTROPY_SUPPORT && i < scenes; i++)
            empty += values[m * scenes + i] == 0;
    }
    CHECK(r.empty == empty);
    bj_audit_free(audit);
    return values;
}

/* Compares every scene with the results of the public functions, one scene at a time. */
static void test_scene_by_scene(void) {
    bj_error err = {0};
    bj_cache *cache = NULL;
    bj_predictor *predictor = NULL;
    bj_drivable *areas = NULL;
    const bj_predictor_options how = {.max_batch = 1, .threads = 1, .isa = "c"};
    const bj_loader_options order = {.batch = 1};
    bj_loader *loader = NULL;
    double *values = values_of(cache_path, 1, six[0]);
    bj_audit *audit = open_audit(cache_path, 1, 0);
    const bj_audit_counts counts = bj_audit_count(audit);
    int64_t scene = 0, origins = 0, others = 0;
    int spread = 0;
    bj_sha256 hash;
    char hex[BJ_SHA256_HEX];
    bj_sha256_init(&hash);
    CHECK_OK(bj_cache_open(&cache, cache_path, 0, &err), err);
    CHECK_OK(bj_predictor_create(&predictor, six[0], &how, &err), err);
    CHECK_OK(bj_drivable_create(&areas, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    for (int64_t i = 0; i < bj_cache_count(cache); i++) {
        const bj_scene_info info = bj_cache_info(cache, i);
        bj_real w[6], y[6 * 120];
        double p[6], local[6 * 120], city[6 * 120], sum = 0;
        const bj_batch *batch;
        bj_audit_scene s;
        if (!bj_audit_takes(info.focal_type)) {
            others++;
            continue;
        }
        CHECK(!strcmp(bj_audit_scenario_id(audit, scene), info.scenario_id));
        const double frame[3] = {info.origin[0], info.origin[1], info.heading};
        bj_sha256_update(&hash, info.scenario_id, strlen(info.scenario_id) + 1);
        bj_sha256_update(&hash, frame, sizeof frame);
        bj_sha256_update(&hash, info.map_sha256, 32);
        CHECK_OK(bj_loader_batch(&batch, NULL, loader, 0, i, &err), err);
        CHECK_OK(bj_predict(predictor, batch, w, y, NULL, &err), err);
        CHECK_OK(bj_drivable_set_cache(areas, cache, info.map, BJ_AUDIT_TOLERANCE, &err), err);
        for (int k = 0; k < 6; k++) sum += w[k];
        for (int k = 0; k < 6; k++) p[k] = w[k] / sum;
        for (int k = 0; k < 6 * 120; k++) local[k] = y[k];
        bj_to_city(city, local, 6 * 60, info.origin, info.heading);
        bj_audit_measure(&s, areas, 6, 60, p, city);
        origins += bj_drivable_inside(areas, info.origin[0], info.origin[1]);
        for (int m = 0; m < BJ_AUDIT_METRICS; m++)
            CHECK_NEAR(values[m * counts.scenes + scene], s.value[m], 1e-12);
        spread += s.value[BJ_AUDIT_TRAJECTORY_MASS] > 0 && s.value[BJ_AUDIT_TRAJECTORY_MASS] < 1;
        scene++;
    }
    CHECK(scene == counts.scenes && counts.total == SCENES && others == SCENES - scene);
    CHECK(others > 0 && origins == counts.origins && origins > 0);
    bj_sha256_final(&hash, hex);
    CHECK(!strcmp(hex, bj_audit_digest(audit)));
    CHECK_MSG(spread > 10, "only %d scenes have both kinds of candidates", spread);
    bj_loader_free(loader);
    bj_drivable_free(areas);
    bj_predictor_free(predictor);
    bj_cache_free(cache);
    bj_audit_free(audit);
    free(values);
}

static void test_blind_and_threads(void) {
    bj_audit *a = open_audit(cache_path, 1, 0), *b = open_audit(blind_path, 3, 0);
    const size_t size = (size_t)bj_audit_count(a).scenes * BJ_AUDIT_METRICS * sizeof(double);
    const bj_audit_counts ca = bj_audit_count(a), cb = bj_audit_count(b);
    double *seen = values_of(cache_path, 1, six[1]), *unseen = values_of(blind_path, 1, six[1]);
    double *three = values_of(blind_path, 3, six[1]);
    CHECK(!memcmp(seen, unseen, size)); /* bitwise equal */
    CHECK(!memcmp(seen, three, size));
    CHECK(!memcmp(&ca, &cb, sizeof ca) && !strcmp(bj_audit_digest(a), bj_audit_digest(b)));
    bj_audit_free(a);
    bj_audit_free(b);
    free(seen);
    free(unseen);
    free(three);
    a = open_audit(cache_path, 1, 40);
    b = open_audit(cache_path, 1, 0);
    CHECK(bj_audit_count(a).total == 40 && bj_audit_count(a).scenes <= 40);
    CHECK(strlen(bj_audit_digest(a)) == 64 && strcmp(bj_audit_digest(a), bj_audit_digest(b)));
    bj_audit_free(a);
    bj_audit_free(b);
}

/* ----------------------------------------------------------------------------------------- arms */

static void test_arms(void) {
    bj_error err = {0};
    bj_audit *audit = open_audit(cache_path, 2, 0);
    const int64_t n = bj_audit_count(audit).scenes;
    double *values = malloc((size_t)n * 7 * 8), *first = malloc((size_t)n * 7 * 8);
    bj_bootstrap all[BJ_AUDIT_METRICS], single;
    CHECK(bj_audit_arms(audit) == 0 && bj_audit_find_arm(audit, "six") == -1);
    CHECK_OK(bj_audit_add(audit, "six", 0, six[0], first, &err), err);
    CHECK_OK(bj_audit_add(audit, "one", 0, one[0], NULL, &err), err);
    CHECK(bj_audit_add(audit, "six", 0, six[1], NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'six' already has a model with seed 0");
    CHECK_OK(bj_audit_add(audit, "six", 1, six[1], values, &err), err);
    CHECK(bj_audit_arms(audit) == 2 && bj_audit_find_arm(audit, "one") == 1);
    CHECK(bj_audit_seeds(audit, 0) == 2 && bj_audit_seeds(audit, 1) == 1);
    CHECK(bj_audit_compare(all, audit, 0, 1, 100, 1, 0.95, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "arm 'six' has seed 1, but arm 'one' does not");
    CHECK(bj_audit_compare(all, audit, 1, 0, 100, 1, 0.95, &err) == BJ_EARG);
    CHECK_OK(bj_audit_add(audit, "one", 1, one[1], NULL, &err), err);
    CHECK(bj_audit_compare(all, audit, 0, 2, 100, 1, 0.95, &err) == BJ_EARG);

    double *mean = malloc((size_t)n * 8), *other = malloc((size_t)n * 8);
    CHECK_OK(bj_audit_compare(all, audit, 0, 1, 500, 9, 0.95, &err), err);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        const double x = bj_audit_report_at(audit, 0, 0).mean[m];
        const double y = bj_audit_report_at(audit, 0, 1).mean[m];
        const bj_audit_summary s = bj_audit_summarize(audit, 0, m);
        CHECK(s.n == 2);
        CHECK_NEAR(s.mean, (x + y) / 2, 1e-15);
        CHECK_NEAR(s.sd, fabs(x - y) / 2, 1e-14); /* population SD */
        bj_audit_values(mean, audit, 0, m);
        bj_audit_values(other, audit, 1, m);
        for (int64_t i = 0; i < n; i++)
            CHECK_NEAR(mean[i], (first[m * n + i] + values[m * n + i]) / 2, 1e-15);
        CHECK_OK(bj_bootstrap_paired(&single, mean, other, n, 500, 9, 0.95, 1, &err), err);
        CHECK(!memcmp(&single, &all[m], sizeof single));
        CHECK_NEAR(all[m].mean, s.mean - bj_audit_summarize(audit, 1, m).mean, 1e-13);
        CHECK(all[m].low <= all[m].mean && all[m].mean <= all[m].high);
    }
    CHECK(all[BJ_AUDIT_UNIQUE_SUPPORT].mean > 0.5 && all[BJ_AUDIT_UNIQUE_SUPPORT].low > 0);
    CHECK(bj_audit_summarize(audit, 1, BJ_AUDIT_TRAJECTORY_DIVERSITY).mean == 0); /* K = 1 */
    CHECK(bj_audit_summarize(audit, 0, BJ_AUDIT_TRAJECTORY_DIVERSITY).sd > 0);
    free(mean);
    free(other);
    free(values);
    free(first);
    bj_audit_free(audit);
}

/* -------------------------------------------------------------------------------------- refusal */

static int stop_at_second(void *context, int64_t done, int64_t total) {
    CHECK(done > 0 && done <= total);
    return ++*(int *)context == 2;
}

static void test_refused(void) {
    bj_error err = {0};
    bj_audit *audit = NULL;
    bj_model *other = NULL;
    int calls = 0;
    const bj_audit_options options = {.threads = 1, .progress = stop_at_second, .context = &calls};
    CHECK(bj_audit_open(&audit, "/nowhere.bjc", NULL, &err) == BJ_EIO && !audit);
    CHECK(bj_audit_open(NULL, cache_path, NULL, &err) == BJ_EARG);
    CHECK_OK(bj_audit_open(&audit, cache_path, &options, &err), err);
    CHECK(bj_audit_add(audit, "six", 0, six[0], NULL, &err) == BJ_ELOCKED);
    CHECK(bj_audit_arms(audit) == 0); /* unchanged */
    calls = 10;
    CHECK_OK(bj_audit_add(audit, "six", 0, six[0], NULL, &err), err);
    bj_arch arch = *bj_model_arch(six[0]);
    arch.obs = 40;
    CHECK_OK(bj_model_create(&other, &arch, 0, &err), err);
    CHECK(bj_audit_add(audit, "six", 1, other, NULL, &err) != BJ_OK);
    CHECK(bj_audit_seeds(audit, 0) == 1);
    CHECK(bj_audit_add(audit, "six", 1, NULL, NULL, &err) == BJ_EARG);
    bj_model_free(other);
    bj_audit_free(audit);
    bj_audit_free(NULL);
}

static void test_memory(void) {
    const bj_audit_options options = {.threads = 1, .limit = 20, .isa = "c"};
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    long steps = 0;
    for (; status != BJ_OK && steps < 10000; steps++) { /* the n-th allocation fails */
        bj_error err = {0};
        bj_bootstrap d[BJ_AUDIT_METRICS];
        bj_audit *audit = NULL;
        bj_alloc_fail_after(steps);
        status = bj_audit_open(&audit, cache_path, &options, &err);
        if (status == BJ_OK) status = bj_audit_add(audit, "a", 0, six[0], NULL, &err);
        if (status == BJ_OK) status = bj_audit_add(audit, "b", 0, one[0], NULL, &err);
        if (status == BJ_OK) status = bj_audit_compare(d, audit, 0, 1, 10, 0, 0.95, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_OK || status == BJ_ENOMEM, "%s", err.message);
        bj_audit_free(audit);
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
    snprintf(blind_path, sizeof blind_path, "%s/zero.bjc", folder);
    CHECK_OK(bj_world_to_cache(&report, cache_path, &world, &err), err);
    CHECK_OK(zero_futures(cache_path, blind_path, &err), err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(make_model(&six[i], (uint64_t)i, 6, &err), err);
        CHECK_OK(make_model(&one[i], (uint64_t)i + 100, 1, &err), err);
    }
    if (!test_failed) {
        test_scene_by_scene();
        test_blind_and_threads();
        test_arms();
        test_refused();
        test_memory();
    }
    for (int i = 0; i < 2; i++) {
        bj_model_free(six[i]);
        bj_model_free(one[i]);
    }
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK(system(command) == 0);
    return test_report("audit");
}

int main(int argc, char **argv) {
    bj_error err = {0};
    bj_status status;
    if (argc == 1) return run_tests();
    if (argc == 5 && !strcmp(argv[1], "model"))
        status = save_model(argv[2], strtoull(argv[3], NULL, 10), atoi(argv[4]), &err);
    else if (argc == 4 && !strcmp(argv[1], "zero")) status = zero_futures(argv[2], argv[3], &err);
    else if (argc == 4 && !strcmp(argv[1], "campaign"))
        status = make_campaign(argv[2], argv[3], &err);
    else return 2;
    if (status != BJ_OK) fprintf(stderr, "%s\n", err.message);
    return status != BJ_OK || test_failed;
}
