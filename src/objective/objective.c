/* objective.c - names, defaults and checks of the objectives, and the functions called by a
 * training step.
 *
 *   total = lambda_z latent + lambda_y decoded + lambda_rec rec
 *           + lambda_router router         winner-takes-all family
 *           + usage_kl usage               MDN
 *   total = lambda_rec rec + variance + rank_weight rank      anchor stage A
 *   total = lambda_z latent                                   anchor stage B
 *   ... + floor_weight (variance + rank_weight rank)          without decoder, except stage A
 *   ... + kl_weight KL                                        variational
 *   ... + sigreg SIGReg + vicreg_variance v + vicreg_covariance c     any, regularizers.h
 *
 * A term with weight zero is reported, but it is not part of the total and has no gradient.
 * Terms are means over the batch in the order of core/shards.h.
 * Test  tests/objective/test_objective.c
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/status.h"
#include "objective/parts.h"

static const char *const names[] = {
    [BJ_FULLSET] = "fullset",
    [BJ_UNIFORM] = "uniform",
    [BJ_SPECIALIZATION] = "specialization",
    [BJ_SOFTWTA] = "softwta",
    [BJ_SINKHORN] = "sinkhorn",
    [BJ_MDN] = "mdn",
    [BJ_OUTPUTONLY] = "outputonly",
    [BJ_ANCHOR_A] = "anchor_a",
    [BJ_ANCHOR_B] = "anchor_b",
    [BJ_FUSED] = "fused",
    [BJ_VARIATIONAL] = "variational",
};
enum { KINDS = sizeof names / sizeof *names };

static int is_kind(bj_objective_kind kind) { return (int)kind >= 0 && (int)kind < KINDS; }

const char *bj_objective_name(bj_objective_kind kind) {
    return is_kind(kind) ? names[kind] : "unknown objective";
}

bj_status bj_objective_find(bj_objective_kind *out, const char *name, bj_error *err) {
    if (!out || !name) return BJ_FAIL(err, BJ_EARG, "objective: name or output is missing");
    for (int i = 0; i < KINDS; i++)
        if (strcmp(name, names[i]) == 0) {
            *out = (bj_objective_kind)i;
            return BJ_OK;
        }
    return BJ_FAIL(err, BJ_EARG,
                   "objective '%s' is unknown, expected fullset, uniform, specialization, softwta, "
                   "sinkhorn, mdn, outputonly, anchor_a, anchor_b, fused or variational",
                   name);
}

bj_objective bj_objective_default(bj_objective_kind kind) {
    const int latent_only = kind == BJ_ANCHOR_B || kind == BJ_FUSED || kind == BJ_VARIATIONAL;
    return (bj_objective){.kind = kind,
                          .lambda_z = 1,
                          .lambda_y = latent_only ? 0 : 1,
                          .lambda_rec = latent_only ? 0 : 1,
                          .lambda_router = 1,
                          .beta = 1,
                          .tau = 0.25,
                          .rho = 0.5,
                          .eps = 0.1,
                          .sinkhorn_iters = 50,
                          .sigreg_slices = 256,
                          .sigma_z = 0.5,
                          .sigma_y = 4,
                          .usage_kl = 0,
                          .variance_floor = 0.02,
                          .rank_floor = 8,
                          .rank_weight = 0.25,
                          .kl_weight = kind == BJ_VARIATIONAL ? 1 : 0,
                          .vicreg_gamma = 1};
}

static int is_winner(bj_objective_kind kind) {
    return kind == BJ_SPECIALIZATION || kind == BJ_SOFTWTA || kind == BJ_SINKHORN;
}

bj_term_weights bj_objective_weights(const bj_objective *o) {
    bj_term_weights w = {o->lambda_z, o->lambda_y, o->lambda_rec, 0, 0, 0};
    if (is_winner(o->kind)) w.router = o->lambda_router;
    if (o->kind == BJ_MDN) w.usage = o->usage_kl;
    if (o->kind == BJ_ANCHOR_A) w.latent = w.decoded = 0;
    if (o->kind == BJ_ANCHOR_B || o->kind == BJ_FUSED || o->kind == BJ_VARIATIONAL)
        w.decoded = w.rec = 0;
    if (o->kind == BJ_VARIATIONAL) w.kl = o->kl_weight;
    return w;
}

/* -------------------------------------------------------------------------------------- checks */

static bj_status check_numbers(const bj_objective *o, bj_error *err) {
    const struct {
        const char *name;
        double value, min, max;
        int open; /* 1: min itself is not allowed */
    } fields[] = {
        /* clang-format off */
        {"lambda_z",       o->lambda_z,       0, HUGE_VAL, 0},
        {"lambda_y",       o->lambda_y,       0, HUGE_VAL, 0},
        {"lambda_rec",     o->lambda_rec,     0, HUGE_VAL, 0},
        {"lambda_router",  o->lambda_router,  0, HUGE_VAL, 0},
        {"beta",           o->beta,           0, 1,        1},
        {"tau",            o->tau,            0, HUGE_VAL, 1},
        {"rho",            o->rho,            0, 1,        0},
        {"eps",            o->eps,            0, HUGE_VAL, 1},
        {"sinkhorn_iters", o->sinkhorn_iters, 1, HUGE_VAL, 0},
        {"sigma_z",        o->sigma_z,        0, HUGE_VAL, 1},
        {"sigma_y",        o->sigma_y,        0, HUGE_VAL, 1},
        {"usage_kl",       o->usage_kl,       0, HUGE_VAL, 0},
        {"variance_floor", o->variance_floor, 0, HUGE_VAL, 0},
        {"rank_floor",     o->rank_floor,     0, HUGE_VAL, 1},
        {"rank_weight",    o->rank_weight,    0, HUGE_VAL, 0},
        {"floor_weight",   o->floor_weight,   0, HUGE_VAL, 0},
        {"kl_weight",      o->kl_weight,      0, HUGE_VAL, 0},
        {"sigreg",         o->sigreg,         0, HUGE_VAL, 0},
        {"sigreg_slices",  o->sigreg_slices,  1, 1 << 16,  0},
        {"vicreg_variance",   o->vicreg_variance,   0, HUGE_VAL, 0},
        {"vicreg_covariance", o->vicreg_covariance, 0, HUGE_VAL, 0},
        {"vicreg_gamma",   o->vicreg_gamma,   0, HUGE_VAL, 0},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const double v = fields[i].value, min = fields[i].min, max = fields[i].max;
        if (isfinite(v) && v <= max && (fields[i].open ? v > min : v >= min)) continue;
        if (isfinite(max))
            return BJ_FAIL(err, BJ_EARG, "objective %s: %s is %g, expected a number in %s%g,%g]",
                           names[o->kind], fields[i].name, v, fields[i].open ? "(" : "[", min, max);
        return BJ_FAIL(err, BJ_EARG, "objective %s: %s is %g, expected a finite number %s %g",
                       names[o->kind], fields[i].name, v, fields[i].open ? "above" : "of at least",
                       min);
    }
    return BJ_OK;
}

/* Checks settings whose validity depends on whether the model has a decoder. */
static bj_status check_latent_only(const bj_objective *o, const bj_arch *arch, bj_error *err) {
    const char *name = names[o->kind];
    const bj_term_weights w = bj_objective_weights(o);
    if (arch->encoder == BJ_ENCODER_SCENE) { /* scene models always decode */
        if (o->kind == BJ_FUSED || o->kind == BJ_VARIATIONAL || o->floor_weight != 0)
            return BJ_FAIL(err, BJ_EARG,
                           "objective %s (floor_weight %g): "
                           "expected a model that does not decode trajectories",
                           name, o->floor_weight);
        return BJ_OK;
    }
    if (w.decoded != 0 || w.rec != 0)
        return BJ_FAIL(err, BJ_EARG,
                       "objective %s: lambda_y is %g and lambda_rec is %g, "
                       "expected 0 for both, because the model has no decoder",
                       name, o->lambda_y, o->lambda_rec);
    if (o->kind == BJ_SINKHORN || o->kind == BJ_ANCHOR_A || o->kind == BJ_ANCHOR_B)
        return BJ_FAIL(err, BJ_EARG, "objective %s: needs a decoder, but the model has none", name);
    return BJ_OK;
}

bj_status bj_objective_check(const bj_objective *o, const bj_arch *arch, bj_error *err) {
    if (!o || !arch)
        return BJ_FAIL(err, BJ_EARG, "objective: objective or architecture is missing");
    if (!is_kind(o->kind))
        return BJ_FAIL(err, BJ_EARG, "objective: kind is %d, expected 0 to %d", (int)o->kind,
                       KINDS - 1);
    const char *name = names[o->kind];
    BJ_TRY(check_numbers(o, err));
    static const char *const kinds[] = {"branch", "output-only", "fused", "variational",
                                        "codebook"};
    const bj_model_kind wanted = o->kind == BJ_OUTPUTONLY    ? BJ_MODEL_OUTPUT_ONLY
                                 : o->kind == BJ_FUSED       ? BJ_MODEL_FUSED
                                 : o->kind == BJ_VARIATIONAL ? BJ_MODEL_VARIATIONAL
                                                             : BJ_MODEL_BRANCH;
    const int point = o->kind == BJ_FULLSET && arch->kind == BJ_MODEL_CODEBOOK;
    if (arch->kind != wanted && !point)
        return BJ_FAIL(err, BJ_EARG, "objective %s: the model is %s, expected %s", name,
                       kinds[arch->kind], kinds[wanted]);
    BJ_TRY(check_latent_only(o, arch, err));
    if (arch->scales != BJ_SCALES_FIXED && o->kind != BJ_MDN)
        return BJ_FAIL(err, BJ_EARG,
                       "objective %s: the model's scales are %s, "
                       "expected fixed scales, because only mdn learns them",
                       name, arch->scales == BJ_SCALES_GLOBAL ? "global" : "component");
    const bj_term_weights w = bj_objective_weights(o);
    const double floors = o->kind == BJ_ANCHOR_A ? o->variance_floor + o->rank_weight : 0;
    if (w.latent + w.decoded + w.rec + w.router + w.usage + w.kl + floors + o->floor_weight == 0 &&
        !bj_regularizers_active(o))
        return BJ_FAIL(err, BJ_EARG,
                       "objective %s: lambda_z is %g, lambda_y is %g and lambda_rec is %g, "
                       "expected at least one weight above 0, because no term is left",
                       name, o->lambda_z, o->lambda_y, o->lambda_rec);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- reach */

static unsigned reach_of(const bj_objective *o, int K, bj_scales scales) {
    const bj_term_weights w = bj_objective_weights(o);
    const int forecast = w.latent != 0 || w.decoded != 0;
    unsigned reach = w.decoded != 0 || w.rec != 0 ? BJ_REACH_DECODER : 0;
    if (o->kind == BJ_ANCHOR_A) return reach | BJ_REACH_ENCODER;
    if (forecast || w.kl != 0) reach |= BJ_REACH_ENCODER | BJ_REACH_ATOMS;
    if (o->floor_weight != 0 || bj_regularizers_active(o)) reach |= BJ_REACH_ENCODER;
    switch (o->kind) {
    case BJ_FULLSET:
    case BJ_FUSED:
    case BJ_ANCHOR_B:
        if (K > 1 && forecast) reach |= BJ_REACH_ROUTER;
        break;
    case BJ_OUTPUTONLY: /* only the Energy Score of trajectories uses weights; the router exists for
                           every K */
        if (w.decoded != 0) reach |= BJ_REACH_ROUTER | BJ_REACH_RESIDUAL;
        break;
    case BJ_SPECIALIZATION:
    case BJ_SOFTWTA:
    case BJ_SINKHORN:
        if (K > 1 && w.router != 0) reach |= BJ_REACH_ROUTER | BJ_REACH_ENCODER;
        break;
    case BJ_MDN:
        if (K > 1 && (forecast || w.usage != 0)) reach |= BJ_REACH_ROUTER | BJ_REACH_ENCODER;
        if (scales != BJ_SCALES_FIXED && w.latent != 0) reach |= BJ_REACH_SCALE_Z;
        if (scales != BJ_SCALES_FIXED && w.decoded != 0) reach |= BJ_REACH_SCALE_Y;
        break;
    case BJ_UNIFORM:
    case BJ_VARIATIONAL:
    case BJ_ANCHOR_A: break;
    }
    return reach;
}

unsigned bj_objective_reach(const bj_objective *objective, const bj_arch *arch) {
    const int routed = arch->kind != BJ_MODEL_CODEBOOK && arch->kind != BJ_MODEL_VARIATIONAL;
    return reach_of(objective, routed ? arch->atoms : 1, arch->scales);
}

unsigned bj_objective_reach_step(const bj_objective *objective, const bj_objective_io *io) {
    return reach_of(objective, io->K, io->scales);
}

int bj_objective_is_hard(const bj_objective *objective) {
    return objective->kind == BJ_SPECIALIZATION;
}

int bj_objective_is_coupled(const bj_objective *objective) {
    if (objective->floor_weight != 0) return 1;
    return objective->kind == BJ_SINKHORN || objective->kind == BJ_ANCHOR_A ||
           (objective->kind == BJ_MDN && objective->usage_kl != 0);
}

/* ---------------------------------------------------------------------------------------- step */

size_t bj_objective_moments_size(const bj_objective *objective, int B, int D) {
    if (objective->kind == BJ_ANCHOR_A) return bj_anchor_size(B, D);
    return objective->floor_weight != 0 ? bj_floors_size(B, D) : 0;
}

void bj_objective_begin(const bj_objective *objective, bj_objective_io *io) {
    double sum = 0, power = 1;
    assert(io->B > 0 && io->K >= 1 && io->K <= BJ_MAX_ATOMS && (io->L == io->K || io->L == 1));
    if (!io->time_weight) return; /* stage B decodes nothing */
    for (int t = 0; t < io->F; t++, power *= objective->beta) sum += io->time_weight[t] = power;
    for (int t = 0; t < io->F; t++) io->time_weight[t] /= sum;
}

void bj_objective_scenes_forward(const bj_objective *objective, bj_objective_io *io, int b0,
                                 int b1) {
    for (int b = b0; b < b1; b++)
        for (int i = 0; i < BJ_TERMS; i++) io->terms[(size_t)b * BJ_TERMS + i] = 0;
    if (objective->kind != BJ_ANCHOR_B && io->rec) bj_reconstruction_forward(io, b0, b1);
    if (objective->kind == BJ_ANCHOR_A) return;
    for (int b = b0; b < b1; b++) {
        bj_real *pi = io->pi + (size_t)b * io->K;
        if (objective->kind == BJ_UNIFORM)
            for (int k = 0; k < io->K; k++) pi[k] = (bj_real)1 / (bj_real)io->K;
        else bj_router_weights(pi, io->logits ? io->logits + (size_t)b * io->K : NULL, io->K);
    }
    if (is_winner(objective->kind)) bj_winner_forward(objective, io, b0, b1);
    else if (objective->kind == BJ_MDN) bj_mixture_forward(objective, io, b0, b1);
    else if (objective->kind == BJ_FUSED) bj_fused_forward(io, b0, b1);
    else bj_energy_forward(objective, io, b0, b1);
    if (objective->kind == BJ_VARIATIONAL) bj_variational_forward(io, b0, b1);
}

void bj_objective_couple(const bj_objective *objective, bj_objective_io *io) {
    if (objective->kind == BJ_SINKHORN) bj_winner_couple(objective, io);
    if (objective->kind == BJ_ANCHOR_A) bj_anchor_couple(objective, io);
    if (objective->kind == BJ_MDN && objective->usage_kl != 0) bj_mixture_couple(io);
    if (objective->floor_weight != 0) bj_floors_couple(objective, io);
}

void bj_objective_scenes_backward(const bj_objective *objective, bj_objective_io *io, int b0,
                                  int b1) {
    /* Stage A needs drec even if the weight is zero, because the gradient of the latent passes
     * through it. */
    if (objective->kind == BJ_ANCHOR_A ||
        (bj_objective_reach_step(objective, io) & BJ_REACH_DECODER))
        bj_reconstruction_backward(bj_objective_weights(objective).rec, io, b0, b1);
    if (objective->kind == BJ_ANCHOR_A) bj_anchor_backward(io, b0, b1);
    else if (is_winner(objective->kind)) bj_winner_backward(objective, io, b0, b1);
    else if (objective->kind == BJ_MDN) bj_mixture_backward(objective, io, b0, b1);
    else if (objective->kind == BJ_FUSED) bj_fused_backward(objective, io, b0, b1);
    else bj_energy_backward(objective, io, b0, b1);
    if (objective->kind == BJ_VARIATIONAL) bj_variational_backward(objective, io, b0, b1);
    if (objective->floor_weight != 0) bj_floors_backward(objective, io, b0, b1);
}

static double batch_mean(const bj_objective_io *io, int term) {
    return bj_shards_sum(io->terms + term, io->B, BJ_TERMS) / io->B;
}

/* Returns weight * term, or 0 if the weight is 0, even if the term is not finite. */
static double weighted(double weight, double term) { return weight == 0 ? 0 : weight * term; }

bj_loss bj_objective_finish(const bj_objective *objective, bj_objective_io *io) {
    const bj_term_weights w = bj_objective_weights(objective);
    bj_loss loss = {.latent = batch_mean(io, BJ_TERM_LATENT),
                    .decoded = batch_mean(io, BJ_TERM_DECODED),
                    .rec = batch_mean(io, BJ_TERM_REC),
                    .router = batch_mean(io, BJ_TERM_ROUTER)};
    if (objective->kind == BJ_MDN) {
        double usage[BJ_MAX_ATOMS];
        loss.usage = bj_mixture_usage(usage, io->logits, io->B, io->K);
        bj_mixture_finish(objective, io);
    }
    if (objective->kind == BJ_ANCHOR_A) {
        bj_anchor_loss(&loss, io);
        loss.total = loss.variance + weighted(objective->rank_weight, loss.rank);
    }
    if (objective->kind == BJ_VARIATIONAL) loss.usage = batch_mean(io, BJ_TERM_KL);
    if (objective->floor_weight != 0) {
        bj_floors_loss(&loss, io);
        loss.total = objective->floor_weight *
                     (loss.variance + weighted(objective->rank_weight, loss.rank));
    }
    loss.total += weighted(w.latent, loss.latent) + weighted(w.decoded, loss.decoded) +
                  weighted(w.rec, loss.rec) + weighted(w.router, loss.router) +
                  weighted(w.usage + w.kl, loss.usage);
    if (io->regularizers) {
        bj_regularizers_loss(&loss, io->regularizers);
        loss.total += weighted(objective->sigreg, loss.sigreg) +
                      weighted(objective->vicreg_variance, loss.vicreg_variance) +
                      weighted(objective->vicreg_covariance, loss.vicreg_covariance);
    }
    return loss;
}
