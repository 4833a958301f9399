/* test_regularizers.c - tests SIGReg and VICReg: values, gradients, directions and edge cases.
 *
 *   - values and gradients of every term are compared with tests/golden/regularizers.safetensors,
 *     which PyTorch computed in float64. The comparison covers every instruction set, with a
 *     tolerance of 1e-6 in a double build
 *   - gradients are compared with finite differences (double build)
 *   - results do not depend on the order of items and ranges
 * `test_regularizers export FILE` writes batches of the paper's size for peer_regularizers.py.
 */
#include "core/safetensors.h"
#include "objective/objective.h"
#include "support/gradcheck.h"

enum { PAD = 5 };
static const char golden[] = "tests/golden/regularizers.safetensors";
static const char *const terms[] = {"sigreg", "vicreg_variance", "vicreg_covariance"};

/* ---------------------------------------------------------------------------------------- cases */

typedef struct reg_case {
    bj_objective objective;
    bj_regularizers r;
    bj_real *memory, *scratch;
    bj_real *x, *dx; /* (B,D) with row stride `stride`; NaN between the rows of x */
    int B, D;
    size_t stride;
    uint64_t seed;
    long step;
} reg_case;

static void *take(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) exit(1);
    return memory;
}

/* Returns an objective with the given term weights. */
static bj_objective weights_of(double sigreg, double variance, double covariance, int slices) {
    bj_objective o = bj_objective_default(BJ_FULLSET);
    o.sigreg = sigreg;
    o.vicreg_variance = variance;
    o.vicreg_covariance = covariance;
    o.sigreg_slices = slices;
    o.vicreg_gamma = 0.9;
    return o;
}

static void open_case(reg_case *c, bj_objective objective, int B, int D, const bj_kernels *k) {
    bj_arena arena = {NULL, 0};
    *c = (reg_case){.objective = objective, .B = B, .D = D, .stride = (size_t)D + PAD};
    bj_regularizers_take(&c->r, &arena, k, &c->objective, B, D);
    c->memory = take(arena.used, sizeof *c->memory);
    arena = (bj_arena){c->memory, 0};
    bj_regularizers_take(&c->r, &arena, k, &c->objective, B, D);
    c->scratch = take(BJ_GRADIENT_SCRATCH, sizeof *c->scratch);
    c->x = take((size_t)B * c->stride, sizeof *c->x);
    c->dx = take((size_t)B * c->stride, sizeof *c->dx);
    for (size_t i = 0; i < (size_t)B * c->stride; i++) c->x[i] = (bj_real)NAN;
}

static void close_case(reg_case *c) { free(c->memory), free(c->scratch), free(c->x), free(c->dx); }

static void fill(reg_case *c, uint64_t seed, double scale) {
    bj_rng rng = bj_rng_seed(seed);
    for (int b = 0; b < c->B; b++)
        for (int d = 0; d < c->D; d++)
            c->x[(size_t)b * c->stride + (size_t)d] = (bj_real)(scale * bj_rng_normal(&rng));
}

/* Runs a whole step with the items in forward or reverse order, and the gradient in ranges of
 * `range` scenes. */
static bj_loss run_case(reg_case *c, int reversed, int range) {
    bj_loss loss = {0};
    bj_regularizers_begin(&c->r, c->x, c->stride, c->B, c->seed, c->step);
    for (int round = 0; round < BJ_REGULARIZER_ROUNDS; round++) {
        const int items = bj_regularizers_round(&c->r, round);
        for (int i = 0; i < items; i++)
            bj_regularizers_item(&c->r, reversed ? items - 1 - i : i, c->scratch);
    }
    memset(c->dx, 0, (size_t)c->B * c->stride * sizeof *c->dx);
    for (int b = 0; b < c->B; b += range)
        bj_regularizers_backward(&c->r, c->dx + (size_t)b * c->stride, c->stride, b,
                                 b + range < c->B ? b + range : c->B);
    bj_regularizers_loss(&loss, &c->r);
    return loss;
}

static double value_of(const bj_loss *loss, int term) {
    return term == 0 ? loss->sigreg : term == 1 ? loss->vicreg_variance : loss->vicreg_covariance;
}

static double total(void *context) {
    reg_case *c = context;
    const bj_objective *o = &c->objective;
    const bj_loss loss = run_case(c, 0, c->B);
    return o->sigreg * loss.sigreg + o->vicreg_variance * loss.vicreg_variance +
           o->vicreg_covariance * loss.vicreg_covariance;
}

static void gradient(void *context) {
    reg_case *c = context;
    run_case(c, 0, c->B);
}

/* --------------------------------------------------------------------------------------- golden */

static bj_safetensors *file;

static const bj_tensor_view *find(const char *name, const char *part, const char *term) {
    char full[96];
    snprintf(full, sizeof full, "%s%s%s", name, part, term);
    const bj_tensor_view *view = bj_safetensors_find(file, full);
    if (!view || view->dtype != BJ_DTYPE_F64) {
        fprintf(stderr, "%s: no float64 tensor '%s'\n", golden, full);
        exit(1);
    }
    return view;
}

static double at(const bj_tensor_view *view, size_t i) {
    double value;
    memcpy(&value, (const char *)view->data + i * sizeof value, sizeof value);
    return value;
}

/* Returns the largest difference between rows of `found` and a tensor, relative to the tensor's
 * largest entry. */
static double error_of(const bj_real *found, size_t stride, const bj_tensor_view *view, int rows,
                       int cols) {
    double worst = 0, most = 1e-30;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            const double want = at(view, (size_t)(i * cols + j));
            const double off = fabs((double)found[(size_t)i * stride + (size_t)j] - want);
            most = fmax(most, fabs(want));
            if (!(off <= worst)) worst = isnan(off) ? HUGE_VAL : off;
        }
    return worst / most;
}

static void check_golden(const char *name, int term, const bj_kernels *k) {
    const double tolerance = BJ_REAL_IS_DOUBLE ? 1e-6 : 2e-5, weight = 2.5;
    const bj_tensor_view *x = find(name, ".x", ""), *a = find(name, ".directions", "");
    const int B = (int)x->shape[0], D = (int)x->shape[1], S = (int)a->shape[0];
    reg_case c;
    open_case(&c,
              weights_of(term == 0 ? weight : 0, term == 1 ? weight : 0, term == 2 ? weight : 0, S),
              B, D, k);
    c.seed = strtoull(bj_safetensors_metadata(file, "direction_seed"), NULL, 10);
    c.step = strtol(bj_safetensors_metadata(file, "step"), NULL, 10);
    for (int b = 0; b < B; b++)
        for (int d = 0; d < D; d++)
            c.x[(size_t)b * c.stride + (size_t)d] = (bj_real)at(x, (size_t)(b * D + d));
    const bj_loss loss = run_case(&c, 0, B);
    const double want = at(find(name, ".", terms[term]), 0), found = value_of(&loss, term);
    CHECK_MSG(fabs(found - want) <= tolerance * fmax(fabs(want), 1e-3),
              "%s, %s, %s: %.12g, "
              "expected %.12g",
              k->isa, name, terms[term], found, want);
    for (int other = 0; other < 3; other++) CHECK(other == term || value_of(&loss, other) == 0);
    for (int i = 0; i < B; i++)
        for (int d = 0; d < D; d++) c.dx[(size_t)i * c.stride + (size_t)d] /= (bj_real)weight;
    const double error = error_of(c.dx, c.stride, find(name, ".d.", terms[term]), B, D);
    CHECK_MSG(error <= 5 * tolerance,
              "%s, %s: the gradient of %s is off by %g, "
              "relative to its largest entry",
              k->isa, name, terms[term], error);
    if (term == 0)
        CHECK_MSG(error_of(c.r.direction, (size_t)D, a, S, D) <= (BJ_REAL_IS_DOUBLE ? 1e-12 : 1e-6),
                  "%s: directions of another generator", name);
    close_case(&c);
}

static void test_golden(void) {
    char cases[256], *next = cases;
    bj_error err = {BJ_OK, ""};
    CHECK_OK(bj_safetensors_open(&file, golden, &err), err);
    if (!file) return;
    snprintf(cases, sizeof cases, "%s", bj_safetensors_metadata(file, "cases"));
    int count = 0;
    for (char *name = next; *name; name = next, count++) {
        next = name + strcspn(name, ",");
        if (*next) *next++ = '\0';
        for (int i = 0; bj_kernels_at(i); i++)
            for (int term = 0; term < 3; term++) check_golden(name, term, bj_kernels_at(i));
    }
    CHECK(count == 6);
    bj_safetensors_close(file);
}

/* ------------------------------------------------------------------------------------ gradients */

static void test_gradients(void) {
    static const struct {
        const char *name;
        double sigreg, variance, covariance;
        int B, D, slices;
        double scale;
    } setups[] = {{"sigreg", 1, 0, 0, 6, 7, 5, 1},
                  {"sigreg, wide", 0.3, 0, 0, 5, 4, 9, 6},
                  {"sigreg, one scene", 1, 0, 0, 1, 4, 3, 1},
                  {"variance", 0, 1, 0, 6, 7, 1, 0.4},
                  {"variance, all missed", 0, 2, 0, 4, 5, 1, 0.01},
                  {"covariance", 0, 0, 1, 6, 7, 1, 1},
                  {"covariance, two scenes", 0, 0, 3, 2, 5, 1, 1},
                  {"all", 0.5, 2, 0.7, 9, 8, 17, 0.8},
                  {"all, several shards", 0.5, 2, 0.7, 70, 3, 9, 0.8}};
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        reg_case c;
        open_case(&c,
                  weights_of(setups[i].sigreg, setups[i].variance, setups[i].covariance,
                             setups[i].slices),
                  setups[i].B, setups[i].D, &bj_kernels_c);
        fill(&c, 30 + i, setups[i].scale);
        const gradcheck_array array = {"x", c.x, c.dx, c.B, c.D, c.stride, 0, 0};
        const gradcheck_case check = {.name = setups[i].name,
                                      .loss = total,
                                      .gradient = gradient,
                                      .context = &c,
                                      .arrays = &array,
                                      .count = 1,
                                      .step = 1e-3 * setups[i].scale};
        gradcheck(&check);
        for (int b = 0; b < c.B; b++) /* the padding of dx is not written */
            for (size_t d = (size_t)c.D; d < c.stride; d++)
                CHECK(c.dx[(size_t)b * c.stride + d] == 0);
        close_case(&c);
    }
}

/* Tests that the results are bit-identical for any order of items and any division of the scenes
 * into ranges. */
static void test_order(const bj_kernels *k) {
    reg_case c;
    open_case(&c, weights_of(0.5, 2, 0.7, 75), 67, 131, k);
    fill(&c, 3, 0.9);
    const size_t n = (size_t)c.B * c.stride;
    const bj_loss whole = run_case(&c, 0, c.B);
    bj_real *kept = gradcheck_copy(c.dx, n);
    for (int range = 1; range <= 9; range += 4) {
        const bj_loss loss = run_case(&c, range % 2, range);
        CHECK_MSG(!memcmp(&loss, &whole, sizeof loss), "%s: loss, ranges of %d", k->isa, range);
        CHECK_MSG(!memcmp(kept, c.dx, n * sizeof *kept), "%s: gradient, ranges of %d", k->isa,
                  range);
    }
    free(kept);
    close_case(&c);
}

/* ----------------------------------------------------------------------------------- directions */

/* Tests that directions have length 1, are different, and depend on seed and step only. */
static void test_directions(void) {
    enum { D = 37, S = 40 };
    reg_case c;
    open_case(&c, weights_of(1, 0, 0, S), 3, D, &bj_kernels_c);
    fill(&c, 4, 1);
    c.seed = 9;
    run_case(&c, 0, 3);
    bj_real *first = gradcheck_copy(c.r.direction, S * D);
    double most = 0;
    for (int s = 0; s < S; s++)
        for (int other = 0; other <= s; other++) {
            double dot = 0;
            for (int d = 0; d < D; d++) dot += (double)first[s * D + d] * first[other * D + d];
            if (s == other) CHECK_NEAR(dot, 1, 1e-6);
            else most = fmax(most, fabs(dot));
        }
    CHECK_MSG(most > 0 && most < 0.7, "two directions have a cosine of %g", most);
    fill(&c, 5, 2);
    run_case(&c, 1, 3);
    CHECK(!memcmp(first, c.r.direction, S * D * sizeof *first));
    c.step = 1;
    run_case(&c, 0, 3);
    CHECK(memcmp(first, c.r.direction, S * D * sizeof *first));
    c.step = 0;
    c.seed = 10;
    run_case(&c, 0, 3);
    CHECK(memcmp(first, c.r.direction, S * D * sizeof *first));
    free(first);
    close_case(&c);
}

/* --------------------------------------------------------------------------------------- values */

/* Tests embeddings that are all zero, where cos = 1 and sin = 0 at every knot. */
static void test_zero_embeddings(void) {
    double expected = 0;
    reg_case c;
    open_case(&c, weights_of(1, 1, 1, 11), 8, 5, &bj_kernels_c);
    fill(&c, 6, 0);
    for (int j = 1; j <= 16; j++) {
        const double t = 3.0 * j / 16, phi = exp(-t * t / 2);
        expected += 8 * (j < 16 ? 2 : 1) * 3.0 / 16 * phi * (1 - phi) * (1 - phi);
    }
    const bj_loss loss = run_case(&c, 0, 8);
    CHECK_NEAR(loss.sigreg, expected, 1e-12);
    CHECK_NEAR(loss.vicreg_variance, 0.9 - 0.01, 1e-12);
    CHECK(loss.vicreg_covariance == 0);
    for (int b = 0; b < 8; b++) /* the gradient is zero by symmetry */
        for (int d = 0; d < 5; d++) CHECK(c.dx[(size_t)b * c.stride + (size_t)d] == 0);
    close_case(&c);
}

/* Tests that VICReg's terms are 0 for a single scene, even after a larger batch. */
static void test_one_scene(void) {
    reg_case c;
    open_case(&c, weights_of(0, 1, 1, 1), 4, 5, &bj_kernels_c);
    fill(&c, 7, 0.5);
    CHECK(run_case(&c, 0, 4).vicreg_variance > 0);
    c.B = 1;
    const bj_loss loss = run_case(&c, 0, 1);
    CHECK(loss.vicreg_variance == 0 && loss.vicreg_covariance == 0);
    for (int d = 0; d < 5; d++) CHECK(c.dx[d] == 0);
    close_case(&c);
}

/* Tests columns of +1 and -1 in all combinations, whose covariance is 0 and whose variance, 8/7, is
 * above the target. */
static void test_satisfied(void) {
    reg_case c;
    open_case(&c, weights_of(0, 1, 1, 1), 8, 3, &bj_kernels_c);
    for (int b = 0; b < 8; b++)
        for (int d = 0; d < 3; d++)
            c.x[(size_t)b * c.stride + (size_t)d] = (bj_real)(b >> d & 1 ? 1 : -1);
    bj_loss loss = run_case(&c, 0, 8);
    CHECK(loss.vicreg_variance == 0 && loss.vicreg_covariance == 0);
    for (int b = 0; b < 8; b++)
        for (int d = 0; d < 3; d++) CHECK(c.dx[(size_t)b * c.stride + (size_t)d] == 0);
    c.objective.vicreg_gamma = 2;
    loss = run_case(&c, 0, 8);
    CHECK_NEAR(loss.vicreg_variance, 2 - sqrt(8.0 / 7 + 1e-4), 1e-6);
    close_case(&c);
}

/* Tests that a NaN in the embeddings makes every term NaN. */
static void test_nan(void) {
    for (int term = 0; term < 3; term++) {
        reg_case c;
        open_case(&c, weights_of(term == 0, term == 1, term == 2, 3), 4, 5, &bj_kernels_c);
        fill(&c, 8, 1);
        c.x[c.stride + 2] = (bj_real)NAN;
        CHECK_MSG(isnan(total(&c)), "%s", terms[term]);
        close_case(&c);
    }
}

/* ------------------------------------------------------------------------------------ objective */

/* Tests that a weight of 0 disables a term, that error messages name the invalid setting, and that
 * the encoder gets a gradient even if a regularizer is the only term. */
static void test_settings(void) {
    const bj_arch arch = bj_arch_paper();
    bj_error err = {BJ_OK, ""};
    for (bj_objective_kind kind = BJ_FULLSET; kind <= BJ_VARIATIONAL; kind++) {
        const bj_objective o = bj_objective_default(kind);
        CHECK(!bj_regularizers_active(&o));
        CHECK(o.sigreg_slices == 256 && o.vicreg_gamma == 1);
    }
    bj_objective o = bj_objective_default(BJ_FULLSET);
    o.lambda_z = o.lambda_y = 0;
    CHECK(!(bj_objective_reach(&o, &arch) & BJ_REACH_ENCODER));
    o.lambda_rec = 0;
    CHECK(bj_objective_check(&o, &arch, &err) == BJ_EARG);
    o.vicreg_variance = 1;
    CHECK_OK(bj_objective_check(&o, &arch, &err), err);
    CHECK(bj_objective_reach(&o, &arch) == BJ_REACH_ENCODER);
    double *const numbers[] = {&o.sigreg, &o.vicreg_variance, &o.vicreg_covariance,
                               &o.vicreg_gamma};
    static const char *const names[] = {"sigreg", "vicreg_variance", "vicreg_covariance",
                                        "vicreg_gamma"};
    for (int i = 0; i < 4; i++) {
        const double kept = *numbers[i];
        *numbers[i] = i % 2 ? -1 : NAN;
        CHECK(bj_objective_check(&o, &arch, &err) == BJ_EARG);
        CHECK_CONTAINS(err.message, names[i]);
        *numbers[i] = kept;
    }
    o.sigreg_slices = 0;
    CHECK(bj_objective_check(&o, &arch, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "sigreg_slices is 0");
}

/* --------------------------------------------------------------------------------------- export */

static bj_tensor_view view_of(const char *name, const bj_real *data, int rows, int cols) {
    const size_t count = (size_t)rows * (size_t)cols;
    return (bj_tensor_view){.name = name,
                            .dtype = BJ_DTYPE_REAL,
                            .rank = 2,
                            .shape = {rows, cols},
                            .count = count,
                            .bytes = count * sizeof *data,
                            .data = data};
}

/* Removes the gaps between the rows, in place. */
static void close_gaps(const reg_case *c, bj_real *x) {
    for (int b = 1; b < c->B; b++)
        memmove(x + (size_t)b * (size_t)c->D, x + (size_t)b * c->stride, (size_t)c->D * sizeof *x);
}

static int export_case(const char *path) {
    const bj_kernels *k;
    bj_error err = {BJ_OK, ""};
    reg_case c;
    if (bj_kernels_find(&k, NULL, BJ_PRECISION_FULL, &err) != BJ_OK) return 1;
    open_case(&c, weights_of(0.02, 1, 0.04, 256), 256, 512, k);
    fill(&c, 11, 0.7);
    c.seed = 3;
    c.step = 41;
    const bj_loss loss = run_case(&c, 0, 256);
    const bj_real values[] = {(bj_real)loss.sigreg, (bj_real)loss.vicreg_variance,
                              (bj_real)loss.vicreg_covariance};
    close_gaps(&c, c.x);
    close_gaps(&c, c.dx);
    const bj_tensor_view views[] = {view_of("x", c.x, c.B, c.D), view_of("dx", c.dx, c.B, c.D),
                                    view_of("directions", c.r.direction, 256, c.D),
                                    view_of("terms", values, 1, 3)};
    static const bj_fact facts[] = {
        {"seed", "3"},     {"step", "41"},           {"gamma", "0.9"},
        {"sigreg", ".02"}, {"vicreg_variance", "1"}, {"vicreg_covariance", ".04"}};
    const bj_status status = bj_safetensors_write(path, views, 4, facts, 6, &err);
    if (status != BJ_OK) fprintf(stderr, "%s\n", err.message);
    close_case(&c);
    return status != BJ_OK;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "export")) return export_case(argv[2]);
    test_golden();
    test_gradients();
    for (int i = 0; bj_kernels_at(i); i++) test_order(bj_kernels_at(i));
    test_directions();
    test_zero_embeddings();
    test_one_scene();
    test_satisfied();
    test_nan();
    test_settings();
    return test_report("regularizers");
}
