/* test_metrics.c - compares the metrics accumulator with values calculated by hand and with a
 * simple second implementation. Covers several calls, ties, edge cases and invalid arguments. */
#include <stdlib.h>

#include "core/alloc.h"
#include "support/test.h"

enum { D = 5, F = 4, PAD = 2, MOST_B = 60, MOST_K = 64 };

/* Rows are PAD entries longer than necessary. The padding contains NaN, which would be rejected if
 * it were read. */
typedef struct batch {
    int B, K, latents;
    bj_real atoms[MOST_B * MOST_K * (D + PAD)], target[MOST_B * (D + PAD)];
    bj_real decoded[MOST_B * MOST_K * (2 * F + PAD)];
    bj_real weights[MOST_B * MOST_K], future[MOST_B * 2 * F];
} batch;

static bj_outputs outputs_of(const batch *x, int b0, int b1) {
    return (bj_outputs){.B = b1 - b0,
                        .K = x->K,
                        .latents = x->latents,
                        .D = D,
                        .F = F,
                        .atoms = x->atoms + b0 * x->latents * (D + PAD),
                        .weights = x->weights + b0 * x->K,
                        .decoded = x->decoded + b0 * x->K * (2 * F + PAD),
                        .target = x->target + b0 * (D + PAD),
                        .atom_stride = D + PAD,
                        .decoded_stride = 2 * F + PAD};
}

static void fill_rows(bj_real *x, int rows, int n, bj_rng *rng, double scale) {
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n + PAD; i++)
            x[r * (n + PAD) + i] = (bj_real)(i < n ? scale * bj_rng_normal(rng) : NAN);
}

static batch *random_batch(int B, int K, int latents, uint64_t seed) {
    batch *x = calloc(1, sizeof *x);
    bj_rng rng = bj_rng_seed(seed);
    if (!x) exit(1);
    x->B = B;
    x->K = K;
    x->latents = latents;
    fill_rows(x->atoms, B * latents, D, &rng, 0.05); /* some are within .10 of each other */
    fill_rows(x->target, B, D, &rng, 0.3);
    fill_rows(x->decoded, B * K, 2 * F, &rng, 3);
    for (int i = 0; i < B * 2 * F; i++) x->future[i] = (bj_real)(3 * bj_rng_normal(&rng));
    for (int b = 0; b < B; b++) {
        double sum = 0, w[MOST_K];
        for (int k = 0; k < K; k++)
            sum += w[k] = k && bj_rng_uniform(&rng) < 0.1 ? 0 : exp(2 * bj_rng_normal(&rng));
        for (int k = 0; k < K; k++) x->weights[b * K + k] = (bj_real)(w[k] / sum);
    }
    return x;
}

static bj_metrics *create(const batch *x) {
    bj_error err = {0};
    bj_metrics *m = NULL;
    CHECK_OK(bj_metrics_create(&m, x->K, x->latents, D, F, &err), err);
    if (!m) exit(1);
    return m;
}

static void add(bj_metrics *m, const batch *x, int b0, int b1) {
    bj_error err = {0};
    const bj_outputs o = outputs_of(x, b0, b1);
    CHECK_OK(bj_metrics_add(m, &o, x->future + b0 * 2 * F, &err), err);
}

/* ------------------------------------------------------------------------ second implementation */

static double rms(const bj_real *a, const bj_real *b) {
    double sum = 0;
    for (int i = 0; i < 2 * F; i++) sum += pow((double)a[i] - b[i], 2);
    return sqrt(sum / F);
}

static double chord(const bj_real *a, const bj_real *b) {
    double sum = 0;
    for (int i = 0; i < D; i++) sum += pow((double)a[i] - b[i], 2);
    return sqrt(sum);
}

static double at(const bj_real *a, const bj_real *b, int t) {
    return hypot((double)a[2 * t] - b[2 * t], (double)a[2 * t + 1] - b[2 * t + 1]);
}

static int maneuver(const bj_real *y) {
    const double x = y[2 * F - 2], s = y[2 * F - 1], degrees = atan2(s, x) * 57.29577951308232;
    return hypot(x, s) < 2 ? 0 : degrees >= 30 ? 2 : degrees <= -30 ? 3 : 1;
}

static double entropy_number(const double *p, int n) {
    double h = 0;
    for (int i = 0; i < n; i++) h -= p[i] > 0 ? p[i] * log(p[i]) : 0;
    return exp(h);
}

/* Returns exp H of the cluster masses. Finds the clusters by propagating the lowest label until
 * nothing changes. */
static double cluster_number(const bj_real *const *y, const double *p, int K) {
    int label[MOST_K];
    double mass[MOST_K] = {0};
    for (int k = 0; k < K; k++) label[k] = k;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int k = 0; k < K; k++)
            for (int l = 0; l < K; l++)
                if (at(y[k], y[l], F - 1) <= 1 && label[l] < label[k]) {
                    label[k] = label[l];
                    changed = 1;
                }
    }
    for (int k = 0; k < K; k++) mass[label[k]] += p[k];
    return entropy_number(mass, K);
}

static bj_metric_values plain(const batch *x) {
    bj_metric_values v = {.scenes = x->B};
    const int B = x->B, K = x->K;
    double bins[10][3] = {{0}}, heads[MOST_K] = {0};
    for (int b = 0; b < B; b++) {
        const bj_real *y[MOST_K], *t = x->future + b * 2 * F, *z = x->target + b * (D + PAD);
        const bj_real *u = x->atoms + b * x->latents * (D + PAD);
        double p[MOST_K], event[4] = {0}, ade[MOST_K] = {0}, collide = 0, latent = 0, best = 1e30;
        double best_end = 1e30;
        int top = 0, likeliest = 0;
        for (int k = 0; k < K; k++) {
            y[k] = x->decoded + (b * K + k) * (2 * F + PAD);
            p[k] = x->weights[b * K + k];
            heads[k] += p[k] / B;
            event[maneuver(y[k])] += p[k];
            for (int i = 0; i < F; i++) ade[k] += at(y[k], t, i) / F;
            if (p[k] > p[top]) top = k;
            best = fmin(best, ade[k]);
            best_end = fmin(best_end, at(y[k], t, F - 1));
        }
        for (int k = 0; k < K; k++) {
            v.traj_obs += p[k] * rms(y[k], t) / B;
            v.end_es += p[k] * at(y[k], t, F - 1) / B;
            v.exp_fde += p[k] * at(y[k], t, F - 1) / B;
            v.exp_ade += p[k] * ade[k] / B;
            if (x->latents == K) latent += p[k] * chord(u + k * (D + PAD), z);
            for (int l = 0; l < K; l++) {
                v.traj_disp += 0.5 * p[k] * p[l] * rms(y[k], y[l]) / B;
                v.end_es -= 0.5 * p[k] * p[l] * at(y[k], y[l], F - 1) / B;
                if (x->latents != K) continue;
                const double d = chord(u + k * (D + PAD), u + l * (D + PAD));
                latent -= 0.5 * p[k] * p[l] * d;
                collide += d <= 0.10 ? p[k] * p[l] : 0;
            }
        }
        v.latent_es += (x->latents == K ? latent : chord(u, z)) / B;
        v.neff_collision += 1 / collide / B;
        v.top1_ade += ade[top] / B;
        v.top1_fde += at(y[top], t, F - 1) / B;
        v.top1_mr += (at(y[top], t, F - 1) > 2) / (double)B;
        int competing[MOST_K], six = K < 6 ? K : 6, a = top, f = top;
        for (int k = 0; k < K; k++) { /* compute the rank of k by counting the branches before it */
            int before = 0;
            for (int l = 0; l < K; l++) before += p[l] > p[k] || (p[l] == p[k] && l < k);
            competing[before] = k;
        }
        for (int i = 0; i < six; i++) {
            const int k = competing[i];
            if (ade[k] < ade[a]) a = k;
            if (at(y[k], t, F - 1) < at(y[f], t, F - 1)) f = k;
        }
        v.min_ade_6 += ade[a] / B;
        v.min_fde_6 += at(y[f], t, F - 1) / B;
        v.mr_6 += (at(y[f], t, F - 1) > 2) / (double)B;
        v.brier_min_fde_6 += (at(y[f], t, F - 1) + pow(1 - p[f], 2)) / B;
        v.brier_min_fde_1 += (at(y[top], t, F - 1) + pow(1 - p[top], 2)) / B;
        v.min_ade += best / B;
        v.min_fde += best_end / B;
        v.min_mr += (best_end > 2) / (double)B;
        for (int e = 0; e < 4; e++) {
            v.brier += pow(event[e] - (e == maneuver(t)), 2) / B;
            if (event[e] > event[likeliest]) likeliest = e;
        }
        double *bin = bins[event[likeliest] >= 1 ? 9 : (int)(10 * event[likeliest])];
        bin[0]++;
        bin[1] += event[likeliest];
        bin[2] += likeliest == maneuver(t);
        v.exp_entropy += entropy_number(p, K) / B;
        v.dedup_support += cluster_number(y, p, K) / B;
    }
    v.traj_es = v.traj_obs - v.traj_disp;
    for (int i = 0; i < 10; i++)
        if (bins[i][0] > 0)
            v.ece += bins[i][0] / B * fabs(bins[i][2] / bins[i][0] - bins[i][1] / bins[i][0]);
    for (int k = 0; k < K; k++) v.active_heads += heads[k] >= 0.01;
    if (x->latents != K) v.neff_collision = NAN;
    return v;
}

static void check_equal(bj_metric_values a, bj_metric_values b, double tol, const char *name) {
    enum { FIELDS = sizeof a / sizeof(double) };
    double fa[FIELDS], fb[FIELDS];
    memcpy(fa, &a, sizeof fa);
    memcpy(fb, &b, sizeof fb);
    for (int i = 0; i < FIELDS; i++)
        CHECK_MSG((isnan(fa[i]) && isnan(fb[i])) || fabs(fa[i] - fb[i]) <= tol * (1 + fabs(fb[i])),
                  "%s: field %d is %.15g, expected %.15g", name, i, fa[i], fb[i]);
}

/* ---------------------------------------------------------------------------------------- tests */

static void test_random(void) {
    const struct {
        int B, K, latents;
    } sizes[] = {{40, 6, 6}, {40, 6, 1}, {25, 1, 1}, {3, 64, 64}, {1, 2, 2}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        batch *x = random_batch(sizes[i].B, sizes[i].K, sizes[i].latents, 10 + i);
        bj_metrics *m = create(x);
        const bj_metric_values expected = plain(x);
        add(m, x, 0, x->B);
        check_equal(bj_metrics_values(m), expected, 1e-12, "all at once");
        bj_metrics_reset(m);
        CHECK(bj_metrics_values(m).scenes == 0 && isnan(bj_metrics_values(m).traj_es));
        for (int b = 0; b < x->B; b++) add(m, x, b, b + 1);
        check_equal(bj_metrics_values(m), expected, 1e-12, "one by one");
        bj_metrics_reset(m);
        add(m, x, 0, x->B / 3);
        add(m, x, x->B / 3, x->B / 3); /* an empty batch */
        add(m, x, x->B / 3, x->B);
        check_equal(bj_metrics_values(m), expected, 1e-12, "in thirds");
        bj_metrics_free(m);
        free(x);
    }
}

/* Fills y with a straight line to (end_x, end_y) in F equal steps. */
static void line_to(bj_real *y, double end_x, double end_y) {
    for (int t = 0; t < F; t++) {
        y[2 * t] = (bj_real)(end_x * (t + 1) / F);
        y[2 * t + 1] = (bj_real)(end_y * (t + 1) / F);
    }
}

static bj_real *decoded(batch *x, int b, int k) {
    return x->decoded + (b * x->K + k) * (2 * F + PAD);
}

/* Tests a true future that ends 10 m ahead, with two branches of weight 1/2. One ends 3 m too far,
 * the other 4 m too short. */
static void test_by_hand(void) {
    batch *x = random_batch(1, 2, 2, 1);
    bj_metrics *m = create(x);
    line_to(x->future, 10, 0);
    line_to(decoded(x, 0, 0), 13, 0);
    line_to(decoded(x, 0, 1), 6, 0);
    x->weights[0] = x->weights[1] = (bj_real)0.5;
    add(m, x, 0, 1);
    const bj_metric_values v = bj_metrics_values(m);
    const double rms_ramp = sqrt((1 + 4 + 9 + 16) / 16.0 / 4), mean_ramp = 0.625;
    CHECK_NEAR(v.traj_obs, rms_ramp * 3.5, 1e-6);
    CHECK_NEAR(v.traj_disp, rms_ramp * 7 / 4, 1e-6);
    CHECK_NEAR(v.end_es, 3.5 - 7.0 / 4, 1e-6);
    CHECK_NEAR(v.exp_ade, mean_ramp * 3.5, 1e-6);
    CHECK_NEAR(v.exp_fde, 3.5, 1e-6);
    CHECK_NEAR(v.top1_fde, 3, 1e-6); /* in a tie, the first branch is used */
    CHECK_NEAR(v.top1_ade, mean_ramp * 3, 1e-6);
    CHECK_NEAR(v.min_fde, 3, 1e-6);
    CHECK(v.top1_mr == 1 && v.min_mr == 1);
    CHECK(v.brier == 0 && v.ece == 0); /* both branches and the true future go straight */
    CHECK_NEAR(v.exp_entropy, 2, 1e-9);
    CHECK_NEAR(v.dedup_support, 2, 1e-9);
    CHECK(v.active_heads == 2 && v.scenes == 1);
    bj_metrics_free(m);
    free(x);
}

/* Tests that a chain of endpoints .9 m apart is one cluster, although its
 * ends are 2.7 m apart, for any order of the endpoints. */
static void test_clusters(void) {
    const double ends[][5] = {
        {0, 0.9, 1.8, 2.7, 50}, {1.8, 0, 50, 2.7, 0.9}, {2.7, 0, 1.8, 0.9, 50}, {0, 1, 2, 3, 50}};
    for (int i = 0; i < 4; i++) { /* in the last case, exactly 1 m counts as connected */
        batch *x = random_batch(1, 5, 5, 2);
        bj_metrics *m = create(x);
        for (int k = 0; k < 5; k++) {
            line_to(decoded(x, 0, k), 20 + ends[i][k], 0);
            x->weights[k] = (bj_real)(ends[i][k] > 10 ? 0.5 : 0.125);
        }
        add(m, x, 0, 1);
        CHECK_NEAR(bj_metrics_values(m).dedup_support, 2, 1e-12);
        bj_metrics_free(m);
        free(x);
    }
}

/* Tests the limits between the maneuvers. The Brier score is 0 for a hit and 2 for a miss. */
static void test_maneuvers(void) {
    const double x30 = 10 * cos(0.52359877559829887), y30 = 10 * sin(0.52359877559829887);
    const struct {
        double x, y;
        int maneuver; /* 0 stop 1 straight 2 left 3 right */
    } ends[] = {{1.9, 0, 0},
                {0, -1.9, 0},
                {2, 0, 1},
                {10, 0, 1},
                {0, 10, 2},
                {0, -10, 3},
                {-10, 0.001, 2},
                {-10, -0.001, 3},
                {x30, y30 + .001, 2},
                {x30, y30 - .001, 1},
                {x30, -y30 - .001, 3},
                {x30, -y30 + .001, 1}};
    const double truth[4][2] = {{0, 0}, {10, 0}, {0, 10}, {0, -10}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        for (int t = 0; t < 4; t++) {
            batch *x = random_batch(1, 1, 1, 3);
            bj_metrics *m = create(x);
            line_to(x->future, truth[t][0], truth[t][1]);
            line_to(decoded(x, 0, 0), ends[i].x, ends[i].y);
            add(m, x, 0, 1);
            CHECK_MSG(bj_metrics_values(m).brier == (t == ends[i].maneuver ? 0 : 2),
                      "end %d against maneuver %d: Brier %g", (int)i, t,
                      bj_metrics_values(m).brier);
            bj_metrics_free(m);
            free(x);
        }
}

/* Tests two scenes with confidence .75 in one bin, of which one is a hit: |1 - 1.5| / 2. Ties
 * between maneuvers are resolved in the order stop, straight, left, right. */
static void test_calibration(void) {
    batch *x = random_batch(2, 2, 2, 4);
    bj_metrics *m = create(x);
    for (int b = 0; b < 2; b++) {
        line_to(x->future + b * 2 * F, b ? 10 : 0, b ? 0 : 10); /* left, then straight */
        line_to(decoded(x, b, 0), 10, 0);
        line_to(decoded(x, b, 1), 0, 10);
        x->weights[2 * b] = (bj_real)0.75;
        x->weights[2 * b + 1] = (bj_real)0.25;
    }
    add(m, x, 0, 2);
    CHECK_NEAR(bj_metrics_values(m).ece, 0.25, 1e-12);
    CHECK_NEAR(bj_metrics_values(m).brier, (2 * 0.75 * 0.75 + 2 * 0.25 * 0.25) / 2, 1e-12);
    bj_metrics_reset(m);
    for (int i = 0; i < 4; i++) x->weights[i] = (bj_real)0.5;
    add(m, x, 1, 2); /* straight and left are equally likely, and the true future is straight, so
                        this is a hit at .5 */
    CHECK_NEAR(bj_metrics_values(m).ece, 0.5, 1e-12);
    bj_metrics_reset(m);
    add(m, x, 0, 1); /* the true future is left, so this is a miss at .5 */
    CHECK_NEAR(bj_metrics_values(m).ece, 0.5, 1e-12);
    add(m, x, 1, 2); /* the two scenes together are calibrated */
    CHECK_NEAR(bj_metrics_values(m).ece, 0, 1e-12);
    bj_metrics_free(m);
    free(x);

    /* All four maneuvers are equally likely, so the forecast is stop. It is a hit or a miss at
     * .25. */
    const double ends[4][2] = {{0, 10}, {0, -10}, {0, 0}, {10, 0}};
    x = random_batch(1, 4, 4, 4);
    m = create(x);
    for (int k = 0; k < 4; k++) {
        line_to(decoded(x, 0, k), ends[k][0], ends[k][1]);
        x->weights[k] = (bj_real)0.25;
    }
    for (int truth = 0; truth < 4; truth++) {
        line_to(x->future, ends[truth][0], ends[truth][1]);
        bj_metrics_reset(m);
        add(m, x, 0, 1);
        CHECK_NEAR(bj_metrics_values(m).ece, truth == 2 ? 0.75 : 0.25, 1e-12);
    }
    bj_metrics_free(m);
    free(x);

    /* Confidence 1 is in the last bin together with .9375. One is a miss and one is a hit, so the
     * error is |1 - 1.9375| / 2. */
    x = random_batch(2, 2, 2, 4);
    m = create(x);
    for (int b = 0; b < 2; b++) {
        line_to(x->future + b * 2 * F, b ? 10 : 0, b ? 0 : 10);
        line_to(decoded(x, b, 0), 10, 0);
        line_to(decoded(x, b, 1), 0, 10);
        x->weights[2 * b] = (bj_real)(b ? 0.9375 : 1);
        x->weights[2 * b + 1] = (bj_real)(b ? 0.0625 : 0);
    }
    add(m, x, 0, 2);
    CHECK_NEAR(bj_metrics_values(m).ece, 0.46875, 1e-12);
    bj_metrics_free(m);
    free(x);
}

/* Tests that a branch is active if it has at least one percent of the mass of all scenes. */
static void test_active_heads(void) {
    batch *x = random_batch(2, 3, 3, 5);
    bj_metrics *m = create(x);
    const double w[2][3] = {{0.96875, 0.03125, 0}, {0.9921875, 0, 0.0078125}};
    for (int i = 0; i < 6; i++) x->weights[i] = (bj_real)w[i / 3][i % 3];
    add(m, x, 0, 1);
    CHECK(bj_metrics_values(m).active_heads == 2);
    add(m, x, 1, 2); /* .0156 and .0039 */
    CHECK(bj_metrics_values(m).active_heads == 2);
    bj_metrics_free(m);
    free(x);
}

/* Tests that identical latents count once, and that latents at a distance of .10 still collide. */
static void test_collisions(void) {
    batch *x = random_batch(1, 3, 3, 6);
    bj_metrics *m = create(x);
    memset(x->atoms, 0, sizeof x->atoms);
    x->atoms[D + PAD] = (bj_real)0.09375;
    x->atoms[2 * (D + PAD)] = 1;
    x->weights[0] = x->weights[1] = (bj_real)0.25;
    x->weights[2] = (bj_real)0.5;
    add(m, x, 0, 1);
    CHECK_NEAR(bj_metrics_values(m).neff_collision, 2, 1e-12);
    bj_metrics_free(m);
    free(x);
}

/* Tests that one accumulator accepts forecasts without latents and with different numbers of modes.
 * The means must equal the means for each number of modes, weighted by the number of scenes. */
static void test_without_latents(void) {
    static const int modes[3] = {2, 5, 1}, scenes[3] = {7, 20, 4};
    bj_error err = {0};
    bj_metrics *m = NULL;
    double es = 0, fde = 0, brier = 0, support = 0;
    CHECK_OK(bj_metrics_create(&m, 5, 0, 0, F, &err), err);
    if (!m) return;
    for (int i = 0; i < 3; i++) {
        batch *x = random_batch(scenes[i], modes[i], modes[i], 70 + (uint64_t)i);
        const bj_metric_values expected = plain(x);
        bj_outputs o = outputs_of(x, 0, x->B);
        o.latents = o.D = 0;
        o.atom_stride = 0;
        o.atoms = o.target = NULL;
        CHECK_OK(bj_metrics_add(m, &o, x->future, &err), err);
        es += scenes[i] * expected.traj_es;
        fde += scenes[i] * expected.min_fde;
        brier += scenes[i] * expected.brier;
        support += scenes[i] * expected.dedup_support;
        free(x);
    }
    const bj_metric_values v = bj_metrics_values(m);
    CHECK(v.scenes == 31 && isnan(v.latent_es) && isnan(v.neff_collision));
    CHECK_NEAR(v.traj_es, es / 31, 1e-12);
    CHECK_NEAR(v.min_fde, fde / 31, 1e-12);
    CHECK_NEAR(v.brier, brier / 31, 1e-12);
    CHECK_NEAR(v.dedup_support, support / 31, 1e-12);
    batch *x = random_batch(1, 6, 6, 80); /* more modes than the accumulator accepts */
    bj_outputs o = outputs_of(x, 0, 1);
    o.latents = 0;
    CHECK(bj_metrics_add(m, &o, x->future, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "K is 6, expected 1 to 5");
    CHECK(bj_metrics_values(m).scenes == 31);
    free(x);
    bj_metrics_free(m);
}

static void refused(bj_metrics *m, const bj_outputs *o, const bj_real *future, bj_status code,
                    const char *field, const char *found) {
    bj_error err = {0};
    const bj_metric_values before = bj_metrics_values(m);
    CHECK_MSG(bj_metrics_add(m, o, future, &err) == code, "%s accepted", field);
    CHECK_CONTAINS(err.message, field);
    CHECK_CONTAINS(err.message, found);
    const bj_metric_values after = bj_metrics_values(m);
    CHECK_MSG(memcmp(&before, &after, sizeof before) == 0, "%s: the accumulator changed", field);
    CHECK(bj_metrics_add(m, o, future, NULL) == code);
}

static void test_refusals(void) {
    batch *x = random_batch(4, 3, 3, 7);
    bj_metrics *m = create(x);
    add(m, x, 0, 4);
    bj_outputs o = outputs_of(x, 0, 4);
#define REFUSE(field, value, found)                                                                \
    do {                                                                                           \
        o = outputs_of(x, 0, 4);                                                                   \
        o.field = (value);                                                                         \
        refused(m, &o, x->future, BJ_EARG, #field, (found));                                       \
    } while (0)
    REFUSE(K, 2, "is 2, expected 3");
    REFUSE(latents, 1, "is 1, expected 3");
    REFUSE(D, D + 1, "is 6, expected 5");
    REFUSE(F, F - 1, "is 3, expected 4");
    REFUSE(B, -1, "is -1");
    REFUSE(atom_stride, D - 1, "is 4");
    REFUSE(decoded_stride, 2 * F - 1, "is 7");
    REFUSE(atoms, NULL, "missing");
    REFUSE(weights, NULL, "missing");
    REFUSE(decoded, NULL, "missing");
    REFUSE(target, NULL, "missing");
#undef REFUSE
    o = outputs_of(x, 0, 4);
    refused(m, &o, NULL, BJ_EARG, "future", "missing");
    CHECK(bj_metrics_add(m, NULL, x->future, NULL) == BJ_EARG);

    bj_real *const spots[] = {x->atoms + 7 * (D + PAD) + 2, x->target + 2 * (D + PAD),
                              x->decoded + 8 * (2 * F + PAD) + 5, x->future + 2 * 2 * F + 1,
                              x->weights + 2 * 3 + 1}; /* all in scene 2 */
    const char *names[] = {"latent", "target", "trajectory", "future", "weight"};
    for (int i = 0; i < 5; i++) {
        const bj_real saved = *spots[i];
        *spots[i] = (bj_real)(i % 2 ? -INFINITY : NAN);
        refused(m, &o, x->future, BJ_ENONFINITE, "scene 2", names[i]);
        *spots[i] = saved;
    }
    const bj_real saved = x->weights[7];
    x->weights[7] = (bj_real)-0.25;
    refused(m, &o, x->future, BJ_EARG, "scene 2", "-0.25");
    x->weights[7] = 20;
    refused(m, &o, x->future, BJ_EARG, "scene 2", "20");
    x->weights[7] = saved;
    add(m, x, 0, 4);
    CHECK(bj_metrics_values(m).scenes == 8);
    bj_metrics_free(m);
    free(x);
}

static void test_create(void) {
    bj_metrics *m = (bj_metrics *)&m;
    bj_error err = {0};
    CHECK(bj_metrics_create(&m, 0, 1, 4, 4, &err) == BJ_EARG && m == NULL);
    CHECK_CONTAINS(err.message, "K is 0");
    CHECK(bj_metrics_create(&m, 65, 65, 4, 4, &err) == BJ_EARG);
    CHECK(bj_metrics_create(&m, 6, 5, 4, 4, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "latents is 5");
    CHECK(bj_metrics_create(&m, 6, 6, 0, 4, NULL) == BJ_EARG);
    CHECK(bj_metrics_create(&m, 6, 6, 4, 0, NULL) == BJ_EARG);
    CHECK(bj_metrics_create(NULL, 6, 6, 4, 4, NULL) == BJ_EARG);
    const long live = bj_alloc_live();
    for (int n = 0; n < 2; n++) {
        bj_alloc_fail_after(n);
        CHECK(bj_metrics_create(&m, 6, 6, 4, 4, &err) == BJ_ENOMEM && m == NULL);
        bj_alloc_fail_after(-1);
    }
    CHECK_OK(bj_metrics_create(&m, 6, 6, 4, 4, &err), err);
    bj_metrics_free(m);
    bj_metrics_free(NULL);
    CHECK(bj_alloc_live() == live);
}

int main(void) {
    test_random();
    test_by_hand();
    test_clusters();
    test_maneuvers();
    test_calibration();
    test_active_heads();
    test_collisions();
    test_without_latents();
    test_refusals();
    test_create();
    return test_report("metrics");
}
