/* test_law.c - compares drawn futures with the law, and tests the law itself.
 *
 * Futures are drawn for several scenes with several modes. Mode frequencies are tested by
 * chi-square, and means and covariances of each mode by their standard errors. The seeds are fixed,
 * so the test does not fail by chance.
 */
#include "world_case.h"

enum { DRAWS = 6000, SCENES = 6, NUMBERS = 2 * BJ_LAW_STEPS, LAST = BJ_WORLD_OBSERVED - 1 };

/* Returns the value that a chi-square variable with n degrees of freedom exceeds with probability
 * 1e-4 (Wilson-Hilferty approximation). */
static double chi_limit(int n) {
    const double a = 2.0 / (9.0 * n);
    return n * pow(1 - a + 3.719 * sqrt(a), 3);
}

/* Transforms a point of a mode's mean, or a factor, to the scene frame. */
static void turned(double out[2], const double v[2], int is_point) {
    double x = v[0], y = v[1];
    if (is_point) {
        bj_world_scene_local(&x, &y, scene);
        out[0] = x, out[1] = y;
        return;
    }
    x += scene->rows[0][LAST].x, y += scene->rows[0][LAST].y;
    bj_world_scene_local(&x, &y, scene);
    out[0] = x, out[1] = y;
}

static void check_mode(const double *futures, const int *modes, int mode) {
    static const int steps[] = {0, 9, 29, 44, 59};
    const bj_mode *m = &scene->law.modes[mode];
    long n = 0;
    for (int d = 0; d < DRAWS; d++) n += modes[d] == mode;
    if (n < 400) return;
    for (int a = 0; a < 5; a++)
        for (int k = 0; k < 2; k++) {
            double sum = 0, mean[2], row[BJ_LAW_FACTORS][2],
                   variance = BJ_LAW_JITTER * BJ_LAW_JITTER;
            turned(mean, m->mean[steps[a]], 1);
            for (int f = 0; f < BJ_LAW_FACTORS; f++) {
                turned(row[f], m->factor[f][steps[a]], 0);
                variance += row[f][k] * row[f][k];
            }
            const int at = 2 * steps[a] + k;
            for (int d = 0; d < DRAWS; d++)
                if (modes[d] == mode) sum += futures[d * NUMBERS + at];
            CHECK_NEAR(sum / (double)n, mean[k], 4.5 * sqrt(variance / (double)n) + 1e-9);
            /* Check the covariance with every other tested number. */
            for (int b = 0; b < 5; b++)
                for (int q = 0; q < 2; q++) {
                    double covariance = 0, wanted = 0, other_mean[2], scale = 0;
                    turned(other_mean, m->mean[steps[b]], 1);
                    for (int f = 0; f < BJ_LAW_FACTORS; f++) {
                        double v[2];
                        turned(v, m->factor[f][steps[b]], 0);
                        wanted += row[f][k] * v[q];
                        scale += v[q] * v[q];
                    }
                    scale = sqrt(variance * (scale + BJ_LAW_JITTER * BJ_LAW_JITTER));
                    if (a == b && k == q) wanted += BJ_LAW_JITTER * BJ_LAW_JITTER;
                    for (int d = 0; d < DRAWS; d++)
                        if (modes[d] == mode)
                            covariance += (futures[d * NUMBERS + at] - mean[k]) *
                                          (futures[d * NUMBERS + 2 * steps[b] + q] - other_mean[q]);
                    CHECK_NEAR(covariance / (double)n, wanted, 7.5 * scale / sqrt((double)n));
                }
        }
}

static void test_draws(void) {
    double *futures = calloc((size_t)DRAWS * NUMBERS, sizeof *futures);
    int *modes = calloc(DRAWS, sizeof *modes), tried = 0;
    bj_error err = {0};
    if (!futures || !modes) exit(1);
    for (int64_t i = 0; tried < SCENES; i += 7) {
        make(scene, 31, i, 0);
        if (scene->law.count < 3) continue;
        tried++;
        CHECK_OK(bj_world_redraw(futures, modes, version, 31, "train", i, 0, DRAWS, &err), err);
        double chi = 0;
        for (int m = 0; m < scene->law.count; m++) {
            double seen = 0, wanted = DRAWS * scene->law.modes[m].weight;
            for (int d = 0; d < DRAWS; d++) seen += modes[d] == m;
            chi += (seen - wanted) * (seen - wanted) / wanted;
            check_mode(futures, modes, m);
        }
        CHECK_MSG(chi < chi_limit(scene->law.count - 1), "scene %lld: chi-square %g of %d modes",
                  (long long)i, chi, scene->law.count);
        /* Draw 0 is the future of the scene. */
        CHECK(modes[0] == scene->mode);
        for (int t = 0; t < BJ_LAW_STEPS; t++) {
            double x = scene->rows[0][BJ_WORLD_OBSERVED + t].x;
            double y = scene->rows[0][BJ_WORLD_OBSERVED + t].y;
            bj_world_scene_local(&x, &y, scene);
            CHECK(x == futures[2 * t] && y == futures[2 * t + 1]);
        }
    }
    free(modes);
    free(futures);
}

/* Tests that the generator, run repeatedly with the same past, draws every mode with the
 * probability that the law states. */
static void test_reruns(void) {
    enum { RUNS = 400 };
    int64_t i = 0;
    do make(scene, 33, i += 5, 0);
    while (scene->law.count < 3 || scene->law.modes[0].weight > 0.7);
    double counts[BJ_LAW_MODES] = {0}, chi = 0;
    for (uint64_t draw = 0; draw < RUNS; draw++) {
        bj_world_scene_make(other, town, 33, "train", i, draw);
        counts[other->mode]++;
    }
    for (int m = 0; m < scene->law.count; m++) {
        const double wanted = RUNS * scene->law.modes[m].weight;
        chi += (counts[m] - wanted) * (counts[m] - wanted) / wanted;
    }
    CHECK_MSG(chi < chi_limit(scene->law.count - 1), "chi-square %g", chi);
}

/* ---------------------------------------------------------------------------- the law's shape */

static void test_shape(void) {
    enum { N = 640 };
    int counts[BJ_LAW_MODES + 1] = {0}, intents[BJ_INTENTS] = {0}, certain = 0;
    for (int64_t i = 0; i < N; i++) {
        if (i % BJ_WORLD_TOWN_SCENES == 0) make(scene, 41, i, 0);
        else bj_world_scene_observe(scene, town, 41, "train", i);
        const bj_law_state *law = &scene->law;
        double sum = 0;
        CHECK(law->count >= 1 && law->count <= BJ_LAW_MODES);
        counts[law->count]++;
        certain += law->modes[0].weight > 0.95;
        for (int m = 0; m < law->count; m++) {
            const bj_mode *mode = &law->modes[m];
            sum += mode->weight;
            CHECK(mode->weight > 0 && (m == 0 || mode->weight <= mode[-1].weight));
            intents[mode->intent]++;
            /* The first future step must continue from the last observed step. */
            const bj_row *now = &scene->rows[0][LAST];
            CHECK(hypot(mode->mean[0][0] - now->x, mode->mean[0][1] - now->y) <
                  0.1 * law->observed.v + 0.12);
            for (int t = 0; t < BJ_LAW_STEPS; t++)
                for (int k = 0; k < 2; k++)
                    CHECK(isfinite(mode->mean[t][k]) && isfinite(mode->factor[0][t][k]));
            for (int k = 0; k < m; k++) { /* modes must be clearly distinct */
                double apart = 0;
                for (int t = 0; t < BJ_LAW_STEPS; t++)
                    apart += pow(mode->mean[t][0] - law->modes[k].mean[t][0], 2) +
                             pow(mode->mean[t][1] - law->modes[k].mean[t][1], 2);
                CHECK(sqrt(apart / BJ_LAW_STEPS) >= 0.5);
            }
        }
        CHECK_NEAR(sum, 1, 1e-12);
    }
    CHECK_MSG(certain > N / 10 && certain < N / 2, "%d of %d scenes are near-certain", certain, N);
    for (int k = 1; k <= 5; k++) CHECK_MSG(counts[k] > 0, "no scene with %d modes", k);
    for (int k = 0; k < BJ_INTENTS; k++)
        CHECK_MSG(intents[k] > 0, "no mode '%s'", bj_intent_name((bj_intent)k));
}

static double share(const bj_law_state *law, bj_intent intent) {
    double sum = 0;
    for (int m = 0; m < law->count; m++)
        if (law->modes[m].intent == intent) sum += law->modes[m].weight;
    return sum;
}

/* Returns the probability of stopping or yielding at the line. */
static double waiting(const bj_law_state *law) {
    return share(law, BJ_INTENT_STOP) + share(law, BJ_INTENT_YIELD);
}

/* Tests that weights depend on the observation: braking favors stopping or turning, and drifting
 * favors a lane change. */
static void test_evidence(void) {
    int stops = 0, turns = 0, changes = 0, walks = 0;
    for (int64_t i = 0; i < 320; i++) {
        if (i % BJ_WORLD_TOWN_SCENES == 0) make(scene, 43, i, 0);
        else bj_world_scene_observe(scene, town, 43, "train", i);
        bj_law_state *law = &scene->law;
        const bj_observed kept = law->observed;
        bj_law_weigh(law, &scene->traffic);
        const double stop = waiting(law), left = share(law, BJ_INTENT_LEFT),
                     straight = share(law, BJ_INTENT_STRAIGHT),
                     change = share(law, BJ_INTENT_CHANGE_LEFT);
        if (kept.v > 3 && stop > 0.05 && stop < 0.6) {
            law->observed.a = kept.a - 1;
            bj_law_weigh(law, &scene->traffic);
            CHECK(waiting(law) > stop);
            stops++;
            law->observed = kept;
            law->observed.walked = kept.line < 1e8 ? kept.line : 1e9;
            bj_law_weigh(law, &scene->traffic);
            if (kept.walked > 1e8 && kept.line < 1e8) {
                CHECK(waiting(law) > stop);
                walks++;
            }
            law->observed = kept;
        }
        if (left > 0.05 && straight > 0.05 && kept.line < 30) {
            const double odds = left / straight;
            law->observed.offset += 0.4;
            bj_law_weigh(law, &scene->traffic);
            const double ahead = share(law, BJ_INTENT_STRAIGHT);
            if (ahead > 0) {
                CHECK(share(law, BJ_INTENT_LEFT) / ahead > odds);
                turns++;
            }
            law->observed = kept;
        }
        if (kept.v > 4 && kept.line > 1e8 && town->lanes[kept.lane].change_left >= 0) {
            law->observed.drift = 0.6;
            bj_law_weigh(law, &scene->traffic);
            CHECK(share(law, BJ_INTENT_CHANGE_LEFT) > change);
            changes++;
            law->observed = kept;
        }
    }
    CHECK_MSG(stops > 5 && turns > 5 && changes > 0 && walks > 3, "%d %d %d %d cases", stops, turns,
              changes, walks);
}

/* Tests speed and acceleration of rows without noise. */
static void test_motion(void) {
    bj_row rows[BJ_WORLD_OBSERVED] = {{0}};
    double s, c, v, a;
    bj_world_sincos(&s, &c, 0.7);
    for (int t = 0; t < BJ_WORLD_OBSERVED; t++) {
        const double time = 0.1 * (t - LAST), way = 9 * time - 0.5 * 1.5 * time * time;
        rows[t] = (bj_row){way * c, way * s, 0, 0, 0.7};
    }
    bj_law_motion(&v, &a, rows);
    CHECK_NEAR(v, 9, 1e-9);
    CHECK_NEAR(a, -1.5, 1e-9);
}

int main(void) {
    case_open();
    test_motion();
    test_draws();
    test_reruns();
    test_shape();
    test_evidence();
    case_close();
    return test_report("world.law");
}
