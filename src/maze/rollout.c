/* rollout.c - see rollout.h. */
#include "maze/rollout.h"

#include <math.h>
#include <stddef.h>
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
            const bj_real *u = r->latents + (h - 1) * r->stride + l * D;
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

/* ---------------------------------------------------------------------------------------- names */

static const struct {
    const char *name;
    size_t offset;
} values[] = {
#define VALUE(field)                                                                               \
    { #field, offsetof(bj_rollout_step, field) }
    VALUE(distance),   VALUE(best_distance), VALUE(hit),        VALUE(hit_mass),
    VALUE(error),      VALUE(best_error),    VALUE(wall_mass),  VALUE(probe_error),
    VALUE(probe_wall), VALUE(stay_distance), VALUE(stay_error),
#undef VALUE
};
enum { VALUES = sizeof values / sizeof *values };
_Static_assert(VALUES * sizeof(double) == sizeof(bj_rollout_step), "every number has a name");

const char *bj_rollout_name(int index) {
    return index >= 0 && index < VALUES ? values[index].name : NULL;
}

double bj_rollout_value(const bj_rollout_step *step, int index) {
    double value;
    memcpy(&value, (const char *)step + values[index].offset, sizeof value);
    return value;
}

void bj_rollout_mean(bj_rollout_step *sums, int H, int64_t contexts) {
    for (int h = 0; h < H; h++)
        for (int i = 0; i < VALUES; i++) {
            const double mean = bj_rollout_value(&sums[h], i) / (double)contexts;
            memcpy((char *)&sums[h] + values[i].offset, &mean, sizeof mean);
        }
}
