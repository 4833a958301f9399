/* floors.c - variance and rank floors on the normalized contexts of a batch, against collapse.
 *
 * The terms are those of anchor.c, computed for n = context / |context| instead of the target
 * latents:
 *   floors = floor_weight (variance + rank_weight rank)
 * The batch is smaller than the latent width here, so the rank is computed from pairwise products:
 *   G = c c' (B,B)    T = sum_b G_bb / B    Q = sum G^2 / B^2    c_b C = (1/B) sum_b' G_bb' c_b'
 *
 * Shapes  n, c, dn (B,D)   G (B,B)
 * Cache   io->moments: c, G as the matrix, a + lin (moments.c)
 * Order   Like anchor.c. Pairwise products are summed over dimensions in fixed lanes. Sums over
 *         pairs and over c_b' are in batch order.
 * Edge    Like anchor.c.
 * Test    tests/train/test_observed.c, tests/train/peer_observed.py
 */
#include "objective/parts.h"

size_t bj_floors_size(int B, int D) { return bj_moments_size(B, D, B); }

static bj_moments moments_of(const bj_objective_io *io) { return bj_moments_of(io, io->B); }

static double dot(const bj_real *restrict x, const bj_real *restrict y, int n) {
    enum { LANES = 16 };
    bj_real lane[LANES] = {0};
    double sum = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j] * y[i + j];
    for (int j = 0; j < LANES; j++) sum += (double)lane[j];
    for (; i < n; i++) sum += (double)x[i] * (double)y[i];
    return sum;
}

/* Computes the matrix G and returns Q. */
static double products(const bj_objective_io *io, bj_moments m) {
    const int B = io->B;
    const size_t D = (size_t)io->D;
    double total = 0;
    for (int a = 0; a < B; a++)
        for (int b = 0; b <= a; b++) {
            const double g = dot(m.c + (size_t)a * D, m.c + (size_t)b * D, io->D);
            m.matrix[(size_t)a * B + b] = m.matrix[(size_t)b * B + a] = (bj_real)g;
            total += (a == b ? 1 : 2) * g * g;
        }
    return total / ((double)B * B);
}

void bj_floors_couple(const bj_objective *objective, bj_objective_io *io) {
    const bj_moments m = moments_of(io);
    const double T =
        bj_moments_center(m, io->unit, io->ldu, io->B, io->D, objective->variance_floor);
    bj_moments_rank(m, objective, T, products(io, m), io->B, io->D, io->B);
}

void bj_floors_backward(const bj_objective *objective, bj_objective_io *io, int b0, int b1) {
    const bj_moments m = moments_of(io);
    const int B = io->B, D = io->D;
    const bj_real weight = (bj_real)objective->floor_weight;
    const bj_real quad = (bj_real)(objective->floor_weight * m.scalar[BJ_MOMENT_QUAD]);
    if (!io->dunit) return;
    for (int b = b0; b < b1; b++) {
        const bj_real *c = m.c + (size_t)b * (size_t)D, *G = m.matrix + (size_t)b * (size_t)B;
        bj_real *restrict dn = io->dunit + (size_t)b * io->ldu;
        for (int d = 0; d < D; d++) dn[d] = weight * c[d] * (bj_real)m.linear[d];
        for (int a = 0; quad != 0 && a < B; a++) {
            const bj_real *restrict other = m.c + (size_t)a * (size_t)D;
            const bj_real by = quad * G[a];
            for (int d = 0; d < D; d++) dn[d] += by * other[d];
        }
    }
}

void bj_floors_loss(bj_loss *loss, const bj_objective_io *io) {
    bj_moments_loss(loss, moments_of(io));
}
