/* maze_case.h - a small dataset of the medium maze, and training runs of tiny models on it.
 *
 * The dataset is a walk along the edges of the maze that takes a few steps from one center to the
 * next.
 */
#ifndef BJ_TESTS_MAZE_CASE_H
#define BJ_TESTS_MAZE_CASE_H

#include "npz/npz_case.h"
#include "run_case.h"

enum { EPISODES = 60, STEPS = 61, ROWS = EPISODES * STEPS, PACE = 4 };

/* Writes states with x, y and, if requested, MORE random numbers. */
enum { MORE = 2 };
static inline void make_dataset(const char *path, int more) {
    static float xy[ROWS][2], wide[ROWS][2 + MORE];
    static uint8_t last[ROWS];
    bj_maze *maze;
    bj_error err = {0};
    bj_rng rng = bj_rng_seed(1);
    CHECK_OK(bj_maze_create(&maze, "medium", &err), err);
    for (int e = 0; e < EPISODES; e++) {
        int cell = (int)(bj_rng_uniform(&rng) * maze->cells), next = cell;
        for (int t = 0; t < STEPS; t++) {
            if (t % PACE == 0) {
                int choices[8], n = 0;
                cell = next;
                for (int k = 0; k < maze->edge_count && n < 8; k++)
                    if (maze->edges[k].from == cell) choices[n++] = maze->edges[k].to;
                next = choices[(int)(bj_rng_uniform(&rng) * n)];
            }
            const double at = (double)(t % PACE) / PACE;
            for (int i = 0; i < 2; i++)
                xy[e * STEPS + t][i] = (float)(maze->center[2 * cell + i] * (1 - at) +
                                               maze->center[2 * next + i] * at +
                                               0.3 * (bj_rng_uniform(&rng) - 0.5));
        }
        last[e * STEPS + STEPS - 1] = 1;
    }
    npz_maker m = {0};
    char shape[32], rows[32];
    for (int t = 0; t < ROWS; t++) {
        memcpy(wide[t], xy[t], sizeof xy[t]);
        for (int i = 0; i < MORE; i++) wide[t][2 + i] = (float)bj_rng_normal(&rng);
    }
    snprintf(shape, sizeof shape, "(%d, %d)", ROWS, more ? 2 + MORE : 2);
    snprintf(rows, sizeof rows, "(%d,)", ROWS);
    npz_add(&m, "observations", "<f4", shape, more ? (const void *)wide : xy,
            more ? sizeof wide : sizeof xy, NPZ_DEFLATED);
    npz_add(&m, "terminals", "|b1", rows, last, sizeof last, NPZ_DEFLATED);
    npz_write(&m, path);
    bj_maze_free(maze);
}

static inline bj_settings settings_of(const char *arm, const char *more) {
    enum { MOST = 32 };
    char text[1024];
    bj_assignment list[MOST] = {{"arm", arm, "test"}};
    int count = 1;
    bj_settings out;
    bj_error err = {0};
    snprintf(text, sizeof text,
             "model.embed=16 model.latent=24 model.proj_hidden=16 model.atom_hidden=16 "
             "model.router_hidden=8 train.batch=32 train.updates=20 train.epochs=2 "
             "loss.variance_floor=0.18 loss.rank_floor=12 gate.std=0 gate.low_std=1 gate.rank=0 "
             "gate.separated=0 %s",
             more);
    for (char *word = strtok(text, " "); word && count < MOST; word = strtok(NULL, " ")) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        list[count++] = (bj_assignment){word, equals + 1, "test"};
    }
    CHECK_OK(bj_settings_resolve(&out, NULL, list, count, &err), err);
    return out;
}

typedef struct watcher {
    int64_t stop_at;
} watcher;

static bj_run_answer watch(void *context, const bj_run_progress *p) {
    const watcher *w = context;
    return w->stop_at && p->step >= w->stop_at ? BJ_RUN_STOP : BJ_RUN_GO_ON;
}

static inline bj_run_report run(const bj_settings *s, const char *data, const char *name, int64_t stop_at,
                         int threads) {
    char dir[CASE_PATH];
    watcher w = {stop_at};
    const bj_run_options o = {.data = data,
                              .maze = "medium",
                              .dir = case_path(dir, name),
                              .resume = 1,
                              .threads = threads,
                              .progress = watch,
                              .context = &w};
    bj_run_report report;
    bj_error err = {0};
    CHECK_OK(bj_run_train(&report, s, &o, &err), err);
    return report;
}

/* Creates the scratch folder with the dataset and sets `data` to its path. */
static inline void maze_case_begin(char data[CASE_PATH]) {
    snprintf(case_folder, sizeof case_folder, "%s/test_maze.XXXXXX",
             access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm");
    if (!mkdtemp(case_folder) || atexit(case_end)) exit(1);
    make_dataset(case_path(data, "walk-medium-v0.npz"), 0);
}

#endif
