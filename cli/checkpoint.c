/* checkpoint.c - see checkpoint.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "checkpoint.h"

#include "builtin.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bj_status cli_checkpoint_path(char path[CLI_PATH_SIZE], const char *checkpoint, bj_error *err) {
    if (cli_is_builtin(checkpoint)) return cli_builtin_path(path, err);
    return bj_model_path(path, CLI_PATH_SIZE, checkpoint, err);
}

int64_t cli_scenes_seen(const bj_run *run, const bj_epoch *epoch) {
    const char *fit = bj_run_fact(run, "split.fit");
    if (bj_run_fact(run, "data.source") || !fit) return epoch->step * bj_run_settings(run)->batch;
    return epoch->epoch * strtoll(fit, NULL, 10); /* the last batch of a pass may be smaller */
}

/* ---------------------------------------------------------------------------------------- lists */

static bj_status append(cli_checkpoints *list, const char *path, const char *arm, int64_t seed,
                        bj_error *err) {
    cli_checkpoint *grown = realloc(list->item, (size_t)(list->count + 1) * sizeof *grown);
    if (!grown) return cli_error(err, BJ_ENOMEM, "out of memory for the list of checkpoints");
    list->item = grown;
    cli_checkpoint *c = &grown[list->count];
    c->seed = seed;
    if (snprintf(c->path, sizeof c->path, "%s", path) >= (int)sizeof c->path)
        return cli_error(err, BJ_EARG, "%.64s...: the path is too long", path);
    snprintf(c->arm, sizeof c->arm, "%s", arm);
    list->count++;
    return BJ_OK;
}

static int exists(const char *folder, const char *name) {
    char path[CLI_PATH_SIZE];
    return cli_path(path, folder, name, NULL) == BJ_OK && cli_exists(path);
}

static bj_status append_campaign(cli_checkpoints *list, const char *verb, const char *dir,
                                 bj_error *err) {
    bj_campaign *campaign = NULL;
    bj_status status = bj_campaign_open(&campaign, dir, err);
    const int before = list->count;
    for (int i = 0; status == BJ_OK && i < bj_campaign_runs(campaign); i++) {
        const bj_campaign_run run = bj_campaign_run_at(campaign, i);
        char best[CLI_PATH_SIZE];
        if (run.settings->objective.kind == BJ_ANCHOR_A) continue;
        if (!exists(run.dir, "result.json")) {
            fprintf(stderr, "bjepa %s: %s: not finished, left out\n", verb, run.dir);
            continue;
        }
        status = cli_path(best, run.dir, "ckpt/best", err);
        if (status == BJ_OK)
            status = append(list, best, run.name, (int64_t)run.settings->seed, err);
    }
    if (status == BJ_OK && list->count == before)
        status = cli_error(err, BJ_ELOCKED, "%s: no run of this campaign is finished", dir);
    bj_campaign_free(campaign);
    return status;
}

bj_status cli_checkpoints_add(cli_checkpoints *list, const char *verb, const char *operand,
                              bj_error *err) {
    return exists(operand, "campaign.json") ? append_campaign(list, verb, operand, err)
                                            : append(list, operand, "", 0, err);
}

void cli_checkpoints_free(cli_checkpoints *list) {
    free(list->item);
    *list = (cli_checkpoints){NULL, 0};
}
