/* campaign_child.h - runs one `bjepa train` process of a campaign. */
#ifndef BJEPA_CAMPAIGN_CHILD_H
#define BJEPA_CAMPAIGN_CHILD_H

#include <sys/types.h>

#include "output.h"

typedef struct campaign_child {
    pid_t pid; /* 0: none */
    long log_begin;
    char log[CLI_PATH_SIZE];
} campaign_child;

/* Starts the run in its folder and creates the folder. Sets *occupied if another process is still
 * training there; in that case nothing is started. */
BJ_CHECK bj_status campaign_child_start(campaign_child *child, int *occupied,
                                        const bj_campaign *campaign, const bj_campaign_run *run,
                                        int threads, bj_error *err);
void campaign_child_signal(const campaign_child *child, int number);
/* Returns 1 if the process has ended. Then sets the exit code (128 + signal if a signal ended it)
 * and the last message that it printed. */
int campaign_child_ended(campaign_child *child, int *code, char last[256]);

#endif
