/* status.h - error reporting.
 *
 * Functions that can fail return bj_status and take a bj_error, which may be NULL, as their last
 * argument. BJ_FAIL fills in the message and evaluates to the code. BJ_TRY returns from the calling
 * function if a call fails. BJ_GOTO jumps to the cleanup label if a call fails.
 */
#ifndef BJ_CORE_STATUS_H
#define BJ_CORE_STATUS_H

#include <branchjepa/branchjepa.h>

#if defined(__GNUC__)
#define BJ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define BJ_PRINTF(fmt, args)
#endif

/* Formats the message into err, which may be NULL, and returns code. */
bj_status bj_fail(bj_error *err, bj_status code, const char *fmt, ...) BJ_PRINTF(3, 4);

#define BJ_FAIL(err, code, ...) bj_fail((err), (code), __VA_ARGS__)

#define BJ_TRY(call)                                                                               \
    do {                                                                                           \
        const bj_status bj_try_status_ = (call);                                                   \
        if (bj_try_status_ != BJ_OK) return bj_try_status_;                                        \
    } while (0)

/* Stores the result of the call in `status`, and jumps to `label` if the result is not BJ_OK. */
#define BJ_GOTO(status, label, call)                                                               \
    do {                                                                                           \
        (status) = (call);                                                                         \
        if ((status) != BJ_OK) goto label;                                                         \
    } while (0)

#endif
