/* cmd_simulate.c - bjepa simulate: writes simulated traffic with a known law, as official folders
 * or as a cache. */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "json_out.h"
#include "progress.h"
#include "signals.h"

static const char verb[] = "simulate";

typedef struct simulate_options {
    const char *out, *cache, *split;
    uint64_t seed;
    int world, scenes, jobs, restart, force, quiet, json;
} simulate_options;

static int parse(simulate_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "DIR", &o->out, 0, 0, "write official scenario folders"},
        {"cache", 0, CLI_TEXT, "FILE", &o->cache, 0, 0, "write a cache instead of folders"},
        {"scenes", 'n', CLI_INT, "N", &o->scenes, 1, 2147483647, "number of scenes"},
        CLI_OPTION_SEED(&o->seed),
        {"split", 0, CLI_TEXT, "NAME", &o->split, 0, 0,
         "name of the split: train, val, test or any other; splits have different cities"},
        {"world", 0, CLI_INT, "N", &o->world, 1, BJ_WORLD_VERSION,
         "version of the simulated world"},
        {"jobs", 'j', CLI_INT, "N", &o->jobs, 0, 1024,
         "worker threads; 0 means one per available core"},
        {"restart", 0, CLI_FLAG, NULL, &o->restart, 0, 0,
         "start over instead of resuming an interrupted run"},
        {"force", 0, CLI_FLAG, NULL, &o->force, 0, 0, "replace existing files"},
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "simulate traffic scenes with a known distribution of futures",
        .examples = "bjepa simulate --cache train.bjc --scenes 20000 --seed 1\n"
                    "bjepa simulate --cache val.bjc --scenes 2000 --seed 1 --split val\n"
                    "bjepa simulate --out world/train --scenes 100 --seed 1\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    if (!o->out == !o->cache)
        return cli_misuse(verb, "found %s, expected exactly one of --out DIR and --cache FILE",
                          o->out ? "--out and --cache" : "no output");
    return CLI_CONTINUE;
}

typedef struct watch {
    int quiet, started;
    cli_progress progress;
} watch;

static int on_progress(void *context, int64_t done, int64_t total) {
    watch *w = context;
    if (!w->started) {
        w->started = 1;
        w->progress = cli_progress_begin("scenes", (long)total);
    } else if (!w->quiet) {
        cli_progress_show(&w->progress, (long)done, "");
    }
    return cli_stop;
}

static void print_report(const simulate_options *o, const bj_world_report *r) {
    char a[CLI_COUNT_SIZE], b[CLI_COUNT_SIZE], c[CLI_COUNT_SIZE], d[CLI_COUNT_SIZE];
    const char *where = o->cache ? o->cache : o->out;
    const char *law = o->cache ? ".law.safetensors" : "/law.safetensors";
    if (!o->json) {
        printf("%s: scenes: %s, towns: %s, modes: %s\n", where, cli_count(a, (size_t)r->scenes),
               cli_count(b, (size_t)r->towns), cli_count(c, (size_t)r->modes));
        if (o->cache)
            printf("cache         %s bytes, digest %s\n", cli_count(d, (size_t)r->bytes),
                   r->digest);
        printf("distribution  %s%s, %s bytes\n", where, law, cli_count(d, (size_t)r->law_bytes));
        return;
    }
    printf("{\"schema\":1,\"type\":\"simulate\",\"%s\":", o->cache ? "cache" : "folder");
    cli_json_text(stdout, where);
    printf(",\"world\":%d,\"seed\":%llu,\"split\":", o->world ? o->world : BJ_WORLD_VERSION,
           (unsigned long long)o->seed);
    cli_json_text(stdout, o->split ? o->split : "train");
    printf(",\"complete\":%s,\"scenes\":%lld,\"resumed\":%lld,\"towns\":%lld,\"modes\":%lld,"
           "\"bytes\":%lld,\"law_bytes\":%lld,\"digest\":",
           r->interrupted ? "false" : "true", (long long)r->scenes, (long long)r->resumed,
           (long long)r->towns, (long long)r->modes, (long long)r->bytes, (long long)r->law_bytes);
    cli_json_text(stdout, r->digest[0] ? r->digest : NULL);
    printf("}\n");
}

int cmd_simulate(int argc, char **argv) {
    simulate_options o = {.scenes = 1000};
    const int result = parse(&o, argc, argv);
    if (result != CLI_CONTINUE) return result;
    watch w = {.quiet = o.quiet};
    const bj_world_options options = {.version = o.world,
                                      .seed = o.seed,
                                      .split = o.split,
                                      .scenes = o.scenes,
                                      .jobs = o.jobs,
                                      .restart = o.restart,
                                      .force = o.force,
                                      .progress = on_progress,
                                      .context = &w};
    bj_world_report report;
    bj_error err;
    cli_catch_signals();
    const bj_status status = o.cache ? bj_world_to_cache(&report, o.cache, &options, &err)
                                     : bj_world_to_folders(&report, o.out, &options, &err);
    if (w.started && !o.quiet) cli_progress_end(&w.progress, (long)report.scenes, "");
    if (status != BJ_OK) return cli_fail(verb, &err);
    if (!report.interrupted) {
        print_report(&o, &report);
        return CLI_OK;
    }
    fprintf(stderr, "bjepa %s: interrupted after %lld of %d scenes\n", verb,
            (long long)report.scenes, o.scenes);
    fputs(o.cache ? "hint: run the same command again to continue\n"
                  : "hint: running the same command again rewrites all folders, "
                    "because the file with the true distribution does not exist yet\n",
          stderr);
    if (o.json) print_report(&o, &report);
    return CLI_SIGNALED + cli_stop;
}
