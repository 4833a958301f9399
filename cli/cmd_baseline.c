/* cmd_baseline.c - bjepa baseline: writes the forecasts of a fixed rule as a challenge submission.
 */
#include "cli.h"
#include "json_out.h"
#include "progress.h"
#include "signals.h"

#include <stdio.h>

static const char verb[] = "baseline";

typedef struct baseline_options {
    const char *data, *out;
    int threads, quiet, json;
} baseline_options;

static int parse(baseline_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "DIR_OR_CACHE", &o->data, 0, 0,
         "folder of scenario files, or a cache; lane-following needs a folder"},
        {"out", 'o', CLI_TEXT, "FILE.parquet", &o->out, 0, 0, "submission file to write"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "predict with a simple rule and write a challenge submission",
        .operands = "constant-velocity|constant-velocity-6|constant-turn-rate|lane-following",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa baseline lane-following --data world/val --out lanes.parquet\n"
                    "bjepa baseline constant-velocity --data val.bjc --out velocity.parquet\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (!o->data) return cli_misuse(verb, "--data DIR_OR_CACHE is missing");
    if (!o->out) return cli_misuse(verb, "--out FILE.parquet is missing");
    return CLI_CONTINUE;
}

int cmd_baseline(int argc, char **argv) {
    baseline_options o = {0};
    bj_error err = {0};
    bj_rule rule = BJ_RULE_VELOCITY;
    int64_t scenes = 0;
    const int result = parse(&o, argc, argv);
    if (result != CLI_CONTINUE) return result;
    cli_watch w = {.progress = cli_progress_begin("scenes", 0), .note = argv[1], .quiet = o.quiet};
    const bj_rule_options how = {.threads = o.threads, .progress = cli_watch_show, .context = &w};
    cli_catch_signals();
    bj_status status = bj_rule_find(&rule, argv[1], &err);
    if (status == BJ_OK) status = bj_rule_submit(&scenes, o.out, rule, o.data, &how, &err);
    if (!o.quiet && w.progress.last > w.progress.start)
        cli_progress_end(&w.progress, (long)scenes, "");
    if (status != BJ_OK) {
        const int code = cli_fail(verb, &err);
        return cli_stop ? CLI_SIGNALED + (int)cli_stop : code;
    }
    if (o.json) {
        printf("{\"schema\":1,\"type\":\"baseline\",\"rule\":\"%s\",\"file\":", bj_rule_name(rule));
        cli_json_text(stdout, o.out);
        printf(",\"scenes\":%lld}\n", (long long)scenes);
    } else {
        printf("%s: %s, %lld scenes\n", o.out, bj_rule_name(rule), (long long)scenes);
    }
    return CLI_OK;
}
