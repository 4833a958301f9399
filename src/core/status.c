/* status.c - error messages and the names of status codes. */
#include "core/status.h"

#include <stdarg.h>
#include <stdio.h>

bj_status bj_fail(bj_error *err, bj_status code, const char *fmt, ...) {
    if (err) {
        va_list args;
        va_start(args, fmt);
        vsnprintf(err->message, sizeof err->message, fmt, args);
        va_end(args);
        err->code = code;
    }
    return code;
}

const char *bj_status_name(bj_status code) {
    switch (code) {
    case BJ_OK: return "ok";
    case BJ_EARG: return "bad argument";
    case BJ_EIO: return "input/output error";
    case BJ_EFORMAT: return "bad file format";
    case BJ_EVERSION: return "unsupported version";
    case BJ_ENOMEM: return "out of memory";
    case BJ_ENONFINITE: return "non-finite number";
    case BJ_ELOCKED: return "locked";
    case BJ_ECOMM: return "communication error";
    case BJ_EMISMATCH: return "mismatch";
    }
    return "unknown status";
}
