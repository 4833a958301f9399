/* score_values.c - the official metrics of one scene; see score.h.
 *
 * With displacements d_kt = |y_kt - t_t| in city coordinates, as computed by the av2 package:
 *
 *   ade_k = mean_t d_kt     fde_k = d_kF     missed = fde > 2     brier adds (1 - p_k)^2
 *
 * The metrics of K modes use the K most probable modes. Among equal probabilities, the first row
 * comes first. Among equal errors, the more probable mode is the better one.
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

/* Sorts the modes by descending probability. */
static void rank(int order[BJ_MAX_ATOMS], const bj_score_modes *m) {
    for (int k = 0; k < m->K; k++) {
        int at = k;
        for (; at > 0 && m->p[order[at - 1]] < m->p[k]; at--) order[at] = order[at - 1];
        order[at] = k;
    }
}

void bj_score_official(bj_score_values *out, const bj_score_modes *m, const bj_truth_scene *truth) {
    double ade[BJ_MAX_ATOMS] = {0}, fde[BJ_MAX_ATOMS] = {0};
    int order[BJ_MAX_ATOMS] = {0};
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
    rank(order, m);
    const int top = order[0], K = m->K < BJ_SUBMISSION_MODES ? m->K : BJ_SUBMISSION_MODES;
    int least_ade = top, least_fde = top;
    for (int i = 1; i < K; i++) {
        if (ade[order[i]] < ade[least_ade]) least_ade = order[i];
        if (fde[order[i]] < fde[least_fde]) least_fde = order[i];
    }
    const double miss = 1 - m->p[top];
    const double miss_ade = 1 - m->p[least_ade], miss_fde = 1 - m->p[least_fde];
    *out = (bj_score_values){.scenes = 1,
                             .modes = m->K,
                             .min_ade_1 = ade[top],
                             .min_fde_1 = fde[top],
                             .mr_1 = fde[top] > 2,
                             .brier_min_ade_1 = ade[top] + miss * miss,
                             .brier_min_fde_1 = fde[top] + miss * miss,
                             .min_ade_6 = ade[least_ade],
                             .min_ade_at_min_fde_6 = ade[least_fde],
                             .min_fde_6 = fde[least_fde],
                             .mr_6 = fde[least_fde] > 2,
                             .brier_min_ade_6 = ade[least_ade] + miss_ade * miss_ade,
                             .brier_min_fde_6 = fde[least_fde] + miss_fde * miss_fde};
}
