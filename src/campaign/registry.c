/* registry.c - records the history of every run of a shard in SQLite.
 *
 *   registry (key, value)   campaign: digest of campaign.json, shard, shards, host
 *   runs (run, arm, seed, state, ...)   one row for the current state of each run of the shard
 *   events (id, time, run, state, host, pid, message)   one row for each change of state
 *
 *   1. The only writer is the owner of the shard (owner.c). Other processes may read at any time.
 *   2. A change is one transaction with a rollback journal, so a writer that is killed leaves the
 *      state before or after it. A write-ahead log is not used, because it needs shared memory,
 *      which network file systems do not have.
 *   3. The number of shards may change when there are no owners. A new registry then copies the
 *      history of its runs from the other registries.
 * Test: tests/campaign/test_registry.c
 */
#define _XOPEN_SOURCE 700 /* gethostname, opendir */
#include "campaign/registry.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file_internal.h"

struct bj_registry {
    sqlite3 *db;
    sqlite3_stmt *put, *event;
    int lock, shard, shards, count;
    char path[BJ_CAMPAIGN_PATH];
    bj_run_record *records; /* (count) the rows of the file; entries of other shards are unused */
    const bj_campaign *campaign;
};

/* --------------------------------------------------------------------------------------- schema */

static const char tables[] =
    "PRAGMA application_id = 1651142001;" /* "bjr1" */
    "CREATE TABLE registry (key TEXT PRIMARY KEY, value TEXT NOT NULL);"
    "CREATE TABLE runs (run INTEGER PRIMARY KEY, arm TEXT NOT NULL, seed TEXT NOT NULL,"
    " state TEXT NOT NULL, host TEXT, pid INTEGER, attempts INTEGER NOT NULL, started REAL,"
    " updated REAL, epoch INTEGER, epochs INTEGER, progress REAL, scenes_per_s REAL, eta_s REAL,"
    " dev REAL, best REAL, best_epoch INTEGER, message TEXT);"
    "CREATE TABLE events (id INTEGER PRIMARY KEY, time REAL NOT NULL, run INTEGER NOT NULL,"
    " state TEXT NOT NULL, host TEXT, pid INTEGER, message TEXT);"
    "PRAGMA user_version = 1;";

static bj_status execute(const bj_registry *r, const char *sql, const char *what, bj_error *err) {
    if (sqlite3_exec(r->db, sql, NULL, NULL, NULL) == SQLITE_OK) return BJ_OK;
    return bj_registry_fail(r->db, r->path, what, err);
}

static bj_status set_fact(const bj_registry *r, const char *key, const char *value, bj_error *err) {
    sqlite3_stmt *insert = NULL;
    int ok = sqlite3_prepare_v2(r->db, "INSERT INTO registry VALUES (?1, ?2)", -1, &insert, NULL) ==
                 SQLITE_OK &&
             sqlite3_bind_text(insert, 1, key, -1, SQLITE_STATIC) == SQLITE_OK &&
             sqlite3_bind_text(insert, 2, value, -1, SQLITE_STATIC) == SQLITE_OK &&
             sqlite3_step(insert) == SQLITE_DONE;
    const bj_status status = ok ? BJ_OK : bj_registry_fail(r->db, r->path, "write a fact", err);
    sqlite3_finalize(insert);
    return status;
}

static bj_status create_tables(const bj_registry *r, bj_error *err) {
    char shard[16], shards[16];
    snprintf(shard, sizeof shard, "%d", r->shard);
    snprintf(shards, sizeof shards, "%d", r->shards);
    BJ_TRY(execute(r, tables, "create tables", err));
    BJ_TRY(set_fact(r, "campaign", r->campaign->digest, err));
    BJ_TRY(set_fact(r, "name", r->campaign->name, err));
    BJ_TRY(set_fact(r, "shard", shard, err));
    return set_fact(r, "shards", shards, err);
}

/* Rejects a registry of another campaign. */
static bj_status check_campaign(const bj_registry *r, bj_error *err) {
    static const char sql[] = "SELECT value FROM registry WHERE key = 'campaign'";
    sqlite3_stmt *query = NULL;
    bj_status status = BJ_OK;
    if (sqlite3_prepare_v2(r->db, sql, -1, &query, NULL) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW)
        status = bj_registry_fail(r->db, r->path, "read its campaign", err);
    else if (strcmp((const char *)sqlite3_column_text(query, 0), r->campaign->digest))
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%s: the registry belongs to another campaign; "
                         "the digest of campaign.json is %.12s..., expected %.12s...",
                         r->path, (const char *)sqlite3_column_text(query, 0), r->campaign->digest);
    sqlite3_finalize(query);
    return status;
}

/* -------------------------------------------------------------------------------------- writing */

static int bind_record(sqlite3_stmt *s, const bj_campaign *c, int run, const bj_run_record *r,
                       char seed[24]) {
    const bj_settings *settings = &c->runs[run].settings;
    snprintf(seed, 24, "%llu", (unsigned long long)settings->seed);
    int bad = sqlite3_bind_int(s, 1, run);
    bad |= sqlite3_bind_text(s, 2, c->runs[run].name, -1, SQLITE_STATIC);
    bad |= sqlite3_bind_text(s, 3, seed, -1, SQLITE_STATIC);
    bad |= sqlite3_bind_text(s, 4, bj_run_state_name(r->state), -1, SQLITE_STATIC);
    bad |= sqlite3_bind_text(s, 5, r->host, -1, SQLITE_STATIC);
    bad |= sqlite3_bind_int64(s, 6, r->pid);
    bad |= sqlite3_bind_int(s, 7, r->attempts);
    bad |= sqlite3_bind_double(s, 8, r->started);
    bad |= sqlite3_bind_double(s, 9, r->updated);
    bad |= sqlite3_bind_int(s, 10, r->epoch);
    bad |= sqlite3_bind_int(s, 11, r->epochs);
    bad |= sqlite3_bind_double(s, 12, r->progress);
    bad |= sqlite3_bind_double(s, 13, r->scenes_per_s); /* NaN becomes NULL */
    bad |= sqlite3_bind_double(s, 14, r->eta_s);
    bad |= sqlite3_bind_double(s, 15, r->dev);
    bad |= sqlite3_bind_double(s, 16, r->best);
    bad |= sqlite3_bind_int(s, 17, r->best_epoch);
    bad |= sqlite3_bind_text(s, 18, r->message, -1, SQLITE_STATIC);
    return !bad;
}

static int bind_event(sqlite3_stmt *s, int run, const bj_run_record *r) {
    int bad = sqlite3_bind_double(s, 1, r->updated);
    bad |= sqlite3_bind_int(s, 2, run);
    bad |= sqlite3_bind_text(s, 3, bj_run_state_name(r->state), -1, SQLITE_STATIC);
    bad |= sqlite3_bind_text(s, 4, r->host, -1, SQLITE_STATIC);
    bad |= sqlite3_bind_int64(s, 5, r->pid);
    bad |= sqlite3_bind_text(s, 6, r->message, -1, SQLITE_STATIC);
    return !bad;
}

/* Must be called inside a transaction. */
static bj_status write_record(bj_registry *r, int run, const bj_run_record *record, int changed,
                              bj_error *err) {
    bj_status status = BJ_OK;
    char seed[24];
    if (!bind_record(r->put, r->campaign, run, record, seed) || sqlite3_step(r->put) != SQLITE_DONE)
        status = bj_registry_fail(r->db, r->path, "write a run", err);
    sqlite3_reset(r->put);
    if (status != BJ_OK || !changed) return status;
    if (!bind_event(r->event, run, record) || sqlite3_step(r->event) != SQLITE_DONE)
        status = bj_registry_fail(r->db, r->path, "write an event", err);
    sqlite3_reset(r->event);
    return status;
}

static bj_status commit(const bj_registry *r, bj_status status, bj_error *err) {
    if (status == BJ_OK) status = execute(r, "COMMIT", "commit", err);
    if (status != BJ_OK) (void)sqlite3_exec(r->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

bj_status bj_registry_put(bj_registry *r, int run, const bj_run_record *record, bj_error *err) {
    if (!bj_registry_owns(r, run))
        return BJ_FAIL(err, BJ_EARG, "%s: run %d is not in shard %d/%d", r->path, run, r->shard,
                       r->shards);
    const int changed =
        r->records[run].state != record->state || r->records[run].attempts != record->attempts;
    BJ_TRY(execute(r, "BEGIN IMMEDIATE", "begin to write", err));
    BJ_TRY(commit(r, write_record(r, run, record, changed, err), err));
    r->records[run] = *record;
    return BJ_OK;
}

bj_status bj_registry_get(bj_run_record *out, const bj_registry *r, int run, bj_error *err) {
    if (!bj_registry_owns(r, run))
        return BJ_FAIL(err, BJ_EARG, "%s: run %d is not in shard %d/%d", r->path, run, r->shard,
                       r->shards);
    *out = r->records[run];
    return BJ_OK;
}

int bj_registry_owns(const bj_registry *r, int run) {
    return run >= 0 && run < r->count && run % r->shards == r->shard;
}

/* -------------------------------------------------------------------------------------- opening */

/* Fails if another process is running this campaign with a different number of shards. */
static bj_status check_others(const bj_registry *r, bj_error *err) {
    bj_status status = BJ_OK;
    const char *dir = r->campaign->dir;
    DIR *folder = opendir(dir);
    if (!folder) return bj_file_fail(err, errno, dir, "list");
    for (const struct dirent *e; status == BJ_OK && (e = readdir(folder));) {
        int shard, shards;
        if (!bj_registry_named(&shard, &shards, e->d_name) || shards == r->shards) continue;
        if (bj_campaign_owned(dir, shard, shards))
            status = BJ_FAIL(err, BJ_ELOCKED,
                             "%s: shard %d/%d is running; "
                             "wait for it to end before splitting the campaign into %d shards",
                             dir, shard, shards, r->shards);
    }
    closedir(folder);
    return status;
}

/* Copies missing rows from other registries. A copied row that is marked as running no longer has a
 * process. */
static bj_status settle(bj_registry *r, const char *present, const bj_run_record *known,
                        bj_error *err) {
    for (int i = r->shard; i < r->count; i += r->shards) {
        const int newer = !present[i] || known[i].updated > r->records[i].updated;
        bj_run_record record = newer ? known[i] : r->records[i];
        const int left = record.state == BJ_STATE_RUNNING;
        if (left) {
            record.state = BJ_STATE_STOPPED;
            record.updated = (double)time(NULL);
            record.pid = 0;
        }
        if (!newer && !left) continue;
        BJ_TRY(write_record(r, i, &record, left, err));
        r->records[i] = record;
    }
    return BJ_OK;
}

typedef struct loading {
    bj_registry *r;
    char *present;
} loading;

static void load(void *context, int run, const bj_run_record *record) {
    loading *l = context;
    if (!bj_registry_owns(l->r, run)) return;
    l->r->records[run] = *record;
    l->present[run] = 1;
}

static bj_status prepare(bj_registry *r, bj_error *err) {
    static const char put[] = "INSERT OR REPLACE INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                              "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";
    static const char event[] = "INSERT INTO events (time, run, state, host, pid, message) "
                                "VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    if (sqlite3_prepare_v2(r->db, put, -1, &r->put, NULL) == SQLITE_OK &&
        sqlite3_prepare_v2(r->db, event, -1, &r->event, NULL) == SQLITE_OK)
        return BJ_OK;
    return bj_registry_fail(r->db, r->path, "prepare to write", err);
}

static bj_status fill(bj_registry *r, int version, const bj_run_record *known, bj_error *err) {
    bj_status status;
    char *present = NULL;
    BJ_TRY(execute(r, "BEGIN IMMEDIATE", "begin to write", err));
    BJ_GOTO(status, done, BJ_ALLOC(present, (size_t)r->count, err));
    if (!version) BJ_GOTO(status, done, create_tables(r, err));
    BJ_GOTO(status, done, check_campaign(r, err));
    BJ_GOTO(status, done, prepare(r, err));
    loading l = {r, present};
    BJ_GOTO(status, done, bj_registry_rows(r->db, r->path, -1, load, &l, err));
    status = settle(r, present, known, err);
done:
    bj_free(present);
    return commit(r, status, err);
}

static bj_status open_registry(bj_registry *r, bj_error *err) {
    bj_status status;
    char name[BJ_REGISTRY_NAME];
    int version;
    bj_run_record *known = NULL;
    BJ_TRY(check_others(r, err));
    BJ_TRY(bj_campaign_own(&r->lock, r->campaign->dir, r->shard, r->shards, err));
    BJ_TRY(BJ_ALLOC(known, (size_t)r->count, err));
    BJ_GOTO(status, done, BJ_ALLOC(r->records, (size_t)r->count, err));
    BJ_GOTO(status, done, bj_campaign_status(known, r->campaign, err));
    bj_registry_name(name, r->shard, r->shards);
    BJ_GOTO(status, done, bj_campaign_path(r->path, r->campaign->dir, name, err));
    BJ_GOTO(status, done, bj_registry_connect(&r->db, &version, r->path, 1, err));
    BJ_GOTO(status, done, execute(r, "PRAGMA journal_mode = DELETE", "set up", err));
    status = fill(r, version, known, err);
done:
    bj_free(known);
    return status;
}

bj_status bj_registry_open(bj_registry **out, const bj_campaign *campaign, int shard, int shards,
                           bj_error *err) {
    bj_registry *r;
    int turn;
    *out = NULL;
    if (shards < 1 || shard < 0 || shard >= shards || shards > 1000000)
        return BJ_FAIL(err, BJ_EARG, "shard is %d/%d, expected I/N with 0 <= I < N", shard, shards);
    if (!*campaign->digest)
        return BJ_FAIL(err, BJ_EARG, "%s: the campaign has not been created", campaign->dir);
    BJ_TRY(bj_campaign_check_data(campaign, err));
    BJ_TRY(BJ_ALLOC(r, 1, err));
    r->lock = -1;
    r->shard = shard, r->shards = shards;
    r->count = campaign->count;
    r->campaign = campaign;
    bj_status status = bj_campaign_turn(&turn, campaign->dir, err);
    if (status == BJ_OK) {
        status = open_registry(r, err);
        bj_campaign_turn_end(turn);
    }
    if (status == BJ_OK) *out = r;
    else bj_registry_free(r);
    return status;
}

/* Renames FILE to FILE.damaged, and the journal of a killed writer with it. */
static bj_status move_aside(const char *path, const char *suffix, bj_error *err) {
    char from[BJ_CAMPAIGN_PATH + 32], to[BJ_CAMPAIGN_PATH + 32];
    snprintf(from, sizeof from, "%s%s", path, suffix);
    snprintf(to, sizeof to, "%s.damaged%s", path, suffix);
    if (rename(from, to) == 0 || errno == ENOENT) return BJ_OK;
    return bj_file_fail(err, errno, from, "rename");
}

bj_status bj_registry_discard(const bj_campaign *campaign, int shard, int shards, bj_error *err) {
    char name[BJ_REGISTRY_NAME], path[BJ_CAMPAIGN_PATH];
    int turn, lock = -1;
    bj_registry_name(name, shard, shards);
    BJ_TRY(bj_campaign_path(path, campaign->dir, name, err));
    BJ_TRY(bj_campaign_turn(&turn, campaign->dir, err));
    bj_status status = bj_campaign_own(&lock, campaign->dir, shard, shards, err);
    if (status == BJ_OK) status = move_aside(path, "-journal", err);
    if (status == BJ_OK) status = move_aside(path, "", err);
    bj_campaign_disown(lock);
    bj_campaign_turn_end(turn);
    return status;
}

void bj_registry_free(bj_registry *r) {
    if (!r) return;
    sqlite3_finalize(r->put);
    sqlite3_finalize(r->event);
    sqlite3_close(r->db);
    bj_campaign_disown(r->lock);
    bj_free(r->records);
    bj_free(r);
}
