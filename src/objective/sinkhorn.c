/* sinkhorn.c - balanced entropic assignment of a batch of scenes to K branches.
 *
 *   plan = diag(exp u) exp(-cost/eps) diag(exp v),  rows sum to 1/B, columns to 1/K:
 *   u_b = -log B - lse_k(-cost_bk/eps + v_k)
 *   v_k = -log K - lse_b(-cost_bk/eps + u_b)        repeated `iters` times, from u = v = 0
 * Every row is then scaled to sum to 1, which gives softmax_k(-cost_bk/eps + v_k).
 *
 * All computations are in the log domain, because costs in meters divided by eps = .1 lead to
 * exponents in the thousands. Only v is stored, because u_b follows from v. The column sums run
 * over the batch with a streaming log-sum-exp in each shard. The shards are merged in the tree of
 * core/shards.h.
 *
 * Shapes  cost (B,K), overwritten by the plan
 * Test    tests/objective/test_sinkhorn.c
 */
#include <math.h>

#include "objective/parts.h"

/* Represents exp(max) * sum. */
typedef struct log_sum {
    double max, sum;
} log_sum;

static void log_sum_add(log_sum *a, double max, double sum) {
    if (max > a->max) {
        a->sum = a->sum * exp(a->max - max) + sum;
        a->max = max;
    } else if (sum != 0) { /* an empty shard has max = -infinity and adds nothing */
        a->sum += sum * exp(max - a->max);
    }
}

void bj_sinkhorn_plan(double *cost, int B, int K, double eps, int iters) {
    double v[BJ_MAX_ATOMS] = {0}, row[BJ_MAX_ATOMS];
    const double log_B = log(B), log_K = log(K);
    for (size_t i = 0; i < (size_t)B * K; i++) cost[i] /= -eps;
    for (int i = 0; i < iters; i++) {
        log_sum column[BJ_SHARDS][BJ_MAX_ATOMS];
        for (int s = 0; s < BJ_SHARDS; s++) {
            for (int k = 0; k < K; k++) column[s][k] = (log_sum){-HUGE_VAL, 0};
            for (int b = bj_shard_begin(B, s); b < bj_shard_begin(B, s + 1); b++) {
                const double *gain = cost + (size_t)b * K;
                for (int k = 0; k < K; k++) row[k] = gain[k] + v[k];
                const double u = -log_B - bj_log_sum_exp(row, K);
                for (int k = 0; k < K; k++) log_sum_add(&column[s][k], gain[k] + u, 1);
            }
        }
        for (int width = 1; width < BJ_SHARDS; width *= 2)
            for (int s = 0; s < BJ_SHARDS; s += 2 * width)
                for (int k = 0; k < K; k++)
                    log_sum_add(&column[s][k], column[s + width][k].max, column[s + width][k].sum);
        for (int k = 0; k < K; k++) v[k] = -log_K - column[0][k].max - log(column[0][k].sum);
    }
    for (int b = 0; b < B; b++) {
        double *plan_b = cost + (size_t)b * K;
        for (int k = 0; k < K; k++) plan_b[k] += v[k];
        bj_softmax(plan_b, plan_b, K);
    }
}
