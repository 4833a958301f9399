/* test_kernels.c - compares every vector table with the portable one, for sizes with and without
 * vector tails. Tables in mixed precision are compared with the portable one in mixed precision.
 *
 * Also tests that the result of a row does not depend on the other rows of a call, which makes the
 * engine reproducible.
 */
#include "kernels/kernels.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "test.h"

#ifdef BJ_DOUBLE
static const double tolerance = 1e-12;
#else
static const double tolerance = 2e-5;
#endif

static uint64_t state = 1;
static bj_real uniform(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (bj_real)((double)(state >> 33) / 1073741824.0 - 1.0);
}
static bj_real *random_array(size_t n) {
    bj_real *x = bj_alloc(n, sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = uniform();
    return x;
}

/* Returns the portable table in the precision of k. */
static const bj_kernels *reference(const bj_kernels *k) {
    return k == k->mixed ? &bj_mixed_c : &bj_kernels_c;
}

static void compare(const bj_real *a, const bj_real *b, size_t n, double scale, const char *what,
                    const char *isa) {
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)a[i] - b[i]);
        if (!(d <= worst)) worst = d;
    }
    CHECK_MSG(worst <= tolerance * scale, "%s %s: %g", isa, what, worst);
}

static void test_gemm(const bj_kernels *k, int M, int N, int K) {
    const size_t lda = (size_t)K + 3, ldc = (size_t)N + 5;
    bj_real *a = random_array((size_t)M * lda), *w = random_array((size_t)N * K);
    bj_real *bias = random_array((size_t)N), *mask = random_array((size_t)M * ldc);
    bj_real *packed = bj_alloc(k->packed_size(N, K), sizeof *packed);
    bj_real *plain = bj_alloc(reference(k)->packed_size(N, K), sizeof *plain);
    for (int variant = 0; variant < 10; variant++) {
        const int flags = variant & 3, transposed = variant & 1;
        bj_real *c = random_array((size_t)M * ldc), *d = bj_alloc((size_t)M * ldc, sizeof *d);
        memcpy(d, c, (size_t)M * ldc * sizeof *c);
        const bj_real *use_bias = variant & 4 && !(flags & BJ_GEMM_ADD) ? bias : NULL;
        const bj_real *use_mask = variant >= 8 ? mask : NULL;
        if (transposed) {
            k->pack_nk(packed, w, (size_t)K, N, K);
            reference(k)->pack_nk(plain, w, (size_t)K, N, K);
        } else {
            k->pack_kn(packed, w, (size_t)N, N, K);
            reference(k)->pack_kn(plain, w, (size_t)N, N, K);
        }
        k->gemm(c, ldc, a, lda, packed, use_bias, use_mask, ldc, M, N, K, flags);
        reference(k)->gemm(d, ldc, a, lda, plain, use_bias, use_mask, ldc, M, N, K, flags);
        compare(c, d, (size_t)M * ldc, sqrt((double)K) + 1, "gemm", k->isa); /* with padding */
        if (!use_mask) { /* computing the columns in two parts, or the rows one by one, gives the
                            same bits */
            bj_real *e = random_array((size_t)M * ldc);
            int cut = N / 2 / k->panel * k->panel;
            if (flags & BJ_GEMM_ADD) {
                state = 7; /* restart the generator, so that the inputs are the same */
                for (int i = 0; i < M * (int)ldc; i++) e[i] = uniform();
                memcpy(c, e, (size_t)M * ldc * sizeof *c);
                k->gemm(c, ldc, a, lda, packed, use_bias, NULL, 0, M, N, K, flags);
            }
            for (int m = 0; m < M; m++) {
                bj_real *row = e + (size_t)m * ldc;
                const bj_real *a_m = a + (size_t)m * lda;
                k->gemm_columns(row, ldc, a_m, lda, packed, use_bias, 1, N, K, flags, 0, cut);
                k->gemm_columns(row, ldc, a_m, lda, packed, use_bias, 1, N, K, flags, cut, N);
                CHECK_MSG(!memcmp(row, c + (size_t)m * ldc, (size_t)N * sizeof *row),
                          "%s: in a %dx%dx%d product, "
                          "row %d of variant %d depends on the other rows",
                          k->isa, M, N, K, m, variant);
            }
            bj_free(e);
        }
        bj_free(c);
        bj_free(d);
    }
    bj_free(a), bj_free(w), bj_free(bias), bj_free(mask), bj_free(packed), bj_free(plain);
}

/* Tests rows of B scenes, repeated `repeat` times, which is the layout of a recurrent layer. */
static void test_gradient(const bj_kernels *k, int B, int repeat, int M, int N) {
    const size_t lddy = (size_t)M + 2, ldx = (size_t)N + 1, ldc = (size_t)N + 3;
    int begin[BJ_SHARDS * 64], count[BJ_SHARDS * 64];
    const bj_rows rows = {repeat, begin, count};
    for (int s = 0; s < BJ_SHARDS; s++)
        for (int i = 0; i < repeat; i++) {
            begin[s * repeat + i] = i * B + bj_shard_begin(B, s);
            count[s * repeat + i] = bj_shard_begin(B, s + 1) - bj_shard_begin(B, s);
        }
    bj_real *dy = random_array((size_t)B * repeat * lddy), *x = random_array((size_t)B * repeat * ldx);
    bj_real *c = random_array((size_t)M * ldc), *d = bj_alloc((size_t)M * ldc, sizeof *d);
    bj_real *scratch = bj_alloc(BJ_GRADIENT_SCRATCH, sizeof *scratch);
    memcpy(d, c, (size_t)M * ldc * sizeof *c);
    k->gradient(c, ldc, dy, lddy, x, ldx, &rows, M, N, scratch);
    reference(k)->gradient(d, ldc, dy, lddy, x, ldx, &rows, M, N, NULL);
    compare(c, d, (size_t)M * ldc, sqrt((double)B * repeat) + 1, "gradient", k->isa);
    if (N <= k->panel && M >= N) {
        k->column_sum(c, dy, lddy, &rows, N);
        reference(k)->column_sum(d, dy, lddy, &rows, N);
        compare(c, d, (size_t)N, sqrt((double)B * repeat) + 1, "column sum", k->isa);
    }
    bj_free(dy), bj_free(x), bj_free(c), bj_free(d), bj_free(scratch);
}

/* Weights of a GRU with I inputs and E units. */
typedef struct gru_weights {
    bj_real *w_ih, *w_hh, *b_ih, *b_hh;
} gru_weights;

static gru_weights random_gru(int I, int E) {
    return (gru_weights){random_array((size_t)(3 * E * I)), random_array((size_t)(3 * E * E)),
                         random_array((size_t)(3 * E)), random_array((size_t)(3 * E))};
}

static void free_gru(gru_weights *w) {
    bj_free(w->w_ih), bj_free(w->w_hh), bj_free(w->b_ih), bj_free(w->b_hh);
}

static bj_real *packed_gru(const bj_kernels *k, const gru_weights *w, int I, int lead, int E) {
    bj_real *packed = bj_alloc(k->gru_size(lead, E), sizeof *packed);
    k->gru_pack(packed, w->w_ih, w->w_hh, w->b_ih, w->b_hh, I, lead, E);
    return packed;
}

/* Tests a step and its gradient. The sums vary in magnitude, so that the gates cover their whole
 * range. */
static void test_gru(const bj_kernels *k, int M, int E, int first) {
    const int I = 7, lead = 8;
    const size_t ldg = 4 * (size_t)E + 3, ldh = (size_t)E + 2, lds = (size_t)(lead + E) + 1;
    const size_t ng = (size_t)M * ldg, nh = (size_t)M * ldh;
    bj_real *g1 = random_array(ng), *g2 = bj_alloc(ng, sizeof *g2);
    bj_real *o1 = random_array(nh), *o2 = bj_alloc(nh, sizeof *o2), *o3 = random_array(nh);
    bj_real *rows = random_array((size_t)M * lds);
    gru_weights w = random_gru(I, E);
    for (int i = 0; i < 3 * E * I; i++) w.w_ih[i] *= i % 7 == 0 ? 30 : i % 5 == 0 ? (bj_real)1e-3 : 1;
    for (int m = 0; m < M; m++)
        for (int i = I; i < lead + E; i++)
            if (i == I) rows[(size_t)m * lds + (size_t)i] = 1;
            else if (first) rows[(size_t)m * lds + (size_t)i] = 0;
    memcpy(g2, g1, ng * sizeof *g1), memcpy(o2, o1, nh * sizeof *o1);
    bj_real *packed = packed_gru(k, &w, I, lead, E), *c = packed_gru(reference(k), &w, I, lead, E);
    k->gru_step(g1, ldg, o1, ldh, rows, lds, packed, lead, E, M, first);
    reference(k)->gru_step(g2, ldg, o2, ldh, rows, lds, c, lead, E, M, first);
    compare(g1, g2, ng, sqrt(E) + 4, "gates", k->isa);
    compare(o1, o2, nh, sqrt(E) + 4, "state", k->isa);
    k->gru_step(NULL, 0, o3, ldh, rows, lds, packed, lead, E, M, 0); /* with first = 0, zeros are
                                                                        added */
    for (int m = 0; m < M; m++)
        CHECK_MSG(!memcmp(o3 + (size_t)m * ldh, o1 + (size_t)m * ldh, (size_t)E * sizeof *o3),
                  "%s gru step %d %d without gates", k->isa, M, E);
    bj_real *after = random_array(ng), *p1 = bj_alloc(k->packed_size(E, 3 * E), sizeof *p1);
    bj_real *p2 = bj_alloc(reference(k)->packed_size(E, 3 * E), sizeof *p2);
    k->pack_kn(p1, w.w_hh, (size_t)E, E, 3 * E);
    reference(k)->pack_kn(p2, w.w_hh, (size_t)E, E, 3 * E);
    for (int last = 1; last >= 0; last--) {
        memcpy(g2, g1, ng * sizeof *g1), memcpy(o2, o1, nh * sizeof *o1);
        const bj_real *dgates = last ? NULL : after;
        k->gru_unstep(o1, ldh, dgates, g1, ldg, rows + lead, lds, p1, E, M);
        reference(k)->gru_unstep(o2, ldh, dgates, g2, ldg, rows + lead, lds, p2, E, M);
        compare(g1, g2, ng, 100 * (sqrt(E) + 1), "gate gradients", k->isa);
        compare(o1, o2, nh, 4 * (sqrt(E) + 1), "state gradients", k->isa);
    }
    bj_free(after), bj_free(p1), bj_free(p2);
    bj_free(g1), bj_free(g2), bj_free(o1), bj_free(o2), bj_free(o3), bj_free(rows);
    bj_free(packed), bj_free(c), free_gru(&w);
}

/* Tests sigmoid and tanh over the whole range and for NaN and infinity. A unit with one input of
 * weight v and no input from h has the gates sigmoid(v), sigmoid(v) and tanh(v). */
static void test_activations(const bj_kernels *k) {
    enum { E = 1024, I = 1, LEAD = 8 };
    const double most = sizeof(bj_real) == 8 ? 1e-15 : 4e-7;
    bj_real row[LEAD + E] = {1, 1}, *gates = random_array(4 * E), *h = random_array(E);
    gru_weights w = {bj_alloc(3 * E, sizeof(bj_real)), bj_alloc(3 * E * E, sizeof(bj_real)),
                     bj_alloc(3 * E, sizeof(bj_real)), bj_alloc(3 * E, sizeof(bj_real))};
    for (int o = 0; o < 3 * E; o++) {
        const double v = (o % E - E / 2) / (E / 2.0);
        w.w_ih[o] = (bj_real)(25 * v * fabs(v)); /* more values near zero */
    }
    for (int gate = 0; gate < 3; gate++) {
        w.w_ih[gate * E] = (bj_real)NAN;
        w.w_ih[gate * E + 1] = (bj_real)-INFINITY;
        w.w_ih[gate * E + E - 1] = (bj_real)INFINITY;
    }
    bj_real *packed = packed_gru(k, &w, I, LEAD, E);
    k->gru_step(gates, 4 * E, h, E, row, LEAD + E, packed, LEAD, E, 1, 1);
    for (int e = 0; e < E; e++) {
        const double v = w.w_ih[e], sigmoid = 1 / (1 + exp(-v)), expected = tanh(v);
        const double off[] = {fabs(gates[e] - sigmoid), fabs(gates[E + e] - sigmoid),
                              fabs(gates[3 * E + e] - expected) / (fabs(expected) + 1e-30)};
        for (int i = 0; i < 3; i++)
            CHECK_MSG(e == 0 ? isnan(off[i]) : off[i] <= most, "%s: activation %d of %g off by %g",
                      k->isa, i, v, off[i]);
    }
    bj_free(gates), bj_free(h), bj_free(packed), free_gru(&w);
}

/* Tests that gru_row gives the same bits as gru_step. */
static void test_gru_row(const bj_kernels *k, int E) {
    const int I = 7, lead = 8, cut = E / 2 / k->units * k->units;
    gru_weights w = random_gru(I, E);
    bj_real *row = random_array((size_t)(lead + E)), *h = random_array((size_t)E);
    bj_real *expected = random_array((size_t)E), *packed;
    row[I] = 1;
    packed = packed_gru(k, &w, I, lead, E);
    k->gru_step(NULL, 0, expected, (size_t)E, row, (size_t)(lead + E), packed, lead, E, 1, 0);
    k->gru_row(h, row, packed, lead, E, 0, cut);
    k->gru_row(h, row, packed, lead, E, cut, E);
    CHECK_MSG(!memcmp(h, expected, (size_t)E * sizeof *h), "%s gru row %d", k->isa, E);
    bj_free(row), bj_free(h), bj_free(packed), bj_free(expected), free_gru(&w);
}

/* Tests that a product in mixed precision rounds both operands to nearest even, keeps NaN and
 * infinity, and does not round the bias or the sum. */
static void test_rounding(const bj_kernels *k) {
    enum { N = 100, K = 67 };
    static const float operand[][2] = {
        {1.00390625f, 1.0f},   {1.01171875f, 1.015625f}, {1.0039064f, 1.0078125f},
        {-3.0f, -3.0f},        {3.14159265f, 3.140625f}, {0x1.45p-100f, 0x1.44p-100f},
        {3.4e38f, INFINITY},   {INFINITY, INFINITY},     {NAN, NAN}};
    bj_real *packed = bj_alloc(k->packed_size(N, K), sizeof *packed);
    for (size_t i = 0; i < sizeof operand / sizeof *operand; i++) {
        for (int side = 0; side < 2; side++) {
            for (int at = 0; at < K; at += K - 1) {
                bj_real a[K] = {0}, w[N][K] = {{0}}, c[2][N], bias[N];
                const double value = (double)operand[i][1], off = (double)(float)1e-7;
                for (int n = 0; n < N; n++) {
                    w[n][at] = side ? (bj_real)operand[i][0] : 1;
                    bias[n] = 0;
                }
                w[N - 1][0] = 0, bias[N - 1] = (bj_real)off; /* a sum that bfloat16 cannot
                                                                represent */
                a[at] = side ? 1 : (bj_real)operand[i][0];
                if (at) w[N - 1][at] = 0;
                k->pack_nk(packed, &w[0][0], K, N, K);
                k->gemm(c[0], N, a, K, packed, bias, NULL, 0, 1, N, K, 0);
                for (int n = 0; n < N - 1; n++)
                    CHECK_MSG(isnan(value) ? isnan((double)c[0][n]) : (double)c[0][n] == value,
                              "%s: %g rounds to %.9g, expected %.9g", k->isa,
                              (double)operand[i][0], (double)c[0][n], value);
                if (isfinite(value))
                    CHECK_MSG((double)c[0][N - 1] == off, "%s: the bias is rounded", k->isa);
            }
        }
    }
    bj_free(packed);
}

static void test_attention(const bj_kernels *k, int S, int G, int W) {
    const size_t ld = (size_t)W + 3, n = (size_t)S * ld, sg = (size_t)S * G, gw = (size_t)G * ld;
    bj_real *r = random_array(n), *a = random_array(gw), *p = random_array(gw);
    bj_real *alpha = random_array(sg), *ds = random_array(sg);
    bj_real *s1 = random_array(sg), *s2 = random_array(sg);
    k->scores(s1, r, ld, a, ld, S, G, W);
    reference(k)->scores(s2, r, ld, a, ld, S, G, W);
    compare(s1, s2, sg, sqrt((double)W), "scores", k->isa);
    bj_real *p1 = random_array(gw), *p2 = bj_alloc(gw, sizeof *p2);
    memcpy(p2, p1, gw * sizeof *p1);
    k->pool(p1, ld, alpha, r, ld, S, G, W);
    reference(k)->pool(p2, ld, alpha, r, ld, S, G, W);
    compare(p1, p2, gw, sqrt((double)S), "pool", k->isa);
    bj_real *d1 = random_array(n), *d2 = bj_alloc(n, sizeof *d2);
    memcpy(d2, d1, n * sizeof *d1);
    k->pool_backward(d1, ld, alpha, ds, p, ld, a, ld, r, ld, S, G, W);
    reference(k)->pool_backward(d2, ld, alpha, ds, p, ld, a, ld, r, ld, S, G, W);
    compare(d1, d2, n, sqrt((double)G), "pool backward", k->isa);
    bj_free(r), bj_free(a), bj_free(p), bj_free(alpha), bj_free(ds), bj_free(s1), bj_free(s2);
    bj_free(p1), bj_free(p2), bj_free(d1), bj_free(d2);
}

static void test_optimizer(const bj_kernels *k, size_t n) {
    const bj_adamw_coefficients q = {(bj_real)0.5,  (bj_real)0.9,  (bj_real)0.999, (bj_real)1e-8,
                                     (bj_real)0.99, (bj_real)3e-3, (bj_real)2.0};
    bj_real *w = random_array(n), *m = random_array(n), *v = random_array(n), *g = random_array(n);
    bj_real *w2 = bj_alloc(n, sizeof *w), *m2 = bj_alloc(n, sizeof *w), *v2 = bj_alloc(n, sizeof *w);
    bj_real *scale = random_array(n);
    for (size_t i = 0; i < n; i++) v[i] = (bj_real)fabs((double)v[i]) + (bj_real)0.01;
    memcpy(w2, w, n * sizeof *w), memcpy(m2, m, n * sizeof *m), memcpy(v2, v, n * sizeof *v);
    for (int scaled = 0; scaled < 2; scaled++) {
        k->adamw(w, m, v, g, scaled ? scale : NULL, n, &q);
        reference(k)->adamw(w2, m2, v2, g, scaled ? scale : NULL, n, &q);
        compare(w, w2, n, 1, "adamw weight", k->isa);
        compare(m, m2, n, 1, "adamw mean", k->isa);
        compare(v, v2, n, 1, "adamw variance", k->isa);
    }
    k->ema(w, g, n, (bj_real)0.996);
    reference(k)->ema(w2, g, n, (bj_real)0.996);
    compare(w, w2, n, 1, "ema", k->isa);
    CHECK_NEAR(k->sum_squares(w, n), reference(k)->sum_squares(w, n), 1e-12 * (double)n);
    bj_free(scale), bj_free(w), bj_free(m), bj_free(v), bj_free(g), bj_free(w2), bj_free(m2), bj_free(v2);
}

static void test_table(const bj_kernels *k) {
    static const int sizes[][3] = {{1, 1, 1},     {1, 24, 8},    {1, 96, 33},   {3, 7, 5},
                                   {4, 24, 16},   {5, 25, 300},  {16, 96, 264}, {17, 121, 600},
                                   {70, 50, 40},  {8, 48, 64},   {9, 97, 1030}, {2, 47, 321},
                                   {5, 50, 2700} /* three blocks of k */};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        test_gemm(k, sizes[i][0], sizes[i][1], sizes[i][2]);
    for (int N = 1; N <= BJ_GRADIENT_COLUMNS; N += N < 4 ? 1 : N < 60 ? 5 : 57) {
        test_gradient(k, 1, 1, N < BJ_GRADIENT_ROWS ? N : BJ_GRADIENT_ROWS, N);
        test_gradient(k, 5, 3, 7, N);
        test_gradient(k, 40, 11, 13, N);
        test_gradient(k, 256, 1, 64, N);
        test_gradient(k, 1024, 1, 9, N); /* two shards per chunk */
        test_gradient(k, 2048, 1, 9, N); /* one shard per chunk */
    }
    test_gradient(k, 300, 10, BJ_GRADIENT_ROWS, BJ_GRADIENT_COLUMNS); /* parts of shards */
    test_gru_row(k, 1);
    test_gru_row(k, 37);
    test_gru_row(k, 64);
    test_activations(k);
    test_gru(k, 1, 1, 0);
    test_gru(k, 3, 37, 0);
    test_gru(k, 5, 256, 0);
    test_gru(k, 13, 64, 1);
    test_attention(k, 1, 1, 1);
    test_attention(k, 2, 4, 512);
    test_attention(k, 36, 4, 512);
    test_attention(k, 7, 7, 37);
    test_attention(k, 5, 5, 75);
    test_optimizer(k, 1);
    test_optimizer(k, 1003);
}

int main(void) {
    for (int i = 0; bj_kernels_at(i); i++) {
        const bj_kernels *found, *k = bj_kernels_at(i);
        bj_error err;
        CHECK_OK(bj_kernels_find(&found, k->isa, BJ_PRECISION_FULL, &err), err);
        CHECK(found == k);
        CHECK_OK(bj_kernels_find(&found, k->isa, BJ_PRECISION_BF16, &err), err);
        CHECK(found == k->mixed);
        CHECK(k->single == k && k->mixed->single->mixed == k->mixed);
        test_table(k);
        test_table(k->mixed);
        test_rounding(k->mixed);
    }
    const bj_kernels *none;
    bj_error err;
    CHECK(bj_kernels_find(&none, "sse9", BJ_PRECISION_FULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "sse9");
    return test_report("kernels");
}
