/* winner.c - the winner-takes-all family: specialization, soft-WTA, partial Sinkhorn.
 *
 *   latent  = sum_k p_k d_z(u_k, z)     decoded = sum_k p_k d_y(y_k, future)
 *   router  = - sum_k q_k log pi_k
 *
 *                    plan p                              label q
 *   specialization   one at the winner                   p
 *   soft-WTA         softmax(-d_y / tau)                 p
 *   Sinkhorn         (1-rho) winner + rho balanced       one at the winner
 *
 * The winner is the first branch with the smallest d_y. Without a decoder, d_z replaces d_y in plan
 * and label, and there is no decoded term. The gradient treats plan and label as constants:
 *   dlatent/du_k = p_k dd_z/du_k,  ddecoded/dy_k = p_k dd_y/dy_k,  drouter/dlogits = pi - q
 *
 * Shapes  u (L,D)  y (K,2F)  pi (K)
 * Cache   io->dist (B,K): d_y. For Sinkhorn, bj_winner_couple replaces it with the plan and fills
 *         the latent and decoded terms.
 * Test    tests/objective/test_winner.c            Derivation  docs/layers/winner.md
 */
#include <math.h>

#include "objective/parts.h"

static int winner_of(const double *dist, int K) {
    int winner = 0;
    for (int k = 1; k < K; k++)
        if (dist[k] < dist[winner]) winner = k; /* the first branch wins a tie */
    return winner;
}

static void one_hot(double *p, const double *dist, int K) {
    const int winner = winner_of(dist, K);
    for (int k = 0; k < K; k++) p[k] = k == winner;
}

static void soft_plan(double *p, const double *dist, int K, double tau) {
    for (int k = 0; k < K; k++) p[k] = -dist[k] / tau;
    bj_softmax(p, p, K);
}

/* Computes q, as defined in the table above, from the distances. Except for Sinkhorn, p equals
 * q. */
static void label_of(double *q, const bj_objective *objective, const double *dist, int K) {
    if (objective->kind == BJ_SOFTWTA) soft_plan(q, dist, K, objective->tau);
    else one_hot(q, dist, K);
}

/* Returns the points that determine the winner: trajectories, or latents if the model has no
 * decoder. */
static bj_points deciding(const bj_objective *objective, const bj_objective_io *io, int b) {
    return io->F ? bj_points_decoded(objective, io, b) : bj_points_latent(io, b);
}

static void decoded_distances(double *dist, const bj_points *decoded) {
    for (int k = 0; k < decoded->K; k++) dist[k] = bj_points_to_target(decoded, k);
}

/* Returns sum_k p_k d(k,target). Skips branches with p_k = 0. */
static double plan_distance(const double *p, const bj_points *points) {
    double sum = 0;
    for (int k = 0; k < points->K; k++)
        if (p[k] != 0) sum += p[k] * bj_points_to_target(points, k);
    return sum;
}

static double dot(const double *p, const double *dist, int K) {
    double sum = 0;
    for (int k = 0; k < K; k++) sum += p[k] * dist[k];
    return sum;
}

void bj_winner_forward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const int K = io->K;
    for (int b = b0; b < b1; b++) {
        double *term = io->terms + (size_t)b * BJ_TERMS, *dist = io->dist + (size_t)b * K;
        double label[BJ_MAX_ATOMS], log_pi[BJ_MAX_ATOMS];
        const bj_points decoded = deciding(objective, io, b);
        decoded_distances(dist, &decoded);
        label_of(label, objective, dist, K);
        if (io->winner) io->winner[b] = winner_of(dist, K);
        bj_router_log_weights(log_pi, io->logits ? io->logits + (size_t)b * K : NULL, K);
        term[BJ_TERM_ROUTER] = 0 - dot(label, log_pi, K);
        if (objective->kind != BJ_SINKHORN) {
            const bj_points latent = bj_points_latent(io, b);
            term[BJ_TERM_LATENT] = plan_distance(label, &latent);
            if (io->F) term[BJ_TERM_DECODED] = dot(label, dist, K);
        } else { /* a provisional value that bj_winner_couple uses to check that the distances are
                    finite */
            for (int k = 0; k < K; k++) term[BJ_TERM_DECODED] += dist[k];
        }
    }
}

void bj_winner_couple(const bj_objective *objective, bj_objective_io *io) {
    const int K = io->K;
    const double rho = objective->rho;
    if (objective->kind != BJ_SINKHORN) return;
    /* Skip the plan if a scene's distances are not finite. Otherwise all rows of the plan would be
     * invalid, and the error message could not name the scene. */
    for (int b = 0; b < io->B; b++)
        if (!isfinite(io->terms[(size_t)b * BJ_TERMS + BJ_TERM_DECODED])) return;
    bj_sinkhorn_plan(io->dist, io->B, K, objective->eps, objective->sinkhorn_iters);
    for (int b = 0; b < io->B; b++) {
        double *term = io->terms + (size_t)b * BJ_TERMS, *plan = io->dist + (size_t)b * K;
        double dist[BJ_MAX_ATOMS];
        const bj_points latent = bj_points_latent(io, b);
        const bj_points decoded = bj_points_decoded(objective, io, b);
        decoded_distances(dist, &decoded);
        const int winner = winner_of(dist, K);
        for (int k = 0; k < K; k++) plan[k] = (k == winner ? 1 - rho : 0) + rho * plan[k];
        term[BJ_TERM_LATENT] = plan_distance(plan, &latent);
        term[BJ_TERM_DECODED] = dot(plan, dist, K);
    }
}

/* Computes dx = dloss * p_k dd(k,target)/dx_k. */
static void plan_backward(bj_real *dx, double dloss, const double *p, const bj_points *points) {
    double reach[BJ_MAX_ATOMS];
    for (int k = 0; k < points->K; k++) {
        const double d = p[k] == 0 || dloss == 0 ? 0 : bj_points_to_target(points, k);
        reach[k] = d == 0 ? 0 : dloss * p[k] / d;
    }
    bj_points_gradient_target(dx, reach, points);
}

void bj_winner_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const bj_term_weights weight = bj_objective_weights(objective);
    const unsigned reach = bj_objective_reach_step(objective, io);
    const int K = io->K;
    for (int b = b0; b < b1; b++) {
        const double *cache = io->dist + (size_t)b * K;
        const bj_points latent = bj_points_latent(io, b);
        const bj_points decoded = deciding(objective, io, b);
        double label[BJ_MAX_ATOMS], dist[BJ_MAX_ATOMS];
        const double *plan = label;
        if (objective->kind == BJ_SINKHORN) { /* the cache contains the plan now */
            plan = cache;
            decoded_distances(dist, &decoded);
            cache = dist;
        }
        label_of(label, objective, cache, K);
        if (io->du && (reach & BJ_REACH_ATOMS))
            plan_backward(io->du + (size_t)b * io->L * io->ldu, weight.latent / io->B, plan,
                          &latent);
        if (io->dy && (reach & BJ_REACH_DECODER))
            plan_backward(io->dy + (size_t)b * K * io->ldy, weight.decoded / io->B, plan, &decoded);
        if (io->dlogits && (reach & BJ_REACH_ROUTER)) {
            /* forward: router = - sum_k q_k log pi_k, and q sums to 1 */
            const bj_real *pi = io->pi + (size_t)b * K;
            bj_real *dlogits = io->dlogits + (size_t)b * K;
            for (int k = 0; k < K; k++)
                dlogits[k] = (bj_real)(weight.router / io->B * (pi[k] - label[k]));
        }
    }
}
