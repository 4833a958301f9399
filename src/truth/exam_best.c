/* exam_best.c - finds the K weighted atoms closest to a law by direct optimization.
 *
 * Minimizes f = sum_k p_k a_k - 1/2 sum_kl p_k p_l d(y_k,y_l) with a_k =
 * sum_j q_j d(y_k,Y_j) over draws Y_j of the law with weights q_j = w_m /
 * draws of m. Two steps alternate. Neither can increase f:
 *
 *   atoms    d(y,Y) is bounded above by a parabola that touches it, and -d(y_k,y_l) by its tangent.
 *            The sum of these bounds has its minimum at
 *              y_k <- (sum_j q_j/d_kj Y_j + sum_l p_l (y_k - y_l)/d_kl) / sum_j q_j/d_kj
 *            The fixed points of this update are the stationary points of f.
 *   weights  f is a convex quadratic function of p on the simplex. Mass is moved between pairs of
 *            atoms, each time to the minimum along that direction.
 *
 * The search has three starts. The first one uses the true modes. If there are more than K modes,
 * those with the largest weights are used. If there are fewer, modes with large weights get several
 * atoms. The other two are k-means clusterings of the draws. The start with the lowest f on a
 * second, larger set of draws is refined on that set. This is a local search, so the result is an
 * upper bound on the optimum.
 * Test  tests/truth/test_exam_best.c
 */
#include <math.h>
#include <string.h>

#include "core/rng.h"
#include "truth/exam.h"

enum { ROW = BJ_EXAM_ROW, STARTS = 3, LLOYD = 5, SWEEPS = 4 };
enum { FEW = 256, MANY = 2048 }; /* number of draws over all modes in the first and in the second
                                    search */
enum { FEW_ROUNDS = 150, MANY_ROUNDS = 40 }; /* max number of rounds */
#define NEAR 1e-3   /* lower bound on distances in m, so that no atom gets stuck at a draw */
#define ENOUGH 1e-6 /* the search ends after a round in which the relative improvement of f is
                       smaller */

typedef struct search {
    const bj_law_scene *law;
    int K, J, n;          /* J draws in total, n per mode */
    double *draws, *q;    /* (J,ROW), (J) */
    double *p, *y, *next; /* (K), (K,ROW) */
    double *distance;     /* (K,J) */
    double *a, *pair;     /* (K), (K,K) */
    double *ends;         /* (STARTS,K + K ROW) results of the starts */
} search;

/* Returns the number of draws for a mode, which is even and at least all / 16. */
static int draws_of(int modes, int all) {
    const int n = all / modes / 2 * 2;
    return n < all / 16 ? all / 16 : n;
}

size_t bj_exam_best_work(int modes, int K) {
    const size_t k = (size_t)K, J = modes > 16 ? (size_t)modes * (MANY / 16) : MANY;
    return J * ROW + J + k + 2 * k * ROW + k * J + k + k * k + STARTS * k * (ROW + 1);
}

static void lay_out(search *s, double *work) {
    const size_t K = (size_t)s->K, J = (size_t)(s->law->modes * draws_of(s->law->modes, MANY));
    s->draws = work;
    s->q = s->draws + J * ROW;
    s->p = s->q + J;
    s->y = s->p + K;
    s->next = s->y + K * ROW;
    s->distance = s->next + K * ROW;
    s->a = s->distance + K * J;
    s->pair = s->a + K;
    s->ends = s->pair + K * K;
}

/* Draws the samples to fit. The second half of a mode's draws is the first half mirrored at the
 * mean. Because the noise is symmetric, a symmetric sample needs fewer draws for the same
 * accuracy. */
static void take_draws(search *s, int all, uint64_t seed, const char *purpose) {
    s->n = draws_of(s->law->modes, all);
    s->J = s->law->modes * s->n;
    bj_exam_draw(s->draws, s->law, s->n, seed, purpose);
    for (int j = 0; j < s->J; j++) s->q[j] = s->law->weights[j / s->n] / s->n;
    for (int m = 0; m < s->law->modes; m++) {
        const float *mean = s->law->means + (size_t)m * ROW;
        double *first = s->draws + (size_t)m * (size_t)s->n * ROW;
        double *second = first + (size_t)(s->n / 2) * ROW;
        for (int i = 0; i < s->n / 2 * ROW; i++) second[i] = 2 * (double)mean[i % ROW] - first[i];
    }
}

/* ----------------------------------------------------------------------------------- objective */

/* Computes distance, a and pair. Returns f. */
static double objective(search *s) {
    double f = 0;
    for (int k = 0; k < s->K; k++) {
        const double *y_k = s->y + (size_t)k * ROW;
        s->a[k] = 0;
        for (int j = 0; j < s->J; j++) {
            const double d = bj_exam_distance(y_k, s->draws + (size_t)j * ROW);
            s->distance[(size_t)k * (size_t)s->J + (size_t)j] = d;
            s->a[k] += s->q[j] * d;
        }
        f += s->p[k] * s->a[k];
        s->pair[k * s->K + k] = 0;
        for (int l = 0; l < k; l++) {
            const double d = bj_exam_distance(y_k, s->y + (size_t)l * ROW);
            s->pair[k * s->K + l] = s->pair[l * s->K + k] = d;
            f -= s->p[k] * s->p[l] * d;
        }
    }
    return f;
}

static double slope(const search *s, int k) {
    double g = s->a[k];
    for (int l = 0; l < s->K; l++) g -= s->pair[k * s->K + l] * s->p[l];
    return g;
}

static void move_weights(search *s) {
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int k = 0; k < s->K; k++)
            for (int l = 0; l < k; l++) {
                /* f(p + t (e_k - e_l)) = f + t (g_k - g_l) + t^2 d_kl */
                const double d = s->pair[k * s->K + l], g = slope(s, k) - slope(s, l);
                double t = d > 0 ? -g / (2 * d) : 0;
                if (t < -s->p[k]) t = -s->p[k];
                if (t > s->p[l]) t = s->p[l];
                s->p[k] += t;
                s->p[l] -= t;
            }
}

static double far(double d) { return d > NEAR ? d : NEAR; }

static void move_atoms(search *s) {
    for (int k = 0; k < s->K; k++) {
        const double *y_k = s->y + (size_t)k * ROW;
        double *const to = s->next + (size_t)k * ROW, total = 0;
        memset(to, 0, ROW * sizeof *to);
        for (int j = 0; j < s->J; j++) {
            const double c = s->q[j] / far(s->distance[(size_t)k * (size_t)s->J + (size_t)j]);
            const double *draw = s->draws + (size_t)j * ROW;
            for (int i = 0; i < ROW; i++) to[i] += c * draw[i];
            total += c;
        }
        for (int l = 0; l < s->K; l++) {
            if (l == k || !(s->p[l] > 0)) continue;
            const double c = s->p[l] / far(s->pair[k * s->K + l]);
            const double *y_l = s->y + (size_t)l * ROW;
            for (int i = 0; i < ROW; i++) to[i] += c * (y_k[i] - y_l[i]);
        }
        for (int i = 0; i < ROW; i++) to[i] /= total;
    }
    double *const old = s->y;
    s->y = s->next;
    s->next = old;
}

static void descend(search *s, int rounds) {
    double f = objective(s);
    move_weights(s);
    for (int round = 0; round < rounds; round++) {
        move_atoms(s);
        const double now = objective(s);
        move_weights(s);
        if (!(f - now > ENOUGH * f)) break;
        f = now;
    }
}

/* -------------------------------------------------------------------------------------- starts */

static void start_at_modes(search *s) {
    int share[BJ_EXAM_MODES] = {0};
    const bj_law_scene *law = s->law;
    if (s->K < law->modes) {
        bj_exam_truncate(s->p, s->y, s->K, law);
        return;
    }
    for (int k = 0; k < s->K; k++) { /* one atom per mode first, then additional atoms by weight */
        int m = 0;
        for (int n = 0; n < law->modes; n++)
            if (k < law->modes ? n == k : law->weights[n] / share[n] > law->weights[m] / share[m])
                m = n;
        share[m]++;
    }
    for (int m = 0, k = 0; m < law->modes; m++)
        for (int i = 0; i < share[m]; i++, k++) {
            double *y = s->y + (size_t)k * ROW;
            s->p[k] = law->weights[m] / share[m];
            if (i == 0)
                for (int c = 0; c < ROW; c++)
                    y[c] = (double)law->means[(size_t)m * ROW + (size_t)c];
            else
                memcpy(y, s->draws + ((size_t)m * (size_t)s->n + (size_t)(i % s->n)) * ROW,
                       ROW * sizeof *y);
        }
}

static int pick(const double *weights, int n, double total, bj_rng *rng) {
    double u = bj_rng_uniform(rng) * total;
    int j = 0;
    while (j + 1 < n && (u -= weights[j]) >= 0) j++;
    return j;
}

/* Starts from k-means clusters, computed by k-means++ seeding and Lloyd iterations. Uses `distance`
 * as scratch memory. */
static void start_at_clusters(search *s, bj_rng *rng) {
    double *const nearest = s->distance; /* (J) q_j times the squared
                                            distance to the nearest center */
    for (int j = 0; j < s->J; j++) nearest[j] = s->q[j];
    for (int k = 0; k < s->K; k++) {
        double total = 0;
        for (int j = 0; j < s->J; j++) total += nearest[j];
        double *y = s->y + (size_t)k * ROW;
        memcpy(y, s->draws + (size_t)pick(nearest, s->J, total, rng) * ROW, ROW * sizeof *y);
        for (int j = 0; j < s->J; j++) {
            const double d = bj_exam_distance(y, s->draws + (size_t)j * ROW);
            const double cost = s->q[j] * d * d;
            if (k == 0 || cost < nearest[j]) nearest[j] = cost;
        }
    }
    for (int round = 0; round < LLOYD; round++) {
        memset(s->next, 0, (size_t)s->K * ROW * sizeof *s->next);
        for (int k = 0; k < s->K; k++) s->p[k] = 0;
        for (int j = 0; j < s->J; j++) {
            const double *draw = s->draws + (size_t)j * ROW;
            double least = INFINITY;
            int to = 0;
            for (int k = 0; k < s->K; k++) {
                const double d = bj_exam_distance(s->y + (size_t)k * ROW, draw);
                if (d < least) least = d, to = k;
            }
            s->p[to] += s->q[j];
            double *sum = s->next + (size_t)to * ROW;
            for (int i = 0; i < ROW; i++) sum[i] += s->q[j] * draw[i];
        }
        for (int k = 0; k < s->K; k++)
            if (s->p[k] > 0)
                for (int i = 0; i < ROW; i++)
                    s->y[(size_t)k * ROW + (size_t)i] =
                        s->next[(size_t)k * ROW + (size_t)i] / s->p[k];
    }
}

/* -------------------------------------------------------------------------------------- search */

static void store(double *end, const search *s) {
    memcpy(end, s->p, (size_t)s->K * sizeof *end);
    memcpy(end + s->K, s->y, (size_t)s->K * ROW * sizeof *end);
}

static void restore(search *s, const double *end) {
    memcpy(s->p, end, (size_t)s->K * sizeof *end);
    memcpy(s->y, end + s->K, (size_t)s->K * ROW * sizeof *end);
}

void bj_exam_best(double *p, double *y, int K, const bj_law_scene *law, uint64_t seed,
                  double *work) {
    search s = {.law = law, .K = K};
    bj_rng rng = bj_rng_named(seed, law->scenario_id);
    const size_t size = (size_t)K * (ROW + 1); /* size of one result */
    double lowest = INFINITY, sum = 0;
    int best = 0;
    lay_out(&s, work);
    take_draws(&s, FEW, seed, "search");
    for (int start = 0; start < STARTS; start++) {
        if (start == 0) start_at_modes(&s);
        else start_at_clusters(&s, &rng);
        descend(&s, FEW_ROUNDS);
        store(s.ends + (size_t)start * size, &s);
    }
    take_draws(&s, MANY, seed, "refinement");
    for (int start = 0; start < STARTS; start++) {
        restore(&s, s.ends + (size_t)start * size);
        const double f = objective(&s);
        if (f < lowest) lowest = f, best = start;
    }
    restore(&s, s.ends + (size_t)best * size);
    descend(&s, MANY_ROUNDS);
    for (int k = 0; k < K; k++) sum += s.p[k];
    for (int k = 0; k < K; k++) p[k] = s.p[k] / sum;
    memcpy(y, s.y, (size_t)K * ROW * sizeof *y);
}
