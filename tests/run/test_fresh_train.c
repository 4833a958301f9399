/* test_fresh_train.c - tests training on a scene source: every scene is read once and in order, for
 * any number of threads and interruptions. */
#define _XOPEN_SOURCE 700 /* mkdtemp, nftw */
#include "run_case.h"

enum { EPOCHS = 2, BATCH = 32, UPDATES = 3, SCENES = EPOCHS * UPDATES * BATCH, DEV_SCENES = 40 };

/* A source that forwards to the simulator, with small windows for speed, and records which
 * positions are read. */
typedef struct recorder {
    bj_world_stream *stream;
    int reads[SCENES], beyond;
    int64_t last;
} recorder;

static bj_status record(const bj_scene **scenes, const int64_t **numbers, void *context,
                        int64_t first, int count, bj_error *err) {
    recorder *r = context;
    for (int64_t i = first; i < first + count; i++)
        if (i >= 0 && i < SCENES) r->reads[i]++;
        else r->beyond++;
    if (first < r->last) r->beyond++;
    r->last = first;
    return bj_world_stream_read(scenes, numbers, r->stream, first, count, err);
}

static void record_id(char id[64], void *context, int64_t number) {
    const recorder *r = context;
    bj_world_stream_id(id, r->stream, number);
}

static bj_status read_dev(const bj_scene **scenes, const int64_t **numbers, void *context,
                          int64_t first, int count, bj_error *err) {
    return bj_world_stream_read(scenes, numbers, context, first, count, err);
}

static bj_status train(recorder *recorded, const bj_settings *settings, const char *text,
                       const char *name, int resume, int threads, case_stop *stop,
                       bj_run_report *report, bj_error *err) {
    char dir[CASE_PATH], digest[65];
    bj_fresh_spec spec;
    bj_world_stream *dev_stream = NULL;
    BJ_TRY(bj_fresh_parse(&spec, text, err));
    BJ_TRY(bj_fresh_digest(digest, &spec, err));
    const bj_world_stream_options fit_options = {.seed = spec.seed, .towns = 3, .threads = threads};
    const bj_world_stream_options dev_options = {
        .seed = BJ_FRESH_DEV_SEED, .split = "dev", .towns = 2, .ordered = 1, .threads = threads};
    recorded->last = -1;
    bj_status status = bj_world_stream_create(&recorded->stream, &fit_options, err);
    if (status == BJ_OK) status = bj_world_stream_create(&dev_stream, &dev_options, err);
    const bj_scene_source fit = {.name = "world:2:7:train",
                                 .digest = digest,
                                 .scenes = spec.scenes,
                                 .arch = bj_world_stream_arch(),
                                 .context = recorded,
                                 .read = record,
                                 .id = record_id};
    const bj_scene_source dev = {.name = "dev",
                                 .digest = digest,
                                 .scenes = DEV_SCENES,
                                 .arch = bj_world_stream_arch(),
                                 .context = dev_stream,
                                 .read = read_dev,
                                 .id = bj_world_stream_id};
    const bj_run_options options = {.data = text,
                                    .scenes = &fit,
                                    .dev_scenes = &dev,
                                    .dir = case_path(dir, name),
                                    .resume = resume,
                                    .threads = threads,
                                    .progress = stop ? case_progress : NULL,
                                    .context = stop};
    if (status == BJ_OK) status = bj_run_train(report, settings, &options, err);
    bj_world_stream_free(recorded->stream);
    bj_world_stream_free(dev_stream);
    return status;
}

static void check_once(const recorder *r, const char *name) {
    int wrong = r->beyond;
    for (int i = 0; i < SCENES; i++) wrong += r->reads[i] != 1;
    CHECK_MSG(wrong == 0, "%s: %d positions were not read exactly once and in order", name, wrong);
}

static void check_same_weights(const char *a, const char *b) {
    static const char *const files[] = {"ckpt/last/model.safetensors",
                                        "ckpt/last/state.safetensors",
                                        "ckpt/best/model.safetensors"};
    for (int i = 0; i < 3; i++) {
        char x[CASE_PATH], y[CASE_PATH], name[128], p[65], q[65];
        bj_error err = {0};
        snprintf(name, sizeof name, "%s/%s", a, files[i]);
        CHECK_OK(bj_sha256_file(p, case_path(x, name), &err), err);
        snprintf(name, sizeof name, "%s/%s", b, files[i]);
        CHECK_OK(bj_sha256_file(q, case_path(y, name), &err), err);
        CHECK_MSG(!strcmp(p, q), "%s: %s differs from that of %s", b, files[i], a);
    }
}

/* Tests that 1, 2 and 3 threads read the same scenes and end with the same weights. */
static double test_threads(const bj_settings *settings) {
    double score = NAN;
    for (int threads = 1; threads <= 3; threads++) {
        recorder r = {0};
        char name[16];
        bj_run_report report;
        bj_error err = {0};
        snprintf(name, sizeof name, "threads%d", threads);
        CHECK_OK(train(&r, settings, "world:7:192", name, 0, threads, NULL, &report, &err), err);
        check_once(&r, name);
        CHECK(report.fit == SCENES && report.dev == DEV_SCENES && report.step == EPOCHS * UPDATES);
        if (threads > 1) check_same_weights("threads1", name);
        score = report.best.dev.traj_es;
    }
    return score;
}

/* Tests that a run that is stopped after every update continues reading where it stopped. */
static void test_stops(const bj_settings *settings) {
    recorder r = {0};
    bj_run_report report = {.outcome = BJ_RUN_STOPPED};
    int processes = 0;
    for (; report.outcome == BJ_RUN_STOPPED && processes < 50; processes++) {
        case_stop stop = {.at = 2};
        bj_error err = {0};
        CHECK_OK(train(&r, settings, "world:7:192", "stopped", 1, 1 + processes % 3, &stop, &report,
                       &err),
                 err);
    }
    CHECK_MSG(report.outcome == BJ_RUN_DONE && processes > 3, "%d processes", processes);
    check_once(&r, "stopped");
    check_same_weights("threads1", "stopped");
}

/* Tests that train.updates without a number of scenes gives the same run as the number of scenes
 * alone. `expected` is the development score of that run. Checkpoints differ, because they contain
 * the settings. */
static void test_updates(double expected) {
    const bj_settings settings = case_settings("fullset", "train.updates=3");
    recorder r = {0};
    bj_run_report report;
    bj_error err = {0};
    CHECK_OK(train(&r, &settings, "world:7", "updates", 0, 2, NULL, &report, &err), err);
    check_once(&r, "updates");
    CHECK(!memcmp(&report.best.dev.traj_es, &expected, sizeof expected));
}

static void test_manifest(void) {
    char path[CASE_PATH];
    bj_run *run = NULL;
    bj_error err = {0};
    CHECK_OK(bj_run_open(&run, case_path(path, "threads1"), &err), err);
    if (!run) return;
    const struct {
        const char *key, *value;
    } facts[] = {{"data.path", "world:7:192"}, {"data.source", "world:2:7:train"},
                 {"data.scenes", "192"},       {"split.fit", "192"},
                 {"split.dev", "40"},          {"steps_per_epoch", "3"}};
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const char *found = bj_run_fact(run, facts[i].key);
        CHECK_MSG(found && !strcmp(found, facts[i].value), "%s is %s", facts[i].key,
                  found ? found : "missing");
    }
    CHECK(!bj_run_fact(run, "dev_data.digest"));
    bj_run_free(run);
}

static void test_errors(void) {
    static const struct {
        const char *arm, *set, *data, *part;
        int resume;
    } cases[] = {
        {"fullset", "", "world:7", "train.updates", 0},
        {"fullset", "train.updates=4", "world:7:192", "found 192 scenes, expected 256", 0},
        {"fullset", "", "world:7:63", "found 63 scenes, expected at least 64", 0},
        {"fullset", "train.batch=4096 train.updates=1", "world:7", "4096 scenes per batch", 0},
        {"maze-branch", "", "world:7:192", "expected a maze dataset", 0},
        {"fullset", "", "world:8:192", "different data", 1},
        {"fullset", "", "world:7:256", "different data", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bj_settings settings = strncmp(cases[i].arm, "maze", 4)
                                         ? case_settings(cases[i].arm, cases[i].set)
                                         : (bj_settings){.arm = "maze-branch", .updates = 1};
        recorder r = {0};
        bj_run_report report;
        bj_error err = {0};
        CHECK_MSG(train(&r, &settings, cases[i].data, cases[i].resume ? "threads1" : "wrong",
                        cases[i].resume, 1, NULL, &report, &err) != BJ_OK,
                  "%s %s is accepted", cases[i].data, cases[i].set);
        CHECK_CONTAINS(err.message, cases[i].part);
        if (!cases[i].resume) case_remove("wrong");
    }
}

int main(void) {
    case_begin();
    const bj_settings settings = case_settings("fullset", "");
    const double score = test_threads(&settings);
    test_stops(&settings);
    test_updates(score);
    test_manifest();
    test_errors();
    return test_report("fresh_train");
}
