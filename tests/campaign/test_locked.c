/* test_locked.c - tests the locked evaluation: rejected input, its files, and what it never writes.
 */
#define _XOPEN_SOURCE 700
#include "campaign/lock_case.h"

#include <dirent.h>

#include "campaign/locked_check.h"
#include "campaign/locked_json.h"
#include "campaign/locked_write.h"

static bj_error err;
static char self[GRID_PATH]; /* stands for the evaluator */
static const char *const three[] = {BJ_LOCKED_SUMMARY, BJ_LOCKED_SEEDS, BJ_LOCKED_COMPLETION};

static bj_status evaluate(bj_locked_report *report, int threads) {
    const bj_locked_options options = {.evaluator = self, .threads = threads};
    err = (bj_error){0};
    return bj_campaign_evaluate(report, grid_dir, &options, &err);
}

static bj_status verify(bj_locked_report *report) {
    const bj_locked_options options = {.evaluator = self};
    err = (bj_error){0};
    return bj_campaign_verify(report, grid_dir, &options, &err);
}

/* Counts the entries in the campaign folder whose names start with the text. */
static int count_entries(const char *folder, const char *prefix) {
    DIR *dir = opendir(folder);
    int count = 0;
    for (const struct dirent *e; dir && (e = readdir(dir));)
        count += !strncmp(e->d_name, prefix, strlen(prefix)) && strcmp(e->d_name, ".") &&
                 strcmp(e->d_name, "..");
    if (dir) closedir(dir);
    return count;
}

/* ---------------------------------------------------------------------------------- few scenes */

static void test_shown(void) {
    static const struct {
        double counts[4];
        uint8_t shown[4];
    } cases[] = {
        {{10, 20, 30, 40}, {1, 1, 1, 1}},
        {{10, 9, 30, 40}, {0, 0, 1, 1}}, /* the hidden group has only 9 scenes, so the smallest
                                            other group is hidden, too */
        {{5, 6, 30, 40}, {0, 0, 1, 1}},  /* 11 together are enough */
        {{5, 0, 30, 40}, {0, 1, 0, 1}},  /* an empty one hides nothing */
        {{1, 2, 3, 1000}, {0, 0, 0, 0}},
        {{0, 0, 0, 1000}, {1, 1, 1, 1}},
        {{9, 0, 0, 0}, {0, 1, 1, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t shown[4];
        bj_locked_shown(shown, cases[i].counts, 4);
        CHECK_MSG(!memcmp(shown, cases[i].shown, 4), "case %zu", i);
    }
}

/* ------------------------------------------------------------------------------- made-up results
 */

enum { FAKE_SEEDS = 3, FAKE_GROUPS = 6 };

static yyjson_doc *parse(const char *name) {
    grid_kept kept = grid_keep(grid_at(name));
    yyjson_doc *doc = yyjson_read(kept.bytes, kept.size, 0);
    CHECK(doc != NULL);
    bj_free(kept.bytes);
    return doc;
}

static void test_write(void) {
    static const char *const arms[] = {"a", "b"};
    static const struct {
        const char *by, *key;
        double scenes;
    } groups[FAKE_GROUPS] = {{"all", "all", 100},       {"maneuver", "left", 40},
                             {"maneuver", "right", 60}, {"city", "x", 80},
                             {"city", "y", 17},         {"city", "z", 3}};
    bj_evaluation_group list[2 * FAKE_SEEDS][FAKE_GROUPS];
    bj_locked_result of[2 * FAKE_SEEDS] = {0};
    const bj_locked_results results = {
        .of = of, .count = 2 * FAKE_SEEDS, .scenes = 100, .isa = "c"};
    bj_lock lock = {.campaign = "made-up"};
    bj_locked_facts facts = {.threads = 1, .started = 0, .finished = 3600};
    for (int i = 0; i < 2 * FAKE_SEEDS; i++) {
        of[i] = (bj_locked_result){.arm = arms[i % 2],
                                   .seed = i / 2,
                                   .atoms = 2 - i % 2,
                                   .usage = {.25, .75},
                                   .groups = list[i],
                                   .group_count = FAKE_GROUPS};
        for (int g = 0; g < FAKE_GROUPS; g++) {
            list[i][g] = (bj_evaluation_group){.by = groups[g].by, .key = groups[g].key};
            double *fields = (double *)&list[i][g].values;
            for (size_t f = 0; f < sizeof(bj_metric_values) / sizeof(double); f++)
                fields[f] = 10 * (i / 2) + i % 2 + .5 * g;
            list[i][g].values.scenes = groups[g].scenes;
            if (i % 2) list[i][g].values.latent_es = NAN;
        }
        of[i].values = list[i][0].values;
        for (int b = 0; b < BJ_CALIBRATION_BINS; b++)
            of[i].bins[b] = (bj_calibration_bin){0, NAN, NAN};
        of[i].bins[9] = (bj_calibration_bin){80, .95, .9};
        of[i].bins[5] = (bj_calibration_bin){i < 2 ? 20 : 10, .55, i < 2 ? .25 : .5};
        of[i].bins[2] = (bj_calibration_bin){i < 2 ? 0 : 3, .2, 1};
    }
    for (int h = 0; h < 64; h++)
        facts.lock_sha256[h] = lock.evaluator_sha256[h] = lock.data_sha256[h] = 'a';
    char digest[65], hex[65], path[GRID_PATH];
    snprintf(path, sizeof path, "%s", grid_at("fake"));
    CHECK(mkdir(path, 0777) == 0);
    CHECK_OK(bj_locked_write(digest, &results, &lock, &facts, path, &err), err);
    CHECK_OK(bj_sha256_file(hex, grid_at("fake/completion.json"), &err), err);
    CHECK(!strcmp(hex, digest));

    yyjson_doc *doc = parse("fake/run_summary.json");
    yyjson_val *root = yyjson_doc_get_root(doc), *a, *b;
    a = yyjson_doc_ptr_get(doc, "/arms/0");
    b = yyjson_doc_ptr_get(doc, "/arms/1");
    CHECK(yyjson_get_uint(yyjson_obj_get(root, "scenes")) == 100);
    CHECK(yyjson_get_num(yyjson_ptr_get(a, "/metrics/traj_es/mean")) == 10);
    CHECK(yyjson_get_num(yyjson_ptr_get(b, "/metrics/traj_es/mean")) == 11);
    CHECK(yyjson_get_num(yyjson_ptr_get(a, "/metrics/traj_es/sd")) == 10); /* of 0, 10, 20 */
    CHECK(yyjson_get_num(yyjson_ptr_get(b, "/metrics/traj_es/sd")) == 10);
    CHECK(yyjson_get_uint(yyjson_ptr_get(a, "/metrics/traj_es/n")) == FAKE_SEEDS);
    CHECK(yyjson_ptr_get(a, "/metrics/latent_es") && !yyjson_ptr_get(b, "/metrics/latent_es"));
    CHECK(yyjson_arr_size(yyjson_obj_get(a, "usage")) == 2);
    CHECK(yyjson_get_num(yyjson_ptr_get(a, "/usage/1")) == .75);
    CHECK(yyjson_arr_size(yyjson_obj_get(b, "usage")) == 1);
    CHECK(yyjson_arr_size(yyjson_obj_get(a, "groups")) == FAKE_GROUPS - 1);
    CHECK(yyjson_get_num(yyjson_ptr_get(a, "/groups/1/metrics/brier/mean")) == 11);
    CHECK(yyjson_is_obj(yyjson_ptr_get(a, "/groups/2/metrics")));  /* x */
    CHECK(yyjson_is_null(yyjson_ptr_get(a, "/groups/3/metrics"))); /* y, with */
    CHECK(yyjson_is_null(yyjson_ptr_get(a, "/groups/4/metrics"))); /* z */
    CHECK(yyjson_get_uint(yyjson_ptr_get(a, "/groups/4/scenes")) == 3);
    /* bins are pooled over seeds: 20 + 10 + 10 pairs with hit rates of 1/4, 1/2 and 1/2 */
    CHECK(yyjson_get_uint(yyjson_ptr_get(a, "/calibration/5/count")) == 40);
    CHECK(yyjson_is_null(yyjson_ptr_get(a, "/calibration/5/hits"))); /* hidden with the next */
    CHECK(yyjson_get_uint(yyjson_ptr_get(a, "/calibration/2/count")) == 6);
    CHECK(yyjson_is_null(yyjson_ptr_get(a, "/calibration/2/hits")));
    CHECK_NEAR(yyjson_get_num(yyjson_ptr_get(a, "/calibration/9/hits")), .9, 1e-12);
    CHECK_NEAR(yyjson_get_num(yyjson_ptr_get(a, "/calibration/9/confidence")), .95, 1e-12);
    CHECK(yyjson_is_null(yyjson_ptr_get(a, "/calibration/0/hits")));
    yyjson_doc_free(doc);

    doc = parse("fake/seed_table.json");
    /* an evaluation has 19 metrics; b has no latent metrics */
    CHECK(yyjson_arr_size(yyjson_doc_ptr_get(doc, "/rows")) == FAKE_SEEDS * (24 + 23));
    CHECK(yyjson_arr_size(yyjson_doc_ptr_get(doc, "/usage")) == 2 * FAKE_SEEDS);
    yyjson_doc_free(doc);
    doc = parse("fake/completion.json");
    CHECK(yyjson_equals_str(yyjson_doc_ptr_get(doc, "/started"), "1970-01-01T00:00:00Z"));
    CHECK(yyjson_equals_str(yyjson_doc_ptr_get(doc, "/finished"), "1970-01-01T01:00:00Z"));
    CHECK(yyjson_equals_str(yyjson_doc_ptr_get(doc, "/isa"), "c"));
    yyjson_doc_free(doc);

    bj_status status = BJ_ENOMEM;
    for (long n = 0; status != BJ_OK; n++) { /* every allocation may fail */
        bj_alloc_fail_after(n);
        status = bj_locked_write(hex, &results, &lock, &facts, path, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
    }
    grid_remove(path);
}

/* ---------------------------------------------------------------------------------- every byte */

/* Tests one changed bit in every locked file, and a missing file. */
static void test_every_byte(void) {
    bj_lock lock;
    bj_locked_report report;
    char hex[65];
    int files = 0;
    CHECK_OK(grid_read_lock(&lock, grid_at("run/lock.json"), hex, &err), err);
    for (int i = 0; i < bj_lock_bound_count(&lock); i++) {
        bj_lock_bound bound;
        CHECK_OK(bj_lock_bound_at(&bound, &lock, grid_dir, self, i, &err), err);
        grid_kept kept = grid_flip(bound.path);
        const bj_status status = i % 7 ? evaluate(&report, 1) : verify(&report);
        CHECK_MSG(status == BJ_EMISMATCH, "%s: %s", bound.path, err.message);
        CHECK_CONTAINS(err.message, bound.path);
        CHECK_CONTAINS(err.message, bound.what);
        CHECK_CONTAINS(err.message, "was changed");
        CHECK(!grid_exists(grid_at("run/locked")));
        CHECK(count_entries(grid_dir, ".locked") == 0);
        grid_restore(&kept);
        files++;
    }
    CHECK(files == 3 + 10 * BJ_LOCK_RUN_FILES);
    bj_lock_reset(&lock);

    grid_kept kept = grid_flip(grid_at("run/runs/point/seed-3/result.json"));
    grid_kept second = grid_flip(grid_at("run/runs/point/seed-4/result.json"));
    CHECK(verify(&report) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "point/seed-3/result.json");
    CHECK_CONTAINS(err.message, "1 more of the 63 locked files have changed");
    grid_restore(&kept);
    CHECK(unlink(second.path) == 0);
    CHECK(evaluate(&report, 1) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "is missing");
    grid_restore(&second);
    /* A byte more is a change too. */
    kept = grid_keep(grid_val);
    FILE *file = fopen(grid_val, "ab");
    CHECK(file && fputc(0, file) == 0 && !fclose(file));
    CHECK(evaluate(&report, 1) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "held-out data");
    grid_restore(&kept);
    CHECK_OK(verify(&report), err);
    CHECK(report.checkpoints == 8 && report.scenes == GRID_VAL && !*report.digest);
}

/* -------------------------------------------------------------------------------- interruptions */

typedef struct plan {
    const char *phase;  /* where it happens */
    int happened, what; /* 0: stop; 1: change the time of a file; 2: start another evaluation */
    bj_status inner;
} plan;

static int interfere(void *context, const char *phase, int64_t done, int64_t total) {
    plan *p = context;
    CHECK(done > 0 && done <= total);
    if (strcmp(phase, p->phase) || p->happened) return 0;
    p->happened = 1;
    if (p->what == 0) return 1;
    if (p->what == 1) {
        grid_kept kept = grid_keep(grid_at("run/runs/uniform/seed-4/metrics.jsonl"));
        grid_restore(&kept); /* the same bytes, written again */
        return 0;
    }
    bj_locked_report report;
    const bj_locked_options options = {.evaluator = self, .threads = 1};
    bj_error inner = {0};
    p->inner = bj_campaign_evaluate(&report, grid_dir, &options, &inner);
    CHECK_CONTAINS(inner.message, "another process is evaluating");
    return 1;
}

static void test_interruptions(void) {
    plan plans[] = {{"verify", 0, 0, BJ_OK},
                    {"evaluate", 0, 0, BJ_OK},
                    {"evaluate", 0, 1, BJ_OK},
                    {"evaluate", 0, 2, BJ_OK}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const bj_locked_options options = {
            .evaluator = self, .threads = 1, .progress = interfere, .context = &plans[i]};
        bj_locked_report report;
        const bj_status status = bj_campaign_evaluate(&report, grid_dir, &options, &err);
        CHECK(plans[i].happened);
        CHECK_MSG(status == (plans[i].what == 1 ? BJ_EMISMATCH : BJ_ELOCKED), "%zu: %s", i,
                  err.message);
        CHECK_CONTAINS(err.message,
                       plans[i].what == 1 ? "during the evaluation" : "nothing was written");
        CHECK(!grid_exists(grid_at("run/locked")) && count_entries(grid_dir, ".locked") == 0);
        if (plans[i].what == 2) CHECK(plans[i].inner == BJ_ELOCKED);
    }
}

/* -------------------------------------------------------------------------------------- results */

/* Evaluates a single checkpoint with an evaluator. */
static bj_metric_values alone(const bj_cache *cache, const char *arm, int64_t seed) {
    const bj_evaluator_options how = {.max_batch = 7, .threads = 2, .grouped = 1};
    const bj_loader_options order = {.part = BJ_PART_ALL, .batch = 7, .needs_future = 1};
    char folder[GRID_PATH], path[GRID_PATH + 32];
    bj_model *model = NULL;
    bj_target *target = NULL;
    bj_evaluator *evaluator = NULL;
    bj_loader *loader = NULL;
    bj_metric_values values = {0};
    snprintf(folder, sizeof folder, "%s/runs/%s/seed-%lld/ckpt/best", grid_dir, arm,
             (long long)seed);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    CHECK_OK(bj_model_load(&model, path, &err), err);
    CHECK_OK(bj_target_load(&target, folder, &err), err);
    CHECK_OK(bj_evaluator_create(&evaluator, model, target, &how, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    for (int64_t step = 0; loader && evaluator && step < bj_loader_steps(loader); step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        bj_scene_info infos[7];
        CHECK_OK(bj_loader_batch(&batch, &numbers, loader, 0, step, &err), err);
        for (int b = 0; b < batch->B; b++) infos[b] = bj_cache_info(cache, numbers[b]);
        CHECK_OK(bj_evaluator_add(evaluator, batch, infos, &err), err);
    }
    if (evaluator) values = bj_evaluator_values(evaluator);
    bj_loader_free(loader);
    bj_evaluator_free(evaluator);
    bj_target_free(target);
    bj_model_free(model);
    return values;
}

/* Tests that no file contains the name of a scene or its values as a list. */
static void check_nameless(const bj_cache *cache) {
    for (int f = 0; f < 3; f++) {
        char path[GRID_PATH];
        snprintf(path, sizeof path, "%s/locked/%s", grid_dir, three[f]);
        grid_kept kept = grid_keep(path);
        for (int64_t i = 0; i < bj_cache_count(cache) && kept.bytes; i++) {
            const bj_scene_info info = bj_cache_info(cache, i);
            CHECK(!strstr(kept.bytes, info.scenario_id));
        }
        CHECK(kept.bytes && !strstr(kept.bytes, "scenario"));
        bj_free(kept.bytes);
    }
}

static void check_values(const bj_cache *cache) {
    bj_seeds *seeds = NULL;
    CHECK_OK(bj_campaign_seeds(&seeds, grid_dir, BJ_SEEDS_LOCKED, &err), err);
    if (!seeds) return;
    CHECK(bj_seeds_arm_count(seeds) == 4 && bj_seeds_count(seeds) == 2);
    CHECK(bj_seeds_find_arm(seeds, "anchor-a") < 0);
    for (int arm = 0; arm < bj_seeds_arm_count(seeds); arm++)
        for (int s = 0; s < bj_seeds_count(seeds); s++) {
            const bj_metric_values values =
                alone(cache, bj_seeds_arm(seeds, arm), bj_seeds_seed(seeds, s));
            int measured = 0;
            for (int m = 0; m < bj_metric_count(); m++) {
                const double expected = bj_metric_value(&values, m);
                const int metric = bj_seeds_find_metric(seeds, bj_metric_at(m).name);
                if (isnan(expected)) continue;
                measured++;
                CHECK(metric >= 0 && bj_seeds_value(seeds, arm, metric, s) == expected);
            }
            CHECK(measured == 24);
            CHECK(values.scenes == GRID_VAL);
        }
    bj_seeds_free(seeds);
}

/* Tests that the map summary equals the audit, and that every checkpoint has a latency. */
static void check_extras(void) {
    bj_seeds *seeds = NULL;
    bj_audit *audit = NULL;
    bj_campaign *campaign = NULL;
    CHECK_OK(bj_campaign_seeds(&seeds, grid_dir, BJ_SEEDS_LOCKED, &err), err);
    CHECK_OK(bj_audit_open(&audit, grid_val, NULL, &err), err);
    CHECK_OK(bj_campaign_open(&campaign, grid_dir, &err), err);
    for (int i = 0; seeds && audit && campaign && i < bj_campaign_runs(campaign); i++) {
        const bj_campaign_run run = bj_campaign_run_at(campaign, i);
        const int arm = bj_seeds_find_arm(seeds, run.name);
        bj_model *model = NULL;
        char path[BJ_FOLDER_PATH];
        if (arm < 0) continue; /* stage A */
        snprintf(path, sizeof path, "%s/ckpt/best/model.safetensors", run.dir);
        CHECK_OK(bj_model_load(&model, path, &err), err);
        CHECK_OK(bj_audit_add(audit, run.name, (int64_t)run.settings->seed, model, NULL, &err),
                 err);
        bj_model_free(model);
        const int own = bj_audit_find_arm(audit, run.name), seed = (int)run.settings->seed - 3;
        const bj_audit_report report = bj_audit_report_at(audit, own, seed);
        static const bj_audit_metric metrics[] = {BJ_AUDIT_POINT_MASS, BJ_AUDIT_TRAJECTORY_MASS,
                                                  BJ_AUDIT_MASS_WEIGHTED_SUPPORT};
        for (int m = 0; m < 3; m++) {
            const int metric = bj_seeds_find_metric(seeds, bj_audit_metric_at(metrics[m]).name);
            CHECK(metric >= 0 &&
                  bj_seeds_value(seeds, arm, metric, seed) == report.mean[metrics[m]]);
        }
        const int latency = bj_seeds_find_metric(seeds, "latency_64");
        CHECK(latency >= 0 && bj_seeds_value(seeds, arm, latency, seed) > 0);
    }
    bj_campaign_free(campaign);
    bj_audit_free(audit);
    bj_seeds_free(seeds);
}

static void test_development(void) {
    bj_seeds *seeds = NULL;
    bj_run *run = NULL;
    CHECK_OK(bj_campaign_seeds(&seeds, grid_dir, BJ_SEEDS_DEVELOPMENT, &err), err);
    CHECK_OK(bj_run_open(&run, grid_at("run/runs/uniform/seed-4"), &err), err);
    if (!seeds || !run) return;
    const bj_epoch row = bj_run_epoch(run, bj_run_best(run));
    CHECK(bj_seeds_arm_count(seeds) == 5 && bj_seeds_count(seeds) == 2);
    const int arm = bj_seeds_find_arm(seeds, "uniform"),
              es = bj_seeds_find_metric(seeds, "traj_es");
    CHECK(arm >= 0 && es >= 0 && bj_seeds_value(seeds, arm, es, 1) == row.dev.traj_es);
    const int a = bj_seeds_find_arm(seeds, "anchor-a");
    const int ade = bj_seeds_find_metric(seeds, "decoder_ade");
    CHECK(a >= 0 && ade >= 0 && bj_seeds_value(seeds, a, ade, 0) > 0);
    CHECK(isnan(bj_seeds_value(seeds, a, es, 0)) && isnan(bj_seeds_value(seeds, arm, ade, 0)));
    bj_run_free(run);
    bj_seeds_free(seeds);
}

static void test_results(void) {
    bj_cache *cache = NULL;
    bj_locked_report report, again;
    bj_seeds *seeds = NULL;
    CHECK(bj_campaign_seeds(&seeds, grid_dir, BJ_SEEDS_LOCKED, &err) == BJ_ELOCKED && !seeds);
    CHECK_CONTAINS(err.message, "the campaign has not been evaluated");
    CHECK_OK(bj_cache_open(&cache, grid_val, 0, &err), err);
    CHECK_OK(evaluate(&report, 2), err);
    CHECK(report.checkpoints == 8 && report.scenes == GRID_VAL && strlen(report.digest) == 64);
    CHECK(count_entries(grid_at("run/locked"), "") == 3 && count_entries(grid_dir, ".locked") == 0);
    check_nameless(cache);
    check_values(cache);
    check_extras();
    bj_cache_free(cache);

    CHECK(evaluate(&again, 1) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "already evaluated");
    CHECK_OK(verify(&again), err);
    CHECK(!strcmp(again.digest, report.digest) && again.checkpoints == 8);

    /* Tests that the first two files depend neither on the number of threads nor on the time. */
    grid_kept summary = grid_keep(grid_at("run/locked/run_summary.json"));
    grid_kept table = grid_keep(grid_at("run/locked/seed_table.json"));
    grid_remove(grid_at("run/locked"));
    CHECK_OK(evaluate(&again, 1), err);
    grid_kept first = grid_keep(summary.path), second = grid_keep(table.path);
    CHECK(first.size == summary.size && !memcmp(first.bytes, summary.bytes, first.size));
    CHECK(second.size == table.size && !memcmp(second.bytes, table.bytes, second.size));
    bj_free(first.bytes), bj_free(second.bytes), bj_free(summary.bytes), bj_free(table.bytes);
}

/* Tests that a repeated evaluation compares the bytes and publishes nothing. */
static void test_repeat(void) {
    const bj_locked_options options = {.evaluator = self, .threads = 2, .repeat = 1};
    const bj_locked_options other = {.evaluator = grid_val, .threads = 1, .repeat = 1};
    bj_locked_report report;
    grid_kept before = grid_keep(grid_at("run/locked/completion.json"));
    CHECK_OK(bj_campaign_verify(&report, grid_dir, &options, &err), err);
    CHECK(!report.other_program && !report.missing && report.files == 63);
    CHECK_OK(bj_campaign_verify(&report, grid_dir, &other, &err), err);
    CHECK(report.other_program);
    grid_kept after = grid_keep(grid_at("run/locked/completion.json"));
    CHECK(before.size == after.size && !memcmp(before.bytes, after.bytes, after.size));
    CHECK(count_entries(grid_at("run/locked"), "") == 3 && count_entries(grid_dir, ".locked") == 0);
    bj_free(before.bytes), bj_free(after.bytes);
    const bj_locked_options strict = {.evaluator = grid_val};
    CHECK(bj_campaign_verify(&report, grid_dir, &strict, &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "(evaluator): the file was changed");
}

/* Tests that changes to the result files or to the lock are detected after the evaluation. */
static void test_tampering(void) {
    bj_locked_report report;
    bj_seeds *seeds = NULL;
    char path[GRID_PATH];
    for (int f = 0; f < 2; f++) {
        snprintf(path, sizeof path, "%s/locked/%s", grid_dir, three[f]);
        grid_kept kept = grid_flip(path);
        CHECK(verify(&report) == BJ_EMISMATCH);
        CHECK_CONTAINS(err.message, path);
        if (f == 1) {
            CHECK(bj_campaign_seeds(&seeds, grid_dir, BJ_SEEDS_LOCKED, &err) != BJ_OK && !seeds);
            CHECK_CONTAINS(err.message, three[f]);
        }
        grid_restore(&kept);
    }
    grid_kept kept = grid_edit(grid_at("run/locked/seed_table.json"), "value", "0.", "1.");
    CHECK(bj_campaign_seeds(&seeds, grid_dir, BJ_SEEDS_LOCKED, &err) == BJ_EMISMATCH && !seeds);
    grid_restore(&kept);
    kept = grid_edit(grid_at("run/lock.json"), "best_epoch", "\"dev\"", "\"Dev\"");
    CHECK(verify(&report) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "lock.json: the file was changed");
    grid_restore(&kept);
    /* Tests that completion.json binds itself. */
    kept = grid_edit(grid_at("run/locked/completion.json"), "\"finished\"", "20", "30");
    CHECK(verify(&report) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "completion.json: was changed");
    grid_restore(&kept);
    snprintf(path, sizeof path, "%s", grid_at("run/locked/scenes.csv"));
    grid_text(path, "x\n");
    CHECK(verify(&report) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "scenes.csv");
    CHECK(unlink(path) == 0);
    kept = grid_keep(grid_at("run/locked/run_summary.json"));
    CHECK(unlink(kept.path) == 0);
    CHECK(verify(&report) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "run_summary.json: is missing");
    grid_restore(&kept);
    CHECK_OK(verify(&report), err);
    CHECK(unlink(grid_at("run/lock.json")) == 0);
    CHECK(evaluate(&report, 1) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "the campaign is not locked");
    CHECK(verify(&report) == BJ_ELOCKED);
}

int main(void) {
    bj_lock_report locked;
    bj_locked_report report;
    bj_campaign_free(grid_begin(0));
    snprintf(self, sizeof self, "%s", grid_at("evaluator"));
    grid_text(self, "stands for the program\n");
    test_shown();
    test_write();
    CHECK(evaluate(&report, 1) == BJ_ELOCKED);
    CHECK_CONTAINS(err.message, "is not locked");
    const bj_lock_options options = {.data = grid_val, .evaluator = self};
    CHECK_OK(bj_campaign_lock(&locked, grid_dir, &options, &err), err);
    test_every_byte();
    test_interruptions();
    test_results();
    test_repeat();
    test_development();
    test_tampering();
    grid_remove(grid_folder);
    return test_report("locked");
}
