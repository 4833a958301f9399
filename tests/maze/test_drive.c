/* test_drive.c - tests driving with true graphs, with missing and false edges, and with equal
 * seeds.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "test.h"

#include <branchjepa/maze_drive.h>

static bj_maze *open_maze(const char *name) {
    bj_error err = {0};
    bj_maze *m = NULL;
    CHECK_OK(bj_maze_create(&m, name, &err), err);
    return m;
}

/* Tests that the true graph solves all tasks in mazes without teleporters, and that the graph
 * without teleporter edges solves those with teleporters. */
static void test_ceiling(void) {
    for (int i = 0; bj_maze_name(i); i++) {
        bj_maze *m = open_maze(bj_maze_name(i));
        bj_drive_result r;
        bj_error err = {0};
        const bj_drive_options options = {.episodes = 3, .seed = 5};
        if (!m) continue;
        uint8_t *walks = malloc((size_t)m->cells * (size_t)m->cells);
        int32_t *distance = malloc(2 * (size_t)m->cells * sizeof *distance);
        bj_maze_on_foot(walks, m);
        CHECK_OK(bj_maze_drive(&r, m, walks, &options, &err), err);
        CHECK(r.tasks == 5 && r.episodes == 15 && r.successes == 15 && r.success == 1);
        double sum = 0;
        for (int t = 0; t < r.tasks; t++) {
            const bj_drive_task *k = &r.task[t];
            bj_graph_distances(distance, distance + m->cells, walks, m->cells, k->task.from);
            CHECK(k->distance == distance[k->task.to] && k->distance > 0);
            CHECK(k->successes == 3 && !k->replans && !k->teleports && !k->given_up);
            /* about 20 steps per edge; the agent cuts corners, and reaches the goal a bit
             * earlier */
            CHECK(k->mean_steps < 20 * k->distance + 10 && k->mean_steps > 12 * k->distance - 10);
            sum += 3 * k->mean_steps;
        }
        CHECK_NEAR(r.mean_steps, sum / 15, 1e-9);
        free(walks);
        free(distance);
        bj_maze_free(m);
    }
}

/* Tests that some episodes with teleporters fail, because plans treat the random exits as a
 * choice. */
static void test_chance(void) {
    bj_maze *m = open_maze("teleport");
    bj_drive_result r, again;
    bj_error err = {0};
    bj_drive_options options = {.seed = 1};
    if (!m) return;
    CHECK_OK(bj_maze_drive(&r, m, m->graph, &options, &err), err);
    CHECK(r.episodes == 100 && r.successes > 30 && r.successes < 80);
    int teleports = 0, replans = 0;
    for (int t = 0; t < 5; t++) {
        teleports += r.task[t].teleports;
        replans += r.task[t].replans;
    }
    CHECK(teleports >= 100 && replans > 30);
    CHECK_OK(bj_maze_drive(&again, m, m->graph, &options, &err), err);
    CHECK(!memcmp(&r, &again, sizeof r)); /* no NaN in either */
    options.seed = 2;
    CHECK_OK(bj_maze_drive(&again, m, m->graph, &options, &err), err);
    CHECK(memcmp(&r, &again, sizeof r));
    bj_maze_free(m);
}

/* A corridor of three cells 0 - 1 - 2 in one row, with a wall and another cell 3 below. */
static bj_maze *corridor(void) {
    static const uint8_t walls[] = {1, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1,
                                    1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1};
    static const int32_t tasks[] = {1, 1, 1, 3, 1, 1, 3, 2};
    const bj_maze_plan plan = {
        .name = "corridor", .rows = 5, .cols = 5, .walls = walls, .tasks = tasks, .task_count = 2};
    bj_maze *m = NULL;
    bj_error err = {0};
    CHECK_OK(bj_maze_from_plan(&m, &plan, &err), err);
    return m;
}

static void test_wrong_graphs(void) {
    bj_maze *m = corridor();
    bj_drive_result r;
    bj_error err = {0};
    bj_drive_options options = {.episodes = 4, .steps = 300};
    uint8_t graph[16] = {0};
    if (!m) return;
    CHECK(m->cells == 4 && m->edge_count == 4 && m->task_count == 2);
    CHECK_OK(bj_maze_drive(&r, m, graph, &options, &err), err); /* no edge at all */
    CHECK(r.successes == 0 && r.success == 0 && isnan(r.mean_steps) && r.task[0].distance == -1);
    CHECK(isnan(r.task[0].mean_steps));

    CHECK_OK(bj_maze_drive(&r, m, m->graph, &options, &err), err);
    CHECK(r.task[0].successes == 4 && r.task[0].distance == 2);
    CHECK(r.task[1].successes == 0 && r.task[1].distance == -1); /* cell 3 is walled in */

    /* Tests a false edge from 0 to 2, which are not adjacent. The agent waits for a teleporter
     * until its patience ends, and then takes the long way. */
    memcpy(graph, m->graph, sizeof graph);
    graph[0 * 4 + 2] = 1;
    CHECK_OK(bj_maze_drive(&r, m, graph, &options, &err), err);
    CHECK(r.task[0].distance == 1 && r.task[0].successes == 0);
    options.patience = 40;
    CHECK_OK(bj_maze_drive(&r, m, graph, &options, &err), err);
    CHECK(r.task[0].successes == 4 && r.task[0].given_up == 4);
    CHECK(r.task[0].mean_steps > 40 && r.task[0].mean_steps < 100);
    CHECK(graph[2] == 1); /* the edge is removed within the episode, but not in the caller's
                             graph */

    /* Tests that the agent moves to cell 1 and stays there if the graph has no edge out of cell
     * 1. */
    memcpy(graph, m->graph, sizeof graph);
    graph[1 * 4 + 2] = 0;
    CHECK_OK(bj_maze_drive(&r, m, graph, &options, &err), err);
    CHECK(r.task[0].successes == 0 && r.task[0].distance == -1);

    /* Tests that the agent stays if the path through cell 1 leads back to the removed edge. */
    graph[0 * 4 + 2] = 1;
    double positions[2 * 301], goal[2];
    int steps = 0, reached = 1;
    CHECK_OK(
        bj_maze_drive_episode(positions, &steps, &reached, goal, m, graph, 0, 0, &options, &err),
        err);
    CHECK(!reached && steps == 300);
    for (int t = 0; t <= steps; t++)
        CHECK(bj_maze_cell(m, positions[2 * t], positions[2 * t + 1]) == 0);

    options.patience = -1;
    CHECK(bj_maze_drive(&r, m, graph, &options, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "a patience of -1");
    bj_maze_free(m);
}

static void test_episode(void) {
    bj_maze *m = open_maze("teleport");
    bj_error err = {0};
    bj_drive_options options = {.seed = 1, .episodes = 3};
    bj_drive_result r;
    double positions[2 * (BJ_POINT_STEPS + 1)], goal[2];
    int steps = 0, reached = 0, sum = 0, jumps = 0, count = 0;
    if (!m) return;
    CHECK_OK(bj_maze_drive(&r, m, m->graph, &options, &err), err);
    for (int e = 0; e < 3; e++) {
        CHECK_OK(bj_maze_drive_episode(positions, &steps, &reached, goal, m, m->graph, 1, e,
                                       &options, &err),
                 err);
        sum += reached ? steps : 0;
        count += reached;
        const double *last = positions + 2 * steps;
        CHECK(reached == (hypot(last[0] - goal[0], last[1] - goal[1]) <= 1));
        CHECK(bj_maze_cell(m, positions[0], positions[1]) == m->tasks[1].from);
        for (int t = 0; t < steps; t++)
            jumps += hypot(positions[2 * t + 2] - positions[2 * t],
                           positions[2 * t + 3] - positions[2 * t + 1]) > 1;
    }
    CHECK(count == r.task[1].successes && jumps == r.task[1].teleports);
    if (count) CHECK_NEAR((double)sum / count, r.task[1].mean_steps, 1e-9);
    CHECK(bj_maze_drive_episode(positions, &steps, &reached, goal, m, m->graph, 5, 0, &options,
                                &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "task 5 or episode 0 does not exist; the maze has 5 tasks");
    bj_maze_free(m);
    m = NULL;
    const uint8_t open_square[1] = {0};
    CHECK_OK(bj_maze_from_walls(&m, "one", open_square, 1, 1, &err), err);
    CHECK(bj_maze_drive(&r, m, m->graph, &options, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "maze 'one' has no tasks");
    bj_maze_free(m);
}

static void test_memory(void) {
    bj_maze *m = corridor();
    bj_drive_result r;
    bj_error err = {0};
    const bj_drive_options options = {.episodes = 1};
    if (!m) return;
    for (int n = 0; n < 3; n++) {
        const long live = bj_alloc_live();
        bj_alloc_fail_after(n);
        const bj_status status = bj_maze_drive(&r, m, m->graph, &options, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_ENOMEM && bj_alloc_live() == live);
    }
    bj_maze_free(m);
}

int main(void) {
    const long live = bj_alloc_live();
    test_ceiling();
    test_chance();
    test_wrong_graphs();
    test_episode();
    test_memory();
    CHECK(bj_alloc_live() == live);
    return test_report("drive");
}
