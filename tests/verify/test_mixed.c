/* test_mixed.c - compares gradients in mixed precision with float64 gradients.
 *
 * The golden files contain the error of PyTorch's bf16 autocast for every gradient tensor
 * (scripts/make_mixed_golden.py). Our error, as a root mean square over the files, must not exceed
 * 1.5 times that error on any instruction set. In single precision the errors must be far smaller,
 * so that the comparison depends on the rounding of the operands.
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

/* Returns |found - expected| / |expected|. */
static double error_of(const bj_real *found, const bj_real *expected, size_t n) {
    double off = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)found[i] - (double)expected[i];
        off += d * d;
        size += (double)expected[i] * (double)expected[i];
    }
    return sqrt(off / size);
}

/* Squared errors of a gradient tensor, summed over the files. */
typedef struct sums {
    char name[96];
    double ours, theirs;
} sums;

static sums tensors[64];
static int count;

static sums *sums_of(const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(tensors[i].name, name)) return &tensors[i];
    snprintf(tensors[count].name, sizeof tensors[count].name, "%s", name);
    return &tensors[count++];
}

static void add_file(const char *path, const char *isa, bj_precision precision) {
    static bj_real expected[MOST], peer[1];
    bj_golden golden = {0};
    bj_trainer *trainer = NULL;
    bj_error err = {0};
    CHECK_OK(bj_golden_open(&golden, path, &err), err);
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
        if (!read_tensor(expected, &golden, 'g', g.name)) continue;
        CHECK_MSG(read_tensor(peer, &golden, 'e', g.name), "%s: no error of %s", path, g.name);
        const double ours = error_of(g.data, expected, g.size), theirs = (double)peer[0];
        sums *s = sums_of(g.name);
        s->ours += ours * ours;
        s->theirs += theirs * theirs;
    }
    bj_trainer_free(trainer);
    bj_golden_reset(&golden);
}

/* Checks that the root mean square error of every tensor is at most `most` times that of
 * autocast. */
static void check(const char *const *paths, int files, const char *isa, bj_precision precision,
                  double most) {
    double worst = 0;
    count = 0;
    memset(tensors, 0, sizeof tensors);
    for (int i = 0; i < files; i++) add_file(paths[i], isa, precision);
    for (int i = 0; i < count; i++) {
        const double ratio = sqrt(tensors[i].ours / tensors[i].theirs);
        CHECK_MSG(ratio <= most,
                  "%s: the error of %s is %.3f times that of autocast, "
                  "expected at most %g",
                  isa, tensors[i].name, ratio, most);
        worst = fmax(worst, ratio);
    }
    CHECK_MSG(count == 40, "%d gradients compared", count);
    printf("%s, %s precision: at most %.3f times the error of autocast\n", isa ? isa : "default",
           precision == BJ_PRECISION_FULL ? "single" : "mixed", worst);
}

/* The arguments are golden files to compare instead of those in the repository. */
int main(int argc, char **argv) {
    static const char *const paths[] = {"tests/golden/mixed/fullset_0.safetensors",
                                        "tests/golden/mixed/fullset_1.safetensors",
                                        "tests/golden/mixed/fullset_2.safetensors"};
    if (argc > 1) check((const char *const *)(argv + 1), argc - 1, NULL, BJ_PRECISION_BF16, 1.5);
    for (int i = 0; argc == 1 && bj_kernels_at(i); i++) {
        check(paths, 3, bj_kernels_at(i)->isa, BJ_PRECISION_BF16, 1.5);
        check(paths, 3, bj_kernels_at(i)->isa, BJ_PRECISION_FULL, 0.01);
    }
    return test_report("verify.mixed");
}
