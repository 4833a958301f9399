/* status.h - how a function says that it failed.
 *
 * Fallible functions return bj_status and take a nullable bj_error last. BJ_FAIL fills the message
 * and yields the code; BJ_TRY forwards the first failure; BJ_GOTO jumps to the clean-up label.
 */
#ifndef BJ_CORE_STATUS_H
#define BJ_CORE_STATUS_H

#include <branchjepa/branchjepa.h>

#if defined(__GNUC__)
#define BJ_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define BJ_PRINTF(fmt, args)
#endif

/* Formats the message into err (which may be NULL) and returns code. */
bj_status bj_fail(bj_error *err, bj_status code, const char *fmt, ...) BJ_PRINTF(3, 4);

#define BJ_FAIL(err, code, ...) bj_fail((err), (code), __VA_ARGS__)

#define BJ_TRY(call)                                                                               \
    do {                                                                                           \
        const bj_status bj_try_status_ = (call);                                                   \
        if (bj_try_status_ != BJ_OK) return bj_try_status_;                                        \
    } while (0)

/* Stores the status in `status` and jumps to `label` when it is not BJ_OK. */
#define BJ_GOTO(status, label, call)                                                               \
    do {                                                                                           \
        (status) = (call);                                                                         \
        if ((status) != BJ_OK) goto label;                                                         \
    } while (0)

#endif
