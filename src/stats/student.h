/* student.h - Student's t distribution, based on the regularized incomplete beta function.
 *
 *   P(|T| > t) = I_x(v/2, 1/2),   x = v / (v + t^2),   v degrees of freedom
 *
 * v may be any real number >= 1. The quantile is public: bj_student_quantile.
 * Formulas: docs/STATISTICS.md. Tests: tests/stats/test_student.c, peer_student.py
 */
#ifndef BJ_STATS_STUDENT_H
#define BJ_STATS_STUDENT_H

/* Returns I_x(a, b) for a, b > 0. y must be 1 - x. It is a separate argument, because computing 1 -
 * x would lose digits if x is near 1. */
double bj_incomplete_beta(double x, double y, double a, double b);

/* Sets *outside = P(|T| > t) and *inside = P(|T| <= t) for t >= 0 and v >= 1, both with small
 * relative error. Intended for v up to BJ_STUDENT_LARGE, because the continued fraction converges
 * slowly beyond it. */
#define BJ_STUDENT_LARGE 2e5
void bj_student_split(double *outside, double *inside, double t, double v);

#endif
