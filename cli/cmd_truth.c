/* cmd_truth.c - bjepa truth: compares checkpoints, submission files and baselines with the true
 * distribution ("law") of a simulated world. */
#include "checkpoint.h"
#include "progress.h"
#include "signals.h"
#include "truth.h"

#include <math.h>
#include <stdlib.h>

const truth_options truth_defaults = {.verb = "truth",
                                      .max_modes = BJ_SUBMISSION_MODES,
                                      .atoms = 6,
                                      .samples = 64,
                                      .best = 64,
                                      .inputs = 2000};

static int parse(truth_options *o, int argc, char **argv) {
    const char *const verb = o->verb;
    const cli_option options[] = {
        {"submission", 0, CLI_FLAG, NULL, &o->submission, 0, 0,
         "score submission files instead of checkpoints"},
        {"data", 0, CLI_TEXT, "DIR_OR_CACHE", &o->data, 0, 0,
         "scenes of the submissions, to check the focal track and compute the realized score"},
        {"max-modes", 0, CLI_INT, "N", &o->max_modes, 1, BJ_MAX_ATOMS,
         "max number of modes per track in a submission"},
        {"baseline", 0, CLI_FLAG, NULL, &o->baseline, 0, 0,
         "also score a constant-velocity forecast and the true modes; CHECKPOINT may be omitted"},
        {"atoms", 'k', CLI_INT, "K", &o->atoms, 1, BJ_MAX_ATOMS,
         "number of true modes in the baseline"},
        {"limit", 0, CLI_INT, "N", &o->limit, 0, 2147483647,
         "use only the first N scenes; 0 means all"},
        {"samples", 0, CLI_INT, "M", &o->samples, 16, 4096, "draws per mode, a multiple of 4"},
        {"best-scenes", 0, CLI_INT, "N", &o->best, 0, 1000000,
         "number of scenes for which the best K atoms are computed"},
        {"input-scenes", 0, CLI_INT, "N", &o->inputs, 0, 1000000,
         "number of scenes used to estimate the lower bound that the inputs impose on any model"},
        CLI_OPTION_SEED(&o->seed),
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "compare forecasts with the true distribution of a simulated world",
        .operands = "CAMPAIGN|CHECKPOINT... CACHE LAW | --submission FILE.parquet... LAW",
        .min_operands = 2,
        .max_operands = 1024,
        .examples = "bjepa truth run/ckpt/best val.bjc val.bjc.law.safetensors\n"
                    "bjepa truth demo-world val.bjc val.bjc.law.safetensors --baseline\n"
                    "bjepa truth --baseline fullset point val.bjc val.bjc.law.safetensors --json\n"
                    "bjepa truth --baseline val.bjc val.bjc.law.safetensors --limit 500\n"
                    "bjepa truth --submission entry.parquet --data world/val "
                    "world/val/law.safetensors\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (o->samples % 4)
        return cli_misuse(verb, "--samples: found %d, expected a multiple of 4", o->samples);
    o->operands = (const char *const *)argv + 1;
    o->law = argv[operands];
    if (o->submission) {
        o->operand_count = operands - 1;
        if (o->baseline && !o->data)
            return cli_misuse(verb, "--baseline with --submission needs --data DIR_OR_CACHE");
        return CLI_CONTINUE;
    }
    if (o->data) return cli_misuse(verb, "--data needs --submission; checkpoints take CACHE as an "
                                         "argument");
    if (operands == 2 && !o->baseline)
        return cli_misuse(verb, "found two arguments, expected CHECKPOINT... CACHE LAW; only "
                                "--baseline needs no checkpoint");
    o->operand_count = operands - 2;
    o->cache = argv[operands - 1];
    return CLI_CONTINUE;
}

/* ------------------------------------------------------------------------------------- running */

static bj_status take_checkpoint(truth_arm *arm, bj_exam *exam, const cli_checkpoint *checkpoint,
                                 bj_error *err) {
    char path[CLI_PATH_SIZE];
    bj_model *model = NULL;
    arm->name = checkpoint->path;
    arm->run = *checkpoint->arm ? checkpoint : NULL;
    bj_status status = cli_checkpoint_path(path, checkpoint->path, err);
    if (status == BJ_OK) status = bj_model_load(&model, path, err);
    if (status == BJ_OK) status = bj_exam_model(&arm->report, exam, model, err);
    bj_model_free(model);
    return status;
}

/* Computes the lower bound for the inputs, if the law file contains the origin of its scenes. */
static bj_status take_inputs(truth_result *t, cli_watch *w, bj_exam *exam, const bj_law *law,
                             const truth_options *o, bj_error *err) {
    const char *world = bj_law_fact(law, "world");
    t->world = world ? atoi(world) : 1;
    if (!bj_law_fact(law, "seed") || !bj_law_fact(law, "split")) return BJ_OK;
    w->progress = cli_progress_begin("scenes", 0);
    w->note = "inputs alone";
    return bj_exam_blind(&t->inputs, exam, o->inputs, err);
}

static bj_status take_submission(truth_arm *arm, bj_exam *exam, const truth_options *o, int number,
                                 bj_error *err) {
    bj_submission *submission = NULL;
    arm->name = o->names ? o->names[number] : o->operands[number];
    bj_status status = bj_submission_open(&submission, o->operands[number], err);
    if (status == BJ_OK)
        status = bj_exam_submission(&arm->report, exam, submission, o->max_modes, err);
    bj_submission_free(submission);
    return status;
}

static bj_status take_all(truth_result *t, cli_watch *w, bj_exam *exam, const cli_checkpoints *list,
                          const truth_options *o, bj_error *err) {
    const int entries = o->submission ? o->operand_count : list->count;
    const int count = entries + (o->baseline ? BJ_BASELINES : 0);
    t->arm = calloc((size_t)count, sizeof *t->arm);
    if (!t->arm) return cli_error(err, BJ_ENOMEM, "out of memory for the results");
    for (int i = 0; i < count; i++) {
        const int number = i - entries; /* of the baseline */
        truth_arm *arm = &t->arm[i];
        bj_status status;
        w->progress = cli_progress_begin("scenes", 0);
        if (number < 0 && o->submission) {
            w->note = o->operands[i];
            status = take_submission(arm, exam, o, i, err);
        } else if (number < 0) {
            w->note = list->item[i].path;
            status = take_checkpoint(arm, exam, &list->item[i], err);
        } else {
            w->note = arm->name = bj_baseline_name((bj_baseline)number);
            status = bj_exam_baseline(&arm->report, exam, (bj_baseline)number, o->atoms, err);
        }
        if (!o->quiet && w->progress.last > w->progress.start)
            cli_progress_end(&w->progress, status == BJ_OK ? w->progress.total : 0, w->note);
        if (status != BJ_OK) return status;
        t->arms++;
    }
    return BJ_OK;
}

static bj_status run(truth_result *t, const cli_checkpoints *list, const truth_options *o,
                     bj_error *err) {
    bj_cache *cache = NULL;
    bj_truth *truth = NULL;
    bj_law *law = NULL;
    bj_exam *exam = NULL;
    cli_watch w = {.quiet = o->quiet};
    const bj_truth_options reading = {.threads = o->threads};
    const bj_exam_options options = {.samples = o->samples,
                                     .seed = o->seed,
                                     .limit = o->limit,
                                     .best_scenes = o->best,
                                     .threads = o->threads,
                                     .progress = cli_watch_show,
                                     .context = &w};
    bj_status status = BJ_OK;
    if (o->cache) status = bj_cache_open(&cache, o->cache, 0, err);
    if (o->data) status = bj_truth_open(&truth, o->data, &reading, err);
    if (status == BJ_OK) status = bj_law_open(&law, o->law, err);
    if (status == BJ_OK)
        status = cache ? bj_exam_create(&exam, cache, law, &options, err)
                       : bj_exam_create_submissions(&exam, truth, law, &options, err);
    if (status == BJ_OK) {
        *t = (truth_result){.cache = o->cache,
                            .data = o->data,
                            .law = o->law,
                            .scenes = bj_exam_scenes(exam),
                            .law_scenes = bj_law_count(law),
                            .samples = bj_exam_samples(exam),
                            .detailed = o->detailed,
                            .seed = o->seed};
        if (o->inputs) status = take_inputs(t, &w, exam, law, o, err);
        if (status == BJ_OK) status = take_all(t, &w, exam, list, o, err);
    }
    bj_exam_free(exam);
    bj_law_free(law);
    bj_truth_free(truth);
    bj_cache_free(cache);
    return status;
}

/* Prints warnings if the numbers indicate a problem with this program or its input. Returns the
 * exit code. */
static int judge(const char *verb, const truth_result *t) {
    int code = CLI_OK;
    for (int i = 0; i < t->arms; i++) {
        const bj_exam_report *r = &t->arm[i].report;
        if (!r->identity) {
            fprintf(stderr,
                    "bjepa %s: %s: the expected Energy Score differs "
                    "from half the discrepancy plus the floor "
                    "by %.6f m or %.1f standard errors, expected at most %.1f\n",
                    verb, t->arm[i].name, r->difference.mean,
                    fabs(r->difference.mean) / r->difference.error, r->tolerated);
            code = CLI_REFUSED;
        }
        if (fabs(r->surprise) > 5)
            fprintf(
                stderr,
                "bjepa %s: %s: the realized score is %.1f standard errors from the expected score\n"
                "hint: the futures in this cache were probably not drawn from this distribution\n",
                verb, t->arm[i].name, r->surprise);
    }
    return code;
}

int truth_run(const truth_options *o) {
    truth_result t = {0};
    cli_checkpoints list = {NULL, 0};
    bj_error err = {0};
    bj_status status = BJ_OK;
    int code;
    cli_catch_signals();
    for (int i = 0; status == BJ_OK && !o->submission && i < o->operand_count; i++)
        status = cli_checkpoints_add(&list, o->verb, o->operands[i], &err);
    if (status == BJ_OK) status = run(&t, &list, o, &err);
    if (status != BJ_OK) {
        code = cli_fail(o->verb, &err);
        if (cli_stop) code = CLI_SIGNALED + (int)cli_stop;
    } else {
        if (o->json) truth_print_json(&t);
        else truth_print_text(&t);
        code = judge(o->verb, &t);
    }
    free(t.arm);
    cli_checkpoints_free(&list);
    return code;
}

int cmd_truth(int argc, char **argv) {
    truth_options o = truth_defaults;
    const int result = parse(&o, argc, argv);
    return result == CLI_CONTINUE ? truth_run(&o) : result;
}
