/* report_forecast.c - see report_forecast.h. */
#define _POSIX_C_SOURCE 200809L /* access */
#include "report_forecast.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "checkpoint.h"
#include "progress.h"
#include "report_choose.h"

enum { SCENES = 1000 };

typedef struct work {
    report_forecasts *out;
    const report_data *data;
    const report_forecast_options *options;
    char path[CLI_PATH_SIZE]; /* of the cache */
    bj_part part;
    bj_cache *blind;
    bj_loader *loader; /* of it; step i is scene i */
    int64_t chosen[SCENES];
    int count;
    int *run; /* (models) index of the run; -1: the pretrained model */
    double *weights, *paths;
    bj_real *weights_real, *paths_real;
} work;

void report_forecasts_free(report_forecasts *f) {
    report_scenes_free(f->scenes);
    free(f->models);
    *f = (report_forecasts){.scenes = NULL};
}

/* ------------------------------------------------------------------------------ where scenes are
 */

static bj_status set_path(work *w, const char *path, bj_error *err) {
    if (snprintf(w->path, sizeof w->path, "%s", path) >= (int)sizeof w->path)
        return cli_error(err, BJ_EARG, "%.64s...: the path is too long", path);
    return BJ_OK;
}

static bj_status find_cache(work *w, bj_error *err) {
    const bj_campaign *campaign = w->data->campaign;
    const bj_run *run = campaign ? NULL : w->data->run[0].run;
    const char *data = campaign ? bj_campaign_data(campaign) : bj_run_fact(run, "data.path");
    const char *dev = campaign ? bj_campaign_dev(campaign) : bj_run_fact(run, "dev_data.path");
    w->part = BJ_PART_ALL;
    if (w->options->cache) {
        w->out->origin = REPORT_GIVEN;
        return set_path(w, w->options->cache, err);
    }
    if (w->data->locked) {
        w->out->origin = REPORT_HELD_OUT;
        return set_path(w, w->data->protocol.data, err);
    }
    w->out->origin = REPORT_DEVELOPMENT;
    if (dev) return set_path(w, dev, err);
    w->part = BJ_PART_DEV;
    if (!data) return cli_error(err, BJ_EFORMAT, "the manifest of the run names no data");
    if (bj_fresh_is_spec(data))
        return cli_error(err, BJ_EARG,
                         "%s: scenes that are simulated during training are not in a file\n"
                         "hint: name a cache with --scenes",
                         data);
    return set_path(w, data, err);
}

static const char *scene_id(const void *context, int64_t index) {
    const work *w = context;
    const char *id = bj_cache_info(w->blind, index).scenario_id;
    return w->part == BJ_PART_ALL || bj_is_dev(id) == 1 ? id : NULL;
}

static bj_status choose(work *w, bj_error *err) {
    const bj_loader_options one = {.part = BJ_PART_ALL, .batch = 1};
    const int wanted = w->options->count < SCENES ? w->options->count : SCENES;
    bj_status status = bj_cache_open(&w->blind, w->path, 1, err);
    if (status == BJ_OK) status = bj_loader_create(&w->loader, w->blind, &one, err);
    if (status != BJ_OK) return status;
    const int64_t count = bj_cache_count(w->blind);
    for (int64_t i = 0; i < count; i++) w->out->available += scene_id(w, i) != NULL;
    status = report_choose(w->chosen, &w->count, wanted, count, scene_id, w, err);
    if (status == BJ_OK && !w->count)
        return cli_error(err, BJ_EFORMAT, "%s: contains no scene to show", w->path);
    return status;
}

static bj_status add_scenes(work *w, bj_error *err) {
    bj_status status =
        report_scenes_create(&w->out->scenes, w->out->models, w->out->model_count, err);
    for (int i = 0; i < w->count && status == BJ_OK; i++) {
        status = bj_cache_check_scene(w->blind, w->chosen[i], err);
        if (status == BJ_OK)
            status = bj_cache_check_map(w->blind, bj_cache_info(w->blind, w->chosen[i]).map, err);
        if (status != BJ_OK) break;
        const report_scene scene = {.sizes = bj_cache_arch(w->blind),
                                    .info = bj_cache_info(w->blind, w->chosen[i]),
                                    .at = bj_cache_floats(w->blind, w->chosen[i]),
                                    .cache = w->blind};
        status = report_scenes_add(w->out->scenes, &scene, err);
    }
    return status;
}

/* -------------------------------------------------------------------------------------- models */

/* Adds the pretrained model, then every finished run that makes forecasts, sorted by arm and
 * seed. */
static bj_status list_models(work *w, bj_error *err) {
    const report_data *d = w->data;
    report_forecasts *out = w->out;
    const report_pretrained *p = w->options->pretrained;
    out->models = calloc((size_t)d->runs + 2, sizeof *out->models);
    w->run = calloc((size_t)d->runs + 2, sizeof *w->run);
    if (!out->models || !w->run) return cli_error(err, BJ_ENOMEM, "out of memory");
    if (p->model) {
        w->run[out->model_count] = -1;
        out->models[out->model_count++] = (report_model){REPORT_PRETRAINED_ARM, p->title, -1};
    }
    for (int arm = 0; arm < d->arms; arm++)
        for (int seed = 0; seed < d->seeds; seed++)
            for (int r = 0; r < d->runs; r++) {
                const report_run *run = &d->run[r];
                if (run->arm != arm || run->seed != seed || !d->arm[arm].forecasts ||
                    !run->finished || run->best < 0)
                    continue;
                w->run[out->model_count] = r;
                out->models[out->model_count++] =
                    (report_model){d->arm[arm].name, d->arm[arm].title, d->seed[seed]};
            }
    return BJ_OK;
}

/* Allocates memory for one forecast of the largest set. */
static bj_status make_room(work *w, int F, bj_error *err) {
    const size_t K = BJ_MAX_ATOMS, line = 2 * (size_t)F;
    w->weights = malloc(K * sizeof *w->weights);
    w->paths = malloc(K * line * sizeof *w->paths);
    w->weights_real = malloc(K * sizeof *w->weights_real);
    w->paths_real = malloc(K * line * sizeof *w->paths_real);
    if (!w->weights || !w->paths || !w->weights_real || !w->paths_real)
        return cli_error(err, BJ_ENOMEM, "out of memory");
    return BJ_OK;
}

static bj_status predict_scene(work *w, bj_predictor *predictor, int K, int F, int scene, int model,
                               bj_error *err) {
    const bj_batch *batch;
    bj_status status = bj_loader_batch(&batch, NULL, w->loader, 0, w->chosen[scene], err);
    if (status == BJ_OK)
        status = bj_predict(predictor, batch, w->weights_real, w->paths_real, NULL, err);
    if (status != BJ_OK) return status;
    for (int k = 0; k < K; k++) w->weights[k] = (double)w->weights_real[k];
    for (int i = 0; i < 2 * K * F; i++) w->paths[i] = (double)w->paths_real[i];
    return report_scenes_forecast(w->out->scenes, scene, model, K, w->weights, w->paths, err);
}

static bj_status predict_all(work *w, int number, bj_error *err) {
    const bj_arch scenes = bj_cache_arch(w->blind);
    const bj_predictor_options options = {.max_batch = 1, .threads = w->options->threads};
    char path[CLI_PATH_SIZE];
    bj_model *model = NULL;
    bj_predictor *predictor = NULL;
    const int run = w->run[number];
    bj_status status = cli_checkpoint_path(
        path, run < 0 ? w->options->pretrained->path : w->data->run[run].dir, err);
    if (status == BJ_OK) status = bj_model_load(&model, path, err);
    if (status != BJ_OK) return status;
    const bj_arch arch = *bj_model_arch(model);
    bj_error why;
    if (bj_arch_fits(&arch, &scenes, &why) != BJ_OK)
        status = cli_error(err, why.code, "%s, %s: %s", path, w->path, why.message);
    else status = bj_predictor_create(&predictor, model, &options, err);
    bj_model_free(model);
    for (int i = 0; i < w->count && status == BJ_OK; i++)
        status = predict_scene(w, predictor, arch.atoms, arch.fut, i, number, err);
    bj_predictor_free(predictor);
    return status;
}

static bj_status predict(work *w, bj_error *err) {
    cli_progress bar = cli_progress_begin("models", w->out->model_count);
    const double start = bar.last;
    bj_status status = make_room(w, bj_cache_arch(w->blind).fut, err);
    for (int m = 0; m < w->out->model_count && status == BJ_OK; m++) {
        cli_progress_show(&bar, m, "predicting the scenes");
        status = predict_all(w, m, err);
    }
    if (status == BJ_OK && bar.last > start) /* something was shown */
        cli_progress_end(&bar, w->out->model_count, "");
    return status;
}

/* ------------------------------------------------------------------------------------ hindsight */

static bj_status add_futures(work *w, bj_error *err) {
    bj_cache *seeing = NULL;
    bj_status status = bj_cache_open(&seeing, w->path, 0, err);
    for (int i = 0; i < w->count && status == BJ_OK; i++) {
        const bj_scene_floats at = bj_cache_floats(seeing, w->chosen[i]);
        status = bj_cache_check_scene(seeing, w->chosen[i], err);
        if (status == BJ_OK && at.future)
            status = report_scenes_future(w->out->scenes, i, at.future,
                                          bj_cache_info(seeing, w->chosen[i]).future_valid, err);
    }
    bj_cache_free(seeing);
    return status;
}

static bj_status add_laws(work *w, bj_error *err) {
    char beside[CLI_PATH_SIZE + 32];
    const char *path = w->options->law;
    bj_law *law = NULL;
    if (!path) {
        snprintf(beside, sizeof beside, "%s.law.safetensors", w->path);
        if (!cli_exists(beside)) return BJ_OK;
        path = beside;
    }
    bj_status status = bj_law_open(&law, path, err);
    for (int i = 0; i < w->count && status == BJ_OK; i++) {
        const bj_scene_info info = bj_cache_info(w->blind, w->chosen[i]);
        int found;
        status = report_scenes_law(w->out->scenes, i, law, &info, &found, err);
        w->out->laws += found;
    }
    if (status == BJ_OK && w->options->law && !w->out->laws)
        status = cli_error(err, BJ_EFORMAT,
                           "%s: does not contain the true distribution of the scenes in %s", path,
                           w->path);
    bj_law_free(law);
    return status;
}

/* ------------------------------------------------------------------------------------------ all */

static void give_up(report_forecasts *out, const char *reason) {
    report_forecasts_free(out);
    snprintf(out->reason, sizeof out->reason, "%s", reason);
}

static bj_status make(work *w, bj_error *err) {
    bj_status status = list_models(w, err);
    if (status != BJ_OK) return status;
    if (!w->out->model_count) {
        give_up(w->out, "No run is finished, so there is no model that can predict scenes.");
        return BJ_OK;
    }
    status = find_cache(w, err);
    if (status == BJ_OK) status = choose(w, err);
    if (status != BJ_OK) return status;
    status = add_scenes(w, err);
    if (status == BJ_OK) status = predict(w, err);
    if (status == BJ_OK) status = add_futures(w, err);
    if (status == BJ_OK) status = add_laws(w, err);
    if (status == BJ_OK) w->out->dropped = report_scenes_fit(w->out->scenes, w->options->most);
    return status;
}

bj_status report_forecasts_make(report_forecasts *out, const report_data *data,
                                const report_forecast_options *options, bj_error *err) {
    bj_error why = {.message = ""};
    *out = (report_forecasts){.scenes = NULL};
    if (!data->runs || !options->count) {
        give_up(out, data->runs
                         ? "No scenes were requested."
                         : "A seed table contains no models, so no scenes can be predicted.");
        return BJ_OK;
    }
    work *w = calloc(1, sizeof *w);
    if (!w) return cli_error(err, BJ_ENOMEM, "out of memory");
    w->out = out;
    w->data = data;
    w->options = options;
    const bj_status status = make(w, &why);
    const int opened = w->blind != NULL;
    bj_loader_free(w->loader);
    bj_cache_free(w->blind);
    free(w->run);
    free(w->weights);
    free(w->paths);
    free(w->weights_real);
    free(w->paths_real);
    free(w);
    if (status == BJ_OK) return BJ_OK;
    give_up(out, why.message);
    if (!options->cache && !opened && status != BJ_ENOMEM) return BJ_OK;
    return cli_error(err, status, "%s", why.message);
}
