/* student.h - Student's t distribution, from the regularized incomplete beta function.
 *
 *   P(|T| > t) = I_x(v/2, 1/2),   x = v / (v + t^2),   v degrees of freedom
 *
 * Any v >= 1, whole or not. The quantile is public: bj_student_quantile.
 * Formulas: docs/STATISTICS.md. Tests: tests/stats/test_student.c, peer_student.py
 */
#ifndef BJ_STATS_STUDENT_H
#define BJ_STATS_STUDENT_H

/* I_x(a, b), a and b > 0, with y = 1 - x given as well: near 1 the difference has no digits left.
 */
double bj_incomplete_beta(double x, double y, double a, double b);

/* For t >= 0 and v >= 1: *outside = P(|T| > t) and *inside = P(|T| <= t), both precise in
 * proportion. Meant for v up to BJ_STUDENT_LARGE; beyond, the fraction settles slowly. */
#define BJ_STUDENT_LARGE 2e5
void bj_student_split(double *outside, double *inside, double t, double v);

#endif
