/* exam_scene.c - estimates the discrepancy, the floor and the expected score for one scene; see
 * exam.h. */
#include <stdio.h>
#include <string.h>

#include "core/rng.h"
#include "eval/distance.h"
#include "truth/exam.h"

enum { ROW = BJ_EXAM_ROW, GROUP = BJ_EXAM_GROUP };

double bj_exam_distance(const double *a, const double *b) {
    return bj_distance(bj_sum_squares_double(a, b, ROW) / BJ_EXAM_STEPS);
}

void bj_exam_draw(double *draws, const bj_law_scene *law, int n, uint64_t seed,
                  const char *purpose) {
    static const double certain[1] = {1};
    char name[160];
    snprintf(name, sizeof name, "%s %s", purpose, law->scenario_id);
    bj_rng rng = bj_rng_named(seed, name);
    for (int m = 0; m < law->modes; m++) { /* treat each mode as a separate law */
        bj_law_scene mode = *law;
        mode.modes = 1;
        mode.weights = certain;
        mode.means += (size_t)m * ROW;
        mode.factor += (size_t)m * (size_t)law->factors * ROW;
        for (int i = 0; i < n; i++, draws += ROW) bj_law_sample(draws, &mode, &rng);
    }
}

/* -------------------------------------------------------------------------------- expectations */

typedef struct sample {
    const bj_law_scene *law;
    const double *draws; /* (modes,M,ROW) */
    int M;
} sample;

static const double *draw_at(const sample *s, int mode, int i) {
    return s->draws + ((size_t)mode * (size_t)s->M + (size_t)i) * ROW;
}

/* Returns sum_k p_k d(y_k, draw). */
static double fit(const bj_exam_forecast *f, const double *draw) {
    double sum = 0;
    for (int k = 0; k < f->K; k++)
        if (f->p[k] > 0) sum += f->p[k] * bj_exam_distance(f->y + (size_t)k * ROW, draw);
    return sum;
}

/* Returns E d(X,X'). */
static double dispersion(const bj_exam_forecast *f) {
    double sum = 0;
    for (int k = 0; k < f->K; k++)
        for (int l = 0; l < k; l++)
            if (f->p[k] > 0 && f->p[l] > 0)
                sum += 2 * f->p[k] * f->p[l] *
                       bj_exam_distance(f->y + (size_t)k * ROW, f->y + (size_t)l * ROW);
    return sum;
}

double bj_exam_law_distance(const bj_law_scene *law, const double *draws, int samples, int group) {
    const sample s = {law, draws, samples};
    const double *w = law->weights;
    double sum = 0;
    for (int m = 0; m < law->modes; m++) {
        const double *a = draw_at(&s, m, group * GROUP);
        double within = 0;
        for (int i = 0; i < GROUP; i++)
            for (int j = 0; j < i; j++) within += bj_exam_distance(a + i * ROW, a + j * ROW);
        sum += w[m] * w[m] * within / (GROUP * (GROUP - 1) / 2);
        for (int n = 0; n < m; n++) {
            const double *b = draw_at(&s, n, group * GROUP);
            double across = 0;
            for (int i = 0; i < GROUP; i++)
                for (int j = 0; j < GROUP; j++)
                    across += bj_exam_distance(a + i * ROW, b + j * ROW);
            sum += 2 * w[m] * w[n] * across / (GROUP * GROUP);
        }
    }
    return sum;
}

/* Returns E d(X,Y) from one group of draws. Adds E d(X,y)^2 to `square`. */
static double cross_distance(double *square, const sample *s, const bj_exam_forecast *f,
                             int group) {
    double sum = 0;
    for (int m = 0; m < s->law->modes; m++)
        for (int i = 0; i < GROUP; i++) {
            const double d = fit(f, draw_at(s, m, group * GROUP + i));
            const double share = s->law->weights[m] / GROUP;
            sum += share * d;
            *square += share * d * d;
        }
    return sum;
}

static void count_maneuvers(double actual[BJ_MANEUVERS], const sample *s) {
    for (int c = 0; c < BJ_MANEUVERS; c++) actual[c] = 0;
    for (int m = 0; m < s->law->modes; m++)
        for (int i = 0; i < s->M; i++)
            actual[bj_maneuver_of(draw_at(s, m, i) + ROW - 2)] += s->law->weights[m] / s->M;
}

bj_moment bj_exam_moment(const double *groups, int n) {
    bj_moment out = {0, 0};
    for (int g = 0; g < n; g++) out.mean += groups[g] / n;
    for (int g = 0; g < n; g++) {
        const double e = groups[g] - out.mean;
        out.variance += e * e;
    }
    out.variance /= (double)n * (n - 1);
    return out;
}

/* ----------------------------------------------------------------------------------- the scene */

size_t bj_exam_work(int modes, int samples) { return ((size_t)modes * ROW + 4) * (size_t)samples; }

void bj_exam_measure(bj_exam_scene *out, const bj_law_scene *law, const bj_exam_forecast *forecast,
                     int samples, uint64_t seed, double *work) {
    const int groups = samples / GROUP;
    double *const discrepancy = work, *const ground = discrepancy + groups;
    double *const expected = ground + groups, *const difference = expected + groups;
    double *const draws = work + 4 * (size_t)samples;
    const sample s = {law, draws, samples};
    const double own = dispersion(forecast);
    double first = 0, square = 0, ignored = 0;

    bj_exam_draw(draws, law, samples, seed, "discrepancy");
    count_maneuvers(out->actual[0], &s);
    for (int g = 0; g < groups; g++) {
        const double cross = cross_distance(&square, &s, forecast, g);
        first += cross / groups;
        discrepancy[g] = 2 * cross - own - bj_exam_law_distance(law, draws, samples, g);
    }
    square /= groups;
    out->score_variance = square > first * first ? square - first * first : 0;

    bj_exam_draw(draws, law, samples, seed, "floor");
    count_maneuvers(out->actual[1], &s);
    for (int g = 0; g < groups; g++) ground[g] = bj_exam_law_distance(law, draws, samples, g) / 2;

    bj_exam_draw(draws, law, samples, seed, "score");
    for (int g = 0; g < groups; g++) {
        expected[g] = cross_distance(&ignored, &s, forecast, g) - own / 2;
        difference[g] = expected[g] - (discrepancy[g] / 2 + ground[g]);
    }
    out->discrepancy = bj_exam_moment(discrepancy, groups);
    out->floor = bj_exam_moment(ground, groups);
    out->expected = bj_exam_moment(expected, groups);
    out->difference = bj_exam_moment(difference, groups);
}
