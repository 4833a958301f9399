/* test_registry.c - tests the registry of a campaign: one owner, killed writers, shards, readers.
 */
#define _XOPEN_SOURCE 700
#include "campaign_case.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "campaign/registry.h"
#include "core/alloc.h"

static bj_error err;

/* A campaign of five runs in that folder. */
static bj_campaign *begin(const char *dir) {
    char file[CASE_PATH], path[CASE_PATH];
    bj_campaign *c = NULL;
    case_write("c.yaml", "name: five\ndata: a.bjc\narms: [fullset]\nseeds: 5\n");
    CHECK_OK(bj_campaign_create(&c, case_path(file, "c.yaml"), case_path(path, dir), NULL, &err),
             err);
    if (!c) exit(1);
    return c;
}

static bj_run_record sample(bj_run_state state, double updated) {
    return (bj_run_record){.state = state,
                           .host = "here",
                           .pid = 4711,
                           .attempts = 2,
                           .started = 1.7e9,
                           .updated = updated,
                           .epoch = 3,
                           .epochs = 30,
                           .progress = .125,
                           .scenes_per_s = 812.5,
                           .eta_s = NAN,
                           .dev = 5.4321098765432109,
                           .best = NAN,
                           .best_epoch = -1,
                           .message = "it's; \"quoted\""};
}

static int same(const bj_run_record *a, const bj_run_record *b) {
    return a->state == b->state && !strcmp(a->host, b->host) && a->pid == b->pid &&
           a->attempts == b->attempts && a->started == b->started && a->updated == b->updated &&
           a->epoch == b->epoch && a->epochs == b->epochs && a->progress == b->progress &&
           a->scenes_per_s == b->scenes_per_s && isnan(a->eta_s) == isnan(b->eta_s) &&
           a->dev == b->dev && isnan(a->best) == isnan(b->best) && a->best_epoch == b->best_epoch &&
           !strcmp(a->message, b->message);
}

/* The number a query gives. */
static int ask(const char *name, const char *sql) {
    char path[CASE_PATH];
    sqlite3 *db = NULL;
    sqlite3_stmt *query = NULL;
    int answer = -1;
    if (sqlite3_open(case_path(path, name), &db) == SQLITE_OK &&
        sqlite3_prepare_v2(db, sql, -1, &query, NULL) == SQLITE_OK &&
        sqlite3_step(query) == SQLITE_ROW)
        answer = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    sqlite3_close(db);
    return answer;
}

static void change(const char *name, const char *sql) {
    char path[CASE_PATH];
    sqlite3 *db = NULL;
    CHECK(sqlite3_open(case_path(path, name), &db) == SQLITE_OK &&
          sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

/* -------------------------------------------------------------------------------------- records */

static void test_records(void) {
    bj_campaign *c = begin("records");
    bj_registry *r = NULL, *second = NULL;
    bj_run_record got, all[5], record = sample(BJ_STATE_RUNNING, 1.8e9);
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK(all[4].state == BJ_STATE_WAITING && all[4].updated == 0 && isnan(all[4].best));
    CHECK(all[4].epochs == 30 && all[4].best_epoch == -1);
    CHECK_OK(bj_registry_open(&r, c, 0, 1, &err), err);
    if (!r) exit(1);
    CHECK_OK(bj_registry_get(&got, r, 2, &err), err);
    CHECK(got.state == BJ_STATE_WAITING && got.attempts == 0);
    CHECK_OK(bj_registry_put(r, 2, &record, &err), err);
    CHECK_OK(bj_registry_get(&got, r, 2, &err), err);
    CHECK(same(&got, &record));
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK(same(&all[2], &record));
    CHECK(all[1].state == BJ_STATE_WAITING);
    CHECK_REFUSED(bj_registry_open(&second, c, 0, 1, &err), BJ_ELOCKED, "is being run by process");
    CHECK_REFUSED(bj_registry_open(&second, c, 0, 2, &err), BJ_ELOCKED, "shard 0/1 is running");
    CHECK_REFUSED(bj_registry_put(r, 5, &record, &err), BJ_EARG, "run 5 is not in shard");
    CHECK_REFUSED(bj_registry_get(&got, r, -1, &err), BJ_EARG, "run -1 is not in shard");

    /* Tests that a change of state adds an event, but progress does not. */
    record.progress = .5;
    CHECK_OK(bj_registry_put(r, 2, &record, &err), err);
    CHECK(ask("records/registry.sqlite", "SELECT count(*) FROM events") == 1);
    CHECK(ask("records/registry.sqlite", "SELECT count(*) FROM runs") == 5);
    CHECK(ask("records/registry.sqlite", "SELECT seed = '2' AND arm = 'fullset' AND dev > 5.43 AND "
                                         "best IS NULL FROM runs WHERE run = 2") == 1);
    record = sample(BJ_STATE_DONE, 1.81e9);
    CHECK_OK(bj_registry_put(r, 3, &record, &err), err);
    CHECK(ask("records/registry.sqlite", "SELECT count(*) FROM events WHERE state = 'done'") == 1);

    /* Tests that after its owner has exited, a run counts as stopped for readers and for the next
     * owner, and that other runs do not change. */
    bj_registry_free(r);
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK(all[2].state == BJ_STATE_STOPPED && all[2].progress == .5);
    CHECK(same(&all[3], &record));
    CHECK(ask("records/registry.sqlite", "SELECT state = 'running' FROM runs WHERE run = 2") == 1);
    CHECK_OK(bj_registry_open(&r, c, 0, 1, &err), err);
    CHECK_OK(bj_registry_get(&got, r, 2, &err), err);
    CHECK(got.state == BJ_STATE_STOPPED && got.attempts == 2 && got.pid == 0);
    CHECK_OK(bj_registry_get(&got, r, 3, &err), err);
    CHECK(same(&got, &record));
    bj_registry_free(r);
    bj_campaign_free(c);
}

static void test_names(void) {
    int shard, shards;
    CHECK(bj_registry_named(&shard, &shards, "registry.sqlite") && shard == 0 && shards == 1);
    CHECK(bj_registry_named(&shard, &shards, "registry-3-of-12.sqlite") && shard == 3);
    CHECK(shards == 12);
    static const char *const others[] = {
        "registry-0-of-1.sqlite",         "registry-2-of-2.sqlite",
        "registry-1-of-2.sqlite-journal", "registry-01-of-2.sqlite",
        "registry.sqlite-journal",        "registry-1-of-2.sqlit",
        "registry--1-of-2.sqlite",        "registry-1-of-99999999999.sqlite"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_MSG(!bj_registry_named(&shard, &shards, others[i]), "%s", others[i]);
    CHECK(!strcmp(bj_run_state_name(BJ_STATE_NO_PASS), "no_pass"));
    CHECK(!strcmp(bj_run_state_name(BJ_STATES), "unknown"));
}

/* --------------------------------------------------------------------------------------- shards */

static void test_shards(void) {
    bj_campaign *c = begin("shards");
    bj_registry *r[2] = {NULL, NULL}, *other = NULL;
    bj_run_record all[5], got, record = sample(BJ_STATE_FAILED, 1.8e9);
    for (int s = 0; s < 2; s++) CHECK_OK(bj_registry_open(&r[s], c, s, 2, &err), err);
    if (!r[0] || !r[1]) exit(1);
    for (int i = 0; i < 5; i++) {
        CHECK(bj_registry_owns(r[0], i) == (i % 2 == 0));
        CHECK(bj_registry_owns(r[1], i) == (i % 2 == 1));
    }
    CHECK(!bj_registry_owns(r[0], 6) && !bj_registry_owns(r[1], -1));
    CHECK_OK(bj_registry_put(r[1], 3, &record, &err), err);
    CHECK_REFUSED(bj_registry_put(r[0], 3, &record, &err), BJ_EARG, "not in shard 0/2");
    record.state = BJ_STATE_RUNNING;
    CHECK_OK(bj_registry_put(r[0], 4, &record, &err), err);
    bj_registry_free(r[1]);
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK(all[3].state == BJ_STATE_FAILED && all[4].state == BJ_STATE_RUNNING);
    CHECK_REFUSED(bj_registry_open(&other, c, 0, 1, &err), BJ_ELOCKED, "shard 0/2 is running");
    bj_registry_free(r[0]);

    /* Tests a change of the number of shards. The history is copied, and the latest entry is
     * used. */
    CHECK_OK(bj_registry_open(&other, c, 0, 1, &err), err);
    if (!other) exit(1);
    CHECK_OK(bj_registry_get(&got, other, 3, &err), err);
    CHECK(got.state == BJ_STATE_FAILED && !strcmp(got.message, "it's; \"quoted\""));
    CHECK_OK(bj_registry_get(&got, other, 4, &err), err);
    CHECK(got.state == BJ_STATE_STOPPED);
    record = sample(BJ_STATE_DONE, 1.9e9);
    CHECK_OK(bj_registry_put(other, 3, &record, &err), err);
    bj_registry_free(other);
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK(all[3].state == BJ_STATE_DONE);
    CHECK_OK(bj_registry_open(&r[1], c, 1, 2, &err), err);
    CHECK_OK(bj_registry_get(&got, r[1], 3, &err), err);
    CHECK(got.state == BJ_STATE_DONE);
    record = sample(BJ_STATE_FAILED, 2e9);
    CHECK_OK(bj_registry_put(r[1], 3, &record, &err), err);
    bj_registry_free(r[1]);
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK(all[3].state == BJ_STATE_FAILED);
    CHECK_REFUSED(bj_registry_open(&other, c, 2, 2, &err), BJ_EARG, "shard is 2/2");
    CHECK_REFUSED(bj_registry_open(&other, c, -1, 2, &err), BJ_EARG, "shard is -1/2");
    bj_campaign_free(c);
}

/* --------------------------------------------------------------------------------------- killed */

static void write_until_killed(const char *dir) {
    char path[CASE_PATH];
    bj_campaign *c = NULL;
    bj_registry *r = NULL;
    if (bj_campaign_open(&c, case_path(path, dir), &err) != BJ_OK ||
        bj_registry_open(&r, c, 0, 1, &err) != BJ_OK)
        _exit(1);
    for (int n = 1;; n++) {
        bj_run_record record = sample(n % 2 ? BJ_STATE_RUNNING : BJ_STATE_STOPPED, 1e9 + n);
        record.attempts = n;
        if (bj_registry_put(r, n % 5, &record, &err) != BJ_OK) _exit(1);
    }
}

/* Tests that a registry is intact and can be opened after its owner was killed at 12 or more
 * different moments. Rounds continue with longer pauses until a child had time to write, because a
 * busy machine is slow. */
static void test_killed(void) {
    bj_campaign *c = begin("killed");
    int last = 0;
    for (int round = 0; round < 12 || (last == 0 && round < 200); round++) {
        bj_run_record all[5];
        bj_registry *r = NULL;
        const pid_t child = fork();
        if (child == 0) write_until_killed("killed");
        const struct timespec pause = {0, 15000000 + 7000000 * (long)round};
        nanosleep(&pause, NULL);
        CHECK(kill(child, SIGKILL) == 0);
        int how;
        CHECK(waitpid(child, &how, 0) == child && WIFSIGNALED(how));
        CHECK_OK(bj_campaign_status(all, c, &err), err);
        for (int i = 0; i < 5; i++) CHECK(all[i].state != BJ_STATE_RUNNING);
        CHECK_OK(bj_registry_open(&r, c, 0, 1, &err), err);
        bj_registry_free(r);
        CHECK(ask("killed/registry.sqlite",
                  "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'") == 1);
        last = ask("killed/registry.sqlite", "SELECT max(attempts) FROM runs");
        CHECK(ask("killed/registry.sqlite", "SELECT count(*) FROM runs") == 5);
    }
    CHECK_MSG(last > 0, "nothing was ever written before the kill");
    bj_campaign_free(c);
}

/* -------------------------------------------------------------------------------------- refused */

static void test_refused(void) {
    bj_campaign *c = begin("refused");
    bj_registry *r = NULL;
    bj_run_record all[5];
    char path[CASE_PATH];
    CHECK_OK(bj_registry_open(&r, c, 0, 1, &err), err);
    bj_registry_free(r);
    change("refused/registry.sqlite", "PRAGMA user_version = 2");
    CHECK_REFUSED(bj_registry_open(&r, c, 0, 1, &err), BJ_EVERSION, "registry has version 2");
    CHECK_REFUSED(bj_campaign_status(all, c, &err), BJ_EVERSION, "registry has version 2");
    change("refused/registry.sqlite", "PRAGMA user_version = 1; "
                                      "UPDATE registry SET value = 'x' WHERE key = 'campaign'");
    CHECK_REFUSED(bj_registry_open(&r, c, 0, 1, &err), BJ_EMISMATCH, "another campaign");
    change("refused/registry.sqlite", "UPDATE runs SET state = 'sleeping' WHERE run = 3");
    CHECK_REFUSED(bj_campaign_status(all, c, &err), BJ_EFORMAT, "run 3 has an unknown state");
    case_write("refused/registry.sqlite",
               "This text is not a database, but it is longer than a header. "
               "The header of a database file has one hundred bytes.");
    CHECK_REFUSED(bj_campaign_status(all, c, &err), BJ_EFORMAT, "registry.sqlite");
    CHECK_REFUSED(bj_registry_open(&r, c, 0, 1, &err), BJ_EFORMAT, "registry.sqlite");
    /* Tests a process that is killed before its first transaction. */
    case_write("refused/registry.sqlite", "");
    CHECK_OK(bj_campaign_status(all, c, &err), err);
    CHECK_OK(bj_registry_open(&r, c, 0, 1, &err), err);
    bj_registry_free(r);

    /* Other scenes under the same name. */
    char other[CASE_PATH];
    CHECK(rename(case_path(path, "a.bjc"), case_path(other, "kept.bjc")) == 0);
    CHECK(link(case_path(other, "b.bjc"), case_path(path, "a.bjc")) == 0);
    CHECK_REFUSED(bj_registry_open(&r, c, 0, 1, &err), BJ_EMISMATCH, "a.bjc: its digest is");
    CHECK(rename(case_path(other, "kept.bjc"), case_path(path, "a.bjc")) == 0);
    CHECK_OK(bj_registry_open(&r, c, 0, 1, &err), err);
    bj_registry_free(r);
    bj_campaign_free(c);
}

/* -------------------------------------------------------------------------------------- folders */

static void make_run(const char *dir, const bj_settings *s) {
    char name[256], path[CASE_PATH];
    snprintf(name, sizeof name, "mkdir -p %s/%s/runs/%s/seed-%llu", case_folder, dir, s->arm,
             (unsigned long long)s->seed);
    CHECK(system(name) == 0);
    snprintf(name, sizeof name, "%s/runs/%s/seed-%llu/config.resolved.json", dir, s->arm,
             (unsigned long long)s->seed);
    CHECK_OK(bj_settings_write(s, case_path(path, name), &err), err);
}

/* Tests the status of a running run, and invalid status files. */
static void test_look(void) {
    bj_campaign *c = begin("look");
    bj_run_record r = sample(BJ_STATE_RUNNING, 7);
    const bj_run_record before = r;
    make_run("look", bj_campaign_run_at(c, 1).settings);
    CHECK_OK(bj_campaign_look(&r, c, 1, &err), err);
    CHECK(same(&r, &before));
    case_write("look/runs/fullset/seed-1/status.json",
               "{\"schema\":\"branchjepa.status/1\",\"phase\":\"train\",\"epoch\":2,\"epochs\":8,"
               "\"step\":30,\"steps\":120,\"scenes_per_s\":99.5,\"eta_s\":null,\"loss\":1,"
               "\"dev\":4.5,\"best\":4.25,\"best_epoch\":1}\n");
    CHECK_OK(bj_campaign_look(&r, c, 1, &err), err);
    CHECK(r.state == BJ_STATE_RUNNING && r.epoch == 2 && r.epochs == 8 && r.progress == .25);
    CHECK(r.scenes_per_s == 99.5 && isnan(r.eta_s) && r.dev == 4.5 && r.best == 4.25);
    CHECK(r.best_epoch == 1 && r.updated == 7 && r.attempts == 2);
    case_write("look/runs/fullset/seed-1/status.json", "{\"step\": 1e999");
    CHECK_REFUSED(bj_campaign_look(&r, c, 1, &err), BJ_EFORMAT, "status.json");

    /* A finished run that is not this one. */
    bj_settings other = *bj_campaign_run_at(c, 1).settings;
    other.lr *= 2;
    char manifest[1024];
    snprintf(manifest, sizeof manifest, "{\"data\": {\"digest\": \"%s\"}}\n",
             bj_campaign_data_digest(c));
    case_write("look/runs/fullset/seed-1/manifest.json", manifest);
    case_write("look/runs/fullset/seed-1/result.json", "{}\n");
    make_run("look", &other);
    CHECK_REFUSED(bj_campaign_look(&r, c, 1, &err), BJ_EMISMATCH, "a run with different settings");
    make_run("look", bj_campaign_run_at(c, 1).settings);
    case_write("look/runs/fullset/seed-1/manifest.json", "{\"data\": {\"digest\": \"00\"}}\n");
    CHECK_REFUSED(bj_campaign_look(&r, c, 1, &err), BJ_EMISMATCH, "a run on different data");
    case_write("look/runs/fullset/seed-1/manifest.json", manifest);
    CHECK_OK(bj_campaign_look(&r, c, 1, &err), err);
    CHECK(r.state == BJ_STATE_NO_PASS && r.progress == 1); /* no epoch, hence none to choose */
    bj_campaign_free(c);
}

static void test_memory(void) {
    bj_campaign *c = begin("memory");
    const long live = bj_alloc_live();
    long n = 0;
    for (bj_status status = BJ_ENOMEM; status != BJ_OK && n < 1000; n++) {
        bj_registry *r = NULL;
        bj_alloc_fail_after(n);
        status = bj_registry_open(&r, c, 0, 1, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_OK || status == BJ_ENOMEM, "%ld: %s", n, err.message);
        bj_registry_free(r);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
    }
    CHECK(n > 3 && n < 1000);
    bj_campaign_free(c);
}

int main(void) {
    case_begin();
    test_records();
    test_names();
    test_shards();
    test_killed();
    test_refused();
    test_look();
    test_memory();
    case_end();
    return test_report("registry");
}
