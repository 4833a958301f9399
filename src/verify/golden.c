/* golden.c - see golden.h. */
#include "verify/golden.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "model/model.h"

/* ------------------------------------------------------------------------------------ metadata */

static bj_status read_number(double *out, const bj_safetensors *st, const char *key, int required,
                             bj_error *err) {
    const char *text = bj_safetensors_metadata(st, key);
    if (!text) {
        if (!required) return BJ_OK; /* *out keeps the default */
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%s' is missing", bj_safetensors_path(st),
                       key);
    }
    if (!bj_json_number_read(out, text))
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%s' is '%s', expected a number",
                       bj_safetensors_path(st), key, text);
    return BJ_OK;
}

static bj_status read_count(int *out, const bj_safetensors *st, const char *key, int required,
                            bj_error *err) {
    double value = *out;
    BJ_TRY(read_number(&value, st, key, required, err));
    if (value != floor(value) || fabs(value) > 1e9)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%s' is %g, expected an integer",
                       bj_safetensors_path(st), key, value);
    *out = (int)value;
    return BJ_OK;
}

/* Sets *out to the index of the metadata value in a NULL-terminated list, or to 0 if the key does
 * not exist. */
static bj_status read_word(int *out, const bj_safetensors *st, const char *key,
                           const char *const *words, bj_error *err) {
    const char *text = bj_safetensors_metadata(st, key);
    *out = 0;
    if (!text) return BJ_OK;
    while (words[*out] && strcmp(words[*out], text)) ++*out;
    if (words[*out]) return BJ_OK;
    return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata '%s' is '%s', which is unknown",
                   bj_safetensors_path(st), key, text);
}

/* Adds the file name to the message of a failed settings check and returns BJ_EFORMAT. */
static bj_status blame_file(const bj_golden *g, bj_status status, bj_error *err) {
    if (status == BJ_OK) return BJ_OK;
    char why[sizeof err->message] = "";
    if (err) memcpy(why, err->message, sizeof why);
    return BJ_FAIL(err, BJ_EFORMAT, "%s: %.400s", bj_safetensors_path(g->file), why);
}

static bj_status read_arch(bj_golden *g, bj_error *err) {
    static const char *const models[] = {"branch", "point", "outputonly", "anchor", NULL};
    static const char *const scales[] = {"fixed", "global", "component", NULL};
    bj_arch *a = &g->arch;
    *a = bj_arch_paper();
    const struct {
        const char *key;
        int *value;
    } size[] = {{"obs", &a->obs},
                {"fut", &a->fut},
                {"neighbors", &a->neighbors},
                {"polylines", &a->polylines},
                {"points", &a->points},
                {"embed", &a->embed},
                {"heads", &a->heads},
                {"token_hidden", &a->token_hidden},
                {"latent", &a->latent},
                {"proj_hidden", &a->proj_hidden},
                {"atoms", &a->atoms},
                {"atom_hidden", &a->atom_hidden},
                {"router_hidden", &a->router_hidden},
                {"decoder_hidden", &a->decoder_hidden},
                {"trunk", &a->trunk}};
    int kind, scale;
    BJ_TRY(read_word(&kind, g->file, "model", models, err));
    BJ_TRY(read_word(&scale, g->file, "scales", scales, err));
    a->kind = kind == 2 ? BJ_MODEL_OUTPUT_ONLY : BJ_MODEL_BRANCH;
    a->scales = (bj_scales)scale;
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        BJ_TRY(read_count(size[i].value, g->file, size[i].key, 1, err));
    BJ_TRY(read_number(&a->dt, g->file, "dt", 0, err));
    return blame_file(g, bj_arch_check(a, err), err);
}

static bj_status read_settings(bj_golden *g, bj_error *err) {
    const char *name = bj_safetensors_metadata(g->file, "objective");
    bj_objective_kind kind;
    if (!name)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata 'objective' is missing",
                       bj_safetensors_path(g->file));
    if (bj_objective_find(&kind, name, NULL) != BJ_OK)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: metadata 'objective' is '%s', which is unknown",
                       bj_safetensors_path(g->file), name);
    bj_objective *o = &g->objective;
    *o = bj_objective_default(kind);
    g->optim = bj_optim_default();
    g->lr = 3e-4;
    const struct {
        const char *key;
        double *value;
    } number[] = {{"lambda_z", &o->lambda_z},
                  {"lambda_y", &o->lambda_y},
                  {"lambda_rec", &o->lambda_rec},
                  {"lambda_router", &o->lambda_router},
                  {"beta", &o->beta},
                  {"tau", &o->tau},
                  {"rho", &o->rho},
                  {"eps", &o->eps},
                  {"sigma_z", &o->sigma_z},
                  {"sigma_y", &o->sigma_y},
                  {"usage_kl", &o->usage_kl},
                  {"variance_floor", &o->variance_floor},
                  {"rank_floor", &o->rank_floor},
                  {"rank_weight", &o->rank_weight},
                  {"sigreg", &o->sigreg},
                  {"vicreg_variance", &o->vicreg_variance},
                  {"vicreg_covariance", &o->vicreg_covariance},
                  {"vicreg_gamma", &o->vicreg_gamma},
                  {"lr", &g->lr},
                  {"clip", &g->optim.clip},
                  {"ema", &g->optim.ema},
                  {"weight_decay", &g->optim.weight_decay},
                  {"beta1", &g->optim.beta1},
                  {"beta2", &g->optim.beta2},
                  {"adam_eps", &g->optim.eps}};
    for (size_t i = 0; i < sizeof number / sizeof *number; i++)
        BJ_TRY(read_number(number[i].value, g->file, number[i].key, 0, err));
    BJ_TRY(read_count(&o->sinkhorn_iters, g->file, "sinkhorn_iters", 0, err));
    BJ_TRY(read_count(&o->sigreg_slices, g->file, "sigreg_slices", 0, err));
    BJ_TRY(read_count(&g->steps, g->file, "steps", 0, err));
    BJ_TRY(read_count(&g->optim.conditioned, g->file, "conditioned", 0, err));
    BJ_TRY(read_count(&g->optim.muon, g->file, "muon", 0, err));
    BJ_TRY(read_count(&g->optim.schedule_free, g->file, "schedule_free", 0, err));
    return blame_file(g, bj_objective_check(o, &g->arch, err), err);
}

/* ------------------------------------------------------------------------------------- tensors */

/* Reads the tensor named `prefix` + to.name. An absent tensor is left
 * unchanged if may_miss is set. */
static bj_status load_tensor(bj_tensor to, const bj_safetensors *st, const char *prefix,
                             int may_miss, bj_error *err) {
    char name[96];
    snprintf(name, sizeof name, "%s%s", prefix, to.name);
    const int64_t shape[2] = {to.shape[0], to.shape[1]};
    if (may_miss && !bj_safetensors_find(st, name)) return BJ_OK;
    return bj_safetensors_read_real(to.data, st, name, to.rank, shape, err);
}

static bj_status load_weights(bj_golden *g, bj_error *err) {
    BJ_TRY(bj_model_create(&g->model, &g->arch, 0, err));
    for (int i = 0; i < bj_model_tensor_count(g->model); i++) {
        /* An anchor file contains no atoms and no router. */
        const bj_param_part part = g->model->layout.params[i].part;
        const int unused =
            g->objective.kind == BJ_ANCHOR_A && (part == BJ_PART_ATOMS || part == BJ_PART_ROUTER);
        BJ_TRY(load_tensor(bj_model_tensor(g->model, i), g->file, "w.", unused, err));
    }
    return BJ_OK;
}

bj_status bj_golden_load_target(const bj_golden *g, bj_trainer *trainer, bj_error *err) {
    const int may_miss = g->objective.kind == BJ_ANCHOR_A;
    for (int i = 0; i < bj_model_tensor_count(g->model); i++) {
        const bj_tensor to = bj_trainer_target(trainer, i);
        const char *encoder = "encoder.";
        if (!to.data) continue;
        bj_tensor renamed = to; /* t. names have no "encoder." prefix */
        renamed.name += strlen(encoder);
        BJ_TRY(load_tensor(renamed, g->file, "t.", may_miss, err));
    }
    return BJ_OK;
}

static bj_status read_mask(uint8_t *to, const bj_safetensors *st, const char *name, int64_t B,
                           int64_t slots, bj_error *err) {
    const bj_tensor_view *view;
    const int64_t shape[2] = {B, slots};
    BJ_TRY(bj_safetensors_require(&view, st, name, 2, shape, err));
    if (view->dtype != BJ_DTYPE_U8 && view->dtype != BJ_DTYPE_BOOL)
        return BJ_FAIL(err, BJ_EFORMAT, "%s: tensor '%s' has dtype %s, expected U8 or BOOL",
                       bj_safetensors_path(st), name, bj_dtype_name(view->dtype));
    memcpy(to, view->data, view->count);
    return BJ_OK;
}

static bj_status load_scenes(bj_golden *g, bj_error *err) {
    const bj_arch *a = &g->arch;
    const bj_safetensors *st = g->file;
    const bj_tensor_view *first = bj_safetensors_find(st, "x.focal");
    if (!first || first->rank != 3 || first->shape[0] < 1 || first->shape[0] > 1 << 20)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "%s: tensor 'x.focal' is missing or does not have the shape (B,T,7)",
                       bj_safetensors_path(st));
    const int64_t B = first->shape[0];
    g->B = (int)B;
    const int64_t focal[3] = {B, a->obs, BJ_FOCAL_FEATURES}, future[3] = {B, a->fut, 2};
    const int64_t neighbors[4] = {B, a->neighbors, a->obs, BJ_FOCAL_FEATURES};
    const int64_t polylines[4] = {B, a->polylines, a->points, BJ_POLYLINE_FEATURES};
    const size_t b = (size_t)B, track = (size_t)a->obs * BJ_FOCAL_FEATURES;
    const size_t n = (size_t)a->neighbors, p = (size_t)a->polylines;
    bj_real *array[4] = {NULL};
    uint8_t *mask[2] = {NULL};
    bj_status status;
    BJ_GOTO(status, done, BJ_ALLOC(array[0], b * track, err));
    BJ_GOTO(status, done, BJ_ALLOC(array[1], b * n * track, err));
    BJ_GOTO(status, done,
            BJ_ALLOC(array[2], b * p * (size_t)a->points * BJ_POLYLINE_FEATURES, err));
    BJ_GOTO(status, done, BJ_ALLOC(array[3], b * 2 * (size_t)a->fut, err));
    BJ_GOTO(status, done, BJ_ALLOC(mask[0], b * n, err));
    BJ_GOTO(status, done, BJ_ALLOC(mask[1], b * p, err));
    BJ_GOTO(status, done, bj_safetensors_read_real(array[0], st, "x.focal", 3, focal, err));
    BJ_GOTO(status, done, bj_safetensors_read_real(array[1], st, "x.neighbors", 4, neighbors, err));
    BJ_GOTO(status, done, bj_safetensors_read_real(array[2], st, "x.polylines", 4, polylines, err));
    BJ_GOTO(status, done, bj_safetensors_read_real(array[3], st, "x.future", 3, future, err));
    BJ_GOTO(status, done, read_mask(mask[0], st, "x.nmask", B, a->neighbors, err));
    BJ_GOTO(status, done, read_mask(mask[1], st, "x.pmask", B, a->polylines, err));
    BJ_GOTO(status, done,
            bj_scenes_from_padded(&g->scenes, a, g->B, array[0], array[1], mask[0], array[2],
                                  mask[1], array[3], err));
done:
    for (int i = 0; i < 4; i++) bj_free(array[i]);
    for (int i = 0; i < 2; i++) bj_free(mask[i]);
    return status;
}

bj_status bj_golden_open(bj_golden *g, const char *path, bj_error *err) {
    *g = (bj_golden){0};
    bj_status status;
    BJ_GOTO(status, fail, bj_safetensors_open(&g->file, path, err));
    g->name = bj_safetensors_metadata(g->file, "case");
    if (!g->name) g->name = "unnamed";
    BJ_GOTO(status, fail, read_arch(g, err));
    BJ_GOTO(status, fail, read_settings(g, err));
    BJ_GOTO(status, fail, load_weights(g, err));
    BJ_GOTO(status, fail, load_scenes(g, err));
    return BJ_OK;
fail:
    bj_golden_reset(g);
    return status;
}

void bj_golden_reset(bj_golden *g) {
    bj_scenes_free(g->scenes);
    bj_model_free(g->model);
    bj_safetensors_close(g->file);
    *g = (bj_golden){0};
}
