/* exam_modes.c - compares a forecast with the true modes; see exam.h.
 *
 * A branch belongs to the mode with the nearest mean if that mean is
 * within 2 m RMS. Ties go to the first mode. With q_m the mass of the
 * branches of mode m and q_0 the mass of the branches without a mode,
 *
 *   mass_error = 1/2 (sum_m |w_m - q_m| + q_0)       between 0 and 1
 *
 * A mode is found if any branch with a weight of at least 1 % is within 2 m RMS of its mean, even
 * if another mode is nearer to that branch. So one branch can find two modes that are close
 * together.
 */
#include <math.h>

#include "truth/exam.h"

enum { ROW = BJ_EXAM_ROW };
#define REACH 2.0 /* m */
#define SEEN 0.01

static void widen(double row[ROW], const float *mean) {
    for (int i = 0; i < ROW; i++) row[i] = (double)mean[i];
}

void bj_exam_modes(bj_exam_scene *out, const bj_law_scene *law, const bj_exam_forecast *f) {
    double mass[BJ_EXAM_MODES] = {0}, least[BJ_MAX_ATOMS], mean[ROW];
    int nearest[BJ_MAX_ATOMS];
    for (int k = 0; k < f->K; k++) least[k] = INFINITY, nearest[k] = -1;
    out->modes = law->modes;
    out->found = 0;
    out->found_mass = 0;
    for (int m = 0; m < law->modes; m++) {
        int found = 0;
        widen(mean, law->means + (size_t)m * ROW);
        for (int k = 0; k < f->K; k++) {
            const double d = bj_exam_distance(f->y + (size_t)k * ROW, mean);
            if (!(d <= REACH)) continue;
            found |= f->p[k] >= SEEN;
            if (d < least[k]) least[k] = d, nearest[k] = m;
        }
        out->found += found;
        if (found) out->found_mass += law->weights[m];
    }
    out->unexplained = 0;
    for (int c = 0; c < BJ_MANEUVERS; c++) out->predicted[c] = 0;
    for (int k = 0; k < f->K; k++) {
        if (nearest[k] < 0) out->unexplained += f->p[k];
        else mass[nearest[k]] += f->p[k];
        out->predicted[bj_maneuver_of(f->y + (size_t)k * ROW + ROW - 2)] += f->p[k];
    }
    out->mass_error = out->unexplained / 2;
    for (int m = 0; m < law->modes; m++) out->mass_error += fabs(law->weights[m] - mass[m]) / 2;
}

void bj_exam_truncate(double *p, double *y, int K, const bj_law_scene *law) {
    int taken[BJ_EXAM_MODES] = {0};
    double sum = 0;
    for (int k = 0; k < K; k++) {
        int heaviest = -1;
        for (int m = 0; m < law->modes; m++)
            if (!taken[m] && (heaviest < 0 || law->weights[m] > law->weights[heaviest]))
                heaviest = m;
        p[k] = heaviest < 0 ? 0 : law->weights[heaviest];
        sum += p[k];
        if (heaviest >= 0) {
            taken[heaviest] = 1;
            widen(y + (size_t)k * ROW, law->means + (size_t)heaviest * ROW);
        } else {
            for (int i = 0; i < ROW; i++) y[(size_t)k * ROW + (size_t)i] = y[i];
        }
    }
    for (int k = 0; k < K; k++) p[k] /= sum;
}
