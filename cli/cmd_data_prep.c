/* cmd_data_prep.c - bjepa data prep: converts Argoverse 2 folders to a cache of training scenes. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "data.h"
#include "json_out.h"
#include "progress.h"
#include "signals.h"

static const char verb[] = "data prep";

typedef struct prep_options {
    const char *av2, *out, *split;
    int jobs, limit, strict, restart, force, dry_run, quiet, json;
    char **roots; /* (root_count) */
    int root_count;
} prep_options;

/* ------------------------------------------------------------------------------------- arguments
 */

/* "--av2 A B C" and "--av2 A --av2 B" are equivalent, because operands that follow the option are
 * also folders. */
static int unfold_av2(int argc, char **argv) {
    int kept = 1;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--")) {
            while (i < argc) argv[kept++] = argv[i++];
            break;
        }
        if (!strcmp(argv[i], "--av2") && i + 1 < argc && argv[i + 1][0] != '-') continue;
        if (!strncmp(argv[i], "--av2=", 6)) argv[kept++] = argv[i] + 6;
        else argv[kept++] = argv[i];
    }
    return kept;
}

static int parse(prep_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"av2", 0, CLI_TEXT, "DIR...", &o->av2, 0, 0,
         "folders to read, at any level of the Argoverse 2 layout"},
        {"out", 'o', CLI_TEXT, "CACHE", &o->out, 0, 0, "cache to write"},
        {"split", 0, CLI_TEXT, "NAME", &o->split, 0, 0,
         "use only the scenarios in the train, val or test folder"},
        {"jobs", 'j', CLI_INT, "N", &o->jobs, 0, 1024,
         "worker threads; 0 means one per available core"},
        {"limit", 0, CLI_INT, "N", &o->limit, 0, 2147483647,
         "use only the first N scenarios; 0 means all"},
        {"strict", 0, CLI_FLAG, NULL, &o->strict, 0, 0, "stop at the first rejected scenario"},
        {"restart", 0, CLI_FLAG, NULL, &o->restart, 0, 0,
         "start over instead of resuming an interrupted run"},
        {"force", 0, CLI_FLAG, NULL, &o->force, 0, 0, "replace an existing cache"},
        {"dry-run", 0, CLI_FLAG, NULL, &o->dry_run, 0, 0,
         "count the scenarios without writing anything"},
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "create a cache of training scenes from Argoverse 2 folders",
        .operands = "[DIR...]",
        .max_operands = 1 << 20,
        .examples = "bjepa data prep --av2 /data/av2/train --out train.bjc\n"
                    "bjepa data prep --av2 /data/av2 --split val --out val.bjc --jobs 4\n"
                    "bjepa data prep --av2 /data/av2 --out all.bjc --dry-run\n",
        .options = options,
    };
    argc = unfold_av2(argc, argv);
    const int result = cli_parse(&usage, argc, argv, &o->root_count);
    if (result != CLI_CONTINUE) return result;
    o->roots = argv + 1;
    if (o->root_count == 0 && o->av2) { /* from the environment */
        o->roots = (char **)(void *)&o->av2;
        o->root_count = 1;
    }
    if (o->root_count == 0) return cli_misuse(verb, "found no folder, expected --av2 DIR");
    if (!o->out && !o->dry_run) return cli_misuse(verb, "--out CACHE is missing");
    static const char *const splits[] = {"train", "val", "test"};
    for (int i = 0; o->split && i < 4; i++) {
        if (i == 3)
            return cli_misuse(verb, "--split: found '%s', expected train, val or test", o->split);
        if (!strcmp(o->split, splits[i])) break;
    }
    return CLI_CONTINUE;
}

/* -------------------------------------------------------------------------------------- progress
 */

/* Formats a size, such as 3.5 MB or 7.1 GB. The result is stored in `text`. */
static const char *size_text(char text[32], int64_t bytes) {
    if (bytes < 1000000000) snprintf(text, 32, "%.1f MB", 1e-6 * (double)bytes);
    else snprintf(text, 32, "%.1f GB", 1e-9 * (double)bytes);
    return text;
}

typedef struct watch {
    int quiet, started;
    int64_t resumed;
    cli_progress progress;
} watch;

static const char *note(char text[64], int64_t rejected) {
    char count[CLI_COUNT_SIZE];
    snprintf(text, 64, "%s rejected", cli_count(count, (size_t)rejected));
    return text;
}

static int on_progress(void *context, int64_t done, int64_t total, int64_t rejected) {
    watch *w = context;
    char text[64], count[CLI_COUNT_SIZE], before[CLI_COUNT_SIZE];
    if (!w->started) {
        w->started = 1;
        w->resumed = done;
        if (!w->quiet) {
            fprintf(stderr, "%s scenarios, at most %s without polygons",
                    cli_count(count, (size_t)total), size_text(text, bj_cache_most_bytes(total)));
            if (done) fprintf(stderr, "; %s already done", cli_count(before, (size_t)done));
            fputc('\n', stderr);
        }
        w->progress = cli_progress_begin("scenes", (long)(total - done));
    } else if (!w->quiet) {
        cli_progress_show(&w->progress, (long)(done - w->resumed), note(text, rejected));
    }
    return cli_stop;
}

/* --------------------------------------------------------------------------------------- results
 */

static void print_report(const prep_options *o, const bj_prep_report *r) {
    char a[CLI_COUNT_SIZE], b[CLI_COUNT_SIZE], c[CLI_COUNT_SIZE], d[CLI_COUNT_SIZE], size[32];
    if (!o->json) {
        if (o->dry_run)
            printf("found %s scenarios; the cache would take at most %s, excluding polygons\n",
                   cli_count(a, (size_t)r->found), size_text(size, r->bytes));
        else
            printf("%s: %s scenes (%s of them without a future), %s maps, %s bytes\n"
                   "digest %s\n",
                   o->out, cli_count(a, (size_t)r->accepted),
                   cli_count(b, (size_t)r->without_future), cli_count(c, (size_t)r->maps),
                   cli_count(d, (size_t)r->bytes), r->digest);
        return;
    }
    printf("{\"schema\":1,\"type\":\"data_prep\",\"cache\":");
    cli_json_text(stdout, o->out);
    printf(",\"dry_run\":%s,\"complete\":%s,\"found\":%lld,\"resumed\":%lld,\"accepted\":%lld,"
           "\"rejected\":%lld,\"without_future\":%lld,\"maps\":%lld,\"bytes\":%lld,\"digest\":",
           o->dry_run ? "true" : "false", r->digest[0] ? "true" : "false", (long long)r->found,
           (long long)r->resumed, (long long)r->accepted, (long long)r->rejected,
           (long long)r->without_future, (long long)r->maps, (long long)r->bytes);
    cli_json_text(stdout, r->digest[0] ? r->digest : NULL);
    printf("}\n");
}

static int interrupted(const prep_options *o, const bj_prep_report *r) {
    char done[CLI_COUNT_SIZE], found[CLI_COUNT_SIZE];
    fprintf(stderr,
            "bjepa %s: interrupted after %s of %s scenarios\n"
            "hint: run the same command again to continue; "
            "%s.partial contains the finished scenarios\n",
            verb, cli_count(done, (size_t)(r->accepted + r->rejected)),
            cli_count(found, (size_t)r->found), o->out);
    if (o->json) print_report(o, r);
    return CLI_SIGNALED + cli_stop;
}

static int run(const prep_options *o) {
    watch w = {.quiet = o->quiet};
    const bj_prep_options options = {
        .roots = (const char *const *)(void *)o->roots,
        .root_count = o->root_count,
        .split = o->split,
        .jobs = o->jobs,
        .strict = o->strict,
        .restart = o->restart,
        .force = o->force,
        .dry_run = o->dry_run,
        .limit = o->limit,
        .progress = on_progress,
        .context = &w,
    };
    bj_prep_report report;
    bj_error err;
    char text[64], rejected[CLI_COUNT_SIZE];
    cli_catch_signals();
    const bj_status status = bj_prep(&report, o->out ? o->out : "", &options, &err);
    if (w.started && !o->quiet)
        cli_progress_end(&w.progress, (long)(report.accepted + report.rejected - w.resumed),
                         note(text, report.rejected));
    if (status != BJ_OK) {
        const int code = cli_fail(verb, &err);
        if (w.started && report.accepted > 0)
            fprintf(stderr, "hint: run the same command again to continue after %s scenarios\n",
                    cli_count(rejected, (size_t)(report.accepted + report.rejected)));
        return code;
    }
    if (report.interrupted) return interrupted(o, &report);
    print_report(o, &report);
    if (report.rejected == 0) return CLI_OK;
    fprintf(stderr, "bjepa %s: %s scenarios were rejected; %s.rejects.jsonl lists the reasons\n",
            verb, cli_count(rejected, (size_t)report.rejected), o->out);
    return CLI_DATA;
}

int cmd_data_prep(int argc, char **argv) {
    prep_options o = {0};
    const int result = parse(&o, argc, argv);
    return result == CLI_CONTINUE ? run(&o) : result;
}
