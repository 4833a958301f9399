/* cmd_evaluate.c - bjepa lock run, the only evaluation of a locked campaign, and bjepa lock verify.
 *
 * No option prints or writes anything about a single scene. `bjepa evaluate` is the old name of both.
 * Test: tests/cli/evaluate.sh
 */
#include <string.h>

#include "json_out.h"
#include "output.h"
#include "progress.h"
#include "seed_table.h"
#include "signals.h"

typedef struct evaluate_options {
    const char *verb, *dir, *key;
    int verify, partial, repeat, threads, json, quiet;
} evaluate_options;

/* Parses the options of `lock run`, `lock verify` or, if `old` is set, `evaluate`. */
static int parse(evaluate_options *o, int old, int argc, char **argv) {
    const cli_option options[] = {
        {"verify", 0, CLI_FLAG, NULL, &o->verify, 0, 0,
         "check every locked file and every result without evaluating"},
        {"repeat", 0, CLI_FLAG, NULL, &o->repeat, 0, 0,
         "evaluate again and compare every byte of the results without publishing"},
        {"partial", 0, CLI_FLAG, NULL, &o->partial, 0, 0,
         "check the files that exist and list what cannot be checked"},
        {"key", 0, CLI_TEXT, "FILE", &o->key, 0, 0,
         "public key (PEM) that must have signed " BJ_LOCKED_COMPLETION},
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = o->verb,
        .summary = o->verify ? "check all locked files and results against their SHA-256"
                             : "evaluate a locked campaign once on the held-out scenes",
        .operands = "CAMPAIGN_DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = o->verify ? "bjepa lock verify runs/demo-world\n"
                                "bjepa lock verify runs/demo-world --repeat\n"
                                "bjepa lock verify received/ --partial --key author.pub\n"
                              : "bjepa lock run runs/demo-world\n",
        .options = old ? options : o->verify ? options + 1 : options + 4,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    o->dir = argv[1];
    if (result == CLI_CONTINUE && o->partial && o->repeat)
        return cli_misuse(o->verb, "found --partial and --repeat, expected one of them");
    return result;
}

/* ------------------------------------------------------------------------------------- progress */

typedef struct watch {
    cli_progress progress;
    const char *phase; /* of the library; NULL before the first */
    int quiet;
} watch;

static void end_phase(watch *w, int complete) {
    if (!w->phase || w->quiet || w->progress.last <= w->progress.start) return;
    cli_progress_end(&w->progress, complete ? w->progress.total : 0, w->phase);
}

static int show(void *context, const char *phase, int64_t done, int64_t total) {
    watch *w = context;
    const int bytes = !strcmp(phase, "verify");
    if (!w->phase || strcmp(w->phase, phase)) {
        end_phase(w, 1);
        w->progress = cli_progress_begin(bytes ? "MiB" : "scenes", 0);
        w->phase = phase;
    }
    w->progress.total = bytes ? (long)(total >> 20) + 1 : (long)total;
    if (!w->quiet) cli_progress_show(&w->progress, (long)(bytes ? done >> 20 : done), phase);
    return cli_stop != 0;
}

/* -------------------------------------------------------------------------------------- results */

/* Prints the main metrics of every arm. */
static int print_table(const char *verb, const char *dir) {
    seed_view view = SEED_VIEW(verb);
    view.main_metrics = 1;
    int code = seed_view_open(&view, dir);
    if (code != CLI_CONTINUE) return code;
    code = seed_table_print(&view);
    seed_view_close(&view);
    if (code == CLI_OK) puts("\nmean " CLI_PLUS_MINUS " sample SD over n seeds");
    return code;
}

static void print_json(const evaluate_options *o, const bj_locked_report *report) {
    printf("{\"schema\": 1, \"type\": \"%s\", \"checkpoints\": %d, \"scenes\": %lld, "
           "\"evaluated\": %s, \"digest\": ",
           o->verify ? "verify" : "evaluate", report->checkpoints, (long long)report->scenes,
           *report->digest ? "true" : "false");
    cli_json_text(stdout, *report->digest ? report->digest : NULL);
    if (o->verify) {
        printf(", \"files\": %d, \"missing\": %d, \"same_program\": %s, \"repeated\": %s, "
               "\"signer\": ",
               report->files, report->missing, report->other_program ? "false" : "true",
               o->repeat ? "true" : "false");
        cli_json_text(stdout, *report->signer ? report->signer : NULL);
    }
    puts("}");
}

/* Prints what was checked and what was not. */
static void print_verified(const evaluate_options *o, const bj_locked_report *report) {
    char scenes[CLI_COUNT_SIZE];
    cli_count(scenes, (size_t)report->scenes);
    if (report->missing)
        printf("%s: the files that exist are consistent and unchanged since the lock: %d "
               "checkpoints, %s held-out scenes\n",
               o->dir, report->checkpoints, scenes);
    else
        printf("%s: all files are unchanged since the lock (%d checkpoints, %s held-out scenes)\n",
               o->dir, report->checkpoints, scenes);
    if (!*report->digest) {
        puts("not evaluated yet");
        return;
    }
    printf("%s %s/%s\n", report->digest, BJ_LOCKED_DIR, BJ_LOCKED_COMPLETION);
    if (o->repeat) puts("repeated: a second evaluation gives the same bytes");
    if (*report->signer) printf("signed with the key %s\n", report->signer);
    if (report->missing)
        printf("not checked: %d of %d locked files, which are missing; the first is %s\n",
               report->missing, report->files, report->first);
    if (report->other_program)
        printf("not checked: the evaluator, which was another program file of version %s\n",
               report->evaluator);
    if (!o->repeat && !*report->signer)
        printf("not checked: whether the checkpoints give these numbers, and who published them\n"
               "hint: --repeat evaluates again%s; only a signature shows who published\n",
               report->missing ? ", which needs all files" : "");
}

static int print_report(const evaluate_options *o, const bj_locked_report *report) {
    char scenes[CLI_COUNT_SIZE];
    if (o->json || o->verify) {
        if (o->json) print_json(o, report);
        else print_verified(o, report);
        return CLI_OK;
    }
    printf("%s: %d checkpoints, one pass over %s held-out scenes\n\n", o->dir, report->checkpoints,
           cli_count(scenes, (size_t)report->scenes));
    const int code = print_table(o->verb, o->dir);
    printf("\n%s %s/%s\n", report->digest, BJ_LOCKED_DIR, BJ_LOCKED_COMPLETION);
    return code;
}

static int run(const evaluate_options *o) {
    bj_error err = {0};
    watch w = {.quiet = o->quiet};
    const bj_locked_options options = {.evaluator = CLI_SELF,
                                       .threads = cli_threads(o->threads),
                                       .progress = show,
                                       .context = &w,
                                       .partial = o->partial,
                                       .repeat = o->repeat,
                                       .key = o->key};
    bj_locked_report report;
    cli_catch_signals();
    const bj_status status = o->verify ? bj_campaign_verify(&report, o->dir, &options, &err)
                                       : bj_campaign_evaluate(&report, o->dir, &options, &err);
    end_phase(&w, status == BJ_OK);
    if (status == BJ_OK) return print_report(o, &report);
    const int code = cli_fail(o->verb, &err);
    return cli_stop ? CLI_SIGNALED + (int)cli_stop : code;
}

int cmd_lock_run(int argc, char **argv) {
    evaluate_options o = {.verb = "lock run"};
    const int result = parse(&o, 0, argc, argv);
    return result == CLI_CONTINUE ? run(&o) : result;
}

int cmd_lock_verify(int argc, char **argv) {
    evaluate_options o = {.verb = "lock verify", .verify = 1};
    const int result = parse(&o, 0, argc, argv);
    return result == CLI_CONTINUE ? run(&o) : result;
}

int cmd_evaluate(int argc, char **argv) {
    evaluate_options o = {.verb = "evaluate"};
    const int result = parse(&o, 1, argc, argv);
    if (result != CLI_CONTINUE) return result;
    fprintf(stderr,
            "bjepa evaluate: notice: this verb is now 'bjepa lock %s'; "
            "'evaluate' will be removed in version 0.3\n",
            o.verify ? "verify" : "run");
    return run(&o);
}
