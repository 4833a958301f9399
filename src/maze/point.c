/* point.c - the point agent of OGBench, a ball that slides on a plane between boxes.
 *
 * A step sets the position x to x + 0.2 a and the velocity to 0, then lets MuJoCo's dynamics run
 * for five substeps of h = 0.02 s. Nothing moves on free floor; in contact the ball is pushed out:
 *
 *   contact     a wall square nearer than the radius r = 0.7: depth p = |x - q| - r < 0, q its
 * closest point, n = (x - q) / |x - q| and t across it rows        four to a contact, the edges of
 * the friction pyramid for a friction of 1: J = n + t, n - t, and n twice (the pair along z, which
 * is not free to move) reference   c_i = -b J_i v - k I p    k = 1 / (d T)^2, b = 2 / (d T), d =
 * 0.95, T = 2 h impedance   I(p) from 0.9 at the surface to 0.95 at a depth of 0.001, two parabolas
 *   stiffness   1 / R,  R = 4 w (1 - I) / I,  w = 2 / (3 m): mean inverse mass over three axes
 *   dynamics    acceleration a = argmin  m/2 |a|^2 + sum_i max(0, c_i - J_i a)^2 / (2 R_i)
 *
 * integrated by classic Runge-Kutta of order 4, contacts looked for in every stage. The minimum is
 * found by Newton's method with an exact line search; the cost is quadratic in pieces, so few
 * iterations end at it up to rounding. No depth can exceed 0.29: the center stays outside of walls.
 *
 * Teleporters: an agent within 1.5 of the center of an in cell after its step is moved to the
 * center of one of the out cells, each as likely; what is observed was taken before, so that it
 * shows up there one step later. Success is judged before as well. Tests: tests/maze/test_point.c,
 * and step by step against MuJoCo: tests/maze/peer_point.py
 */
#include <math.h>

#include "core/rng.h"
#include "maze/drive.h"

#define SUBSTEP 0.02
#define DENSITY 100.0
#define MASS (DENSITY * 4.0 / 3.0 * 3.14159265358979323846 * 0.343) /* a ball of 0.7 */
#define WEIGHT (2.0 / 3.0 / MASS)
#define IMPEDANCE_MIN 0.9
#define IMPEDANCE_MAX 0.95
#define IMPEDANCE_DEPTH 0.001
#define TIME (2 * SUBSTEP) /* MuJoCo's 0.02, raised to two substeps */
#define STIFFNESS (1 / (IMPEDANCE_MAX * IMPEDANCE_MAX * TIME * TIME))
#define DAMPING (2 / (IMPEDANCE_MAX * TIME))

enum { SUBSTEPS = 5, CONTACTS = 9, ROWS = 4 * CONTACTS };

typedef struct row {
    double J[2], reference, D; /* D = 1 / R */
} row;

static double impedance(double depth) {
    const double x = depth / IMPEDANCE_DEPTH;
    if (x >= 1) return IMPEDANCE_MAX;
    const double y = x <= 0.5 ? 2 * x * x : 1 - 2 * (1 - x) * (1 - x);
    return IMPEDANCE_MIN + y * (IMPEDANCE_MAX - IMPEDANCE_MIN);
}

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

/* Fills in the constraint rows for the walls near x. Returns their number, at most ROWS. */
static int find_rows(row *rows, const bj_maze *m, const double x[2], const double v[2]) {
    const int i0 = (int)floor((x[1] + 1.5 * BJ_MAZE_UNIT) / BJ_MAZE_UNIT);
    const int j0 = (int)floor((x[0] + 1.5 * BJ_MAZE_UNIT) / BJ_MAZE_UNIT);
    int count = 0;
    for (int i = i0 - 1; i <= i0 + 1; i++)
        for (int j = j0 - 1; j <= j0 + 1; j++) {
            if (i < 0 || j < 0 || i >= m->rows || j >= m->cols) continue;
            if (m->cell_at[i * m->cols + j] >= 0) continue;
            const double cx = BJ_MAZE_UNIT * j - BJ_MAZE_UNIT, cy = BJ_MAZE_UNIT * i - BJ_MAZE_UNIT;
            const double half = BJ_MAZE_UNIT / 2;
            const double dx = x[0] - clamp(x[0], cx - half, cx + half);
            const double dy = x[1] - clamp(x[1], cy - half, cy + half);
            const double distance = sqrt(dx * dx + dy * dy), p = distance - BJ_POINT_RADIUS;
            if (!(p < 0 && distance > 0)) continue;
            const double n[2] = {dx / distance, dy / distance}, I = impedance(-p);
            const double D = I / (4 * WEIGHT * (1 - I));
            for (int k = 0; k < 4; k++) {
                const double side = k == 0 ? 1 : k == 1 ? -1 : 0; /* n + t, n - t, n, n */
                row *r = &rows[count++];
                r->J[0] = n[0] - side * n[1];
                r->J[1] = n[1] + side * n[0];
                r->D = D;
                r->reference = -DAMPING * (r->J[0] * v[0] + r->J[1] * v[1]) - STIFFNESS * I * p;
            }
        }
    return count;
}

/* Computes the slope and the curvature of the cost along s at a + t s. */
static void along(double *slope, double *curvature, const row *rows, int count, const double a[2],
                  const double s[2], double t) {
    const double b[2] = {a[0] + t * s[0], a[1] + t * s[1]};
    *slope = MASS * (b[0] * s[0] + b[1] * s[1]);
    *curvature = MASS * (s[0] * s[0] + s[1] * s[1]);
    for (int k = 0; k < count; k++) {
        const row *r = &rows[k];
        const double miss = r->J[0] * b[0] + r->J[1] * b[1] - r->reference;
        if (miss >= 0) continue;
        const double Js = r->J[0] * s[0] + r->J[1] * s[1];
        *slope += r->D * miss * Js;
        *curvature += r->D * Js * Js;
    }
}

/* Finds the minimum along the descent direction s, starting at a. The slope is increasing and
 * piecewise linear. */
static double search_line(const row *rows, int count, const double a[2], const double s[2]) {
    double low = 0, high = 0, t = 1, slope, curvature;
    for (int k = 0; k < 64; k++) {
        along(&slope, &curvature, rows, count, a, s, t);
        if (slope < 0) low = t;
        else high = t;
        const double next = t - slope / curvature;
        if (next == t || slope == 0) break;
        t = high > 0 && !(next > low && next < high) ? (low + high) / 2 : next;
    }
    return t;
}

static void accelerate(double a[2], const row *rows, int count) {
    a[0] = a[1] = 0;
    for (int iteration = 0; iteration < 30; iteration++) {
        double g[2] = {MASS * a[0], MASS * a[1]}, xx = MASS, xy = 0, yy = MASS;
        for (int k = 0; k < count; k++) {
            const row *r = &rows[k];
            const double miss = r->J[0] * a[0] + r->J[1] * a[1] - r->reference;
            if (miss >= 0) continue;
            g[0] += r->D * miss * r->J[0];
            g[1] += r->D * miss * r->J[1];
            xx += r->D * r->J[0] * r->J[0];
            xy += r->D * r->J[0] * r->J[1];
            yy += r->D * r->J[1] * r->J[1];
        }
        const double det = xx * yy - xy * xy;
        const double s[2] = {(xy * g[1] - yy * g[0]) / det, (xy * g[0] - xx * g[1]) / det};
        const double scale = fabs(a[0]) + fabs(a[1]) + 1e-9;
        if (fabs(s[0]) + fabs(s[1]) <= 1e-13 * scale) break;
        const double t = search_line(rows, count, a, s);
        a[0] += t * s[0];
        a[1] += t * s[1];
    }
}

/* Computes one substep from (x, v) in place. Returns 0 if there is no contact. */
static int substep(double x[2], double v[2], const bj_maze *m) {
    static const double stage[4] = {0, 0.5, 0.5, 1},
                        share[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    double speed[4][2], push[4][2]; /* velocity and acceleration of each stage */
    row rows[ROWS];
    for (int k = 0; k < 4; k++) {
        double y[2];
        for (int d = 0; d < 2; d++) {
            y[d] = x[d] + (k ? SUBSTEP * stage[k] * speed[k - 1][d] : 0);
            speed[k][d] = v[d] + (k ? SUBSTEP * stage[k] * push[k - 1][d] : 0);
        }
        const int count = find_rows(rows, m, y, speed[k]);
        if (!k && !count && v[0] == 0 && v[1] == 0) return 0;
        accelerate(push[k], rows, count);
    }
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 4; k++) {
            x[d] += SUBSTEP * share[k] * speed[k][d];
            v[d] += SUBSTEP * share[k] * push[k][d];
        }
    return 1;
}

void bj_point_step(double xy[2], const bj_maze *maze, const double action[2]) {
    double v[2] = {0, 0};
    for (int d = 0; d < 2; d++) xy[d] += BJ_POINT_STRIDE * clamp(action[d], -1, 1);
    for (int k = 0; k < SUBSTEPS; k++)
        if (!substep(xy, v, maze)) return;
}

/* ---------------------------------------------------------------------------------- environment */

void bj_point_reset(bj_point_env *env, const bj_maze *maze, bj_edge task, bj_rng rng) {
    *env = (bj_point_env){.maze = maze, .rng = rng};
    for (int d = 0; d < 2; d++)
        env->xy[d] = maze->center[2 * task.from + d] + 2 * bj_rng_uniform(&env->rng) - 1;
    for (int d = 0; d < 2; d++)
        env->goal[d] = maze->center[2 * task.to + d] + 2 * bj_rng_uniform(&env->rng) - 1;
    env->observed[0] = env->xy[0];
    env->observed[1] = env->xy[1];
}

int bj_point_act(bj_point_env *env, const double action[2]) {
    const bj_maze *m = env->maze;
    double *xy = env->xy;
    bj_point_step(xy, m, action);
    env->steps++;
    env->observed[0] = xy[0];
    env->observed[1] = xy[1];
    const int reached = hypot(xy[0] - env->goal[0], xy[1] - env->goal[1]) <= BJ_POINT_GOAL;
    for (int k = 0; k < m->in_count; k++) {
        const double *center = m->center + 2 * m->ins[k];
        if (!(hypot(xy[0] - center[0], xy[1] - center[1]) <= BJ_MAZE_TRIGGER)) continue;
        const int out = m->outs[bj_rng_below(&env->rng, (uint64_t)m->out_count)];
        xy[0] = m->center[2 * out];
        xy[1] = m->center[2 * out + 1];
        env->teleports++;
        break;
    }
    return reached;
}
