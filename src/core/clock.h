/* clock.h - seconds of a clock that only goes forward. */
#ifndef BJ_CORE_CLOCK_H
#define BJ_CORE_CLOCK_H

double bj_seconds(void);

#endif
