/* test_maze_run.c - tests opening a finished maze run: its outputs, and rejected runs. */
#define _XOPEN_SOURCE 700
#include "maze_case.h"

enum { D = 24 };

static bj_maze_run *open_run(const char *name, const bj_maze_run_options *options) {
    char dir[CASE_PATH];
    bj_maze_run *out = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_run_open(&out, case_path(dir, name), options, &err), err);
    if (!out) exit(test_report("run.maze_run"));
    return out;
}

/* Tests that an output depends neither on the batch nor on which other outputs are requested. */
static void check_looks(bj_maze_run *r) {
    enum { N = 40, L = 8 };
    static bj_real a[N * D], c[N * L * D], m[N * L], a1[N * D], c1[N * L * D], m1[N * L];
    bj_pair pairs[N];
    bj_maze_data *data;
    bj_error err = {0};
    const int n = bj_maze_run_candidates(r);
    CHECK_OK(bj_maze_run_data(&data, r, &err), err);
    for (int i = 0; i < N; i++) pairs[i] = bj_maze_run_row(r, 17 * i);
    CHECK_OK(bj_maze_run_look(r, a, c, m, pairs, N, &err), err);
    for (int i = 0; i < N; i++)
        CHECK_OK(bj_maze_run_look(r, a1 + i * D, c1 + i * n * D, NULL, pairs + i, 1, &err), err);
    CHECK_OK(bj_maze_run_look(r, NULL, NULL, m1, pairs, N, &err), err);
    for (int i = 0; i < N * D; i++) CHECK_NEAR((double)a[i], (double)a1[i], 1e-6);
    for (int i = 0; i < N * n * D; i++) CHECK_NEAR((double)c[i], (double)c1[i], 1e-6);
    CHECK(!memcmp(m, m1, (size_t)(N * n) * sizeof *m));
    int even = 1;
    for (int i = 0; i < N; i++) {
        double sum = 0, square = 0;
        for (int k = 0; k < n; k++) {
            sum += (double)m[i * n + k];
            even &= fabs((double)m[i * n + k] - 1.0 / n) < 1e-6;
        }
        for (int d = 0; d < D; d++) square += pow((double)a[i * D + d], 2);
        CHECK_NEAR(sum, 1, 1e-5);
        CHECK_NEAR(square, 1, 1e-5);
    }
    CHECK(even != bj_maze_run_routed(r));
}

/* Tests that scores computed from the candidates and latents at the cell centers equal the metrics
 * of the run. */
static void check_centers(bj_maze_run *r) {
    enum { C = 26, L = 8 };
    static bj_real latents[C * D], candidates[C * L * D], masses[C * L];
    const bj_maze *maze = bj_maze_run_maze(r);
    const bj_epoch row = bj_maze_run_epoch(r);
    bj_error err = {0};
    int32_t cells[C];
    CHECK(maze->cells == C && bj_maze_run_sees_points(r));
    CHECK_OK(bj_maze_run_centers(r, latents, candidates, masses, &err), err);
    for (int u = 0; u < C; u++) cells[u] = u; /* the walk leaves every cell */
    const bj_graph_case input = {.cells = C,
                                 .sources = C,
                                 .K = bj_maze_run_candidates(r),
                                 .D = D,
                                 .latents = latents,
                                 .candidates = candidates,
                                 .source_cells = cells,
                                 .graph = maze->graph};
    bj_graph_scores scores;
    CHECK_OK(bj_graph_score(&scores, NULL, &input, &err), err);
    CHECK_NEAR(scores.cov_r, row.maze.cov_r, 1e-12);
    CHECK(scores.predicted_edges == row.maze.predicted_edges);
}

static void check_arms(const char *data) {
    static const char *const arms[] = {"maze-branch", "maze-mdn",         "maze-standard",
                                       "maze-fused",  "maze-variational", "maze-codebook"};
    static const int candidates[] = {8, 8, 1, 1, 8, 8}, routed[] = {1, 1, 0, 0, 0, 0};
    for (int i = 0; i < 6; i++) {
        const bj_settings s =
            settings_of(arms[i], i == 4 ? "model.noise=4 model.noise_hidden=8" : "");
        const bj_maze_run_options few = {.most = 7, .threads = 2};
        CHECK(run(&s, data, arms[i], 0, 1).outcome == BJ_RUN_DONE);
        for (int k = 0; k < 2; k++) {
            bj_maze_run *r = open_run(arms[i], k ? &few : NULL);
            CHECK(bj_maze_run_candidates(r) == candidates[i] && bj_maze_run_routed(r) == routed[i]);
            CHECK(!strcmp(bj_run_settings(bj_maze_run_folder(r))->arm, arms[i]));
            CHECK(bj_maze_run_epoch(r).epoch == 2 && !bj_maze_run_collapsed(r));
            check_centers(r);
            check_looks(r);
            bj_maze_run_free(r);
        }
    }
}

/* ------------------------------------------------------------------------------ rejected input */

static void expect(const char *name, const bj_maze_run_options *options, bj_status code,
                   const char *words) {
    char dir[CASE_PATH];
    bj_maze_run *r = NULL;
    bj_error err = {0};
    CHECK(bj_maze_run_open(&r, case_path(dir, name), options, &err) == code && !r);
    CHECK_CONTAINS(err.message, words);
}

/* Replaces `from` by `to`, of the same length, in a file of the run. */
static void change(const char *name, const char *file, const char *from, const char *to) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    size_t size;
    bj_error err = {0};
    char *text = case_read(&size, name, file), *at = NULL;
    for (size_t i = 0; !at && i + strlen(from) <= size; i++)
        if (!memcmp(text + i, from, strlen(from))) at = text + i;
    CHECK(at != NULL && strlen(from) == strlen(to));
    if (at) memcpy(at, to, strlen(to));
    snprintf(path, sizeof path, "%s/%s", case_path(dir, name), file);
    CHECK_OK(bj_file_write(path, text, size, &err), err);
    bj_free(text);
}

static void check_refusals(const char *data) {
    char other[CASE_PATH];
    const bj_settings s = settings_of("maze-branch", "");
    const bj_settings flat = settings_of("maze-branch", "loss.floor=0 gate.separated=1");
    const bj_maze_run_options collapsed = {.collapsed = 1};
    bj_error err = {0};
    bj_maze_data *unused;
    CHECK(run(&s, data, "stopped", 27, 1).outcome == BJ_RUN_STOPPED);
    expect("stopped", NULL, BJ_ELOCKED, "not finished");
    expect("nothing", NULL, BJ_EIO, "not a run");
    CHECK(run(&flat, data, "flat", 0, 1).outcome == BJ_RUN_COLLAPSED);
    expect("flat", NULL, BJ_ELOCKED, "collapsed");
    bj_maze_run *r = open_run("flat", &collapsed);
    CHECK(bj_maze_run_collapsed(r) && bj_maze_run_epoch(r).epoch == 2);
    check_centers(r);
    bj_maze_run_free(r);

    const bj_maze_run_options elsewhere = {.maze = "large"};
    expect("maze-branch", &elsewhere, BJ_EMISMATCH, "trained in maze 'medium'");
    /* a different dataset is detected only when it is opened */
    static float xy[4][2] = {{0, 0}, {4, 0}, {0, 0}, {4, 0}};
    static uint8_t last[4] = {0, 0, 0, 1};
    npz_maker m = {0};
    npz_add(&m, "observations", "<f4", "(4, 2)", xy, sizeof xy, NPZ_DEFLATED);
    npz_add(&m, "terminals", "|b1", "(4,)", last, sizeof last, NPZ_DEFLATED);
    npz_write(&m, case_path(other, "other-medium-v0.npz"));
    const bj_maze_run_options wrong = {.data = other};
    r = open_run("maze-branch", &wrong);
    CHECK(bj_maze_run_data(&unused, r, &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "another dataset");
    bj_maze_run_free(r);
    const bj_maze_run_options gone = {.data = "no-such-file.npz"};
    r = open_run("maze-branch", &gone);
    CHECK(bj_maze_run_data(&unused, r, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "the dataset of the run");
    bj_maze_run_free(r);

    /* files that do not belong together */
    change("maze-mdn", "config.resolved.json", "\"batch\": 32", "\"batch\": 31");
    expect("maze-mdn", NULL, BJ_EMISMATCH, "SHA-256 of the settings");
    change("maze-mdn", "config.resolved.json", "\"batch\": 31", "\"batch\": 32");
    change("maze-mdn", "result.json", "\"outcome\": \"done\"", "\"outcome\": \"gone\"");
    expect("maze-mdn", NULL, BJ_EFORMAT, "outcome is 'gone'");
    change("maze-mdn", "result.json", "\"outcome\": \"gone\"", "\"outcome\": \"done\"");
    change("maze-mdn", "manifest.json", "\"name\": \"medium\"", "\"name\": \"deeper\"");
    expect("maze-mdn", NULL, BJ_EARG, "deeper");
    change("maze-mdn", "manifest.json", "\"name\": \"deeper\"", "\"name\": \"medium\"");
    char digest[80];
    bj_run *folder = case_open("maze-mdn");
    snprintf(digest, sizeof digest, "%s", bj_run_fact(folder, "data.digest"));
    bj_run_free(folder);
    char altered[80];
    snprintf(altered, sizeof altered, "%s", digest);
    altered[0] = altered[0] == 'a' ? 'b' : 'a';
    change("maze-mdn", "manifest.json", digest, altered);
    expect("maze-mdn", NULL, BJ_EMISMATCH, "run.data_digest");
    change("maze-mdn", "manifest.json", altered, digest);
    bj_maze_run_free(open_run("maze-mdn", NULL)); /* all of it is as it was */
    change("maze-mdn", "ckpt/best/model.safetensors", "run.seed", "run.sead");
    expect("maze-mdn", NULL, BJ_EMISMATCH, "as in result.json");
}

/* Tests that an unofficial maze is found next to the dataset, and that it must not have changed. */
static void check_generated(void) {
    char data[CASE_PATH], file[CASE_PATH], dir[CASE_PATH], moved[CASE_PATH];
    const bj_generate_options how = {.branches = 3, .junctions = 2, .seed = 4};
    const bj_walk_options walk = {.episodes = 30, .steps = 300, .noise = -1, .seed = 4};
    const bj_settings s = settings_of("maze-branch", "");
    bj_maze *maze = NULL;
    bj_run_report report;
    bj_maze_graph *graph = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_generate(&maze, &how, &err), err);
    CHECK_OK(bj_maze_save(case_path(file, "three.json"), maze, &err), err);
    CHECK_OK(bj_maze_walk(case_path(data, "three.npz"), maze, &walk, &err), err);
    const bj_run_options o = {.data = data, .dir = case_path(dir, "generated"), .threads = 1};
    CHECK_OK(bj_run_train(&report, &s, &o, &err), err);
    bj_maze_run *r = open_run("generated", NULL);
    CHECK(!strcmp(bj_maze_run_maze(r)->name, maze->name));
    CHECK_OK(bj_maze_graph_create(&graph, r, &err), err);
    if (graph) CHECK(bj_maze_graph_scores(graph).cov_r == report.best.maze.cov_r);
    bj_maze_graph_free(graph);
    bj_maze_run_free(r);
    CHECK(!rename(file, case_path(moved, "moved.json")));
    expect("generated", NULL, BJ_EARG, "whose file is not in the dataset folder");
    const bj_maze_run_options named = {.maze = moved};
    r = open_run("generated", &named);
    bj_maze_run_free(r);
    char *text = NULL;
    size_t size;
    CHECK_OK(bj_file_read(&text, &size, moved, 1 << 20, &err), err);
    if (text) {
        text[size - 1] = ' '; /* says the same in other bytes */
        CHECK_OK(bj_file_write(moved, text, size, &err), err);
        expect("generated", &named, BJ_EMISMATCH, "SHA-256 of the maze");
    }
    bj_free(text);
    bj_maze_free(maze);
}

int main(void) {
    char data[CASE_PATH];
    maze_case_begin(data);
    check_arms(data);
    check_refusals(data);
    check_generated();
    return test_report("run.maze_run");
}
