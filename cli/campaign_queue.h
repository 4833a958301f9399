/* campaign_queue.h - runs the runs of a shard: one `bjepa train` process each, as many as fit. */
#ifndef BJEPA_CAMPAIGN_QUEUE_H
#define BJEPA_CAMPAIGN_QUEUE_H

#include "campaign_table.h"

typedef struct campaign_queue_options {
    int jobs;    /* runs at a time; 0: one for each core, at most as many as are left */
    int threads; /* of a run; 0: the cores that are free, shared by the runs that could use them */
    int shard, shards;
    int retry_failed;
    int rebuild; /* 1: discard the registry first */
    int quiet;
} campaign_queue_options;

/* Until nothing is left to do, or cli_stop (signals.h) is set: then the runs save and leave.
 * records (bj_campaign_runs) receives the end of it. */
BJ_CHECK bj_status campaign_queue_run(bj_run_record *records, const bj_campaign *campaign,
                                      const campaign_queue_options *options, bj_error *err);

#endif
