/* test_submit.c - tests that a submission contains the network's outputs in the city frame.
 *
 * Without arguments, runs the tests. With arguments, for tests/cli/submit.sh:
 *   make DIR    writes DIR/model.safetensors and DIR/test.bjc
 */
#define _XOPEN_SOURCE 700
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "data/loader_case.h"
#include "support/test.h"

enum { SCENES = 70, K = 3, F = BJ_SUBMISSION_STEPS };

static char folder[] = "/tmp/test_submit.XXXXXX";
static char cache_path[64], path[64], other_path[64];

/* Returns an architecture with the paper's scene sizes and a network small
 * enough for sanitizers. */
static bj_arch small_arch(void) {
    bj_arch arch = bj_arch_paper();
    arch.embed = 16;
    arch.heads = 2;
    arch.token_hidden = arch.proj_hidden = arch.atom_hidden = arch.router_hidden = 16;
    arch.latent = arch.decoder_hidden = 16;
    arch.atoms = K;
    return arch;
}

static bj_model *make_model(const bj_arch *arch) {
    bj_error err = {0};
    bj_model *model = NULL;
    CHECK_OK(bj_model_create(&model, arch, 3, &err), err);
    return model;
}

static bj_status submit(int64_t *scenes, const char *where, const bj_model *model, int threads,
                        bj_error *err) {
    bj_cache *cache = NULL;
    const bj_submit_options options = {.threads = threads};
    bj_status status = bj_cache_open(&cache, cache_path, 1, err);
    if (status == BJ_OK) status = bj_submit(scenes, where, model, cache, &options, err);
    bj_cache_free(cache);
    return status;
}

/* Compares every scene with the output of the predictor, which the test transforms itself. */
static void test_content(const bj_model *model) {
    bj_error err = {0};
    bj_cache *cache = NULL;
    bj_loader *loader = NULL;
    bj_predictor *predictor = NULL;
    bj_submission *s = NULL;
    int64_t scenes = 0;
    const bj_loader_options order = {.part = BJ_PART_ALL, .batch = 1};
    const bj_predictor_options how = {.max_batch = 1, .threads = 1};
    CHECK_OK(submit(&scenes, path, model, 2, &err), err);
    CHECK(scenes == SCENES);
    CHECK_OK(bj_cache_open(&cache, cache_path, 1, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    CHECK_OK(bj_predictor_create(&predictor, model, &how, &err), err);
    CHECK_OK(bj_submission_open(&s, path, &err), err);
    if (!s || !loader || !predictor) return;
    CHECK(bj_submission_rows(s) == SCENES * K && bj_submission_scenarios(s) == SCENES);
    for (int64_t i = 0; i < SCENES; i++) {
        const bj_batch *batch = NULL;
        const int64_t *numbers = NULL;
        bj_real weights[K], y[K * F * 2];
        double sum = 0, total = 0, worst = 0;
        CHECK_OK(bj_loader_batch(&batch, &numbers, loader, 0, i, &err), err);
        CHECK_OK(bj_predict(predictor, batch, weights, y, NULL, &err), err);
        const bj_scene_info info = bj_cache_info(cache, numbers[0]);
        CHECK(bj_submission_find(s, info.scenario_id) == i);
        for (int k = 0; k < K; k++) sum += weights[k];
        for (int k = 0; k < K; k++) {
            const bj_submission_row r = bj_submission_at(s, i * K + k);
            CHECK(!strcmp(r.scenario_id, info.scenario_id) && !strcmp(r.track_id, info.focal_id));
            CHECK_NEAR(r.probability, weights[k] / sum, 1e-15);
            total += r.probability;
            for (int t = 0; t < F; t++) {
                const double px = y[(k * F + t) * 2], py = y[(k * F + t) * 2 + 1];
                const double c = cos(info.heading), n = sin(info.heading);
                const double ex = fabs(r.x[t] - (info.origin[0] + c * px - n * py));
                const double ey = fabs(r.y[t] - (info.origin[1] + n * px + c * py));
                worst = fmax(worst, fmax(ex, ey));
            }
        }
        CHECK_NEAR(total, 1, 4e-16);
        CHECK_NEAR(worst, 0, 1e-11);
    }
    bj_submission_free(s);
    bj_predictor_free(predictor);
    bj_loader_free(loader);
    bj_cache_free(cache);
}

static int stop_at_once(void *context, int64_t done, int64_t total) {
    *(int64_t *)context = done;
    return total == SCENES;
}

static void test_same_bytes_and_stops(const bj_model *model) {
    bj_error err = {0};
    int64_t scenes = 7, seen = 0;
    bj_cache *cache = NULL;
    char *a = NULL, *b = NULL;
    size_t a_size = 0, b_size = 0;
    CHECK_OK(submit(&scenes, other_path, model, 1, &err), err); /* with another number of threads */
    CHECK_OK(bj_file_read(&a, &a_size, path, 1 << 26, &err), err);
    CHECK_OK(bj_file_read(&b, &b_size, other_path, 1 << 26, &err), err);
    CHECK(a_size == b_size && a && b && !memcmp(a, b, a_size));
    bj_free(a);
    bj_free(b);
    unlink(other_path);
    const bj_submit_options stopping = {.threads = 1, .progress = stop_at_once, .context = &seen};
    CHECK_OK(bj_cache_open(&cache, cache_path, 1, &err), err);
    CHECK_OK(bj_submit(&scenes, other_path, model, cache, &stopping, &err), err);
    CHECK(scenes == 0 && seen > 0 && seen < SCENES && access(other_path, F_OK) != 0);
    bj_cache_free(cache);
}

static void test_refusals(void) {
    bj_error err = {0};
    int64_t scenes;
    bj_arch arch = small_arch();
    arch.fut = 30;
    bj_model *model = make_model(&arch);
    CHECK(submit(&scenes, other_path, model, 1, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "30 future steps");
    CHECK(access(other_path, F_OK) != 0);
    bj_model_free(model);
    arch = small_arch();
    arch.neighbors = 8;
    model = make_model(&arch);
    CHECK(submit(&scenes, other_path, model, 1, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "8 neighbors, but the scenes have 16");
    bj_model_free(model);
    CHECK(bj_submit(&scenes, other_path, NULL, NULL, NULL, &err) == BJ_EARG);
}

/* Tests that scoring the file against its cache gives the same values as bj_metrics for the same
 * outputs. */
static void test_score(const bj_model *model) {
    bj_error err = {0};
    bj_cache *cache = NULL;
    bj_loader *loader = NULL;
    bj_predictor *predictor = NULL;
    bj_metrics *metrics = NULL;
    bj_submission *s = NULL;
    bj_truth *truth = NULL;
    bj_score *score = NULL;
    const bj_loader_options order = {.part = BJ_PART_ALL, .batch = 1, .needs_future = 1};
    const bj_predictor_options how = {.max_batch = 1, .threads = 1};
    const bj_score_options listed = {0, 5};
    CHECK_OK(bj_cache_open(&cache, cache_path, 0, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    CHECK_OK(bj_predictor_create(&predictor, model, &how, &err), err);
    CHECK_OK(bj_metrics_create(&metrics, K, 0, 0, F, &err), err);
    if (!loader || !predictor || !metrics) return;
    for (int64_t i = 0; i < bj_loader_scenes(loader); i++) {
        const bj_batch *batch = NULL;
        bj_real weights[K], y[K * F * 2];
        const int64_t *numbers = NULL;
        CHECK_OK(bj_loader_batch(&batch, &numbers, loader, 0, i, &err), err);
        CHECK_OK(bj_predict(predictor, batch, weights, y, NULL, &err), err);
        const bj_outputs o = {
            .B = 1, .K = K, .F = F, .weights = weights, .decoded = y, .decoded_stride = 2 * F};
        CHECK_OK(bj_metrics_add(metrics, &o, batch->scenes[0].future, &err), err);
    }
    const bj_metric_values v = bj_metrics_values(metrics);
    CHECK_OK(bj_submission_open(&s, path, &err), err);
    CHECK_OK(bj_truth_open(&truth, cache_path, NULL, &err), err);
    CHECK_OK(bj_score_create(&score, s, truth, &listed, &err), err);
    if (!score) return;
    const bj_score_counts c = bj_score_count(score);
    CHECK(c.violations_total == 0 && c.scored == bj_loader_scenes(loader) && c.scored < SCENES);
    CHECK(c.no_future == SCENES - c.scored && v.scenes == (double)c.scored);
    const bj_score_values w = bj_score_group_at(score, 0).values;
    const double pairs[][2] = {{v.traj_es, w.distribution.traj_es},
                               {v.end_es, w.distribution.end_es},
                               {v.exp_ade, w.distribution.exp_ade},
                               {v.exp_fde, w.distribution.exp_fde},
                               {v.brier, w.distribution.brier},
                               {v.ece, w.distribution.ece},
                               {v.exp_entropy, w.distribution.exp_entropy},
                               {v.dedup_support, w.distribution.dedup_support},
                               {v.top1_ade, w.min_ade_1},
                               {v.top1_fde, w.min_fde_1},
                               {v.min_ade, w.min_ade_6},
                               {v.min_fde, w.min_fde_6},
                               {v.min_ade_6, w.min_ade_6},
                               {v.min_fde_6, w.min_fde_6},
                               {v.mr_6, w.mr_6},
                               {v.brier_min_fde_1, w.brier_min_fde_1},
                               {v.brier_min_fde_6, w.brier_min_fde_6},
                               {v.min_mr, w.mr_6}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        CHECK_MSG(fabs(pairs[i][0] - pairs[i][1]) <= 2e-6, "%zu: %.9g, expected %.9g", i,
                  pairs[i][1], pairs[i][0]);
    bj_score_free(score);
    bj_truth_free(truth);
    bj_submission_free(s);
    bj_metrics_free(metrics);
    bj_predictor_free(predictor);
    bj_loader_free(loader);
    bj_cache_free(cache);
}

static int remove_entry(const char *name, const struct stat *info, int type, struct FTW *walk) {
    (void)info, (void)type, (void)walk;
    return remove(name);
}

static int make(const char *where) {
    bj_error err = {0};
    const bj_arch arch = small_arch();
    bj_model *model = make_model(&arch);
    snprintf(path, sizeof path, "%.40s/" BJ_CHECKPOINT_MODEL, where);
    snprintf(cache_path, sizeof cache_path, "%.40s/test.bjc", where);
    if (model) CHECK_OK(bj_model_save(model, path, NULL, 0, &err), err);
    CHECK_OK(loader_case_write(cache_path, SCENES, &err), err);
    bj_model_free(model);
    return test_failed;
}

int main(int argc, char **argv) {
    bj_error err = {0};
    if (argc == 3 && !strcmp(argv[1], "make")) return make(argv[2]);
    if (!mkdtemp(folder)) return 1;
    snprintf(cache_path, sizeof cache_path, "%s/test.bjc", folder);
    snprintf(path, sizeof path, "%s/submission.parquet", folder);
    snprintf(other_path, sizeof other_path, "%s/other.parquet", folder);
    CHECK_OK(loader_case_write(cache_path, SCENES, &err), err);
    const bj_arch arch = small_arch();
    bj_model *model = make_model(&arch);
    if (model) {
        test_content(model);
        test_same_bytes_and_stops(model);
        test_refusals();
        test_score(model);
    }
    bj_model_free(model);
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    return test_report("submit");
}
