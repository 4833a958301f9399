/* events.h - writes TensorBoard event files of a run: dir/events.out.tfevents.TIME.HOST.PID
 *
 * A record consists of a u64 length, the masked crc32c of the length, the Event message and the
 * masked crc32c of the message, all little-endian. The first Event has the file version
 * "brain.Event:2". Events are kept in memory and appended by bj_events_flush. A crash may leave a
 * truncated record at the end, which readers ignore.
 */
#ifndef BJ_RUN_EVENTS_H
#define BJ_RUN_EVENTS_H

#include <branchjepa/branchjepa.h>

typedef struct bj_events bj_events;

/* Creates a file in `dir`. Its SessionLog START event makes readers discard all earlier events with
 * a step of at least `step`. A new run passes 0. A resumed run passes the first step that it may
 * write again, which is the step after the last epoch it keeps. */
BJ_CHECK bj_status bj_events_create(bj_events **out, const char *dir, int64_t step, bj_error *err);
/* Adds a scalar. NaN is left out. */
BJ_CHECK bj_status bj_events_scalar(bj_events *events, int64_t step, const char *tag, double value,
                                    bj_error *err);
/* Adds all scalars of an epoch: train/..., dev/..., health/... */
BJ_CHECK bj_status bj_events_epoch(bj_events *events, const bj_epoch *row, bj_error *err);
BJ_CHECK bj_status bj_events_flush(bj_events *events, bj_error *err);
void bj_events_free(bj_events *events); /* discards events that were not flushed */

#endif
