/* probe.c - see probe.h. */
#include "maze/probe.h"

#include <math.h>

#include "core/alloc.h"

enum { TOGETHER = 4 /* frames per pass over the matrix */ };

struct bj_probe {
    int D;
    double frames;
    double *matrix;   /* (D,D) upper triangle of sum z z', later the factor */
    double *cross;    /* (D,2) sum z p'; then W */
    double *sum;      /* (D) of z; then the mean */
    double *rows;     /* (TOGETHER,D) */
    double center[2]; /* sum of p; then m_p */
};

bj_status bj_probe_create(bj_probe **out, int D, bj_error *err) {
    bj_probe *p;
    bj_status status;
    *out = NULL;
    if (D < 1)
        return BJ_FAIL(err, BJ_EARG, "probe: the latents have %d dimensions, expected at least 1",
                       D);
    BJ_TRY(BJ_ALLOC(p, 1, err));
    p->D = D;
    const size_t d = (size_t)D;
    BJ_GOTO(status, fail, BJ_ALLOC(p->matrix, d * d, err));
    BJ_GOTO(status, fail, BJ_ALLOC(p->cross, d * 2, err));
    BJ_GOTO(status, fail, BJ_ALLOC(p->sum, d, err));
    BJ_GOTO(status, fail, BJ_ALLOC(p->rows, d * TOGETHER, err));
    *out = p;
    return BJ_OK;
fail:
    bj_probe_free(p);
    return status;
}

void bj_probe_free(bj_probe *p) {
    if (!p) return;
    bj_free(p->rows);
    bj_free(p->sum);
    bj_free(p->cross);
    bj_free(p->matrix);
    bj_free(p);
}

void bj_probe_add(bj_probe *p, const bj_real *latents, const double *xy, int64_t n) {
    const size_t D = (size_t)p->D;
    for (int64_t at = 0; at < n; at += TOGETHER) {
        double *r[TOGETHER];
        for (int k = 0; k < TOGETHER; k++) {
            const int64_t frame = at + k;
            r[k] = p->rows + (size_t)k * D;
            for (size_t i = 0; i < D; i++) /* zeros after the last frame add nothing */
                r[k][i] = frame < n ? (double)latents[(size_t)frame * D + i] : 0;
            if (frame >= n) continue;
            for (size_t i = 0; i < D; i++) {
                p->sum[i] += r[k][i];
                p->cross[2 * i] += r[k][i] * xy[2 * frame];
                p->cross[2 * i + 1] += r[k][i] * xy[2 * frame + 1];
            }
            p->center[0] += xy[2 * frame];
            p->center[1] += xy[2 * frame + 1];
            p->frames++;
        }
        for (size_t i = 0; i < D; i++) {
            double *row = p->matrix + i * D;
            const double a = r[0][i], b = r[1][i], c = r[2][i], d = r[3][i];
            for (size_t j = i; j < D; j++)
                row[j] += (a * r[0][j] + b * r[1][j]) + (c * r[2][j] + d * r[3][j]);
        }
    }
}

/* Computes the moments about the means. */
static void center_moments(bj_probe *p) {
    const size_t D = (size_t)p->D;
    const double n = p->frames;
    for (int c = 0; c < 2; c++) p->center[c] /= n;
    for (size_t i = 0; i < D; i++) {
        for (size_t c = 0; c < 2; c++) p->cross[2 * i + c] -= p->sum[i] * p->center[c];
        for (size_t j = i; j < D; j++) p->matrix[i * D + j] -= p->sum[i] * p->sum[j] / n;
    }
    for (size_t i = 0; i < D; i++) p->sum[i] /= n;
}

/* Factors matrix = U'U, where U is the upper triangle. Works row by row, so that the inner loops
 * run along rows. */
static bj_status factorize(bj_probe *p, bj_error *err) {
    const size_t D = (size_t)p->D;
    double *U = p->matrix, largest = 0;
    for (size_t i = 0; i < D; i++) largest = fmax(largest, U[i * D + i]);
    for (size_t i = 0; i < D; i++) {
        for (size_t k = 0; k < i; k++) {
            const double f = U[k * D + i];
            for (size_t j = i; j < D; j++) U[i * D + j] -= f * U[k * D + j];
        }
        const double pivot = U[i * D + i];
        if (!(pivot > 1e-14 * largest)) /* also if it is NaN */
            return BJ_FAIL(err, BJ_EARG,
                           "probe: pivot %zu of %zu is %g, "
                           "because the latents of %.0f frames do not determine it; "
                           "use a larger ridge",
                           i, D, pivot, p->frames);
        for (size_t j = i; j < D; j++) U[i * D + j] /= sqrt(pivot);
    }
    return BJ_OK;
}

bj_status bj_probe_solve(bj_probe *p, double ridge, bj_error *err) {
    const size_t D = (size_t)p->D;
    double trace = 0, *U = p->matrix, *W = p->cross;
    if (p->frames < 2 || !(ridge >= 0))
        return BJ_FAIL(err, BJ_EARG,
                       "probe: found %.0f frames and a ridge of %g, "
                       "expected at least 2 frames and a ridge of at least 0",
                       p->frames, ridge);
    center_moments(p);
    for (size_t i = 0; i < D; i++) trace += U[i * D + i];
    for (size_t i = 0; i < D; i++) U[i * D + i] += ridge * trace / (double)D;
    BJ_TRY(factorize(p, err));
    for (size_t c = 0; c < 2; c++) {
        for (size_t i = 0; i < D; i++) { /* U' y = cross */
            W[2 * i + c] /= U[i * D + i];
            for (size_t j = i + 1; j < D; j++) W[2 * j + c] -= U[i * D + j] * W[2 * i + c];
        }
        for (size_t i = D; i-- > 0;) { /* U W = y */
            for (size_t j = i + 1; j < D; j++) W[2 * i + c] -= U[i * D + j] * W[2 * j + c];
            W[2 * i + c] /= U[i * D + i];
        }
    }
    return BJ_OK;
}

void bj_probe_read(double xy[2], const bj_probe *p, const bj_real *latent) {
    xy[0] = p->center[0];
    xy[1] = p->center[1];
    for (size_t i = 0; i < (size_t)p->D; i++) {
        const double z = (double)latent[i] - p->sum[i];
        xy[0] += p->cross[2 * i] * z;
        xy[1] += p->cross[2 * i + 1] * z;
    }
}
