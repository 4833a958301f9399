/* events.h - TensorBoard event files of a run: dir/events.out.tfevents.TIME.HOST.PID
 *
 * A record is u64 length, masked crc32c of the length, the Event message, masked crc32c of it; all
 * little-endian. The first Event has the file version "brain.Event:2". Events are kept in memory and
 * appended by bj_events_flush: what a crash leaves is a whole number of records or a last one cut
 * short, which readers ignore.
 */
#ifndef BJ_RUN_EVENTS_H
#define BJ_RUN_EVENTS_H

#include <branchjepa/branchjepa.h>

typedef struct bj_events bj_events;

/* A new file in `dir`. Readers are told to forget what earlier files of the folder say about `step`
 * and later ones (SessionLog START): a run that goes on gives the first step it may tell again,
 * which is one after the last epoch it keeps. 0: a fresh run. */
BJ_CHECK bj_status bj_events_create(bj_events **out, const char *dir, int64_t step, bj_error *err);
/* NaN is left out. */
BJ_CHECK bj_status bj_events_scalar(bj_events *events, int64_t step, const char *tag, double value,
                                    bj_error *err);
/* All scalars of an epoch: train/..., dev/..., health/... */
BJ_CHECK bj_status bj_events_epoch(bj_events *events, const bj_epoch *row, bj_error *err);
BJ_CHECK bj_status bj_events_flush(bj_events *events, bj_error *err);
void bj_events_free(bj_events *events); /* what is not flushed is lost */

#endif
