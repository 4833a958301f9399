/* student.c - see student.h.
 *
 * The quantile is computed with Newton's method on log P as a function of log t, kept inside a
 * bracket. On these axes, the tails of the distribution are nearly straight lines, so a few steps
 * reach full precision. Beyond BJ_STUDENT_LARGE degrees of freedom, the first terms of the
 * expansion around the normal quantile z are used. Their error is below 1e-11 even far out in the
 * tails.
 */
#include "stats/student.h"

#include <math.h>

#include <branchjepa/branchjepa.h>

static const double pi = 3.14159265358979323846;

/* Returns log Gamma(s) - [(s - 1/2) log s - s + log(2 pi)/2] for s >= 16, by Stirling's series. */
static double stirling_rest(double s) {
    const double r = 1 / (s * s);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r / 1188)))) / s;
}

/* Returns log x, where y = 1 - x. Uses the smaller of x and y, because it is more precise. */
static double log_of(double x, double y) { return x < 0.5 ? log(x) : log1p(-y); }

/* Returns log(1 / B(a, b)), where 1 / B(a, b) = Gamma(a + b) / (Gamma(a) Gamma(b)). Avoids the
 * cancellation in log Gamma(a + b) - log Gamma(a) for large a. */
static double log_inverse_beta(double a, double b) {
    double shift = 1; /* B(a, b) = B(a + 1, b) (a + b) / a, until both are large */
    for (; a < 16; a++) shift *= a / (a + b);
    for (; b < 16; b++) shift *= b / (a + b);
    const double s = a + b;
    return log(shift) - (a - 0.5) * log_of(a / s, b / s) - (b - 0.5) * log_of(b / s, a / s) +
           0.5 * log(s) - 0.5 * log(2 * pi) + stirling_rest(s) - stirling_rest(a) -
           stirling_rest(b);
}

/* Computes the continued fraction of the incomplete beta function with Lentz's method. Converges
 * quickly for x < (a + 1) / (a + b + 2), in about sqrt(max(a, b)) steps. */
static double beta_fraction(double x, double a, double b) {
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double value = d;
    for (int m = 1; m < 100000; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 + even * d;
        c = 1 + even / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        if (fabs(c) < tiny) c = tiny;
        value *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 + odd * d;
        c = 1 + odd / c;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        if (fabs(c) < tiny) c = tiny;
        value *= d * c;
        if (fabs(d * c - 1) < 1e-16) break;
    }
    return value;
}

/* Computes I_x(a, b) and its complement. Evaluates the one whose continued fraction converges
 * quickly. The other is 1 minus the result. */
static void beta_split(double *below, double *above, double x, double y, double a, double b) {
    const double front = exp(log_inverse_beta(a, b) + a * log_of(x, y) + b * log_of(y, x));
    if (x < (a + 1) / (a + b + 2)) {
        *below = front * beta_fraction(x, a, b) / a;
        *above = 1 - *below;
    } else {
        *above = front * beta_fraction(y, b, a) / b;
        *below = 1 - *above;
    }
}

double bj_incomplete_beta(double x, double y, double a, double b) {
    double below, above;
    if (x <= 0) return 0;
    if (y <= 0) return 1;
    beta_split(&below, &above, x, y, a, b);
    return below;
}

void bj_student_split(double *outside, double *inside, double t, double v) {
    const double square = t * t;
    *outside = 1;
    *inside = 0;
    if (square <= 0) return;
    if (square > 1e300) { /* v + t^2 rounds to t^2, and only the first term of the fraction
                             remains */
        *outside = exp(log_inverse_beta(v / 2, 0.5) + v * (0.5 * log(v) - log(t))) / (v / 2);
        *inside = 1 - *outside;
        return;
    }
    beta_split(outside, inside, v / (v + square), square / (v + square), v / 2, 0.5);
}

static double log_density(double t, double v) {
    const double stretch = t < 1e150 ? log1p(t * t / v) : 2 * log(t) - log(v);
    return log_inverse_beta(v / 2, 0.5) - 0.5 * log(v) - 0.5 * (v + 1) * stretch;
}

/* ------------------------------------------------------------------------------------ quantiles */

/* Moves u toward the root of a monotone function, given its value and slope at u. Takes a Newton
 * step if the result stays between the known bounds, otherwise bisects or takes a fixed step.
 * Returns 0 when the root is reached. */
typedef struct search {
    double u, low, high; /* the root is in (low, high) */
} search;

static int search_step(search *s, double value, double slope, int falling) {
    if ((value > 0) == falling) s->low = s->u;
    else s->high = s->u;
    double next = s->u - value / slope;
    if (fabs(next - s->u) <= 2e-16) { /* limit of the floating-point precision */
        s->u = next;
        return 0;
    }
    if (!(next > s->low && next < s->high)) {
        if (isinf(s->low)) next = s->high - 2;
        else if (isinf(s->high)) next = s->low + 2;
        else next = 0.5 * (s->low + s->high);
    }
    const int moved = next != s->u;
    s->u = next;
    return moved;
}

/* Returns t > 0 with P(|T| > t) = outside and P(|T| <= t) = inside. Uses the smaller of the two
 * probabilities. */
static double two_sided_quantile(double outside, double inside, double v) {
    search s = {0, -INFINITY, INFINITY}; /* u is log t */
    const int tail = outside < inside;
    for (int i = 0; i < 200; i++) {
        const double t = exp(s.u);
        double out, in;
        bj_student_split(&out, &in, t, v);
        const double p = tail ? out : in, wanted = tail ? outside : inside;
        if (p <= 0) {                       /* underflow */
            search_step(&s, -1, NAN, tail); /* no slope, so bisect or take a fixed step */
            continue;
        }
        const double slope = (tail ? -2 : 2) * exp(log_density(t, v) + s.u) / p;
        if (!search_step(&s, log(p / wanted), slope, tail)) break;
    }
    return exp(s.u);
}

/* Returns t > 0 for which a standard normal variable Z has P(|Z| > t) = outside and P(|Z| <= t) =
 * inside. */
static double normal_quantile(double outside, double inside) {
    search s = {0, 0, INFINITY};
    const int tail = outside < inside;
    for (int i = 0; i < 200; i++) {
        const double scaled = s.u * sqrt(0.5);
        const double p = tail ? erfc(scaled) : erf(scaled), wanted = tail ? outside : inside;
        const double slope = (tail ? -2 : 2) * exp(-0.5 * s.u * s.u) / sqrt(2 * pi);
        /* Compare logarithms in the steep tail, and probabilities near the center. */
        if (tail ? !search_step(&s, log(p / wanted), slope / p, 1)
                 : !search_step(&s, p - wanted, slope, 0))
            break;
    }
    return s.u;
}

double bj_student_quantile(double p, double v) {
    if (!(p >= 0 && p <= 1 && v >= 1)) return NAN;
    if (p == 0.5) return 0;
    if (p == 0 || p == 1) return p < 0.5 ? -INFINITY : INFINITY;
    const double side = p < 0.5 ? p : 1 - p;
    const double outside = 2 * side, inside = 2 * fabs(p - 0.5), sign = p < 0.5 ? -1 : 1;
    if (v <= BJ_STUDENT_LARGE) return sign * two_sided_quantile(outside, inside, v);
    const double z = normal_quantile(outside, inside), q = z * z;
    const double third = (((3 * q + 19) * q + 17) * q - 15) / 384;
    return sign * z * (1 + ((q + 1) / 4 + (((5 * q + 16) * q + 3) / 96 + third / v) / v) / v);
}
