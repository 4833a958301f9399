/* build.h - describes the compiler and the build options that affect results. */
#ifndef BJ_CORE_BUILD_H
#define BJ_CORE_BUILD_H

/* Returns the compiler, its version and the flags that change results, such as the optimization
 * level. Two builds with equal texts compute equal bits with the same instruction set. */
const char *bj_build(void);

#endif
