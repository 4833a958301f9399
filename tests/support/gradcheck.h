/* gradcheck.h - compares hand-written gradients with finite differences.
 *
 * A case is a scalar function, the arrays it reads and a function that writes their gradients:
 *
 *   static double loss(void *context);       reads the arrays, returns the scalar
 *   static void gradient(void *context);     fills every dx below, reads only
 *
 *   gradcheck_array arrays[] = {{.name = "x", .x = x, .dx = dx, .rows = 1, .cols = n}};
 *   gradcheck_case c = {.name = "mine", .loss = loss, .gradient = gradient, .context = &mine,
 *                       .arrays = arrays, .count = 1};
 *   gradcheck(&c);                           counts checks through test.h
 *
 * Checks for every array:
 *   - dx is finite and not zero everywhere (or zero everywhere if .zero is set)
 *   - |dx_i - (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h|  <=  tol * scale, where scale is
 *     the largest entry of the analytic and the numeric gradient of the array (1 if .zero is set)
 *   - neither function changed its inputs, and loss returns the same value before and after
 * A layer with many outputs becomes a scalar as sum(out * r) with a random r. With a plain sum or a
 * constant r, softmax and normalization have gradient zero, and nothing is tested.
 *
 * In a float build, rounding errors of f exceed the difference, so this comparison is skipped with
 * a message. The other checks still run. A point where f has a kink within 2h cannot be compared.
 */
#ifndef BJ_TESTS_GRADCHECK_H
#define BJ_TESTS_GRADCHECK_H

#include <stdlib.h>

#include <branchjepa/branchjepa.h>

#include "test.h"

typedef struct gradcheck_array {
    const char *name;
    bj_real *x;        /* (rows,cols) input, perturbed and restored */
    const bj_real *dx; /* (rows,cols) gradient filled by `gradient` */
    int rows, cols;
    size_t stride; /* row stride of x and dx; 0: cols */
    int zero;      /* 1: the gradient is expected to be zero everywhere */
    double step;   /* h; 0: the step of the case */
} gradcheck_array;

typedef struct gradcheck_case {
    const char *name;
    double (*loss)(void *context);
    void (*gradient)(void *context);
    void *context;
    const gradcheck_array *arrays;
    int count;
    double step; /* h; 0: 1e-3 */
    double tol;  /* 0: 1e-7 */
    int probes;  /* max number of evenly spaced entries to compare per array; 0: all */
} gradcheck_case;

/* The largest relative error and its position. */
typedef struct gradcheck_result {
    double worst;
    const char *array; /* NULL: nothing was compared */
    int row, col;
    double analytic, numeric;
} gradcheck_result;

static inline size_t gradcheck_stride(const gradcheck_array *a) {
    return a->stride ? a->stride : (size_t)a->cols;
}

static inline size_t gradcheck_extent(const gradcheck_array *a) {
    return (size_t)(a->rows - 1) * gradcheck_stride(a) + (size_t)a->cols;
}

static inline bj_real *gradcheck_copy(const bj_real *x, size_t n) {
    bj_real *copy = malloc(n * sizeof *copy);
    if (!copy) {
        fprintf(stderr, "gradcheck: out of memory\n");
        exit(1);
    }
    memcpy(copy, x, n * sizeof *copy);
    return copy;
}

/* Returns the 4-point central difference of the loss at one entry and restores the entry. */
static inline double gradcheck_difference(const gradcheck_case *c, bj_real *entry, double h) {
    const bj_real x = *entry;
    double f[4];
    for (int i = 0; i < 4; i++) {
        static const int steps[4] = {1, -1, 2, -2};
        *entry = (bj_real)(x + steps[i] * h);
        f[i] = c->loss(c->context);
    }
    *entry = x;
    return (8 * (f[0] - f[1]) - (f[2] - f[3])) / (12 * h);
}

/* Returns the largest |analytic - numeric| over the entries, relative to the scale. NaN counts as
 * the largest error. */
static inline gradcheck_result gradcheck_compare(const gradcheck_case *c, const gradcheck_array *a,
                                                 const bj_real *dx) {
    const size_t stride = gradcheck_stride(a), n = (size_t)a->rows * (size_t)a->cols;
    const size_t every = c->probes && n > (size_t)c->probes ? n / (size_t)c->probes : 1;
    const double h = a->step ? a->step : c->step ? c->step : 1e-3;
    gradcheck_result r = {0, NULL, 0, 0, 0, 0};
    double scale = 0, error = -1;
    for (size_t i = 0; i < n; i++) {
        const double g = fabs((double)dx[i / (size_t)a->cols * stride + i % (size_t)a->cols]);
        if (g > scale) scale = g;
    }
    for (size_t i = 0; i < n; i += every) {
        const size_t row = i / (size_t)a->cols, col = i % (size_t)a->cols;
        const double analytic = dx[row * stride + col];
        const double numeric = gradcheck_difference(c, a->x + row * stride + col, h);
        const double e = fabs(analytic - numeric);
        if (fabs(numeric) > scale) scale = fabs(numeric);
        if (!(e <= error)) {
            error = e;
            r.array = a->name;
            r.row = (int)row;
            r.col = (int)col;
            r.analytic = analytic;
            r.numeric = numeric;
            if (!(e >= 0)) break; /* NaN stays the worst error */
        }
    }
    r.worst = scale > 0 && !a->zero ? error / scale : error;
    return r;
}

static inline gradcheck_result gradcheck(const gradcheck_case *c) {
    const double tol = c->tol ? c->tol : 1e-7;
    const int compare = sizeof(bj_real) == sizeof(double);
    gradcheck_result worst = {0, NULL, 0, 0, 0, 0};
    bj_real **x = malloc((size_t)c->count * sizeof *x),
            **dx = malloc((size_t)c->count * sizeof *dx);
    if (!x || !dx) exit(1);

    const double before = c->loss(c->context);
    CHECK_MSG(isfinite(before), "%s: loss is %g", c->name, before);
    for (int i = 0; i < c->count; i++)
        x[i] = gradcheck_copy(c->arrays[i].x, gradcheck_extent(&c->arrays[i]));
    c->gradient(c->context);

    for (int i = 0; i < c->count; i++) { /* copy, because loss may overwrite dx */
        const gradcheck_array *a = &c->arrays[i];
        int finite = 1, nonzero = 0;
        dx[i] = gradcheck_copy(a->dx, gradcheck_extent(a));
        for (int row = 0; row < a->rows; row++)
            for (int col = 0; col < a->cols; col++) {
                const bj_real g = dx[i][(size_t)row * gradcheck_stride(a) + (size_t)col];
                if (!isfinite(g)) finite = 0;
                if (g != 0) nonzero = 1;
            }
        CHECK_MSG(finite, "%s: gradient of %s is not finite", c->name, a->name);
        CHECK_MSG(nonzero == !a->zero, "%s: gradient of %s is%s zero everywhere", c->name, a->name,
                  nonzero ? " not" : "");
    }
    for (int i = 0; i < c->count && compare; i++) {
        const gradcheck_result r = gradcheck_compare(c, &c->arrays[i], dx[i]);
        CHECK_MSG(r.worst <= tol,
                  "%s: the gradient of %s[%d,%d] is %.12g, "
                  "but the finite difference is %.12g (error %g)",
                  c->name, r.array, r.row, r.col, r.analytic, r.numeric, r.worst);
        if (!isnan(worst.worst) && !(r.worst <= worst.worst)) worst = r;
    }
    for (int i = 0; i < c->count; i++) {
        const gradcheck_array *a = &c->arrays[i];
        CHECK_MSG(memcmp(x[i], a->x, gradcheck_extent(a) * sizeof *x[i]) == 0, "%s: %s was changed",
                  c->name, a->name);
        free(x[i]);
        free(dx[i]);
    }
    free(x);
    free(dx);
    const double after = c->loss(c->context);
    CHECK_MSG(before == after, "%s: loss was %.17g, is %.17g", c->name, before, after);

    static int told;
    if (!compare && !told++)
        printf("gradcheck: finite differences are skipped in a float build; "
               "use the double build\n");
    return worst;
}

#endif
