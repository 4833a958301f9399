/* test_maze_train.c - tests training on a maze dataset: batches, standardization, runs, outcomes.
 */
#define _XOPEN_SOURCE 700
#include "maze_case.h"

/* ------------------------------------------------------------------------------------- batches */

static void check_source(const char *data) {
    const bj_settings s = settings_of("maze-branch", "");
    bj_error err = {0};
    bj_maze_source *a, *b;
    CHECK_OK(bj_maze_source_open(&a, data, "medium", &s, &err), err);
    CHECK_OK(bj_maze_source_open(&b, data, NULL, &s, &err), err); /* named in the path */
    const int16_t *cells = bj_maze_data_cells(a->data);
    CHECK(a->withheld_count == a->info.edges / 5);
    CHECK(bj_transitions_dropped(a->transitions) > 0);
    const int64_t *rows, *same;
    for (int64_t step = 0; step < 50; step++) {
        const bj_batch x = bj_maze_source_batch(&rows, a, 1, step);
        bj_maze_source_batch(NULL, b, 0, 3); /* whatever was drawn before */
        const bj_batch y = bj_maze_source_batch(&same, b, 1, step);
        CHECK(x.B == 32 && y.B == 32 && !memcmp(rows, same, 32 * sizeof *rows));
        for (int i = 0; i < x.B; i++) {
            const int64_t to = (x.pairs[i].next - a->states) / 2;
            CHECK(x.pairs[i].state == a->states + 2 * rows[i]);
            CHECK(to > rows[i] && cells[to] != cells[rows[i]]);
            for (int k = 0; k < a->withheld_count; k++)
                CHECK(a->withheld[k].from != cells[rows[i]] || a->withheld[k].to != cells[to]);
        }
    }
    bj_maze_source_batch(&rows, a, 0, 0);
    bj_maze_source_batch(&same, b, 0, 1);
    CHECK(memcmp(rows, same, 32 * sizeof *rows) != 0);
    /* mean and standard deviation of the first states of transitions */
    for (int i = 0; i < 2; i++) {
        const int64_t n = bj_transitions_count(a->transitions);
        double mean = 0, square = 0;
        for (int64_t k = 0; k < n; k++)
            mean += (double)a->states[2 * bj_transitions_at(a->transitions, k).from + i] / (double)n;
        for (int64_t k = 0; k < n; k++) {
            const double x =
                (double)a->states[2 * bj_transitions_at(a->transitions, k).from + i] - mean;
            square += x * x / (double)n;
        }
        CHECK_NEAR((double)a->mean[i], mean, 1e-5);
        CHECK_NEAR((double)a->scale[i], sqrt(square), 1e-5);
    }
    bj_maze_source_free(a);
    bj_maze_source_free(b);
}

/* Compares the middle of a visit with an independent search, and tests that balanced sampling draws
 * all pairs of cells equally often. */
static void check_choices(const char *data) {
    const bj_settings first = settings_of("maze-branch", "maze.middle=0 maze.balance=1");
    const bj_settings middle = settings_of("maze-branch", "");
    bj_error err = {0};
    bj_maze_source *a, *b;
    CHECK_OK(bj_maze_source_open(&a, data, "medium", &first, &err), err);
    CHECK_OK(bj_maze_source_open(&b, data, "medium", &middle, &err), err);
    const int16_t *cells = bj_maze_data_cells(a->data);
    for (int64_t k = 0; k < bj_transitions_count(a->transitions); k += 7) {
        const bj_transition t = bj_transitions_at(a->transitions, k);
        int64_t end = t.to;
        while ((end + 1) % STEPS && cells[end + 1] == cells[t.to]) end++;
        CHECK((bj_maze_source_pair(a, k).next - a->states) / 2 == t.to);
        CHECK((bj_maze_source_pair(b, k).next - b->states) / 2 == (t.to + end) / 2);
    }
    int seen[26 * 26] = {0}, least = 1 << 30, kinds = 0;
    const int64_t *rows;
    for (int64_t step = 0; step < 400; step++) {
        const bj_batch x = bj_maze_source_batch(&rows, a, 0, step);
        for (int i = 0; i < x.B; i++)
            seen[26 * cells[rows[i]] + cells[(x.pairs[i].next - a->states) / 2]]++;
    }
    for (int i = 0; i < 26 * 26; i++) {
        if (!seen[i]) continue;
        kinds++;
        least = seen[i] < least ? seen[i] : least;
    }
    CHECK(kinds == a->pairs && kinds == a->info.edges - a->withheld_count);
    CHECK(least > 400 * 32 / kinds / 2);
    bj_maze_source_free(a);
    bj_maze_source_free(b);
}

/* Tests that held-out episodes are not used for training, and that frames are evaluated only on
 * them. */
static void check_held_out(const char *data) {
    const bj_settings s = settings_of("maze-branch", "maze.held_out=0.3 seed=4");
    const bj_settings other = settings_of("maze-branch", "maze.held_out=0.3 seed=5");
    const bj_settings third = settings_of("maze-branch", "maze.held_out=0.3 maze.split_seed=1");
    bj_error err = {0};
    bj_maze_source *a, *b, *c;
    CHECK_OK(bj_maze_source_open(&a, data, NULL, &s, &err), err);
    CHECK_OK(bj_maze_source_open(&b, data, NULL, &other, &err), err);
    CHECK_OK(bj_maze_source_open(&c, data, NULL, &third, &err), err);
    CHECK(a->held_out == 18 && !memcmp(a->fitted, b->fitted, EPISODES));
    CHECK(memcmp(a->fitted, c->fitted, EPISODES) != 0);
    double mean = 0;
    const int64_t n = bj_transitions_count(a->transitions);
    for (int64_t k = 0; k < n; k++) {
        const bj_transition t = bj_transitions_at(a->transitions, k);
        CHECK(a->fitted[t.from / STEPS] && a->fitted[t.to / STEPS]);
        mean += (double)a->states[(size_t)t.from * a->numbers] / (double)n;
    }
    CHECK_NEAR((double)a->mean[0], mean, 1e-5);
    int64_t *rows;
    int count;
    CHECK_OK(bj_maze_source_frames(&rows, &count, a, 1 << 20, &err), err);
    CHECK(count == 18 * STEPS);
    for (int i = 0; i < count; i++)
        CHECK(!a->fitted[rows[i] / STEPS] && (!i || rows[i] > rows[i - 1]));
    bj_free(rows);
    CHECK_OK(bj_maze_source_frames(&rows, &count, a, 100, &err), err);
    CHECK(count == 100);
    for (int i = 0; i < count; i++)
        CHECK(!a->fitted[rows[i] / STEPS] && (!i || rows[i] > rows[i - 1]));
    bj_free(rows);
    bj_maze_source_free(a);
    bj_maze_source_free(b);
    bj_maze_source_free(c);
    const bj_settings none = settings_of("maze-branch", "maze.held_out=0.001");
    const bj_settings whole = settings_of("maze-branch", "");
    CHECK_OK(bj_maze_source_open(&a, data, NULL, &whole, &err), err);
    CHECK(!a->fitted && !a->held_out);
    CHECK_OK(bj_maze_source_frames(&rows, &count, a, ROWS / 2, &err), err);
    CHECK(count == ROWS / 2 && rows[0] == 0 && rows[count - 1] == ROWS - 2);
    bj_free(rows);
    bj_maze_source_free(a);
    CHECK_OK(bj_maze_source_open(&a, data, NULL, &none, &err), err); /* one of sixty: rounded up */
    CHECK(a->held_out == 1);
    bj_maze_source_free(a);
    const bj_settings most = settings_of("maze-branch", "maze.held_out=0.95 maze.withheld=0");
    CHECK_OK(bj_maze_source_open(&a, data, NULL, &most, &err), err);
    CHECK(a->held_out == 57);
    bj_maze_source_free(a);
}

/* ---------------------------------------------------------------------------------------- runs */

static void check_runs(const char *data) {
    static const char *const arms[] = {"maze-branch", "maze-mdn",         "maze-standard",
                                       "maze-fused",  "maze-variational", "maze-codebook"};
    for (int i = 0; i < 6; i++) {
        const bj_settings s =
            settings_of(arms[i], i == 4 ? "model.noise=4 model.noise_hidden=8" : "");
        char a[16], b[16], path[CASE_PATH];
        snprintf(a, sizeof a, "a%d", i);
        snprintf(b, sizeof b, "b%d", i);
        const bj_run_report whole = run(&s, data, a, 0, 1);
        CHECK(whole.outcome == BJ_RUN_DONE && whole.step == 40 && whole.best.epoch == 2);
        CHECK(whole.best.maze.cov_r >= 0 && whole.best.maze.plan_all >= 0);
        CHECK(whole.best.maze.separated >= 0 && isnan(whole.best.dev.traj_es));
        /* stopped within the second epoch, then resumed with two workers */
        CHECK(run(&s, data, b, 27, 1).outcome == BJ_RUN_STOPPED);
        CHECK(run(&s, data, b, 0, 2).outcome == BJ_RUN_DONE);
        CHECK_MSG(case_same(a, b), "%s", arms[i]);
        char *text;
        size_t size;
        bj_error err = {0};
        snprintf(path, sizeof path, "%s/%s/result.json", case_folder, a);
        CHECK_OK(bj_file_read(&text, &size, path, 1 << 20, &err), err);
        CHECK_CONTAINS(text, "\"verdict\": \"separated\"");
        CHECK_CONTAINS(text, "\"plan_all\"");
        bj_free(text);
        if (i != 5) continue;
        bj_model *model;
        bj_tensor codes;
        snprintf(path, sizeof path, "%s/%s/ckpt/best/model.safetensors", case_folder, a);
        CHECK_OK(bj_model_load(&model, path, &err), err);
        CHECK_OK(bj_model_find(&codes, model, "codebook", &err), err);
        for (int k = 0; k < codes.shape[0]; k++) {
            double square = 0;
            for (int d = 0; d < codes.shape[1]; d++)
                square += pow((double)codes.data[k * codes.shape[1] + d], 2);
            CHECK_NEAR(square, 1, 1e-5);
        }
        bj_model_free(model);
    }
}

/* Tests that a maze arm with SIGReg and VICReg resumes with the same bits, and that the terms are
 * listed in its history but not among the results of the maze. */
static void check_regularized(const char *data) {
    const bj_settings s =
        settings_of("maze-branch", "loss.sigreg=0.05 loss.sigreg_slices=21 "
                                   "loss.vicreg_variance=0.6 loss.vicreg_covariance=0.9");
    const bj_run_report whole = run(&s, data, "reg", 0, 1);
    CHECK(whole.outcome == BJ_RUN_DONE && whole.best.maze.cov_r >= 0);
    CHECK(whole.best.train.sigreg > 0 && whole.best.train.vicreg_variance > 0 &&
          whole.best.train.vicreg_covariance > 0);
    CHECK(run(&s, data, "reg-stopped", 27, 1).outcome == BJ_RUN_STOPPED);
    CHECK(run(&s, data, "reg-stopped", 0, 2).outcome == BJ_RUN_DONE);
    CHECK(case_same("reg", "reg-stopped"));
    size_t size;
    char *text = case_read(&size, "reg", "result.json");
    CHECK(strstr(text, "plan_all") && !strstr(text, "sigreg"));
    bj_free(text);
}

/* Tests that models of states with more components than x and y are evaluated on frames, with raw
 * COV-R and the separation of cells. */
static void check_frames(const char *data) {
    const char *const more = "maze.horizon=4 maze.held_out=0.3 train.epochs=1";
    bj_settings s = settings_of("maze-branch", more);
    const bj_run_report open = run(&s, data, "frames", 0, 1);
    CHECK(open.outcome == BJ_RUN_DONE && isnan(open.best.maze.plan_all));
    CHECK(open.best.maze.cov_r >= 0 && open.best.maze.cov_r <= 1);
    CHECK(open.best.maze.separated >= 0 && open.best.maze.separated <= 1);
    CHECK(open.best.maze.closest <= 1 && open.best.dev.scenes == 18 * STEPS);
    /* a model whose cells are nearly equal gets no score, although every candidate hits them */
    s = settings_of("maze-branch",
                    "maze.horizon=4 train.epochs=1 gate.separated=0.9 optim.lr=1e-9");
    CHECK(run(&s, data, "flat", 0, 1).outcome == BJ_RUN_COLLAPSED);
}

/* Tests images whose color depends on the position. A run is stopped, resumed and opened. */
static void check_images(void) {
    enum { SHOTS = 240, EPISODE = 12, SIDE = 16, CHANNELS = 3 };
    static uint8_t frames[SHOTS][SIDE][SIDE][CHANNELS];
    static float states[SHOTS][2];
    static int32_t episode[SHOTS];
    char data[CASE_PATH], dir[CASE_PATH], shape[64];
    bj_error err = {0};
    bj_maze *maze;
    CHECK_OK(bj_maze_create(&maze, "medium", &err), err);
    for (int i = 0; i < SHOTS; i++) {
        const double *center = maze->center + 2 * (i * 7 % maze->cells);
        for (int c = 0; c < 2; c++) states[i][c] = (float)center[c];
        for (int p = 0; p < SIDE * SIDE; p++)
            for (int c = 0; c < 2; c++)
                frames[i][p / SIDE][p % SIDE][c] = (uint8_t)(60 + 8 * center[c]);
        episode[i] = i / EPISODE;
    }
    bj_maze_free(maze);
    npz_maker m = {0};
    snprintf(shape, sizeof shape, "(%d, %d, %d, %d)", SHOTS, SIDE, SIDE, CHANNELS);
    npz_add(&m, "frames", "|u1", shape, frames, sizeof frames, NPZ_DEFLATED);
    snprintf(shape, sizeof shape, "(%d, 2)", SHOTS);
    npz_add(&m, "states", "<f4", shape, states, sizeof states, NPZ_DEFLATED);
    snprintf(shape, sizeof shape, "(%d,)", SHOTS);
    npz_add(&m, "episode", "<i4", shape, episode, sizeof episode, NPZ_DEFLATED);
    npz_write(&m, case_path(data, "images-medium-v0.npz"));

    const bj_settings s = settings_of("maze-branch", "maze.horizon=1 maze.withheld=0");
    CHECK(run(&s, data, "images", 25, 1).outcome == BJ_RUN_STOPPED);
    CHECK(run(&s, data, "images", 0, 1).outcome == BJ_RUN_DONE);
    bj_run *finished;
    CHECK_OK(bj_run_open(&finished, case_path(dir, "images"), &err), err);
    CHECK(bj_run_epochs(finished) == 3);
    char given[65], kept[65]; /* a campaign identifies its runs by their settings */
    CHECK_OK(bj_settings_digest(given, &s, &err), err);
    CHECK_OK(bj_settings_digest(kept, bj_run_settings(finished), &err), err);
    CHECK(!strcmp(given, kept) && !strcmp(given, bj_run_fact(finished, "settings.sha256")));
    bj_run_free(finished);
    const bj_settings wide = settings_of("maze-branch", "maze.horizon=1 model.patch_in=8");
    CHECK(run(&wide, data, "patches", 0, 1).outcome == BJ_RUN_DONE);
}

/* Tests that a run whose latents fail a gate gets no score, no matter how good its graph is. */
static void check_collapse(const char *data) {
    const bj_settings s = settings_of("maze-branch", "loss.floor=0 gate.separated=1");
    char path[CASE_PATH], *text;
    size_t size;
    bj_error err = {0};
    CHECK(run(&s, data, "collapsed", 0, 1).outcome == BJ_RUN_COLLAPSED);
    snprintf(path, sizeof path, "%s/collapsed/result.json", case_folder);
    CHECK_OK(bj_file_read(&text, &size, path, 1 << 20, &err), err);
    CHECK_CONTAINS(text, "\"outcome\": \"collapsed\"");
    CHECK(!strstr(text, "plan_all") && !strstr(text, "best_epoch"));
    bj_free(text);
}

static void check_refusals(const char *data) {
    char dir[CASE_PATH];
    bj_run_report report;
    bj_error err = {0};
    bj_settings s = settings_of("maze-branch", "");
    bj_run_options o = {.data = data, .maze = "small", .dir = case_path(dir, "refused")};
    CHECK(bj_run_train(&report, &s, &o, &err) == BJ_EARG);
    o.maze = "medium";
    o.dev = data;
    CHECK(bj_run_train(&report, &s, &o, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "evaluated on the graph");
    o.dev = NULL;
    s.updates = 0;
    CHECK(bj_run_train(&report, &s, &o, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "train.updates is 0");
}

/* Tests that settings of later versions do not change the digests and files of runs that do not use
 * them. */
static void check_digest(void) {
    const bj_assignment plain = {"arm", "fullset", "test"};
    const bj_assignment more[] = {plain, {"maze.balance", "0", "test"}, {"loss.kl", "0", "test"}};
    const bj_assignment other[] = {plain, {"maze.balance", "1", "test"}};
    bj_settings a, b, c;
    char x[65], y[65], z[65];
    bj_error err = {0};
    CHECK_OK(bj_settings_resolve(&a, NULL, &plain, 1, &err), err);
    CHECK_OK(bj_settings_resolve(&b, NULL, more, 3, &err), err);
    CHECK_OK(bj_settings_resolve(&c, NULL, other, 2, &err), err);
    CHECK_OK(bj_settings_digest(x, &a, &err), err);
    CHECK_OK(bj_settings_digest(y, &b, &err), err);
    CHECK_OK(bj_settings_digest(z, &c, &err), err);
    CHECK(!strcmp(x, y) && strcmp(x, z));
}

int main(void) {
    char data[CASE_PATH], wide[CASE_PATH];
    maze_case_begin(data);
    make_dataset(case_path(wide, "wide-medium-v0.npz"), 1);
    check_source(data);
    check_choices(data);
    check_held_out(data);
    check_runs(data);
    check_regularized(data);
    check_frames(wide);
    check_images();
    check_collapse(data);
    check_refusals(data);
    check_digest();
    return test_report("run.maze_train");
}
