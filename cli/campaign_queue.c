/* campaign_queue.c - the queue of a campaign.
 *
 *   1. The registry says what happened; the folder of a run says what it is. A run that is finished
 *      there is adopted, whoever trained it.
 *   2. A run is tried once. What failed stays failed until somebody asks for another try; the
 *      others go on, but for what needs it.
 *   3. Two processes never train in one folder: a child inherits a lock on .campaign.lock that
 *      lives as long as it does, longer than a parent that was killed.
 *   4. Children are asked to save and leave when their parent is asked to, or is gone (Linux).
 *   5. The number of threads does not change a result, so the last runs are given more of them, by
 *      letting them save, leave and resume.
 * Test: tests/cli/campaign.sh
 */
#define _POSIX_C_SOURCE 200809L
#include "campaign_queue.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "campaign_child.h"
#include "progress.h"
#include "signals.h"

enum { TICK_NS = 100000000, WORTH_MOVING_S = 120 };
static const double look_seconds = 1, put_seconds = 2, foreign_seconds = 5, patience_seconds = 60;

typedef struct job {
    campaign_child child; /* pid 0: none */
    int threads;
    int moving;          /* leaves, to go on with more threads */
    int held;            /* stopped by another process, so this process does not restart it */
    int occupied;        /* said so already */
    double looked, told; /* clock: run folder read, registry written */
} job;

typedef struct queue {
    const bj_campaign *campaign;
    const campaign_queue_options *options;
    bj_registry *registry;
    bj_run_record *records;
    job *jobs; /* one for each run */
    int runs, cores, slots;
    int told;       /* signal that was passed on */
    double foreign; /* clock: other shards looked at */
    double idle;    /* clock time since which only other shards can make progress; 0: not the
                       case */
    char host[64];
    campaign_display display;
} queue;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int mine(const queue *q, int run) { return bj_registry_owns(q->registry, run); }

static const bj_settings *settings_of(const queue *q, int run) {
    return bj_campaign_run_at(q->campaign, run).settings;
}

#define RUN_NAME(q, run)                                                                           \
    bj_campaign_run_at((q)->campaign, run).name, (unsigned long long)settings_of(q, run)->seed

/* Copies a text. If it is too long, truncates it at a character boundary. */
static void keep_text(char *out, size_t size, const char *text) {
    size_t length = strlen(text);
    if (length >= size) {
        length = size - 1;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80) length--;
    }
    memcpy(out, text, length);
    out[length] = '\0';
}

static bj_status record(queue *q, int run, bj_run_state state, const char *message, bj_error *err) {
    bj_run_record *r = &q->records[run];
    r->state = state;
    r->updated = now();
    if (state != BJ_STATE_RUNNING) r->pid = 0;
    if (message) keep_text(r->message, sizeof r->message, message);
    q->jobs[run].told = cli_seconds();
    return bj_registry_put(q->registry, run, r, err);
}

/* ------------------------------------------------------------------------------------- counting */

static int count_running(const queue *q) {
    int n = 0;
    for (int i = 0; i < q->runs; i++) n += q->jobs[i].child.pid != 0;
    return n;
}

static int over(bj_run_state state) {
    return state == BJ_STATE_DONE || state == BJ_STATE_FAILED || state == BJ_STATE_NO_PASS ||
           state == BJ_STATE_COLLAPSED;
}

/* Returns 1 if the run could start now. Returns 0 if it is finished, running, or waiting for
 * another run. */
static int startable(const queue *q, int run) {
    const bj_run_state state = q->records[run].state;
    const int needs = bj_campaign_run_at(q->campaign, run).needs;
    if (!mine(q, run) || q->jobs[run].child.pid || q->jobs[run].held) return 0;
    if (state != BJ_STATE_WAITING && state != BJ_STATE_STOPPED) return 0;
    return needs < 0 || q->records[needs].state == BJ_STATE_DONE;
}

static int count_startable(const queue *q) {
    int n = 0;
    for (int i = 0; i < q->runs; i++) n += startable(q, i);
    return n;
}

/* Returns how many of our runs wait for another of our runs or, if `foreign` is set, for a run of
 * another shard. */
static int count_blocked(const queue *q, int foreign) {
    int n = 0;
    for (int i = 0; i < q->runs; i++) {
        const int needs = bj_campaign_run_at(q->campaign, i).needs;
        n += mine(q, i) && !over(q->records[i].state) && needs >= 0 &&
             !over(q->records[needs].state) && mine(q, needs) == !foreign;
    }
    return n;
}

/* ------------------------------------------------------------------------------------- starting */

/* Divides the free cores among the runs that could use them now. */
static int choose_threads(const queue *q) {
    if (q->options->threads) return q->options->threads;
    const int running = count_running(q), ready = count_startable(q);
    int takers = q->slots - running < ready ? q->slots - running : ready, used = 0;
    for (int i = 0; i < q->runs; i++)
        if (q->jobs[i].child.pid) used += q->jobs[i].threads;
    if (takers < 1) takers = 1;
    const int threads = (q->cores - used) / takers;
    return threads < 1 ? 1 : threads;
}

static bj_status start(queue *q, int run, int *occupied, bj_error *err) {
    job *j = &q->jobs[run];
    bj_run_record *r = &q->records[run];
    const bj_campaign_run info = bj_campaign_run_at(q->campaign, run);
    j->threads = choose_threads(q);
    bj_status status =
        campaign_child_start(&j->child, occupied, q->campaign, &info, j->threads, err);
    if (status != BJ_OK || *occupied) return status;
    if (!r->started) r->started = now();
    r->pid = (int64_t)j->child.pid;
    r->attempts++;
    snprintf(r->host, sizeof r->host, "%s", q->host);
    j->moving = 0;
    j->looked = cli_seconds();
    campaign_display_note(&q->display, "%s, seed %llu: %s with %d thread%s", RUN_NAME(q, run),
                          r->attempts > 1 ? "continues" : "begins", j->threads,
                          j->threads == 1 ? "" : "s");
    return record(q, run, BJ_STATE_RUNNING, "", err);
}

/* If a run cannot be started, it has failed. If the registry cannot be written, the whole campaign
 * stops. */
static bj_status start_some(queue *q, bj_error *err) {
    for (int i = 0; i < q->runs && count_running(q) < q->slots; i++) {
        int occupied = 0;
        if (!startable(q, i)) continue;
        bj_error why = {0};
        const bj_status status = start(q, i, &occupied, &why);
        if (occupied && !q->jobs[i].occupied) {
            q->jobs[i].occupied = 1;
            campaign_display_note(
                &q->display,
                "%s, seed %llu: waiting because another process is training in this run folder",
                RUN_NAME(q, i));
        }
        if (status == BJ_OK) continue;
        if (q->jobs[i].child.pid) { /* it runs, and the registry does not know */
            *err = why;
            return status;
        }
        campaign_display_note(&q->display, "%s, seed %llu: failed: %s", RUN_NAME(q, i),
                              why.message);
        const bj_status told = record(q, i, BJ_STATE_FAILED, why.message, err);
        if (told != BJ_OK) return told;
    }
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- ending */

static bj_status ended(queue *q, int run, int code, const char *last, bj_error *err) {
    bj_run_record *r = &q->records[run];
    job *j = &q->jobs[run];
    bj_error why = {0};
    const bj_status looked = bj_campaign_look(r, q->campaign, run, &why);
    const int moving = j->moving;
    j->moving = 0;
    if (looked == BJ_OK && code == CLI_OK && r->state == BJ_STATE_DONE) {
        campaign_display_note(&q->display, "%s, seed %llu: done, %.4f in epoch %d",
                              RUN_NAME(q, run), r->best, r->best_epoch);
        return record(q, run, BJ_STATE_DONE, "", err);
    }
    if (looked == BJ_OK && code == CLI_REFUSED &&
        (r->state == BJ_STATE_NO_PASS || r->state == BJ_STATE_COLLAPSED)) {
        campaign_display_note(&q->display, "%s, seed %llu: %s", RUN_NAME(q, run), last);
        return record(q, run, r->state, last, err);
    }
    if (code == CLI_SIGNALED + SIGINT || code == CLI_SIGNALED + SIGTERM) {
        if (!moving && !cli_stop)
            campaign_display_note(&q->display, "%s, seed %llu: stopped by another process",
                                  RUN_NAME(q, run));
        j->held = !moving; /* a run that was stopped to change its threads may start again at
                              once */
        return record(q, run, BJ_STATE_STOPPED, "", err);
    }
    char message[512];
    if (looked != BJ_OK) snprintf(message, sizeof message, "%s", why.message);
    else if (code == CLI_OK)
        snprintf(message, sizeof message, "the process exited without a result");
    else if (*last) snprintf(message, sizeof message, "%s", last);
    else snprintf(message, sizeof message, "exit code %d", code);
    campaign_display_note(&q->display, "%s, seed %llu: failed: %s", RUN_NAME(q, run), message);
    return record(q, run, BJ_STATE_FAILED, message, err);
}

static bj_status reap(queue *q, bj_error *err) {
    for (int i = 0; i < q->runs; i++) {
        char last[256];
        int code;
        if (!q->jobs[i].child.pid || !campaign_child_ended(&q->jobs[i].child, &code, last))
            continue;
        const bj_status status = ended(q, i, code, last, err);
        if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

static bj_status look(queue *q, bj_error *err) {
    for (int i = 0; i < q->runs; i++) {
        job *j = &q->jobs[i];
        const double clock = cli_seconds();
        if (!j->child.pid || clock - j->looked < look_seconds) continue;
        j->looked = clock;
        /* An unreadable progress file is not an error. The end of a run is detected by the end of
         * its process. */
        bj_run_record r = q->records[i];
        if (bj_campaign_look(&r, q->campaign, i, NULL) != BJ_OK) continue;
        r.state = BJ_STATE_RUNNING;
        const int changed = memcmp(&r, &q->records[i], sizeof r) != 0;
        q->records[i] = r;
        if (!changed || clock - j->told < put_seconds) continue;
        const bj_status status = record(q, i, BJ_STATE_RUNNING, NULL, err);
        if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- needs */

static bj_status fail_needy(queue *q, bj_error *err) {
    for (int i = 0; i < q->runs; i++) {
        const int needs = bj_campaign_run_at(q->campaign, i).needs;
        if (!mine(q, i) || over(q->records[i].state) || needs < 0) continue;
        const bj_run_state state = q->records[needs].state;
        if (state != BJ_STATE_FAILED && state != BJ_STATE_NO_PASS) continue;
        char message[256];
        snprintf(message, sizeof message, "needs %s, seed %llu, which %s", RUN_NAME(q, needs),
                 state == BJ_STATE_FAILED ? "failed" : "passed no gate");
        campaign_display_note(&q->display, "%s, seed %llu: failed: %s", RUN_NAME(q, i), message);
        const bj_status status = record(q, i, BJ_STATE_FAILED, message, err);
        if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

/* What other shards did meanwhile. */
static bj_status look_at_others(queue *q, bj_error *err) {
    const double clock = cli_seconds();
    if (q->options->shards == 1 || clock - q->foreign < foreign_seconds) return BJ_OK;
    q->foreign = clock;
    bj_run_record *all = calloc((size_t)q->runs, sizeof *all);
    if (!all) return cli_error(err, BJ_ENOMEM, "out of memory");
    const bj_status status = bj_campaign_status(all, q->campaign, err);
    for (int i = 0; status == BJ_OK && i < q->runs; i++)
        if (!mine(q, i)) q->records[i] = all[i];
    free(all);
    return status;
}

/* Returns 1 if it is worth waiting for other shards: while one of them is running something, and a
 * little longer, because it may be about to start a run. */
static int worth_waiting(queue *q) {
    int alive = 0;
    if (!count_blocked(q, 1)) return 0;
    for (int i = 0; i < q->runs; i++)
        alive |= !mine(q, i) && q->records[i].state == BJ_STATE_RUNNING;
    if (alive || !q->idle) q->idle = cli_seconds();
    return cli_seconds() - q->idle < patience_seconds;
}

/* --------------------------------------------------------------------------------------- moving */

/* If no run is waiting and cores are idle, stops the longest run, so that it resumes with more
 * threads. */
static void move_last(queue *q) {
    const int running = count_running(q);
    if (q->options->threads || !running || running >= q->slots || count_startable(q)) return;
    if (count_blocked(q, 0)) return;
    int used = 0, longest = -1;
    for (int i = 0; i < q->runs; i++) {
        if (!q->jobs[i].child.pid) continue;
        if (q->jobs[i].moving) return;
        used += q->jobs[i].threads;
        if (longest < 0 || q->records[i].eta_s > q->records[longest].eta_s) longest = i;
    }
    const int share = q->cores / running;
    if (used >= q->cores || q->jobs[longest].threads >= share) return;
    if (!(q->records[longest].eta_s > WORTH_MOVING_S)) return;
    q->jobs[longest].moving = 1;
    campaign_child_signal(&q->jobs[longest].child, SIGTERM);
    campaign_display_note(&q->display,
                          "%s, seed %llu: saving the run and restarting it with more threads",
                          RUN_NAME(q, longest));
}

/* ----------------------------------------------------------------------------------------- loop */

/* Sets the record of a run from its folder. A run that failed before keeps this state unless it is
 * to be tried again. */
static bj_status adopt_run(queue *q, int run, bj_error *err) {
    bj_error why = {0};
    bj_run_record r = q->records[run];
    const bj_run_state before = r.state;
    if (over(before) && before != BJ_STATE_FAILED) r.state = BJ_STATE_WAITING;
    const bj_status looked = bj_campaign_look(&r, q->campaign, run, &why);
    if (looked == BJ_EMISMATCH) {
        campaign_display_note(&q->display, "%s, seed %llu: failed: %s", RUN_NAME(q, run),
                              why.message);
        return record(q, run, BJ_STATE_FAILED, why.message, err);
    }
    if (looked == BJ_OK && r.state != before) { /* finished by somebody, or removed */
        if (r.state == BJ_STATE_WAITING) {
            campaign_display_note(&q->display, "%s, seed %llu: the result was removed",
                                  RUN_NAME(q, run));
            r.progress = 0, r.epoch = 0, r.best_epoch = -1;
            r.dev = r.best = r.eta_s = NAN;
        }
        q->records[run] = r;
        return record(q, run, r.state, "", err);
    }
    if (before == BJ_STATE_FAILED && q->options->retry_failed)
        return record(q, run, BJ_STATE_WAITING, "", err);
    return BJ_OK;
}

static bj_status adopt(queue *q, bj_error *err) {
    for (int i = 0; i < q->runs; i++) {
        if (!mine(q, i)) continue;
        bj_status status = bj_registry_get(&q->records[i], q->registry, i, err);
        if (status == BJ_OK) status = adopt_run(q, i, err);
        if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

static void tick(void) {
    const struct timespec pause = {0, TICK_NS};
    nanosleep(&pause, NULL); /* a signal ends it early */
}

static void pass_on(queue *q, int number) {
    for (int i = 0; i < q->runs; i++)
        if (q->jobs[i].child.pid) campaign_child_signal(&q->jobs[i].child, number);
}

static bj_status turn(queue *q, int *busy, bj_error *err) {
    bj_status status = reap(q, err);
    if (status == BJ_OK) status = look(q, err);
    if (status == BJ_OK) status = look_at_others(q, err);
    if (status == BJ_OK && !cli_stop) {
        status = fail_needy(q, err);
        if (status == BJ_OK) status = start_some(q, err);
        if (status == BJ_OK) move_last(q);
    }
    if (cli_stop && !q->told) {
        q->told = cli_stop;
        const int running = count_running(q);
        campaign_display_note(&q->display, "stopping: %d run%s will save and stop", running,
                              running == 1 ? "" : "s");
        pass_on(q, cli_stop);
    }
    const int running = count_running(q);
    *busy = running || (!cli_stop && (count_startable(q) || worth_waiting(q)));
    if (running || count_startable(q)) q->idle = 0;
    return status;
}

static bj_status loop(queue *q, bj_error *err) {
    for (int busy = 1; busy;) {
        const bj_status status = turn(q, &busy, err);
        if (status != BJ_OK) return status;
        campaign_display_show(&q->display, q->campaign, q->records, q->slots);
        if (busy) tick();
    }
    return BJ_OK;
}

/* Stops all children after an error in this process, so that none of them continues unnoticed. */
static void abandon(queue *q) {
    pass_on(q, SIGTERM);
    for (int left = 1; left;) {
        left = 0;
        for (int i = 0; i < q->runs; i++) {
            char last[256];
            int code;
            left |= q->jobs[i].child.pid && !campaign_child_ended(&q->jobs[i].child, &code, last);
        }
        if (left) tick();
    }
}

bj_status campaign_queue_run(bj_run_record *records, const bj_campaign *campaign,
                             const campaign_queue_options *options, bj_error *err) {
    queue q = {.campaign = campaign, .options = options, .records = records};
    q.runs = bj_campaign_runs(campaign);
    q.cores = cli_threads(0);
    q.foreign = -foreign_seconds;
    q.display = campaign_display_begin(options->quiet);
    if (gethostname(q.host, sizeof q.host - 1)) snprintf(q.host, sizeof q.host, "unknown");
    bj_status status =
        options->rebuild ? bj_registry_discard(campaign, options->shard, options->shards, err)
                         : BJ_OK;
    if (status == BJ_OK)
        status = bj_registry_open(&q.registry, campaign, options->shard, options->shards, err);
    if (status != BJ_OK) return status;
    q.jobs = calloc((size_t)q.runs, sizeof *q.jobs);
    if (!q.jobs) status = cli_error(err, BJ_ENOMEM, "out of memory");
    if (status == BJ_OK) status = bj_campaign_status(records, campaign, err);
    if (status == BJ_OK) status = adopt(&q, err);
    q.slots = options->jobs ? options->jobs : q.cores;
    if (status == BJ_OK) status = loop(&q, err);
    if (status != BJ_OK && q.jobs) abandon(&q);
    campaign_display_end(&q.display);
    bj_registry_free(q.registry);
    free(q.jobs);
    return status;
}
