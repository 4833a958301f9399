/* reconstruction.c - smooth L1 distance between the decoded target latent and the true future.
 *
 *   rec = mean_i h(r_i - y_i),  h(e) = e^2 / 2 if |e| < 1, else |e| - 1/2,  h'(e) = clamp(e, -1, 1)
 *
 * Shapes  rec, future (2F) of one scene; the mean is over time and coordinates
 * Test    tests/objective/test_reconstruction.c
 */
#include <math.h>

#include "objective/parts.h"

void bj_reconstruction_forward(bj_objective_io *io, int b0, int b1) {
    const int n = 2 * io->F;
    for (int b = b0; b < b1; b++) {
        const bj_real *rec = io->rec + (size_t)b * io->ldy, *future = io->future + (size_t)b * n;
        double sum = 0;
        for (int i = 0; i < n; i++) {
            const double e = fabs((double)rec[i] - future[i]);
            sum += e < 1 ? 0.5 * e * e : e - 0.5;
        }
        io->terms[(size_t)b * BJ_TERMS + BJ_TERM_REC] = sum / n;
    }
}

void bj_reconstruction_backward(double weight, bj_objective_io *io, int b0, int b1) {
    const int n = 2 * io->F;
    const bj_real scale = (bj_real)(weight / ((double)io->B * n));
    if (!io->drec) return;
    if (weight == 0) {
        bj_rows_clear(io->drec + (size_t)b0 * io->ldy, b1 - b0, n, io->ldy);
        return;
    }
    for (int b = b0; b < b1; b++) {
        const bj_real *rec = io->rec + (size_t)b * io->ldy, *future = io->future + (size_t)b * n;
        bj_real *drec = io->drec + (size_t)b * io->ldy;
        for (int i = 0; i < n; i++) {
            const bj_real e = rec[i] - future[i];
            drec[i] = scale * (e > 1 ? 1 : e < -1 ? -1 : e); /* keeps NaN */
        }
    }
}
