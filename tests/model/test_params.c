/* test_params.c - tests the parameter table: counts, layout and initial weights. The weights have
 * PyTorch's distributions and are equal in all arms of a seed. */
#include "model/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "model/model.h"
#include "test.h"

static bj_model *create(const bj_arch *arch, uint64_t seed) {
    bj_model *model;
    bj_error err;
    if (bj_model_create(&model, arch, seed, &err) != BJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    return model;
}

/* --------------------------------------------------------------------------------------- counts */

static void check_counts(const bj_arch *arch, size_t encoder, size_t atoms, size_t router,
                         size_t decoder, size_t scales) {
    const bj_counts c = bj_arch_counts(arch);
    CHECK(c.encoder == encoder && c.atoms == atoms && c.router == router && c.decoder == decoder);
    CHECK(c.scales == scales);
    CHECK(c.downstream == atoms + router + decoder && c.total == c.downstream + encoder);
    /* the model has exactly the tensors that were counted */
    bj_model *model = create(arch, 0);
    size_t sum = 0;
    for (int i = 0; i < bj_model_tensor_count(model); i++) sum += bj_model_tensor(model, i).size;
    CHECK(sum == c.total + c.scales);
    bj_model_free(model);
}

static void test_counts(void) {
    bj_arch arch = bj_arch_paper();
    check_counts(&arch, 1465600, 3151872, 132870, 324216, 0);
    CHECK(bj_arch_counts(&arch).total == 5074558 && bj_arch_counts(&arch).downstream == 3608958);
    arch.scales = BJ_SCALES_GLOBAL;
    check_counts(&arch, 1465600, 3151872, 132870, 324216, 2);
    arch.scales = BJ_SCALES_COMPONENT;
    check_counts(&arch, 1465600, 3151872, 132870, 324216, 6 * (512 + 120));
    arch = bj_arch_point();
    check_counts(&arch, 1465600, 3284612, 0, 324216, 0);
    CHECK(bj_arch_counts(&arch).total == 5074428);
    arch = bj_arch_output_only();
    check_counts(&arch, 1465600, 525312, 132870, 2950776, 0);
    CHECK(bj_arch_counts(&arch).downstream == 3608958);
}

/* --------------------------------------------------------------------------------------- layout */

static void check_layout(const bj_arch *arch) {
    bj_model *model = create(arch, 3);
    const bj_layout *l = &model->layout;
    size_t end = 0;
    int left_encoder = 0;
    for (int i = 0; i < l->count; i++) {
        const bj_param *p = &l->params[i];
        CHECK(p->offset % 16 == 0 && p->offset >= end && p->offset < end + 16);
        for (size_t j = end; j < p->offset; j++) CHECK(model->weights[j] == 0); /* gaps are zero */
        CHECK(p->size == (size_t)p->shape[0] * (size_t)p->shape[1]);
        CHECK(p->rank == 2 || (p->rank == 1 && p->shape[1] == 1));
        end = p->offset + p->size;
        if (p->part != BJ_PART_ENCODER) left_encoder = 1;
        CHECK((p->part == BJ_PART_ENCODER) == (strncmp(p->name, "encoder.", 8) == 0));
        CHECK(!(left_encoder && p->part == BJ_PART_ENCODER)); /* the encoder is a prefix of the
                                                                 block */
        CHECK((p->offset < l->encoder_size) == (p->part == BJ_PART_ENCODER));
        for (int j = 0; j < i; j++) CHECK(strcmp(p->name, l->params[j].name) != 0);
        bj_tensor t;
        bj_error err;
        CHECK_OK(bj_model_find(&t, model, p->name, &err), err);
        CHECK(t.data == model->weights + p->offset && t.size == p->size && t.rank == p->rank);
    }
    CHECK(l->size >= end && l->size < end + 16);
    bj_tensor none;
    bj_error err;
    CHECK(bj_model_find(&none, model, "encoder.gru.weight_ih", &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "encoder.gru.weight_ih");
    CHECK(memcmp(bj_model_arch(model), arch, sizeof *arch) == 0);
    bj_model_free(model);
}

static bj_arch tiny(int atoms) {
    bj_arch a = bj_arch_paper();
    a.obs = 3, a.fut = 10, a.points = 3, a.embed = 6, a.heads = 2, a.token_hidden = 7;
    a.latent = 5, a.proj_hidden = 9, a.atoms = atoms, a.atom_hidden = 4, a.router_hidden = 3;
    a.decoder_hidden = 8, a.trunk = 11;
    return a;
}

static void test_layout(void) {
    bj_arch arch = tiny(3);
    check_layout(&arch);
    arch.scales = BJ_SCALES_COMPONENT;
    check_layout(&arch);
    arch = tiny(1);
    check_layout(&arch);
    arch = tiny(64);
    check_layout(&arch);
    arch.kind = BJ_MODEL_OUTPUT_ONLY;
    check_layout(&arch);
}

/* ------------------------------------------------------------------------------ initial weights */

/* Checks n samples of U(-bound, bound): range, mean and variance within five standard errors. */
static void check_uniform(const bj_tensor *t, double bound) {
    const double n = (double)t->size;
    double sum = 0, square = 0, least = HUGE_VAL, most = -HUGE_VAL;
    for (size_t i = 0; i < t->size; i++) {
        const double w = (double)t->data[i];
        sum += w, square += w * w;
        least = fmin(least, w), most = fmax(most, w);
    }
    CHECK_MSG(least >= -bound * (1 + 1e-7) && most <= bound * (1 + 1e-7), "%s: [%g,%g] leaves %g",
              t->name, least, most, bound);
    /* The gap between the extreme sample of n and the end of the range exceeds 20/n of the range
     * half-width with probability e^-10. */
    CHECK_MSG(n < 100 || (least < -bound * (1 - 20 / n) && most > bound * (1 - 20 / n)),
              "%s: [%g,%g] does not fill %g", t->name, least, most, bound);
    CHECK_MSG(fabs(sum / n) <= 5 * bound / sqrt(3 * n), "%s: mean %g", t->name, sum / n);
    CHECK_MSG(fabs(square / n / (bound * bound / 3) - 1) <= 5 * sqrt(0.8 / n), "%s: variance %g",
              t->name, square / n);
}

static void check_constant(const bj_tensor *t, double value) {
    for (size_t i = 0; i < t->size; i++)
        if ((double)t->data[i] != (double)(float)value) {
            CHECK_MSG(0, "%s[%zu] is %g, expected %g", t->name, i, (double)t->data[i], value);
            return;
        }
    CHECK(t->size > 0);
}

static int is(const char *name, const char *whole) { return strcmp(name, whole) == 0; }

/* Checks PyTorch's defaults: Linear +-1/sqrt(fan in) for weight and bias, GRU +-1/sqrt(E),
 * attention input projection Xavier over its whole (3E,E) with zero bias, output projection with
 * zero bias. */
static void check_initial(const bj_arch *a) {
    bj_model *model = create(a, 12);
    double fan = 0;
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor t = bj_model_tensor(model, i);
        if (strncmp(t.name, "encoder.gru.", 12) == 0) check_uniform(&t, 1 / sqrt(a->embed));
        else if (is(t.name, "encoder.attn.in_proj_weight"))
            check_uniform(&t, sqrt(6.0 / (4 * a->embed)));
        else if (is(t.name, "encoder.attn.in_proj_bias") ||
                 is(t.name, "encoder.attn.out_proj.bias"))
            check_constant(&t, 0);
        else if (is(t.name, "step_scale") || is(t.name, "segment_scale")) check_constant(&t, 1);
        else if (is(t.name, "log_sz")) check_constant(&t, log(0.25));
        else if (is(t.name, "log_sy")) check_constant(&t, log(2));
        else { /* a weight tensor, followed by the bias of its layer */
            if (t.rank == 2) fan = t.shape[1];
            check_uniform(&t, 1 / sqrt(fan));
        }
        int stored = 1; /* storing the weights in single precision must be lossless */
        for (size_t j = 0; j < t.size; j++) stored &= (double)(float)t.data[j] == (double)t.data[j];
        CHECK_MSG(stored, "%s", t.name);
    }
    bj_model_free(model);
}

static void test_initial(void) {
    bj_arch arch = bj_arch_paper();
    arch.scales = BJ_SCALES_COMPONENT;
    check_initial(&arch);
    arch = bj_arch_output_only();
    check_initial(&arch);
    arch = bj_arch_point();
    check_initial(&arch);
}

/* Returns the number of tensors with the same name and size in both models. *same is 1 if all of
 * them have the same bits. */
static int shared_tensors(const bj_model *a, const bj_model *b, const char *prefix, int *same) {
    int shared = 0;
    *same = 1;
    for (int i = 0; i < bj_model_tensor_count(a); i++) {
        const bj_tensor t = bj_model_tensor(a, i);
        bj_tensor o;
        if (strncmp(t.name, prefix, strlen(prefix)) ||
            bj_model_find(&o, b, t.name, NULL) != BJ_OK || o.size != t.size)
            continue;
        shared++;
        *same &= memcmp(t.data, o.data, t.size * sizeof *t.data) == 0;
    }
    return shared;
}

static void test_same_seed(void) {
    bj_arch arch = tiny(6), global = arch, each = arch, single = arch, one = arch;
    global.scales = BJ_SCALES_GLOBAL, each.scales = BJ_SCALES_COMPONENT;
    single.kind = BJ_MODEL_OUTPUT_ONLY;
    one.atoms = 1;
    const bj_arch *archs[] = {&arch, &arch, &global, &each, &single, &one};
    bj_model *model[6];
    int same;
    for (int i = 0; i < 6; i++) model[i] = create(archs[i], 5);
    for (int i = 1; i < 4; i++) { /* the same model, and models with learned scales, share all
                                     tensors */
        CHECK(shared_tensors(model[0], model[i], "", &same) == bj_model_tensor_count(model[0]));
        CHECK_MSG(same, "branch model %d starts elsewhere", i);
    }
    CHECK(shared_tensors(model[0], model[4], "encoder.", &same) == 20 && same);
    CHECK(shared_tensors(model[0], model[4], "router.", &same) == 4 && same);
    CHECK(shared_tensors(model[0], model[5], "encoder.", &same) == 20 && same);
    CHECK(shared_tensors(model[0], model[5], "decoder.", &same) == 4 && same);
    /* another seed or another atom gives different numbers */
    bj_model *other = create(&arch, 6);
    for (int i = 0; i < bj_model_tensor_count(other); i++) {
        const bj_tensor a = bj_model_tensor(model[0], i), b = bj_model_tensor(other, i);
        const int constant =
            is(a.name, "encoder.attn.in_proj_bias") || is(a.name, "encoder.attn.out_proj.bias");
        CHECK_MSG((memcmp(a.data, b.data, a.size * sizeof *a.data) == 0) == constant, "%s", a.name);
    }
    bj_tensor first, second;
    bj_error err;
    CHECK_OK(bj_model_find(&first, other, "atoms.0.2.weight", &err), err);
    CHECK_OK(bj_model_find(&second, other, "atoms.1.2.weight", &err), err);
    CHECK(memcmp(first.data, second.data, first.size * sizeof *first.data) != 0);
    bj_model_free(other);
    for (int i = 0; i < 6; i++) bj_model_free(model[i]);
}

/* Tests that the initial weights of conditioned training are sigma times gain times the plain
 * sample, and that those of the last decoder layer are running sums over time. */
static void test_conditioned(void) {
    const bj_arch archs[] = {bj_arch_paper(), bj_arch_point(), bj_arch_output_only()};
    const double he = sqrt(6);
    for (int a = 0; a < 3; a++) {
        bj_model *plain = create(&archs[a], 5), *model = create(&archs[a], 5);
        bj_model_condition(model, 5);
        for (int i = 0; i < bj_model_tensor_count(model); i++) {
            const bj_tensor w = bj_model_tensor(model, i), draw = bj_model_tensor(plain, i);
            const int columns = w.rank == 2 ? w.shape[1] : 1;
            const int steps = !strncmp(w.name, "decoder.2.", 10) || !strncmp(w.name, "base.", 5) ||
                              !strncmp(w.name, "residual.", 9);
            int wrong = 0;
            for (int j = 0; j < (int)w.size; j++) {
                const int gru = !strcmp(w.name, "encoder.gru.weight_ih_l0");
                const int track = gru || !strcmp(w.name, "encoder.neighbor.0.weight");
                const int map = !strcmp(w.name, "encoder.polyline.0.weight");
                const int f = j % columns % (map ? 6 : 7);
                double expected = draw.data[j], before = 0;
                if (steps) { /* gain 0.1, and sigma is 5 m/s times 0.1 s */
                    expected *= 0.1 * 0.5;
                    before = j >= 2 * columns ? w.data[j - 2 * columns] : 0;
                } else if (strstr(w.name, ".weight") && !strstr(w.name, "gru")) {
                    expected *= he;
                }
                if (gru) expected *= sqrt(3 * 256 / 7.0);
                if (track) expected *= f < 2 ? 0.05 : f < 4 ? 0.2 : 1;
                if (map) expected *= f < 2 ? 0.05 : 1;
                if (!strcmp(w.name, "decoder.0.weight") || !strcmp(w.name, "trunk.weight"))
                    expected *= sqrt(512);
                wrong += !(fabs(w.data[j] - (before + expected)) <=
                           2e-7 * (fabs(expected) + fabs(before)));
            }
            CHECK_MSG(wrong == 0, "%s: %d of %zu", w.name, wrong, w.size);
        }
        bj_model_free(plain), bj_model_free(model);
    }
}

int main(void) {
    test_counts();
    test_layout();
    test_initial();
    test_same_seed();
    bj_model_free(NULL);
    CHECK(bj_alloc_live() == 0);
    test_conditioned();
    return test_report("params");
}
