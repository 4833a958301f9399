/* rollout.c - see rollout.h. */
#include "maze/rollout.h"

#include <math.h>
#include <string.h>

void bj_rollout_follow(bj_real *latents, const bj_real *candidates, const bj_real *weights, int n,
                       int L, int K, int D) {
    for (size_t i = 0; i < (size_t)n; i++) {
        const bj_real *w = weights + i * (size_t)K;
        int best = 0;
        for (int l = 1; l < L; l++)
            if (w[l] > w[best]) best = l;
        memcpy(latents + i * (size_t)D, candidates + (i * (size_t)L + (size_t)best) * (size_t)D,
               (size_t)D * sizeof *latents);
    }
}

static double distance(const bj_real *a, const bj_real *b, int D) {
    double sum = 0;
    for (int d = 0; d < D; d++)
        sum += ((double)a[d] - (double)b[d]) * ((double)a[d] - (double)b[d]);
    return sqrt(sum);
}

static double cosine(const bj_real *a, const bj_real *b, int D) {
    double sum = 0;
    for (int d = 0; d < D; d++) sum += (double)a[d] * (double)b[d];
    return sum;
}

static double apart(const double a[2], const double b[2]) {
    return hypot(a[0] - b[0], a[1] - b[1]);
}

void bj_rollout_add(bj_rollout_step *sums, double *paths, const bj_rollouts *r,
                    const bj_probe *probe, const bj_maze *maze) {
    const size_t D = (size_t)r->D, L = (size_t)r->L;
    for (size_t h = 1; h <= (size_t)r->H; h++) {
        bj_rollout_step *s = &sums[h - 1];
        const bj_real *z = r->truth + h * D;
        const double *at = r->xy + 2 * h;
        double nearest = INFINITY, least = INFINITY, q[2];
        int hit = 0;
        for (size_t l = 0; l < L; l++) {
            const bj_real *u = r->latents + ((h - 1) * L + l) * D;
            const double mass = (double)r->mass[l], far = distance(u, z, r->D);
            bj_probe_read(q, probe, u);
            const double error = apart(q, at);
            nearest = fmin(nearest, far);
            least = fmin(least, error);
            s->distance += mass * far;
            s->error += mass * error;
            if (cosine(u, z, r->D) > BJ_MAZE_THRESHOLD) {
                hit = 1;
                s->hit_mass += mass;
            }
            if (bj_maze_cell(maze, q[0], q[1]) < 0) s->wall_mass += mass;
            if (paths) memcpy(paths + 2 * ((h - 1) * L + l), q, sizeof q);
        }
        s->hit += hit;
        s->best_distance += nearest;
        s->best_error += least;
        bj_probe_read(q, probe, z);
        s->probe_error += apart(q, at);
        s->probe_wall += bj_maze_cell(maze, q[0], q[1]) < 0;
        s->stay_distance += distance(r->truth, z, r->D);
        s->stay_error += apart(r->xy, at);
    }
}

void bj_rollout_mean(bj_rollout_step *sums, int H, int64_t contexts) {
    const double n = (double)contexts;
    for (int h = 0; h < H; h++) {
        const bj_rollout_step s = sums[h];
        sums[h] = (bj_rollout_step){
            .distance = s.distance / n,
            .best_distance = s.best_distance / n,
            .hit = s.hit / n,
            .hit_mass = s.hit_mass / n,
            .error = s.error / n,
            .best_error = s.best_error / n,
            .wall_mass = s.wall_mass / n,
            .probe_error = s.probe_error / n,
            .probe_wall = s.probe_wall / n,
            .stay_distance = s.stay_distance / n,
            .stay_error = s.stay_error / n,
        };
    }
}
