/* failure.h - counts differences from a golden file and stores the message of the first one. */
#ifndef BJ_VERIFY_FAILURE_H
#define BJ_VERIFY_FAILURE_H

#include <stdarg.h>
#include <stdio.h>

#include "core/status.h"

BJ_PRINTF(2, 3)
static inline void bj_note_failure(bj_parity_report *report, const char *fmt, ...) {
    if (report->failed++) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(report->first_failure, sizeof report->first_failure, fmt, args);
    va_end(args);
}

#endif
