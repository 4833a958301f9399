/* campaign_child.h - one `bjepa train` process of a campaign. */
#ifndef BJEPA_CAMPAIGN_CHILD_H
#define BJEPA_CAMPAIGN_CHILD_H

#include <sys/types.h>

#include "output.h"

typedef struct campaign_child {
    pid_t pid; /* 0: none */
    long log_begin;
    char log[CLI_PATH_SIZE];
} campaign_child;

/* Starts the run in its folder, which is created. *occupied: another process still trains there;
 * nothing was started. */
BJ_CHECK bj_status campaign_child_start(campaign_child *child, int *occupied,
                                        const bj_campaign *campaign, const bj_campaign_run *run,
                                        int threads, bj_error *err);
void campaign_child_signal(const campaign_child *child, int number);
/* 1 when it is gone: then the exit code (128 + signal when a signal ended it), and the last line it
 * printed about itself. */
int campaign_child_ended(campaign_child *child, int *code, char last[256]);

#endif
