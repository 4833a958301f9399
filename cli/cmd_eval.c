/* cmd_eval.c - bjepa eval: computes every metric of a checkpoint on a cache, over all scenes and by
 * group.
 *
 * Weights come from a model file, a checkpoint folder or a run folder. A folder also contains the
 * training state with the target encoder, which latent metrics need.
 * Test: tests/cli/eval.sh, tests/eval/peer_eval.py
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "builtin.h"
#include "checkpoint.h"
#include "eval.h"
#include "progress.h"
#include "signals.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { BATCH = 256, LATENCY_SCENES = 200, WARM_UP = 5 };
static const char verb[] = "eval", parts[] = "all|fit|dev", precisions[] = "full|bf16";

typedef struct eval_options {
    const char *checkpoint, *data;
    int part, limit, exchange, threads, precision, no_groups, quiet, json;
} eval_options;

static int parse(eval_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "CACHE", &o->data, 0, 0, "cache of scenes"},
        {"part", 0, CLI_CHOICE, parts, &o->part, 0, 0,
         "which scenes of the cache to use: all, fit scenes or development scenes"},
        {"limit", 0, CLI_INT, "N", &o->limit, 0, 2147483647,
         "use only the first N scenes; 0 means all"},
        {"groups", 0, CLI_CHOICE, "on|off", &o->no_groups, 0, 0,
         "also print the metrics by maneuver, road user type, city and speed"},
        {"exchange", 0, CLI_INT, "N", &o->exchange, 0, 1000000,
         "exchange the map, neighbors or focal track between the first N scenes; "
         "0 skips this test"},
        {"precision", 0, CLI_CHOICE, precisions, &o->precision, 0, 0,
         "precision of matrix products"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary =
            "print all metrics of a checkpoint on a cache, overall and per group, and the speed",
        .operands = "CHECKPOINT",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa eval run --data val.bjc\n"
                    "bjepa eval run/ckpt/last --data train.bjc --part dev --json\n"
                    "bjepa eval model.safetensors --data val.bjc --limit 500 --groups off\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (!o->data) return cli_misuse(verb, "--data CACHE is missing");
    o->checkpoint = argv[1];
    return CLI_CONTINUE;
}

/* ------------------------------------------------------------------------------------- opening */

typedef struct job {
    const eval_options *o;
    bj_facts *facts;
    bj_model *model;
    bj_target *target;
    bj_cache *cache;
    bj_loader *loader;
    bj_evaluator *evaluator;
    bj_scene_info *infos; /* (BATCH) */
    bj_part which;
    eval_result result;
} job;

static void job_free(job *j) {
    free(j->infos);
    bj_evaluator_free(j->evaluator);
    bj_loader_free(j->loader);
    bj_cache_free(j->cache);
    bj_target_free(j->target);
    bj_model_free(j->model);
    bj_facts_free(j->facts);
}

/* Loads the target encoder next to the model, if a folder was named and contains one. */
static bj_status open_target(job *j, bj_error *err) {
    char folder[CLI_PATH_SIZE], state[CLI_PATH_SIZE];
    struct stat info;
    /* Stage A trains the encoder of futures itself. */
    if (j->result.arm && !strcmp(j->result.arm, "anchor-a")) {
        fprintf(stderr,
                "bjepa %s: note: this checkpoint is from stage A of the anchor; "
                "its branches are not trained\n",
                verb);
        return bj_target_from_model(&j->target, j->model, err);
    }
    const size_t length = strlen(j->result.model) - strlen(BJ_CHECKPOINT_MODEL) - 1;
    const int is_folder = !cli_is_builtin(j->o->checkpoint) &&
                          stat(j->o->checkpoint, &info) == 0 && S_ISDIR(info.st_mode);
    if (is_folder) {
        memcpy(folder, j->result.model, length);
        folder[length] = '\0';
        const bj_status status = cli_path(state, folder, BJ_CHECKPOINT_STATE, err);
        if (status != BJ_OK) return status;
        if (stat(state, &info) == 0) return bj_target_load(&j->target, folder, err);
    }
    fprintf(stderr,
            "bjepa %s: note: latent metrics are not available, "
            "because a model file does not contain the target encoder\n"
            "hint: name the checkpoint folder, which contains %s\n",
            verb, BJ_CHECKPOINT_STATE);
    return BJ_OK;
}

static bj_status open_model(job *j, bj_error *err) {
    eval_result *r = &j->result;
    bj_status status = cli_checkpoint_path(r->model, j->o->checkpoint, err);
    if (status == BJ_OK) status = bj_facts_read(&j->facts, r->model, err);
    if (status == BJ_OK) status = bj_model_load(&j->model, r->model, err);
    if (status != BJ_OK) return status;
    r->digest = bj_facts_get(j->facts, "sha256");
    r->arm = bj_facts_get(j->facts, "run.arm");
    r->seed = bj_facts_get(j->facts, "run.seed");
    r->arch = *bj_model_arch(j->model);
    status = open_target(j, err);
    r->has_target = j->target != NULL;
    return status;
}

static bj_status open_data(job *j, bj_error *err) {
    static const char *const names[] = {"all", "fit", "dev"};
    static const bj_part which[] = {BJ_PART_ALL, BJ_PART_FIT, BJ_PART_DEV};
    eval_result *r = &j->result;
    j->which = which[j->o->part];
    bj_loader_options order = {.part = j->which, .batch = BATCH};
    bj_status status = bj_cache_open(&j->cache, j->o->data, 0, err);
    if (status != BJ_OK) return status;
    const bj_arch scenes = bj_cache_arch(j->cache);
    status = bj_arch_fits(&r->arch, &scenes, err);
    if (status == BJ_OK) status = bj_loader_create(&j->loader, j->cache, &order, err);
    if (status != BJ_OK) return status;
    const int64_t all = bj_loader_scenes(j->loader);
    bj_loader_free(j->loader);
    order.needs_future = 1;
    status = bj_loader_create(&j->loader, j->cache, &order, err);
    if (status != BJ_OK) return status;
    const int64_t known = bj_loader_scenes(j->loader), limit = j->o->limit;
    r->scenes = limit && limit < known ? limit : known;
    r->over_limit = known - r->scenes;
    r->no_future = all - known;
    r->data = j->o->data;
    r->data_digest = bj_cache_digest(j->cache);
    r->part = names[j->o->part];
    return BJ_OK;
}

static bj_status open_all(job *j, bj_error *err) {
    const eval_options *o = j->o;
    const bj_evaluator_options options = {.max_batch = BATCH,
                                          .threads = o->threads,
                                          .precision =
                                              o->precision ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL,
                                          .grouped = !o->no_groups};
    bj_status status = open_model(j, err);
    if (status == BJ_OK) status = open_data(j, err);
    if (status == BJ_OK)
        status = bj_evaluator_create(&j->evaluator, j->model, j->target, &options, err);
    if (status != BJ_OK) return status;
    j->infos = calloc(BATCH, sizeof *j->infos);
    if (!j->infos) return cli_error(err, BJ_ENOMEM, "out of memory");
    j->result.evaluator = j->evaluator;
    j->result.threads = cli_threads(o->threads);
    j->result.precision = o->precision ? "bf16" : "full";
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- running */

static bj_status evaluate(job *j, bj_error *err) {
    const int64_t total = j->result.scenes;
    cli_progress progress = cli_progress_begin("scenes", (long)total);
    const double shown = progress.last, start = cli_seconds();
    int64_t done = 0;
    for (int64_t step = 0; done < total && !cli_stop; step++) {
        const bj_batch *batch;
        const int64_t *numbers;
        bj_status status = bj_loader_batch(&batch, &numbers, j->loader, 0, step, err);
        if (status != BJ_OK) return status;
        bj_batch part = *batch;
        if (part.B > total - done) part.B = (int)(total - done);
        for (int b = 0; b < part.B; b++) j->infos[b] = bj_cache_info(j->cache, numbers[b]);
        status = bj_evaluator_add(j->evaluator, &part, j->infos, err);
        if (status != BJ_OK) return status;
        done += part.B;
        if (!j->o->quiet) cli_progress_show(&progress, (long)done, "");
    }
    j->result.seconds = cli_seconds() - start;
    if (progress.last > shown) cli_progress_end(&progress, (long)done, "");
    return cli_stop ? BJ_OK : bj_evaluator_health(&j->result.health, j->evaluator, err);
}

/* Measures which inputs the model uses, on the first scenes of the evaluation. */
static bj_status exchange(job *j, bj_error *err) {
    const eval_options *o = j->o;
    const int64_t known = j->result.scenes;
    const int count = o->exchange < known ? o->exchange : (int)known;
    if (!count) return BJ_OK;
    cli_watch watch = {cli_progress_begin("forecasts", count), "exchange", o->quiet};
    const double plain = bj_evaluator_values(j->evaluator).traj_es;
    const bj_exchange_options options = {.max_batch = BATCH,
                                         .threads = o->threads,
                                         .precision =
                                             o->precision ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL,
                                         .plain = count == known ? &plain : NULL,
                                         .progress = cli_watch_show,
                                         .context = &watch};
    const bj_loader_options order = {.part = j->which, .batch = count, .needs_future = 1};
    const bj_batch *batch;
    bj_loader *loader = NULL;
    bj_status status = bj_loader_create(&loader, j->cache, &order, err);
    if (status == BJ_OK) status = bj_loader_batch(&batch, NULL, loader, 0, 0, err);
    if (status == BJ_OK)
        status = bj_exchange_measure(&j->result.exchange, j->model, batch->scenes, batch->B,
                                     &options, err);
    bj_loader_free(loader);
    cli_progress_clear(&watch.progress);
    return status;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Measures the median latency of predicting a single scene. */
static bj_status measure_latency(job *j, bj_error *err) {
    const bj_predictor_options how = {.max_batch = 1,
                                      .threads = j->o->threads,
                                      .precision =
                                          j->o->precision ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL};
    const size_t K = (size_t)j->result.arch.atoms, line = 2 * (size_t)j->result.arch.fut;
    const bj_batch *batch;
    double times[LATENCY_SCENES];
    bj_predictor *predictor = NULL;
    bj_real *numbers = calloc(K * (1 + line), sizeof *numbers);
    bj_status status = numbers ? bj_predictor_create(&predictor, j->model, &how, err)
                               : cli_error(err, BJ_ENOMEM, "out of memory");
    if (status == BJ_OK) status = bj_loader_batch(&batch, NULL, j->loader, 0, 0, err);
    int count = 0;
    if (status == BJ_OK) count = batch->B < LATENCY_SCENES ? batch->B : LATENCY_SCENES;
    for (int i = -WARM_UP; i < count && status == BJ_OK && !cli_stop; i++) {
        const bj_batch one = {.B = 1, .scenes = batch->scenes + (i < 0 ? 0 : i)};
        const double start = cli_seconds();
        status = bj_predict(predictor, &one, numbers, numbers + K, NULL, err);
        if (i >= 0) times[i] = cli_seconds() - start;
    }
    if (status == BJ_OK && !cli_stop) {
        qsort(times, (size_t)count, sizeof *times, compare);
        j->result.latency = (times[(count - 1) / 2] + times[count / 2]) / 2;
        j->result.latency_scenes = count;
        static char isa[32]; /* outlives the predictor */
        snprintf(isa, sizeof isa, "%s", bj_predictor_isa(predictor));
        j->result.isa = isa;
    }
    bj_predictor_free(predictor);
    free(numbers);
    return status;
}

int cmd_eval(int argc, char **argv) {
    eval_options o = {.exchange = 4096};
    bj_error err = {0};
    int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    job j = {.o = &o};
    cli_catch_signals();
    bj_status status = open_all(&j, &err);
    if (status == BJ_OK) status = evaluate(&j, &err);
    if (status == BJ_OK && !cli_stop) status = exchange(&j, &err);
    if (status == BJ_OK && !cli_stop) status = measure_latency(&j, &err);
    if (status != BJ_OK) {
        code = cli_fail(verb, &err);
    } else if (cli_stop) {
        fprintf(stderr, "bjepa %s: stopped before the last scene; no metrics are printed\n", verb);
        code = CLI_SIGNALED + (int)cli_stop;
    } else {
        (o.json ? eval_print_json : eval_print_text)(&j.result);
        code = CLI_OK;
    }
    job_free(&j);
    return code;
}
