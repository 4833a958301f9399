/* kinematic.c - rules that do not need a map; see rules.h. */
#include <math.h>
#include <string.h>

#include "rules/rules.h"

enum { F = BJ_SUBMISSION_STEPS, LAST = 49, TURN_STEPS = 10 };
#define DT 0.1 /* s between steps */

void bj_rule_velocity(double *y, const double velocity[2]) {
    for (int t = 0; t < F; t++)
        for (int c = 0; c < 2; c++) y[2 * t + c] = (t + 1) * DT * velocity[c];
}

/* Each position is the end of a chord of the arc. The chord has the length |v| t sin(a) / a and is
 * rotated by a = rate t / 2 from the velocity. */
void bj_rule_turn(double *y, const double velocity[2], double rate) {
    for (int t = 0; t < F; t++) {
        const double time = (t + 1) * DT, a = rate * time / 2;
        const double chord = time * (fabs(a) < 1e-9 ? 1 : sin(a) / a), c = cos(a), s = sin(a);
        y[2 * t] = chord * (c * velocity[0] - s * velocity[1]);
        y[2 * t + 1] = chord * (s * velocity[0] + c * velocity[1]);
    }
}

static const float *row_at(const bj_rule_scene *scene, int step) {
    return scene->focal + (size_t)step * BJ_FOCAL_FEATURES;
}

/* Returns the yaw rate in radians per second, or 0 if fewer than two rows exist. */
static double yaw_rate(const bj_rule_scene *scene) {
    double n = 0, t1 = 0, h1 = 0, tt = 0, th = 0;
    for (int step = LAST - TURN_STEPS + 1; step <= LAST; step++) {
        if (!(scene->focal_valid >> step & 1)) continue;
        const float *row = row_at(scene, step);
        const double t = (step - LAST) * DT, h = atan2((double)row[5], (double)row[4]);
        n++, t1 += t, h1 += h, tt += t * t, th += t * h;
    }
    return n < 2 ? 0 : (n * th - t1 * h1) / (n * tt - t1 * t1);
}

static void one(bj_rule_forecast *out) {
    out->K = 1;
    out->p[0] = 1;
}

/* Speeds close to the current one come first, because equally probable modes are ranked by their
 * order in the file. */
static void spread_speeds(bj_rule_forecast *out, const double velocity[2]) {
    static const double z[BJ_RULE_MODES] = {-0.21042839424792467, 0.21042839424792467,
                                            -0.67448975019608171, 0.67448975019608171,
                                            -1.3829941271006372,  1.3829941271006372};
    out->K = velocity[0] == 0 && velocity[1] == 0 ? 1 : BJ_RULE_MODES;
    for (int k = 0; k < out->K; k++) {
        const double f = 1 + 0.3 * z[k], scaled[2] = {f * velocity[0], f * velocity[1]};
        out->p[k] = 1. / out->K;
        bj_rule_velocity(out->y[k], scaled);
    }
}

bj_status bj_rule_apply(bj_rule_forecast *out, bj_rule rule, bj_lane_rule *lanes,
                        const bj_rule_scene *scene, bj_error *err) {
    const float *last = row_at(scene, LAST);
    const double velocity[2] = {(double)last[2], (double)last[3]};
    switch (rule) {
    case BJ_RULE_VELOCITY_SPREAD: spread_speeds(out, velocity); return BJ_OK;
    case BJ_RULE_TURN:
        one(out);
        bj_rule_turn(out->y[0], velocity, yaw_rate(scene));
        return BJ_OK;
    case BJ_RULE_LANES:
        if (strcmp(scene->focal_type, "pedestrian")) {
            BJ_TRY(bj_lane_rule_forecast(out, lanes, scene, err));
            if (out->K) return BJ_OK;
        }
        break;
    case BJ_RULE_VELOCITY:
    case BJ_RULES: break;
    }
    one(out);
    bj_rule_velocity(out->y[0], velocity);
    return BJ_OK;
}
