/* mixture.c - negative log-likelihood of a mixture of diagonal Gaussians, and the usage penalty.
 *
 *   nll  = - lse_k(log pi_k + q_k)
 *   q_k  = - 1/2 sum_i (x_ki - t_i)^2 exp(-2 s_ki) - sum_i s_ki - n/2 log(2 pi)
 *   r_k  = softmax_k(log pi_k + q_k), the responsibilities
 *
 *   dnll/dx_ki    = r_k exp(-2 s_ki) (x_ki - t_i)
 *   dnll/ds_ki    = r_k (1 - (x_ki - t_i)^2 exp(-2 s_ki))      summed over the batch
 *   dnll/dlogit_k = pi_k - r_k
 *
 * The likelihood is computed for latents (t = z) and for trajectories (t = future). s is the
 * logarithm of a standard deviation: a constant of the objective, one learned number, or one
 * learned number per branch and dimension.
 *
 *   usage = sum_k m_k log(max(K m_k, 1e-12)),  m = mean of pi over the batch
 *
 * Shapes  x (K,n)  s (1) or (K,n)  t (n)
 * Cache   io->resp_z, io->resp_y (B,K): r; io->usage (K): m
 * Order   The scenes of a range share the exponentials of a chunk of dimensions. A scene's sums run
 *         over the chunks in order, so the result does not depend on the range.
 * Test    tests/objective/test_mixture.c           Derivation  docs/layers/mixture.md
 */
#include <math.h>
#include <string.h>

#include "objective/parts.h"

enum { CHUNK = 64 };

/* Latents or trajectories of a batch. */
typedef struct space {
    int K, n;
    size_t stride; /* row stride of x and dx */
    size_t target_stride;
    const bj_real *x;         /* (B,K,n) */
    const bj_real *target;    /* (B,n) */
    const bj_real *log_scale; /* (1) or (K,n), NULL if fixed */
    int per_component;
    double fixed; /* log of the fixed scale */
    double *resp; /* (B,K) */
} space;

static space latent_space(const bj_objective *objective, const bj_objective_io *io) {
    return (space){.K = io->K,
                   .n = io->D,
                   .stride = io->ldu,
                   .target_stride = io->ldu,
                   .x = io->u,
                   .target = io->z,
                   .log_scale = io->log_sz,
                   .per_component = io->scales == BJ_SCALES_COMPONENT,
                   .fixed = log(objective->sigma_z),
                   .resp = io->resp_z};
}

static space decoded_space(const bj_objective *objective, const bj_objective_io *io) {
    return (space){.K = io->K,
                   .n = 2 * io->F,
                   .stride = io->ldy,
                   .target_stride = 2 * (size_t)io->F,
                   .x = io->y,
                   .target = io->future,
                   .log_scale = io->log_sy,
                   .per_component = io->scales == BJ_SCALES_COMPONENT,
                   .fixed = log(objective->sigma_y),
                   .resp = io->resp_y};
}

/* Computes the inverse variances of dimensions [i0, i0 + n) for branch k. Returns the sum of their
 * log scales. */
static double chunk_scales(bj_real inverse[CHUNK], const space *s, int k, int i0, int n) {
    double sum = 0;
    if (s->log_scale && s->per_component) {
        const bj_real *log_scale = s->log_scale + (size_t)k * s->n + i0;
        for (int i = 0; i < n; i++) {
            inverse[i] = (bj_real)exp(-2.0 * log_scale[i]);
            sum += log_scale[i];
        }
    } else {
        const double log_scale = s->log_scale ? s->log_scale[0] : s->fixed;
        const bj_real value = (bj_real)exp(-2 * log_scale);
        for (int i = 0; i < n; i++) inverse[i] = value;
        sum = n * log_scale;
    }
    return sum;
}

static double chunk_squares(const bj_real *x, const bj_real *t, const bj_real *inverse, int n) {
    enum { LANES = 8 };
    bj_real lane[LANES] = {0};
    double sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const bj_real e = x[i + j] - t[i + j];
            lane[j] += e * e * inverse[i + j];
        }
    for (int j = 0; j < LANES; j++) sum += lane[j];
    for (; i < n; i++) {
        const double e = (double)x[i] - t[i];
        sum += e * e * inverse[i];
    }
    return sum;
}

/* Fills the rows of resp with r, and the terms with nll. */
static void space_forward(const space *s, bj_objective_io *io, int term, int b0, int b1) {
    const double log_2pi = 1.8378770664093454836;
    for (int b = b0; b < b1; b++)
        bj_router_log_weights(s->resp + (size_t)b * s->K,
                              io->logits ? io->logits + (size_t)b * s->K : NULL, s->K);
    for (int k = 0; k < s->K; k++)
        for (int i0 = 0; i0 < s->n; i0 += CHUNK) {
            bj_real inverse[CHUNK];
            const int n = s->n - i0 < CHUNK ? s->n - i0 : CHUNK;
            const double log_scales = chunk_scales(inverse, s, k, i0, n);
            for (int b = b0; b < b1; b++) {
                const bj_real *x = s->x + ((size_t)b * s->K + k) * s->stride + i0;
                const bj_real *t = s->target + (size_t)b * s->target_stride + i0;
                s->resp[(size_t)b * s->K + k] -=
                    0.5 * chunk_squares(x, t, inverse, n) + log_scales + 0.5 * n * log_2pi;
            }
        }
    for (int b = b0; b < b1; b++) {
        double *resp = s->resp + (size_t)b * s->K;
        io->terms[(size_t)b * BJ_TERMS + term] = -bj_log_sum_exp(resp, s->K);
        bj_softmax(resp, resp, s->K);
    }
}

void bj_mixture_forward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const space latent = latent_space(objective, io), decoded = decoded_space(objective, io);
    space_forward(&latent, io, BJ_TERM_LATENT, b0, b1);
    if (io->F) space_forward(&decoded, io, BJ_TERM_DECODED, b0, b1);
}

double bj_mixture_usage(double *usage, const bj_real *logits, int B, int K) {
    double sum[BJ_SHARDS][BJ_MAX_ATOMS] = {{0}}, penalty = 0;
    for (int s = 0; s < BJ_SHARDS; s++)
        for (int b = bj_shard_begin(B, s); b < bj_shard_begin(B, s + 1); b++) {
            /* recompute the weights in double, because if the usage is nearly balanced, the
             * rounding error of io->pi is as large as the penalty */
            double pi[BJ_MAX_ATOMS];
            bj_router_log_weights(pi, logits ? logits + (size_t)b * K : NULL, K);
            for (int k = 0; k < K; k++) sum[s][k] += exp(pi[k]);
        }
    bj_shards_fold(&sum[0][0], K, BJ_MAX_ATOMS);
    for (int k = 0; k < K; k++) {
        usage[k] = sum[0][k] / B;
        penalty += usage[k] * log(usage[k] * K < 1e-12 ? 1e-12 : usage[k] * K);
    }
    return penalty;
}

void bj_mixture_couple(bj_objective_io *io) {
    bj_mixture_usage(io->usage, io->logits, io->B, io->K);
}

/* Computes dx = dnll * dnll/dx for scenes [b0,b1). Overwrites dx. */
static void space_backward(bj_real *dx, double dnll, const space *s, int b0, int b1) {
    if (dnll == 0) {
        bj_rows_clear(dx + (size_t)b0 * s->K * s->stride, (b1 - b0) * s->K, s->n, s->stride);
        return;
    }
    for (int k = 0; k < s->K; k++)
        for (int i0 = 0; i0 < s->n; i0 += CHUNK) {
            bj_real inverse[CHUNK];
            const int n = s->n - i0 < CHUNK ? s->n - i0 : CHUNK;
            chunk_scales(inverse, s, k, i0, n);
            for (int b = b0; b < b1; b++) {
                const size_t row = ((size_t)b * s->K + k) * s->stride + i0;
                const bj_real *restrict x = s->x + row;
                const bj_real *restrict t = s->target + (size_t)b * s->target_stride + i0;
                bj_real *restrict dx_bk = dx + row;
                const bj_real c = (bj_real)(dnll * s->resp[(size_t)b * s->K + k]);
                for (int i = 0; i < n; i++) dx_bk[i] = c * inverse[i] * (x[i] - t[i]);
            }
        }
}

void bj_mixture_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const bj_term_weights weight = bj_objective_weights(objective);
    const unsigned reach = bj_objective_reach_step(objective, io);
    const space latent = latent_space(objective, io), decoded = decoded_space(objective, io);
    const int K = io->K;
    if (io->du && (reach & BJ_REACH_ATOMS))
        space_backward(io->du, weight.latent / io->B, &latent, b0, b1);
    if (io->dy && (reach & BJ_REACH_DECODER))
        space_backward(io->dy, weight.decoded / io->B, &decoded, b0, b1);
    if (!io->dlogits || !(reach & BJ_REACH_ROUTER)) return;
    double dusage[BJ_MAX_ATOMS] = {0};
    if (weight.usage != 0)
        /* forward: penalty += m_k log(max(K m_k, 1e-12)); below the clamp the logarithm is
         * constant */
        for (int k = 0; k < K; k++) {
            const double share = io->usage[k] * K;
            dusage[k] = weight.usage * (share < 1e-12 ? log(1e-12) : log(share) + 1);
        }
    for (int b = b0; b < b1; b++) {
        const bj_real *pi = io->pi + (size_t)b * K;
        const double *r_z = io->resp_z + (size_t)b * K, *r_y = io->resp_y + (size_t)b * K;
        bj_real *dlogits = io->dlogits + (size_t)b * K;
        double mean = 0;
        for (int k = 0; k < K; k++) mean += pi[k] * dusage[k];
        for (int k = 0; k < K; k++) {
            double d = pi[k] * (dusage[k] - mean);
            /* forward: nll = - lse_k(log pi_k + q_k) */
            if (weight.latent != 0) d += weight.latent * (pi[k] - r_z[k]);
            if (weight.decoded != 0) d += weight.decoded * (pi[k] - r_y[k]);
            dlogits[k] = (bj_real)(d / io->B);
        }
    }
}

/* Computes dlog_scale from batch sums in shards, column by column. Overwrites dlog_scale. */
static void scales_backward(bj_real *dlog_scale, double dnll, const space *s, int B) {
    double total = 0;
    for (int k = 0; k < s->K; k++)
        for (int i0 = 0; i0 < s->n; i0 += CHUNK) {
            bj_real inverse[CHUNK];
            double sum[BJ_SHARDS][CHUNK];
            const int n = s->n - i0 < CHUNK ? s->n - i0 : CHUNK;
            chunk_scales(inverse, s, k, i0, n);
            memset(sum, 0, sizeof sum);
            for (int shard = 0; shard < BJ_SHARDS; shard++)
                for (int b = bj_shard_begin(B, shard); b < bj_shard_begin(B, shard + 1); b++) {
                    const bj_real *x = s->x + ((size_t)b * s->K + k) * s->stride + i0;
                    const bj_real *t = s->target + (size_t)b * s->target_stride + i0;
                    const double r = s->resp[(size_t)b * s->K + k];
                    for (int i = 0; i < n; i++) {
                        /* forward: q_k -= (x - t)^2 exp(-2 s) / 2 + s */
                        const bj_real e = x[i] - t[i];
                        sum[shard][i] += r * (1 - (double)(e * e * inverse[i]));
                    }
                }
            bj_shards_fold(&sum[0][0], n, CHUNK);
            for (int i = 0; i < n; i++) {
                total += sum[0][i];
                if (s->per_component)
                    dlog_scale[(size_t)k * s->n + i0 + i] = (bj_real)(dnll * sum[0][i]);
            }
        }
    if (!s->per_component) dlog_scale[0] = (bj_real)(dnll * total);
}

void bj_mixture_finish(const bj_objective *objective, bj_objective_io *io) {
    const bj_term_weights weight = bj_objective_weights(objective);
    const unsigned reach = bj_objective_reach_step(objective, io);
    const space latent = latent_space(objective, io), decoded = decoded_space(objective, io);
    if (io->dlog_sz && (reach & BJ_REACH_SCALE_Z))
        scales_backward(io->dlog_sz, weight.latent / io->B, &latent, io->B);
    if (io->dlog_sy && (reach & BJ_REACH_SCALE_Y))
        scales_backward(io->dlog_sy, weight.decoded / io->B, &decoded, io->B);
}
