/* cmd_demo.c - bjepa demo: the whole way, from simulated traffic to a report.
 *
 * Every step is a command that could have been typed, and is printed before it runs. A step whose
 * result is there is left out, and training resumes: an interrupted demo goes on when it is started
 * again with the same folder. The same bytes come out with any number of threads on one instruction
 * set, but for times and paths.
 * Test: tests/cli/demo.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "cli.h"
#include "embedded.h"
#include "output.h"
#include "signals.h"
#include "step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char verb[] = "demo";

enum { FILES = 14 };

/* Files of the demo, below its folder. */
enum file { TRAIN, VAL, LAW, PLAN, CAMPAIGN, MADE, LOCK, LOCKED, AUDIT, TRUTH, GALLERY, DRAWN, REPORT };
static const char *const names[FILES] = {
    [TRAIN] = "train.bjc",
    [VAL] = "val.bjc",
    [LAW] = "val.bjc.law.safetensors",
    [PLAN] = "demo.yaml",
    [CAMPAIGN] = "campaign",
    [MADE] = "campaign/campaign.json",
    [LOCK] = "campaign/" BJ_LOCK_FILE,
    [LOCKED] = "campaign/" BJ_LOCKED_DIR,
    [AUDIT] = "campaign/audit.json",
    [TRUTH] = "campaign/truth.json",
    [GALLERY] = "gallery",
    [DRAWN] = "gallery/atlas_hindsight.svg",
    [REPORT] = "report.html",
};

typedef struct demo {
    const char *out;
    int scenes, held_out, epochs, threads;
    char path[FILES][CLI_PATH_SIZE];
    int code; /* of the step that did not succeed */
} demo;

static int there(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* One command, unless `result` is there already. Returns 1 to go on. */
static int step(demo *d, const char *result, const char *output, const char *const *args) {
    bj_error err;
    if (d->code || (result && there(result))) return !d->code;
    const bj_status status = cli_step(&d->code, args, output, &err);
    if (status != BJ_OK) d->code = cli_fail(verb, &err);
    return !d->code;
}

#define STEP(d, result, output, ...) step((d), (result), (output), (const char *[]){__VA_ARGS__, NULL})

/* --------------------------------------------------------------------------------------- steps */

static void simulate(demo *d) {
    char train[16], val[16];
    snprintf(train, sizeof train, "%d", d->scenes);
    snprintf(val, sizeof val, "%d", d->held_out);
    STEP(d, d->path[TRAIN], NULL, "simulate", "--cache", d->path[TRAIN], "--scenes", train, "--seed",
         "7");
    STEP(d, d->path[VAL], NULL, "simulate", "--cache", d->path[VAL], "--scenes", val, "--seed", "7",
         "--split", "val");
}

/* The plan is a file that a reader may copy and change. */
static void write_plan(demo *d) {
    const cli_embedded *plan = cli_embedded_find(names[PLAN]);
    cli_file file;
    bj_error err;
    if (d->code || there(d->path[PLAN])) return;
    bj_status status = cli_file_open(&file, d->path[PLAN], &err);
    if (status == BJ_OK) {
        fwrite(plan->bytes, 1, plan->size, file.stream);
        status = cli_file_commit(&file, &err);
    }
    if (status != BJ_OK) d->code = cli_fail(verb, &err);
}

static void train(demo *d) {
    char set[32], threads[16];
    snprintf(set, sizeof set, "train.epochs=%d", d->epochs);
    snprintf(threads, sizeof threads, "%d", d->threads);
    write_plan(d);
    if (d->code || there(d->path[LOCK])) return;
    if (there(d->path[MADE]))
        STEP(d, NULL, NULL, "campaign", "--out", d->path[CAMPAIGN], "--resume", "--jobs", threads);
    else
        STEP(d, NULL, NULL, "campaign", d->path[PLAN], "--data", d->path[TRAIN], "--out",
             d->path[CAMPAIGN], "--set", set, "--jobs", threads);
}

static void judge(demo *d) {
    STEP(d, d->path[LOCK], NULL, "lock", d->path[CAMPAIGN], "--data", d->path[VAL]);
    STEP(d, d->path[LOCKED], NULL, "evaluate", d->path[CAMPAIGN]);
    STEP(d, d->path[AUDIT], d->path[AUDIT], "audit", d->path[CAMPAIGN], "--data", d->path[VAL], "--a",
         "fullset", "--b", "specialization", "--json");
    STEP(d, d->path[TRUTH], d->path[TRUTH], "truth", "--baseline", d->path[CAMPAIGN],
         d->path[VAL], d->path[LAW], "--json");
}

static void show(demo *d) {
    STEP(d, d->path[GALLERY], NULL, "gallery", "lock", d->path[CAMPAIGN], "--data", d->path[VAL],
         "--out", d->path[GALLERY]);
    STEP(d, d->path[DRAWN], NULL, "gallery", "draw", d->path[GALLERY], "--data", d->path[VAL]);
    STEP(d, d->path[REPORT], NULL, "report", d->path[CAMPAIGN], "--out", d->path[REPORT]);
}

/* ------------------------------------------------------------------------------------- summary */

static double mean_of(const bj_seeds *seeds, const char *arm, const char *metric) {
    const int a = bj_seeds_find_arm(seeds, arm), m = bj_seeds_find_metric(seeds, metric);
    return a < 0 || m < 0 ? NAN : bj_seeds_summary(seeds, a, m).mean;
}

static int summarize(const demo *d) {
    bj_seeds *seeds;
    bj_error err;
    if (bj_campaign_seeds(&seeds, d->path[CAMPAIGN], BJ_SEEDS_LOCKED, &err) != BJ_OK)
        return cli_fail(verb, &err);
    const double full = mean_of(seeds, "fullset", "traj_es");
    const double winner = mean_of(seeds, "specialization", "traj_es");
    const double point = mean_of(seeds, "point", "traj_es");
    printf("\n%d simulated scenes no model has seen, evaluated once, behind a lock:\n", d->held_out);
    printf("  trajectory Energy Score (lower is better): full-set %.2f, specialization %.2f, one "
           "point %.2f m\n",
           full, winner, point);
    printf("  expected distance of all futures: full-set %.2f, specialization %.2f m\n",
           mean_of(seeds, "fullset", "exp_ade"), mean_of(seeds, "specialization", "exp_ade"));
    printf("%s: the numbers with their intervals, learning curves, calibration, and scenes\n"
           "  to browse: six weighted futures on the map, what happened, and the true law\n",
           d->path[REPORT]);
    printf("%s: cases chosen before any future was read\n", d->path[GALLERY]);
    bj_seeds_free(seeds);
    return CLI_OK;
}

int cmd_demo(int argc, char **argv) {
    static demo d = {.out = "demo", .scenes = 2400, .held_out = 600, .epochs = 12};
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "DIR", &d.out, 0, 0, "folder for everything; demo"},
        {"scenes", 'n', CLI_INT, "N", &d.scenes, 60, 1000000, "simulated scenes to train with; 2400"},
        {"held-out", 0, CLI_INT, "N", &d.held_out, 10, 100000, "and to evaluate on; 600"},
        {"epochs", 0, CLI_INT, "N", &d.epochs, 1, 1000, "of training; 12"},
        CLI_OPTION_THREADS(&d.threads),
        CLI_OPTION_END};
    const cli_usage usage = {verb, "the whole way on simulated traffic: train, evaluate, report", NULL,
                             0, 0,
                             "bjepa demo\n"
                             "bjepa demo --out try --scenes 300 --epochs 2\n",
                             options};
    const int parsed = cli_parse(&usage, argc, argv, NULL);
    if (parsed != CLI_CONTINUE) return parsed;
    d.threads = cli_threads(d.threads);
    bj_error err;
    int created;
    bj_status status = cli_folder(&created, d.out, &err);
    for (int i = 0; i < FILES && status == BJ_OK; i++)
        if (names[i]) status = cli_path(d.path[i], d.out, names[i], &err);
    if (status != BJ_OK) return cli_fail(verb, &err);
    cli_catch_signals();
    simulate(&d);
    train(&d);
    judge(&d);
    show(&d);
    if (d.code > CLI_SIGNALED)
        fprintf(stderr, "bjepa demo: interrupted; the same command goes on from here\n");
    return d.code ? d.code : summarize(&d);
}
