/* test_mixed.c - compares gradients in mixed precision with float64 gradients.
 *
 * The golden files contain the error of PyTorch's bf16 autocast for every gradient tensor
 * (scripts/make_mixed_golden.py). Our root mean square error must be at most 1.5 times as large on
 * every instruction set, in each case (all tensors and draws) and for each tensor (all cases and
 * draws). The errors of one tensor in one case vary too much between draws for the three files of a
 * case. peer_mixed.py compares them over more draws. In single precision the errors must be far
 * smaller, so that the comparison depends on the rounding of the operands.
 *
 * The cases cover every arm of scenes. tests/train/peer_observed_mixed.py covers the maze arms.
 *
 * test_mixed FILE...   compares each tensor of the files of one case, as described above
 */
#include <math.h>

#include "kernels/kernels.h"
#include "support/test.h"
#include "verify/golden.h"

enum { MOST = 1 << 16 }; /* entries of a tensor */

/* Reads tensor `group`.`name` of a golden file. Returns 0 if it does not exist. */
static int read_tensor(bj_real *out, const bj_golden *golden, char group, const char *name) {
    char full[112];
    bj_error err;
    snprintf(full, sizeof full, "%c.%s", group, name);
    const bj_tensor_view *view = bj_safetensors_find(golden->file, full);
    if (!view) return 0;
    CHECK(view->count <= MOST);
    CHECK_OK(bj_safetensors_read_real(out, golden->file, full, view->rank, view->shape, &err), err);
    return 1;
}

/* Returns |found - expected| / |expected|. If `expected` is zero, `found` must be zero. */
static double error_of(const bj_real *found, const bj_real *expected, size_t n, const char *name) {
    double off = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)found[i] - (double)expected[i];
        off += d * d;
        size += (double)expected[i] * (double)expected[i];
    }
    if (size > 0) return sqrt(off / size);
    CHECK_MSG(off == 0, "%s: expected a gradient of zero", name);
    return 0;
}

/* Squared errors, summed over files, of a gradient tensor or of a case. */
typedef struct sums {
    char name[96];
    double ours, theirs;
} sums;

typedef struct table {
    sums row[128];
    int count;
} table;

static void add_to(table *t, const char *name, double ours, double theirs) {
    int i = 0;
    while (i < t->count && strcmp(t->row[i].name, name)) i++;
    if (i == t->count) {
        CHECK(t->count < 128);
        snprintf(t->row[t->count++].name, sizeof t->row[i].name, "%s", name);
    }
    t->row[i].ours += ours * ours;
    t->row[i].theirs += theirs * theirs;
}

/* Checks that the root mean square error of every row is at most `most` times that of autocast.
 * Prints the largest ratio. */
static void check(const table *t, const char *what, double most) {
    double worst = 0;
    for (int i = 0; i < t->count; i++) {
        if (t->row[i].theirs == 0) continue; /* gradients of zero */
        const double ratio = sqrt(t->row[i].ours / t->row[i].theirs);
        CHECK_MSG(ratio <= most, "%s: error of %s is %.3f times that of autocast, expected %g",
                  what, t->row[i].name, ratio, most);
        worst = fmax(worst, ratio);
    }
    CHECK(worst > 0);
    printf("%s: at most %.4f times the error of autocast\n", what, worst);
}

/* Adds the errors of a file to the rows of its tensors and to the row of its case. */
static void add_file(table *tensors, table *cases, const char *path, const char *isa,
                     bj_precision precision) {
    static bj_real expected[MOST], peer[1];
    bj_golden golden = {0};
    bj_trainer *trainer = NULL;
    bj_error err = {0};
    CHECK_OK(bj_golden_open(&golden, path, &err), err);
    if (!golden.model) return;
    const bj_trainer_options options = {.objective = golden.objective,
                                        .optim = golden.optim,
                                        .max_batch = golden.B,
                                        .threads = 1,
                                        .isa = isa,
                                        .precision = precision};
    CHECK_OK(bj_trainer_create(&trainer, golden.model, &options, &err), err);
    CHECK_OK(bj_golden_load_target(&golden, trainer, &err), err);
    CHECK_OK(bj_trainer_gradients(trainer, bj_scenes_batch(golden.scenes), NULL, &err), err);
    for (int i = 0; i < bj_model_tensor_count(golden.model); i++) {
        const bj_tensor g = bj_trainer_gradient(trainer, i);
        const int known = read_tensor(expected, &golden, 'g', g.name);
        CHECK_MSG(known == (g.data != NULL), "%s: gradient of %s: %s", path, g.name,
                  known ? "only in the file" : "not in the file");
        if (!known || !g.data) continue;
        CHECK_MSG(read_tensor(peer, &golden, 'e', g.name), "%s: no error of %s", path, g.name);
        const double ours = error_of(g.data, expected, g.size, g.name), theirs = (double)peer[0];
        add_to(tensors, g.name, ours, theirs);
        add_to(cases, golden.name, ours, theirs);
    }
    bj_trainer_free(trainer);
    bj_golden_reset(&golden);
}

enum { DRAWS = 3 };

static const char *const names[] = {
    "fullset",    "uniform",    "softwta",       "sinkhorn",       "specialization",
    "mdn_fixed",  "mdn_global", "mdn_component", "decoded_only",   "point",
    "outputonly", "anchor_a",   "anchor_b",      "anchor_b_point", "regularized"};

static void check_all(const char *isa, bj_precision precision, double most) {
    static table tensors, cases;
    tensors.count = cases.count = 0;
    memset(tensors.row, 0, sizeof tensors.row);
    memset(cases.row, 0, sizeof cases.row);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int draw = 0; draw < DRAWS; draw++) {
            char path[96];
            snprintf(path, sizeof path, "tests/golden/mixed/%s_%d.safetensors", names[i], draw);
            add_file(&tensors, &cases, path, isa, precision);
        }
    CHECK(cases.count == sizeof names / sizeof *names);
    char what[64];
    const char *name = precision == BJ_PRECISION_FULL ? "single" : "mixed";
    snprintf(what, sizeof what, "%s, %s, each tensor", isa, name);
    check(&tensors, what, most);
    snprintf(what, sizeof what, "%s, %s, each case", isa, name);
    check(&cases, what, most);
}

int main(int argc, char **argv) {
    static table tensors, cases;
    for (int i = 1; i < argc; i++) add_file(&tensors, &cases, argv[i], NULL, BJ_PRECISION_BF16);
    if (argc > 1) check(&tensors, argv[1], 1.5);
    for (int i = 0; argc == 1 && bj_kernels_at(i); i++) {
        check_all(bj_kernels_at(i)->isa, BJ_PRECISION_BF16, 1.5);
        check_all(bj_kernels_at(i)->isa, BJ_PRECISION_FULL, 0.01);
    }
    return test_report("verify.mixed");
}
