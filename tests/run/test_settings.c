/* test_settings.c - tests arms, recipes and settings: resolved values, rejected values, and
 * conversion to and from text and JSON. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/sha256.h"
#include "run/settings.h"
#include "support/test.h"

enum { MOST = BJ_SETTINGS_MAX };

static char path[] = "/tmp/test_settings.XXXXXX";
static bj_error err;

static int is_stage_b(const char *arm) { return !strncmp(arm, "anchor-b", 8); }

/* Returns the settings of an arm with a recipe and up to one more assignment. */
static bj_status resolve_arm(bj_settings *s, const char **origins, const char *arm,
                             const char *recipe, const char *key, const char *value) {
    bj_assignment list[4] = {{"arm", arm, "test"}, {"recipe", recipe, "test"}};
    int count = 2;
    if (is_stage_b(arm)) list[count++] = (bj_assignment){"anchor", "stage/a", "test"};
    if (key) list[count++] = (bj_assignment){key, value, "here:7"};
    err.message[0] = '\0';
    return bj_settings_resolve(s, origins, list, count, &err);
}

static bj_settings settings_of(const char *arm) {
    bj_settings s = {0};
    CHECK_OK(resolve_arm(&s, NULL, arm, "paper", NULL, NULL), err);
    return s;
}

/* Equal numbers have equal texts, because the shortest text is unique. */
static int is_same(const bj_settings *a, const bj_settings *b) {
    char left[BJ_SETTING_TEXT_SIZE], right[BJ_SETTING_TEXT_SIZE];
    for (int i = 0; i < bj_setting_count(); i++) {
        bj_setting_text(left, a, i);
        bj_setting_text(right, b, i);
        if (strcmp(left, right)) return 0;
    }
    return a->objective.kind == b->objective.kind && !memcmp(&a->arch, &b->arch, sizeof a->arch);
}

/* ---------------------------------------------------------------------------------------- table */

static void test_table(void) {
    bj_settings s = settings_of("fullset");
    CHECK(bj_setting_count() > 60 && bj_setting_count() <= MOST);
    for (int i = 0; i < bj_setting_count(); i++) {
        const bj_setting_info info = bj_setting_at(i);
        CHECK_MSG(bj_setting_find(info.key) == i, "%s occurs twice", info.key);
        const char *dot = strchr(info.key, '.');
        CHECK_MSG(!dot || !strchr(dot + 1, '.'), "%s has two dots", info.key);
        CHECK_MSG(strlen(info.help) > 0 && strlen(info.help) < 96, "%s: %zu", info.key,
                  strlen(info.help));
        char text[BJ_SETTING_TEXT_SIZE];
        bj_setting_text(text, &s, i);
        if (info.type != BJ_SETTING_TEXT) {
            const double value = atof(text);
            CHECK_MSG(value >= info.least && value <= info.most, "%s is %s", info.key, text);
            CHECK_MSG(!info.above || value > info.least, "%s is %s", info.key, text);
        }
    }
    CHECK(bj_setting_find("optim.LR") == -1 && bj_setting_find("") == -1);
    CHECK(bj_setting_find(NULL) == -1);
    CHECK(bj_setting_at(-1).key == NULL && bj_setting_at(bj_setting_count()).key == NULL);
    char text[BJ_SETTING_TEXT_SIZE] = "x";
    bj_setting_text(text, &s, bj_setting_count());
    CHECK(!text[0]);
}

/* Values of the paper, from its sections on optimization and the frozen anchor. */
static void test_defaults(void) {
    const bj_settings s = settings_of("fullset");
    const bj_arch paper = bj_arch_paper();
    CHECK(!strcmp(s.arm, "fullset") && !strcmp(s.recipe, "paper") && s.seed == 0);
    CHECK(!memcmp(&s.arch, &paper, sizeof paper));
    CHECK(s.lr == 3e-4 && s.optim.beta1 == 0.9 && s.optim.beta2 == 0.999 && s.optim.eps == 1e-8);
    CHECK(s.optim.weight_decay == 0.01 && s.optim.clip == 5 && s.optim.ema == 0.996);
    CHECK(s.batch == 256 && s.epochs == 30 && s.warmup == 2 && s.patience == 0);
    CHECK(s.gate_ade == 2 && s.gate_fde == 4 && s.gate_std == 0.005 && s.gate_low_std == 0.9);
    CHECK(s.gate_rank == 8 && s.save_minutes > 0 && !s.anchor[0]);
    const bj_objective o = s.objective;
    CHECK(o.kind == BJ_FULLSET && o.lambda_router == 1 && o.beta == 1 && o.tau == 0.25);
    CHECK(o.rho == 0.5 && o.eps == 0.1 && o.sinkhorn_iters == 50);
    CHECK(o.variance_floor == 0.02 && o.rank_floor == 8 && o.rank_weight == 0.25);
}

/* ----------------------------------------------------------------------------------------- arms */

typedef struct expected_arm {
    const char *name, *family;
    bj_objective_kind kind;
    bj_model_kind model;
    bj_scales scales;
    double z, y, rec, sigma_z, sigma_y, usage;
    int atoms, atom_hidden, batch, patience;
} expected_arm;

/* clang-format off */
#define ARM(name, family, kind, model, scales, z, y, rec) \
    {name, family, kind, BJ_MODEL_##model, BJ_SCALES_##scales, z, y, rec, .5, 4, 0, 6, 512, 256, 0}
#define MDN(name, family, scales, sigma_z, sigma_y, usage) \
    {name, family, BJ_MDN, BJ_MODEL_BRANCH, BJ_SCALES_##scales, 1, 1, 1, sigma_z, sigma_y, usage, \
     6, 512, 256, 0}

static const expected_arm expected[] = {
    ARM("fullset",        "main", BJ_FULLSET,        BRANCH,      FIXED, 1, 1, 1),
    ARM("uniform",        "main", BJ_UNIFORM,        BRANCH,      FIXED, 1, 1, 1),
    ARM("softwta",        "main", BJ_SOFTWTA,        BRANCH,      FIXED, 1, 1, 1),
    ARM("sinkhorn",       "main", BJ_SINKHORN,       BRANCH,      FIXED, 1, 1, 1),
    ARM("specialization", "main", BJ_SPECIALIZATION, BRANCH,      FIXED, 1, 1, 1),
    MDN("mdn",            "main", FIXED, .5, 4, 0),
    {"point", "main", BJ_FULLSET, BJ_MODEL_BRANCH, BJ_SCALES_FIXED,
     1, 1, 1, .5, 4, 0, 1, 3204, 256, 0},
    ARM("outputonly",     "main", BJ_OUTPUTONLY,     OUTPUT_ONLY, FIXED, 1, 1, 1),
    MDN("mdn-z0.1-y1",    "mdn", FIXED, .1, 1, 0),
    MDN("mdn-z0.1-y2",    "mdn", FIXED, .1, 2, 0),
    MDN("mdn-z0.1-y4",    "mdn", FIXED, .1, 4, 0),
    MDN("mdn-z0.25-y1",   "mdn", FIXED, .25, 1, 0),
    MDN("mdn-z0.25-y2",   "mdn", FIXED, .25, 2, 0),
    MDN("mdn-z0.25-y4",   "mdn", FIXED, .25, 4, 0),
    MDN("mdn-z0.5-y1",    "mdn", FIXED, .5, 1, 0),
    MDN("mdn-z0.5-y2",    "mdn", FIXED, .5, 2, 0),
    MDN("mdn-z0.5-y4",    "mdn", FIXED, .5, 4, 0),
    MDN("mdn-z0.5-y8",    "mdn", FIXED, .5, 8, 0),
    MDN("mdn-z0.5-y16",   "mdn", FIXED, .5, 16, 0),
    MDN("mdn-z0.5-y32",   "mdn", FIXED, .5, 32, 0),
    MDN("mdn-global",     "mdn", GLOBAL, .25, 2, 0),
    MDN("mdn-component",  "mdn", COMPONENT, .25, 2, 0),
    MDN("mdn-usage",      "mdn", COMPONENT, .25, 2, .01),
    ARM("decoded-only",   "ablation", BJ_FULLSET, BRANCH, FIXED, 0, 1, 0),
    ARM("no-rec",         "ablation", BJ_FULLSET, BRANCH, FIXED, 1, 1, 0),
    ARM("latent-half",    "ablation", BJ_FULLSET, BRANCH, FIXED, .5, 1, 1),
    ARM("latent-double",  "ablation", BJ_FULLSET, BRANCH, FIXED, 2, 1, 1),
    ARM("decoded-half",   "ablation", BJ_FULLSET, BRANCH, FIXED, 1, .5, 1),
    ARM("decoded-double", "ablation", BJ_FULLSET, BRANCH, FIXED, 1, 2, 1),
    {"anchor-a", "anchor", BJ_ANCHOR_A, BJ_MODEL_BRANCH, BJ_SCALES_FIXED,
     1, 1, 1, .5, 4, 0, 6, 512, 512, 0},
    {"anchor-b", "anchor", BJ_ANCHOR_B, BJ_MODEL_BRANCH, BJ_SCALES_FIXED,
     1, 0, 0, .5, 4, 0, 6, 512, 512, 8},
    {"anchor-b-point", "anchor", BJ_ANCHOR_B, BJ_MODEL_BRANCH, BJ_SCALES_FIXED,
     1, 0, 0, .5, 4, 0, 1, 3204, 512, 8},
};
/* clang-format on */
enum { ARMS = sizeof expected / sizeof *expected };

enum { MAZE_ARMS = 6 };

/* Tests that maze arms have no decoder, 30,000 updates of 64 transitions, and as many parameters as
 * eight branches. */
static void test_maze_arms(void) {
    const bj_settings branch = settings_of("maze-branch");
    const double size = (double)bj_arch_counts(&branch.arch).total;
    for (int i = ARMS; i < bj_arm_count(); i++) {
        const char *arm = bj_arm_at(i).name;
        const bj_settings s = settings_of(arm);
        CHECK_MSG(!strcmp(bj_arm_at(i).family, "maze") && !strncmp(arm, "maze-", 5), "%s", arm);
        CHECK_MSG(s.arch.encoder == BJ_ENCODER_STATE && s.arch.fut == 0 && s.arch.latent == 512,
                  "%s", arm);
        CHECK_MSG(s.arch.atoms == (strcmp(arm, "maze-standard") ? 8 : 1), "%s", arm);
        CHECK_MSG(s.batch == 64 && s.updates * s.epochs == 30000, "%s", arm);
        CHECK_MSG(s.objective.lambda_y == 0 && s.objective.floor_weight > 0, "%s", arm);
        CHECK_OK(bj_objective_check(&s.objective, &s.arch, &err), err);
        CHECK_NEAR((double)bj_arch_counts(&s.arch).total / size, 1, 1e-3);
    }
}

static void test_arms(void) {
    const bj_settings full = settings_of("fullset");
    CHECK(bj_arm_count() == ARMS + MAZE_ARMS);
    for (int i = 0; i < ARMS && i < bj_arm_count(); i++) {
        const expected_arm *e = &expected[i];
        const bj_arm_info info = bj_arm_at(i);
        CHECK_MSG(!strcmp(info.name, e->name), "arm %d is %s, expected %s", i, info.name, e->name);
        CHECK_MSG(!strcmp(info.family, e->family), "%s", e->name);
        CHECK_MSG(strlen(info.title) > 0 && strlen(info.summary) < 96, "%s", e->name);
        CHECK_MSG(strlen(info.name) < BJ_NAME_SIZE && bj_arm_find(e->name) == i, "%s", e->name);
        bj_settings s = settings_of(e->name);
        CHECK_MSG(s.objective.kind == e->kind && s.arch.kind == e->model, "%s", e->name);
        CHECK_MSG(s.arch.scales == e->scales, "%s", e->name);
        CHECK_MSG((s.arch.weighting == BJ_WEIGHTS_UNIFORM) == !strcmp(e->name, "uniform"), "%s",
                  e->name);
        CHECK_MSG(s.objective.lambda_z == e->z && s.objective.lambda_y == e->y &&
                      s.objective.lambda_rec == e->rec,
                  "%s", e->name);
        CHECK_MSG(s.objective.sigma_z == e->sigma_z && s.objective.sigma_y == e->sigma_y &&
                      s.objective.usage_kl == e->usage,
                  "%s", e->name);
        CHECK_MSG(s.arch.atoms == e->atoms && s.arch.atom_hidden == e->atom_hidden, "%s", e->name);
        CHECK_MSG(s.batch == e->batch && s.patience == e->patience, "%s", e->name);
        /* Everything else is the same for all arms. */
        CHECK_MSG(s.lr == full.lr && s.epochs == full.epochs && s.warmup == full.warmup, "%s",
                  e->name);
        CHECK_MSG(!memcmp(&s.optim, &full.optim, sizeof s.optim), "%s", e->name);
        CHECK_OK(bj_objective_check(&s.objective, &s.arch, &err), err);
    }
    CHECK(bj_arm_find("Fullset") == -1 && bj_arm_find(NULL) == -1);
    CHECK(bj_arm_at(-1).name == NULL && bj_arm_at(bj_arm_count()).name == NULL);
    CHECK(bj_arch_counts(&full.arch).total == 5074558);
    const bj_settings point = settings_of("point"), output = settings_of("outputonly");
    CHECK(bj_arch_counts(&point.arch).total == 5074428);
    CHECK(bj_arch_counts(&output.arch).downstream == 3608958);
}

/* Tests that the settings contain the initial value of a learned scale, which the model defines. */
static void test_learned_scales(void) {
    static const char *const arms[] = {"mdn-global", "mdn-component"};
    for (int i = 0; i < 2; i++) {
        bj_settings s = settings_of(arms[i]);
        bj_model *model = NULL;
        bj_tensor z, y;
        CHECK_OK(bj_model_create(&model, &s.arch, 0, &err), err);
        if (!model) return;
        CHECK_OK(bj_model_find(&z, model, "log_sz", &err), err);
        CHECK_OK(bj_model_find(&y, model, "log_sy", &err), err);
        CHECK_NEAR(exp((double)z.data[0]), s.objective.sigma_z, 1e-6);
        CHECK_NEAR(exp((double)y.data[y.size - 1]), s.objective.sigma_y, 1e-6);
        bj_model_free(model);
    }
}

/* Tests that a recipe sets the same optimization for every arm, and nothing else. */
static void test_recipe(const char *recipe, int conditioned) {
    bj_settings first = {0};
    CHECK_OK(resolve_arm(&first, NULL, "fullset", recipe, NULL, NULL), err);
    CHECK(!strcmp(first.recipe, recipe) && first.batch < 256 && first.lr > 3e-4);
    CHECK(first.optim.conditioned == conditioned);
    for (int i = 0; i < bj_arm_count(); i++) {
        const char *arm = bj_arm_at(i).name;
        const bj_settings paper = settings_of(arm);
        bj_settings s = {0};
        CHECK_OK(resolve_arm(&s, NULL, arm, recipe, NULL, NULL), err);
        CHECK_MSG(s.batch == first.batch && s.lr == first.lr && s.epochs == first.epochs &&
                      s.warmup == first.warmup && s.warmup_updates == first.warmup_updates &&
                      s.optim.conditioned == conditioned && s.optim.clip == first.optim.clip,
                  "%s", arm);
        CHECK_MSG(!memcmp(&s.arch, &paper.arch, sizeof s.arch), "%s", arm);
        CHECK_MSG(s.objective.kind == paper.objective.kind, "%s", arm);
        for (int k = 0; k < bj_setting_count(); k++) {
            const char *key = bj_setting_at(k).key;
            char small[BJ_SETTING_TEXT_SIZE], same[BJ_SETTING_TEXT_SIZE];
            if (!strncmp(key, "optim.", 6) || !strncmp(key, "train.", 6)) continue;
            bj_setting_text(small, &s, k);
            bj_setting_text(same, &paper, k);
            CHECK_MSG(!strcmp(small, same) || !strcmp(key, "recipe"), "%s %s", arm, key);
        }
    }
}

static void test_recipes(void) {
    CHECK(bj_recipe_count() == 3);
    CHECK(!strcmp(bj_recipe_at(0).name, "paper") && !strcmp(bj_recipe_at(1).name, "fast"));
    CHECK(!strcmp(bj_recipe_at(2).name, "small"));
    CHECK(bj_recipe_at(-1).name == NULL && bj_recipe_at(3).name == NULL);
    CHECK(settings_of("fullset").optim.conditioned == 0);
    test_recipe("fast", 1);
    test_recipe("small", 0);
}

/* -------------------------------------------------------------------------------------- resolve */

static void test_layers(void) {
    const char *origins[MOST];
    const bj_assignment list[] = {
        {"optim.lr", "1e-3", "run.yaml:3"},
        {"recipe", "small", "run.yaml:1"},
        {"loss.sigma_z", ".75", "--set"},
        {"arm", "fullset", "run.yaml:2"},
        {"optim.lr", "0.002", "--set"},
        {"arm", "mdn", "--arm"},
        {"seed", "18446744073709551615", "--seed"},
    };
    bj_settings s = {0};
    CHECK_OK(bj_settings_resolve(&s, origins, list, 7, &err), err);
    CHECK(!strcmp(s.arm, "mdn") && s.objective.kind == BJ_MDN && s.seed == UINT64_MAX);
    CHECK(s.lr == 0.002 && s.objective.sigma_z == 0.75 && s.objective.sigma_y == 4);
#define ORIGIN(key) origins[bj_setting_find(key)]
    CHECK(!strcmp(ORIGIN("arm"), "--arm") && !strcmp(ORIGIN("optim.lr"), "--set"));
    CHECK(!strcmp(ORIGIN("recipe"), "run.yaml:1") && !strcmp(ORIGIN("seed"), "--seed"));
    CHECK(!strcmp(ORIGIN("loss.sigma_z"), "--set") && !strcmp(ORIGIN("loss.sigma_y"), "arm mdn"));
    CHECK(!strcmp(ORIGIN("train.batch"), "recipe small") && !strcmp(ORIGIN("loss.tau"), "paper"));
    CHECK(!strcmp(ORIGIN("train.save_minutes"), "default") && !strcmp(ORIGIN("anchor"), "default"));

    /* Tests that the recipe overrides the arm and an assignment overrides both, in any order of the
     * list. */
    CHECK_OK(resolve_arm(&s, origins, "anchor-a", "paper", NULL, NULL), err);
    CHECK(s.batch == 512 && !strcmp(ORIGIN("train.batch"), "arm anchor-a"));
    CHECK_OK(resolve_arm(&s, origins, "anchor-a", "small", NULL, NULL), err);
    CHECK(s.batch != 512 && !strcmp(ORIGIN("train.batch"), "recipe small"));
    CHECK_OK(resolve_arm(&s, origins, "anchor-a", "small", "train.batch", "7"), err);
    CHECK(s.batch == 7 && !strcmp(ORIGIN("train.batch"), "here:7"));
    CHECK_OK(resolve_arm(&s, origins, "point", "paper", "model.latent", "64"), err);
    CHECK(s.arch.latent == 64 && !strcmp(ORIGIN("model.atoms"), "arm point"));
#undef ORIGIN
}

static void test_refused(void) {
    static const struct {
        const char *arm, *key, *value;
        const char *message; /* "": accepted */
    } cases[] = {
        {"fullset", "optim.rl", "1", "here:7: no setting 'optim.rl'; did you mean 'optim.lr'?"},
        {"fullset", "lr", "1", "did you mean 'optim.lr'?"},
        {"fullset", "optim.batch", "1", "did you mean 'train.batch'?"},
        {"fullset", "zzzzzzzzz", "1", "no setting 'zzzzzzzzz'"},
        {"fulset", NULL, NULL, "test: no arm 'fulset'; did you mean 'fullset'?"},
        {"zzzzzzzzz", NULL, NULL, "no arm 'zzzzzzzzz'; 'bjepa config arms' lists the arms"},
        {"fullset", "recipe", "papre", "here:7: no recipe 'papre'; did you mean 'paper'?"},
        {"fullset", "recipe", "qqqqqq", "no recipe 'qqqqqq', expected paper, fast or small"},
        {"", NULL, NULL, "'arm' is missing"},

        {"fullset", "train.batch", "64", ""},
        {"fullset", "train.batch", "0", "train.batch is '0', expected an integer in [1, 1048576]"},
        {"fullset", "train.batch", "1048576", ""},
        {"fullset", "train.batch", "1048577", "train.batch"},
        {"fullset", "train.batch", "64.0", "train.batch"},
        {"fullset", "train.batch", "6e1", "train.batch"},
        {"fullset", "train.batch", " 64", "train.batch"},
        {"fullset", "train.batch", "64 ", "train.batch"},
        {"fullset", "train.batch", "+64", "train.batch"},
        {"fullset", "train.batch", "064", "train.batch"},
        {"fullset", "train.batch", "0x40", "train.batch"},
        {"fullset", "train.batch", "-64", "train.batch"},
        {"fullset", "train.batch", "", "train.batch is ''"},
        {"fullset", "train.batch", "99999999999999999999", "train.batch"},
        {"fullset", "train.batch", "4294967360", "train.batch"}, /* 2^32 + 64 */

        {"fullset", "seed", "-1", "seed is '-1', expected an integer in [0, 18446744073709551615]"},
        {"fullset", "seed", "18446744073709551616", "seed is"},
        {"fullset", "seed", "1e3", "seed is '1e3'"},
        {"fullset", "seed", "", "seed is ''"},

        {"fullset", "train.precision", "mixed", ""},
        {"fullset", "train.precision", "half",
         "train.precision is 'half', expected single or mixed"},
        {"fullset", "optim.lr", "1", ""},
        {"fullset", "optim.lr", ".5", ""},
        {"fullset", "optim.lr", "3E-4", ""},
        {"fullset", "optim.lr", "0", "optim.lr is '0', expected a number in (0, 1]"},
        {"fullset", "optim.lr", "1.0000001", "optim.lr"},
        {"fullset", "optim.lr", "nan", "optim.lr"},
        {"fullset", "optim.lr", "inf", "optim.lr"},
        {"fullset", "optim.lr", "1e-999", "optim.lr"}, /* becomes 0 */
        {"fullset", "optim.lr", "1e999", "optim.lr"},
        {"fullset", "optim.lr", "0x1p-4", "optim.lr"},
        {"fullset", "optim.lr", "3e-4x", "optim.lr"},
        {"fullset", "optim.lr", "3e-4 ", "optim.lr"},
        {"fullset", "optim.lr", ".", "optim.lr"},
        {"fullset", "optim.lr", "", "optim.lr"},
        {"fullset", "optim.beta1", "0", ""},
        {"fullset", "optim.beta1", "-0.0", ""},
        {"fullset", "optim.beta1", "1", "optim.beta1"},
        {"fullset", "optim.beta1", "-.5", "optim.beta1 is '-.5'"},
        {"fullset", "loss.beta", "0", "loss.beta"},
        {"fullset", "optim.ema", "1", ""},

        {"fullset", "model.heads", "3",
         "here:7: model.heads is 3, which does not divide model.embed = 256 (paper)"},
        {"fullset", "model.atoms", "65", "model.atoms"},
        {"fullset", "model.atoms", "1", ""},
        {"fullset", "train.warmup", "31",
         "here:7: train.warmup is 31, which is more than train.epochs = 30 (paper)"},
        {"fullset", "train.warmup", "30", ""},
        {"fullset", "train.epochs", "1",
         "paper: train.warmup is 2, which is more than train.epochs = 1 (here:7)"},
        {"point", "model.atoms", "6", "here:7: model.atoms is 6, but arm point has only one"},
        {"anchor-b-point", "model.atoms", "2", "arm anchor-b-point has only one"},
        {"mdn-global", "loss.sigma_z", "0.1",
         "here:7: loss.sigma_z is 0.1, but arm mdn-global learns it, starting at 0.25"},
        {"mdn-usage", "loss.sigma_y", "1",
         "here:7: loss.sigma_y is 1, but arm mdn-usage learns it"},
        {"mdn-component", "loss.sigma_y", "2", ""},
        {"mdn", "loss.sigma_z", "0.1", ""},
        {"anchor-b", "anchor", "", "arm anchor-b needs 'anchor', the checkpoint folder"},
        {"anchor-b-point", "anchor", "", "arm anchor-b-point needs 'anchor'"},
        {"fullset", "anchor", "x", "here:7: anchor is 'x', but arm fullset uses no anchor"},
        {"anchor-a", "anchor", "x", "arm anchor-a uses no anchor"},
        {"fullset", "anchor", "", ""},
        {"anchor-b", "anchor", "r\xc3\xa9sum\xc3\xa9/ckpt \"best\"", ""},
        {"anchor-b", "anchor", "a\nb", "anchor has control characters or is not UTF-8"},
        {"anchor-b", "anchor", "a\x7f", "control characters"},
        {"anchor-b", "anchor", "\xff", "not UTF-8"},
        {"anchor-b", "anchor", "a\xc2\x85", "control characters"},
        {"anchor-b", "anchor", "\xe2\x80\xa8", "control characters"},
        {"anchor-b", "anchor", "a\xe2\x80\xa9z", "control characters"},
        {"anchor-b", "anchor", "a\xc2\xa0\xe2\x80\xaaz", ""},
        {"anchor-b", "loss.latent", "0", "no term is left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_settings s = {.seed = 77};
        const bj_status status =
            resolve_arm(&s, NULL, cases[i].arm, "paper", cases[i].key, cases[i].value);
        if (!cases[i].message[0]) {
            CHECK_MSG(status == BJ_OK, "%s=%s: %s", cases[i].key, cases[i].value, err.message);
            continue;
        }
        CHECK_MSG(status == BJ_EARG && err.code == BJ_EARG, "%s=%s", cases[i].key, cases[i].value);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK_MSG(s.seed == 77, "%s=%s changed the result", cases[i].key, cases[i].value);
    }

    /* Nothing is suggested where two would do. */
    bj_settings s;
    CHECK(resolve_arm(&s, NULL, "fullset", "paper", "eps", "1") == BJ_EARG);
    CHECK_MSG(!strcmp(err.message, "here:7: no setting 'eps'"), "%s", err.message);

    /* Tests that an invalid value is rejected even if a later one replaces it. */
    const bj_assignment twice[] = {
        {"arm", "fullset", "a"}, {"optim.lr", "x", "b"}, {"optim.lr", ".1", "c"}};
    CHECK(bj_settings_resolve(&s, NULL, twice, 3, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "b: optim.lr is 'x'");
    CHECK(bj_settings_resolve(&s, NULL, twice, 3, NULL) == BJ_EARG);

    char longest[BJ_RUN_PATH_SIZE + 1];
    memset(longest, 'p', sizeof longest - 1);
    longest[BJ_RUN_PATH_SIZE] = '\0';
    CHECK(resolve_arm(&s, NULL, "anchor-b", "paper", "anchor", longest) == BJ_EARG);
    CHECK_CONTAINS(err.message, "anchor has 1024 bytes, expected at most 1023");
    longest[BJ_RUN_PATH_SIZE - 1] = '\0';
    CHECK_OK(resolve_arm(&s, NULL, "anchor-b", "paper", "anchor", longest), err);
    char text[BJ_SETTING_TEXT_SIZE];
    bj_setting_text(text, &s, bj_setting_find("anchor"));
    CHECK(!strcmp(text, longest));

    const bj_assignment half = {"arm", NULL, "a"}, nowhere = {"arm", "fullset", NULL};
    CHECK(bj_settings_resolve(&s, NULL, &half, 1, &err) == BJ_EARG);
    CHECK(bj_settings_resolve(&s, NULL, &nowhere, 1, &err) == BJ_EARG);
    CHECK(bj_settings_resolve(NULL, NULL, twice, 1, &err) == BJ_EARG);
    CHECK(bj_settings_resolve(&s, NULL, NULL, 1, &err) == BJ_EARG);
    CHECK(bj_settings_resolve(&s, NULL, NULL, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'arm' is missing");
}

/* --------------------------------------------------------------------------------- text and back
 */

/* Every setting as text, resolved again. */
static void check_text(const bj_settings *s) {
    char text[MOST][BJ_SETTING_TEXT_SIZE];
    bj_assignment list[MOST];
    bj_settings back = {0};
    for (int i = 0; i < bj_setting_count(); i++) {
        bj_setting_text(text[i], s, i);
        list[i] = (bj_assignment){bj_setting_at(i).key, text[i], "text"};
    }
    CHECK_OK(bj_settings_resolve(&back, NULL, list, bj_setting_count(), &err), err);
    CHECK_MSG(is_same(&back, s), "%s", s->arm);
}

static void test_text(void) {
    bj_rng rng = bj_rng_seed(1);
    bj_settings s = settings_of("fullset");
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < bj_setting_count(); i++) { /* numbers with all their digits */
            const bj_setting_info info = bj_setting_at(i);
            char value[BJ_SETTING_TEXT_SIZE];
            if (info.type != BJ_SETTING_REAL || !strcmp(info.key, "loss.floor")) continue;
            const double most = info.most < 1e6 ? info.most : 1e6;
            const double x = most * (1 - bj_rng_uniform(&rng));
            if (x < info.least) continue;
            snprintf(value, sizeof value, "%.17g", x);
            CHECK_OK(resolve_arm(&s, NULL, "fullset", "small", info.key, value), err);
            bj_setting_text(value, &s, i);
            CHECK_MSG(strtod(value, NULL) == x, "%s is %s, expected %.17g", info.key, value, x);
            check_text(&s);
        }
    }
    for (int i = 0; i < bj_arm_count(); i++) {
        s = settings_of(bj_arm_at(i).name);
        check_text(&s);
    }
    char text[BJ_SETTING_TEXT_SIZE];
    static const struct {
        const char *key, *value, *text;
    } cases[] = {
        {"optim.lr", "3.0e-4", "0.0003"},  {"loss.latent", "2.0", "2"},
        {"loss.latent", "1e6", "1000000"}, {"optim.eps", "1.0e-8", "1e-8"},
        {"loss.latent", "-0.0", "0"},      {"optim.clip", "1E30", "1e30"},
        {"loss.tau", ".1", "0.1"},         {"seed", "9007199254740993", "9007199254740993"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(resolve_arm(&s, NULL, "fullset", "paper", cases[i].key, cases[i].value), err);
        bj_setting_text(text, &s, bj_setting_find(cases[i].key));
        CHECK_MSG(!strcmp(text, cases[i].text), "%s %s is %s", cases[i].key, cases[i].value, text);
    }
}

/* --------------------------------------------------------------------------------------- digest */

static void test_digest(void) {
    static const struct {
        const char *arm, *key, *value;
    } changes[] = {{"uniform", NULL, NULL},
                   {"fullset", "seed", "1"},
                   {"fullset", "model.trunk", "2181"},
                   {"fullset", "optim.lr", "3.0000001e-4"},
                   {"fullset", "train.save_minutes", "1"},
                   {"fullset", "gate.rank", "9"},
                   {"fullset", "maze.withheld", "0.3"}};
    bj_settings s = settings_of("fullset");
    char hex[65], other[65], lines[8192] = "", text[BJ_SETTING_TEXT_SIZE];
    CHECK_OK(bj_settings_digest(hex, &s, &err), err);
    size_t at = 0;
    for (int i = 0; i < bj_setting_count(); i++) {
        bj_setting_text(text, &s, i);
        if (bj_setting_is_added(i)) { /* the setting was added later, so it is not written if it has
                                         its default value */
            char plain[BJ_SETTING_TEXT_SIZE];
            bj_setting_default(plain, i);
            CHECK_MSG(!strcmp(text, plain), "%s", bj_setting_at(i).key);
            continue;
        }
        at +=
            (size_t)snprintf(lines + at, sizeof lines - at, "%s=%s\n", bj_setting_at(i).key, text);
    }
    CHECK(strstr(lines, "arm=fullset\nrecipe=paper\nseed=0\nmodel.atoms=6\n") == lines);
    bj_sha256_memory(other, lines, at);
    CHECK(!strcmp(hex, other) && strlen(hex) == 64);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        CHECK_OK(resolve_arm(&s, NULL, changes[i].arm, "paper", changes[i].key, changes[i].value),
                 err);
        CHECK_OK(bj_settings_digest(other, &s, &err), err);
        CHECK_MSG(strcmp(hex, other) != 0, "%s", changes[i].key);
    }
    /* The same value, written otherwise. */
    CHECK_OK(resolve_arm(&s, NULL, "fullset", "paper", "optim.lr", "30e-5"), err);
    CHECK_OK(bj_settings_digest(other, &s, &err), err);
    CHECK(!strcmp(hex, other));
    CHECK(bj_settings_digest(NULL, &s, &err) == BJ_EARG);
    CHECK(bj_settings_digest(hex, NULL, &err) == BJ_EARG);
}

/* ----------------------------------------------------------------------------------------- JSON */

/* Writes the settings, reads the file back, and compares. */
static void check_json(const bj_settings *s) {
    bj_config *config = NULL;
    bj_assignment list[MOST];
    bj_settings back = {0};
    CHECK_OK(bj_settings_write(s, path, &err), err);
    CHECK_OK(bj_config_read(&config, path, &err), err);
    const int count = bj_config_count(config);
    CHECK(count == bj_setting_count());
    for (int i = 0; i < count && i < MOST; i++) {
        list[i] = bj_config_at(config, i);
        CHECK_MSG(!strcmp(list[i].key, bj_setting_at(i).key), "%s at %d", list[i].key, i);
    }
    CHECK_OK(bj_settings_resolve(&back, NULL, list, count, &err), err);
    CHECK_MSG(is_same(&back, s), "%s", s->arm);
    char before[65], after[65];
    CHECK_OK(bj_settings_digest(before, s, &err), err);
    CHECK_OK(bj_settings_digest(after, &back, &err), err);
    CHECK(!strcmp(before, after));
    bj_config_free(config);
}

static void test_json(void) {
    bj_settings s;
    for (int i = 0; i < bj_arm_count(); i++)
        for (int r = 0; r < bj_recipe_count(); r++) {
            CHECK_OK(resolve_arm(&s, NULL, bj_arm_at(i).name, bj_recipe_at(r).name, "seed",
                                 "18446744073709551615"),
                     err);
            check_json(&s);
        }
    CHECK_OK(resolve_arm(&s, NULL, "anchor-b", "paper", "anchor",
                         "C:\\runs/\"a\"/r\xc3\xa9sum\xc3\xa9 #1: null, \xf0\x9f\x9a\x97"),
             err);
    check_json(&s);

    s = settings_of("fullset");
    CHECK_OK(bj_settings_write(&s, path, &err), err);
    char *text = NULL;
    size_t size = 0;
    CHECK_OK(bj_file_read(&text, &size, path, 1 << 20, &err), err);
    if (text) {
        static const char head[] = "{\n  \"arm\": \"fullset\",\n  \"recipe\": \"paper\",\n"
                                   "  \"seed\": 0,\n  \"model\": {\n    \"atoms\": 6,\n";
        CHECK(!strncmp(text, head, sizeof head - 1));
        CHECK_CONTAINS(text, "\"optim\": {\n    \"lr\": 0.0003,\n");
        CHECK(size > 3 && !strcmp(text + size - 3, "\n}\n"));
    }
    bj_free(text);

    /* Tests that failed allocations leak nothing and write no file. */
    const long live = bj_alloc_live();
    for (long n = 0;; n++) {
        unlink(path);
        bj_alloc_fail_after(n);
        const bj_status status = bj_settings_write(&s, path, &err);
        bj_alloc_fail_after(-1);
        CHECK(bj_alloc_live() == live);
        if (status == BJ_OK) {
            CHECK(n > 1);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM, "%s", err.message);
        CHECK(access(path, F_OK) != 0);
        if (n > 1000) break;
    }
    CHECK(bj_settings_write(&s, "/nowhere/at/all.json", &err) == BJ_EIO);
    CHECK(bj_settings_write(NULL, path, &err) == BJ_EARG);
}

int main(void) {
    const int file = mkstemp(path);
    CHECK(file >= 0 && !close(file));
    test_table();
    test_defaults();
    test_arms();
    test_maze_arms();
    test_learned_scales();
    test_recipes();
    test_layers();
    test_refused();
    test_text();
    test_digest();
    test_json();
    unlink(path);
    return test_report("run settings");
}
