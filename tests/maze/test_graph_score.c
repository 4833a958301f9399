/* test_graph_score.c - tests graph metrics on small cases with known results, and frame coverage.
 *
 * tests/verify/test_maze_parity.c compares the metrics with the NumPy reference.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "test.h"

#include <branchjepa/branchjepa.h>

/* Four cells on the axes, with the true edges 0-1, 1-2, 2-3 and 3-0. */
static const bj_real axes[16] = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
static const uint8_t ring[16] = {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0};
static const int32_t four[4] = {0, 1, 2, 3};

static void test_by_hand(void) {
    const bj_real candidates[4 * 2 * 4] = {
        0, 5, 0, 0, 1,  1, 1, 1, /* one candidate hits cell 1; the other has a cosine of 0.5 with
                                    all cells, which is not enough */
        0, 0, 1, 1, 0,  1, 0, 0, /* 1 -> 2, 3 and itself */
        0, 0, 0, 0, -1, 0, 0, 0, /* 2: nothing */
        0, 0, 9, 0, 0,  0, 9, 0 /* 3 -> 2, false */};
    const bj_edge plan[4] = {{0, 2}, {0, 3}, {3, 2}, {2, 3}},
                  verified[3] = {{0, 2}, {0, 3}, {3, 0}};
    const bj_edge held[2] = {{0, 1}, {2, 3}};
    uint8_t predicted[16], plan_hit[4], verified_hit[3];
    double precision[4], precision_self[4], cov[4];
    bj_graph_case in = {.cells = 4,
                        .sources = 4,
                        .K = 2,
                        .D = 4,
                        .latents = axes,
                        .candidates = candidates,
                        .source_cells = four,
                        .graph = ring,
                        .held = held,
                        .plan = plan,
                        .verified = verified,
                        .held_count = 2,
                        .plan_count = 4,
                        .verified_count = 3};
    const bj_graph_details d = {predicted, plan_hit, verified_hit, precision, precision_self, cov};
    bj_graph_scores s;
    bj_error err = {0};
    CHECK_OK(bj_graph_score(&s, &d, &in, &err), err);
    static const uint8_t want[16] = {0, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0};
    CHECK(!memcmp(predicted, want, 16));
    CHECK(s.predicted_edges == 4 && s.sources_with_edges == 3);
    CHECK_NEAR(s.plan_all, 0.75, 1e-15); /* paths 0-2 and 0-3 use the false edges 1-3 and 3-2; there
                                            is no path 2-3 */
    CHECK(plan_hit[0] && plan_hit[1] && plan_hit[2] && !plan_hit[3]);
    CHECK_NEAR(s.verified_route, 1.0 / 3, 1e-15);
    CHECK(verified_hit[0] && !verified_hit[1] && !verified_hit[2]);
    CHECK_NEAR(s.macro_precision, (1 + 0.5 + 0) / 3, 1e-15);
    CHECK(precision[0] == 1 && precision[1] == 0.5 && isnan(precision[2]) && precision[3] == 0);
    CHECK_NEAR(s.macro_precision_self, (1 + 1.0 / 3 + 0) / 3, 1e-15);
    CHECK_NEAR(precision_self[1], 1.0 / 3, 1e-15);
    CHECK(s.held_recall == 0.5);
    CHECK(isnan(s.cov_three) && isnan(s.heads_three)); /* nowhere are there three */
    CHECK(s.cov_r == 0.5 && cov[0] == 1 && cov[1] == 1 && cov[2] == 0 && cov[3] == 0);

    /* the successors differ from the graph and include the cell itself; details are optional */
    const uint8_t seen[16] = {0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0};
    in.successors = seen;
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK_NEAR(s.cov_r, (0.5 + 1 + 1) / 3, 1e-15);
    CHECK(s.macro_precision == 0.5);

    /* a true graph with an edge from u to u, which still does not count as real */
    uint8_t loops[16];
    memcpy(loops, ring, sizeof loops);
    loops[5] = 1;
    in.successors = NULL;
    in.graph = loops;
    CHECK_OK(bj_graph_score(&s, &d, &in, &err), err);
    CHECK_NEAR(precision_self[1], 1.0 / 3, 1e-15);
    in.graph = ring;

    /* two sources in one cell share the graph but not the coverage */
    const int32_t shared[4] = {0, 0, 2, 3};
    in.source_cells = shared;
    CHECK_OK(bj_graph_score(&s, &d, &in, &err), err);
    CHECK(predicted[1] && predicted[2] && predicted[3] && s.predicted_edges == 4);
    CHECK(cov[0] == 1 && cov[1] == 1); /* both reach 1 */
    CHECK_NEAR(precision[0], 1.0 / 3, 1e-15);

    /* nothing at all */
    in.sources = 0;
    in.held_count = in.plan_count = in.verified_count = 0;
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK(s.predicted_edges == 0 && isnan(s.plan_all) && isnan(s.verified_route));
    CHECK(isnan(s.macro_precision) && isnan(s.held_recall) && isnan(s.cov_r));
}

/* Tests that one candidate covers at most one of m separated successors, and m candidates cover
 * all. */
static void test_bound(void) {
    const uint8_t graph[16] = {0, 1, 1, 1};
    const bj_real one[4] = {0, 1, 1, 1}, three[12] = {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    bj_graph_case in = {.cells = 4,
                        .sources = 1,
                        .K = 1,
                        .D = 4,
                        .latents = axes,
                        .candidates = one,
                        .source_cells = four,
                        .graph = graph};
    bj_graph_scores s;
    bj_error err = {0};
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK(s.cov_r == 1); /* 0.577 with each: not separated */
    const bj_real mean[4] = {1, 1, 1, 1};
    in.candidates = mean;
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK(s.cov_r == 0);
    in.candidates = three;
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK_NEAR(s.cov_r, 1.0 / 3, 1e-15);
    CHECK(s.cov_three == s.cov_r && s.heads_three == 1);
    in.K = 3;
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK(s.cov_r == 1 && s.macro_precision == 1);
    CHECK(s.cov_three == 1 && s.heads_three == 3);
    /* two heads hit the same successor, and one hits the source, which is not a successor; a second
     * source with one successor counts only for cov_r */
    const bj_real twice[24] = {0, 1, 0, 0, 0, 3, 1, 0, 1, 0, 0, 0,
                               1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0};
    const uint8_t more[16] = {0, 1, 1, 1, 1};
    in.candidates = twice;
    in.graph = more;
    in.sources = 2;
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    CHECK_NEAR(s.cov_three, 1.0 / 3, 1e-15);
    CHECK(s.heads_three == 2);
    CHECK_NEAR(s.cov_r, (1.0 / 3 + 1) / 2, 1e-15);
}

static void test_bad_cases(void) {
    bj_real candidates[4] = {1, 0, 0, 0}, latents[16];
    const bj_edge outside[1] = {{0, 4}};
    const int32_t nowhere[1] = {4};
    memcpy(latents, axes, sizeof latents);
    const bj_graph_case good = {.cells = 4,
                                .sources = 1,
                                .K = 1,
                                .D = 4,
                                .latents = latents,
                                .candidates = candidates,
                                .source_cells = four,
                                .graph = ring};
    bj_graph_case in = good;
    bj_graph_scores s;
    bj_error err = {0};
    CHECK_OK(bj_graph_score(&s, NULL, &in, &err), err);
    in.source_cells = nowhere;
    CHECK(bj_graph_score(&s, NULL, &in, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "source 0 is in cell 4");
    in = good, in.plan = outside, in.plan_count = 1;
    CHECK(bj_graph_score(&s, NULL, &in, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "planning queries: pair 0 is (0, 4)");
    in = good, in.held = outside, in.held_count = 1;
    CHECK(bj_graph_score(&s, NULL, &in, &err) == BJ_EARG);
    in = good, in.verified_count = 1;
    CHECK(bj_graph_score(&s, NULL, &in, &err) == BJ_EARG);
    in = good, in.cells = 0;
    CHECK(bj_graph_score(&s, NULL, &in, &err) == BJ_EARG);
    in = good, in.K = 0;
    CHECK(bj_graph_score(&s, NULL, &in, &err) == BJ_EARG);
    candidates[2] = NAN;
    CHECK(bj_graph_score(&s, NULL, &good, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "a candidate of source 0");
    candidates[2] = 0, latents[15] = INFINITY;
    CHECK(bj_graph_score(&s, NULL, &good, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "the latent of cell 3");
    latents[15] = 2;
    for (long n = 0; n < 20; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_graph_score(&s, NULL, &good, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        if (status == BJ_OK) break;
        CHECK(n < 19);
    }
}

static void test_frames(void) {
    bj_frame_coverage *c = NULL;
    bj_error err = {0};
    double per[4];
    const bj_real *x = axes, *y = axes + 4, *z = axes + 8;
    const bj_real tilted[4] = {0, 1, 2, 0}, back[4] = {0, 1, -2, 0},
                  both[8] = {1, 0, 0, 0, 0, 1, 0, 0};
    CHECK_OK(bj_frame_coverage_create(&c, 4, 4, &err), err);
    if (!c) return;
    /* cell 0 is followed by 1, 0 and 1, and cell 1 by 0; the latent of cell 1 is the mean of the
     * two tilted latents */
    CHECK_OK(bj_frame_coverage_target(c, 0, 1, x, &err), err);
    CHECK_OK(bj_frame_coverage_target(c, 0, 0, x, &err), err);
    CHECK_OK(bj_frame_coverage_target(c, 0, 1, x, &err), err);
    CHECK_OK(bj_frame_coverage_target(c, 1, 0, tilted, &err), err);
    CHECK_OK(bj_frame_coverage_target(c, 1, -1, back, &err), err);
    CHECK_OK(bj_frame_coverage_target(c, 2, -1, z, &err), err);
    CHECK(bj_frame_coverage_target(c, 4, 0, x, &err) == BJ_EARG);
    CHECK(bj_frame_coverage_target(c, 0, -2, x, &err) == BJ_EARG);
    CHECK(isnan(bj_frame_coverage_result(NULL, c)));
    CHECK(!bj_frame_coverage_latent(c, 0)); /* means are taken with the first candidates */
    CHECK_OK(bj_frame_coverage_predict(c, 0, both, 2, &err), err); /* 1 */
    CHECK_OK(bj_frame_coverage_predict(c, 0, y, 1, &err), err);    /* 1/2 */
    CHECK_OK(bj_frame_coverage_predict(c, 0, z, 1, &err), err);    /* 0 */
    CHECK_OK(bj_frame_coverage_predict(c, 1, x, 1, &err), err);    /* 1 */
    CHECK_OK(bj_frame_coverage_predict(c, 2, z, 1, &err), err);    /* nothing follows: no number */
    CHECK_NEAR(bj_frame_coverage_result(per, c), (0.5 + 1) / 2, 1e-15);
    const double *mean = bj_frame_coverage_latent(c, 1); /* of two tilted ones: the second axis */
    CHECK(mean && mean[0] == 0 && mean[1] == 1 && mean[2] == 0);
    CHECK(bj_frame_coverage_latent(c, 2) && !bj_frame_coverage_latent(c, 3));
    CHECK(!bj_frame_coverage_latent(c, 4) && !bj_frame_coverage_latent(c, -1));
    CHECK(per[0] == 0.5 && per[1] == 1 && isnan(per[2]) && isnan(per[3]));
    CHECK(bj_frame_coverage_target(c, 0, 1, x, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "before the first candidates");
    const bj_real bad[4] = {0, NAN, 0, 0};
    CHECK(bj_frame_coverage_predict(c, 0, bad, 1, &err) == BJ_ENONFINITE);
    CHECK(bj_frame_coverage_predict(c, 0, x, 0, &err) == BJ_EARG);
    CHECK(bj_frame_coverage_predict(c, -1, x, 1, &err) == BJ_EARG);
    bj_frame_coverage_free(c);
    CHECK_OK(bj_frame_coverage_create(&c, 1, 4, &err), err);
    CHECK(bj_frame_coverage_target(c, 0, 0, bad, &err) == BJ_ENONFINITE);
    bj_frame_coverage_free(c);
    CHECK(bj_frame_coverage_create(&c, 0, 4, &err) == BJ_EARG && !c);
}

int main(void) {
    const long live = bj_alloc_live();
    test_by_hand();
    test_bound();
    test_bad_cases();
    test_frames();
    CHECK(bj_alloc_live() == live);
    return test_report("graph score");
}
