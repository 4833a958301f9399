/* test.h - a minimal test framework that checks conditions, counts failures and reports them.
 *
 *   int main(void) { CHECK(1 + 1 == 2); CHECK_NEAR(x, 0.5, 1e-6); return test_report("name"); }
 *
 * Comparisons are written so that NaN fails. The exit code is 0 if all checks passed.
 */
#ifndef BJ_TESTS_TEST_H
#define BJ_TESTS_TEST_H

#include <math.h>
#include <stdio.h>
#include <string.h>

static int test_passed, test_failed;

#define CHECK_MSG(condition, ...)                                                                  \
    do {                                                                                           \
        if (condition) {                                                                           \
            test_passed++;                                                                         \
        } else if (++test_failed <= 20) {                                                          \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

#define CHECK(condition) CHECK_MSG(condition, "failed")

/* Checks that |a - b| <= tolerance. */
#define CHECK_NEAR(a, b, tolerance)                                                                \
    do {                                                                                           \
        const double near_a_ = (a), near_b_ = (b), near_t_ = (tolerance);                          \
        CHECK_MSG(fabs(near_a_ - near_b_) <= near_t_, "%.17g, expected %.17g within %g", near_a_,  \
                  near_b_, near_t_);                                                               \
    } while (0)

#define CHECK_OK(call, err) CHECK_MSG((call) == BJ_OK, "%s", (err).message)

#define CHECK_CONTAINS(text, part)                                                                 \
    CHECK_MSG(strstr((text), (part)) != NULL, "\"%s\" does not mention \"%s\"", (text), (part))

static inline int test_report(const char *name) {
    printf("%s: %d passed, %d failed\n", name, test_passed, test_failed);
    return test_failed || !test_passed;
}

#endif
