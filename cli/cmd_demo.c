/* cmd_demo.c - bjepa demo: the pretrained model on new scenes, then a whole experiment.
 *
 * Stage 1 writes a page with forecasts of the pretrained model; it is left out where the model is not
 * installed. Stage 2 trains three arms, locks, evaluates, audits and draws them, and writes a report.
 *
 * Every step is a command that could have been typed, and is printed before it runs. A step whose
 * result already exists is left out, and training resumes, so an interrupted demo continues when it
 * is started again with the same folder. The bytes do not depend on the number of threads, except
 * for times and paths.
 * Test: tests/cli/demo.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "builtin.h"
#include "cli.h"
#include "embedded.h"
#include "output.h"
#include "show_page.h"
#include "signals.h"
#include "step.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char verb[] = "demo";

/* World seeds. The pretrained model was trained with a different seed. */
#define TRAIN_SEED "7"
#define TEST_SEED "8"

/* Files of the demo, below its folder. */
enum file {
    FRESH,
    PAGE,
    VAL,
    LAW,
    PLAN,
    CAMPAIGN,
    MADE,
    LOCK,
    LOCKED,
    AUDIT,
    TRUTH,
    GALLERY,
    DRAWN,
    REPORT,
    FILES
};
static const char *const names[FILES] = {
    [FRESH] = "fresh.bjc",
    [PAGE] = "pretrained.html",
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
    int pretrained; /* 1: the pretrained model is installed */
    char path[FILES][CLI_PATH_SIZE];
    int code; /* of the step that did not succeed */
} demo;

static int exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* -------------------------------------------------------------------------------------- commands */

/* Builds a command line. Unused options are left out. */
typedef struct command {
    const char *args[CLI_STEP_ARGS + 1];
    int count;
    char number[4][24];
    int numbers;
} command;

static void add(command *c, const char *arg) { c->args[c->count++] = arg; }

static void add_option(command *c, const char *name, const char *value) {
    add(c, name);
    add(c, value);
}

static void add_number(command *c, const char *name, int value) {
    char *text = c->number[c->numbers++];
    snprintf(text, sizeof c->number[0], "%d", value);
    add_option(c, name, text);
}

/* Limits the threads of a step if the threads of the demo are limited. */
static void add_threads(command *c, const demo *d, const char *name) {
    if (d->threads) add_number(c, name, d->threads);
}

#define COMMAND(...)                                                                               \
    { .args = {__VA_ARGS__}, .count = sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *) }

/* Runs a command, unless its result already exists. Returns 1 if it ran and succeeded. */
static int run(demo *d, const command *c, const char *result, const char *output) {
    bj_error err;
    if (d->code || (result && exists(result))) return 0;
    const bj_status status = cli_step(&d->code, c->args, output, &err);
    if (status != BJ_OK) d->code = cli_fail(verb, &err);
    return !d->code;
}

/* --------------------------------------------------------------------------------------- stage 1 */

static void simulate(demo *d, enum file cache, int scenes, const char *split) {
    command c = COMMAND("simulate", "--cache", d->path[cache]);
    add_number(&c, "--scenes", scenes);
    add_option(&c, "--seed", TEST_SEED);
    add_option(&c, "--split", split);
    add_threads(&c, d, "--jobs");
    run(d, &c, d->path[cache], NULL);
}

static void show_pretrained(demo *d) {
    char path[CLI_PATH_SIZE];
    bj_error err;
    d->pretrained = cli_builtin_path(path, &err) == BJ_OK;
    if (!d->pretrained) {
        char *hint = strchr(err.message, '\n');
        if (hint) *hint = '\0';
        fprintf(stderr, "bjepa demo: %s; its page is left out\n", err.message);
        return;
    }
    simulate(d, FRESH, d->held_out, "test");
    command c = COMMAND("view", CLI_BUILTIN, "--av2", d->path[FRESH], "--choose", "maneuvers",
                        "--count", "12", "--out", d->path[PAGE]);
    add_threads(&c, d, "--threads");
    if (!run(d, &c, d->path[PAGE], NULL)) return;
    printf("\n%s: the forecasts of the pretrained model for unseen scenes,\n"
           "  next to the true distribution and the actual outcome.\n"
           "  Open this page while the rest of the demo runs.\n\n",
           d->path[PAGE]);
    cli_show_page(d->path[PAGE]);
}

/* --------------------------------------------------------------------------------------- stage 2 */

/* Writes the campaign file, which a user may copy and change. */
static void write_plan(demo *d) {
    const cli_embedded *plan = cli_embedded_find(names[PLAN]);
    cli_file file;
    bj_error err;
    if (d->code || exists(d->path[PLAN])) return;
    bj_status status = cli_file_open(&file, d->path[PLAN], &err);
    if (status == BJ_OK) {
        fwrite(plan->bytes, 1, plan->size, file.stream);
        status = cli_file_commit(&file, &err);
    }
    if (status != BJ_OK) d->code = cli_fail(verb, &err);
}

/* Trains the arms one after the other with all threads, or all at once if there are enough
 * cores. */
static void train(demo *d) {
    char data[48], set[32];
    const int threads = cli_threads(d->threads), jobs = threads < 3 ? 1 : 3;
    command begin = COMMAND("campaign", d->path[PLAN]);
    command resume = COMMAND("campaign", "--resume");
    command *c = exists(d->path[MADE]) ? &resume : &begin;
    write_plan(d);
    snprintf(data, sizeof data, "world:" TRAIN_SEED ":%d", d->scenes);
    snprintf(set, sizeof set, "train.epochs=%d", d->epochs);
    add_option(&begin, "--data", data);
    add_option(&begin, "--set", set);
    add_option(c, "--out", d->path[CAMPAIGN]);
    add_number(c, "--jobs", jobs);
    add_number(c, "--threads", threads / jobs);
    run(d, c, d->path[LOCK], NULL);
}

static void judge(demo *d) {
    const char *val = d->path[VAL], *campaign = d->path[CAMPAIGN];
    const command lock = COMMAND("lock", campaign, "--data", val);
    command evaluate = COMMAND("lock", "run", campaign);
    command audit = COMMAND("audit", "--data", val, "--a", "fullset", "--b", "specialization",
                            "--json", campaign);
    command truth = COMMAND("truth", "--baseline", "--json");
    add_threads(&evaluate, d, "--threads");
    add_threads(&audit, d, "--threads");
    add_threads(&truth, d, "--threads");
    add(&truth, campaign);
    if (d->pretrained) {
        add(&audit, CLI_BUILTIN);
        add(&truth, CLI_BUILTIN);
    }
    add(&truth, val);
    add(&truth, d->path[LAW]);
    run(d, &lock, d->path[LOCK], NULL);
    run(d, &evaluate, d->path[LOCKED], NULL);
    run(d, &audit, d->path[AUDIT], d->path[AUDIT]);
    run(d, &truth, d->path[TRUTH], d->path[TRUTH]);
}

static void show(demo *d) {
    command choose = COMMAND("gallery", "lock", d->path[CAMPAIGN], "--data", d->path[VAL], "--out",
                             d->path[GALLERY]);
    const command draw = COMMAND("gallery", "draw", d->path[GALLERY], "--data", d->path[VAL]);
    command report = COMMAND("report", d->path[CAMPAIGN], "--out", d->path[REPORT]);
    add_threads(&choose, d, "--threads");
    add_threads(&report, d, "--threads");
    if (d->pretrained) add_option(&report, "--pretrained", CLI_BUILTIN);
    run(d, &choose, d->path[GALLERY], NULL);
    run(d, &draw, d->path[DRAWN], NULL);
    if (run(d, &report, d->path[REPORT], NULL)) cli_show_page(d->path[REPORT]);
}

/* --------------------------------------------------------------------------------------- summary */

static double mean_of(const bj_seeds *seeds, const char *arm, const char *metric) {
    const int a = bj_seeds_find_arm(seeds, arm), m = bj_seeds_find_metric(seeds, metric);
    return a < 0 || m < 0 ? NAN : bj_seeds_summary(seeds, a, m).mean;
}

static int summarize(const demo *d) {
    bj_seeds *seeds;
    bj_error err;
    if (bj_campaign_seeds(&seeds, d->path[CAMPAIGN], BJ_SEEDS_LOCKED, &err) != BJ_OK)
        return cli_fail(verb, &err);
    printf("\nLocked evaluation on %d simulated scenes that no model was trained on:\n",
           d->held_out);
    printf("  trajectory Energy Score (m, lower is better): "
           "full-set %.2f, specialization %.2f, one point %.2f\n",
           mean_of(seeds, "fullset", "traj_es"), mean_of(seeds, "specialization", "traj_es"),
           mean_of(seeds, "point", "traj_es"));
    printf("  expected ADE (m, lower is better): full-set %.2f, specialization %.2f\n",
           mean_of(seeds, "fullset", "exp_ade"), mean_of(seeds, "specialization", "exp_ade"));
    if (d->pretrained)
        printf("%s: forecasts of the pretrained model and the true distribution\n", d->path[PAGE]);
    printf("%s: results, learning curves, calibration, map audit, and a scene browser\n",
           d->path[REPORT]);
    printf("%s: cases that were selected without reading any future\n", d->path[GALLERY]);
    bj_seeds_free(seeds);
    return CLI_OK;
}

int cmd_demo(int argc, char **argv) {
    static demo d = {.out = "demo", .scenes = 61440, .held_out = 600, .epochs = 6};
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "DIR", &d.out, 0, 0, "output folder"},
        {"scenes", 'n', CLI_INT, "N", &d.scenes, 64, 100000000,
         "number of simulated scenes to train each arm on"},
        {"held-out", 0, CLI_INT, "N", &d.held_out, 10, 100000, "number of scenes to evaluate on"},
        {"epochs", 0, CLI_INT, "N", &d.epochs, 1, 1000,
         "number of training epochs; the model is evaluated after each epoch"},
        CLI_OPTION_THREADS(&d.threads),
        CLI_OPTION_END};
    const cli_usage usage = {
        verb,
        "show the pretrained model, then train and evaluate three arms and write a report",
        NULL,
        0,
        0,
        "bjepa demo\n"
        "bjepa demo --out try --scenes 3840 --epochs 2\n",
        options,
        NULL};
    const int parsed = cli_parse(&usage, argc, argv, NULL);
    if (parsed != CLI_CONTINUE) return parsed;
    bj_error err;
    int created;
    bj_status status = cli_folder(&created, d.out, &err);
    for (int i = 0; i < FILES && status == BJ_OK; i++)
        status = cli_path(d.path[i], d.out, names[i], &err);
    if (status != BJ_OK) return cli_fail(verb, &err);
    cli_catch_signals();
    show_pretrained(&d);
    simulate(&d, VAL, d.held_out, "val");
    train(&d);
    judge(&d);
    show(&d);
    if (d.code > CLI_SIGNALED)
        fprintf(stderr, "bjepa demo: interrupted; run the same command again to continue\n");
    return d.code ? d.code : summarize(&d);
}
