/* maze_runs.c - see maze_runs.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "maze_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "output.h"

static bj_status add(maze_run_list *l, const char *dir, int from_campaign, bj_error *err) {
    if (l->count == l->room) {
        const int room = l->room ? 2 * l->room : 64;
        maze_run_entry *larger = realloc(l->entry, (size_t)room * sizeof *larger);
        if (!larger) return cli_error(err, BJ_ENOMEM, "out of memory for %d runs", room);
        l->entry = larger;
        l->room = room;
    }
    maze_run_entry *e = &l->entry[l->count];
    if (strlen(dir) >= sizeof e->dir)
        return cli_error(err, BJ_EARG, "%.64s...: the path is too long", dir);
    snprintf(e->dir, sizeof e->dir, "%s", dir);
    e->from_campaign = from_campaign;
    l->count++;
    return BJ_OK;
}

static bj_status add_campaign(maze_run_list *l, const char *dir, bj_error *err) {
    bj_campaign *campaign;
    bj_status status = bj_campaign_open(&campaign, dir, err);
    if (status != BJ_OK) return status;
    for (int i = 0; status == BJ_OK && i < bj_campaign_runs(campaign); i++)
        status = add(l, bj_campaign_run_at(campaign, i).dir, 1, err);
    bj_campaign_free(campaign);
    return status;
}

bj_status maze_runs_find(maze_run_list *out, char **folders, int count, bj_error *err) {
    bj_status status = BJ_OK;
    *out = (maze_run_list){0};
    for (int i = 0; status == BJ_OK && i < count; i++) {
        char path[CLI_PATH_SIZE];
        status = cli_path(path, folders[i], "campaign.json", err);
        if (status != BJ_OK) break;
        status =
            cli_exists(path) ? add_campaign(out, folders[i], err) : add(out, folders[i], 0, err);
    }
    return status;
}

void maze_runs_reset(maze_run_list *l) {
    free(l->entry);
    *l = (maze_run_list){0};
}

const char *maze_predictor(const char *arm) { return strncmp(arm, "maze-", 5) ? arm : arm + 5; }
