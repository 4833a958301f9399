/* test_state.c - tests saving and loading of training runs.
 *
 * A loaded run must continue with the same results. Damaged files and files of another run must be
 * rejected. test_state_files.c tests the folder operations.
 *
 * Without arguments, runs the tests. With arguments:
 *   write DIR   trains on a golden file, saves DIR/before, performs one more update, saves
 *               DIR/after; tests/train/peer_state.py repeats that update in Python
 *   read DIR    loads such a checkpoint and prints "ok" or the error
 *   golden DIR  saves a run; tests/golden/training_v1 was written by this command in single
 *               precision; do not regenerate it, because files of that version must stay readable
 */
#define _XOPEN_SOURCE 700
#include "core/alloc.h"
#include "core/file.h"
#include "core/folder.h"
#include "model/checkpoint.h"
#include "train/state_case.h"
#include "verify/golden.h"

/* Digest of the state in tests/golden. */
#define GOLDEN_DIGEST "820a3165eecd4861bbc94b8711a9351de9e47a0a3390ae7e37f8cba67660df57"

/* --------------------------------------------------------------------------------------- resume */

static void same_run(const run *a, const run *b, const char *what) {
    const bj_trainer *x = a->trainer, *y = b->trainer;
    const size_t all = x->model->layout.size * sizeof(bj_real);
    const size_t encoder = x->model->layout.encoder_size * sizeof(bj_real);
    CHECK_MSG(!memcmp(x->model->weights, y->model->weights, all), "%s: weights", what);
    CHECK_MSG(!memcmp(x->mean, y->mean, all), "%s: means", what);
    CHECK_MSG(!memcmp(x->variance, y->variance, all), "%s: variances", what);
    CHECK_MSG(!memcmp(x->target_weights, y->target_weights, encoder), "%s: target", what);
    CHECK_MSG(!memcmp(&a->rng, &b->rng, sizeof a->rng), "%s: generator", what);
    CHECK_MSG(x->step == y->step && a->loss == b->loss, "%s: step %ld, loss %.17g and %.17g", what,
              y->step, a->loss, b->loss);
}

enum { STEPS = 20, FIRST = 7 };

/* Checks that 20 steps in one run give the same result as 7 steps, a checkpoint, and 13 more steps
 * with new objects. */
static void check_resume(const bj_arch *arch, bj_trainer_options options, const char *anchor) {
    const char *name = bj_objective_name(options.objective.kind), *dir = in_folder("resume");
    bj_error err = {0};
    char before[65], after[65];
    options.threads = 1;
    run straight = run_create(arch, &options, 11);
    options.threads = 3;
    run first = run_create(arch, &options, 11);
    if (anchor) {
        CHECK_OK(bj_trainer_load_anchor(straight.trainer, anchor, &err), err);
        CHECK_OK(bj_trainer_load_anchor(first.trainer, anchor, &err), err);
        CHECK_OK(bj_trainer_anchor_digest(first.trainer, before, &err), err);
    }
    advance(&straight, STEPS);
    advance(&first, FIRST);
    save(&first, dir);
    CHECK(count_entries(dir) == 2);
    const char *print = print_of(&first);
    run_free(&first);

    options.threads = 2;
    options.max_batch = SCENES + 5;
    run second = run_create(arch, &options, 12);
    load(&second, dir);
    CHECK_MSG(!strcmp(print, print_of(&second)), "%s: not what was saved", name);
    CHECK(bj_trainer_updates(second.trainer) == FIRST);
    advance(&second, STEPS - FIRST);
    same_run(&straight, &second, name);
    if (anchor) {
        CHECK_OK(bj_trainer_anchor_digest(second.trainer, after, &err), err);
        CHECK_MSG(!strcmp(before, after), "%s: the anchor drifted", name);
    }
    run_free(&straight);
    run_free(&second);
    remove_tree(dir);
}

static void test_resume(bj_precision precision) {
    bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    bj_trainer_options options;
    for (int kind = BJ_FULLSET; kind <= BJ_ANCHOR_A; kind++) {
        if (kind == BJ_OUTPUTONLY) continue;
        options = options_of((bj_objective_kind)kind, 0);
        options.precision = precision;
        arch.weighting = kind == BJ_UNIFORM ? BJ_WEIGHTS_UNIFORM : BJ_WEIGHTS_ROUTER;
        check_resume(&arch, options, NULL);
    }
    arch.weighting = BJ_WEIGHTS_ROUTER;
    options = options_of(BJ_FULLSET, 0);
    options.precision = precision;
    options.optim.schedule_free = 1;
    options.optim.conditioned = 1;
    check_resume(&arch, options, NULL);
    options.optim = bj_optim_default();
    options.objective.sigreg = 0.1; /* its directions depend on the step */
    options.objective.sigreg_slices = 40;
    options.objective.vicreg_covariance = 0.5;
    options.seed = 77;
    check_resume(&arch, options, NULL);
    arch.scales = BJ_SCALES_COMPONENT;
    options = options_of(BJ_MDN, 0);
    options.precision = precision;
    options.objective.usage_kl = 0.01;
    check_resume(&arch, options, NULL);
    arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    arch.atoms = 1; /* the point arm */
    options = options_of(BJ_FULLSET, 0);
    options.precision = precision;
    check_resume(&arch, options, NULL);
    arch = small_arch(BJ_MODEL_OUTPUT_ONLY, BJ_SCALES_FIXED);
    options = options_of(BJ_OUTPUTONLY, 0);
    options.precision = precision;
    check_resume(&arch, options, NULL);
}

/* Tests stage A with K = 1, then stage B with K = 3 on the resulting anchor. */
static void test_anchor(void) {
    bj_error err = {0};
    bj_arch narrow = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_arch arch = narrow;
    narrow.atoms = 1;
    narrow.atom_hidden = 17;
    bj_trainer_options options = options_of(BJ_ANCHOR_A, 1);
    run a = run_create(&narrow, &options, 5);
    advance(&a, 5);
    save(&a, in_folder("stage_a"));
    const char *path = in_folder("stage_a/" BJ_CHECKPOINT_MODEL);

    options = options_of(BJ_ANCHOR_B, 1);
    options.precision = BJ_PRECISION_BF16;
    options.optim.schedule_free = 1;
    check_resume(&arch, options, path);
    options.precision = BJ_PRECISION_FULL;
    check_resume(&arch, options, path);
    options.optim.schedule_free = 0;
    check_resume(&arch, options, path);

    run b = run_create(&arch, &options, 6);
    run fresh = run_create(&arch, &options, 6);
    CHECK_OK(bj_trainer_load_anchor(b.trainer, path, &err), err);
    bj_tensor from_a[32];
    int count = 0;
    for (int i = 0; i < bj_model_tensor_count(a.model); i++) {
        const bj_tensor source = bj_model_tensor(a.model, i);
        const int encoder = !strncmp(source.name, "encoder.", 8);
        if (!encoder && strncmp(source.name, "decoder.", 8)) continue;
        from_a[count++] = source;
    }
    CHECK(count == 24);
    char digest[65], expected[65];
    for (int steps = 0; steps < 2; steps++) { /* after loading and after steps */
        for (int i = 0; i < bj_model_tensor_count(b.model); i++) {
            const bj_tensor own = bj_model_tensor(b.model, i),
                            start = bj_model_tensor(fresh.model, i);
            const bj_tensor target = bj_trainer_target(b.trainer, i);
            const bj_tensor *source = NULL;
            for (int j = 0; j < count; j++)
                if (!strcmp(from_a[j].name, own.name)) source = &from_a[j];
            const size_t bytes = own.size * sizeof(bj_real);
            const int decoder = source && !target.data;
            if (source)
                CHECK_MSG(!memcmp((decoder ? own : target).data, source->data, bytes), "%s",
                          own.name);
            if (!decoder) /* all other tensors start from their initial values and are trained */
                CHECK_MSG(!memcmp(own.data, start.data, bytes) == (steps == 0), "%s", own.name);
        }
        CHECK_OK(bj_checkpoint_digest(expected, from_a, count, &err), err);
        CHECK_OK(bj_trainer_anchor_digest(b.trainer, digest, &err), err);
        CHECK_MSG(!strcmp(digest, expected), "%s, expected %s", digest, expected);
        if (steps == 0) advance(&b, 4);
    }
    /* The digest must cover the target and the decoder. */
    bj_trainer_target(b.trainer, 3).data[1] += 1;
    CHECK_OK(bj_trainer_anchor_digest(b.trainer, digest, &err), err);
    CHECK(strcmp(digest, expected) != 0);
    bj_trainer_target(b.trainer, 3).data[1] -= 1;
    bj_tensor bias;
    CHECK_OK(bj_model_find(&bias, b.model, "decoder.2.bias", &err), err);
    bias.data[2] += 1;
    CHECK_OK(bj_trainer_anchor_digest(b.trainer, digest, &err), err);
    CHECK(strcmp(digest, expected) != 0);

    /* A rejected anchor must not change the trainer. */
    CHECK(bj_trainer_load_anchor(b.trainer, path, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the trainer has done 4 updates, expected none");
    CHECK(bj_trainer_load_anchor(a.trainer, path, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the trainer's objective is anchor_a, expected anchor_b");
    bj_arch other = arch;
    other.heads = 4;
    run_free(&b);
    b = run_create(&other, &options, 6);
    const char *print = print_of(&b);
    CHECK(bj_trainer_load_anchor(b.trainer, path, &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, path);
    CHECK_CONTAINS(err.message, "architecture: heads is 2, expected 4");
    CHECK(bj_trainer_load_anchor(b.trainer, "/nonexistent", &err) == BJ_EIO);
    CHECK(!strcmp(print, print_of(&b)));
    run_free(&fresh);
    run_free(&b);
    run_free(&a);
    remove_tree(in_folder("stage_a"));
}

/* ------------------------------------------------------------------------------- rejected input */

static void refused(run *r, const char *dir, bj_status code, const char *message) {
    bj_error err = {0};
    const char *print = print_of(r);
    const bj_status status = bj_trainer_load(r->trainer, dir, &r->rng, &err);
    CHECK_MSG(status == code && err.code == code, "%s instead of %s: %s", bj_status_name(status),
              bj_status_name(code), err.message);
    CHECK_CONTAINS(err.message, message);
    CHECK_CONTAINS(err.message, dir);
    CHECK_MSG(!strcmp(print, print_of(r)), "the trainer was changed before: %s", err.message);
    CHECK(bj_trainer_load(r->trainer, dir, NULL, NULL) == code);
}

/* Tests that loading checks every setting and every architecture size against the trainer. */
static void test_other_settings(void) {
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    bj_trainer_options options = options_of(BJ_FULLSET, 1);
    bj_objective *o = &options.objective;
    bj_optim *p = &options.optim;
    const char *dir = in_folder("run");
    run r = run_create(&arch, &options, 1);
    advance(&r, 1);
    save(&r, dir);
    run_free(&r);
    const struct {
        double *value;
        const char *message;
    } numbers[] = {{&o->lambda_z, "'objective.lambda_z' is '1.0', expected 0.25"},
                   {&o->lambda_y, "'objective.lambda_y' is '1.0', expected 0.25"},
                   {&o->lambda_rec, "'objective.lambda_rec' is '1.0', expected 0.25"},
                   {&o->lambda_router, "'objective.lambda_router' is '1.0', expected 0.25"},
                   {&o->beta, "'objective.beta' is '1.0', expected 0.25"},
                   {&o->tau, "'objective.tau' is '0.25', expected 0.5"},
                   {&o->rho, "'objective.rho' is '0.5', expected 0.25"},
                   {&o->eps, "'objective.eps' is '0.1', expected 0.25"},
                   {&o->sigma_z, "'objective.sigma_z' is '0.5', expected 0.25"},
                   {&o->sigma_y, "'objective.sigma_y' is '4.0', expected 0.25"},
                   {&o->usage_kl, "'objective.usage_kl' is '0.0', expected 0.25"},
                   {&o->variance_floor, "'objective.variance_floor' is '0.02', expected 0.25"},
                   {&o->rank_floor, "'objective.rank_floor' is '8.0', expected 0.25"},
                   {&o->rank_weight, "'objective.rank_weight' is '0.25', expected 0.5"},
                   {&o->sigreg, "'objective.sigreg' is '0.0', expected 0.25"},
                   {&o->vicreg_variance, "'objective.vicreg_variance' is '0.0', expected 0.25"},
                   {&o->vicreg_covariance, "'objective.vicreg_covariance' is '0.0', expected 0.25"},
                   {&o->vicreg_gamma, "'objective.vicreg_gamma' is '1.0', expected 0.25"},
                   {&p->beta1, "'optim.beta1' is '0.9', expected 0.25"},
                   {&p->beta2, "'optim.beta2' is '0.999', expected 0.25"},
                   {&p->eps, "'optim.eps' is '1e-8', expected 0.25"},
                   {&p->weight_decay, "'optim.weight_decay' is '0.01', expected 0.25"},
                   {&p->clip, "'optim.clip' is '5.0', expected 0.25"},
                   {&p->ema, "'optim.ema' is '0.996', expected 0.25"}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const double kept = *numbers[i].value;
        *numbers[i].value = kept == 0.25 ? 0.5 : 0.25;
        r = run_create(&arch, &options, 2);
        refused(&r, dir, BJ_EMISMATCH, numbers[i].message);
        run_free(&r);
        *numbers[i].value = kept;
    }
    o->sinkhorn_iters = 51;
    r = run_create(&arch, &options, 2);
    refused(&r, dir, BJ_EMISMATCH, "metadata 'objective.sinkhorn_iters' is '50.0', expected 51.0");
    run_free(&r);
    o->sinkhorn_iters = 50;
    o->sigreg_slices = 12;
    r = run_create(&arch, &options, 2);
    refused(&r, dir, BJ_EMISMATCH, "metadata 'objective.sigreg_slices' is '256.0', expected 12.0");
    run_free(&r);
    o->sigreg_slices = 256;
    o->kind = BJ_UNIFORM;
    r = run_create(&arch, &options, 2);
    refused(&r, dir, BJ_EMISMATCH, "metadata 'objective' is 'fullset', expected uniform");
    run_free(&r);
    o->kind = BJ_FULLSET;
    options.precision = BJ_PRECISION_BF16;
    r = run_create(&arch, &options, 2);
    refused(&r, dir, BJ_EMISMATCH, "metadata 'precision' is 'single', expected mixed");
    const char *mixed = in_folder("mixed");
    save(&r, mixed);
    run_free(&r);
    options.precision = BJ_PRECISION_FULL;
    r = run_create(&arch, &options, 2);
    refused(&r, mixed, BJ_EMISMATCH, "metadata 'precision' is 'mixed', expected single");
    run_free(&r);
    remove_tree(mixed);

    bj_arch other = arch;
    const struct {
        int *size;
        const char *message;
    } sizes[] = {{&other.neighbors, "architecture: neighbors is 3, expected 4"},
                 {&other.heads, "architecture: heads is 2, expected 4"},
                 {&other.latent, "architecture: latent is 12, expected 13"},
                 {&other.atoms, "architecture: atoms is 3, expected 4"}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        *sizes[i].size = i == 1 ? 4 : *sizes[i].size + 1;
        r = run_create(&other, &options, 2);
        refused(&r, dir, BJ_EMISMATCH, sizes[i].message);
        run_free(&r);
        other = arch;
    }
    r = run_create(&arch, &options, 2); /* the matching settings are accepted */
    load(&r, dir);
    run_free(&r);
    remove_tree(dir);
}

/* Tests that a run with SIGReg can be resumed only with its own seed and settings. */
static void test_sigreg_seed(void) {
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    bj_trainer_options options = options_of(BJ_FULLSET, 1);
    const char *dir = in_folder("run");
    options.objective.sigreg = 0.5;
    options.seed = 3;
    run r = run_create(&arch, &options, 1);
    advance(&r, 1);
    save(&r, dir);
    run_free(&r);
    options.seed = 4;
    r = run_create(&arch, &options, 1);
    refused(&r, dir, BJ_EMISMATCH, "metadata 'noise_seed' is '3', expected 4");
    run_free(&r);
    options.objective.sigreg = 0;
    r = run_create(&arch, &options, 1);
    refused(&r, dir, BJ_EMISMATCH, "metadata 'objective.sigreg' is '0.5', expected 0.0");
    run_free(&r);
    remove_tree(dir);
}

/* --------------------------------------------------------------------------------------- damage */

enum { MOST = 256 };

/* An open file whose content can be edited and written again. */
typedef struct contents {
    bj_safetensors *st;
    bj_tensor_view views[MOST];
    bj_fact facts[MOST];
    int count, facts_count;
} contents;

static void read_contents(contents *c, const char *path) {
    bj_error err = {0};
    CHECK_OK(bj_safetensors_open(&c->st, path, &err), err);
    if (!c->st) exit(test_report("state"));
    c->count = bj_safetensors_count(c->st);
    c->facts_count = bj_safetensors_metadata_count(c->st);
    CHECK(c->count + 1 < MOST && c->facts_count < MOST);
    for (int i = 0; i < c->count; i++) c->views[i] = *bj_safetensors_at(c->st, i);
    for (int i = 0; i < c->facts_count; i++) c->facts[i] = bj_safetensors_metadata_at(c->st, i);
}

static bj_tensor_view *view_of(contents *c, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->views[i].name, name)) return &c->views[i];
    CHECK_MSG(0, "no tensor %s", name);
    exit(test_report("state"));
}

static bj_fact *fact_of(contents *c, const char *key) {
    for (int i = 0; i < c->facts_count; i++)
        if (!strcmp(c->facts[i].key, key)) return &c->facts[i];
    CHECK_MSG(0, "no metadata %s", key);
    exit(test_report("state"));
}

static void drop_fact(contents *c, const char *key) {
    bj_fact *fact = fact_of(c, key);
    *fact = c->facts[--c->facts_count];
}

static void drop_tensor(contents *c, const char *name) {
    bj_tensor_view *view = view_of(c, name);
    *view = c->views[--c->count];
}

/* Writes the file with its old digest, for damage that must be detected before the digest check. */
static void write_as_is(contents *c, const char *path) {
    bj_error err = {0};
    CHECK_OK(bj_safetensors_write(path, c->views, c->count, c->facts, c->facts_count, &err), err);
    bj_safetensors_close(c->st);
}

/* Writes the file with a new digest, so the digest check cannot detect the change. */
static void write_signed(contents *c, const char *path) {
    bj_error err = {0};
    bj_tensor tensors[MOST];
    bj_fact facts[MOST];
    int count = 0;
    for (int i = 0; i < c->count; i++) {
        const bj_tensor_view *v = &c->views[i];
        tensors[i] = (bj_tensor){v->name,
                                 v->rank,
                                 {(int)v->shape[0], (int)v->shape[1]},
                                 v->count,
                                 (bj_real *)(uintptr_t)v->data};
    }
    for (int i = 0; i < c->facts_count; i++) {
        const char *key = c->facts[i].key;
        if (strcmp(key, "format") && strcmp(key, "format_version") && strcmp(key, "sha256"))
            facts[count++] = c->facts[i];
    }
    CHECK_OK(bj_checkpoint_write(path, fact_of(c, "format")->value, tensors, c->count, facts, count,
                                 &err),
             err);
    bj_safetensors_close(c->st);
}

static void copy_file(const char *from, const char *to, size_t less) {
    bj_error err = {0};
    char *text;
    size_t size;
    CHECK_OK(bj_file_read(&text, &size, from, 1 << 22, &err), err);
    CHECK_OK(bj_file_write(to, text, size - less, &err), err);
    bj_free(text);
}

static void test_damage(void) {
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_trainer_options options = options_of(BJ_FULLSET, 1);
    bj_error err = {0};
    contents c;
    run r = run_create(&arch, &options, 1);
    advance(&r, 2);
    char good_model[256], good_state[256], bad[256], model[256], state[256], later_model[256];
    snprintf(good_model, sizeof good_model, "%s/good/model.safetensors", folder);
    snprintf(good_state, sizeof good_state, "%s/good/state.safetensors", folder);
    snprintf(later_model, sizeof later_model, "%s/later/model.safetensors", folder);
    snprintf(bad, sizeof bad, "%s/bad", folder);
    snprintf(model, sizeof model, "%s/bad/model.safetensors", folder);
    snprintf(state, sizeof state, "%s/bad/state.safetensors", folder);
    save(&r, in_folder("good"));
    save(&r, bad);
    advance(&r, 1);
    save(&r, in_folder("later"));

    /* contents that other programs depend on */
    read_contents(&c, good_model);
    CHECK(c.count == bj_model_tensor_count(r.model));
    CHECK(!strcmp(fact_of(&c, "seed")->value, "7"));
    char digest[BJ_SHA256_HEX];
    snprintf(digest, sizeof digest, "%s", fact_of(&c, "sha256")->value);
    bj_safetensors_close(c.st);
    read_contents(&c, good_state);
    CHECK(c.count == 2 * bj_model_tensor_count(r.model) + 20);
    CHECK(!strcmp(fact_of(&c, "format")->value, "branchjepa-state"));
    CHECK(!strcmp(fact_of(&c, "format_version")->value, "1"));
    CHECK(!strcmp(fact_of(&c, "step")->value, "2"));
    CHECK(!strcmp(fact_of(&c, "model_sha256")->value, digest));
    CHECK(strlen(fact_of(&c, "rng")->value) == 67);
    CHECK(view_of(&c, "mean.router.0.weight")->rank == 2);
    CHECK(view_of(&c, "variance.decoder.2.bias")->count == 20);
    CHECK(view_of(&c, "target.proj.2.bias")->count == 12);
    bj_safetensors_close(c.st);

#define EDIT(signed_or_not, code, message, ...)                                                    \
    do {                                                                                           \
        read_contents(&c, good_state);                                                             \
        __VA_ARGS__;                                                                               \
        signed_or_not(&c, state);                                                                  \
        refused(&r, bad, code, message);                                                           \
    } while (0)

    /* tensors */
    EDIT(write_signed, BJ_EFORMAT,
         "tensor 'mean.router.2.bias' is missing, "
         "but there is an unknown tensor 'mean.router.2.offset'",
         view_of(&c, "mean.router.2.bias")->name = "mean.router.2.offset");
    EDIT(write_signed, BJ_EFORMAT, "tensor 'variance.atoms.1.0.bias': is missing",
         drop_tensor(&c, "variance.atoms.1.0.bias"));
    EDIT(write_signed, BJ_EFORMAT, "tensor 'target.atoms.0.0.bias' is unknown",
         c.views[c.count] = c.views[0];
         c.views[c.count++].name = "target.atoms.0.0.bias");
    EDIT(write_signed, BJ_EFORMAT, "tensor 'mean.router.0.weight': shape [12,6], expected [6,12]",
         view_of(&c, "mean.router.0.weight")->shape[0] = 12;
         view_of(&c, "mean.router.0.weight")->shape[1] = 6);
    bj_real values[32];
    for (int i = 0; i < 32; i++) values[i] = (bj_real)i;
    values[17] = (bj_real)NAN;
    static const char *const groups[] = {"mean", "variance", "target"};
    for (int i = 0; i < 3; i++) {
        char name[64], message[128];
        snprintf(name, sizeof name, "%s.%s", groups[i], i < 2 ? "decoder.2.bias" : "proj.2.bias");
        snprintf(message, sizeof message, "state.safetensors: tensor '%s': value %d is ", name,
                 i < 2 ? 17 : 7);
        EDIT(write_as_is, BJ_ENONFINITE, message,
             view_of(&c, name)->data = values + (i < 2 ? 0 : 10));
    }
    values[17] = -(bj_real)1e-30;
    EDIT(write_signed, BJ_EFORMAT,
         "tensor 'variance.decoder.2.bias': value 17 is -1e-30, expected at least 0",
         view_of(&c, "variance.decoder.2.bias")->data = values);
    EDIT(write_as_is, BJ_EFORMAT, "state.safetensors: the checksum of the content is ",
         view_of(&c, "mean.decoder.2.bias")->data = values);
    static double wide[20];
    static float thin[20];
    EDIT(write_as_is, BJ_EFORMAT, "tensor 'mean.decoder.2.bias': dtype F",
         view_of(&c, "mean.decoder.2.bias")->dtype =
             sizeof(bj_real) == sizeof(float) ? BJ_DTYPE_F64 : BJ_DTYPE_F32;
         view_of(&c, "mean.decoder.2.bias")->data =
             sizeof(bj_real) == sizeof(float) ? (void *)wide : (void *)thin);

    /* metadata */
    static const struct {
        const char *key, *value; /* NULL: omit the key */
        bj_status code;
        const char *message;
    } cases[] = {
        {"format", "branchjepa-model", BJ_EFORMAT, "'branchjepa-model', expected branchjepa-state"},
        {"format_version", "2", BJ_EVERSION, "format version is '2', but this library reads 1"},
        {"step", "-1", BJ_EFORMAT, "metadata 'step' is '-1', expected an integer"},
        {"step", "9999999999999999999", BJ_EFORMAT, "metadata 'step' is '9999999999999999999'"},
        {"step", NULL, BJ_EFORMAT, "metadata 'step' is missing"},
        {"rng", "7", BJ_EFORMAT, "metadata 'rng' is '7', expected four words of 16"},
        {"rng", "0000000000000000 0000000000000000 0000000000000000 0000000000000000", BJ_EFORMAT,
         "not all zero"},
        {"rng", "0000000000000001 0000000000000000 0000000000000000 000000000000000G", BJ_EFORMAT,
         "expected four words of 16 hexadecimal digits"},
        {"model_sha256", NULL, BJ_EFORMAT, "metadata 'model_sha256' is missing"},
        {"model_sha256", "0", BJ_EFORMAT, "belongs to another model.safetensors: its checksum is "},
        {"objective", NULL, BJ_EFORMAT, "metadata 'objective' is missing"},
        {"objective", "x", BJ_EMISMATCH, "metadata 'objective' is 'x', expected fullset"},
        {"optim.ema", NULL, BJ_EFORMAT, "metadata 'optim.ema' is missing"},
        {"optim.ema", "high", BJ_EFORMAT, "metadata 'optim.ema' is 'high', expected a number"},
        {"sha256", NULL, BJ_EFORMAT, "metadata 'sha256' is missing"},
        {"step", "3", BJ_EFORMAT, "checksum of the content is "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        EDIT(write_as_is, cases[i].code, cases[i].message,
             if (cases[i].value) fact_of(&c, cases[i].key)->value = cases[i].value;
             else drop_fact(&c, cases[i].key));
#undef EDIT

    /* Test a truncated, exchanged or missing file. */
    copy_file(good_state, state, 1);
    refused(&r, bad, BJ_EFORMAT, "state.safetensors: tensor 'target.proj.2.bias': data ends at");
    copy_file(good_state, state, 0);
    copy_file(good_model, model, 1);
    refused(&r, bad, BJ_EFORMAT, "model.safetensors: tensor 'decoder.2.bias': data ends at byte");
    copy_file(later_model, model, 0);
    refused(&r, bad, BJ_EFORMAT, "state.safetensors: belongs to another model.safetensors");
    read_contents(&c, good_model); /* test the correct weights with one changed fact and a new
                                      digest */
    fact_of(&c, "seed")->value = "8";
    write_signed(&c, model);
    refused(&r, bad, BJ_EFORMAT, "state.safetensors: belongs to another model.safetensors");
    read_contents(&c, good_model);
    values[17] = (bj_real)INFINITY;
    view_of(&c, "decoder.2.bias")->data = values;
    write_as_is(&c, model);
    refused(&r, bad, BJ_ENONFINITE, "model.safetensors: tensor 'decoder.2.bias': value 17 is inf");
    copy_file(good_state, model, 0);
    refused(&r, bad, BJ_EFORMAT, "'branchjepa-state', expected branchjepa-model");
    copy_file(good_model, model, 0);
    load(&r, bad);
    CHECK(remove(state) == 0);
    refused(&r, bad, BJ_EIO, "state.safetensors: cannot open: No such file or directory");
    CHECK(remove(model) == 0);
    refused(&r, bad, BJ_EIO, "model.safetensors: cannot open: No such file or directory");

    /* Test a checkpoint without a generator. */
    CHECK_OK(bj_trainer_save(r.trainer, bad, NULL, NULL, 0, &err), err);
    CHECK_OK(bj_trainer_load(r.trainer, bad, NULL, &err), err);
    CHECK(bj_trainer_load(r.trainer, bad, &r.rng, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "metadata 'rng' is missing");
    run_free(&r);
    remove_tree(in_folder("good"));
    remove_tree(in_folder("later"));
    remove_tree(bad);
}

/* --------------------------------------------------------------------------------------- memory */

static void test_allocation_failures(void) {
    const bj_trainer_options options[2] = {options_of(BJ_FULLSET, 1), options_of(BJ_ANCHOR_B, 1)};
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    run a = run_create(&arch, &options[0], 4), b = run_create(&arch, &options[1], 4);
    advance(&a, 1);
    const char *dir = in_folder("ck"), *model = in_folder("ck/" BJ_CHECKPOINT_MODEL);
    char print[BJ_SHA256_HEX];
    snprintf(print, sizeof print, "%s", print_of(&a));
    save(&a, dir);
    const long live = bj_alloc_live();
    char hex[65];
    for (int what = 0; what < 4; what++) {
        int failures = 0;
        for (long n = 0;; n++) {
            bj_error err = {0};
            bj_alloc_fail_after(n);
            const bj_status status = what == 0
                                         ? bj_trainer_save(a.trainer, dir, &a.rng, NULL, 0, &err)
                                     : what == 1 ? bj_trainer_load(a.trainer, dir, &a.rng, &err)
                                     : what == 2 ? bj_trainer_load_anchor(b.trainer, model, &err)
                                                 : bj_trainer_anchor_digest(b.trainer, hex, &err);
            bj_alloc_fail_after(-1);
            CHECK(bj_alloc_live() == live);
            if (status == BJ_OK) break;
            failures++;
            CHECK_MSG(status == BJ_ENOMEM && err.code == status, "%s", err.message);
            CHECK(!strcmp(print, print_of(&a)));
            CHECK_MSG(count_entries(folder) == 1 && count_entries(dir) == 2, "half of something");
        }
        CHECK_MSG(failures >= (what == 3 ? 2 : 10), "%d failures", failures);
    }
    load(&a, dir);
    CHECK(!strcmp(print, print_of(&a)));
    run_free(&a);
    run_free(&b);
}

/* ---------------------------------------------------------------------------------- Python peer */

#define GOLDEN "tests/golden/tiny/fullset.safetensors"

static bj_status open_golden(bj_golden *golden, bj_trainer **trainer, const char *path,
                             bj_error *err) {
    BJ_TRY(bj_golden_open(golden, path, err));
    const bj_trainer_options options = {.objective = golden->objective,
                                        .optim = golden->optim,
                                        .max_batch = golden->B,
                                        .threads = 1};
    BJ_TRY(bj_trainer_create(trainer, golden->model, &options, err));
    return bj_golden_load_target(golden, *trainer, err);
}

static bj_status write_for_peer(const char *dir, bj_error *err) {
    bj_golden golden = {0};
    bj_trainer *trainer = NULL;
    bj_rng rng = bj_rng_seed(1);
    char path[BJ_FOLDER_PATH], lr[32];
    bj_status status;
    BJ_GOTO(status, done, open_golden(&golden, &trainer, GOLDEN, err));
    snprintf(lr, sizeof lr, "%.17g", golden.lr);
    const bj_fact facts[] = {{"lr", lr}, {"data", GOLDEN}};
    for (int i = 0; i < 4; i++) {
        BJ_GOTO(status, done,
                bj_trainer_step(trainer, bj_scenes_batch(golden.scenes), golden.lr, NULL, err));
        snprintf(path, sizeof path, "%s/%s", dir, i < 3 ? "before" : "after");
        if (i >= 2) BJ_GOTO(status, done, bj_trainer_save(trainer, path, &rng, facts, 2, err));
    }
done:
    bj_trainer_free(trainer);
    bj_golden_reset(&golden);
    return status;
}

static bj_status read_for_peer(const char *dir, bj_error *err) {
    bj_golden golden = {0};
    bj_trainer *trainer = NULL;
    bj_rng rng;
    bj_status status;
    BJ_GOTO(status, done, open_golden(&golden, &trainer, GOLDEN, err));
    status = bj_trainer_load(trainer, dir, &rng, err);
done:
    bj_trainer_free(trainer);
    bj_golden_reset(&golden);
    return status;
}

/* ------------------------------------------------------------------------------------- golden */

static run golden_run(void) {
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_trainer_options options = options_of(BJ_FULLSET, 1);
    return run_create(&arch, &options, 1);
}

/* Tests that old files stay readable. The values are compared with the files instead of a new run,
 * because the arithmetic may change without a change of the format. */
static void test_golden(void) {
    run r = golden_run();
    const char *dir = "tests/golden/training_v1";
    if (sizeof(bj_real) == sizeof(double)) {
        refused(&r, dir, BJ_EFORMAT,
                "tensor 'mean.encoder.gru.weight_ih_l0': dtype F32, expected F64");
        run_free(&r);
        return;
    }
    load(&r, dir);
    CHECK(bj_trainer_updates(r.trainer) == 2);
    bj_rng rng = bj_rng_seed(1);
    bj_rng_next(&rng);
    bj_rng_next(&rng);
    CHECK(!memcmp(&rng, &r.rng, sizeof rng));
    contents c;
    read_contents(&c, "tests/golden/training_v1/" BJ_CHECKPOINT_STATE);
    CHECK(!strcmp(fact_of(&c, "sha256")->value, GOLDEN_DIGEST));
    const bj_layout *layout = &r.model->layout;
    for (int i = 0; i < layout->count; i++) {
        const bj_param *p = &layout->params[i];
        const size_t bytes = p->size * sizeof(bj_real);
        char name[96];
        snprintf(name, sizeof name, "mean.%s", p->name);
        CHECK(!memcmp(view_of(&c, name)->data, r.trainer->mean + p->offset, bytes));
        snprintf(name, sizeof name, "variance.%s", p->name);
        CHECK(!memcmp(view_of(&c, name)->data, r.trainer->variance + p->offset, bytes));
        if (strncmp(p->name, "encoder.", 8)) continue;
        snprintf(name, sizeof name, "target.%s", p->name + 8);
        CHECK(!memcmp(view_of(&c, name)->data, r.trainer->target_weights + p->offset, bytes));
    }
    bj_safetensors_close(c.st);
    advance(&r, 1);
    run_free(&r);
}

int main(int argc, char **argv) {
    bj_error err = {0};
    if (argc == 3 && (!strcmp(argv[1], "write") || !strcmp(argv[1], "read"))) {
        if ((argv[1][0] == 'r' ? read_for_peer : write_for_peer)(argv[2], &err) != BJ_OK) {
            printf("%s\n", err.message);
            return 1;
        }
        puts("ok");
        return 0;
    }
    const long live = bj_alloc_live();
    case_begin("/tmp", ".");
    if (argc == 3 && !strcmp(argv[1], "golden")) {
        run r = golden_run();
        advance(&r, 2);
        save(&r, argv[2]);
        run_free(&r);
        case_end();
        return test_report("golden");
    }
    test_resume(BJ_PRECISION_FULL);
    test_resume(BJ_PRECISION_BF16);
    test_anchor();
    test_other_settings();
    test_sigreg_seed();
    test_damage();
    test_allocation_failures();
    test_golden();
    case_end();
    CHECK(bj_alloc_live() == live);
    return test_report("state");
}
