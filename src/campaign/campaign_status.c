/* campaign_status.c - reads the progress of a campaign from its registries and run folders.
 *
 * If several registries contain the same run, because the number of shards has changed, the latest
 * entry is used. A run that is marked as running while no process owns the registry counts as
 * stopped.
 * Test: tests/campaign/test_registry.c
 */
#define _XOPEN_SOURCE 700 /* opendir */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "campaign/registry.h"
#include "core/alloc.h"
#include "core/file.h"
#include "core/file_internal.h"
#include "core/json.h"
#include "run/run.h"

/* ----------------------------------------------------------------------------------- registries */

typedef struct gathering {
    bj_run_record *records;
    int count, owned;
} gathering;

static void gather(void *context, int run, const bj_run_record *record) {
    const gathering *g = context;
    if (run < 0 || run >= g->count || record->updated < g->records[run].updated) return;
    g->records[run] = *record;
    if (record->state == BJ_STATE_RUNNING && !g->owned) g->records[run].state = BJ_STATE_STOPPED;
}

static bj_status gather_registry(gathering *g, const char *dir, const char *name, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH];
    sqlite3 *db = NULL;
    int version;
    BJ_TRY(bj_campaign_path(path, dir, name, err));
    BJ_TRY(bj_registry_connect(&db, &version, path, 0, err));
    const bj_status status = version ? bj_registry_rows(db, path, -1, gather, g, err) : BJ_OK;
    sqlite3_close(db);
    return status;
}

static bj_run_record nothing_known(const bj_campaign *c, int run) {
    return (bj_run_record){.state = BJ_STATE_WAITING,
                           .epochs = c->runs[run].settings.epochs,
                           .scenes_per_s = NAN,
                           .eta_s = NAN,
                           .dev = NAN,
                           .best = NAN,
                           .best_epoch = -1};
}

bj_status bj_campaign_status(bj_run_record *records, const bj_campaign *c, bj_error *err) {
    bj_status status = BJ_OK;
    gathering g = {records, c->count, 0};
    for (int i = 0; i < c->count; i++) records[i] = nothing_known(c, i);
    DIR *folder = opendir(c->dir);
    if (!folder) return bj_file_fail(err, errno, c->dir, "list");
    for (const struct dirent *e; status == BJ_OK && (e = readdir(folder));) {
        int shard, shards;
        if (!bj_registry_named(&shard, &shards, e->d_name)) continue;
        g.owned = bj_campaign_owned(c->dir, shard, shards);
        status = gather_registry(&g, c->dir, e->d_name, err);
    }
    closedir(folder);
    return status;
}

/* ---------------------------------------------------------------------------------- run folders */

static double number(yyjson_val *root, const char *key) {
    yyjson_val *value = yyjson_obj_get(root, key);
    return yyjson_is_num(value) ? yyjson_get_num(value) : NAN;
}

static int whole(yyjson_val *root, const char *key, int otherwise) {
    const double value = number(root, key);
    return value >= -1 && value <= 1e9 ? (int)value : otherwise;
}

static bj_status take_progress(bj_run_record *record, const char *path, bj_error *err) {
    char *text = NULL;
    size_t size;
    yyjson_doc *doc = NULL;
    BJ_TRY(bj_file_read(&text, &size, path, 1 << 20, err));
    const bj_status status = bj_json_parse(&doc, text, size, path, err);
    bj_free(text);
    if (status != BJ_OK) return status;
    yyjson_val *root = yyjson_doc_get_root(doc);
    const double done = number(root, "step") / number(root, "steps");
    record->epoch = whole(root, "epoch", record->epoch);
    record->epochs = whole(root, "epochs", record->epochs);
    if (done >= 0 && done <= 1) record->progress = done;
    record->scenes_per_s = number(root, "scenes_per_s");
    record->eta_s = number(root, "eta_s");
    record->dev = number(root, "dev");
    record->best = number(root, "best");
    record->best_epoch = whole(root, "best_epoch", -1);
    yyjson_doc_free(doc);
    return BJ_OK;
}

static bj_status check_run(const bj_run *run, const bj_campaign *c, int index, bj_error *err) {
    const bj_grid_run *expected = &c->runs[index];
    char digest[65];
    BJ_TRY(bj_settings_digest(digest, bj_run_settings(run), err));
    if (strcmp(digest, expected->digest))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: contains a run with different settings; "
                       "their digest is %.12s..., expected %.12s...",
                       expected->dir, digest, expected->digest);
    const struct {
        const char *key, *expected;
    } facts[] = {{"data.digest", c->sets[expected->set].digest},
                 {"dev_data.digest", c->dev ? c->dev_digest : NULL}};
    for (int i = 0; i < 2; i++) {
        const char *found = bj_run_fact(run, facts[i].key);
        if (!found != !facts[i].expected || (found && strcmp(found, facts[i].expected)))
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s: contains a run on different data: %s is %.70s, expected %.70s",
                           expected->dir, facts[i].key, found ? found : "missing",
                           facts[i].expected ? facts[i].expected : "none");
    }
    return BJ_OK;
}

static bj_status take_end(bj_run_record *record, const bj_campaign *c, int index, bj_error *err) {
    bj_run *run = NULL;
    BJ_TRY(bj_run_open(&run, c->runs[index].dir, err));
    const bj_status status = check_run(run, c, index, err);
    if (status == BJ_OK) {
        const bj_settings *settings = bj_run_settings(run);
        const int rows = bj_run_epochs(run), best = bj_run_best(run);
        const bj_epoch last = rows ? bj_run_epoch(run, rows - 1) : (bj_epoch){0};
        record->state = best >= 0               ? BJ_STATE_DONE
                        : bj_run_collapsed(run) ? BJ_STATE_COLLAPSED
                                                : BJ_STATE_NO_PASS;
        record->epochs = bj_run_planned(run);
        record->epoch = last.epoch;
        record->progress = 1;
        record->eta_s = 0;
        if (rows) {
            record->dev = bj_run_shown(settings, &last);
            record->scenes_per_s = last.scenes_per_s;
        }
        record->best = NAN;
        record->best_epoch = -1;
        if (best >= 0) {
            const bj_epoch chosen = bj_run_epoch(run, best);
            record->best = bj_run_shown(settings, &chosen);
            record->best_epoch = chosen.epoch;
        }
    }
    bj_run_free(run);
    return status;
}

bj_status bj_campaign_look(bj_run_record *record, const bj_campaign *c, int index, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH];
    BJ_TRY(bj_campaign_path(path, c->runs[index].dir, "result.json", err));
    if (bj_file_exists(path)) return take_end(record, c, index, err);
    BJ_TRY(bj_campaign_path(path, c->runs[index].dir, "status.json", err));
    return bj_file_exists(path) ? take_progress(record, path, err) : BJ_OK;
}
