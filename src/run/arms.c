/* arms.c - the arms of the experiment and the recipes of their optimization.
 *
 * An arm is an objective with its model. The table lists the settings in which an arm differs from
 * the full-set arm. A recipe contains only optimization settings, which are the same for all arms.
 * Test: tests/run/test_settings.c
 */
#include <string.h>

#include "run/settings.h"

#define SET(arm, key, value)                                                                       \
    { (key), (value), "arm " arm }

/* clang-format off */
#define MAIN(name_, title_, kind, summary_)                                                        \
    {.info = {(name_), (title_), (summary_), "main"}, .objective = (kind)}
#define FIXED(z, y)                                                                                \
    {.info = {"mdn-z" z "-y" y, "MDN, fixed " z ", " y,                                            \
              "mixture likelihood, standard deviations " z " and " y " m", "mdn"},                 \
     .objective = BJ_MDN,                                                                          \
     .set = {SET("mdn-z" z "-y" y, "loss.sigma_z", z), SET("mdn-z" z "-y" y, "loss.sigma_y", y)}}
#define LEARNED(name_, title_, summary_, scales_, ...)                                             \
    {.info = {(name_), (title_), (summary_), "mdn"}, .objective = BJ_MDN, .scales = (scales_),     \
     .set = {SET(name_, "loss.sigma_z", "0.25"), SET(name_, "loss.sigma_y", "2"), __VA_ARGS__}}
#define ABLATION(name_, title_, summary_, z, y, rec)                                               \
    {.info = {(name_), (title_), (summary_), "ablation"}, .objective = BJ_FULLSET,                 \
     .set = {SET(name_, "loss.latent", z), SET(name_, "loss.decoded", y),                          \
             SET(name_, "loss.rec", rec)}}

#define MAZE(name_, title_, kind, model_, one, summary_, ...)                                      \
    {.info = {(name_), (title_), (summary_), "maze"}, .objective = (kind), .model = (model_),      \
     .one_atom = (one), .maze = 1,                                                                 \
     .set = {SET(name_, "loss.floor", "10"), SET(name_, "loss.variance_floor", "0.04"),            \
             SET(name_, "loss.rank_floor", "24"),                                                  \
             SET(name_, "train.batch", "64"), SET(name_, "train.epochs", "10"),                    \
             SET(name_, "train.updates", "3000"), SET(name_, "train.warmup", "0"),                 \
             __VA_ARGS__}}
#define NOTHING {NULL, NULL, NULL}

static const bj_arm arms[] = {
    MAIN("fullset", "full-set", BJ_FULLSET,
         "Energy Scores of the weighted set of branches, for latents and trajectories"),
    {.info = {"uniform", "full-set, uniform", "full-set with equal weights 1/K; the router is not used",
              "main"},
     .objective = BJ_UNIFORM, .weighting = BJ_WEIGHTS_UNIFORM},
    MAIN("softwta", "soft-WTA", BJ_SOFTWTA,
         "every branch is trained with its share of a soft assignment"),
    MAIN("sinkhorn", "partial Sinkhorn", BJ_SINKHORN,
         "half winner-takes-all, half a balanced assignment over the batch"),
    MAIN("specialization", "specialization", BJ_SPECIALIZATION,
         "winner takes all: only the nearest branch is trained"),
    {.info = {"mdn", "MDN, tuned",
              "mixture likelihood with standard deviations 0.5 and 4 m, the best of twelve pairs",
              "main"},
     .objective = BJ_MDN,
     .set = {SET("mdn", "loss.sigma_z", "0.5"), SET("mdn", "loss.sigma_y", "4")}},
    {.info = {"point", "point, K = 1", "one branch as large as six branches plus their router",
              "main"},
     .objective = BJ_FULLSET, .one_atom = 1,
     .set = {SET("point", "model.atoms", "1"), SET("point", "model.atom_hidden", "3204")}},
    {.info = {"outputonly", "output-only, 1 to 6", "one latent; the decoder produces the set",
              "main"},
     .objective = BJ_OUTPUTONLY, .model = BJ_MODEL_OUTPUT_ONLY},

    FIXED("0.1", "1"),  FIXED("0.1", "2"),  FIXED("0.1", "4"),
    FIXED("0.25", "1"), FIXED("0.25", "2"), FIXED("0.25", "4"),
    FIXED("0.5", "1"),  FIXED("0.5", "2"),  FIXED("0.5", "4"),
    FIXED("0.5", "8"),  FIXED("0.5", "16"), FIXED("0.5", "32"), /* not in the paper */
    LEARNED("mdn-global", "MDN, learned global",
            "mixture likelihood with learned standard deviations, "
            "one for latents and one for trajectories",
            BJ_SCALES_GLOBAL, {NULL, NULL, NULL}),
    LEARNED("mdn-component", "MDN, component diagonal",
            "mixture likelihood with a learned standard deviation for each branch and dimension",
            BJ_SCALES_COMPONENT, {NULL, NULL, NULL}),
    LEARNED("mdn-usage", "MDN, component diagonal, usage KL",
            "mdn-component with a penalty of 0.01 on uneven use of branches",
            BJ_SCALES_COMPONENT, SET("mdn-usage", "loss.usage_kl", "0.01")),

    ABLATION("decoded-only", "decoded only", "full-set without latent and reconstruction terms",
             "0", "1", "0"),
    ABLATION("no-rec", "no reconstruction", "full-set without reconstruction", "1", "1", "0"),
    ABLATION("latent-half", "latent x 0.5", "full-set, latent term halved", "0.5", "1", "1"),
    ABLATION("latent-double", "latent x 2", "full-set, latent term doubled", "2", "1", "1"),
    ABLATION("decoded-half", "decoded x 0.5", "full-set, decoded term halved", "1", "0.5", "1"),
    ABLATION("decoded-double", "decoded x 2", "full-set, decoded term doubled", "1", "2", "1"),

    {.info = {"anchor-a", "anchor, stage A",
              "encodes and decodes futures, with lower bounds on variance and rank", "anchor"},
     .objective = BJ_ANCHOR_A, .set = {SET("anchor-a", "train.batch", "512")}},
    {.info = {"anchor-b", "anchor, stage B, K = 6",
              "latent Energy Score of six branches, with targets from a frozen stage A", "anchor"},
     .objective = BJ_ANCHOR_B, .needs_anchor = 1,
     .set = {SET("anchor-b", "loss.decoded", "0"), SET("anchor-b", "loss.rec", "0"),
             SET("anchor-b", "train.batch", "512"), SET("anchor-b", "train.patience", "8")}},
    {.info = {"anchor-b-point", "anchor, stage B, K = 1",
              "latent distance of one wide branch, with targets from a frozen stage A", "anchor"},
     .objective = BJ_ANCHOR_B, .needs_anchor = 1, .one_atom = 1,
     .set = {SET("anchor-b-point", "model.atoms", "1"),
             SET("anchor-b-point", "model.atom_hidden", "3204"),
             SET("anchor-b-point", "loss.decoded", "0"), SET("anchor-b-point", "loss.rec", "0"),
             SET("anchor-b-point", "train.batch", "512"),
             SET("anchor-b-point", "train.patience", "8")}},

    MAZE("maze-branch", "Branch-JEPA", BJ_SPECIALIZATION, BJ_MODEL_BRANCH, 0,
         "mazes: eight branches, trained in latent space with winner takes all", NOTHING),
    MAZE("maze-mdn", "MDN", BJ_MDN, BJ_MODEL_BRANCH, 0,
         "mazes: eight branches, mixture likelihood of the latent",
         SET("maze-mdn", "loss.sigma_z", "0.1")),
    MAZE("maze-standard", "Standard JEPA", BJ_FULLSET, BJ_MODEL_BRANCH, 1,
         "mazes: one branch as large as eight branches plus their router", NOTHING),
    MAZE("maze-fused", "fused MoE", BJ_FUSED, BJ_MODEL_FUSED, 0,
         "mazes: the normalized weighted mean of eight branches", NOTHING),
    MAZE("maze-variational", "variational", BJ_VARIATIONAL, BJ_MODEL_VARIATIONAL, 0,
         "mazes: context plus a Gaussian variable, read at the prior mean and seven draws",
         SET("maze-variational", "loss.kl", "0.01")),
    MAZE("maze-codebook", "codebook", BJ_FULLSET, BJ_MODEL_CODEBOOK, 0,
         "mazes: eight codes, the same for every context, "
         "fitted to the targets of a standard model",
         NOTHING),
};
/* clang-format on */
enum { ARMS = sizeof arms / sizeof *arms };

typedef struct recipe {
    bj_recipe_info info;
    bj_assignment set[BJ_LAYER_SIZE];
} recipe;

#define FAST(key, value)                                                                           \
    { (key), (value), "recipe fast" }
#define SMALL(key, value)                                                                          \
    { (key), (value), "recipe small" }

static const recipe recipes[] = {
    {{"paper", "22,290 updates of 256 scenes (30 epochs of 189,964 scenes)"}, {{NULL, NULL, NULL}}},
    {{"fast",
      "conditioned training with schedule-free AdamW; learns to use the map within minutes"},
     {FAST("optim.conditioned", "1"), FAST("optim.schedule_free", "1"), FAST("optim.lr", "0.002"),
      FAST("optim.beta2", "0.98"), FAST("optim.ema", "0.99"), FAST("optim.clip", "100"),
      FAST("optim.weight_decay", "0.1"), FAST("train.batch", "64"), FAST("train.epochs", "10"),
      FAST("train.warmup", "0"), FAST("train.warmup_updates", "100"),
      FAST("train.schedule", "constant")}},
    {{"small", "many small steps, for a few thousand scenes"},
     {SMALL("optim.lr", "0.0005"), SMALL("train.batch", "64"), SMALL("train.epochs", "30"),
      SMALL("train.warmup", "1")}},
};
enum { RECIPES = sizeof recipes / sizeof *recipes };

/* ------------------------------------------------------------------------------------ interface */

int bj_arm_count(void) { return ARMS; }

bj_arm_info bj_arm_at(int index) {
    return index >= 0 && index < ARMS ? arms[index].info : (bj_arm_info){0};
}

int bj_arm_find(const char *name) {
    for (int i = 0; name && i < ARMS; i++)
        if (!strcmp(arms[i].info.name, name)) return i;
    return -1;
}

int bj_recipe_count(void) { return RECIPES; }

bj_recipe_info bj_recipe_at(int index) {
    return index >= 0 && index < RECIPES ? recipes[index].info : (bj_recipe_info){0};
}

const bj_arm *bj_arm_row(int index) { return &arms[index]; }
const bj_assignment *bj_recipe_set(int index) { return recipes[index].set; }

bj_status bj_arm_named(const bj_arm **out, const char *name, const char *origin, bj_error *err) {
    const int found = bj_arm_find(name);
    bj_nearest near = BJ_NEAREST(name);
    *out = NULL;
    if (found >= 0) {
        *out = &arms[found];
        return BJ_OK;
    }
    for (int i = 0; i < ARMS; i++) bj_nearest_offer(&near, arms[i].info.name);
    if (near.best)
        return BJ_FAIL(err, BJ_EARG, "%s: no arm '%s'; did you mean '%s'?", origin, name,
                       near.best);
    return BJ_FAIL(err, BJ_EARG, "%s: no arm '%s'; 'bjepa config arms' lists the arms", origin,
                   name);
}

bj_status bj_recipe_named(int *out, const char *name, const char *origin, bj_error *err) {
    bj_nearest near = BJ_NEAREST(name);
    for (int i = 0; i < RECIPES; i++) {
        if (!strcmp(recipes[i].info.name, name)) {
            *out = i;
            return BJ_OK;
        }
        bj_nearest_offer(&near, recipes[i].info.name);
    }
    if (near.best)
        return BJ_FAIL(err, BJ_EARG, "%s: no recipe '%s'; did you mean '%s'?", origin, name,
                       near.best);
    return BJ_FAIL(err, BJ_EARG, "%s: no recipe '%s', expected paper, fast or small", origin, name);
}
