/* cmd_lock.c - bjepa lock: locks a finished campaign by hashes before its only evaluation, which is
 * `bjepa lock run` (cmd_evaluate.c). */
#include <string.h>

#include "json_out.h"
#include "output.h"
#include "progress.h"
#include "signals.h"
#include "verbs.h"

static const char verb[] = "lock";

static const cli_verb verbs[] = {
    {"run", "evaluate a locked campaign once on the held-out scenes", cmd_lock_run},
    {"verify", "check all locked files and results against their SHA-256", cmd_lock_verify},
    CLI_VERB_END,
};

typedef struct lock_options {
    const char *dir, *data;
    int json, quiet;
} lock_options;

static int parse(lock_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "CACHE", &o->data, 0, 0,
         "cache of held-out scenes that were not used for training"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary =
            "record the digests of checkpoints, settings, program and held-out data in a lock file",
        .operands = "CAMPAIGN_DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa lock runs/demo-world --data val.bjc\n"
                    "bjepa lock run runs/demo-world\n"
                    "bjepa lock verify runs/demo-world\n",
        .options = options,
        .verbs = verbs,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    if (!o->data) return cli_misuse(verb, "--data CACHE is missing");
    o->dir = argv[1];
    return CLI_CONTINUE;
}

typedef struct watch {
    cli_progress progress;
    int quiet;
} watch;

static int show(void *context, int64_t done, int64_t total) {
    watch *w = context;
    w->progress.total = (long)(total >> 20) + 1;
    if (!w->quiet) cli_progress_show(&w->progress, (long)(done >> 20), "hashing");
    return cli_stop != 0;
}

int cmd_lock(int argc, char **argv) {
    lock_options o = {0};
    bj_error err = {0};
    for (const cli_verb *v = verbs; v->name && argc > 1; v++)
        if (!strcmp(argv[1], v->name)) return v->run(argc - 1, argv + 1);
    const int result = parse(&o, argc, argv);
    if (result != CLI_CONTINUE) return result;
    watch w = {cli_progress_begin("MiB", 0), o.quiet};
    const double start = w.progress.last;
    const bj_lock_options options = {
        .data = o.data, .evaluator = CLI_SELF, .progress = show, .context = &w};
    bj_lock_report report;
    cli_catch_signals();
    const bj_status status = bj_campaign_lock(&report, o.dir, &options, &err);
    if (w.progress.last > start) cli_progress_end(&w.progress, w.progress.total, "hashed");
    if (status != BJ_OK) {
        const int code = cli_fail(verb, &err);
        return cli_stop ? CLI_SIGNALED + (int)cli_stop : code;
    }
    if (o.json) {
        printf("{\"schema\": 1, \"type\": \"lock\", \"runs\": %d, \"arms\": %d, \"seeds\": %d, "
               "\"scenes\": %lld, \"digest\": \"%s\"}\n",
               report.runs, report.arms, report.seeds, (long long)report.scenes, report.digest);
        return CLI_OK;
    }
    char scenes[CLI_COUNT_SIZE];
    printf("%s: locked %d runs (arms: %d, seeds: %d) and %s held-out scenes\n", o.dir, report.runs,
           report.arms, report.seeds, cli_count(scenes, (size_t)report.scenes));
    printf("%s %s\n", report.digest, BJ_LOCK_FILE);
    printf("next: bjepa lock run %s\n", o.dir);
    return CLI_OK;
}
