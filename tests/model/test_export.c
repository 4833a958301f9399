/* test_export.c - tests copies of model files: facts, BF16 weights and failures.
 *
 * With an argument, writes the BF16 copy of a small model to that path (peer_export.py reads it),
 * and the original next to it, with ".full" appended.
 */
#define _XOPEN_SOURCE 700
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "support/test.h"

static char folder[] = "/tmp/test_export.XXXXXX";
static char full[64], copy[64];

static bj_model *small_model(void) {
    bj_error err = {0};
    bj_model *model = NULL;
    bj_arch arch = bj_arch_paper();
    arch.embed = 8;
    arch.heads = 2;
    arch.token_hidden = arch.latent = arch.proj_hidden = arch.atom_hidden = 6;
    arch.router_hidden = arch.decoder_hidden = 5;
    CHECK_OK(bj_model_create(&model, &arch, 3, &err), err);
    return model;
}

static const bj_fact given[] = {{"run.arm", "fullset"}, {"name", "old"}};

static void save(const bj_model *model, const char *path) {
    bj_error err = {0};
    CHECK_OK(bj_model_save(model, path, given, 2, &err), err);
}

static int has(const bj_facts *facts, const char *key, const char *value) {
    const char *found = bj_facts_get(facts, key);
    return found && !strcmp(found, value);
}

/* Rounds to 8 significant bits with ties to even, using arithmetic instead of bit operations. */
static double nearest(double value) {
    int exponent;
    const double fraction = frexp((double)(float)value, &exponent); /* in [.5, 1) */
    double scaled = ldexp(fraction, 8), whole = floor(scaled);
    const double rest = scaled - whole;
    if (rest > 0.5 || (rest == 0.5 && fmod(whole, 2) != 0)) whole += 1;
    return ldexp(whole, exponent - 8);
}

/* Tests that a BF16 copy has the rounded weights, the source's facts and the caller's facts. */
static void test_narrow(void) {
    static const bj_fact added[] = {{"name", "new"}, {"license", "Apache-2.0"}};
    bj_error err = {0};
    bj_model *model = small_model(), *read = NULL;
    bj_facts *facts = NULL;
    /* Ties in both directions, a carry into the exponent, and zero. */
    static const double odd[] = {1 + 1.0 / 256,
                                 1 + 3.0 / 256,
                                 2 - 1.0 / 256,
                                 -1 - 1.0 / 256,
                                 0,
                                 1 + 1.0 / 256 + 1.0 / 65536};
    const bj_tensor first = bj_model_tensor(model, 0);
    for (int i = 0; i < 6; i++) first.data[i] = (bj_real)odd[i];
    save(model, full);
    CHECK_OK(bj_model_export(full, copy, BJ_PRECISION_BF16, added, 2, &err), err);
    CHECK_OK(bj_model_load(&read, copy, &err), err);
    if (!read) return;
    size_t parameters = 0;
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor a = bj_model_tensor(model, i), b = bj_model_tensor(read, i);
        for (size_t j = 0; j < a.size; j++)
            CHECK_MSG((double)b.data[j] == nearest((double)a.data[j]), "%s[%zu]: %.9g from %.9g",
                      a.name, j, (double)b.data[j], (double)a.data[j]);
        parameters += a.size;
    }
    const bj_tensor rounded = bj_model_tensor(read, 0);
    CHECK(rounded.data[0] == 1 && (double)rounded.data[1] == 1 + 4.0 / 256 && rounded.data[2] == 2);

    struct stat info;
    CHECK(stat(copy, &info) == 0 && (size_t)info.st_size > 2 * parameters &&
          (size_t)info.st_size < 2 * parameters + 8192);
    CHECK_OK(bj_facts_read(&facts, copy, &err), err);
    CHECK(has(facts, "run.arm", "fullset") && has(facts, "name", "new"));
    CHECK(has(facts, "license", "Apache-2.0") && has(facts, "latent", "6"));
    bj_facts_free(facts);
    bj_model_free(read);
    bj_model_free(model);
}

/* Tests that a full-precision copy has identical weights, and that a BF16 copy of a BF16 file is
 * identical to it. */
static void test_copies(void) {
    bj_error err = {0};
    bj_model *model = small_model(), *read = NULL;
    char again[80], first[65], second[65];
    save(model, full);
    CHECK_OK(bj_model_export(full, copy, BJ_PRECISION_FULL, NULL, 0, &err), err);
    CHECK_OK(bj_model_load(&read, copy, &err), err);
    for (int i = 0; read && i < bj_model_tensor_count(model); i++) {
        const bj_tensor a = bj_model_tensor(model, i), b = bj_model_tensor(read, i);
        CHECK(!memcmp(a.data, b.data, a.size * sizeof *a.data));
    }
    bj_model_free(read);
    snprintf(again, sizeof again, "%s.again", copy);
    CHECK_OK(bj_model_export(full, copy, BJ_PRECISION_BF16, NULL, 0, &err), err);
    CHECK_OK(bj_model_export(copy, again, BJ_PRECISION_BF16, NULL, 0, &err), err);
    CHECK_OK(bj_file_digest(first, copy, &err), err);
    CHECK_OK(bj_file_digest(second, again, &err), err);
    CHECK(!strcmp(first, second));
    CHECK(remove(again) == 0);
    bj_model_free(model);
}

/* Tests that bad arguments, bad files and weights beyond the range of BF16 are rejected, and that
 * an existing file stays unchanged. */
static void test_failures(void) {
    static const bj_fact taken[] = {{"latent", "7"}};
    bj_error err = {0};
    bj_model *model = small_model();
    char before[65], after[65];
    save(model, full);
    CHECK_OK(bj_model_export(full, copy, BJ_PRECISION_BF16, NULL, 0, &err), err);
    CHECK_OK(bj_file_digest(before, copy, &err), err);
    CHECK(bj_model_export(NULL, copy, BJ_PRECISION_FULL, NULL, 0, &err) == BJ_EARG);
    CHECK(bj_model_export(full, copy, (bj_precision)7, NULL, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "precision is 7");
    CHECK(bj_model_export(full, copy, BJ_PRECISION_BF16, taken, 1, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "latent");
    CHECK(bj_model_export("/nonexistent", copy, BJ_PRECISION_BF16, NULL, 0, &err) == BJ_EIO);
    bj_model_tensor(model, 0).data[2] = (bj_real)FLT_MAX;
    save(model, full);
    CHECK(bj_model_export(full, copy, BJ_PRECISION_BF16, NULL, 0, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, "value 2 is too large for BF16");
    CHECK_OK(bj_file_digest(after, copy, &err), err);
    CHECK(!strcmp(before, after));
    bj_model_free(model);
}

/* Tests that every failed allocation is reported as an error and leaks nothing. */
static void test_memory(void) {
    bj_error err = {0};
    bj_model *model = small_model();
    save(model, full);
    bj_model_free(model);
    for (int n = 0, done = 0; !done; n++) {
        const long before = bj_alloc_live();
        bj_alloc_fail_after(n);
        const bj_status status = bj_model_export(full, copy, BJ_PRECISION_BF16, given, 2, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        CHECK(bj_alloc_live() == before);
        done = status != BJ_ENOMEM;
    }
}

int main(int argc, char **argv) {
    if (argc == 2) {
        bj_model *model = small_model();
        bj_error err = {0};
        char original[1024];
        snprintf(original, sizeof original, "%s.full", argv[1]);
        save(model, original);
        CHECK_OK(bj_model_export(original, argv[1], BJ_PRECISION_BF16, NULL, 0, &err), err);
        bj_model_free(model);
        return test_report("export");
    }
    if (!mkdtemp(folder)) return 1;
    snprintf(full, sizeof full, "%s/full", folder);
    snprintf(copy, sizeof copy, "%s/copy", folder);
    test_narrow();
    test_copies();
    test_failures();
    test_memory();
    remove(full);
    remove(copy);
    CHECK(rmdir(folder) == 0);
    return test_report("export");
}
