/* test_dataset.c - tests datasets: cells, episodes, edges, observations and transitions.
 *
 * If BJ_MAZE_DATA is the folder of the full-size datasets, their known counts are checked, too.
 * test_dataset write FILE    a small dataset of the medium maze, for tests/cli/maze.sh
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "npz/npz_case.h"
#include "test.h"

#include <branchjepa/branchjepa.h>

static char path[64] = "/tmp/test_maze_data.XXXXXX";

/* Three episodes in the corner of the medium maze, whose cells are 0 1 / 4 5. -1 stands for a
 * wall. */
enum { STEPS = 14 };
static const int walked[STEPS] = {0, 0, 1, 5, 5, /**/ 5, 1, -1, 1, 0, /**/ 4, 4, 4, 5};
static const uint8_t last[STEPS] = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1};

static void positions(float xy[STEPS][2]) {
    for (int t = 0; t < STEPS; t++) {
        const int cell = walked[t];
        xy[t][0] = cell == 1 || cell == 5 ? 4 : 0;
        xy[t][1] = cell >= 4 ? 4 : 0;
        if (cell < 0) xy[t][0] = 8; /* a wall beside 1 */
        xy[t][0] += 0.125f * (float)(t % 3);
    }
}

static void write_walk(const char *to) {
    float xy[STEPS][2];
    npz_maker m = {0};
    positions(xy);
    npz_add(&m, "observations", "<f4", "(14, 2)", xy, sizeof xy, NPZ_DEFLATED);
    npz_add(&m, "terminals", "|b1", "(14,)", last, STEPS, NPZ_DEFLATED);
    npz_write(&m, to);
}

static void check_walk(const bj_maze_data *d) {
    static const int edges[][3] = {{0, 1, 1}, {1, 0, 1}, {1, 5, 1}, {4, 5, 1}, {5, 1, 1}};
    const bj_maze_data_info info = bj_maze_data_about(d);
    CHECK(info.steps == STEPS && info.episodes == 3 && info.outside == 1 && info.crossings == 5);
    CHECK(info.visited == 4 && info.sources == 4 && info.edges == 5 && !info.open_end);
    for (int t = 0; t < STEPS; t++) CHECK(bj_maze_data_cells(d)[t] == walked[t]);
    static const int64_t begins[4] = {0, 5, 10, 14};
    CHECK(!memcmp(bj_maze_data_episodes(d), begins, sizeof begins));
    for (int k = 0; k < 5 && k < info.edges; k++) {
        CHECK(bj_maze_data_edges(d)[k].from == edges[k][0]);
        CHECK(bj_maze_data_edges(d)[k].to == edges[k][1]);
        CHECK(bj_maze_data_counts(d)[k] == edges[k][2]);
    }
}

static bj_maze_data *open_data(const bj_maze *maze) {
    bj_maze_data *d = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_data_open(&d, path, maze, &err), err);
    return d;
}

static void test_states(const bj_maze *maze) {
    float xy[STEPS][2];
    bj_real found[STEPS][2];
    bj_error err = {0};
    positions(xy);
    write_walk(path);
    bj_maze_data *d = open_data(maze);
    if (!d) return;
    check_walk(d);
    const bj_maze_data_info info = bj_maze_data_about(d);
    CHECK(!strcmp(info.positions, "observations") && info.rank == 1 && info.shape[0] == 2);
    CHECK(info.stride == 1 && bj_maze_data_maze(d) == maze);
    CHECK_OK(bj_maze_data_read(found[0], d, 0, STEPS, &err), err);
    for (int t = 0; t < STEPS; t++)
        CHECK(found[t][0] == (bj_real)xy[t][0] && found[t][1] == (bj_real)xy[t][1]);
    double at[STEPS][2] = {{0}};
    CHECK_OK(bj_maze_data_positions(at[0], d, &err), err);
    for (int t = 0; t < STEPS; t++)
        CHECK(at[t][0] == (double)xy[t][0] && at[t][1] == (double)xy[t][1]);
    /* on, over some, back */
    static const int ranges[][2] = {{0, 3}, {3, 4}, {7, 14}, {2, 5}, {5, 5}, {14, 14}};
    for (int k = 0; k < 6; k++) {
        memset(found, 0, sizeof found);
        CHECK_OK(bj_maze_data_read(found[0], d, ranges[k][0], ranges[k][1], &err), err);
        for (int t = ranges[k][0]; t < ranges[k][1]; t++)
            CHECK(found[t - ranges[k][0]][0] == (bj_real)xy[t][0]);
    }
    CHECK(bj_maze_data_read(found[0], d, 3, 15, &err) == BJ_EARG);
    CHECK(bj_maze_data_read(found[0], d, -1, 2, &err) == BJ_EARG);
    uint8_t bytes[4];
    CHECK(bj_maze_data_read_bytes(bytes, d, 0, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "expected uint8");
    bj_maze_data_free(d);
}

/* Tests a dataset of images with positions, numbered episodes, a stride of five steps, and a
 * missing end mark. */
static void test_images(const bj_maze *maze) {
    float xy[STEPS][2], wide[STEPS][15];
    uint8_t frames[STEPS * 12], found[STEPS * 12];
    int32_t episode[STEPS], step[STEPS];
    bj_real reals[STEPS * 12];
    bj_error err = {0};
    npz_maker m = {0};
    positions(xy);
    memset(wide, 0, sizeof wide);
    for (int t = 0, e = 7; t < STEPS; t++) {
        wide[t][0] = xy[t][0], wide[t][1] = xy[t][1];
        episode[t] = e;
        step[t] = 5 * t;
        e += last[t];
    }
    for (int i = 0; i < STEPS * 12; i++) frames[i] = (uint8_t)(i * 7);
    npz_add(&m, "frames", "|u1", "(14, 2, 2, 3)", frames, sizeof frames, NPZ_DEFLATED);
    npz_add(&m, "states", "<f4", "(14, 15)", wide, sizeof wide, NPZ_STORED);
    npz_add(&m, "episode", "<i4", "(14,)", episode, sizeof episode, NPZ_DEFLATED);
    npz_add(&m, "step", "<i4", "(14,)", step, sizeof step, NPZ_DEFLATED);
    npz_write(&m, path);
    bj_maze_data *d = open_data(maze);
    if (d) {
        const bj_maze_data_info info = bj_maze_data_about(d);
        check_walk(d);
        CHECK(!strcmp(info.observations, "frames") && !strcmp(info.positions, "states"));
        CHECK(info.rank == 3 && info.shape[0] == 2 && info.shape[2] == 3 && info.stride == 5);
        CHECK_OK(bj_maze_data_read_bytes(found, d, 3, STEPS, &err), err);
        CHECK(!memcmp(found, frames + 36, sizeof frames - 36));
        double at[STEPS][2] = {{0}}; /* from the array beside them, and in between */
        CHECK_OK(bj_maze_data_read_bytes(found, d, 0, 5, &err), err);
        CHECK_OK(bj_maze_data_positions(at[0], d, &err), err);
        CHECK_OK(bj_maze_data_read_bytes(found + 60, d, 5, STEPS, &err), err);
        CHECK(!memcmp(found, frames, sizeof frames));
        for (int t = 0; t < STEPS; t++)
            CHECK(at[t][0] == (double)xy[t][0] && at[t][1] == (double)xy[t][1]);
        CHECK_OK(bj_maze_data_read(reals, d, 0, STEPS, &err), err);
        for (int i = 0; i < STEPS * 12; i++) CHECK(reals[i] == (bj_real)frames[i]);
    }
    bj_maze_data_free(d);

    uint8_t open_end[STEPS];
    memcpy(open_end, last, STEPS);
    open_end[STEPS - 1] = 0;
    npz_add(&m, "observations", "|u1", "(14, 2, 2, 3)", frames, sizeof frames, NPZ_DEFLATED);
    npz_add(&m, "qpos", "<f4", "(14, 15)", wide, sizeof wide, NPZ_STORED);
    npz_add(&m, "terminals", "|u1", "(14,)", open_end, STEPS, NPZ_DEFLATED);
    npz_write(&m, path);
    d = open_data(maze);
    if (d) {
        CHECK(bj_maze_data_about(d).open_end && bj_maze_data_about(d).episodes == 3);
        CHECK(!strcmp(bj_maze_data_about(d).positions, "qpos"));
    }
    bj_maze_data_free(d);
}

static void refuse(const bj_maze *maze, npz_maker *m, bj_status code, const char *message) {
    bj_maze_data *d = NULL;
    bj_error err = {0};
    npz_write(m, path);
    const bj_status status = bj_maze_data_open(&d, path, maze, &err);
    CHECK_MSG(status == code && !d, "%s, expected %s", bj_status_name(status),
              bj_status_name(code));
    CHECK_CONTAINS(err.message, path);
    CHECK_CONTAINS(err.message, message);
    bj_maze_data_free(d);
}

static void test_bad(const bj_maze *maze) {
    float xy[STEPS][2];
    npz_maker m = {0};
    positions(xy);
#define XY(type, shape) npz_add(&m, "observations", type, shape, xy, sizeof xy, NPZ_DEFLATED)
#define ENDS(shape, n) npz_add(&m, "terminals", "|b1", shape, last, n, NPZ_DEFLATED)
    ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "no array 'observations'; the file contains: terminals");
    XY("<f4", "(14, 2)");
    refuse(maze, &m, BJ_EFORMAT, "no array 'terminals'");
    XY("<f4", "(14, 2)"), ENDS("(13,)", 13);
    refuse(maze, &m, BJ_EFORMAT, "'terminals' has 13 rows, expected 14");
    XY("<f4", "(14, 2)"), ENDS("(7, 2)", 14);
    refuse(maze, &m, BJ_EFORMAT, "'terminals' has 2 dimensions, expected 1");
    XY("<f4", "(28,)"), ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "'observations' is float32 (28), expected");
    XY("<i4", "(14, 2)"), ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "'observations' is int32 (14, 2), expected");
    XY("<f4", "(28, 1)"), ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "'observations' is float32 (28, 1), expected");
    npz_add(&m, "observations", "<f4", "(0, 2)", "", 0, NPZ_DEFLATED), ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "expected 1 to 2^30 steps");
    npz_add(&m, "frames", "|u1", "(14, 2, 2, 2)", xy, 112, NPZ_DEFLATED), ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "no array 'qpos'");
    npz_add(&m, "frames", "|u1", "(14, 2, 2, 2)", xy, 112, NPZ_DEFLATED), ENDS("(14,)", 14);
    npz_add(&m, "qpos", "<f4", "(7, 4)", xy, 112, NPZ_DEFLATED);
    refuse(maze, &m, BJ_EFORMAT, "'qpos' has 7 rows, expected 14");
    npz_add_header(&m, "observations",
                   "{'descr': '<f4', 'fortran_order': True, 'shape': (14, 2), }", 1, xy, sizeof xy,
                   NPZ_DEFLATED, NULL);
    ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "Fortran order");
    npz_add_header(&m, "observations",
                   "{'descr': '<f4', 'fortran_order': False, 'shape': (14, 2), }", 1, xy, sizeof xy,
                   NPZ_DEFLATED, &(npz_lie){.crc = 1});
    ENDS("(14,)", 14);
    refuse(maze, &m, BJ_EFORMAT, "CRC-32");
    xy[9][1] = NAN;
    XY("<f4", "(14, 2)"), ENDS("(14,)", 14);
    refuse(maze, &m, BJ_ENONFINITE, "'observations' row 9: position is (0");

    write_walk(path);
    for (long n = 0; n < 60; n++) {
        bj_maze_data *d = NULL;
        bj_alloc_fail_after(n);
        const bj_status status = bj_maze_data_open(&d, path, maze, NULL);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || (status == BJ_ENOMEM && !d));
        bj_maze_data_free(d);
        if (status == BJ_OK) break;
        CHECK(n < 59);
    }
}

/* ---------------------------------------------------------------------------------- transitions */

static void check_pairs(const bj_maze_data *d, const bj_transition_options *o, const int (*want)[2],
                        int count, int dropped) {
    bj_transitions *t = NULL;
    bj_error err = {0};
    CHECK_OK(bj_transitions_create(&t, d, o, &err), err);
    if (!t) return;
    CHECK_MSG(bj_transitions_count(t) == count, "%lld pairs, expected %d",
              (long long)bj_transitions_count(t), count);
    CHECK_MSG(bj_transitions_dropped(t) == dropped, "%lld dropped, expected %d",
              (long long)bj_transitions_dropped(t), dropped);
    for (int k = 0; k < count && k < bj_transitions_count(t); k++) {
        const bj_transition pair = bj_transitions_at(t, k);
        CHECK_MSG(pair.from == want[k][0] && pair.to == want[k][1], "%d: %lld to %lld", k,
                  (long long)pair.from, (long long)pair.to);
    }
    bj_transitions_free(t);
}

static void test_transitions(const bj_maze *maze) {
    write_walk(path);
    bj_maze_data *d = open_data(maze);
    bj_error err = {0};
    if (!d) return;
    bj_transition_options o = {.kind = BJ_TRANSITION_STEP};
    static const int steps[][2] = {{0, 1}, {1, 2},   {2, 3},   {3, 4},  {5, 6},
                                   {8, 9}, {10, 11}, {11, 12}, {12, 13}};
    check_pairs(d, &o, steps, 9, 0); /* the steps 6-7 and 7-8 contain a position in a wall */
    static const int far[][2] = {{0, 3}, {1, 4}, {5, 8}, {6, 9}, {10, 13}};
    o.horizon = 3;
    check_pairs(d, &o, far, 5, 0);
    static const int crossings[][2] = {{0, 2}, {1, 2},   {2, 3},   {5, 6},  {6, 9},
                                       {8, 9}, {10, 13}, {11, 13}, {12, 13}};
    o = (bj_transition_options){.kind = BJ_TRANSITION_CROSSING};
    check_pairs(d, &o, crossings, 9, 0);

    /* withheld: 0 to 1 */
    static const uint8_t held[5] = {1, 0, 0, 0, 0};
    o.held = held;
    check_pairs(d, &o, crossings + 2, 7, 2);
    o.kind = BJ_TRANSITION_STEP;
    static const int without[][2] = {{0, 1}, {2, 3},   {3, 4},   {5, 6},
                                     {8, 9}, {10, 11}, {11, 12}, {12, 13}};
    check_pairs(d, &o, without, 8, 1);
    o.horizon = 3; /* crosses it on the way: 0-3 and 1-4 */
    check_pairs(d, &o, far + 2, 3, 2);

    static const uint8_t second[3] = {0, 1, 0};
    o = (bj_transition_options){.kind = BJ_TRANSITION_CROSSING, .episodes = second};
    check_pairs(d, &o, crossings + 3, 3, 0);

    bj_transitions *t = NULL;
    o.horizon = -1;
    CHECK(bj_transitions_create(&t, d, &o, &err) == BJ_EARG && !t);
    bj_maze_data_free(d);
}

/* ------------------------------------------------------------------------------- published sizes
 */

static void test_published(const char *folder) {
    static const struct {
        const char *file;
        int64_t steps, episodes, crossings, rarest;
        int edges, real;
    } want[] = {{"pointmaze-medium-navigate-v0", 1001000, 1000, 51836, 27, 56, 56},
                {"pointmaze-medium-stitch-v0", 1005000, 5000, 22280, 1, 54, 54},
                {"pointmaze-large-navigate-v0", 1001000, 1000, 47636, 59, 96, 96},
                {"pointmaze-large-stitch-v0", 1005000, 5000, 21354, 28, 96, 96},
                {"pointmaze-teleport-navigate-v0", 1001000, 1000, 33038, 5, 98, 96},
                {"antmaze-teleport-navigate-stride25", 41000, 1000, -1, -1, -1, -1},
                {"visual-antmaze-teleport-stride25", 8200, 200, -1, -1, -1, -1}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        char file[1024];
        bj_maze *maze = NULL;
        bj_maze_data *d = NULL;
        bj_error err = {0};
        snprintf(file, sizeof file, "%s/%s.npz", folder, want[k].file);
        if (access(file, R_OK)) {
            printf("skipped: no %s\n", file);
            continue;
        }
        CHECK_OK(bj_maze_create(&maze, bj_maze_guess(file), &err), err);
        CHECK_OK(bj_maze_data_open(&d, file, maze, &err), err);
        if (d) {
            const bj_maze_data_info info = bj_maze_data_about(d);
            int real = 0;
            int64_t rarest = INT64_MAX;
            for (int e = 0; e < info.edges; e++) {
                if (bj_maze_edge_kind(maze, bj_maze_data_edges(d)[e]) != BJ_EDGE_REAL) continue;
                real++;
                if (bj_maze_data_counts(d)[e] < rarest) rarest = bj_maze_data_counts(d)[e];
            }
            CHECK(info.steps == want[k].steps && info.episodes == want[k].episodes);
            CHECK(info.outside == 0 && info.visited == maze->cells);
            if (want[k].edges < 0) CHECK(info.stride == 25);
            else
                CHECK_MSG(info.crossings == want[k].crossings && info.edges == want[k].edges &&
                              real == want[k].real && rarest == want[k].rarest,
                          "%s", file);
        }
        bj_maze_data_free(d);
        bj_maze_free(maze);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "write")) {
        write_walk(argv[2]);
        return 0;
    }
    const int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    close(fd);
    const long live = bj_alloc_live();
    bj_maze *maze = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_create(&maze, "medium", &err), err);
    if (maze) {
        test_states(maze);
        test_images(maze);
        test_bad(maze);
        test_transitions(maze);
    }
    bj_maze_free(maze);
    const char *folder = getenv("BJ_MAZE_DATA");
    if (folder) test_published(folder);
    else
        printf("skipped: to check the counts of OGBench datasets, "
               "set BJ_MAZE_DATA to their folder\n");
    CHECK(bj_alloc_live() == live);
    unlink(path);
    return test_report("dataset");
}
