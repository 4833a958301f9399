/* real.h - the one floating-point type of the engine.
 *
 * float in every normal build; double in the `double` preset, which exists for gradient checks.
 */
#ifndef BJ_CORE_REAL_H
#define BJ_CORE_REAL_H

#include <branchjepa/branchjepa.h> /* bj_real, and the sizes every folder shares */

#ifdef BJ_DOUBLE
#define BJ_REAL_IS_DOUBLE 1
#else
#define BJ_REAL_IS_DOUBLE 0
#endif

#endif
