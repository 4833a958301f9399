/* test_normalize.c - tests u = a / max(|a|, 1e-12): values, gradient, floor and overflow. */
#include "nn/normalize.h"

#include <float.h>

#include "nn_case.h"

enum { PAD = 3 };

/* Rows to normalize. The loss is sum(r * u). */
typedef struct rows {
    int M, D;
    size_t ld;
    bj_real *a, *u, *r, *du, *inverse;
} rows;

static rows make(int M, int D, double scale, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    rows x = {.M = M, .D = D, .ld = (size_t)D + PAD};
    x.a = nn_normal(&rng, M, D, x.ld, scale);
    x.r = nn_normal(&rng, M, D, x.ld, 1);
    x.u = nn_array((size_t)M * x.ld, MARKER);
    x.du = nn_array((size_t)M * x.ld, MARKER);
    x.inverse = nn_array((size_t)M, MARKER);
    return x;
}

static void release(rows *x) {
    bj_free(x->a), bj_free(x->r), bj_free(x->u), bj_free(x->du), bj_free(x->inverse);
}

static void copy(bj_real *to, const bj_real *from, const rows *x) {
    for (int m = 0; m < x->M; m++)
        memcpy(to + (size_t)m * x->ld, from + (size_t)m * x->ld, (size_t)x->D * sizeof *to);
}

static double loss(void *context) {
    rows *x = context;
    double sum = 0;
    copy(x->u, x->a, x);
    bj_normalize_forward(x->u, x->ld, x->inverse, x->M, x->D);
    for (int m = 0; m < x->M; m++)
        for (int d = 0; d < x->D; d++)
            sum += (double)x->u[(size_t)m * x->ld + (size_t)d] *
                   (double)x->r[(size_t)m * x->ld + (size_t)d];
    return sum;
}

static void gradient(void *context) {
    rows *x = context;
    loss(x);
    copy(x->du, x->r, x);
    bj_normalize_backward(x->du, x->ld, x->u, x->inverse, x->M, x->D);
}

static void check_gradient(rows *x, const char *name, double step) {
    const gradcheck_array array = {
        .name = "a", .x = x->a, .dx = x->du, .rows = x->M, .cols = x->D, .stride = x->ld};
    const gradcheck_case c = {.name = name,
                              .loss = loss,
                              .gradient = gradient,
                              .context = x,
                              .arrays = &array,
                              .count = 1,
                              .step = step,
                              .tol = 1e-8,
                              .probes = 200};
    gradcheck(&c);
    CHECK(nn_untouched(x->u, x->M, x->D, x->ld) && nn_untouched(x->du, x->M, x->D, x->ld));
}

static void test_values(int M, int D, double scale) {
    rows x = make(M, D, scale, (uint64_t)(100 * M + D));
    loss(&x);
    for (int m = 0; m < M; m++) {
        const bj_real *a = x.a + (size_t)m * x.ld, *u = x.u + (size_t)m * x.ld;
        double square = 0, worst = 0, length = 0;
        for (int d = 0; d < D; d++) square += (double)a[d] * (double)a[d];
        for (int d = 0; d < D; d++) {
            worst = fmax(worst, fabs((double)u[d] - (double)a[d] / sqrt(square)));
            length += (double)u[d] * (double)u[d];
        }
        CHECK_MSG(worst <= nn_tolerance(), "row %d of %dx%d is off by %g", m, M, D, worst);
        CHECK_NEAR(length, 1, 10 * nn_tolerance());
        CHECK_NEAR((double)x.inverse[m] * sqrt(square), 1, nn_tolerance());
    }
    if (D > 1) {
        check_gradient(&x, "normalize", 1e-3 * scale);
    } else { /* u is +1 or -1, so the gradient is zero */
        gradient(&x);
        for (int m = 0; m < M; m++) CHECK_NEAR(x.du[(size_t)m * x.ld], 0, nn_tolerance());
    }
    release(&x);
}

/* Tests that below the floor the divisor is the constant 1e-12, so the gradient keeps its component
 * along u. */
static void test_floor(void) {
    const double tolerance = sizeof(bj_real) == sizeof(double) ? 1e-12 : 1e-6;
    rows x = make(4, 9, 1e-14, 5);
    memset(x.a + x.ld, 0, 9 * sizeof *x.a); /* row 1: zeros */
    for (int d = 0; d < 9; d++) x.a[3 * x.ld + (size_t)d] *= (bj_real)1e14; /* row 3: normal */
    gradient(&x);
    for (int m = 0; m < 3; m++)
        for (int d = 0; d < 9; d++) {
            const size_t i = (size_t)m * x.ld + (size_t)d;
            CHECK_NEAR(x.u[i], (double)x.a[i] * 1e12, tolerance);
            CHECK_NEAR((double)x.du[i] * 1e-12, x.r[i], 10 * tolerance);
        }
    double along = 0;
    for (int d = 0; d < 9; d++)
        along += (double)x.du[3 * x.ld + (size_t)d] * (double)x.u[3 * x.ld + (size_t)d];
    CHECK_NEAR(along, 0, 10 * nn_tolerance()); /* for a norm above the floor, that component is
                                                  zero */
    x.M = 3;
    check_gradient(&x, "normalize below the floor", 1e-15);
    release(&x);
}

/* Tests that a row whose norm overflows does not become a row of zeros. */
static void test_overflow(void) {
    rows x = make(2, 12, 1, 6);
    for (int d = 0; d < 12; d++)
        x.a[d] *= (bj_real)(sizeof(bj_real) == sizeof(double) ? DBL_MAX / 100 : FLT_MAX / 100);
    loss(&x);
    double length = 0;
    for (int d = 0; d < 12; d++) length += (double)x.u[d] * (double)x.u[d];
    CHECK_MSG(isnan(length) || fabs(length - 1) < 1e-5, "length %g", length);
    x.a[3] = (bj_real)INFINITY;
    CHECK(!isfinite(loss(&x)));
    x.a[3] = (bj_real)NAN;
    CHECK(!isfinite(loss(&x)));
    for (int d = 0; d < 12; d++) CHECK(isfinite(x.u[x.ld + (size_t)d])); /* not affected */
    release(&x);
}

int main(void) {
    static const int sizes[] = {1, 2, 7, 8, 9, 16, 41, 512};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) test_values(3, sizes[i], 1);
    test_values(1, 5, 1e-3);
    test_values(7, 11, 1e3);
    test_floor();
    test_overflow();
    return test_report("normalize");
}
