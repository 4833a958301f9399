/* paired.c - computes means, sample SDs and paired t intervals.
 *
 *   d_i = a_i - b_i,   interval  mean(d) +- t_{(1 + level)/2, n - 1} sd(d) / sqrt(n)
 *
 * The SD divides by n - 1. The improvement is the difference of the means relative to |mean(b)|,
 * with the sign chosen so that a positive value is always an improvement. Formulas:
 * docs/STATISTICS.md.
 * Tests: tests/stats/test_paired.c, test_paper.c
 */
#include <math.h>

#include "core/alloc.h"
#include "core/status.h"

bj_summary bj_summarize(const double *values, int n) {
    bj_summary s = {n, NAN, NAN, NAN, NAN};
    if (n < 1) return s;
    double sum = 0, squares = 0, rest = 0;
    s.lowest = s.highest = values[0];
    for (int i = 0; i < n; i++) {
        sum += values[i];
        if (values[i] < s.lowest) s.lowest = values[i];
        if (values[i] > s.highest) s.highest = values[i];
    }
    s.mean = sum / n;
    if (s.lowest == s.highest) s.mean = s.lowest; /* avoids rounding, so the SD is 0 */
    for (int i = 0; i < n; i++) {
        const double d = values[i] - s.mean;
        squares += d * d;
        rest += d; /* zero, except for the rounding error of the mean */
    }
    if (n > 1) s.sd = sqrt(fmax(0, (squares - rest * rest / n) / (n - 1)));
    return s;
}

static double improvement(double mean_a, double mean_b, int better) {
    return better && mean_b != 0 ? better * (mean_a - mean_b) / fabs(mean_b) : NAN;
}

bj_status bj_compare_paired(bj_comparison *out, const double *a, const double *b, int n, int better,
                            double level, bj_error *err) {
    double *d;
    if (n < 1) return BJ_FAIL(err, BJ_EARG, "found %d pairs to compare, expected at least one", n);
    if (!(level > 0 && level < 1))
        return BJ_FAIL(err, BJ_EARG, "the interval level is %g, expected a number between 0 and 1",
                       level);
    for (int i = 0; i < n; i++)
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return BJ_FAIL(err, BJ_ENONFINITE, "pair %d is (%g, %g), expected finite values", i,
                           a[i], b[i]);
    BJ_TRY(BJ_ALLOC(d, (size_t)n, err));
    *out = (bj_comparison){.better = better};
    for (int i = 0; i < n; i++) {
        d[i] = a[i] - b[i];
        out->lower += a[i] < b[i];
        out->equal += a[i] == b[i];
        out->higher += a[i] > b[i];
    }
    out->a = bj_summarize(a, n);
    out->b = bj_summarize(b, n);
    out->difference = bj_summarize(d, n);
    bj_free(d);
    out->improvement = improvement(out->a.mean, out->b.mean, better);
    out->low = out->high = NAN;
    if (n > 1) {
        const double half =
            bj_student_quantile(0.5 + level / 2, n - 1) * out->difference.sd / sqrt(n);
        out->low = out->difference.mean - half;
        out->high = out->difference.mean + half;
    }
    return BJ_OK;
}
