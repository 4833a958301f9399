/* cmd_submit.c - bjepa submit: predicts the scenes of a cache and writes a challenge submission. */
#include "checkpoint.h"
#include "progress.h"
#include "signals.h"
#include "score.h"

#include <string.h>

typedef struct submit_options {
    const char *out;
    int check, threads, precision, json;
} submit_options;

static int parse(submit_options *o, int argc, char **argv, int *operands) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "FILE.parquet", &o->out, 0, 0, "submission file to write"},
        {"check", 0, CLI_FLAG, NULL, &o->check, 0, 0,
         "check a submission instead of writing one; needs neither a model nor ground truth"},
        {"precision", 0, CLI_CHOICE, "full|bf16", &o->precision, 0, 0,
         "precision of matrix products; bf16 rounds weights and activations and is faster"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "submit",
        .summary = "predict every scene of a cache and write a challenge submission",
        .operands = "CHECKPOINT CACHE | --check SUBMISSION.parquet",
        .min_operands = 1,
        .max_operands = 2,
        .examples = "bjepa submit run/ckpt/best test.bjc --out submission.parquet\n"
                    "bjepa submit --check submission.parquet\n",
        .options = options,
    };
    return cli_parse(&usage, argc, argv, operands);
}

/* -------------------------------------------------------------------------------------- running */

static bj_status predict(int64_t *scenes, const submit_options *o, const char *checkpoint,
                         const char *cache_path, bj_error *err) {
    char path[CLI_PATH_SIZE];
    bj_model *model = NULL;
    bj_cache *cache = NULL;
    cli_watch w = {cli_progress_begin("scenes", 0), "", 0};
    const double start = w.progress.last;
    const bj_submit_options how = {.threads = o->threads,
                                   .precision =
                                       o->precision ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL,
                                   .progress = cli_watch_show,
                                   .context = &w};
    bj_status status = cli_checkpoint_path(path, checkpoint, err);
    if (status == BJ_OK) status = bj_model_load(&model, path, err);
    if (status == BJ_OK) status = bj_cache_open(&cache, cache_path, 1, err);
    if (status == BJ_OK) status = bj_submit(scenes, o->out, model, cache, &how, err);
    if (w.progress.last > start) cli_progress_end(&w.progress, (long)*scenes, "");
    bj_cache_free(cache);
    bj_model_free(model);
    return status;
}

int cmd_submit(int argc, char **argv) {
    submit_options o = {0};
    bj_error err = {0};
    int operands;
    int64_t scenes = 0;
    const int code = parse(&o, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (o.check) {
        if (operands != 1 || o.out) return cli_misuse("submit", "--check takes one file and no --out");
        const score_options check = {
            .file = argv[1], .max_modes = BJ_SUBMISSION_MODES, .list = 20, .json = o.json};
        return score_run("submit", &check);
    }
    if (operands != 2) return cli_misuse("submit", "found too few arguments, expected CHECKPOINT "
                                                   "and CACHE");
    if (!o.out) return cli_misuse("submit", "--out FILE.parquet is missing");
    cli_catch_signals();
    if (predict(&scenes, &o, argv[1], argv[2], &err) != BJ_OK) return cli_fail("submit", &err);
    if (!scenes && cli_stop) {
        fprintf(stderr, "bjepa submit: stopped; %s was not written\n", o.out);
        return CLI_SIGNALED + (int)cli_stop;
    }
    if (o.json) printf("{\"schema\":1,\"type\":\"submit\",\"scenes\":%lld}\n", (long long)scenes);
    else printf("%s: %lld scenes\n", o.out, (long long)scenes);
    return CLI_OK;
}
