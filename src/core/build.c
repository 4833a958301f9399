/* build.c - see build.h. The build system defines BJ_BUILD for this file (cmake/Flags.cmake). */
#include "core/build.h"

#ifndef BJ_BUILD
#define BJ_BUILD "unknown flags, compiler " __VERSION__
#endif

const char *bj_build(void) { return BJ_BUILD; }
