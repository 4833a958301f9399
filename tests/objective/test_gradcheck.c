/* test_gradcheck.c - tests that gradcheck.h accepts correct gradients and detects injected errors.
 *
 *   f(x, w) = sum_i w_i sin(x_i) + (sum_i x_i)^2 / 2
 */
#include "support/gradcheck.h"

enum { N = 7, ROWS = 3, COLS = 4, STRIDE = 6 };

typedef enum mistake {
    NONE,
    SCALED,       /* one entry is off by 0.1 % */
    SIGN,         /* one entry is negated */
    SILENT_ZERO,  /* the whole gradient is missing */
    NOT_A_NUMBER, /* one entry is NaN */
    CLOBBERED     /* the backward pass changes its input */
} mistake;

typedef struct fixture {
    bj_real x[N], w[N], dx[N], dw[N];
    mistake plant;
} fixture;

static double loss(void *context) {
    const fixture *f = context;
    double sum = 0, total = 0;
    for (int i = 0; i < N; i++) {
        sum += f->x[i];
        total += f->w[i] * sin(f->x[i]);
    }
    return total + sum * sum / 2;
}

static void gradient(void *context) {
    fixture *f = context;
    double sum = 0;
    for (int i = 0; i < N; i++) sum += f->x[i];
    for (int i = 0; i < N; i++) {
        f->dx[i] = (bj_real)(f->w[i] * cos(f->x[i]) + sum);
        f->dw[i] = (bj_real)sin(f->x[i]);
    }
    if (f->plant == SCALED) f->dx[2] *= (bj_real)1.001;
    if (f->plant == SIGN) f->dx[N - 1] = -f->dx[N - 1];
    if (f->plant == SILENT_ZERO) memset(f->dw, 0, sizeof f->dw);
    if (f->plant == NOT_A_NUMBER) f->dx[1] = (bj_real)NAN;
    if (f->plant == CLOBBERED) f->x[0] += (bj_real)0.5;
}

/* Runs gradcheck with an injected error and returns the number of failed checks, without counting
 * them as failures of this test. */
static int failures_with(mistake plant) {
    fixture f = {.plant = plant};
    for (int i = 0; i < N; i++) {
        f.x[i] = (bj_real)(0.3 * i - 0.8);
        f.w[i] = (bj_real)(1 - 0.2 * i);
    }
    const gradcheck_array arrays[] = {
        {.name = "x", .x = f.x, .dx = f.dx, .rows = 1, .cols = N},
        {.name = "w", .x = f.w, .dx = f.dw, .rows = 1, .cols = N},
    };
    const gradcheck_case c = {.name = "planted",
                              .loss = loss,
                              .gradient = gradient,
                              .context = &f,
                              .arrays = arrays,
                              .count = 2};
    const int passed = test_passed, failed = test_failed;
    test_failed = 1000; /* more than the number of messages that test.h prints */
    gradcheck(&c);
    const int found = test_failed - 1000;
    test_passed = passed;
    test_failed = failed;
    return found;
}

/* Rows with padding. gradcheck must neither perturb the padding nor read it as a gradient. */
typedef struct padded {
    bj_real x[ROWS * STRIDE], dx[ROWS * STRIDE];
} padded;

static double padded_loss(void *context) {
    const padded *p = context;
    double total = 0;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++) total += (r + 1) * exp(0.1 * c * p->x[r * STRIDE + c]);
    return total;
}

static void padded_gradient(void *context) {
    padded *p = context;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            p->dx[r * STRIDE + c] =
                (bj_real)((r + 1) * 0.1 * c * exp(0.1 * c * p->x[r * STRIDE + c]));
}

int main(void) {
    const int in_double = sizeof(bj_real) == sizeof(double);
    CHECK(failures_with(NONE) == 0);
    CHECK(failures_with(SILENT_ZERO) > 0);
    CHECK(failures_with(NOT_A_NUMBER) > 0);
    CHECK(failures_with(CLOBBERED) > 0);
    if (in_double) { /* these two errors are found only by finite differences */
        CHECK(failures_with(SCALED) > 0);
        CHECK(failures_with(SIGN) > 0);
    }
    padded p;
    for (int i = 0; i < ROWS * STRIDE; i++) {
        p.x[i] = (bj_real)(i % STRIDE < COLS ? 0.1 * i : NAN);
        p.dx[i] = (bj_real)NAN;
    }
    const gradcheck_array array = {
        .name = "x", .x = p.x, .dx = p.dx, .rows = ROWS, .cols = COLS, .stride = STRIDE};
    const gradcheck_case c = {.name = "padded",
                              .loss = padded_loss,
                              .gradient = padded_gradient,
                              .context = &p,
                              .arrays = &array,
                              .count = 1};
    const gradcheck_result r = gradcheck(&c);
    CHECK(!in_double || (r.worst > 0 && r.worst < 1e-9)); /* values were actually compared */
    return test_report("gradcheck");
}
