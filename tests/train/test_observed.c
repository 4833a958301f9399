/* test_observed.c - tests training steps of all kinds of models that read states and images.
 *
 *   - gradients of every tensor match finite differences along random directions (double build)
 *   - results do not depend on the number of threads or on resuming from a checkpoint
 *   - the results of winner takes all are bit-identical to those of passing gradients through every
 *     atom
 *   - invalid batches are rejected, and a failed step changes nothing
 * `test_observed export CASE FILE` writes a case for
 * tests/train/peer_observed.py: weights w.*, target t.*, inputs x.*, losses l.*,
 * outputs o.*, gradients g.*, weights s.* and target st.* after three updates.
 * `test_observed mixed CASE SEED ROWS FILE` writes weights and transitions of a seed and the
 * gradients in mixed precision for tests/train/peer_observed_mixed.py.
 */
#include "core/safetensors.h"
#include "model/checkpoint.h"
#include "observed_case.h"

enum { B = 19, UPDATES = 3 };
static const double lr = 0.01;

static bj_step_report gradients(train_case *c, const bj_batch *batch) {
    bj_step_report report = {0};
    bj_error err = {BJ_OK, ""};
    CHECK_OK(bj_trainer_gradients(c->trainer, batch, &report, &err), err);
    return report;
}

/* ---------------------------------------------------------------------------------- differences */

/* Returns the slope of the loss along `direction` in one tensor. */
static double slope(train_case *c, const bj_batch *batch, bj_tensor t, const double *direction,
                    double h) {
    static const double at[4] = {1, -1, 2, -2}, by[4] = {8, -8, -1, 1};
    bj_real *kept = case_alloc(t.size, sizeof *kept);
    double sum = 0;
    memcpy(kept, t.data, t.size * sizeof *kept);
    for (int i = 0; i < 4; i++) {
        for (size_t j = 0; j < t.size; j++)
            t.data[j] = (bj_real)((double)kept[j] + at[i] * h * direction[j]);
        sum += by[i] * gradients(c, batch).loss.total;
    }
    memcpy(t.data, kept, t.size * sizeof *kept);
    free(kept);
    return sum / (12 * h);
}

static void check_differences(const observed_case *o) {
    const bj_arch arch = observed_arch(o);
    train_case c = open_observed(o, B, 1, NULL);
    made_pairs m = make_pairs(&arch, B, 3);
    bj_rng rng = bj_rng_seed(4);
    const double norm = gradients(&c, &m.batch).grad_norm;
    CHECK(norm > 0);
    int learning = 0; /* number of atom tensors with a gradient */
    for (int i = 0; i < c.tensors; i++) {
        const bj_tensor t = bj_model_tensor(c.model, i);
        const bj_tensor g = bj_trainer_gradient(c.trainer, i);
        const int input = starts_with(t.name, "input.") || starts_with(t.name, "codebook");
        const int fixed = starts_with(t.name, "log_s"); /* scales are fixed in these cases */
        CHECK_MSG((g.data == NULL) == (input || fixed), "%s: %s", o->name, t.name);
        if (!g.data) continue;
        double *direction = case_alloc(t.size, sizeof *direction), size = 0, along = 0;
        for (size_t j = 0; j < t.size; j++) {
            direction[j] = bj_rng_normal(&rng);
            size += (double)g.data[j] * (double)g.data[j];
            along += direction[j] * (double)g.data[j];
        }
        const int won = o->objective == BJ_SPECIALIZATION && starts_with(t.name, "atoms.");
        learning += won && size > 0;
        CHECK_MSG(size > 0 || won, "%s: the gradient of %s is zero", o->name, t.name);
        if (BJ_REAL_IS_DOUBLE) {
            double error = HUGE_VAL;
            /* The finite difference is wrong if a ReLU or the winner switches, so retry with
             * smaller steps. */
            for (double h = 1e-4; h > 1e-8 && !(error <= 1e-6 * norm); h /= 10)
                error = fabs(slope(&c, &m.batch, t, direction, h) - along);
            CHECK_MSG(error <= 1e-6 * norm,
                      "%s: %s: the slope is off by %g, relative to a norm of %g", o->name,
                      t.name, error, norm);
            gradients(&c, &m.batch);
        }
        free(direction);
    }
    CHECK(o->objective != BJ_SPECIALIZATION || learning >= 4);
    free_pairs(&m);
    close_case(&c);
}

/* ----------------------------------------------------------------------------------------- bits */

static uint64_t after_steps(train_case *c, const bj_batch *batch, int steps) {
    bj_error err = {BJ_OK, ""};
    for (int i = 0; i < steps; i++)
        CHECK_OK(bj_trainer_step(c->trainer, batch, lr, NULL, &err), err);
    return hash_state(c);
}

static void check_bits(const observed_case *o) {
    const bj_arch arch = observed_arch(o);
    made_pairs m = make_pairs(&arch, 70, 7);
    train_case one = open_observed(o, 70, 1, NULL), three = open_observed(o, 80, 3, NULL);
    const uint64_t bits = after_steps(&one, &m.batch, UPDATES);
    CHECK_MSG(bits == after_steps(&three, &m.batch, UPDATES), "%s: threads show", o->name);
    close_case(&three);
    /* Resume from a checkpoint after two updates and do the third update. */
    train_case again = open_observed(o, 70, 2, NULL), resumed = open_observed(o, 70, 1, NULL);
    bj_error err = {BJ_OK, ""};
    after_steps(&again, &m.batch, UPDATES - 1);
    char folder[64];
    snprintf(folder, sizeof folder, "test_observed.%s", o->name);
    char dir[256];
    const char *scratch = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/%s", scratch ? scratch : "/tmp", folder);
    CHECK_OK(bj_trainer_save(again.trainer, dir, NULL, NULL, 0, &err), err);
    CHECK_OK(bj_trainer_load(resumed.trainer, dir, NULL, &err), err);
    CHECK_MSG(bits == after_steps(&resumed, &m.batch, 1), "%s: the checkpoint shows", o->name);
    char path[512];
    static const char *const files[] = {BJ_CHECKPOINT_MODEL, BJ_CHECKPOINT_STATE};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        remove(path);
    }
    remove(dir);
    close_case(&resumed);
    close_case(&again);
    close_case(&one);
    free_pairs(&m);
}

/* Checks that the results of hard winner-takes-all are bit-identical to those of a soft assignment
 * with tau = 1e-9, which passes gradients through every atom. */
static void check_winners(const observed_case *o) {
    const bj_arch arch = observed_arch(o);
    made_pairs m = make_pairs(&arch, B, 9);
    train_case hard = open_observed(o, B, 1, NULL);
    bj_trainer_options options = options_for(observed_objective(o), B, 1, NULL);
    options.objective.kind = BJ_SOFTWTA;
    options.objective.tau = 1e-9;
    options.seed = hard.trainer->seed; /* seed of SIGReg's directions */
    train_case soft = open_case_with(&arch, &options, 1);
    memcpy(soft.model->weights, hard.model->weights,
           hard.model->layout.size * sizeof *hard.model->weights);
    memcpy(soft.trainer->target_weights, hard.trainer->target_weights,
           hard.model->layout.encoder_size * sizeof *hard.model->weights);
    CHECK_MSG(after_steps(&hard, &m.batch, UPDATES) == after_steps(&soft, &m.batch, UPDATES),
              "%s: winners alone give other bits", o->name);
    close_case(&soft);
    close_case(&hard);
    free_pairs(&m);
}

static void check_scene_winners(void) {
    const bj_arch arch = small_arch();
    made_batch m = make_batch(&arch, B, -1, -1, 11);
    bj_objective hard = bj_objective_default(BJ_SPECIALIZATION), soft = hard;
    soft.kind = BJ_SOFTWTA;
    soft.tau = 1e-9;
    train_case a = open_case(&arch, hard, B), b = open_case(&arch, soft, B);
    CHECK(after_steps(&a, &m.batch, UPDATES) == after_steps(&b, &m.batch, UPDATES));
    close_case(&a);
    close_case(&b);
    free_batch(&m);
}

/* ------------------------------------------------------------------------------- rejected input */

static void check_refusals(void) {
    const observed_case *o = &observed_cases[1];
    const bj_arch arch = observed_arch(o);
    made_pairs m = make_pairs(&arch, B, 13);
    train_case c = open_observed(o, B, 1, NULL);
    const uint64_t before = hash_state(&c);
    bj_error err = {BJ_OK, ""};
    const bj_real kept = m.numbers[7];
    m.numbers[7] = (bj_real)NAN; /* an entry of the third state */
    CHECK(bj_trainer_step(c.trainer, &m.batch, lr, NULL, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "transition 2 of the batch: state");
    m.numbers[7] = kept;
    m.pairs[4].action = NULL;
    CHECK(bj_trainer_step(c.trainer, &m.batch, lr, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "transition 4: action is NULL");
    const bj_batch none = {.B = 2};
    CHECK(bj_trainer_step(c.trainer, &none, lr, NULL, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "pairs is NULL");
    CHECK(hash_state(&c) == before);
    close_case(&c);
    free_pairs(&m);
    /* Test objectives that need parts that these models do not have, and models with parts that the
     * objective does not use. */
    bj_objective decoded = bj_objective_default(BJ_SPECIALIZATION);
    CHECK(bj_objective_check(&decoded, &arch, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the model has no decoder");
    bj_objective floors = bj_objective_default(BJ_FULLSET);
    floors.floor_weight = 1;
    const bj_arch scenes = small_arch();
    CHECK(bj_objective_check(&floors, &scenes, &err) == BJ_EARG);
    bj_arch odd = observed_arch(&observed_cases[8]);
    odd.width = 24;
    CHECK(bj_arch_check(&odd, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "multiples of 16");
    odd = arch;
    odd.obs = 5;
    CHECK(bj_arch_check(&odd, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "obs is 5");
}

/* --------------------------------------------------------------------------------------- export */

enum { VIEWS = 1024, NAME = 80 };
typedef struct exported {
    bj_tensor_view view[VIEWS];
    char name[VIEWS][NAME];
    void *copy[VIEWS];
    int count;
} exported;

static void add(exported *e, const char *prefix, const char *name, bj_dtype dtype, const void *data,
                int rank, int64_t rows, int64_t cols, size_t stride) {
    const int i = e->count++;
    const size_t size = bj_dtype_size(dtype);
    const size_t row = (size_t)(rank == 2 ? cols : rows) * size, n = rank == 2 ? (size_t)rows : 1;
    snprintf(e->name[i], NAME, "%s%s", prefix, name);
    e->copy[i] = case_alloc(n * row, 1);
    for (size_t r = 0; r < n; r++)
        memcpy((char *)e->copy[i] + r * row, (const char *)data + r * stride * size, row);
    e->view[i] = (bj_tensor_view){.name = e->name[i],
                                  .dtype = dtype,
                                  .rank = rank,
                                  .shape = {rows, rank == 2 ? cols : 0},
                                  .count = n * row / size,
                                  .bytes = n * row,
                                  .data = e->copy[i]};
}

static void add_tensors(exported *e, const char *prefix, const train_case *c,
                        bj_tensor (*of)(const train_case *c, int i)) {
    for (int i = 0; i < c->tensors; i++) {
        const bj_tensor t = of(c, i);
        if (t.data)
            add(e, prefix, t.name, BJ_DTYPE_REAL, t.data, t.rank, t.shape[0], t.shape[1],
                (size_t)t.shape[1]);
    }
}

static bj_tensor weight_of(const train_case *c, int i) { return bj_model_tensor(c->model, i); }
static bj_tensor target_of(const train_case *c, int i) { return bj_trainer_target(c->trainer, i); }
static bj_tensor gradient_of(const train_case *c, int i) {
    return bj_trainer_gradient(c->trainer, i);
}

static void add_inputs(exported *e, const bj_arch *a, const made_pairs *m, int count) {
    const int64_t n = a->state, pixels = a->height * a->width * a->channels;
    if (n) {
        add(e, "x.", "state", BJ_DTYPE_REAL, m->pairs[0].state, 2, count, n, (size_t)n);
        add(e, "x.", "next", BJ_DTYPE_REAL, m->pairs[0].next, 2, count, n, (size_t)n);
    } else {
        add(e, "x.", "state", BJ_DTYPE_U8, m->pairs[0].image, 2, count, pixels, (size_t)pixels);
        add(e, "x.", "next", BJ_DTYPE_U8, m->pairs[0].next_image, 2, count, pixels, (size_t)pixels);
    }
    if (a->action)
        add(e, "x.", "action", BJ_DTYPE_REAL, m->pairs[0].action, 2, count, a->action,
            (size_t)a->action);
}

static const observed_case *find_case(const char *name) {
    for (int i = 0; i < OBSERVED_CASES; i++)
        if (!strcmp(observed_cases[i].name, name)) return &observed_cases[i];
    return NULL;
}

/* Returns the metadata of a case and their number. The texts stay valid until the next call. */
static int facts_of(bj_fact all[BJ_ARCH_FACTS + 3], const observed_case *o) {
    static bj_arch_facts facts;
    static char floor[32];
    const bj_arch arch = observed_arch(o);
    const bj_objective objective = observed_objective(o);
    bj_error err = {BJ_OK, ""};
    CHECK_OK(bj_arch_to_facts(&facts, &arch, &err), err);
    memcpy(all, facts.fact, (size_t)facts.count * sizeof *all);
    snprintf(floor, sizeof floor, "%g", objective.floor_weight);
    all[facts.count] = (bj_fact){"objective", bj_objective_name(objective.kind)};
    all[facts.count + 1] = (bj_fact){"floor", floor};
    all[facts.count + 2] = (bj_fact){"regularized", o->regularized ? "1" : "0"};
    return facts.count + 3;
}

/* Writes the tensors and facts of a case, and frees everything. Returns the exit code. */
static int write_export(const char *path, exported *e, const observed_case *o, train_case *c,
                        made_pairs *m) {
    bj_fact facts[BJ_ARCH_FACTS + 3];
    bj_error err = {BJ_OK, ""};
    const int fact_count = facts_of(facts, o);
    CHECK_OK(bj_safetensors_write(path, e->view, e->count, facts, fact_count, &err), err);
    for (int i = 0; i < e->count; i++) free(e->copy[i]);
    close_case(c);
    free_pairs(m);
    return test_failed > 0;
}

static int export_case(const char *name, const char *path) {
    static exported e;
    const observed_case *o = find_case(name);
    if (!o) return 2;
    const bj_arch arch = observed_arch(o);
    made_pairs m = make_pairs(&arch, B, 3);
    train_case c = open_observed(o, B, 1, NULL);
    bj_error err = {BJ_OK, ""};
    add_tensors(&e, "w.", &c, weight_of);
    add_tensors(&e, "t.", &c, target_of);
    add_inputs(&e, &arch, &m, B);
    for (int i = 0; i < UPDATES; i++) { /* the noise depends on the step */
        const bj_step_report r = gradients(&c, &m.batch);
        if (arch.noise) {
            char eps[16];
            snprintf(eps, sizeof eps, "eps%d", i);
            add(&e, "x.", eps, BJ_DTYPE_REAL, c.trainer->head.eps, 2, B, arch.noise,
                (size_t)arch.noise);
        }
        if (i == 0) {
            const bj_outputs out = bj_trainer_outputs(c.trainer);
            const bj_real loss[] = {(bj_real)r.loss.total,
                                    (bj_real)r.loss.latent,
                                    (bj_real)r.loss.router,
                                    (bj_real)r.loss.usage,
                                    (bj_real)r.loss.variance,
                                    (bj_real)r.loss.rank,
                                    (bj_real)r.loss.participation,
                                    (bj_real)r.loss.sigreg,
                                    (bj_real)r.loss.vicreg_variance,
                                    (bj_real)r.loss.vicreg_covariance,
                                    (bj_real)r.grad_norm};
            add(&e, "l.", "all", BJ_DTYPE_REAL, loss, 1, sizeof loss / sizeof *loss, 0, 0);
            add(&e, "o.", "context", BJ_DTYPE_REAL, out.context, 2, B, arch.latent,
                out.context_stride);
            add(&e, "o.", "atoms", BJ_DTYPE_REAL, out.atoms, 2, B * out.latents, arch.latent,
                out.atom_stride);
            add(&e, "o.", "logits", BJ_DTYPE_REAL, out.logits, 2, B, out.K, (size_t)out.K);
            add(&e, "o.", "target", BJ_DTYPE_REAL, out.target, 2, B, arch.latent, out.atom_stride);
            add_tensors(&e, "g.", &c, gradient_of);
        }
        CHECK_OK(bj_trainer_step(c.trainer, &m.batch, lr, NULL, &err), err);
    }
    add_tensors(&e, "s.", &c, weight_of);
    add_tensors(&e, "st.", &c, target_of);
    return write_export(path, &e, o, &c, &m);
}

enum { MIXED_B = 48, CANDIDATES = 200 };

/* Writes CANDIDATES * MIXED_B transitions of a seed and the gradients in mixed precision of a batch
 * that contains the transitions listed in `rows`, separated by commas. */
static int export_mixed(const char *name, const char *seed, const char *rows, const char *path) {
    static exported e;
    const observed_case *o = find_case(name);
    const uint64_t number = strtoull(seed, NULL, 10);
    if (!o) return 2;
    const bj_arch arch = observed_arch(o);
    made_pairs m = make_pairs(&arch, CANDIDATES * MIXED_B, 2 * number);
    bj_pair pairs[MIXED_B];
    char *end = (char *)(uintptr_t)rows;
    for (int i = 0; i < MIXED_B; i++) {
        const long row = strtol(end, &end, 10);
        if (row < 0 || row >= CANDIDATES * MIXED_B || *end != (i + 1 < MIXED_B ? ',' : '\0'))
            return 2;
        end += i + 1 < MIXED_B;
        pairs[i] = m.pairs[row];
    }
    case_precision = BJ_PRECISION_BF16;
    train_case c = open_observed(o, MIXED_B, 1, NULL);
    bj_rng rng = bj_rng_seed(2 * number + 1);
    for (int i = 0; i < c.tensors; i++) { /* other weights for every seed */
        const bj_tensor t = bj_model_tensor(c.model, i);
        for (size_t j = 0; !starts_with(t.name, "input.") && j < t.size; j++)
            t.data[j] *= (bj_real)(1 + 0.3 * bj_rng_normal(&rng));
    }
    gradients(&c, &(bj_batch){.B = MIXED_B, .pairs = pairs});
    add_tensors(&e, "w.", &c, weight_of);
    add_tensors(&e, "t.", &c, target_of);
    add_tensors(&e, "g.", &c, gradient_of);
    add_inputs(&e, &arch, &m, CANDIDATES * MIXED_B);
    if (arch.noise)
        add(&e, "x.", "eps0", BJ_DTYPE_REAL, c.trainer->head.eps, 2, MIXED_B, arch.noise,
            (size_t)arch.noise);
    return write_export(path, &e, o, &c, &m);
}

int main(int argc, char **argv) {
    if (argc == 6 && !strcmp(argv[1], "mixed"))
        return export_mixed(argv[2], argv[3], argv[4], argv[5]);
    if (argc == 4 && !strcmp(argv[1], "export")) return export_case(argv[2], argv[3]);
    for (int i = 0; i < OBSERVED_CASES; i++) {
        check_differences(&observed_cases[i]);
        check_bits(&observed_cases[i]);
        case_precision = BJ_PRECISION_BF16;
        check_bits(&observed_cases[i]);
        case_precision = BJ_PRECISION_FULL;
        if (observed_cases[i].objective == BJ_SPECIALIZATION) check_winners(&observed_cases[i]);
    }
    check_scene_winners();
    check_refusals();
    return test_report("train.observed");
}
