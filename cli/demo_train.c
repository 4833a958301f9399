/* demo_train.c - two small models trained side by side on synthetic scenes; see demo.h.
 *
 * Seeds come from one generator in a fixed order: the initial weights (one seed for both models),
 * the held-out sets, then one for the scenes of every step.
 */
#include "demo.h"

#include <math.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------------------------- sizes */

/* Large enough to learn these scenes, small enough to do it in half a minute. */
static bj_arch fullset_arch(void) {
    bj_arch arch = bj_arch_paper();
    arch.obs = 20;
    arch.neighbors = 8;
    arch.embed = 64;
    arch.token_hidden = 64;
    arch.latent = 128;
    arch.proj_hidden = 128;
    arch.atom_hidden = 128;
    arch.router_hidden = 64;
    arch.decoder_hidden = 128;
    arch.trunk = 128;
    return arch;
}

/* One branch, as wide as it takes to have as many parameters as the given model. */
static bj_arch point_arch(const bj_arch *fullset) {
    const size_t wanted = bj_arch_counts(fullset).total;
    bj_arch arch = *fullset;
    arch.atoms = 1;
    while (bj_arch_counts(&arch).total < wanted) arch.atom_hidden++;
    return arch;
}

/* ------------------------------------------------------------------------------------- lifetime */

static bj_status create_run(demo_run *r, uint64_t seed, int steps, int threads, bj_error *err) {
    const bj_trainer_options options = {.objective = bj_objective_default(BJ_FULLSET),
                                        .optim = bj_optim_default(),
                                        .max_batch = DEMO_BATCH,
                                        .threads = threads};
    const size_t branches = (size_t)DEMO_HELD_OUT * (size_t)r->arch.atoms, n = (size_t)steps;
    r->loss = malloc(n * sizeof *r->loss);
    r->decoded = malloc(n * sizeof *r->decoded);
    r->weights = malloc(branches * sizeof *r->weights);
    r->paths = malloc(branches * 2 * (size_t)r->arch.fut * sizeof *r->paths);
    if (!r->loss || !r->decoded || !r->weights || !r->paths)
        return cli_error(err, BJ_ENOMEM, "no memory for the losses of %d steps", steps);
    const bj_status status = bj_model_create(&r->model, &r->arch, seed, err);
    return status == BJ_OK ? bj_trainer_create(&r->trainer, r->model, &options, err) : status;
}

bj_status demo_create(demo *d, uint64_t seed, int steps, int threads, bj_error *err) {
    *d = (demo){.seed = seed, .steps = steps, .rng = bj_rng_seed(seed)};
    const uint64_t weights = bj_rng_next(&d->rng);
    d->run[DEMO_FULLSET] = (demo_run){.title = "full-set", .arch = fullset_arch()};
    d->run[DEMO_POINT] =
        (demo_run){.title = "point", .arch = point_arch(&d->run[DEMO_FULLSET].arch)};
    bj_status status = BJ_OK;
    for (int i = 0; i < DEMO_RUNS && status == BJ_OK; i++)
        status = create_run(&d->run[i], weights, steps, threads, err);
    for (int i = 0; i < DEMO_SETS && status == BJ_OK; i++)
        status = bj_scenes_synthetic(&d->held_out[i], &d->run[0].arch, DEMO_BATCH,
                                     bj_rng_next(&d->rng), err);
    if (status == BJ_OK) d->isa = bj_trainer_isa(d->run[0].trainer);
    else demo_free(d);
    return status;
}

void demo_free(demo *d) {
    for (int i = 0; i < DEMO_RUNS; i++) {
        bj_trainer_free(d->run[i].trainer);
        bj_model_free(d->run[i].model);
        free(d->run[i].loss);
        free(d->run[i].decoded);
        free(d->run[i].weights);
        free(d->run[i].paths);
    }
    for (int i = 0; i < DEMO_SETS; i++) bj_scenes_free(d->held_out[i]);
    *d = (demo){0};
}

/* --------------------------------------------------------------------------------------- scenes */

const bj_scene *demo_scene_at(const demo *d, int index) {
    return bj_scenes_batch(d->held_out[index / DEMO_BATCH])->scenes + index % DEMO_BATCH;
}

double demo_speed(const demo *d, int index) {
    const bj_real *state = demo_scene_at(d, index)->focal +
                           (size_t)(d->run[0].arch.obs - 1) * BJ_FOCAL_FEATURES; /* the last */
    return hypot((double)state[2], (double)state[3]);
}

typedef struct ranked {
    double speed;
    int index;
} ranked;

static int by_speed(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->speed != y->speed) return x->speed < y->speed ? -1 : 1;
    return x->index - y->index;
}

/* Evenly over the speeds, slowest first. Futures and predictions have no say. */
static void choose_shown(demo *d) {
    ranked scene[DEMO_HELD_OUT];
    for (int i = 0; i < DEMO_HELD_OUT; i++) scene[i] = (ranked){demo_speed(d, i), i};
    qsort(scene, DEMO_HELD_OUT, sizeof *scene, by_speed);
    for (int i = 0; i < DEMO_SHOWN; i++)
        d->shown[i] = scene[(2 * i + 1) * DEMO_HELD_OUT / (2 * DEMO_SHOWN)].index;
}

/* ------------------------------------------------------------------------------------- training */

static bj_status measure(bj_metric_values *out, const demo *d, const demo_run *r, bj_error *err) {
    const bj_arch *a = &r->arch;
    bj_metrics *metrics;
    bj_status status = bj_metrics_create(&metrics, a->atoms, a->atoms, a->latent, a->fut, err);
    for (int i = 0; i < DEMO_SETS && status == BJ_OK; i++) {
        /* weights stay */
        status = bj_trainer_gradients(r->trainer, bj_scenes_batch(d->held_out[i]), NULL, err);
        if (status != BJ_OK) break;
        const bj_outputs outputs = bj_trainer_outputs(r->trainer);
        status = bj_metrics_add(metrics, &outputs, outputs.future, err);
    }
    if (status == BJ_OK) *out = bj_metrics_values(metrics);
    bj_metrics_free(metrics);
    return status;
}

static bj_status predict(const demo *d, const demo_run *r, bj_error *err) {
    const bj_predictor_options options = {.max_batch = DEMO_BATCH, .threads = 1};
    const size_t branches = (size_t)DEMO_BATCH * (size_t)r->arch.atoms;
    const size_t line = 2 * (size_t)r->arch.fut;
    bj_predictor *predictor;
    bj_status status = bj_predictor_create(&predictor, r->model, &options, err);
    for (size_t i = 0; i < DEMO_SETS && status == BJ_OK; i++)
        status = bj_predict(predictor, bj_scenes_batch(d->held_out[i]), r->weights + i * branches,
                            r->paths + i * branches * line, NULL, err);
    bj_predictor_free(predictor);
    return status;
}

/* The same fresh scenes for both models. */
static bj_status train_step(demo *d, bj_error *err) {
    const int step = d->done, warmup = (d->steps + 14) / 15;
    const double lr = bj_lr_at(step, 1, d->steps, d->steps > 1 ? warmup : 0, DEMO_LEARNING_RATE);
    bj_scenes *scenes;
    bj_status status =
        bj_scenes_synthetic(&scenes, &d->run[0].arch, DEMO_BATCH, bj_rng_next(&d->rng), err);
    for (int i = 0; i < DEMO_RUNS && status == BJ_OK; i++) {
        bj_step_report report;
        status = bj_trainer_step(d->run[i].trainer, bj_scenes_batch(scenes), lr, &report, err);
        if (status != BJ_OK) break;
        d->run[i].loss[step] = report.loss.total;
        d->run[i].decoded[step] = report.loss.decoded;
    }
    bj_scenes_free(scenes);
    d->done += status == BJ_OK;
    return status;
}

/* Mean over the last steps. */
static double recent(const double *values, int done) {
    double sum = 0;
    const int n = done < 20 ? done : 20;
    for (int i = done - n; i < done; i++) sum += values[i];
    return n ? sum / n : 0;
}

static bj_status train_all(demo *d, const volatile sig_atomic_t *stop, bj_error *err) {
    char note[64] = "";
    cli_progress progress = cli_progress_begin("steps", d->steps);
    bj_status status = BJ_OK;
    while (d->done < d->steps && !*stop && status == BJ_OK) {
        status = train_step(d, err);
        snprintf(note, sizeof note, "losses %.2f and %.2f", recent(d->run[0].loss, d->done),
                 recent(d->run[1].loss, d->done));
        cli_progress_show(&progress, d->done, note);
    }
    cli_progress_end(&progress, d->done, note);
    return status;
}

bj_status demo_train(demo *d, const volatile sig_atomic_t *stop, bj_error *err) {
    bj_status status = BJ_OK;
    choose_shown(d);
    for (int i = 0; i < DEMO_RUNS && status == BJ_OK; i++)
        status = measure(&d->run[i].before, d, &d->run[i], err);
    if (status == BJ_OK) status = train_all(d, stop, err);
    if (status != BJ_OK || d->done < d->steps) return status;
    for (int i = 0; i < DEMO_RUNS && status == BJ_OK; i++) {
        status = measure(&d->run[i].after, d, &d->run[i], err);
        if (status == BJ_OK) status = predict(d, &d->run[i], err);
    }
    return status;
}

/* -------------------------------------------------------------------------------------- metrics */

static double traj_es(const bj_metric_values *v) { return v->traj_es; }
static double exp_ade(const bj_metric_values *v) { return v->exp_ade; }
static double top1_ade(const bj_metric_values *v) { return v->top1_ade; }
static double min_ade(const bj_metric_values *v) { return v->min_ade; }
static double brier(const bj_metric_values *v) { return v->brier; }
static double exp_entropy(const bj_metric_values *v) { return v->exp_entropy; }
static double dedup_support(const bj_metric_values *v) { return v->dedup_support; }

const demo_metric demo_metrics[] = {
    {"traj_es", "trajectory Energy Score", "m",
     "distance of the weighted set to the future less half its own spread: lower is better, and "
     "only honest weights win",
     traj_es},
    {"exp_ade", "expected ADE", "m",
     "mean distance to the future, weighted over all branches; a set that spreads pays for it here",
     exp_ade},
    {"top1_ade", "top-1 ADE", "m", "the same for the branch with the largest weight", top1_ade},
    {"min_ade", "min ADE (diagnostic)", "m",
     "the same for the branch that turned out nearest; it needs the answer, so it ranks nothing",
     min_ade},
    {"brier", "maneuver Brier", "",
     "squared error of the probabilities of stop, straight, left and right: lower is better",
     brier},
    {"exp_entropy", "exp entropy", "branches",
     "how many equally weighted branches the weights amount to", exp_entropy},
    {"dedup_support", "dedup support", "endpoints", "the same after merging endpoints within 1 m",
     dedup_support},
};
const int demo_metric_count = sizeof demo_metrics / sizeof demo_metrics[0];
