/* test_evaluator.c - compares the evaluator with its parts: prediction, target latents and metrics.
 *
 * The reference uses bj_predict and bj_future_encode with one thread, and bj_metrics_add. The
 * evaluator must give bit-identical values for every kind of model, 1 to 3 threads and any batch
 * sizes. Each group must equal bj_metrics_add on the scenes of that group. Groups and values are
 * also compared with bj_score on simulated scenes.
 *
 * Without arguments, runs the tests. With arguments, for tests/cli/eval.sh
 * and tests/eval/peer_eval.py:
 *   make CACHE DIR [branch|point|outputonly|uniform]
 *     writes a checkpoint folder of a small model after a few steps on the cache
 */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "core/alloc.h"
#include "train/train_case.h"

enum { SCENES = 83, BATCH = 32 };

static void require(bj_status status, const bj_error *err) {
    if (status == BJ_OK) return;
    fprintf(stderr, "cannot go on: %s\n", err->message);
    exit(1);
}

/* Scales up router and decoder, so that weights and maneuvers differ between branches. */
static void stretch(bj_model *model) {
    static const char *const names[] = {"router.2.weight", "decoder.2.weight"};
    for (int i = 0; i < 2; i++) {
        bj_error err;
        bj_tensor t;
        if (bj_model_find(&t, model, names[i], &err) != BJ_OK) continue;
        for (size_t j = 0; j < t.size; j++) t.data[j] *= 20;
    }
}

/* ----------------------------------------------------------------------------------- reference */

/* A model, the target encoder of its trainer, scenes, and the outputs computed with one thread. */
typedef struct world {
    bj_arch arch;
    train_case train;
    bj_target *target;
    made_batch made;
    bj_scene_info infos[SCENES];
    bj_real *weights, *paths, *atoms, *latents;
    int L;
} world;

static const char *const types[] = {"vehicle", "bus", "cyclist"};
static const char *const cities[] = {"pittsburgh", "austin"};

static void make_scenes(world *w) {
    const size_t track = (size_t)w->arch.obs * BJ_FOCAL_FEATURES, F = (size_t)w->arch.fut;
    w->made = make_batch(&w->arch, SCENES, -1, -1, 21);
    for (size_t b = 0; b < SCENES; b++) {
        bj_real *last = w->made.focal + (b + 1) * track - BJ_FOCAL_FEATURES;
        last[2] = (bj_real)(b % 19); /* speed in m/s; the values cover every bin and its limits */
        last[3] = 0;
        bj_real *end = w->made.future + (b + 1) * F * 2 - 2;
        end[0] = (bj_real)(b % 5 == 0 ? 0.5 : 8); /* stop, then straight, left, right */
        end[1] = (bj_real)(b % 5 == 0 ? 0 : b % 5 == 3 ? 9 : b % 5 == 4 ? -9 : 1);
        w->infos[b] = (bj_scene_info){.city = cities[b % 7 == 0], .focal_type = types[b % 3]};
    }
}

static world make_world(bj_arch arch, bj_objective_kind kind) {
    bj_error err;
    world w = {.arch = arch, .L = arch.kind == BJ_MODEL_BRANCH ? arch.atoms : 1};
    const size_t K = (size_t)arch.atoms, D = (size_t)arch.latent;
    w.train = open_case(&arch, bj_objective_default(kind), 1);
    stretch(w.train.model);
    shake_target(&w.train, 0.2, 4);
    require(bj_target_from_trainer(&w.target, w.train.trainer, &err), &err);
    make_scenes(&w);
    w.weights = case_alloc(SCENES * K, sizeof(bj_real));
    w.paths = case_alloc(SCENES * K * 2 * (size_t)arch.fut, sizeof(bj_real));
    w.atoms = case_alloc(SCENES * (size_t)w.L * D, sizeof(bj_real));
    w.latents = case_alloc(SCENES * D, sizeof(bj_real));
    const bj_predictor_options how = {SCENES, 1, BJ_PRECISION_FULL, NULL};
    bj_predictor *p;
    bj_future_encoder *e;
    require(bj_predictor_create(&p, w.train.model, &how, &err), &err);
    require(bj_future_encoder_create(&e, w.train.model, w.target, &how, &err), &err);
    require(bj_predict(p, &w.made.batch, w.weights, w.paths, w.atoms, &err), &err);
    require(bj_future_encode(e, &w.made.batch, w.latents, NULL, &err), &err);
    bj_predictor_free(p);
    bj_future_encoder_free(e);
    return w;
}

static void free_world(world *w) {
    free(w->weights), free(w->paths), free(w->atoms), free(w->latents);
    bj_target_free(w->target);
    free_batch(&w->made);
    close_case(&w->train);
}

typedef int (*picker)(const world *w, int scene, const char *key);

/* Returns the values of bj_metrics_add for the selected scenes, added one by one. */
static bj_metric_values plain(const world *w, int with_target, picker picks, const char *key) {
    bj_error err;
    bj_metrics *m;
    const bj_arch *a = &w->arch;
    const size_t K = (size_t)a->atoms, D = (size_t)a->latent, line = 2 * (size_t)a->fut;
    require(bj_metrics_create(&m, a->atoms, with_target ? w->L : 0, a->latent, a->fut, &err), &err);
    for (size_t b = 0; b < SCENES; b++) {
        if (picks && !picks(w, (int)b, key)) continue;
        const bj_outputs o = {.B = 1,
                              .K = a->atoms,
                              .latents = with_target ? w->L : 0,
                              .D = a->latent,
                              .F = a->fut,
                              .atoms = w->atoms + b * (size_t)w->L * D,
                              .weights = w->weights + b * K,
                              .decoded = w->paths + b * K * line,
                              .target = w->latents + b * D,
                              .atom_stride = D,
                              .decoded_stride = line};
        CHECK_OK(bj_metrics_add(m, &o, w->made.future + b * line, &err), err);
    }
    const bj_metric_values v = bj_metrics_values(m);
    bj_metrics_free(m);
    return v;
}

/* Returns 1 if all values are bitwise equal or both NaN. */
static int same(const bj_metric_values *a, const bj_metric_values *b) {
    double x[sizeof *a / sizeof(double)], y[sizeof *a / sizeof(double)];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i] && !(isnan(x[i]) && isnan(y[i]))) return 0;
    return 1;
}

static bj_evaluator *start(const world *w, const bj_target *target, int threads, int grouped) {
    bj_error err;
    bj_evaluator *e;
    const bj_evaluator_options options = {BATCH, threads, BJ_PRECISION_FULL, NULL, grouped};
    require(bj_evaluator_create(&e, w->train.model, target, &options, &err), &err);
    return e;
}

/* Adds all scenes in batches of sizes 1, 1 + by, 1 + 2 by, ... */
static void feed(bj_evaluator *e, const world *w, int by) {
    bj_error err;
    for (int first = 0, size = 1; first < SCENES; first += size, size += by) {
        if (size > BATCH) size = BATCH;
        if (first + size > SCENES) size = SCENES - first;
        const bj_batch part = {.B = size, .scenes = w->made.scenes + first};
        CHECK_OK(bj_evaluator_add(e, &part, w->infos + first, &err), err);
    }
}

/* --------------------------------------------------------------------------------------- tests */

static void test_values(bj_arch arch, bj_objective_kind kind) {
    world w = make_world(arch, kind);
    const bj_metric_values with = plain(&w, 1, NULL, NULL), without = plain(&w, 0, NULL, NULL);
    CHECK(with.scenes == SCENES && isfinite(with.latent_es) && isnan(without.latent_es));
    CHECK(with.traj_es == without.traj_es);
    for (int threads = 1; threads <= 3; threads++)
        for (int by = 0; by <= 11; by += 4) {
            bj_evaluator *e = start(&w, w.target, threads, by == 4);
            CHECK(bj_evaluator_values(e).scenes == 0 && bj_evaluator_groups(e) == 1);
            feed(e, &w, by);
            const bj_metric_values v = bj_evaluator_values(e);
            CHECK_MSG(same(&v, &with), "%s, K = %d, %d threads, by %d", bj_objective_name(kind),
                      arch.atoms, threads, by);
            bj_evaluator_free(e);
            e = start(&w, NULL, threads, 0);
            feed(e, &w, by);
            const bj_metric_values bare = bj_evaluator_values(e);
            CHECK(same(&bare, &without) && isnan(bare.neff_collision));
            bj_evaluator_free(e);
        }
    free_world(&w);
}

static int pick_maneuver(const world *w, int b, const char *key) {
    (void)w;
    const char *const of[] = {"stop", "straight", "straight", "left", "right"};
    return !strcmp(of[b % 5], key);
}

static int pick_type(const world *w, int b, const char *key) {
    return !strcmp(w->infos[b].focal_type, key);
}

static int pick_city(const world *w, int b, const char *key) {
    return !strcmp(w->infos[b].city, key);
}

static int pick_speed(const world *w, int b, const char *key) {
    (void)w;
    const int v = b % 19;
    return !strcmp(v < 2 ? "0-2" : v < 5 ? "2-5" : v < 10 ? "5-10" : v < 15 ? "10-15" : "15+", key);
}

static void test_groups(void) {
    static const struct {
        const char *by, *key;
        picker picks;
    } expected[] = {{"all", "all", NULL},
                    {"maneuver", "stop", pick_maneuver},
                    {"maneuver", "straight", pick_maneuver},
                    {"maneuver", "left", pick_maneuver},
                    {"maneuver", "right", pick_maneuver},
                    {"type", "bus", pick_type},
                    {"type", "cyclist", pick_type},
                    {"type", "vehicle", pick_type},
                    {"city", "austin", pick_city},
                    {"city", "pittsburgh", pick_city},
                    {"speed", "0-2", pick_speed},
                    {"speed", "2-5", pick_speed},
                    {"speed", "5-10", pick_speed},
                    {"speed", "10-15", pick_speed},
                    {"speed", "15+", pick_speed}};
    enum { GROUPS = sizeof expected / sizeof *expected };
    world w = make_world(small_arch(), BJ_FULLSET);
    bj_evaluator *e = start(&w, w.target, 2, 1);
    feed(e, &w, 3);
    for (int b = 0; b < SCENES; b++) w.infos[b] = (bj_scene_info){0}; /* the evaluator must not
                                                                         keep pointers to them */
    CHECK(bj_evaluator_groups(e) == GROUPS);
    for (int b = 0; b < SCENES; b++)
        w.infos[b] = (bj_scene_info){.city = cities[b % 7 == 0], .focal_type = types[b % 3]};
    for (int i = 0; i < GROUPS && i < bj_evaluator_groups(e); i++) {
        const bj_evaluation_group g = bj_evaluator_group_at(e, i);
        const bj_metric_values v = plain(&w, 1, expected[i].picks, expected[i].key);
        CHECK_MSG(!strcmp(g.by, expected[i].by) && !strcmp(g.key, expected[i].key), "%s %s", g.by,
                  g.key);
        CHECK_MSG(v.scenes > 0 && same(&g.values, &v), "%s %s", g.by, g.key);
    }
    bj_evaluator_free(e);
    free_world(&w);
}

static void test_usage_and_calibration(void) {
    bj_arch arch = small_arch();
    arch.atoms = 6;
    world w = make_world(arch, BJ_FULLSET);
    bj_evaluator *e = start(&w, w.target, 2, 0);
    double shares[6], sum = 0;
    bj_calibration_bin bins[BJ_CALIBRATION_BINS];
    bj_evaluator_usage(shares, e);
    bj_evaluator_calibration(bins, e);
    CHECK(isnan(shares[0]) && bins[3].count == 0 && isnan(bins[3].confidence));
    feed(e, &w, 5);
    bj_evaluator_usage(shares, e);
    for (size_t k = 0; k < 6; k++) {
        double mass = 0;
        for (size_t b = 0; b < SCENES; b++) mass += w.weights[b * 6 + k];
        CHECK_NEAR(shares[k], mass / SCENES, 1e-6);
        sum += shares[k];
    }
    CHECK_NEAR(sum, 1, 1e-14);
    CHECK(fabs(shares[0] - shares[1]) > 1e-3);

    /* Compute the maneuver masses of every scene directly. */
    double count[BJ_CALIBRATION_BINS] = {0}, confidence[BJ_CALIBRATION_BINS] = {0};
    double hits[BJ_CALIBRATION_BINS] = {0}, scenes = 0, ece = 0;
    const size_t line = 2 * (size_t)arch.fut;
    for (size_t b = 0; b < SCENES; b++) {
        double mass[4] = {0};
        for (size_t k = 0; k < 6; k++) {
            const bj_real *end = w.paths + (b * 6 + k + 1) * line - 2;
            const double angle = atan2((double)end[1], (double)end[0]) * 180 / acos(-1);
            mass[hypot((double)end[0], (double)end[1]) < 2 ? 0
                 : angle >= 30                             ? 2
                 : angle <= -30                            ? 3
                                                           : 1] += w.weights[b * 6 + k];
        }
        int likeliest = 0;
        for (int c = 1; c < 4; c++)
            if (mass[c] > mass[likeliest]) likeliest = c;
        const int truth = b % 5 == 0 ? 0 : b % 5 == 3 ? 2 : b % 5 == 4 ? 3 : 1;
        const int bin = mass[likeliest] >= 1 ? 9 : (int)(mass[likeliest] * 10);
        count[bin]++;
        confidence[bin] += mass[likeliest];
        hits[bin] += likeliest == truth;
    }
    bj_evaluator_calibration(bins, e);
    int used = 0;
    for (int i = 0; i < BJ_CALIBRATION_BINS; i++) {
        CHECK(bins[i].count == count[i]);
        if (!count[i]) {
            CHECK(isnan(bins[i].confidence) && isnan(bins[i].hits));
            continue;
        }
        used++;
        CHECK_NEAR(bins[i].confidence, confidence[i] / count[i], 1e-12);
        CHECK_NEAR(bins[i].hits, hits[i] / count[i], 1e-12);
        scenes += count[i];
        ece += bins[i].count * fabs(bins[i].hits - bins[i].confidence);
    }
    CHECK(scenes == SCENES && used >= 2);
    CHECK_NEAR(bj_evaluator_values(e).ece, ece / SCENES, 1e-12);
    bj_evaluator_free(e);
    free_world(&w);
}

static int same_health(const bj_latent_health *a, const bj_latent_health *b) {
    return a->mean_std == b->mean_std && a->low_std_fraction == b->low_std_fraction &&
           a->entropy_rank == b->entropy_rank && a->participation == b->participation;
}

static void test_health(void) {
    enum { MOST = 4096, ROUNDS = 51 };
    bj_error err;
    bj_latent_health h, expected;
    world w = make_world(small_arch(), BJ_FULLSET);
    const int D = w.arch.latent;
    bj_evaluator *e = start(&w, NULL, 1, 0);
    feed(e, &w, 3);
    CHECK_OK(bj_evaluator_health(&h, e, &err), err);
    CHECK(isnan(h.mean_std) && isnan(h.low_std_fraction) && isnan(h.entropy_rank) &&
          isnan(h.participation));
    bj_evaluator_free(e);

    e = start(&w, w.target, 2, 0);
    CHECK_OK(bj_evaluator_health(&h, e, &err), err);
    CHECK(isnan(h.mean_std)); /* no scene has been added yet */
    feed(e, &w, 3);
    CHECK_OK(bj_evaluator_health(&h, e, &err), err);
    require(bj_latent_health_measure(&expected, w.latents, (size_t)D, SCENES, D, &err), &err);
    CHECK(same_health(&h, &expected) && h.participation > 1 && h.entropy_rank > 1);
    /* Only the first 4096 latents are used. */
    bj_real *all = case_alloc((size_t)ROUNDS * SCENES * (size_t)D, sizeof *all);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(all + (size_t)i * SCENES * (size_t)D, w.latents, SCENES * (size_t)D * sizeof *all);
        if (i) feed(e, &w, 7);
    }
    CHECK_OK(bj_evaluator_health(&h, e, &err), err);
    require(bj_latent_health_measure(&expected, all, (size_t)D, MOST, D, &err), &err);
    CHECK(ROUNDS * SCENES > MOST && same_health(&h, &expected));
    require(bj_latent_health_measure(&expected, all, (size_t)D, ROUNDS * SCENES, D, &err), &err);
    CHECK(!same_health(&h, &expected));
    free(all);
    bj_evaluator_free(e);
    free_world(&w);
}

/* ------------------------------------------------------------------- rejected input and memory */

static void refused(bj_evaluator *e, const bj_batch *batch, const bj_scene_info *infos,
                    bj_status code, const char *message) {
    bj_error err = {0};
    const bj_metric_values before = bj_evaluator_values(e);
    const int groups = bj_evaluator_groups(e);
    const bj_status status = bj_evaluator_add(e, batch, infos, &err);
    CHECK_MSG(status == code, "%s instead of %s: %s", bj_status_name(status), bj_status_name(code),
              err.message);
    CHECK_CONTAINS(err.message, message);
    const bj_metric_values after = bj_evaluator_values(e);
    CHECK(same(&before, &after) && bj_evaluator_groups(e) == groups);
}

static void test_refusals(void) {
    bj_error err;
    world w = make_world(small_arch(), BJ_FULLSET);
    bj_evaluator *e = start(&w, w.target, 2, 1), *bare = start(&w, NULL, 2, 0);
    const bj_batch part = {.B = 10, .scenes = w.made.scenes}, all = w.made.batch;
    CHECK_OK(bj_evaluator_add(e, &part, w.infos, &err), err);
    CHECK_OK(bj_evaluator_add(bare, &part, NULL, &err), err);
    refused(e, &all, w.infos, BJ_EARG, "83");
    refused(e, &part, NULL, BJ_EARG, "infos is NULL");
    w.infos[4].city = NULL;
    refused(e, &part, w.infos, BJ_EARG, "scene 4");
    w.infos[4].city = "elsewhere"; /* this would create a new group, which must not remain after the
                                      failure */
    w.infos[7].focal_type = NULL;
    refused(e, &part, w.infos, BJ_EARG, "scene 7");
    w.infos[7].focal_type = "bus";
    const bj_real kept = w.made.future[2 * 10 * 6 + 1];
    w.made.future[2 * 10 * 6 + 1] = (bj_real)NAN;
    refused(e, &part, w.infos, BJ_ENONFINITE, "scene 6");
    refused(bare, &part, NULL, BJ_ENONFINITE, "scene 6: true future [1] is ");
    w.made.future[2 * 10 * 6 + 1] = kept;
    w.made.scenes[3].future = NULL;
    refused(e, &part, w.infos, BJ_EARG, "future");
    refused(bare, &part, NULL, BJ_EARG, "future");
    bj_evaluator_free(e);
    bj_evaluator_free(bare);
    bj_evaluator_free(NULL);

    /* Finite weights can give non-finite outputs. */
    bj_tensor inner, outer;
    require(bj_model_find(&inner, w.train.model, "decoder.0.bias", &err), &err);
    require(bj_model_find(&outer, w.train.model, "decoder.2.weight", &err), &err);
    for (size_t i = 0; i < inner.size; i++) inner.data[i] = 1000; /* active for any input */
    for (size_t i = 0; i < outer.size; i++)
        outer.data[i] = (bj_real)(sizeof(bj_real) == sizeof(float) ? 1e38 : 1e308);
    w.made.scenes[3].future = w.made.future;
    e = start(&w, NULL, 2, 0);
    refused(e, &part, NULL, BJ_ENONFINITE, "trajectory");
    bj_evaluator_free(e);

    bj_evaluator_options options = {0, 1, BJ_PRECISION_FULL, NULL, 0};
    CHECK(bj_evaluator_create(&e, w.train.model, NULL, &options, &err) == BJ_EARG && !e);
    CHECK(bj_evaluator_create(&e, NULL, NULL, &options, &err) == BJ_EARG);
    options.max_batch = 4;
    bj_arch other = small_arch();
    other.latent = 11;
    bj_model *model;
    require(bj_model_create(&model, &other, 1, &err), &err);
    CHECK(bj_evaluator_create(&e, model, w.target, &options, &err) == BJ_EMISMATCH && !e);
    CHECK_CONTAINS(err.message, "latent is 9, expected 11");
    bj_model_free(model);
    free_world(&w);
}

static void test_memory(void) {
    bj_error err;
    world w = make_world(small_arch(), BJ_FULLSET);
    const bj_evaluator_options options = {BATCH, 1, BJ_PRECISION_FULL, NULL, 1};
    const long live = bj_alloc_live();
    bj_evaluator *e = NULL;
    int failures = 0;
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_evaluator_create(&e, w.train.model, w.target, &options, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && !e && bj_alloc_live() == live);
        failures++;
    }
    CHECK(failures > 15);
    /* New groups need memory. A call that runs out of memory must not change anything. */
    const bj_batch part = {.B = 10, .scenes = w.made.scenes};
    failures = 0;
    for (long n = 0;; n++) {
        const long before = bj_alloc_live();
        bj_alloc_fail_after(n);
        const bj_status status = bj_evaluator_add(e, &part, w.infos, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && bj_evaluator_groups(e) == 1);
        CHECK(bj_evaluator_values(e).scenes == 0 && bj_alloc_live() <= before + 1); /* list */
        failures++;
    }
    CHECK(failures > 10 && bj_evaluator_values(e).scenes == 10);
    feed(e, &w, 3);
    const long count = bj_alloc_count();
    feed(e, &w, 3);
    CHECK(bj_alloc_count() == count);
    bj_evaluator_free(e);
    CHECK(bj_alloc_live() == live);
    free_world(&w);
}

/* ------------------------------------------------------------------------------------ bj_score */

/* Tests that bj_score computes the same groups and values for a submission with the same forecasts.
 * The values differ slightly because of the conversion to city coordinates. */
static void test_against_score(void) {
    enum { COUNT = 60 };
    char folder[] = "/tmp/test_evaluator.XXXXXX", cache_path[64], path[64], law[96];
    bj_error err;
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(1);
    }
    snprintf(cache_path, sizeof cache_path, "%s/world.bjc", folder);
    snprintf(law, sizeof law, "%s.law.safetensors", cache_path);
    snprintf(path, sizeof path, "%s/submission.parquet", folder);
    const bj_world_options world_options = {.seed = 5, .scenes = COUNT, .jobs = 1};
    bj_world_report report;
    require(bj_world_to_cache(&report, cache_path, &world_options, &err), &err);
    bj_cache *cache;
    bj_model *model;
    bj_truth *truth;
    bj_submission *submission;
    bj_score *score;
    bj_loader *loader;
    bj_evaluator *e;
    int64_t written;
    require(bj_cache_open(&cache, cache_path, 0, &err), &err);
    bj_arch arch = bj_cache_arch(cache);
    arch.embed = arch.latent = arch.proj_hidden = arch.atom_hidden = arch.decoder_hidden = 32;
    arch.token_hidden = arch.router_hidden = 16;
    require(bj_model_create(&model, &arch, 2, &err), &err);
    const bj_submit_options submit = {.threads = 1};
    require(bj_submit(&written, path, model, cache, &submit, &err), &err);
    require(bj_submission_open(&submission, path, &err), &err);
    require(bj_truth_open(&truth, cache_path, NULL, &err), &err);
    require(bj_score_create(&score, submission, truth, NULL, &err), &err);

    const bj_loader_options order = {.batch = 25, .needs_future = 1};
    const bj_evaluator_options options = {.max_batch = 25, .threads = 1, .grouped = 1};
    require(bj_loader_create(&loader, cache, &order, &err), &err);
    require(bj_evaluator_create(&e, model, NULL, &options, &err), &err);
    for (int64_t step = 0; step < bj_loader_steps(loader); step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        bj_scene_info infos[25];
        require(bj_loader_batch(&batch, &numbers, loader, 0, step, &err), &err);
        for (int b = 0; b < batch->B; b++) infos[b] = bj_cache_info(cache, numbers[b]);
        CHECK_OK(bj_evaluator_add(e, batch, infos, &err), err);
    }
    CHECK(bj_evaluator_groups(e) == bj_score_groups(score) && bj_score_groups(score) > 8);
    for (int i = 0; i < bj_score_groups(score) && i < bj_evaluator_groups(e); i++) {
        const bj_evaluation_group g = bj_evaluator_group_at(e, i);
        const bj_score_group s = bj_score_group_at(score, i);
        const bj_metric_values *a = &g.values, *b = &s.values.distribution;
        CHECK_MSG(!strcmp(g.by, s.by) && !strcmp(g.key, s.key), "%s %s, score: %s %s", g.by, g.key,
                  s.by, s.key);
        CHECK(a->scenes == b->scenes);
        CHECK_NEAR(a->traj_es, b->traj_es, 1e-6 * b->traj_es);
        CHECK_NEAR(a->end_es, b->end_es, 1e-6 * b->end_es);
        CHECK_NEAR(a->exp_ade, b->exp_ade, 1e-6 * b->exp_ade);
        CHECK_NEAR(a->top1_fde, b->top1_fde, 1e-6 * b->top1_fde);
        CHECK_NEAR(a->brier, b->brier, 1e-6);
        CHECK_NEAR(a->ece, b->ece, 1e-6);
    }
    bj_evaluator_free(e);
    bj_loader_free(loader);
    bj_score_free(score);
    bj_truth_free(truth);
    bj_submission_free(submission);
    bj_model_free(model);
    bj_cache_free(cache);
    CHECK(!remove(cache_path) && !remove(law) && !remove(path) && !rmdir(folder));
}

/* --------------------------------------------------------------------------------- checkpoints */

static int make(const char *cache_path, const char *dir, const char *kind) {
    enum { STEPS = 12, SIZE = 32 };
    static const bj_fact facts[] = {{"run.arm", "made-up"}, {"run.seed", "3"}};
    bj_error err;
    bj_cache *cache;
    bj_loader *loader;
    bj_model *model;
    bj_trainer *trainer;
    require(bj_cache_open(&cache, cache_path, 0, &err), &err);
    bj_arch arch = bj_cache_arch(cache);
    bj_trainer_options options = options_for(bj_objective_default(BJ_FULLSET), SIZE, 1, NULL);
    options.optim.ema = 0.5; /* train a few steps, so that the target differs */
    arch.embed = arch.latent = arch.proj_hidden = arch.atom_hidden = arch.decoder_hidden = 32;
    arch.token_hidden = arch.router_hidden = 16;
    arch.trunk = 24;
    if (!strcmp(kind, "point")) arch.atoms = 1;
    if (!strcmp(kind, "outputonly")) {
        arch.kind = BJ_MODEL_OUTPUT_ONLY;
        options.objective = bj_objective_default(BJ_OUTPUTONLY);
    }
    if (!strcmp(kind, "uniform")) {
        arch.weighting = BJ_WEIGHTS_UNIFORM;
        options.objective = bj_objective_default(BJ_UNIFORM);
    }
    const bj_loader_options order = {.batch = SIZE, .shuffle = 1, .needs_future = 1};
    require(bj_loader_create(&loader, cache, &order, &err), &err);
    require(bj_model_create(&model, &arch, 3, &err), &err);
    require(bj_trainer_create(&trainer, model, &options, &err), &err);
    for (int i = 0; i < STEPS; i++) {
        const bj_batch *batch;
        require(bj_loader_batch(&batch, NULL, loader, i / (int)bj_loader_steps(loader),
                                i % (int)bj_loader_steps(loader), &err),
                &err);
        require(bj_trainer_step(trainer, batch, 1e-2, NULL, &err), &err);
    }
    stretch(model);
    require(bj_trainer_save(trainer, dir, NULL, facts, 2, &err), &err);
    bj_trainer_free(trainer);
    bj_model_free(model);
    bj_loader_free(loader);
    bj_cache_free(cache);
    return 0;
}

int main(int argc, char **argv) {
    if (argc >= 4 && !strcmp(argv[1], "make"))
        return make(argv[2], argv[3], argc > 4 ? argv[4] : "branch");
    bj_arch point = small_arch(), wide = small_arch(), uniform = small_arch();
    point.atoms = 1;
    wide.atoms = 6;
    uniform.weighting = BJ_WEIGHTS_UNIFORM;
    test_values(small_arch(), BJ_FULLSET);
    test_values(point, BJ_FULLSET);
    test_values(wide, BJ_FULLSET);
    test_values(uniform, BJ_UNIFORM);
    test_values(small_arch_for(BJ_OUTPUTONLY), BJ_OUTPUTONLY);
    test_groups();
    test_usage_and_calibration();
    test_health();
    test_refusals();
    test_memory();
    test_against_score();
    return test_report("evaluator");
}
