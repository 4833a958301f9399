/* truth_case.h - laws in memory with distances that can be calculated by hand. */
#ifndef BJ_TESTS_TRUTH_CASE_H
#define BJ_TESTS_TRUTH_CASE_H

#include <stdlib.h>

#include "support/test.h"
#include "truth/exam.h"

enum { ROW = BJ_EXAM_ROW, CASE_MODES = 8, CASE_FACTORS = 4 };

typedef struct law_case {
    bj_law_scene law;
    double weights[CASE_MODES];
    uint8_t intents[CASE_MODES];
    float means[CASE_MODES * ROW], factor[CASE_MODES * CASE_FACTORS * ROW];
} law_case;

/* Starts a law without noise and with all means at the origin. */
static inline void case_start(law_case *c, const char *id, int modes, int factors) {
    memset(c, 0, sizeof *c);
    c->law = (bj_law_scene){.scenario_id = id,
                            .modes = modes,
                            .factors = factors,
                            .weights = c->weights,
                            .intents = c->intents,
                            .means = c->means,
                            .factor = c->factor};
    for (int m = 0; m < modes; m++) c->weights[m] = 1. / modes;
}

/* Sets every point to (x, y), so that the distance between two rows that differ by (dx, dy) is
 * |(dx, dy)|. */
static inline void case_place(float *row, double x, double y) {
    for (int i = 0; i < ROW; i += 2) row[i] = (float)x, row[i + 1] = (float)y;
}

static inline void case_atom(double *row, double x, double y) {
    for (int i = 0; i < ROW; i += 2) row[i] = x, row[i + 1] = y;
}

/* Makes a law with random weights, noise and means that are some meters apart. Every seed gives a
 * different law. */
static inline void case_random(law_case *c, const char *id, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    case_start(c, id, 1 + (int)(seed % CASE_MODES), CASE_FACTORS);
    double sum = 0;
    for (int m = 0; m < c->law.modes; m++) {
        const double x = 30 * bj_rng_normal(&rng), y = 8 * bj_rng_normal(&rng);
        sum += c->weights[m] = .02 + bj_rng_uniform(&rng);
        for (int i = 0; i < ROW; i++) {
            const double t = (i / 2 + 1) / 60.;
            c->means[m * ROW + i] = (float)(t * (i % 2 ? y : x));
            for (int f = 0; f < CASE_FACTORS; f++)
                c->factor[(m * CASE_FACTORS + f) * ROW + i] =
                    (float)(pow(t, 1 + f % 2) * (i % 2 == f / 2) * (1 + (f + m) % 5));
        }
    }
    for (int m = 0; m < c->law.modes; m++) c->weights[m] /= sum;
    c->law.jitter = .05;
}

static inline double *case_work(int modes, int samples) {
    double *work = calloc(bj_exam_work(modes, samples), sizeof *work);
    if (!work) exit(1);
    return work;
}

#endif
