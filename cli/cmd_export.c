/* cmd_export.c - bjepa export: writes the model of a run to one file.
 *
 * The file keeps the facts of the checkpoint. If the source is a run folder, the origin of the
 * weights is added: recipe, data and the number of training scenes. A run that started from another
 * model does not contain the number of scenes of that model, so the user can add it.
 * Test: tests/cli/export.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "builtin.h"
#include "checkpoint.h"
#include "cli.h"
#include "output.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static const char verb[] = "export";

typedef struct export_options {
    const char *checkpoint, *out, *name, *license;
    int bf16, scenes_before;
} export_options;

static int parse(export_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "FILE", &o->out, 0, 0, "model file to write"},
        {"bf16", 0, CLI_FLAG, NULL, &o->bf16, 0, 0,
         "store the parameters as bfloat16 (round to nearest even)"},
        {"name", 0, CLI_TEXT, "TEXT", &o->name, 0, 0, "model name to store in the file"},
        {"license", 0, CLI_TEXT, "TEXT", &o->license, 0, 0, "license to store in the file"},
        {"scenes-before", 0, CLI_INT, "N", &o->scenes_before, 0, INT_MAX,
         "number of scenes that the model of --init was trained on; added to the stored number"},
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "write the model of a run to one file, optionally with 16-bit parameters",
        .operands = "RUN|CHECKPOINT",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa export run --bf16 --out model.safetensors\n"
                    "bjepa export run --bf16 --name town-v1 "
                    "--license Apache-2.0 --out town-v1.safetensors\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (!o->out) return cli_misuse(verb, "--out FILE is missing");
    o->checkpoint = argv[1];
    return CLI_CONTINUE;
}

/* ---------------------------------------------------------------------------------------- facts */

enum { FACTS = 5, TEXT = 256 };

typedef struct export_facts {
    bj_fact list[FACTS];
    int count;
    char data[TEXT], scenes[TEXT];
} export_facts;

static void add(export_facts *f, const char *key, const char *value) {
    if (value) f->list[f->count++] = (bj_fact){key, value};
}

static int is_run(const char *checkpoint) {
    char path[CLI_PATH_SIZE];
    struct stat info;
    bj_error ignored;
    return !cli_is_builtin(checkpoint) &&
           cli_path(path, checkpoint, "manifest.json", &ignored) == BJ_OK && stat(path, &info) == 0;
}

/* Adds the origin of the weights of a finished run. Fresh scenes are identified by their source,
 * and a cache by its digest, because its path is meaningless elsewhere. */
static bj_status add_run(export_facts *f, const bj_run *run, const export_options *o,
                         bj_error *err) {
    const char *dir = o->checkpoint;
    const int best = bj_run_best(run);
    if (!bj_run_finished(run) || best < 0)
        return cli_error(err, BJ_ELOCKED,
                         "%s: the run is not finished\n"
                         "hint: finish it with 'bjepa train --out RUN --resume', "
                         "or export the best checkpoint so far from %s/ckpt/best",
                         dir, dir);
    const char *source = bj_run_fact(run, "data.source"), *digest = bj_run_fact(run, "data.digest");
    snprintf(f->data, sizeof f->data, "%s%s", source ? source : "cache ",
             source   ? ""
             : digest ? digest
                      : "unknown");
    const bj_epoch chosen = bj_run_epoch(run, best);
    snprintf(f->scenes, sizeof f->scenes, "%" PRId64, o->scenes_before + cli_scenes_seen(run, &chosen));
    add(f, "recipe", bj_run_settings(run)->recipe);
    add(f, "data", f->data);
    add(f, "scenes", f->scenes);
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- running */

static bj_status write_file(const export_options *o, bj_error *err) {
    char path[CLI_PATH_SIZE];
    export_facts facts = {.count = 0};
    bj_run *run = NULL;
    bj_status status = cli_checkpoint_path(path, o->checkpoint, err);
    if (status == BJ_OK) status = bj_file_writable(o->out, err);
    if (status == BJ_OK && is_run(o->checkpoint)) {
        status = bj_run_open(&run, o->checkpoint, err);
        if (status == BJ_OK) status = add_run(&facts, run, o, err);
    }
    add(&facts, "name", o->name);
    add(&facts, "license", o->license);
    if (status == BJ_OK)
        status = bj_model_export(path, o->out, o->bf16 ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL,
                                 facts.list, facts.count, err);
    bj_run_free(run);
    return status;
}

int cmd_export(int argc, char **argv) {
    export_options o = {.out = NULL};
    bj_error err;
    struct stat info;
    const int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    if (write_file(&o, &err) != BJ_OK) return cli_fail(verb, &err);
    char size[CLI_COUNT_SIZE];
    if (!stat(o.out, &info))
        fprintf(stderr, "bjepa %s: wrote %s, %s bytes\n", verb, o.out,
                cli_count(size, (size_t)info.st_size));
    return CLI_OK;
}
