/* test_rules.c - tests the rules on scenes and maps made by hand, and submissions from folders and
 * caches.
 *
 * Distances are computed by hand from the rules in src/rules/rules.h and src/rules/lanes.c.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "rules/rules.h"
#include "support/test.h"

enum { F = BJ_SUBMISSION_STEPS, LAST = 49, LANES_MAX = 300, POINTS_MAX = 1200 };

static const double pi = 3.14159265358979323846;
static bj_error err;
static bj_lane_rule *lanes;

/* ---------------------------------------------------------------------------------------- scene */

/* A scene whose frame is the city's. */
static struct {
    float focal[50 * 7];
    bj_rule_scene scene;
    bj_map map;
    bj_lane lane[LANES_MAX];
    bj_point point[POINTS_MAX];
    int64_t next[LANES_MAX][4];
    int points;
} town;

static bj_rule_forecast out;

static void clear(double vx, double vy) {
    memset(&town, 0, sizeof town);
    town.map.lanes = town.lane;
    town.scene = (bj_rule_scene){.focal = town.focal,
                                 .focal_valid = ((uint64_t)1 << 50) - 1,
                                 .focal_type = "vehicle",
                                 .map = &town.map};
    for (int t = 0; t < 50; t++) {
        float *row = town.focal + 7 * t;
        row[0] = (float)(.1 * (t - LAST) * vx), row[1] = (float)(.1 * (t - LAST) * vy);
        row[2] = (float)vx, row[3] = (float)vy, row[4] = 1;
    }
}

/* Adds a lane of 3 m width with a straight centerline. */
static bj_lane *add_lane(int64_t id, double x0, double y0, double x1, double y1) {
    bj_lane *lane = &town.lane[town.map.lane_count];
    const double size = hypot(x1 - x0, y1 - y0), nx = -(y1 - y0) / size, ny = (x1 - x0) / size;
    bj_point *p = town.point + town.points;
    p[0] = (bj_point){x0 + 1.5 * nx, y0 + 1.5 * ny},
    p[1] = (bj_point){x1 + 1.5 * nx, y1 + 1.5 * ny};
    p[2] = (bj_point){x0 - 1.5 * nx, y0 - 1.5 * ny},
    p[3] = (bj_point){x1 - 1.5 * nx, y1 - 1.5 * ny};
    *lane = (bj_lane){id, 0, {p, 2}, {p + 2, 2}, town.next[town.map.lane_count], 0};
    town.points += 4;
    town.map.lane_count++;
    return lane;
}

static void link_lanes(bj_lane *from, int64_t to) {
    town.next[from - town.lane][from->successor_count++] = to;
}

static void apply(bj_rule rule) {
    memset(&out, 0, sizeof out);
    CHECK_OK(bj_rule_apply(&out, rule, lanes, &town.scene, &err), err);
    double sum = 0;
    for (int k = 0; k < out.K; k++) sum += out.p[k];
    CHECK_NEAR(sum, 1, 1e-12);
}

/* Tests that trajectory k has probability p and is at (x, y) at future step t, counted from 1. */
static void check_at(int k, double p, int t, double x, double y) {
    CHECK_MSG(k < out.K, "%d trajectories", out.K);
    CHECK_NEAR(out.p[k], p, 1e-12);
    CHECK_NEAR(out.y[k][2 * (t - 1)], x, 1e-4);
    CHECK_NEAR(out.y[k][2 * (t - 1) + 1], y, 1e-4);
}

/* ------------------------------------------------------------------------------------ kinematic */

static void test_velocity(void) {
    clear(8, -1);
    apply(BJ_RULE_VELOCITY);
    CHECK(out.K == 1);
    check_at(0, 1, 1, .8, -.1);
    check_at(0, 1, 60, 48, -6);

    apply(BJ_RULE_VELOCITY_SPREAD);
    CHECK(out.K == 6);
    static const double z[6] = {-.210428, .210428, -.674490, .674490, -1.382994, 1.382994};
    double mean = 0;
    for (int k = 0; k < 6; k++) {
        check_at(k, 1. / 6, 60, 48 * (1 + .3 * z[k]), -6 * (1 + .3 * z[k]));
        mean += out.y[k][118] / 6;
    }
    CHECK_NEAR(mean, 48, 1e-9);
    clear(0, 0);
    apply(BJ_RULE_VELOCITY_SPREAD);
    CHECK(out.K == 1); /* six equal trajectories would violate the rules for submissions */
    check_at(0, 1, 60, 0, 0);
}

static void test_turn(void) {
    clear(10, 0);
    const double rate = .25;
    for (int t = 0; t < 50; t++) {
        const double h = .1 * (t - LAST) * rate;
        town.focal[7 * t + 4] = (float)cos(h), town.focal[7 * t + 5] = (float)sin(h);
    }
    apply(BJ_RULE_TURN);
    CHECK(out.K == 1);
    const double r = 10 / rate;
    for (int t = 1; t <= 60; t++)
        check_at(0, 1, t, r * sin(.1 * t * rate), r * (1 - cos(.1 * t * rate)));
    /* Steps without a row are ignored, and so are steps before 40. */
    for (int t = 0; t < 50; t++)
        if (t < 40 || t == 44) town.focal[7 * t + 4] = 0, town.focal[7 * t + 5] = -1;
    town.scene.focal_valid &= ~((uint64_t)1 << 44);
    apply(BJ_RULE_TURN);
    check_at(0, 1, 60, r * sin(1.5), r * (1 - cos(1.5)));
    town.scene.focal_valid = (uint64_t)1 << LAST; /* one row: straight on */
    apply(BJ_RULE_TURN);
    check_at(0, 1, 60, 60, 0);
    clear(3, 4); /* no turn, velocity not along the heading */
    apply(BJ_RULE_TURN);
    check_at(0, 1, 60, 18, 24);
}

/* ---------------------------------------------------------------------------------------- lanes */

/* Test one straight lane. The vehicle is 1 m to the left of its center. */
static void test_straight(void) {
    clear(10, 0);
    add_lane(1, -20, -1, 300, -1);
    apply(BJ_RULE_LANES);
    CHECK(out.K == 2);
    check_at(0, .75, 1, 1, -1. / 20);
    check_at(0, .75, 10, 10, -.5);
    check_at(0, .75, 20, 20, -1);
    check_at(0, .75, 60, 60, -1);
    check_at(1, .25, 10, 9, -.45); /* 2 m/s^2 */
    check_at(1, .25, 50, 25, -1);
    check_at(1, .25, 60, 25, -1); /* stands */
    town.scene.origin[0] = 5; /* the same place, given in the frame of the scene */
    town.scene.heading = pi / 6;
    apply(BJ_RULE_LANES);
    check_at(0, .75, 60, 60 * cos(pi / 6) - sin(pi / 6), -60 * sin(pi / 6) - cos(pi / 6));
}

/* Test a fork after 30 m at an intersection, with a left and a straight branch. */
static void test_fork(void) {
    clear(10, 0);
    bj_lane *in = add_lane(1, -20, 0, 30, 0);
    add_lane(2, 30, 0, 200, 0)->is_intersection = 1;
    add_lane(3, 30, 0, 30, 200)->is_intersection = 1;
    link_lanes(in, 2);
    link_lanes(in, 3);
    link_lanes(in, 99); /* outside the map */
    apply(BJ_RULE_LANES);
    CHECK(out.K == 3);
    check_at(0, .375, 60, 60, 0);
    check_at(1, .375, 60, 30, 30);
    /* The vehicle stops 3 m before the intersection with 100 / 54 m/s^2 on both routes. */
    check_at(2, .25, 60, 27, 0);
    check_at(2, .25, 10, 10 - 100. / 54 / 2, 0);
    /* The vehicle is too fast to stop there, so it brakes with 2 m/s^2 on each route. */
    clear(20, 0);
    in = add_lane(1, -20, 0, 30, 0);
    add_lane(2, 30, 0, 200, 0)->is_intersection = 1;
    add_lane(3, 30, 0, 30, 200)->is_intersection = 1;
    link_lanes(in, 2);
    link_lanes(in, 3);
    apply(BJ_RULE_LANES);
    CHECK(out.K == 4);
    check_at(2, .125, 60, 84, 0);
    check_at(3, .125, 60, 30, 54);
    /* A fork behind the reach does not count. */
    clear(4, 0);
    in = add_lane(1, -20, 0, 30, 0);
    add_lane(2, 30, 0, 200, 0)->is_intersection = 1;
    add_lane(3, 30, 0, 30, 200)->is_intersection = 1;
    link_lanes(in, 2);
    link_lanes(in, 3);
    apply(BJ_RULE_LANES);
    CHECK(out.K == 2);
    check_at(0, .75, 60, 24, 0);
    check_at(1, .25, 60, 4, 0); /* 2 m/s^2, not the way to the intersection */
    /* A successor that is not in the map gets no share of the probability. */
    clear(10, 0);
    in = add_lane(1, -20, 0, 10, 0);
    bj_lane *left = add_lane(2, 10, 0, 10, 10);
    add_lane(3, 10, 0, 200, 0);
    add_lane(4, 10, 10, 10, 200);
    link_lanes(in, 2);
    link_lanes(in, 3);
    link_lanes(left, 4);
    link_lanes(left, 99);
    apply(BJ_RULE_LANES);
    CHECK(out.K == 4);
    check_at(0, .375, 60, 10, 50);
    check_at(1, .375, 60, 60, 0);
}

/* Tests that a slow vehicle either stays or starts to move, on each route. */
static void test_start(void) {
    clear(1, 0);
    bj_lane *in = add_lane(1, -20, 0, 10, 0);
    add_lane(2, 10, 0, 200, 0);
    add_lane(3, 10, 0, 10, 200);
    link_lanes(in, 2);
    link_lanes(in, 3);
    apply(BJ_RULE_LANES);
    CHECK(out.K == 3);
    check_at(0, .5, 60, .25, 0); /* stopping takes 1 / (2 * 2) m on both routes */
    check_at(1, .25, 60, 6 + 27, 0);
    check_at(2, .25, 60, 10, 23);
    clear(0, 0); /* a standing vehicle divides by no speed */
    in = add_lane(1, -20, 0, 10, 0);
    add_lane(2, 10, 0, 200, 0)->is_intersection = 1;
    link_lanes(in, 2);
    apply(BJ_RULE_LANES);
    CHECK(out.K == 2);
    check_at(0, .5, 60, 27, 0);
    check_at(1, .5, 60, 0, 0);
}

/* Tests the choice of start lanes, which must be near enough and aligned. All overlapping lanes are
 * used. */
static void test_starts(void) {
    clear(10, 0);
    add_lane(1, -20, 3.2, 300, 3.2); /* the next lane is 3.2 m away */
    add_lane(2, 0, 0, -300, 0);      /* the nearest one points back */
    apply(BJ_RULE_LANES);
    CHECK(out.K == 2);
    check_at(0, .75, 60, 60, 3.2);
    add_lane(3, -20, .3, 300, .3);
    add_lane(4, -20, 0, 300, 0);
    add_lane(5, -20, -.6, 300, -.6);
    apply(BJ_RULE_LANES); /* lanes 3 and 4 are chosen, and their trajectories are within 0.5 m of
                             each other */
    CHECK(out.K == 2);
    check_at(0, .75, 60, 60, .3);
    clear(10, 0);
    add_lane(1, -20, 4.1, 300, 4.1); /* too far: constant velocity */
    apply(BJ_RULE_LANES);
    CHECK(out.K == 1);
    check_at(0, 1, 60, 60, 0);
    clear(10, 0); /* an empty map */
    apply(BJ_RULE_LANES);
    CHECK(out.K == 1);
    clear(1, 1);
    add_lane(1, -20, 0, 300, 0);
    town.scene.focal_type = "pedestrian";
    apply(BJ_RULE_LANES);
    CHECK(out.K == 1);
    check_at(0, 1, 60, 6, 6);
}

/* Tests the end of the map, cycles of lanes, and lanes of length zero. */
static void test_ends(void) {
    clear(10, 0);
    bj_lane *first = add_lane(1, -20, 0, 20, 0);
    add_lane(2, 20, 0, 20, 10);
    link_lanes(first, 2);
    apply(BJ_RULE_LANES);
    check_at(0, .75, 60, 20, 40); /* straight on behind the last point */
    clear(10, 0);
    first = add_lane(1, -20, 0, 20, 0);
    bj_lane *point = add_lane(2, 20, 0, 20.001, 0);
    point->left.count = point->right.count = 1;
    link_lanes(first, 2);
    link_lanes(point, 2); /* its own successor, without length */
    apply(BJ_RULE_LANES);
    CHECK(out.K == 2);
    for (int t = 1; t <= 20; t++) check_at(0, .75, t, t, 0);
    clear(30, 0);
    first = add_lane(1, -20, 0, 30, 0);
    bj_lane *back = add_lane(2, 30, 0, -20, 0);
    link_lanes(first, 2);
    link_lanes(back, 1); /* 180 m there and back end at the second end of lane 2 */
    apply(BJ_RULE_LANES);
    check_at(0, .75, 50, 10, 0);
    check_at(0, .75, 60, -20, 0);
}

/* Tests the limits: more routes than are followed, and the selection of the six most probable
 * trajectories. */
static void test_many(void) {
    clear(10, 0);
    int count = 1; /* a binary tree of lanes that starts 8 m ahead has 128 leaves, of which 64 are
                      followed */
    add_lane(1, -2, 0, 4, 0);
    for (int i = 0; i < 127; i++)
        for (int side = -1; side <= 1; side += 2) {
            bj_lane *const from = &town.lane[i];
            const bj_point a = from->left.at[1], b = from->right.at[1];
            const double x = (a.x + b.x) / 2, y = (a.y + b.y) / 2;
            add_lane(++count, x, y, x + 8, y + side * (2 + i % 3));
            link_lanes(&town.lane[i], count);
        }
    apply(BJ_RULE_LANES);
    CHECK(out.K == 6);
    for (int k = 1; k < 6; k++) CHECK(out.p[k] <= out.p[k - 1]);
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < BJ_RULE_ROW; i++) CHECK(isfinite(out.y[k][i]));
}

/* ---------------------------------------------------------------------------------- submissions */

static char folder[] = "/tmp/test_rules.XXXXXX", world[64], cache[64], path[64], other[64];

static int same_files(const char *a, const char *b) {
    char *x = NULL, *y = NULL;
    size_t m = 0, n = 0;
    CHECK_OK(bj_file_read(&x, &m, a, 1 << 26, &err), err);
    CHECK_OK(bj_file_read(&y, &n, b, 1 << 26, &err), err);
    const int same = x && y && m == n && !memcmp(x, y, n);
    bj_free(x);
    bj_free(y);
    return same;
}

static int stop(void *context, int64_t done, int64_t total) {
    *(int64_t *)context = done;
    return total > 0;
}

static void test_submit(void) {
    enum { SCENES = 40 };
    bj_world_report made;
    const bj_world_options options = {.seed = 5, .split = "val", .scenes = SCENES, .jobs = 1};
    int64_t scenes = 0;
    CHECK_OK(bj_world_to_cache(&made, cache, &options, &err), err);
    CHECK_OK(bj_world_to_folders(&made, world, &options, &err), err);
    for (int rule = 0; rule < BJ_RULES; rule++) {
        bj_submission *submission = NULL;
        bj_truth *truth = NULL;
        bj_score *score = NULL;
        const bj_rule_options one = {.threads = 1}, three = {.threads = 3};
        CHECK_OK(bj_rule_submit(&scenes, path, (bj_rule)rule, world, &one, &err), err);
        CHECK(scenes == SCENES);
        CHECK_OK(bj_rule_submit(NULL, other, (bj_rule)rule, world, &three, &err), err);
        CHECK(same_files(path, other));
        const bj_status status = bj_rule_submit(NULL, other, (bj_rule)rule, cache, NULL, &err);
        CHECK(status == (rule == BJ_RULE_LANES ? BJ_EARG : BJ_OK));
        CHECK(same_files(path, other));
        CHECK_OK(bj_submission_open(&submission, path, &err), err);
        CHECK_OK(bj_truth_open(&truth, world, NULL, &err), err);
        CHECK_OK(bj_score_create(&score, submission, truth, NULL, &err), err);
        if (score) {
            CHECK(bj_score_count(score).violations_total == 0);
            CHECK(bj_score_count(score).scored == SCENES);
            const double modes = bj_score_group_at(score, 0).values.modes;
            CHECK(rule == BJ_RULE_LANES ? modes > 2 : modes == (rule == 1 ? 6 : 1));
        }
        bj_score_free(score);
        bj_truth_free(truth);
        bj_submission_free(submission);
    }
}

static void test_refusals(void) {
    bj_rule rule = BJ_RULES;
    int64_t done = 0;
    char empty[80];
    CHECK_OK(bj_rule_find(&rule, "constant-turn-rate", &err), err);
    CHECK(rule == BJ_RULE_TURN && !strcmp(bj_rule_name(rule), "constant-turn-rate"));
    CHECK(bj_rule_find(&rule, "lane", &err) == BJ_EARG && !bj_rule_name(BJ_RULES));
    CHECK_CONTAINS(err.message, "'lane' does not exist, expected constant-velocity, ");
    CHECK(bj_rule_submit(NULL, path, BJ_RULE_LANES, cache, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "a cache does not contain the lane graph");
    CHECK(bj_rule_submit(NULL, path, BJ_RULES, world, NULL, &err) == BJ_EARG);
    CHECK(bj_rule_submit(NULL, path, BJ_RULE_TURN, "/nowhere", NULL, &err) == BJ_EIO);
    CHECK(bj_rule_submit(NULL, path, BJ_RULE_TURN, path, NULL, &err) == BJ_EFORMAT);
    snprintf(empty, sizeof empty, "%s/empty", folder);
    CHECK(mkdir(empty, 0777) == 0);
    CHECK(bj_rule_submit(NULL, path, BJ_RULE_TURN, empty, NULL, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "found no scenario");
    const bj_rule_options stopping = {.threads = 1, .progress = stop, .context = &done};
    unlink(other);
    CHECK(bj_rule_submit(NULL, other, BJ_RULE_TURN, cache, &stopping, &err) == BJ_ELOCKED);
    CHECK(done == 40 && access(other, F_OK) != 0);
    /* Tests that a damaged map causes an error that names the file. */
    char command[160];
    snprintf(command, sizeof command, "for f in %s/*/*.json; do echo x >\"$f\"; break; done",
             world);
    CHECK(system(command) == 0);
    CHECK(bj_rule_submit(NULL, other, BJ_RULE_LANES, world, NULL, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "log_map_archive_");
    CHECK(access(other, F_OK) != 0);
}

static void test_memory(void) {
    bj_world_report made;
    const bj_world_options options = {.seed = 5, .scenes = 2, .jobs = 1};
    char small[80];
    snprintf(small, sizeof small, "%s/small", folder);
    CHECK_OK(bj_world_to_folders(&made, small, &options, &err), err);
    const long live = bj_alloc_live();
    const bj_rule_options one = {.threads = 1};
    int failures = 0;
    for (long n = 0; n < 3000; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_rule_submit(NULL, other, BJ_RULE_LANES, small, &one, &err);
        bj_alloc_fail_after(-1);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM);
        failures++;
    }
    CHECK_MSG(failures > 10 && failures < 2999, "%d", failures);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(world, sizeof world, "%s/val", folder);
    snprintf(cache, sizeof cache, "%s/val.bjc", folder);
    snprintf(path, sizeof path, "%s/a.parquet", folder);
    snprintf(other, sizeof other, "%s/b.parquet", folder);
    CHECK_OK(bj_lane_rule_create(&lanes, &err), err);
    if (lanes) {
        test_velocity();
        test_turn();
        test_straight();
        test_fork();
        test_start();
        test_starts();
        test_ends();
        test_many();
    }
    bj_lane_rule_free(lanes);
    bj_lane_rule_free(NULL);
    test_submit();
    test_memory();
    test_refusals();
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return test_report("rules");
}
