/* test_parity.c - tests that golden files pass on every instruction set and changed files fail.
 *
 * The changes are made to copies in a temporary folder: one entry of one
 * tensor, for every group of every file and for every tensor of some
 * files; names and metadata; errors just below and above the tolerance.
 */
#define _XOPEN_SOURCE 700 /* mkdtemp, scandir */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "kernels/kernels.h"
#include "test.h"

static const char *const folders[] = {"tests/golden/tiny", "tests/golden/odd"};
static char folder[32] = "/dev/shm/test_parity.XXXXXX"; /* in memory, because files are synced */
static char changed[64];                                /* path of the changed file */

enum { MOST = 1024, MOST_FACTS = 64 };

/* The parts of a golden file. One tensor at a time can have changed data. Names, shapes and
 * metadata can be changed, too. */
typedef struct copy {
    char *bytes; /* the unchanged file */
    size_t size;
    bj_safetensors *file;
    bj_tensor_view tensors[MOST];
    bj_fact facts[MOST_FACTS];
    int count, fact_count;
    void *replaced; /* data of tensor `open` */
    int open;
} copy;

static void take_apart(copy *c, const char *path) {
    bj_error err;
    if (bj_file_read(&c->bytes, &c->size, path, 1 << 24, &err) != BJ_OK ||
        bj_safetensors_open_memory(&c->file, c->bytes, c->size, path, &err) != BJ_OK) {
        fprintf(stderr, "%s\n", err.message);
        exit(1);
    }
    c->count = bj_safetensors_count(c->file);
    c->fact_count = bj_safetensors_metadata_count(c->file);
    c->replaced = NULL;
    if (c->count > MOST || c->fact_count > MOST_FACTS) exit(1);
    for (int i = 0; i < c->count; i++) c->tensors[i] = *bj_safetensors_at(c->file, i);
    for (int i = 0; i < c->fact_count; i++) c->facts[i] = bj_safetensors_metadata_at(c->file, i);
}

static void put_away(copy *c) {
    bj_safetensors_close(c->file);
    bj_free(c->bytes);
    free(c->replaced);
}

static const char *fact(const copy *c, const char *key) {
    const char *value = bj_safetensors_metadata(c->file, key);
    return value ? value : "";
}

static int is_mask(const bj_tensor_view *t) { return t->dtype == BJ_DTYPE_U8; }

/* Returns a writable copy of the data of tensor i and resets all other tensors. */
static void *open_tensor(copy *c, int i) {
    for (int j = 0; j < c->count; j++) c->tensors[j] = *bj_safetensors_at(c->file, j);
    free(c->replaced);
    c->replaced = malloc(c->tensors[i].bytes + 1);
    if (!c->replaced) exit(1);
    memcpy(c->replaced, c->tensors[i].data, c->tensors[i].bytes);
    c->tensors[i].data = c->replaced;
    c->open = i;
    return c->replaced;
}

static size_t largest(const float *x, size_t n) {
    size_t at = 0;
    for (size_t i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(x[at])) at = i;
    return at;
}

/* Flips the sign of the largest number. */
static void flip(copy *c, int i) {
    float *x = open_tensor(c, i);
    const size_t at = largest(x, c->tensors[i].count);
    x[at] = x[at] == 0 ? 1 : -x[at];
}

/* Flips one token, which is slot `row` of a mask or the largest number in its row. Returns 0 if the
 * slot is empty. */
static int flip_token(copy *c, int i, size_t row) {
    void *data = open_tensor(c, i);
    if (is_mask(&c->tensors[i])) {
        unsigned char *mask = data;
        if (!mask[row]) return 0;
        mask[row] = 0;
        return 1;
    }
    const size_t width = (size_t)(c->tensors[i].shape[2] * c->tensors[i].shape[3]);
    float *x = (float *)data + row * width;
    const size_t at = largest(x, width);
    x[at] = -x[at];
    return x[at] != 0;
}

static bj_status judge(bj_parity_report *report, bj_error *err) {
    const bj_parity_options options = {1, NULL};
    return bj_parity_file(report, changed, &options, err);
}

/* Runs the parity check with the changed data of the open tensor. Writes the file directly, because
 * bj_safetensors_write is slower. */
static bj_status verdict(const copy *c, bj_parity_report *report, bj_error *err) {
    const bj_tensor_view *view = bj_safetensors_at(c->file, c->open);
    const size_t begin = (size_t)((const char *)view->data - c->bytes), end = begin + view->bytes;
    FILE *file = fopen(changed, "wb");
    *err = (bj_error){BJ_OK, ""};
    if (!file || fwrite(c->bytes, 1, begin, file) != begin ||
        fwrite(c->replaced, 1, view->bytes, file) != view->bytes ||
        fwrite(c->bytes + end, 1, c->size - end, file) != c->size - end || fclose(file)) {
        perror(changed);
        exit(1);
    }
    return judge(report, err);
}

/* Runs the parity check after a change of names, shapes or metadata. */
static bj_status verdict_rewritten(const copy *c, bj_parity_report *report, bj_error *err) {
    *err = (bj_error){BJ_OK, ""};
    if (bj_safetensors_write(changed, c->tensors, c->count, c->facts, c->fact_count, err) !=
        BJ_OK) {
        fprintf(stderr, "%s\n", err->message);
        exit(1);
    }
    return judge(report, err);
}

static int in_group(const char *name, const char *group) {
    const size_t n = strlen(group);
    return strncmp(name, group, n) == 0 && name[n] == '.';
}

/* Returns 1 if the input is unused. Stage A reads only the future, no
 * observed track and no neighbors. */
static int unused(const copy *c, const char *name) {
    return strcmp(fact(c, "objective"), "anchor_a") == 0 &&
           (strcmp(name, "x.focal") == 0 || strcmp(name, "x.neighbors") == 0 ||
            strcmp(name, "x.nmask") == 0);
}

/* Checks that changing at least one token is detected. Most tokens of
 * these scenes have an attention weight of zero. */
static void expect_token_noticed(copy *c, int i) {
    const size_t rows = (size_t)(c->tensors[i].shape[0] * c->tensors[i].shape[1]);
    int noticed = 0;
    for (size_t row = 0; row < rows && !noticed; row++) {
        bj_parity_report report;
        bj_error err;
        if (flip_token(c, i, row))
            noticed = verdict(c, &report, &err) != BJ_OK || report.failed > 0;
    }
    CHECK_MSG(noticed, "%s: no flipped token of %s is noticed", bj_safetensors_path(c->file),
              c->tensors[i].name);
}

static int is_tokens(const bj_tensor_view *t) {
    return in_group(t->name, "x") && (is_mask(t) || t->rank == 4);
}

static void expect_noticed(copy *c, int i) {
    bj_parity_report report;
    bj_error err;
    if (is_tokens(&c->tensors[i])) {
        expect_token_noticed(c, i);
        return;
    }
    flip(c, i);
    const bj_status status = verdict(c, &report, &err);
    CHECK_MSG(status != BJ_OK || report.failed > 0, "%s: a flipped number in %s passes",
              bj_safetensors_path(c->file), c->tensors[i].name);
    if (status != BJ_OK) return;
    CHECK(report.first_failure[0] != 0);
    /* The message must name the tensor if it is a result and not an input. */
    static const char *const stated[] = {"o", "l", "g", "m", "s", "st"};
    for (int g = 0; g < BJ_PARITY_GROUPS; g++)
        if (in_group(c->tensors[i].name, stated[g])) {
            CHECK_CONTAINS(report.first_failure, c->tensors[i].name);
            CHECK_MSG(report.failed == 1 || g >= BJ_PARITY_S, "%s: %d comparisons fail, expected 1",
                      c->tensors[i].name, report.failed);
            CHECK(report.worst[g] > 1e-2);
        }
}

/* Tests every tensor, or the first nonzero one of each group. */
static void test_flips(const char *path, int all) {
    static const char *const groups[] = {"o", "l", "g", "m", "s", "st", "w", "t", "x"};
    static copy c;
    take_apart(&c, path);
    for (int g = 0; g < 9; g++) {
        int done = 0, members = 0;
        for (int i = 0; i < c.count && (all || !done); i++) {
            const char *name = bj_safetensors_at(c.file, i)->name;
            if (!in_group(name, groups[g])) continue;
            members++;
            if (c.tensors[i].count == 0 || unused(&c, name)) continue;
            if (is_tokens(&c.tensors[i]) && !all) continue;
            expect_noticed(&c, i);
            done++;
        }
        CHECK_MSG(done > 0 || members == 0, "%s: nothing was changed in group %s", path, groups[g]);
    }
    put_away(&c);
}

static int is_golden(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

static void test_files(void) {
    for (size_t f = 0; f < 2; f++) {
        struct dirent **entries;
        const int n = scandir(folders[f], &entries, is_golden, alphasort);
        CHECK_MSG(n > 0, "%s holds no golden file", folders[f]);
        for (int i = 0; i < n; i++) {
            char path[512];
            snprintf(path, sizeof path, "%s/%s", folders[f], entries[i]->d_name);
            for (int k = 0; bj_kernels_at(k); k++) {
                const bj_parity_options options = {1 + k, bj_kernels_at(k)->isa};
                bj_parity_report report;
                bj_error err = {BJ_OK, ""};
                const bj_status status = bj_parity_file(&report, path, &options, &err);
                CHECK_MSG(status == BJ_OK && report.failed == 0, "%s on %s: %s%s", path,
                          bj_kernels_at(k)->isa, err.message, report.first_failure);
                CHECK(report.compared > 40 && strstr(path, report.name));
                for (int g = 0; g < BJ_PARITY_GROUPS; g++)
                    CHECK(isnan(report.worst[g]) ? g == BJ_PARITY_ST : report.worst[g] < 1e-3);
            }
            const char *const whole[] = {"tiny/fullset", "tiny/mdn_component", "odd/outputonly",
                                         "tiny/anchor_a"};
            int all = 0;
            for (size_t w = 0; w < sizeof whole / sizeof *whole; w++)
                all |= strstr(path, whole[w]) && strchr(strstr(path, whole[w]), '.') ==
                                                     strstr(path, whole[w]) + strlen(whole[w]);
            test_flips(path, all);
            free(entries[i]);
        }
        if (n > 0) free(entries);
    }
}

/* ----------------------------------------------------------------------------------- tolerances */

static int find(const copy *c, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (strcmp(bj_safetensors_at(c->file, i)->name, name) == 0) return i;
    fprintf(stderr, "%s is not in the file\n", name);
    exit(1);
}

/* Tests numbers that are off by slightly more or less than the tolerance of their group. */
static void test_tolerances(void) {
    const int wide = sizeof(bj_real) == sizeof(double);
    static const struct {
        const char *name;
        double in_float, in_double;
        int relative; /* 1: relative to the tensor's largest entry */
    } cases[] = {{"o.u", 1e-4, 1e-6, 1},
                 {"o.y", 1e-4, 1e-6, 1},
                 {"l.total", 1e-4, 1e-6, 1},
                 {"g.encoder.gru.weight_hh_l0", 1e-3, 1e-6, 1},
                 {"g.norm", 1e-3, 1e-6, 1},
                 {"m.traj_es", 1e-4, 1e-6, 1},
                 {"s.atoms.1.2.weight", 9e-4, 1e-6, 0}, /* three steps of 3e-4 */
                 {"st.gru.weight_hh_l0", 9e-4, 1e-6, 0}};
    static copy c;
    take_apart(&c, "tests/golden/tiny/fullset.safetensors");
    CHECK(strcmp(fact(&c, "steps"), "3") == 0 && atof(fact(&c, "lr")) == 3e-4);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int above = 0; above < 2; above++) {
            const int i = find(&c, cases[k].name);
            float *x = open_tensor(&c, i);
            const size_t n = c.tensors[i].count, at = n / 2;
            const double scale = cases[k].relative ? fabs((double)x[largest(x, n)]) : 1;
            const double tolerance = wide ? cases[k].in_double : cases[k].in_float;
            bj_parity_report report;
            bj_error err;
            /* A float has seven digits, so the tolerance of double builds
             * is close to the last one. */
            x[at] = (float)((double)x[at] + (above ? 1.6 : 0.4) * tolerance * scale);
            CHECK_OK(verdict(&c, &report, &err), err);
            CHECK_MSG((report.failed > 0) == above, "%s off by %g: %s", cases[k].name,
                      (above ? 1.6 : 0.4) * tolerance * scale,
                      report.failed ? report.first_failure : "passes");
        }

    /* A few updated weights may be off by a full step, but not many. */
    const int i = find(&c, "s.encoder.attn.in_proj_weight");
    size_t all = 0;
    for (int j = 0; j < c.count; j++)
        if (in_group(c.tensors[j].name, "s") || in_group(c.tensors[j].name, "st"))
            all += c.tensors[j].count;
    for (int many = 0; many < 2 && !wide; many++) {
        const size_t off = many ? all / 500 : all / 2000;
        float *x = open_tensor(&c, i);
        bj_parity_report report;
        bj_error err;
        CHECK(off > 0 && off < c.tensors[i].count);
        for (size_t j = 0; j < off; j++) x[j] += 1e-4f;
        CHECK_OK(verdict(&c, &report, &err), err);
        CHECK_MSG((report.failed > 0) == many, "%zu of %zu off: %s", off, all,
                  report.first_failure);
        CHECK_NEAR(report.beyond, (double)off / (double)all, 1e-12);
        if (many) CHECK_CONTAINS(report.first_failure, "updated weights");
    }
    put_away(&c);
}

/* ------------------------------------------------------------------------------ names and facts */

static void expect_refused(const copy *c, const char *what) {
    bj_parity_report report;
    bj_error err;
    const bj_status status = verdict_rewritten(c, &report, &err);
    CHECK_MSG(status == BJ_EFORMAT, "%s: %s", what, bj_status_name(status));
    CHECK_CONTAINS(err.message, what);
    CHECK_CONTAINS(err.message, changed);
}

static void test_names(void) {
    static copy c;
    static const char *const inputs[] = {"w.encoder.gru.weight_ih_l0",
                                         "w.router.2.bias",
                                         "t.proj.0.weight",
                                         "x.focal",
                                         "x.neighbors",
                                         "x.nmask",
                                         "x.polylines",
                                         "x.pmask",
                                         "x.future"};
    bj_parity_report report;
    bj_error err;
    take_apart(&c, "tests/golden/tiny/fullset.safetensors");
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
        const int i = find(&c, inputs[k]);
        open_tensor(&c, i);
        c.tensors[i].name = "renamed";
        expect_refused(&c, inputs[k]);
    }
    /* A tensor with an unknown name must be reported. */
    static const char *const stated[] = {
        "o.c", "l.rec", "g.atoms.0.0.bias", "m.ece", "s.decoder.0.bias", "st.proj.2.bias"};
    for (size_t k = 0; k < sizeof stated / sizeof *stated; k++) {
        const int i = find(&c, stated[k]);
        char other[64];
        snprintf(other, sizeof other, "%sx", stated[k]);
        open_tensor(&c, i);
        c.tensors[i].name = other;
        CHECK_OK(verdict_rewritten(&c, &report, &err), err);
        CHECK(report.failed == 1);
        CHECK_CONTAINS(report.first_failure, other);
    }
    /* Test wrong shapes of an input and of a result. */
    int i = find(&c, "w.encoder.gru.weight_ih_l0");
    open_tensor(&c, i);
    c.tensors[i].shape[0] /= 2, c.tensors[i].shape[1] *= 2;
    expect_refused(&c, "w.encoder.gru.weight_ih_l0");
    i = find(&c, "o.u");
    open_tensor(&c, i);
    c.tensors[i].shape[0] -= 1;
    expect_refused(&c, "o.u");
    i = find(&c, "x.nmask"); /* not a valid mask */
    open_tensor(&c, i);
    c.tensors[i].dtype = BJ_DTYPE_I8;
    expect_refused(&c, "x.nmask");
    put_away(&c);
}

static void test_bad_inputs(void) {
    static copy c;
    static const char *const names[] = {"w.decoder.0.weight", "t.gru.bias_hh_l0", "x.polylines",
                                        "o.c", "s.router.0.bias"};
    take_apart(&c, "tests/golden/tiny/fullset.safetensors");
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const int i = find(&c, names[k]);
        float *x = open_tensor(&c, i);
        x[c.tensors[i].count - 1] = k % 2 ? INFINITY : NAN;
        bj_parity_report report;
        bj_error err;
        const bj_status status = verdict(&c, &report, &err);
        CHECK_MSG(status == BJ_ENONFINITE || status == BJ_EFORMAT, "NaN in %s: %s", names[k],
                  bj_status_name(status));
        CHECK_CONTAINS(err.message, names[k]);
    }
    put_away(&c);
}

static void test_metadata(void) {
    static const char *const required[] = {
        "objective", "obs",          "fut",           "neighbors",     "polylines", "points",
        "embed",     "heads",        "latent",        "proj_hidden",   "atoms",     "atom_hidden",
        "trunk",     "token_hidden", "router_hidden", "decoder_hidden"};
    static copy c;
    take_apart(&c, "tests/golden/tiny/fullset.safetensors");
    for (size_t k = 0; k < sizeof required / sizeof *required; k++) {
        const int count = c.fact_count;
        int at = 0;
        while (at < count && strcmp(c.facts[at].key, required[k])) at++;
        CHECK_MSG(at < count, "%s is not in the file", required[k]);
        const bj_fact kept = c.facts[at];
        c.facts[at] = c.facts[count - 1]; /* missing */
        c.fact_count--;
        expect_refused(&c, required[k]);
        c.fact_count++;
        c.facts[at] = kept;
        static const char *const bad[] = {"", "many", "3x", "-7", "1e99", "nan", "2.5"};
        for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
            c.facts[at].value = bad[b];
            expect_refused(&c, required[k]);
        }
        c.facts[at] = kept;
    }
    /* Optional settings must be numbers, and a wrong value must not pass. */
    static const char *const numbers[] = {"lambda_z", "lambda_rec", "beta",         "lr",
                                          "clip",     "ema",        "beta1",        "beta2",
                                          "adam_eps", "steps",      "weight_decay", "dt"};
    static const char *const other[] = {"0.5", "2",   "0.7", "0.01", "0.001", "0.5",
                                        "0.5", "0.5", "0.1", "2",    "0.9",   "0.2"};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        int at = 0;
        while (at < c.fact_count && strcmp(c.facts[at].key, numbers[k])) at++;
        CHECK_MSG(at < c.fact_count, "%s is not in the file", numbers[k]);
        const bj_fact kept = c.facts[at];
        bj_parity_report report;
        bj_error err;
        c.facts[at].value = "often";
        expect_refused(&c, numbers[k]);
        c.facts[at].value = other[k];
        const bj_status status = verdict_rewritten(&c, &report, &err);
        CHECK_MSG(status == BJ_OK && report.failed > 0, "%s = %s instead of %s passes", numbers[k],
                  other[k], kept.value);
        c.facts[at] = kept;
    }
    put_away(&c);
}

static void test_no_file(void) {
    const bj_parity_options options = {1, NULL}, unknown = {1, "sse9"};
    bj_parity_report report;
    bj_error err;
    CHECK(bj_parity_file(&report, "tests/golden/none.safetensors", &options, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "tests/golden/none.safetensors");
    CHECK(bj_parity_file(&report, "tests/golden/README.md", &options, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "tests/golden/README.md");
    CHECK(bj_parity_file(&report, "tests/golden/tiny/fullset.safetensors", &unknown, &err) ==
          BJ_EARG);
    CHECK_CONTAINS(err.message, "sse9");
    static const char *const groups[] = {"o", "l", "g", "m", "s", "st"};
    for (int g = 0; g < BJ_PARITY_GROUPS; g++)
        CHECK(strcmp(bj_parity_group_name(g), groups[g]) == 0);
}

int main(void) {
    if (!mkdtemp(folder)) {
        strcpy(folder, "/tmp/test_parity.XXXXXX");
        if (!mkdtemp(folder)) {
            perror(folder);
            return 1;
        }
    }
    snprintf(changed, sizeof changed, "%s/changed.safetensors", folder);
    const long live = bj_alloc_live();
    test_files();
    test_tolerances();
    test_names();
    test_bad_inputs();
    test_metadata();
    test_no_file();
    CHECK(bj_alloc_live() == live);
    unlink(changed);
    rmdir(folder);
    return test_report("parity");
}
