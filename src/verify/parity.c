/* parity.c - recomputes the results in a golden file and compares them.
 *
 * Measures        o, l, m  largest difference divided by the tensor's largest entry
 *                 g        as o, l, m
 *                 s, st    absolute difference; relative difference for entries above 1 in
 *                          magnitude
 * Tolerances      o, l, m 1e-4; g 1e-3; s and st 1e-5 for 99.9 % of all entries and steps * lr for
 *                 each entry, because AdamW can turn a gradient near zero into a full step of
 *                 either sign. Double builds use 1e-6 for all groups, because the files contain
 *                 float32.
 * A tensor in the file that is not computed here is a failure.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "verify/failure.h"
#include "verify/golden.h"
#include "verify/maze_parity.h"

static const char *const group_name[BJ_PARITY_GROUPS] = {"o", "l", "g", "m", "s", "st"};

#ifdef BJ_DOUBLE
static const double tolerance[BJ_PARITY_GROUPS] = {1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6};
#else
static const double tolerance[BJ_PARITY_GROUPS] = {1e-4, 1e-4, 1e-3, 1e-4, 1e-5, 1e-5};
#endif
static const double rare = 1e-3; /* share of weights that may exceed the tolerance */

const char *bj_parity_group_name(int group) { return group_name[group]; }

typedef struct check {
    bj_parity_report *report;
    const bj_golden *golden;
    bj_error *err;
    size_t updated, updated_off; /* number of entries of s and st, and how many of them exceed the
                                    tolerance */
    bj_real *expected;           /* (largest tensor) */
    unsigned char *seen;         /* (tensors of the file) 1 if the tensor was compared */
} check;

/* Compares `found`, which has rows of `width` entries with the given stride, with the tensor
 * `name`. The tensor may be missing, because golden files of large models omit some tensors. */
static bj_status compare(check *c, int group, const char *name, const bj_real *found, size_t rows,
                         size_t width, size_t stride) {
    char full[112];
    snprintf(full, sizeof full, "%s.%s", group_name[group], name);
    const bj_tensor_view *view = bj_safetensors_find(c->golden->file, full);
    if (!view) return BJ_OK;
    if (view->count != rows * width)
        return BJ_FAIL(c->err, BJ_EFORMAT, "%s: tensor '%s' has %zu entries, expected %zu",
                       bj_safetensors_path(c->golden->file), full, view->count, rows * width);
    BJ_TRY(bj_safetensors_read_real(c->expected, c->golden->file, full, view->rank, view->shape,
                                    c->err));
    const int weights = group == BJ_PARITY_S || group == BJ_PARITY_ST;
    double most = 0, worst = 0, worst_found = 0, worst_expected = 0;
    size_t at = 0;
    for (size_t i = 0; i < rows * width; i++) {
        const double want = (double)c->expected[i];
        const double got = (double)found[i / width * stride + i % width];
        /* Use a relative difference above 1, because the file stores weights rounded to 24 bits. */
        const double off = fabs(got - want) / (weights && fabs(want) > 1 ? fabs(want) : 1);
        if (fabs(want) > most) most = fabs(want);
        if (weights) {
            c->updated++;
            c->updated_off += !(off <= tolerance[group]);
        }
        if (!(off <= worst)) { /* NaN counts as infinitely bad */
            worst = isnan(off) ? INFINITY : off;
            at = i, worst_found = got, worst_expected = want;
        }
    }
    /* A tensor of zeros has no scale, so use the absolute difference instead. */
    const double measure = weights ? worst : worst / (most > 1e-30 ? most : 1);
    /* A gradient near zero can become a full AdamW step of either sign, so each weight may be off
     * by steps * lr. */
    double bound = tolerance[group];
#ifndef BJ_DOUBLE
    if (weights) bound = fmax(bound, c->golden->steps * c->golden->lr);
#endif
    double *group_worst = &c->report->worst[group];
    if (isnan(*group_worst) || measure > *group_worst) *group_worst = measure;
    c->report->compared++;
    for (int i = 0; i < bj_safetensors_count(c->golden->file); i++)
        if (bj_safetensors_at(c->golden->file, i) == view) c->seen[i] = 1;
    if (!(measure <= bound))
        bj_note_failure(c->report, "%s[%zu] is %.9g, expected %.9g", full, at, worst_found,
                        worst_expected);
    return BJ_OK;
}

static bj_status compare_scalar(check *c, int group, const char *name, double found) {
    const bj_real value = (bj_real)found;
    return compare(c, group, name, &value, 1, 1, 1);
}

static bj_status compare_outputs(check *c, const bj_trainer *trainer) {
    const bj_outputs o = bj_trainer_outputs(trainer);
    const size_t B = (size_t)o.B, D = (size_t)o.D, K = (size_t)o.K, line = 2 * (size_t)o.F;
    BJ_TRY(compare(c, BJ_PARITY_O, "z", o.target, B, D, o.atom_stride));
    if (c->golden->objective.kind == BJ_ANCHOR_A)
        return compare(c, BJ_PARITY_O, "y", o.recon, B, line, o.decoded_stride);
    BJ_TRY(compare(c, BJ_PARITY_O, "c", o.context, B, D, o.context_stride));
    BJ_TRY(compare(c, BJ_PARITY_O, "u", o.atoms, B * (size_t)o.latents, D, o.atom_stride));
    BJ_TRY(compare(c, BJ_PARITY_O, "logits", o.logits, B, K, K));
    return compare(c, BJ_PARITY_O, "y", o.decoded, B * K, line, o.decoded_stride);
}

static bj_status compare_loss(check *c, const bj_loss *l) {
    const struct {
        const char *name;
        double value;
    } part[] = {{"total", l->total},   {"latent", l->latent}, {"decoded", l->decoded},
                {"rec", l->rec},       {"router", l->router}, {"usage", l->usage},
                {"var", l->variance},  {"rank", l->rank},     {"rpr", l->participation},
                {"sigreg", l->sigreg}, {"vicreg_variance", l->vicreg_variance},
                {"vicreg_covariance", l->vicreg_covariance}};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        BJ_TRY(compare_scalar(c, BJ_PARITY_L, part[i].name, part[i].value));
    return BJ_OK;
}

static bj_status compare_gradients(check *c, const bj_trainer *trainer, double norm) {
    for (int i = 0; i < bj_model_tensor_count(c->golden->model); i++) {
        const bj_tensor g = bj_trainer_gradient(trainer, i);
        if (g.data) {
            BJ_TRY(compare(c, BJ_PARITY_G, g.name, g.data, 1, g.size, g.size));
            continue;
        }
        char name[96];
        snprintf(name, sizeof name, "g.%s", g.name);
        if (bj_safetensors_find(c->golden->file, name))
            bj_note_failure(
                c->report,
                "%s: the reference has a gradient for this tensor, but this program has none",
                name);
    }
    return compare_scalar(c, BJ_PARITY_G, "norm", norm);
}

static bj_status compare_metrics(check *c, const bj_trainer *trainer) {
    const bj_outputs o = bj_trainer_outputs(trainer);
    if (c->golden->objective.kind == BJ_ANCHOR_A) {
        bj_latent_health h;
        BJ_TRY(bj_latent_health_measure(&h, o.target, o.atom_stride, o.B, o.D, c->err));
        BJ_TRY(compare_scalar(c, BJ_PARITY_M, "entropy_rank", h.entropy_rank));
        BJ_TRY(compare_scalar(c, BJ_PARITY_M, "mean_std", h.mean_std));
        return compare_scalar(c, BJ_PARITY_M, "low_std_fraction", h.low_std_fraction);
    }
    bj_metrics *metrics;
    BJ_TRY(bj_metrics_create(&metrics, o.K, o.latents, o.D, o.F, c->err));
    bj_status status = bj_metrics_add(metrics, &o, o.future, c->err);
    const bj_metric_values v = bj_metrics_values(metrics);
    bj_metrics_free(metrics);
    if (status != BJ_OK) return status;
#define METRIC(name) {#name, v.name}
    const struct {
        const char *name;
        double value;
    } metric[] = {METRIC(traj_es),        METRIC(traj_obs),     METRIC(traj_disp),
                  METRIC(end_es),         METRIC(latent_es),    METRIC(exp_ade),
                  METRIC(exp_fde),        METRIC(top1_ade),     METRIC(top1_fde),
                  METRIC(top1_mr),        METRIC(min_ade),      METRIC(min_fde),
                  METRIC(min_mr),         METRIC(brier),        METRIC(ece),
                  METRIC(exp_entropy),    METRIC(active_heads), METRIC(neff_collision),
                  METRIC(dedup_support)};
#undef METRIC
    for (size_t i = 0; i < sizeof metric / sizeof *metric; i++)
        BJ_TRY(compare_scalar(c, BJ_PARITY_M, metric[i].name, metric[i].value));
    return BJ_OK;
}

static bj_status compare_updates(check *c, bj_trainer *trainer) {
    const bj_golden *g = c->golden;
    for (int i = 0; i < g->steps; i++)
        BJ_TRY(bj_trainer_step(trainer, bj_scenes_batch(g->scenes), g->lr, NULL, c->err));
    for (int i = 0; i < bj_model_tensor_count(g->model); i++) {
        const bj_tensor w = bj_model_tensor(g->model, i), t = bj_trainer_target(trainer, i);
        BJ_TRY(compare(c, BJ_PARITY_S, w.name, w.data, 1, w.size, w.size));
        if (t.data)
            BJ_TRY(compare(c, BJ_PARITY_ST, t.name + strlen("encoder."), t.data, 1, t.size, t.size));
    }
    c->report->beyond = c->updated ? (double)c->updated_off / (double)c->updated : 0;
    if (!(c->report->beyond <= rare))
        bj_note_failure(c->report,
                        "%.3g %% of the updated weights are off by more than %g, "
                        "expected at most %g %%",
                        100 * c->report->beyond, tolerance[BJ_PARITY_S], 100 * rare);
    return BJ_OK;
}

/* Fails if a tensor in the file was not compared. Otherwise, a tensor with an unknown name would go
 * unnoticed. */
static void check_complete(check *c) {
    for (int i = 0; i < bj_safetensors_count(c->golden->file); i++) {
        const char *name = bj_safetensors_at(c->golden->file, i)->name;
        for (int g = 0; g < BJ_PARITY_GROUPS; g++) {
            const size_t n = strlen(group_name[g]);
            if (strncmp(name, group_name[g], n) == 0 && name[n] == '.' && !c->seen[i])
                bj_note_failure(c->report,
                                "%s: the reference contains this tensor, but this program does not",
                                name);
        }
    }
}

/* Returns 1 if every w. tensor equals its s. tensor. This happens if a writer stores references to
 * its parameters instead of copies. Then w. contains the weights after the last update, which
 * cannot reproduce the other values. */
static int stated_too_late(const bj_golden *g) {
    int stated = 0;
    for (int i = 0; i < bj_safetensors_count(g->file) && g->steps > 0 && g->lr > 0; i++) {
        const bj_tensor_view *s = bj_safetensors_at(g->file, i);
        char name[128];
        if (strncmp(s->name, "s.", 2)) continue;
        snprintf(name, sizeof name, "w.%s", s->name + 2);
        const bj_tensor_view *w = bj_safetensors_find(g->file, name);
        if (!w || w->bytes != s->bytes || memcmp(w->data, s->data, s->bytes)) return 0;
        stated++;
    }
    return stated > 0;
}

static bj_status run(check *c, bj_trainer *trainer) {
    bj_step_report step;
    BJ_TRY(bj_trainer_gradients(trainer, bj_scenes_batch(c->golden->scenes), &step, c->err));
    BJ_TRY(compare_outputs(c, trainer));
    BJ_TRY(compare_loss(c, &step.loss));
    BJ_TRY(compare_gradients(c, trainer, step.grad_norm));
    BJ_TRY(compare_metrics(c, trainer));
    BJ_TRY(compare_updates(c, trainer));
    check_complete(c);
    if (c->report->failed && stated_too_late(c->golden))
        snprintf(c->report->first_failure, sizeof c->report->first_failure,
                 "the file is inconsistent: every 'w.' tensor equals its 's.' tensor, "
                 "so 'w.' contains the weights after the %d updates, "
                 "not the weights from which 'o.', 'l.', 'g.' and 'm.' were computed",
                 c->golden->steps);
    return BJ_OK;
}

bj_status bj_parity_file(bj_parity_report *report, const char *path,
                         const bj_parity_options *options, bj_error *err) {
    *report = (bj_parity_report){0};
    for (int i = 0; i < BJ_PARITY_GROUPS; i++) report->worst[i] = NAN;
    const size_t length = strlen(path);
    if (length > 4 && !strcmp(path + length - 4, ".npz")) return bj_maze_parity(report, path, err);
    bj_golden golden;
    BJ_TRY(bj_golden_open(&golden, path, err));
    snprintf(report->name, sizeof report->name, "%s", golden.name);
    size_t most = 1;
    for (int i = 0; i < bj_safetensors_count(golden.file); i++) {
        const size_t n = bj_safetensors_at(golden.file, i)->count;
        most = n > most ? n : most;
    }
    check c = {.report = report, .golden = &golden, .err = err};
    bj_trainer *trainer = NULL;
    const bj_trainer_options trainer_options = {.objective = golden.objective,
                                                .optim = golden.optim,
                                                .max_batch = golden.B,
                                                .threads = options->threads,
                                                .isa = options->isa};
    bj_status status;
    BJ_GOTO(status, done, BJ_ALLOC(c.expected, most, err));
    BJ_GOTO(status, done, BJ_ALLOC(c.seen, (size_t)bj_safetensors_count(golden.file), err));
    BJ_GOTO(status, done, bj_trainer_create(&trainer, golden.model, &trainer_options, err));
    BJ_GOTO(status, done, bj_golden_load_target(&golden, trainer, err));
    BJ_GOTO(status, done, run(&c, trainer));
done:
    bj_trainer_free(trainer);
    bj_free(c.expected);
    bj_free(c.seen);
    bj_golden_reset(&golden);
    return status;
}
