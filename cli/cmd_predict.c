/* cmd_predict.c - bjepa predict: predicts all K weighted futures of scenes from raw files or
 * caches.
 *
 * Nothing is averaged, filtered or sorted, and every branch is printed with its weight. Scenes are
 * predicted in batches. A single scene is divided among all threads.
 */
#include "predict.h"

#include "checkpoint.h"
#include "picture.h"

#include <stdlib.h>
#include <string.h>

typedef struct predict_options {
    int json, latents, threads, precision, limit;
    const char *out, *parquet, *scene;
} predict_options;

static int parse(predict_options *o, int argc, char **argv, int *operands) {
    const cli_option options[] = {
        CLI_OPTION_JSON(&o->json),
        {"out", 'o', CLI_TEXT, "FILE", &o->out, 0, 0,
         "output file; .svg, .png or .pdf draws the scene, .jsonl writes JSON Lines"},
        {"parquet", 0, CLI_TEXT, "FILE", &o->parquet, 0, 0, "write a challenge submission"},
        {"latents", 0, CLI_FLAG, NULL, &o->latents, 0, 0,
         "add the latent of each branch to the JSON output"},
        {"scene", 0, CLI_TEXT, "ID", &o->scene, 0, 0, "predict only this scene"},
        {"limit", 0, CLI_INT, "N", &o->limit, 0, 2147483647,
         "predict only the first N scenes; 0 means all"},
        {"precision", 0, CLI_CHOICE, "full|bf16", &o->precision, 0, 0,
         "precision of matrix products; bf16 rounds weights and activations and is faster"},
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "predict",
        .summary = "predict weighted futures for the scenes in scenario files or a cache",
        .operands = "CHECKPOINT SCENARIO_DIR_OR_CACHE...",
        .min_operands = 2,
        .max_operands = 2147483647,
        .examples = "bjepa predict builtin val/0a1e6f0a-1817-4a98-b02e-db8c9327d151\n"
                    "bjepa predict run/ckpt/best val.bjc --json --out predictions.jsonl\n"
                    "bjepa predict model.safetensors val.bjc --scene 0a1e6f --out scene.svg\n"
                    "bjepa predict model.safetensors test/ --parquet submission.parquet\n",
        .options = options,
    };
    return cli_parse(&usage, argc, argv, operands);
}

/* ---------------------------------------------------------------------------------------- model */

static bj_status check_sizes(const bj_arch *model, const bj_arch *scenes, const char *model_path,
                             const char *scenes_path, bj_error *err) {
    bj_error why;
    if (bj_arch_fits(model, scenes, &why) == BJ_OK) return BJ_OK;
    return cli_error(err, why.code, "%s, %s: %s", model_path, scenes_path, why.message);
}

/* --------------------------------------------------------------------------------------- runner */

/* What lives as long as the command. */
typedef struct runner {
    const predict_options *options;
    char model_path[CLI_PATH_SIZE];
    bj_arch arch;
    int latent_count;
    bj_predictor *predictor;
    bj_real *weights, *trajectories, *latents; /* of PREDICT_BATCH scenes */
    FILE *to;                   /* NULL: no text, JSON or picture is requested */
    bj_submission_writer *rows; /* NULL: no submission */
    int json, draws;
    int64_t done;
} runner;

static void stop(runner *r) {
    bj_predictor_free(r->predictor);
    bj_submission_writer_abort(&r->rows);
    free(r->weights);
    free(r->trajectories);
    free(r->latents);
}

static bj_status start(runner *r, const char *checkpoint, bj_error *err) {
    bj_model *model = NULL;
    bj_status status = cli_checkpoint_path(r->model_path, checkpoint, err);
    if (status == BJ_OK) status = bj_model_load(&model, r->model_path, err);
    if (status != BJ_OK) return status;
    r->arch = *bj_model_arch(model);
    r->latent_count = r->arch.kind == BJ_MODEL_OUTPUT_ONLY ? 1 : r->arch.atoms;
    const bj_predictor_options options = {.max_batch = PREDICT_BATCH,
                                          .threads = r->options->threads,
                                          .precision = r->options->precision ? BJ_PRECISION_BF16
                                                                             : BJ_PRECISION_FULL};
    status = bj_predictor_create(&r->predictor, model, &options, err);
    bj_model_free(model);
    if (status != BJ_OK) return status;
    const size_t B = PREDICT_BATCH, K = (size_t)r->arch.atoms, F = (size_t)r->arch.fut;
    r->weights = malloc(B * K * sizeof *r->weights);
    r->trajectories = malloc(B * K * F * 2 * sizeof *r->trajectories);
    if (r->options->latents)
        r->latents =
            malloc(B * (size_t)r->latent_count * (size_t)r->arch.latent * sizeof *r->latents);
    if (!r->weights || !r->trajectories || (r->options->latents && !r->latents))
        return cli_error(err, BJ_ENOMEM, "out of memory for the predictions of %d scenes",
                         PREDICT_BATCH);
    return BJ_OK;
}

static bj_status print_one(runner *r, const predict_source *s, const predict_result *result,
                           bj_error *err) {
    bj_status status = BJ_OK;
    if (r->draws && r->done > 0)
        return cli_error(err, BJ_EARG,
                         "%s: a picture can show only one scene; choose it with --scene", s->path);
    if (r->draws) status = predict_draw(r->to, result, s->cache, err);
    else if (r->to && r->json) predict_print_json(r->to, result);
    else if (r->to) predict_print_text(r->to, result);
    if (status == BJ_OK && r->rows) status = predict_submit(r->rows, result, err);
    r->done += status == BJ_OK;
    return status;
}

static bj_status print_batch(runner *r, const predict_source *s, int count, bj_error *err) {
    const size_t K = (size_t)r->arch.atoms, line = 2 * (size_t)r->arch.fut;
    const size_t latents = (size_t)r->latent_count * (size_t)r->arch.latent;
    bj_status status = BJ_OK;
    for (size_t b = 0; b < (size_t)count && status == BJ_OK; b++) {
        const predict_result result = {.scene = &s->scenes[b],
                                       .arch = &r->arch,
                                       .weights = r->weights + b * K,
                                       .trajectories = r->trajectories + b * K * line,
                                       .latents = r->latents ? r->latents + b * latents : NULL,
                                       .latent_count = r->latent_count};
        status = print_one(r, s, &result, err);
    }
    return status;
}

/* Number of scenes that may still follow, which limits the batch size. */
static int left(const runner *r) {
    const int64_t limit = r->options->limit;
    if (!limit) return PREDICT_BATCH;
    return limit - r->done < PREDICT_BATCH ? (int)(limit - r->done) : PREDICT_BATCH;
}

static bj_status predict_all(runner *r, predict_source *s, bj_error *err) {
    bj_status status = check_sizes(&r->arch, &s->sizes, r->model_path, s->path, err);
    while (status == BJ_OK && left(r) > 0) {
        const bj_batch *batch;
        bj_batch room;
        status = predict_source_next(&batch, &room, s, left(r), err);
        if (status != BJ_OK || !batch) return status;
        const bj_batch part = {.B = batch->B < left(r) ? batch->B : left(r), .scenes = batch->scenes};
        status = bj_predict(r->predictor, &part, r->weights, r->trajectories, r->latents, err);
        if (status == BJ_OK) status = print_batch(r, s, part.B, err);
    }
    return status;
}

/* Process every operand, even if an earlier one could not be used. */
static int predict_operands(runner *r, char **paths, int count) {
    int code = CLI_OK;
    for (int i = 0; i < count && left(r) > 0; i++) {
        predict_source source;
        bj_error err;
        bj_status status =
            predict_source_open(&source, paths[i], r->options->scene, r->draws, &err);
        if (status == BJ_OK) status = predict_all(r, &source, &err);
        const int failed = status == BJ_OK ? source.worst_code : cli_fail("predict", &err);
        if (failed > code) code = failed;
        if (source.refused)
            fprintf(stderr, "bjepa predict: %s: %d scenarios could not be read\n", paths[i],
                    source.refused);
        predict_source_close(&source);
    }
    return code;
}

/* ---------------------------------------------------------------------------------------- files */

static bj_status open_files(runner *r, cli_file *file, bj_error *err) {
    const predict_options *o = r->options;
    bj_status status = BJ_OK;
    if (o->parquet && r->arch.fut != BJ_SUBMISSION_STEPS)
        return cli_error(err, BJ_EFORMAT,
                         "%s: the model predicts %d future steps, but a submission needs %d",
                         r->model_path, r->arch.fut, BJ_SUBMISSION_STEPS);
    if (o->out) status = bj_file_writable(o->out, err);
    if (status == BJ_OK && o->parquet)
        status = bj_submission_writer_create(&r->rows, o->parquet, err);
    if (status == BJ_OK && o->out) status = cli_file_open(file, o->out, err);
    if (status == BJ_OK && o->out) r->to = file->stream;
    return status;
}

static int written(const char *path, bj_status status, const runner *r, const bj_error *err) {
    if (status != BJ_OK) return cli_fail("predict", err);
    fprintf(stderr, "bjepa predict: wrote %s, %lld scene%s\n", path, (long long)r->done,
            r->done == 1 ? "" : "s");
    return CLI_OK;
}

/* Publishes the output. A file without any scene and an incomplete picture are not published, and a
 * submission is published only if it is complete. */
static int close_files(runner *r, cli_file *file, int code) {
    const predict_options *o = r->options;
    bj_error err;
    int worst = code;
    if (o->out && (r->done == 0 || (r->draws && code != CLI_OK))) {
        cli_file_abort(file);
    } else if (o->out) {
        const bj_status status =
            r->draws ? cli_picture_commit(file, &err) : cli_file_commit(file, &err);
        const int failed = written(o->out, status, r, &err);
        if (failed > worst) worst = failed;
    }
    if (r->rows && (r->done == 0 || code != CLI_OK)) {
        bj_submission_writer_abort(&r->rows);
        fprintf(stderr, "bjepa predict: %s was not written\n", o->parquet);
    } else if (r->rows) {
        const bj_status status = bj_submission_writer_commit(&r->rows, &err);
        const int failed = written(o->parquet, status, r, &err);
        if (failed > worst) worst = failed;
    }
    return worst;
}

int cmd_predict(int argc, char **argv) {
    predict_options o = {0};
    int operands;
    const int result = parse(&o, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    runner r = {.options = &o};
    r.draws = o.out && cli_picture_name(o.out);
    r.json = o.json || (o.out && (cli_ends_in(o.out, ".jsonl") || cli_ends_in(o.out, ".json")));
    if (o.latents && !r.json) return cli_misuse("predict", "--latents needs --json");
    if (r.draws && o.json) return cli_misuse("predict", "found --json and a picture, expected one "
                                                        "of them");
    if (o.json || !o.parquet) r.to = stdout;

    bj_error err;
    cli_file file;
    bj_status status = start(&r, argv[1], &err);
    if (status == BJ_OK) status = open_files(&r, &file, &err);
    const int code = status != BJ_OK
                         ? cli_fail("predict", &err)
                         : close_files(&r, &file, predict_operands(&r, argv + 2, operands - 1));
    stop(&r);
    return code;
}
