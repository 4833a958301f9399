/* latent_health.c - computes the standard deviations and the spectrum of a set of latents.
 *
 * Computes the eigenvalues of the (D,D) covariance in double by Householder
 * reduction to tridiagonal form and implicit QL with Wilkinson's shift (Golub
 * and Van Loan, sections 8.3.1 and 8.3.3). The participation rank is (tr C)^2 / sum_ij C_ij^2, or 0
 * if all latents are equal, and needs no eigenvalues.
 * Test: tests/eval/test_latent_health.c
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

/* Reduces the symmetric matrix a (n,n) to diagonal (n) and off (n); off[0]
 * is unused. Overwrites a. */
static void tridiagonalize(double *a, int n, double *diagonal, double *off) {
    for (int i = n - 1; i > 0; i--) {
        double *row = a + (size_t)i * n; /* the first i entries become (0,..,0,off) */
        double scale = 0, square = 0;
        for (int k = 0; k < i; k++) scale += fabs(row[k]);
        if (i == 1 || scale == 0) {
            off[i] = row[i - 1];
            continue;
        }
        for (int k = 0; k < i; k++) row[k] /= scale, square += row[k] * row[k];
        const double head = row[i - 1], size = head >= 0 ? -sqrt(square) : sqrt(square);
        off[i] = scale * size;
        const double half = square - head * size; /* |v|^2 / 2 for v = row - size e */
        row[i - 1] = head - size;
        /* A <- P A P with P = I - v v^T / half: p = A v / half, q = p - (v.p / 2 half) v */
        double dot = 0;
        for (int j = 0; j < i; j++) {
            double sum = 0;
            for (int k = 0; k <= j; k++) sum += a[(size_t)j * n + k] * row[k];
            for (int k = j + 1; k < i; k++) sum += a[(size_t)k * n + j] * row[k];
            off[j] = sum / half;
            dot += off[j] * row[j];
        }
        for (int j = 0; j < i; j++) off[j] -= dot / (2 * half) * row[j];
        for (int j = 0; j < i; j++)
            for (int k = 0; k <= j; k++)
                a[(size_t)j * n + k] -= row[j] * off[k] + off[j] * row[k];
    }
    for (int i = 0; i < n; i++) diagonal[i] = a[(size_t)i * n + i];
}

/* Replaces `diagonal` with the eigenvalues. Returns 0 if the iteration does not converge. */
static int tridiagonal_values(double *diagonal, double *off, int n) {
    for (int i = 1; i < n; i++) off[i - 1] = off[i];
    off[n - 1] = 0;
    for (int l = 0; l < n; l++) {
        for (int iteration = 0;; iteration++) {
            int m = l; /* the block l..m cannot be split further */
            while (m < n - 1 && fabs(off[m]) > 1e-16 * (fabs(diagonal[m]) + fabs(diagonal[m + 1])))
                m++;
            if (m == l) break;
            if (iteration == 100) return 0;
            double g = (diagonal[l + 1] - diagonal[l]) / (2 * off[l]);
            double r = hypot(g, 1);
            g = diagonal[m] - diagonal[l] + off[l] / (g + (g >= 0 ? r : -r));
            double s = 1, c = 1, p = 0;
            int i = m - 1;
            for (; i >= l; i--) {
                const double f = s * off[i], b = c * off[i];
                r = hypot(f, g);
                off[i + 1] = r;
                if (r == 0) {
                    diagonal[i + 1] -= p;
                    off[m] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = diagonal[i + 1] - p;
                r = (diagonal[i] - g) * s + 2 * c * b;
                p = s * r;
                diagonal[i + 1] = g + p;
                g = c * r - b;
            }
            if (r == 0 && i >= l) continue;
            diagonal[l] -= p;
            off[l] = g;
            off[m] = 0;
        }
    }
    return 1;
}

static void covariance(double *cov, double *mean, const bj_real *z, size_t stride, int B, int D) {
    for (int b = 0; b < B; b++)
        for (int d = 0; d < D; d++) mean[d] += (double)z[(size_t)b * stride + d] / B;
    for (int b = 0; b < B; b++) {
        const bj_real *row = z + (size_t)b * stride;
        for (int i = 0; i < D; i++) {
            const double x = ((double)row[i] - mean[i]) / B;
            for (int j = 0; j <= i; j++) cov[(size_t)i * D + j] += x * ((double)row[j] - mean[j]);
        }
    }
    for (int i = 0; i < D; i++)
        for (int j = i + 1; j < D; j++) cov[(size_t)i * D + j] = cov[(size_t)j * D + i];
}

/* Returns the participation rank. The trace equals the sum of the eigenvalues, and the sum of the
 * squared entries equals the sum of the squared eigenvalues. */
static double participation(const double *cov, size_t n) {
    double trace = 0, squares = 0;
    for (size_t i = 0; i < n; i++) trace += cov[i * n + i];
    for (size_t i = 0; i < n * n; i++) squares += cov[i] * cov[i];
    return squares > 0 ? trace * trace / squares : 0;
}

bj_status bj_latent_health_measure(bj_latent_health *out, const bj_real *z, size_t stride, int B,
                                   int D, bj_error *err) {
    if (B < 1 || D < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "latents: shape is (%d, %d), expected at least one row and one column", B,
                       D);
    for (int b = 0; b < B; b++)
        for (int d = 0; d < D; d++)
            if (!isfinite(z[(size_t)b * stride + d]))
                return BJ_FAIL(err, BJ_ENONFINITE, "latent %d: entry %d is not finite", b, d);
    const size_t n = (size_t)D;
    double *memory;
    BJ_TRY(BJ_ALLOC(memory, n * n + 3 * n, err));
    double *cov = memory, *mean = cov + n * n, *diagonal = mean + n, *off = diagonal + n;
    covariance(cov, mean, z, stride, B, D);
    bj_latent_health h = {0};
    for (int d = 0; d < D; d++) {
        const double std = sqrt(cov[(size_t)d * n + d]);
        h.mean_std += std / D;
        h.low_std_fraction += (std < 1e-3) / (double)D;
    }
    h.participation = participation(cov, n);
    tridiagonalize(cov, D, diagonal, off);
    bj_status status = BJ_OK;
    if (!tridiagonal_values(diagonal, off, D))
        status = BJ_FAIL(err, BJ_ENONFINITE, "the spectrum of the latents did not converge");
    double sum = 0, entropy = 0;
    for (int d = 0; d < D; d++) sum += diagonal[d] > 0 ? diagonal[d] : 0;
    for (int d = 0; d < D && sum > 0; d++) {
        const double q = diagonal[d] / sum;
        if (q > 0) entropy -= q * log(q);
    }
    h.entropy_rank = exp(entropy);
    bj_free(memory);
    if (status == BJ_OK) *out = h;
    return status;
}
