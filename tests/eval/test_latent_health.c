/* test_latent_health.c - tests the standard deviations and the spectrum of latents.
 *
 * The reference values are calculated by hand or with a simple Jacobi solver.
 */
#include <stdlib.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "test.h"

static bj_latent_health measure(const bj_real *z, size_t stride, int B, int D) {
    bj_latent_health h = {NAN, NAN, NAN, NAN};
    bj_error err;
    CHECK_OK(bj_latent_health_measure(&h, z, stride, B, D, &err), err);
    return h;
}

static double *doubles(size_t n) {
    double *x = calloc(n, sizeof *x);
    if (!x) exit(1);
    return x;
}

static bj_real *normals(size_t n, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    bj_real *x = calloc(n, sizeof *x);
    if (!x) exit(1);
    for (size_t i = 0; i < n; i++) x[i] = (bj_real)bj_rng_normal(&rng);
    return x;
}

/* ----------------------------------------------------------------------------- plain reference */

/* Computes the eigenvalues of the symmetric matrix a (n,n) with cyclic Jacobi rotations. The
 * eigenvalues replace the diagonal of a. */
static void jacobi(double *a, int n) {
    for (int sweep = 0; sweep < 60; sweep++) {
        double off = 0;
        for (int p = 0; p < n; p++)
            for (int q = p + 1; q < n; q++) {
                const double apq = a[p * n + q];
                off += apq * apq;
                if (apq == 0) continue;
                const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
                const double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
                const double c = 1 / sqrt(t * t + 1), s = t * c;
                for (int i = 0; i < n; i++) {
                    const double x = a[i * n + p], y = a[i * n + q];
                    a[i * n + p] = c * x - s * y, a[i * n + q] = s * x + c * y;
                }
                for (int i = 0; i < n; i++) {
                    const double x = a[p * n + i], y = a[q * n + i];
                    a[p * n + i] = c * x - s * y, a[q * n + i] = s * x + c * y;
                }
            }
        if (off < 1e-300) break;
    }
}

static bj_latent_health plain(const bj_real *z, size_t stride, int B, int D) {
    double *mean = doubles((size_t)D), *cov = doubles((size_t)D * (size_t)D);
    double sum = 0, squares = 0, entropy = 0;
    bj_latent_health h = {0};
    for (int b = 0; b < B; b++)
        for (int i = 0; i < D; i++) mean[i] += (double)z[(size_t)b * stride + (size_t)i] / B;
    for (int b = 0; b < B; b++)
        for (int i = 0; i < D; i++)
            for (int j = 0; j < D; j++)
                cov[i * D + j] += ((double)z[(size_t)b * stride + (size_t)i] - mean[i]) *
                                  ((double)z[(size_t)b * stride + (size_t)j] - mean[j]) / B;
    for (int i = 0; i < D; i++) {
        h.mean_std += sqrt(cov[i * D + i]) / D;
        h.low_std_fraction += (sqrt(cov[i * D + i]) < 1e-3) / (double)D;
    }
    jacobi(cov, D);
    for (int i = 0; i < D; i++) sum += fmax(cov[i * D + i], 0);
    for (int i = 0; i < D; i++) {
        const double q = fmax(cov[i * D + i], 0) / sum;
        if (q > 0) entropy -= q * log(q);
        squares += q * q;
    }
    h.entropy_rank = exp(entropy);
    h.participation = 1 / squares;
    free(mean);
    free(cov);
    return h;
}

static void check_random(int B, int D, int rank, uint64_t seed) {
    enum { PAD = 3 };
    const size_t stride = (size_t)D + PAD;
    bj_real *z = normals((size_t)B * stride, seed), *mix = normals((size_t)(rank * D), seed + 1);
    bj_real *code = normals((size_t)(B * rank), seed + 2);
    for (int b = 0; b < B; b++) {
        for (int i = 0; i < D && rank; i++) { /* unequal directions and a common offset */
            double sum = 5;
            for (int r = 0; r < rank; r++)
                sum += (double)code[b * rank + r] * (double)mix[r * D + i] / (1 + r);
            z[(size_t)b * stride + (size_t)i] = (bj_real)sum;
        }
        for (int i = D; i < D + PAD; i++) z[(size_t)b * stride + (size_t)i] = (bj_real)NAN;
    }
    const bj_latent_health h = measure(z, stride, B, D), p = plain(z, stride, B, D);
    CHECK_NEAR(h.mean_std, p.mean_std, 1e-12 * p.mean_std);
    CHECK(h.low_std_fraction == p.low_std_fraction);
    CHECK_NEAR(h.entropy_rank, p.entropy_rank, 1e-9 * p.entropy_rank);
    CHECK_NEAR(h.participation, p.participation, 1e-9 * p.participation);
    if (rank) CHECK(h.entropy_rank <= rank * (1 + 1e-6));
    CHECK(h.participation >= 1 - 1e-12 && h.participation <= h.entropy_rank * (1 + 1e-9));
    CHECK(h.entropy_rank >= 1 && h.entropy_rank <= D * (1 + 1e-12));
    free(z);
    free(mix);
    free(code);
}

/* --------------------------------------------------------------------------------------- tests */

static void test_by_hand(void) {
    /* the latents are +1 and -1 on every axis, so the covariance is 1/4 on the diagonal */
    bj_real cross[8][4] = {{0}};
    for (int i = 0; i < 8; i++) cross[i][i / 2] = (bj_real)(i % 2 ? -1 : 1);
    bj_latent_health h = measure(&cross[0][0], 4, 8, 4);
    CHECK_NEAR(h.mean_std, 0.5, 1e-15);
    CHECK_NEAR(h.entropy_rank, 4, 1e-12);
    CHECK_NEAR(h.participation, 4, 1e-12);
    CHECK(h.low_std_fraction == 0);

    /* variances 9:1 on two axes and 0 on the third, so the rank is exp(-(9/10)log(9/10) -
     * (1/10)log(1/10)) */
    const bj_real uneven[4][3] = {{3, 1, 7}, {-3, 1, 7}, {3, -1, 7}, {-3, -1, 7}};
    h = measure(&uneven[0][0], 3, 4, 3);
    CHECK_NEAR(h.entropy_rank, exp(-0.9 * log(0.9) - 0.1 * log(0.1)), 1e-12); /* 9 : 1 */
    CHECK_NEAR(h.participation, 100.0 / 82, 1e-12); /* (9 + 1)^2 / (9^2 + 1^2) */
    CHECK_NEAR(h.mean_std, 4.0 / 3, 1e-14);
    CHECK_NEAR(h.low_std_fraction, 1.0 / 3, 1e-15);

    /* The same latents rotated by 45 degrees have another covariance but the same spectrum. */
    bj_real turned[4][2];
    for (int i = 0; i < 4; i++) {
        turned[i][0] = (bj_real)((uneven[i][0] - uneven[i][1]) * sqrt(0.5));
        turned[i][1] = (bj_real)((uneven[i][0] + uneven[i][1]) * sqrt(0.5));
    }
    h = measure(&turned[0][0], 2, 4, 2);
    CHECK_NEAR(h.entropy_rank, exp(-0.9 * log(0.9) - 0.1 * log(0.1)), 1e-6);
    CHECK_NEAR(h.participation, 100.0 / 82, 1e-6);
    CHECK_NEAR(h.mean_std, sqrt(5), 1e-6);

    const bj_real line[3][2] = {{1, 2}, {2, 4}, {3, 6}}; /* one direction */
    CHECK_NEAR(measure(&line[0][0], 2, 3, 2).entropy_rank, 1, 1e-9);
    const bj_real same[3][2] = {{1, 2}, {1, 2}, {1, 2}}; /* collapsed */
    h = measure(&same[0][0], 2, 3, 2);
    CHECK(h.mean_std == 0 && h.low_std_fraction == 1 && h.entropy_rank == 1);
    CHECK(h.participation == 0); /* as in the loss of the anchor, for latents without variance */
    h = measure(&same[0][0], 2, 1, 2); /* one latent */
    CHECK(h.mean_std == 0 && h.low_std_fraction == 1 && h.entropy_rank == 1);
    const bj_real column[4] = {1, 2, 3, 4}; /* one dimension */
    h = measure(column, 1, 4, 1);
    CHECK_NEAR(h.mean_std, sqrt(1.25), 1e-15);
    CHECK_NEAR(h.entropy_rank, 1, 1e-15);

    /* standard deviations just below and above 1e-3 */
    const bj_real low[2][3] = {{(bj_real)0.00099, (bj_real)0.00101, 1},
                               {(bj_real)-0.00099, (bj_real)-0.00101, -1}};
    CHECK_NEAR(measure(&low[0][0], 3, 2, 3).low_std_fraction, 1.0 / 3, 1e-15);
}

static void test_random(void) {
    check_random(50, 2, 0, 1);
    check_random(40, 7, 0, 2);
    check_random(200, 33, 0, 3);
    check_random(5, 20, 0, 4); /* fewer latents than dimensions */
    check_random(60, 24, 5, 5);
    check_random(60, 24, 1, 6);
    check_random(30, 64, 12, 7);
}

static void test_refusals(void) {
    bj_real z[6] = {1, 2, 3, 4, 5, 6};
    bj_latent_health h = {-1, -1, -1, -1};
    bj_error err;
    CHECK(bj_latent_health_measure(&h, z, 3, 0, 3, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "shape is (0, 3)");
    CHECK(bj_latent_health_measure(&h, z, 3, 2, 0, &err) == BJ_EARG);
    const bj_real bad[] = {(bj_real)NAN, (bj_real)INFINITY, (bj_real)-INFINITY};
    for (int i = 0; i < 6; i++) {
        char where[40];
        snprintf(where, sizeof where, "latent %d: entry %d", i / 3, i % 3);
        z[i] = bad[i % 3];
        CHECK(bj_latent_health_measure(&h, z, 3, 2, 3, &err) == BJ_ENONFINITE);
        CHECK_CONTAINS(err.message, where);
        z[i] = 1;
    }
    CHECK(bj_latent_health_measure(&h, z, 3, 2, 0, NULL) == BJ_EARG);
    CHECK(h.mean_std == -1 && h.entropy_rank == -1 && h.participation == -1); /* unchanged */
}

int main(void) {
    const long live = bj_alloc_live();
    test_by_hand();
    test_random();
    test_refusals();
    CHECK(bj_alloc_live() == live);
    return test_report("latent health");
}
