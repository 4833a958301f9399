/* score_values.c - computes the official metrics of one scene; see score.h.
 *
 * The displacements d_kt = |y_kt - t_t| are in city coordinates, as in the av2 package:
 *
 *   ade_k = mean_t d_kt     fde_k = d_kF     missed = fde > 2     brier adds (1 - p_k)^2
 *
 * eval/forecast.h defines which modes are considered.
 * Tests: tests/eval/test_score.c, tests/eval/peer_score.py
 */
#include <math.h>
#include <string.h>

#include "eval/score.h"

enum { F = BJ_TRUTH_STEPS };

void bj_score_take(bj_score_modes *out, const bj_submission *s, const bj_submission_track *track,
                   const bj_truth_scene *truth) {
    out->K = (int)track->count;
    for (int k = 0; k < out->K; k++) {
        const bj_submission_row r = bj_submission_at(s, track->rows[k]);
        double *const y = out->city + (size_t)k * 2 * F;
        out->p[k] = r.probability;
        for (int t = 0; t < F; t++) {
            y[2 * t] = r.x[t];
            y[2 * t + 1] = r.y[t];
        }
    }
    bj_from_city(out->local, out->city, out->K * F, truth->origin, truth->heading);
}

void bj_score_official(bj_score_values *out, const bj_score_modes *m, const bj_truth_scene *truth) {
    double ade[BJ_MAX_ATOMS] = {0}, fde[BJ_MAX_ATOMS] = {0};
    for (int k = 0; k < m->K; k++) {
        const double *y = m->city + (size_t)k * 2 * F, *t = truth->city_future;
        double sum = 0, d = 0;
        for (int i = 0; i < F; i++) {
            const double dx = y[2 * i] - t[2 * i], dy = y[2 * i + 1] - t[2 * i + 1];
            d = sqrt(dx * dx + dy * dy);
            sum += d;
        }
        ade[k] = sum / F;
        fde[k] = d;
    }
    const bj_official_modes best = bj_official_choose(m->p, ade, fde, m->K);
    const int top = best.top, least_ade = best.least_ade, least_fde = best.least_fde;
    const double miss = bj_official_penalty(m->p[top]);
    const double miss_ade = bj_official_penalty(m->p[least_ade]);
    const double miss_fde = bj_official_penalty(m->p[least_fde]);
    *out = (bj_score_values){.scenes = 1,
                             .modes = m->K,
                             .min_ade_1 = ade[top],
                             .min_fde_1 = fde[top],
                             .mr_1 = fde[top] > 2,
                             .brier_min_ade_1 = ade[top] + miss,
                             .brier_min_fde_1 = fde[top] + miss,
                             .min_ade_6 = ade[least_ade],
                             .min_ade_at_min_fde_6 = ade[least_fde],
                             .min_fde_6 = fde[least_fde],
                             .mr_6 = fde[least_fde] > 2,
                             .brier_min_ade_6 = ade[least_ade] + miss_ade,
                             .brier_min_fde_6 = fde[least_fde] + miss_fde};
}
