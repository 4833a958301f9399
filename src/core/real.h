/* real.h - floating-point type of the engine.
 *
 * bj_real is float in every normal build and double in the `double` preset, which exists for
 * gradient checks.
 */
#ifndef BJ_CORE_REAL_H
#define BJ_CORE_REAL_H

#include <branchjepa/branchjepa.h> /* bj_real and the shared sizes */

#ifdef BJ_DOUBLE
#define BJ_REAL_IS_DOUBLE 1
#else
#define BJ_REAL_IS_DOUBLE 0
#endif

#endif
