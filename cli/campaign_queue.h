/* campaign_queue.h - runs all runs of a shard, each in its own `bjepa train` process, several at a
 * time. */
#ifndef BJEPA_CAMPAIGN_QUEUE_H
#define BJEPA_CAMPAIGN_QUEUE_H

#include "campaign_table.h"

typedef struct campaign_queue_options {
    int jobs;    /* number of simultaneous runs; 0: one per core, but not more than there are runs
                    left */
    int threads; /* threads per run; 0: the free cores are divided among the runs that can use
                    them */
    int shard, shards;
    int retry_failed;
    int rebuild; /* 1: discard the registry first */
    int quiet;
} campaign_queue_options;

/* Runs until nothing is left to do or cli_stop (signals.h) is set. In the latter case, the runs
 * save their state and exit. records (bj_campaign_runs) receives the final records. */
BJ_CHECK bj_status campaign_queue_run(bj_run_record *records, const bj_campaign *campaign,
                                      const campaign_queue_options *options, bj_error *err);

#endif
