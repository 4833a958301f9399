/* registry_rows.c - opens a registry file and reads its rows. See registry.c. */
#include "campaign/registry.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BUSY_MS = 20000 };

static const char *const state_names[BJ_STATES] = {"waiting", "running", "stopped",  "done",
                                                   "failed",  "no_pass", "collapsed"};

const char *bj_run_state_name(bj_run_state state) {
    return (unsigned)state < BJ_STATES ? state_names[state] : "unknown";
}

/* ---------------------------------------------------------------------------------------- names */

void bj_registry_name(char name[BJ_REGISTRY_NAME], int shard, int shards) {
    if (shards == 1) snprintf(name, BJ_REGISTRY_NAME, "registry.sqlite");
    else snprintf(name, BJ_REGISTRY_NAME, "registry-%d-of-%d.sqlite", shard, shards);
}

int bj_registry_named(int *shard, int *shards, const char *name) {
    char same[BJ_REGISTRY_NAME];
    *shard = 0, *shards = 1;
    if (strcmp(name, "registry.sqlite")) {
        if (sscanf(name, "registry-%9d-of-%9d.sqlite", shard, shards) != 2) return 0;
        if (*shards < 2 || *shard < 0 || *shard >= *shards) return 0;
    }
    bj_registry_name(same, *shard, *shards); /* sscanf does not check the end */
    return !strcmp(name, same);
}

/* ----------------------------------------------------------------------------------------- file */

bj_status bj_registry_fail(sqlite3 *db, const char *path, const char *what, bj_error *err) {
    const int code = db ? sqlite3_errcode(db) : SQLITE_NOMEM;
    bj_status status = BJ_EIO;
    if (code == SQLITE_NOMEM) status = BJ_ENOMEM;
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_ERROR ||
        code == SQLITE_CONSTRAINT)
        status = BJ_EFORMAT;
    return BJ_FAIL(err, status, "%s: cannot %s: %s%s", path, what,
                   db ? sqlite3_errmsg(db) : "out of memory",
                   status == BJ_EFORMAT ? "\nhint: 'bjepa campaign --out DIR --resume "
                                          "--rebuild-registry' rebuilds it from the run folders"
                                        : "");
}

static bj_status read_version(int *version, sqlite3 *db, const char *path, bj_error *err) {
    sqlite3_stmt *query = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &query, NULL) != SQLITE_OK ||
        sqlite3_step(query) != SQLITE_ROW) {
        const bj_status status = bj_registry_fail(db, path, "read its version", err);
        sqlite3_finalize(query);
        return status;
    }
    *version = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    if (*version < 0 || *version > BJ_REGISTRY_VERSION)
        return BJ_FAIL(err, BJ_EVERSION, "%s: the registry has version %d, expected %d", path,
                       *version, BJ_REGISTRY_VERSION);
    return BJ_OK;
}

bj_status bj_registry_connect(sqlite3 **out, int *version, const char *path, int create,
                              bj_error *err) {
    /* Readers request write access, too, because SQLite may have to roll back the journal of a
     * killed writer. If the file is not writable, SQLite opens it read-only. */
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    bj_status status = BJ_OK;
    if (sqlite3_open_v2(path, out, flags, NULL) != SQLITE_OK ||
        sqlite3_busy_timeout(*out, BUSY_MS) != SQLITE_OK)
        status = bj_registry_fail(*out, path, "open", err);
    if (status == BJ_OK) status = read_version(version, *out, path, err);
    if (status == BJ_OK) return BJ_OK;
    sqlite3_close(*out);
    *out = NULL;
    return status;
}

/* ----------------------------------------------------------------------------------------- rows */

static void take_text(char *out, size_t size, sqlite3_stmt *row, int column) {
    const unsigned char *text = sqlite3_column_text(row, column);
    snprintf(out, size, "%s", text ? (const char *)text : "");
}

static double take_real(sqlite3_stmt *row, int column) {
    return sqlite3_column_type(row, column) == SQLITE_NULL ? NAN
                                                           : sqlite3_column_double(row, column);
}

static int take_state(bj_run_state *out, sqlite3_stmt *row, int column) {
    const unsigned char *text = sqlite3_column_text(row, column);
    for (int s = 0; text && s < BJ_STATES; s++)
        if (!strcmp((const char *)text, state_names[s])) {
            *out = (bj_run_state)s;
            return 1;
        }
    return 0;
}

static int take_row(bj_run_record *r, sqlite3_stmt *row) {
    memset(r, 0, sizeof *r);
    if (!take_state(&r->state, row, 1)) return 0;
    take_text(r->host, sizeof r->host, row, 2);
    r->pid = sqlite3_column_int64(row, 3);
    r->attempts = sqlite3_column_int(row, 4);
    r->started = sqlite3_column_double(row, 5);
    r->updated = sqlite3_column_double(row, 6);
    r->epoch = sqlite3_column_int(row, 7);
    r->epochs = sqlite3_column_int(row, 8);
    r->progress = sqlite3_column_double(row, 9);
    r->scenes_per_s = take_real(row, 10);
    r->eta_s = take_real(row, 11);
    r->dev = take_real(row, 12);
    r->best = take_real(row, 13);
    r->best_epoch = sqlite3_column_int(row, 14);
    take_text(r->message, sizeof r->message, row, 15);
    return 1;
}

bj_status bj_registry_rows(sqlite3 *db, const char *path, int run, bj_registry_take take,
                           void *context, bj_error *err) {
    static const char sql[] =
        "SELECT run, state, host, pid, attempts, started, updated, epoch, epochs, progress,"
        " scenes_per_s, eta_s, dev, best, best_epoch, message FROM runs"
        " WHERE ?1 < 0 OR run = ?1 ORDER BY run";
    bj_status status = BJ_OK;
    sqlite3_stmt *query = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &query, NULL);
    if (code == SQLITE_OK) code = sqlite3_bind_int(query, 1, run);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        bj_run_record record;
        code = sqlite3_step(query);
        if (code != SQLITE_ROW) break;
        const int number = sqlite3_column_int(query, 0);
        if (!take_row(&record, query)) {
            status = BJ_FAIL(err, BJ_EFORMAT, "%s: run %d has an unknown state", path, number);
            break;
        }
        take(context, number, &record);
    }
    if (status == BJ_OK && code != SQLITE_DONE)
        status = bj_registry_fail(db, path, "read its runs", err);
    sqlite3_finalize(query);
    return status;
}
