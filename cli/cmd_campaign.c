/* cmd_campaign.c - bjepa campaign: trains every arm of a campaign file with every seed, and shows
 * the progress. */
#define _POSIX_C_SOURCE 200809L /* nanosleep, opendir */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "campaign_queue.h"
#include "settings.h"
#include "output.h"
#include "signals.h"
#include "verbs.h"

static const char verb[] = "campaign", status_verb[] = "campaign status";

static int cmd_campaign_status(int argc, char **argv);
static const cli_verb verbs[] = {
    {"status", "print the progress of a campaign", cmd_campaign_status},
    CLI_VERB_END,
};

typedef struct campaign_options {
    const char *file; /* NULL: what the folder holds */
    const char *out, *data, *dev, *shard;
    cli_list set;
    int resume, dry_run;
    campaign_queue_options queue;
} campaign_options;

/* -------------------------------------------------------------------------------------- parsing */

static int parse_shard(campaign_options *o) {
    o->queue.shard = 0, o->queue.shards = 1;
    if (!o->shard) return CLI_CONTINUE;
    char *end;
    const long shard = strtol(o->shard, &end, 10);
    const char *slash = end;
    const long shards = *slash == '/' ? strtol(slash + 1, &end, 10) : 0;
    if (slash == o->shard || *slash != '/' || end == slash + 1 || *end || shards < 1 ||
        shards > 1000000 || shard < 0 || shard >= shards)
        return cli_misuse(verb, "--shard: found '%s', expected I/N with 0 <= I < N", o->shard);
    o->queue.shard = (int)shard, o->queue.shards = (int)shards;
    return CLI_CONTINUE;
}

static int parse(campaign_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "DIR", &o->out, 0, 0, "campaign folder"},
        {"data", 0, CLI_TEXT, "FILE|DIR", &o->data, 0, 0,
         "cache or maze dataset to use instead of 'data' in the file, "
         "or a folder if the file lists several datasets"},
        {"dev", 0, CLI_TEXT, "CACHE", &o->dev, 0, 0,
         "development scenes to use instead of 'dev' in the file"},
        {"jobs", 0, CLI_INT, "N", &o->queue.jobs, 0, 1024,
         "number of runs to train at the same time; 0 means one per available core"},
        {"threads", 'j', CLI_INT, "N", &o->queue.threads, 0, 1024,
         "worker threads per run; 0 divides the available cores among the runs"},
        {"resume", 0, CLI_FLAG, NULL, &o->resume, 0, 0,
         "resume the campaign in the output folder; FILE may be omitted"},
        {"retry-failed", 0, CLI_FLAG, NULL, &o->queue.retry_failed, 0, 0,
         "run the failed runs again"},
        {"rebuild-registry", 0, CLI_FLAG, NULL, &o->queue.rebuild, 0, 0,
         "with --resume: move a damaged registry aside and read the states from the run folders"},
        {"shard", 0, CLI_TEXT, "I/N", &o->shard, 0, 0,
         "train only every Nth run, starting at run I; 0/2 and 1/2 together cover all runs"},
        {"set", 0, CLI_LIST, "KEY=VALUE", &o->set, 0, 0,
         "change a setting of every run, for example train.epochs=10; may be repeated"},
        {"dry-run", 'n', CLI_FLAG, NULL, &o->dry_run, 0, 0,
         "list the runs without writing anything"},
        CLI_OPTION_QUIET(&o->queue.quiet),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "train each arm of a campaign file with each seed",
        .operands = "FILE.yaml",
        .max_operands = 1,
        .examples =
            "bjepa campaign campaigns/demo-world.yaml --data train.bjc --out demo\n"
            "bjepa campaign campaigns/paper-av2.yaml --data train.bjc --out paper --dry-run\n"
            "bjepa campaign campaigns/maze-planall.yaml --data ogbench --out planall\n"
            "bjepa campaign --out demo --resume\n"
            "bjepa campaign --out demo --resume --retry-failed\n"
            "bjepa campaign paper.yaml --out paper --resume --shard 3/8\n"
            "bjepa campaign status demo --watch\n",
        .options = options,
        .verbs = verbs,
    };
    int operands;
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    o->file = operands ? argv[1] : NULL;
    if (!o->out) return cli_misuse(verb, "--out DIR is missing");
    if (!o->file && !o->resume)
        return cli_misuse(verb, "found no argument, expected FILE.yaml or --resume");
    if (o->queue.rebuild && !o->resume)
        return cli_misuse(verb, "--rebuild-registry needs --resume");
    if (!o->file && (o->data || o->dev || o->set.count))
        return cli_misuse(verb, "--data, --dev and --set need FILE.yaml");
    return parse_shard(o);
}

/* -------------------------------------------------------------------------------------- opening */

static int is_empty(const char *dir) {
    DIR *folder = opendir(dir);
    int empty = 1;
    if (!folder) {
        struct stat info;
        return stat(dir, &info) != 0;
    }
    for (const struct dirent *e; empty && (e = readdir(folder));)
        empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
    closedir(folder);
    return empty;
}

static bj_status open_campaign(bj_campaign **out, const campaign_options *o, bj_error *err) {
    bj_assignment set[CLI_LIST_SIZE] = {{0}};
    char *memory[CLI_LIST_SIZE] = {0};
    bj_status status = BJ_OK;
    if (!o->file) return bj_campaign_open(out, o->out, err);
    if (!o->resume && !o->dry_run && !is_empty(o->out))
        return cli_error(err, BJ_EARG,
                         "%s: exists and is not empty\n"
                         "hint: --resume continues the campaign in this folder",
                         o->out);
    for (int i = 0; status == BJ_OK && i < o->set.count; i++)
        status = cli_split_set(&set[i], &memory[i], o->set.items[i], err);
    char builtin[CLI_PATH_SIZE];
    if (status == BJ_OK) status = cli_resolve_builtin(set, o->set.count, builtin, err);
    const bj_campaign_options options = {o->data, o->dev, set, o->set.count, o->dry_run};
    if (status == BJ_OK) status = bj_campaign_create(out, o->file, o->out, &options, err);
    for (int i = 0; i < o->set.count; i++) free(memory[i]);
    return status;
}

/* -------------------------------------------------------------------------------------- dry run */

static void print_grid(const bj_campaign *c, const campaign_options *o) {
    const int runs = bj_campaign_runs(c);
    const int sets = bj_campaign_data_count(c);
    printf("%s: %d runs\n", bj_campaign_name(c), runs);
    for (int i = 0, set = 0; set < sets && i < runs; i++) { /* each with its first run */
        const bj_campaign_run run = bj_campaign_run_at(c, i);
        if (run.set != set) continue;
        printf("%-13s %s\ndigest        %s\n", sets > 1 ? bj_campaign_data_name(c, set) : "data",
               run.data, run.data_digest);
        set++;
    }
    if (bj_campaign_dev(c)) printf("development   %s\n", bj_campaign_dev(c));
    int width = 16;
    for (int i = 0; i < runs; i++) {
        const int length = (int)strlen(bj_campaign_run_at(c, i).name);
        if (length > width) width = length;
    }
    printf("\n%5s  %-*s %6s  %-8s %7s %6s %9s  %s\n", "run", width, "arm", "seed", "recipe",
           "epochs", "batch", "lr", "folder");
    for (int i = 0; i < runs; i++) {
        if (i % o->queue.shards != o->queue.shard) continue;
        const bj_campaign_run run = bj_campaign_run_at(c, i);
        const bj_settings *s = run.settings;
        printf("%5d  %-*s %6llu  %-8s %7d %6d %9g  %s", i, width, run.name,
               (unsigned long long)s->seed, s->recipe, s->epochs, s->batch, s->lr, run.dir);
        if (run.needs >= 0) printf("  after run %d", run.needs);
        putchar('\n');
    }
}

/* -------------------------------------------------------------------------------------- running */

/* Of the runs this shard is responsible for. */
static int verdict(const campaign_options *o, const bj_run_record *records, int runs) {
    int failed = 0, no_pass = 0, left = 0;
    for (int i = o->queue.shard; i < runs; i += o->queue.shards) {
        failed += records[i].state == BJ_STATE_FAILED;
        no_pass += records[i].state == BJ_STATE_NO_PASS || records[i].state == BJ_STATE_COLLAPSED;
        left += records[i].state == BJ_STATE_WAITING || records[i].state == BJ_STATE_STOPPED;
    }
    if (failed)
        fprintf(stderr,
                "bjepa %s: %d of %d runs failed\n"
                "hint: log.txt in each run folder contains the output of the run; "
                "--resume --retry-failed runs the failed runs again\n",
                verb, failed, runs);
    if (left)
        fprintf(stderr,
                "bjepa %s: unfinished runs: %d\n"
                "hint: continue with 'bjepa campaign --out %s --resume'\n",
                verb, left, o->out);
    if (cli_stop) return CLI_SIGNALED + (int)cli_stop;
    return failed || left ? CLI_FAILED : no_pass ? CLI_REFUSED : CLI_OK;
}

static int run(const campaign_options *o) {
    bj_error err = {0};
    bj_campaign *campaign = NULL;
    bj_run_record *records = NULL;
    int code = CLI_OK;
    bj_status status = open_campaign(&campaign, o, &err);
    if (status == BJ_OK && o->dry_run) {
        print_grid(campaign, o);
        bj_campaign_free(campaign);
        return CLI_OK;
    }
    if (status == BJ_OK) {
        records = calloc((size_t)bj_campaign_runs(campaign), sizeof *records);
        if (!records) status = cli_error(&err, BJ_ENOMEM, "out of memory");
    }
    cli_catch_signals();
    if (status == BJ_OK) status = campaign_queue_run(records, campaign, &o->queue, &err);
    if (status == BJ_OK) {
        campaign_table_print(stdout, campaign, records, 0, 0, NULL);
        fflush(stdout);
        code = verdict(o, records, bj_campaign_runs(campaign));
    } else {
        code = cli_fail(verb, &err);
    }
    free(records);
    bj_campaign_free(campaign);
    return code;
}

/* --------------------------------------------------------------------------------------- status */

static int is_over(const bj_run_record *records, int runs) {
    const campaign_totals t = campaign_count(records, runs, 0);
    return t.states[BJ_STATE_RUNNING] + t.states[BJ_STATE_WAITING] + t.states[BJ_STATE_STOPPED] ==
           0;
}

/* Prints the status once, or repeatedly until the last run has ended. */
static bj_status watch(const bj_campaign *c, bj_run_record *records, int json, int again,
                       bj_error *err) {
    campaign_display display = campaign_display_begin(!again);
    display.last = 0;
    for (;;) {
        const bj_status status = bj_campaign_status(records, c, err);
        if (status != BJ_OK) return status;
        if (!again || cli_stop || is_over(records, bj_campaign_runs(c))) break;
        campaign_display_show(&display, c, records, 0);
        const struct timespec pause = {1, 0};
        nanosleep(&pause, NULL);
    }
    campaign_display_end(&display);
    if (json) campaign_json(stdout, c, records);
    else campaign_table_print(stdout, c, records, 0, 0, NULL);
    return BJ_OK;
}

static int cmd_campaign_status(int argc, char **argv) {
    int json = 0, again = 0;
    const cli_option options[] = {
        {"watch", 'w', CLI_FLAG, NULL, &again, 0, 0, "repeat until the last run has ended"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = status_verb,
        .summary = "print the progress of a campaign",
        .operands = "DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa campaign status demo\n"
                    "bjepa campaign status demo --watch\n"
                    "bjepa campaign status demo --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    bj_error err = {0};
    bj_campaign *campaign = NULL;
    bj_run_record *records = NULL;
    bj_status status = bj_campaign_open(&campaign, argv[1], &err);
    if (status == BJ_OK) {
        records = calloc((size_t)bj_campaign_runs(campaign), sizeof *records);
        if (!records) status = cli_error(&err, BJ_ENOMEM, "out of memory");
    }
    if (again) cli_catch_signals();
    if (status == BJ_OK) status = watch(campaign, records, json, again, &err);
    free(records);
    bj_campaign_free(campaign);
    if (status != BJ_OK) return cli_fail(status_verb, &err);
    return cli_stop ? CLI_SIGNALED + (int)cli_stop : CLI_OK;
}

/* Only `status` is a verb here. If the argument is similar to `status` and is not a file, it is
 * probably a typo. */
int cmd_campaign(int argc, char **argv) {
    struct stat info;
    if (argc > 1 && !strcmp(argv[1], "status")) return cmd_campaign_status(argc - 1, argv + 1);
    if (argc > 1 && argv[1][0] != '-' && stat(argv[1], &info)) {
        bj_nearest nearest = BJ_NEAREST(argv[1]);
        bj_nearest_offer(&nearest, "status");
        if (nearest.best) return cli_misuse(verb, "no file '%s'; did you mean 'status'?", argv[1]);
    }
    campaign_options o = {0};
    const int result = parse(&o, argc, argv);
    return result == CLI_CONTINUE ? run(&o) : result;
}
