/* cmd_benchmark.c - bjepa benchmark: makes the standard benchmark and scores entries.
 *
 * DIR/SPLIT/                   official scenario folders and law.safetensors
 * DIR/SPLIT.bjc                with --cache: a cache and SPLIT.bjc.law.safetensors instead
 * DIR/SPLIT-BASELINE.parquet   submissions of the baselines
 *
 * Test: tests/cli/benchmark.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat, mkdir */
#include "cli.h"
#include "output.h"
#include "step.h"
#include "truth.h"
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const splits[] = {"val", "test"};
enum { SPLITS = 2 };

/* Returns the path of a file of the benchmark. `tail` may be empty. */
static bj_status set_path(char path[CLI_PATH_SIZE], const char *dir, const char *split,
                          const char *tail, bj_error *err) {
    if (snprintf(path, CLI_PATH_SIZE, "%s/%s%s", dir, split, tail) < CLI_PATH_SIZE) return BJ_OK;
    return cli_error(err, BJ_EARG, "%.64s...: the path is too long", dir);
}

static int exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

/* ---------------------------------------------------------------------------------------- make */

typedef struct make_options {
    const char *dir, *split;
    int cache;
} make_options;

static bj_status make_split(int *code, const make_options *o, const char *split, bj_error *err) {
    char data[CLI_PATH_SIZE], law[CLI_PATH_SIZE], out[CLI_PATH_SIZE], seed[16], scenes[16],
        world[8];
    const char *const tail = o->cache ? ".bjc" : "";
    snprintf(seed, sizeof seed, "%u", BJ_BENCHMARK_SEED);
    snprintf(scenes, sizeof scenes, "%d", BJ_BENCHMARK_SCENES);
    snprintf(world, sizeof world, "%d", BJ_BENCHMARK_WORLD);
    bj_status status = set_path(data, o->dir, split, tail, err);
    if (status == BJ_OK)
        status = set_path(law, o->dir, split,
                          o->cache ? ".bjc.law.safetensors" : "/law.safetensors", err);
    const char *const simulate[] = {"simulate", o->cache ? "--cache" : "--out",
                                    data,       "--world",
                                    world,      "--seed",
                                    seed,       "--split",
                                    split,      "--scenes",
                                    scenes,     NULL};
    if (status == BJ_OK && !(exists(law) && exists(data)))
        status = cli_step(code, simulate, NULL, err);
    for (int r = 0; status == BJ_OK && !*code && r < BJ_RULES; r++) {
        char name[64];
        if (r == BJ_RULE_LANES && o->cache) continue; /* a cache does not contain the lane graph */
        snprintf(name, sizeof name, "-%s.parquet", bj_rule_name((bj_rule)r));
        status = set_path(out, o->dir, split, name, err);
        const char *const baseline[] = {
            "baseline", bj_rule_name((bj_rule)r), "--data", data, "--out", out, NULL};
        if (status == BJ_OK && !exists(out)) status = cli_step(code, baseline, NULL, err);
    }
    return status;
}

static int cmd_make(int argc, char **argv) {
    make_options o = {0};
    bj_error err = {0};
    int operands, code = CLI_OK, chosen = 0;
    const cli_option options[] = {
        {"split", 0, CLI_TEXT, "val|test", &o.split, 0, 0, "write only this split"},
        {"cache", 0, CLI_FLAG, NULL, &o.cache, 0, 0,
         "write caches instead of official folders; the lane-following baseline is left out"},
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "benchmark make",
        .summary = "write the standard benchmark scenes and the baseline submissions",
        .operands = "DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa benchmark make bench\n"
                    "bjepa benchmark make bench --split val --cache\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    o.dir = argv[1];
    bj_status status = BJ_OK;
    if (mkdir(o.dir, 0777) && errno != EEXIST)
        status =
            cli_error(&err, BJ_EIO, "%s: cannot create the folder: %s", o.dir, strerror(errno));
    for (int i = 0; status == BJ_OK && !code && i < SPLITS; i++) {
        if (o.split && strcmp(o.split, splits[i])) continue;
        chosen++;
        status = make_split(&code, &o, splits[i], &err);
    }
    if (status != BJ_OK) return cli_fail(usage.verb, &err);
    if (!chosen) return cli_misuse(usage.verb, "--split is '%s', expected val or test", o.split);
    return code;
}

/* --------------------------------------------------------------------------------------- score */

enum { ENTRIES = 64 };

/* The inputs of the measurement: first the entries, then the baselines that `make` wrote. Constant
 * velocity and the true modes are added by `bjepa truth --baseline`. */
typedef struct entries {
    char path[BJ_RULES][CLI_PATH_SIZE];
    const char *file[ENTRIES + BJ_RULES], *name[ENTRIES + BJ_RULES];
    int count;
} entries;

static bj_status add_baselines(entries *e, const char *dir, const char *split, bj_error *err) {
    bj_status status = BJ_OK;
    for (int r = 0; status == BJ_OK && r < BJ_RULES; r++) {
        char tail[64];
        if (r == BJ_RULE_VELOCITY) continue;
        snprintf(tail, sizeof tail, "-%s.parquet", bj_rule_name((bj_rule)r));
        status = set_path(e->path[r], dir, split, tail, err);
        if (status != BJ_OK || !exists(e->path[r])) continue;
        e->file[e->count] = e->path[r];
        e->name[e->count++] = bj_rule_name((bj_rule)r);
    }
    return status;
}

/* Finds the data of a split, folders before caches, and checks its law file. */
static bj_status find_data(char data[CLI_PATH_SIZE], char law[CLI_PATH_SIZE], const char *dir,
                           const char *split, bj_error *err) {
    static const char *const tails[2][2] = {{"", "/law.safetensors"},
                                            {".bjc", ".bjc.law.safetensors"}};
    bj_status status = BJ_OK;
    for (int i = 0; i < 2 && status == BJ_OK; i++) {
        status = set_path(data, dir, split, tails[i][0], err);
        if (status == BJ_OK) status = set_path(law, dir, split, tails[i][1], err);
        if (status != BJ_OK || !exists(law)) continue;
        bj_law *opened = NULL;
        status = bj_law_open(&opened, law, err);
        if (status == BJ_OK) status = bj_benchmark_check(opened, split, err);
        bj_law_free(opened);
        return status;
    }
    if (status != BJ_OK) return status;
    return cli_error(err, BJ_EIO,
                     "%s: found neither %s/law.safetensors nor %s.bjc.law.safetensors\n"
                     "hint: 'bjepa benchmark make %s' writes the benchmark",
                     dir, split, split, dir);
}

static int cmd_score_entry(int argc, char **argv) {
    static entries e;
    char data[CLI_PATH_SIZE], law[CLI_PATH_SIZE];
    const char *dir = NULL;
    bj_error err = {0};
    int operands, split = 0;
    truth_options o = truth_defaults;
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "DIR", &dir, 0, 0, "folder that 'bjepa benchmark make' wrote"},
        {"split", 0, CLI_CHOICE, "val|test", &split, 0, 0, "split to score"},
        CLI_OPTION_JSON(&o.json),
        CLI_OPTION_QUIET(&o.quiet),
        CLI_OPTION_THREADS(&o.threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "benchmark score",
        .summary = "score submissions against the true distribution of the standard benchmark",
        .operands = "FILE.parquet...",
        .min_operands = 1,
        .max_operands = ENTRIES,
        .examples = "bjepa benchmark score entry.parquet --data bench\n"
                    "bjepa benchmark score entry.parquet --data bench --split test --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (!dir) return cli_misuse(usage.verb, "--data DIR is missing");
    bj_status status = find_data(data, law, dir, splits[split], &err);
    for (e.count = 0; e.count < operands; e.count++)
        e.file[e.count] = e.name[e.count] = argv[1 + e.count];
    if (status == BJ_OK) status = add_baselines(&e, dir, splits[split], &err);
    if (status != BJ_OK) return cli_fail(usage.verb, &err);
    o.verb = usage.verb;
    o.submission = o.baseline = 1;
    o.detailed = operands;
    o.operands = e.file;
    o.names = e.name;
    o.operand_count = e.count;
    o.data = data;
    o.law = law;
    return truth_run(&o);
}

int cmd_benchmark(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"make", "write the standard benchmark scenes and the baseline submissions", cmd_make},
        {"score", "score submissions against the true distribution of the standard benchmark",
         cmd_score_entry},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "benchmark",
        .summary = "create the standard benchmark of simulated scenes and score submissions",
        .examples = "bjepa benchmark make bench\n"
                    "bjepa benchmark score entry.parquet --data bench --split test\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
