/* view_source.c - see view.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "builtin.h"
#include "checkpoint.h"

/* ------------------------------------------------------------------------------------ forecasts */

bj_status view_forecast_create(view_forecast *f, int steps, bj_error *err) {
    f->K = 0;
    f->steps = steps;
    f->weights = malloc(BJ_MAX_ATOMS * sizeof *f->weights);
    f->paths = malloc(2 * BJ_MAX_ATOMS * (size_t)steps * sizeof *f->paths);
    return f->weights && f->paths ? BJ_OK : cli_error(err, BJ_ENOMEM, "out of memory");
}

void view_forecast_free(view_forecast *f) {
    free(f->weights);
    free(f->paths);
    *f = (view_forecast){.K = 0};
}

/* -------------------------------------------------------------------------------------- opening */

/* Writes the name of the file, without its folder and ".parquet". */
static void title_of_file(char title[VIEW_TITLE_SIZE], const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strlen(name) - (cli_ends_in(name, ".parquet") ? 8 : 0);
    snprintf(title, VIEW_TITLE_SIZE, "%.*s", (int)(length < 90 ? length : 90), name);
}

static int is_model(const char *operand) {
    struct stat info;
    return cli_is_builtin(operand) || cli_ends_in(operand, ".safetensors") ||
           (!stat(operand, &info) && S_ISDIR(info.st_mode));
}

static void describe_model(view_source *s, const bj_facts *facts) {
    const char *scenes = bj_facts_get(facts, "scenes"), *data = bj_facts_get(facts, "data");
    const char *recipe = bj_facts_get(facts, "recipe"), *license = bj_facts_get(facts, "license");
    char count[CLI_COUNT_SIZE];
    if (!scenes || !data || !recipe) return;
    snprintf(s->about, sizeof s->about, "trained on %s scenes from %.80s with recipe %.40s%s%.60s",
             cli_count(count, (size_t)strtoull(scenes, NULL, 10)), data, recipe,
             license ? "; license " : "", license ? license : "");
}

/* Models are labeled with the name in their file, or else with the argument. */
static bj_status name_model(view_source *s, const char *path, bj_error *err) {
    bj_facts *facts;
    const bj_status status = bj_facts_read(&facts, path, err);
    if (status != BJ_OK) return status;
    const char *name = bj_facts_get(facts, "name");
    snprintf(s->title, sizeof s->title, "%.90s", name ? name : s->name);
    describe_model(s, facts);
    bj_facts_free(facts);
    return BJ_OK;
}

static bj_status open_model(view_source *s, int threads, bj_error *err) {
    const bj_predictor_options options = {.max_batch = 1, .threads = threads};
    char path[CLI_PATH_SIZE];
    bj_model *model = NULL;
    bj_status status = cli_checkpoint_path(path, s->name, err);
    if (status == BJ_OK) status = name_model(s, path, err);
    if (status == BJ_OK) status = bj_model_load(&model, path, err);
    if (status != BJ_OK) return status;
    s->arch = *bj_model_arch(model);
    status = bj_predictor_create(&s->predictor, model, &options, err);
    bj_model_free(model);
    if (status != BJ_OK) return status;
    s->weights = malloc((size_t)s->arch.atoms * sizeof *s->weights);
    s->paths = malloc(2 * (size_t)s->arch.atoms * (size_t)s->arch.fut * sizeof *s->paths);
    return s->weights && s->paths ? BJ_OK : cli_error(err, BJ_ENOMEM, "out of memory");
}

bj_status view_source_open(view_source *s, const char *operand, int threads, bj_error *err) {
    *s = (view_source){.name = operand};
    if (is_model(operand)) return open_model(s, threads, err);
    title_of_file(s->title, operand);
    return bj_submission_open(&s->submission, operand, err);
}

void view_source_close(view_source *s) {
    bj_submission_free(s->submission);
    bj_predictor_free(s->predictor);
    free(s->weights);
    free(s->paths);
}

bj_status view_source_fits(const view_source *s, const bj_arch *scenes, bj_error *err) {
    bj_error why;
    if (s->submission || bj_arch_fits(&s->arch, scenes, &why) == BJ_OK) return BJ_OK;
    return cli_error(err, why.code, "%s: %s", s->name, why.message);
}

int view_source_has(const view_source *s, const char *scenario_id) {
    return !s->submission || bj_submission_find(s->submission, scenario_id) >= 0;
}

/* ----------------------------------------------------------------------------------- submission */

static bj_status bad_row(const view_source *s, int64_t row, const char *id, const char *what,
                         bj_error *err) {
    return cli_error(err, BJ_EFORMAT, "%s: row %lld, scenario %s: %s", s->name, (long long)row, id,
                     what);
}

static bj_status take_row(view_forecast *f, const view_source *s, const bj_submission_row *row,
                          const bj_scene_info *info, int64_t number, bj_error *err) {
    double *path = f->paths + 2 * (size_t)f->K * (size_t)f->steps;
    if (f->K == BJ_MAX_ATOMS)
        return bad_row(s, number, info->scenario_id, "found more modes than can be shown", err);
    if (row->x_count != f->steps || row->y_count != f->steps)
        return bad_row(s, number, info->scenario_id, "expected 60 points", err);
    if (!(row->probability >= 0 && row->probability <= 1))
        return bad_row(s, number, info->scenario_id, "expected a probability of 0 to 1", err);
    for (int t = 0; t < f->steps; t++) {
        path[2 * t] = row->x[t];
        path[2 * t + 1] = row->y[t];
        if (!isfinite(row->x[t]) || !isfinite(row->y[t]))
            return bad_row(s, number, info->scenario_id, "a point is not finite", err);
    }
    bj_from_city(path, path, f->steps, info->origin, info->heading);
    f->weights[f->K++] = row->probability;
    return BJ_OK;
}

/* Reads the rows of the focal track. */
static bj_status read_rows(view_forecast *f, const view_source *s, const bj_scene_info *info,
                           bj_error *err) {
    bj_status status = BJ_OK;
    int64_t count = 0;
    const int64_t scenario = bj_submission_find(s->submission, info->scenario_id);
    if (scenario < 0) return BJ_OK;
    const int64_t *rows = bj_submission_rows_of(&count, s->submission, scenario);
    for (int64_t i = 0; i < count && status == BJ_OK; i++) {
        const bj_submission_row row = bj_submission_at(s->submission, rows[i]);
        if (row.track_id && !strcmp(row.track_id, info->focal_id))
            status = take_row(f, s, &row, info, rows[i], err);
    }
    return status;
}

bj_status view_source_forecast(view_forecast *f, const view_source *s, const bj_scene_info *info,
                               const bj_batch *scene, bj_error *err) {
    f->K = 0;
    if (s->submission) return read_rows(f, s, info, err);
    const bj_status status = bj_predict(s->predictor, scene, s->weights, s->paths, NULL, err);
    if (status != BJ_OK) return status;
    f->K = s->arch.atoms;
    for (int k = 0; k < f->K; k++) f->weights[k] = (double)s->weights[k];
    for (int i = 0; i < 2 * f->K * f->steps; i++) f->paths[i] = (double)s->paths[i];
    return BJ_OK;
}
