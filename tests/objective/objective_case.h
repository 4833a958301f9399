/* objective_case.h - a random batch for the tests of the objectives, and reference formulas.
 *
 * Rows are PAD elements longer than necessary. The padding of inputs contains NaN, so that reading
 * it makes the loss NaN. The padding of gradients contains a marker, so that writing to it is
 * detected.
 */
#ifndef BJ_TESTS_OBJECTIVE_CASE_H
#define BJ_TESTS_OBJECTIVE_CASE_H

#include "objective/objective.h"
#include "support/gradcheck.h"

enum { PAD = 3, MOST_BUFFERS = 32 };
#define MARKER ((bj_real)-12345)

typedef struct objective_case {
    bj_objective objective;
    bj_objective_io io;
    /* writable pointers to the inputs of io */
    bj_real *u, *logits, *y, *z, *rec, *future, *log_sz, *log_sy;
    double *plan, *label; /* (B,K) used by the reference for the winner-takes-all family */
    void *buffer[MOST_BUFFERS];
    int buffers;
} objective_case;

static inline void *case_buffer(objective_case *c, size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory || c->buffers == MOST_BUFFERS) {
        fprintf(stderr, "objective_case: %s\n", memory ? "too many buffers" : "out of memory");
        exit(1);
    }
    return c->buffer[c->buffers++] = memory;
}

static inline bj_real *case_reals(objective_case *c, size_t count, bj_real value) {
    bj_real *x = case_buffer(c, count, sizeof *x);
    for (size_t i = 0; i < count; i++) x[i] = value;
    return x;
}

/* Returns (rows,n) normal numbers around mean (mean_rows,n), with NaN between the rows. */
static inline bj_real *case_rows(objective_case *c, bj_rng *rng, int rows, int n, size_t stride,
                                 const bj_real *mean, int rows_per_mean, double scale) {
    bj_real *x = case_reals(c, (size_t)rows * stride, (bj_real)NAN);
    for (int r = 0; r < rows; r++)
        for (int i = 0; i < n; i++)
            x[(size_t)r * stride + (size_t)i] =
                (bj_real)((mean ? mean[(size_t)(r / rows_per_mean) * (size_t)n + (size_t)i] : 0) +
                          scale * bj_rng_normal(rng));
    return x;
}

static inline void case_normalize(bj_real *x, int rows, int n, size_t stride) {
    for (int r = 0; r < rows; r++, x += stride) {
        double sum = 0;
        for (int i = 0; i < n; i++) sum += (double)x[i] * x[i];
        for (int i = 0; i < n; i++) x[i] = (bj_real)(x[i] / sqrt(sum));
    }
}

static inline objective_case case_make(bj_objective_kind kind, int B, int K, int D, int F,
                                       bj_scales scales, uint64_t seed) {
    objective_case c = {.objective = bj_objective_default(kind)};
    bj_objective_io *io = &c.io;
    bj_rng rng = bj_rng_seed(seed);
    const size_t b = (size_t)B, k = (size_t)K, d = (size_t)D, n = 2 * (size_t)F;
    const int L = kind == BJ_OUTPUTONLY ? 1 : K;
    const size_t ldu = d + PAD, ldy = n + PAD;
    *io = (bj_objective_io){
        .B = B, .K = K, .L = L, .D = D, .F = F, .ldu = ldu, .ldy = ldy, .scales = scales};
    c.u = case_rows(&c, &rng, B * L, D, ldu, NULL, 1, 1);
    c.z = case_rows(&c, &rng, B, D, ldu, NULL, 1, 1);
    case_normalize(c.u, B * L, D, ldu);
    case_normalize(c.z, B, D, ldu);
    c.logits = case_rows(&c, &rng, B, K, k, NULL, 1, 1);
    c.future = case_rows(&c, &rng, B, 2 * F, n, NULL, 1, 5);
    c.y = case_rows(&c, &rng, B * K, 2 * F, ldy, c.future, K, 1.5);
    c.rec = case_rows(&c, &rng, B, 2 * F, ldy, c.future, 1, 0);
    for (size_t i = 0; i < b * ldy; i++) { /* on both sides of the smooth L1 transition, but never
                                              close to it */
        const double e = 1.8 * bj_rng_uniform(&rng) - 0.9;
        c.rec[i] += (bj_real)(i % 4 ? e : e < 0 ? e - 1.1 : e + 1.1);
    }
    io->du = case_reals(&c, b * (size_t)L * ldu, MARKER);
    io->dz = case_reals(&c, b * ldu, MARKER);
    io->dlogits = case_reals(&c, b * k, MARKER);
    io->dy = case_reals(&c, b * k * ldy, MARKER);
    io->drec = case_reals(&c, b * ldy, MARKER);
    io->pi = case_reals(&c, b * k, 0);
    if (scales != BJ_SCALES_FIXED) {
        const int each = scales == BJ_SCALES_COMPONENT;
        const size_t nz = each ? k * d : 1, ny = each ? k * n : 1;
        c.log_sz = case_rows(&c, &rng, 1, (int)nz, nz, NULL, 1, 0.2);
        c.log_sy = case_rows(&c, &rng, 1, (int)ny, ny, NULL, 1, 0.2);
        io->dlog_sz = case_reals(&c, nz, MARKER);
        io->dlog_sy = case_reals(&c, ny, MARKER);
    }
    io->terms = case_buffer(&c, b * BJ_TERMS, sizeof(double));
    io->dist = case_buffer(&c, b * k, sizeof(double));
    io->resp_z = case_buffer(&c, b * k, sizeof(double));
    io->resp_y = case_buffer(&c, b * k, sizeof(double));
    io->usage = case_buffer(&c, k, sizeof(double));
    io->moments = case_buffer(&c, bj_objective_moments_size(&c.objective, B, D), sizeof(double));
    io->time_weight = case_buffer(&c, (size_t)F, sizeof(double));
    c.plan = case_buffer(&c, b * k, sizeof(double));
    c.label = case_buffer(&c, b * k, sizeof(double));
    io->u = c.u;
    io->logits = c.logits;
    io->y = c.y;
    io->z = c.z;
    io->rec = c.rec;
    io->future = c.future;
    io->log_sz = c.log_sz;
    io->log_sy = c.log_sy;
    return c;
}

static inline void case_free(objective_case *c) {
    for (int i = 0; i < c->buffers; i++) free(c->buffer[i]);
}

/* Runs a whole step with scenes in ranges of size `range`, starting with the last range. */
static inline bj_loss case_step(objective_case *c, int backward, int range) {
    const int B = c->io.B, last = (B - 1) / range * range;
    bj_objective_begin(&c->objective, &c->io);
    for (int b = last; b >= 0; b -= range)
        bj_objective_scenes_forward(&c->objective, &c->io, b, b + range < B ? b + range : B);
    bj_objective_couple(&c->objective, &c->io);
    for (int b = last; b >= 0 && backward; b -= range)
        bj_objective_scenes_backward(&c->objective, &c->io, b, b + range < B ? b + range : B);
    return bj_objective_finish(&c->objective, &c->io);
}

static inline double case_loss(void *context) {
    objective_case *c = context;
    return case_step(c, 0, c->io.B).total;
}

static inline void case_gradient(void *context) {
    objective_case *c = context;
    case_step(c, 1, c->io.B);
}

static inline unsigned case_reach(const objective_case *c) {
    bj_arch arch = {.kind =
                        c->objective.kind == BJ_OUTPUTONLY ? BJ_MODEL_OUTPUT_ONLY : BJ_MODEL_BRANCH,
                    .scales = c->io.scales,
                    .atoms = c->io.K};
    return bj_objective_reach(&c->objective, &arch);
}

/* Returns 1 if all columns from `used` on still contain the marker. `used` is 0 or the row length
 * without padding. */
static inline int case_untouched(const bj_real *dx, int rows, int used, size_t stride) {
    for (int r = 0; r < rows; r++)
        for (size_t i = (size_t)used; i < stride; i++)
            if (dx[(size_t)r * stride + i] != MARKER) return 0;
    return 1;
}

/* Checks the gradient of every array that affects the loss against finite differences of `loss`.
 * All other arrays must keep their marker. */
static inline void case_gradcheck(objective_case *c, const char *name, double (*loss)(void *),
                                  int probes) {
    const bj_objective_io *io = &c->io;
    const bj_objective *o = &c->objective;
    const int B = io->B, K = io->K, n = 2 * io->F;
    const unsigned reach = case_reach(c);
    gradcheck_array arrays[7];
    int count = 0;
    if (reach & BJ_REACH_ATOMS)
        arrays[count++] =
            (gradcheck_array){"u", c->u, io->du, B * io->L, io->D, io->ldu, o->lambda_z == 0, 0};
    if (reach & BJ_REACH_ROUTER)
        arrays[count++] = (gradcheck_array){"logits", c->logits, io->dlogits, B, K, 0, K == 1, 0};
    if (reach & BJ_REACH_DECODER && o->kind != BJ_ANCHOR_A)
        arrays[count++] =
            (gradcheck_array){"y", c->y, io->dy, B * K, n, io->ldy, o->lambda_y == 0, 0};
    if (reach & BJ_REACH_DECODER || o->kind == BJ_ANCHOR_A)
        arrays[count++] =
            (gradcheck_array){"rec", c->rec, io->drec, B, n, io->ldy, o->lambda_rec == 0, 0};
    if (o->kind == BJ_ANCHOR_A)
        arrays[count++] = (gradcheck_array){"z", c->z, io->dz, B, io->D, io->ldu, 0, 1e-4};
    if (reach & BJ_REACH_SCALE_Z)
        arrays[count++] = (gradcheck_array){"log_sz",
                                            c->log_sz,
                                            io->dlog_sz,
                                            1,
                                            io->scales == BJ_SCALES_COMPONENT ? K * io->D : 1,
                                            0,
                                            0,
                                            0};
    if (reach & BJ_REACH_SCALE_Y)
        arrays[count++] = (gradcheck_array){
            "log_sy", c->log_sy, io->dlog_sy, 1, io->scales == BJ_SCALES_COMPONENT ? K * n : 1, 0,
            0,        0};
    const gradcheck_case check = {.name = name,
                                  .loss = loss,
                                  .gradient = case_gradient,
                                  .context = c,
                                  .arrays = arrays,
                                  .count = count,
                                  .probes = probes};
    gradcheck(&check);
    case_gradient(c);
    CHECK_MSG(case_untouched(io->du, B * io->L, reach & BJ_REACH_ATOMS ? io->D : 0, io->ldu),
              "%s: du outside its rows", name);
    CHECK_MSG(case_untouched(io->dlogits, B, reach & BJ_REACH_ROUTER ? K : 0, (size_t)K),
              "%s: dlogits was written, but the router does not affect the loss", name);
    CHECK_MSG(case_untouched(io->dy, B * K,
                             reach & BJ_REACH_DECODER && o->kind != BJ_ANCHOR_A ? n : 0, io->ldy),
              "%s: dy outside its rows", name);
    CHECK_MSG(case_untouched(io->drec, B,
                             reach & BJ_REACH_DECODER || o->kind == BJ_ANCHOR_A ? n : 0, io->ldy),
              "%s: drec outside its rows", name);
    CHECK_MSG(case_untouched(io->dz, B, o->kind == BJ_ANCHOR_A ? io->D : 0, io->ldu),
              "%s: dz outside its rows", name);
}

/* Checks that the results of a step are bit-identical for any division of the scenes into
 * ranges. */
static inline void case_check_ranges(objective_case *c, const char *name) {
    const bj_objective_io *io = &c->io;
    const size_t sizes[] = {(size_t)io->B * (size_t)io->L * io->ldu, (size_t)io->B * io->ldu,
                            (size_t)(io->B * io->K), (size_t)(io->B * io->K) * io->ldy,
                            (size_t)io->B * io->ldy};
    bj_real *const arrays[] = {io->du, io->dz, io->dlogits, io->dy, io->drec};
    bj_real *copies[5];
    const bj_loss whole = case_step(c, 1, io->B);
    for (int i = 0; i < 5; i++) copies[i] = gradcheck_copy(arrays[i], sizes[i]);
    for (int range = 1; range <= 3; range++) {
        const bj_loss loss = case_step(c, 1, range);
        CHECK_MSG(memcmp(&loss, &whole, sizeof loss) == 0, "%s: loss in ranges of %d", name, range);
        for (int i = 0; i < 5; i++)
            CHECK_MSG(memcmp(copies[i], arrays[i], sizes[i] * sizeof(bj_real)) == 0,
                      "%s: gradient %d in ranges of %d", name, i, range);
    }
    for (int i = 0; i < 5; i++) free(copies[i]);
}

/* -------------------------------------------------------------------------- reference formulas */

static inline double plain_latent(const bj_real *a, const bj_real *b, int D) {
    double sum = 0;
    for (int i = 0; i < D; i++) sum += ((double)a[i] - b[i]) * ((double)a[i] - b[i]);
    return sum > 1e-12 ? sqrt(sum) : 0;
}

static inline double plain_block(const bj_real *a, const bj_real *b, int F, double beta) {
    double sum = 0, norm = 0;
    for (int t = 0; t < F; t++) {
        const double x = (double)a[2 * t] - b[2 * t], y = (double)a[2 * t + 1] - b[2 * t + 1];
        sum += pow(beta, t) * (x * x + y * y);
        norm += pow(beta, t);
    }
    return sum / norm > 1e-12 ? sqrt(sum / norm) : 0;
}

static inline const bj_real *case_u(const objective_case *c, int b, int k) {
    return c->u + (size_t)(b * c->io.L + k) * c->io.ldu;
}

static inline const bj_real *case_y(const objective_case *c, int b, int k) {
    return c->y + (size_t)(b * c->io.K + k) * c->io.ldy;
}

static inline const bj_real *case_z(const objective_case *c, int b) {
    return c->z + (size_t)b * c->io.ldu;
}

static inline const bj_real *case_future(const objective_case *c, int b) {
    return c->future + (size_t)b * 2 * (size_t)c->io.F;
}

static inline void plain_softmax(double *p, const double *x, int n) {
    double max = x[0], sum = 0;
    for (int i = 1; i < n; i++) max = fmax(max, x[i]);
    for (int i = 0; i < n; i++) sum += p[i] = exp(x[i] - max);
    for (int i = 0; i < n; i++) p[i] /= sum;
}

/* Computes the router weights of scene b. */
static inline void plain_weights(double *pi, const objective_case *c, int b) {
    double logits[BJ_MAX_ATOMS] = {0};
    for (int k = 0; k < c->io.K; k++) logits[k] = c->logits[b * c->io.K + k];
    plain_softmax(pi, logits, c->io.K);
    if (c->objective.kind == BJ_UNIFORM)
        for (int k = 0; k < c->io.K; k++) pi[k] = 1.0 / c->io.K;
}

static inline double plain_reconstruction(const objective_case *c) {
    const int n = 2 * c->io.F;
    double sum = 0;
    for (int b = 0; b < c->io.B; b++)
        for (int i = 0; i < n; i++) {
            const double e = fabs((double)c->rec[(size_t)b * c->io.ldy + (size_t)i] -
                                  c->future[(size_t)b * (size_t)n + (size_t)i]);
            sum += e < 1 ? e * e / 2 : e - 0.5;
        }
    return sum / (c->io.B * n);
}

/* Returns the relative tolerance, which covers the rounding of inputs in float builds and of sums
 * in double builds. */
static inline double case_tolerance(void) {
    return sizeof(bj_real) == sizeof(double) ? 1e-12 : 1e-5;
}

#endif
