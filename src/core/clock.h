/* clock.h - monotonic clock in seconds. */
#ifndef BJ_CORE_CLOCK_H
#define BJ_CORE_CLOCK_H

double bj_seconds(void);

#endif
