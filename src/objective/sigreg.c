/* sigreg.c - Sketched Isotropic Gaussian Regularization (SIGReg) of LeJEPA.
 *
 * Balestriero and LeCun, "LeJEPA: Provable and Scalable Self-Supervised Learning Without the
 * Heuristics", 2025 (arXiv:2511.08544). The term is the Epps-Pulley statistic of the projections
 * p_b = a'x_b for N(0,1), averaged over random unit directions a.
 *
 *   SIGReg = (1/S) sum_s T_s,   T = B sum_j w_j ((C_j - phi_j)^2 + S_j^2)
 *   C_j = mean_b cos(t_j p_b),  S_j = mean_b sin(t_j p_b),  phi_j = exp(-t_j^2 / 2)
 *   t_j = 3 j / 16, j = 0 .. 16,   w_j = 2 dt phi_j, half of it at both ends,   dt = 3 / 16
 *
 * These constants are taken from the authors' code: the trapezoid rule over [-3,3] with the
 * Gaussian weight phi, folded at t = 0 because the integrand is even. The term j = 0 is zero and is
 * skipped.
 *
 *   dT/dp_b = 2 sum_j w_j t_j (S_j cos(t_j p_b) - (C_j - phi_j) sin(t_j p_b))
 *   dx_b   += sum_s (weight / S) dT_s/dp_bs a_s
 *
 * With z_b = exp(i dt p_b), the cosine and sine of t_j p_b are the real and imaginary parts of
 * z_b^j. Each projection needs one sine and one cosine. The sums use powers, and the gradient uses
 * Horner's scheme, both in double.
 *
 * Directions  D normal numbers of the stream (seed, "sigreg STEP SLICE"), divided by their norm.
 * Shapes      x, dx (B,D)   direction (S,D)   projections p, dp (B,S)
 * Order       Sums over the batch: in double, by core/shards.h.
 * Edge        B = 1 is allowed. A NaN or infinity in x makes the statistic NaN.
 * Test        tests/objective/test_regularizers.c    Derivation  docs/layers/regularizers.md
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "objective/parts.h"

enum { LANES = 8, KNOTS = 16, SUMS = 2 * KNOTS * LANES };
static const double dt = 3.0 / KNOTS;

static int slices(const bj_regularizers *r) { return r->objective->sigreg_slices; }

void bj_sigreg_take(bj_regularizers *r, bj_arena *arena, int max_batch) {
    if (r->objective->sigreg == 0) return;
    const size_t B = (size_t)max_batch, S = (size_t)slices(r), D = (size_t)r->D;
    const size_t groups = (S + LANES - 1) / LANES;
    r->lds = bj_stride(slices(r));
    r->direction = bj_arena_take(arena, S * D);
    r->project = bj_arena_take(arena, (size_t)bj_sigreg_items(r) *
                                          r->k->packed_size(BJ_REGULARIZER_ROWS, r->D));
    r->unproject = bj_arena_take(arena, bj_blocks_size(r, slices(r)));
    r->projected = bj_arena_take(arena, B * r->lds);
    r->turn = bj_arena_take_bytes(arena, groups * B * 2 * LANES * sizeof(double));
    r->statistic = bj_arena_take_bytes(arena, groups * LANES * sizeof(double));
}

int bj_sigreg_items(const bj_regularizers *r) {
    if (r->objective->sigreg == 0) return 0;
    return (slices(r) + BJ_REGULARIZER_ROWS - 1) / BJ_REGULARIZER_ROWS;
}

static void draw(const bj_regularizers *r, int slice) {
    bj_real *a = r->direction + (size_t)slice * (size_t)r->D;
    char name[64];
    snprintf(name, sizeof name, "sigreg %ld %d", r->step, slice);
    bj_rng rng = bj_rng_named(r->seed, name);
    double squares = 0;
    for (int d = 0; d < r->D; d++) {
        const double value = bj_rng_normal(&rng);
        squares += value * value;
        a[d] = (bj_real)value;
    }
    const double inverse = 1 / sqrt(squares);
    for (int d = 0; d < r->D; d++) a[d] = (bj_real)((double)a[d] * inverse);
}

/* Fills turn (B,2,LANES) with the cosines and sines of n projections p, which have row stride lds.
 * Unused lanes are computed from p = 0. */
static void take_turns(double *turn, const bj_real *p, size_t lds, int B, int n) {
    for (int b = 0; b < B; b++, turn += 2 * LANES, p += lds)
        for (int l = 0; l < LANES; l++) {
            const double angle = l < n ? dt * (double)p[l] : 0;
            turn[l] = cos(angle);
            turn[LANES + l] = sin(angle);
        }
}

/* Adds the powers z^1, z^2, ... of z (2,LANES) to sum (KNOTS,2,LANES). */
static void add_powers(double *restrict sum, const double *restrict z) {
    double re[LANES], im[LANES];
    memcpy(re, z, sizeof re);
    memcpy(im, z + LANES, sizeof im);
    for (int j = 0; j < KNOTS; j++, sum += 2 * LANES)
        for (int l = 0; l < LANES; l++) {
            const double a = re[l], b = im[l];
            sum[l] += a;
            sum[LANES + l] += b;
            re[l] = a * z[l] - b * z[LANES + l];
            im[l] = a * z[LANES + l] + b * z[l];
        }
}

/* Computes the statistics T from batch sums. Replaces the sums with the coefficients 2 w_j t_j (S_j
 * + i (C_j - phi_j)) times `scale`. */
static void measure(double *statistic, double *sum, int B, double scale) {
    for (int l = 0; l < LANES; l++) statistic[l] = 0;
    for (int j = 0; j < KNOTS; j++, sum += 2 * LANES) {
        const double t = dt * (j + 1), phi = exp(-t * t / 2);
        const double w = (j + 1 < KNOTS ? 2 * dt : dt) * phi;
        for (int l = 0; l < LANES; l++) {
            const double off = sum[l] / B - phi, sine = sum[LANES + l] / B;
            statistic[l] += B * w * (off * off + sine * sine);
            sum[l] = 2 * scale * w * t * sine;
            sum[LANES + l] = 2 * scale * w * t * off;
        }
    }
}

/* Sets `value` to the real part of sum_j coefficient_j z^j, using Horner's scheme. */
static void evaluate(double *restrict value, const double *restrict coefficient,
                     const double *restrict z) {
    double re[LANES] = {0}, im[LANES] = {0};
    for (int j = KNOTS - 1; j >= 0; j--) {
        const double *c = coefficient + (size_t)j * 2 * LANES;
        for (int l = 0; l < LANES; l++) {
            const double a = re[l] + c[l], b = im[l] + c[LANES + l];
            re[l] = a * z[l] - b * z[LANES + l];
            im[l] = a * z[LANES + l] + b * z[l];
        }
    }
    memcpy(value, re, sizeof re);
}

/* Replaces n projections of the whole batch with the gradient of the weighted term. */
static void regularize(const bj_regularizers *r, int slice, int n) {
    const int B = r->B;
    bj_real *p = r->projected + slice;
    double *turn = r->turn + (size_t)(slice / LANES) * (size_t)B * 2 * LANES;
    double sum[BJ_SHARDS][SUMS];
    memset(sum, 0, sizeof sum);
    take_turns(turn, p, r->lds, B, n);
    for (int s = 0; s < BJ_SHARDS; s++)
        for (int i = 0; i < r->shard_count[s]; i++)
            add_powers(sum[s], turn + (size_t)(r->shard_begin[s] + i) * 2 * LANES);
    bj_shards_fold(&sum[0][0], SUMS, SUMS);
    measure(r->statistic + slice, sum[0], B, r->objective->sigreg / slices(r));
    for (int b = 0; b < B; b++) {
        double value[LANES];
        evaluate(value, sum[0], turn + (size_t)b * 2 * LANES);
        for (int l = 0; l < n; l++) p[(size_t)b * r->lds + (size_t)l] = (bj_real)value[l];
    }
}

void bj_sigreg_item(bj_regularizers *r, int item) {
    const int first = item * BJ_REGULARIZER_ROWS, left = slices(r) - first, D = r->D;
    const int n = left < BJ_REGULARIZER_ROWS ? left : BJ_REGULARIZER_ROWS;
    const bj_real *a = r->direction + (size_t)first * (size_t)D;
    bj_real *packed = r->project + (size_t)item * r->k->packed_size(BJ_REGULARIZER_ROWS, D);
    for (int s = first; s < first + n; s++) draw(r, s);
    r->k->pack_nk(packed, a, (size_t)D, n, D);
    r->k->pack_kn(bj_block_at(r, r->unproject, first), a, (size_t)D, D, n);
    r->k->gemm(r->projected + first, r->lds, r->x, r->ldx, packed, NULL, NULL, 0, r->B, n, D, 0);
    for (int s = first; s < first + n; s += LANES)
        regularize(r, s, first + n - s < LANES ? first + n - s : LANES);
}

void bj_sigreg_backward(const bj_regularizers *r, bj_real *dx, size_t lddx, int b0, int b1) {
    if (r->objective->sigreg == 0) return;
    bj_blocks_add(r, dx, lddx, r->projected + (size_t)b0 * r->lds, r->lds, r->unproject, slices(r),
                  b1 - b0);
}

double bj_sigreg_loss(const bj_regularizers *r) {
    double sum = 0;
    if (r->objective->sigreg == 0) return 0;
    for (int s = 0; s < slices(r); s++) sum += r->statistic[s];
    return sum / slices(r);
}
