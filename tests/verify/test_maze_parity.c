/* test_maze_parity.c - tests that the maze golden files match and that
 * every changed number is found.
 *
 * Each file is split into arrays and written again with one array changed and valid checksums. If
 * BJ_MAZE_GOLDEN is set, the .npz files in that folder must match as well.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "npz/npz.h"
#include "npz/npz_case.h"
#include "test.h"

static const char *const cases[] = {"threshold", "small_k3", "some_k1",
                                    "wide_k8",   "walk",     "frames"};
enum { CASES = sizeof cases / sizeof *cases, ARRAYS = 32 };
static char folder[64] = "/tmp/test_maze_parity.XXXXXX", changed[96];

/* --------------------------------------------------------------------------------- taken apart */

typedef struct part {
    char name[64], shape[64];
    bj_npy npy;
    size_t size;
    unsigned char *data;
    int absent;
} part;

typedef struct copy {
    part parts[ARRAYS];
    int count;
} copy;

static const char *descr(bj_npy_type type) {
    static const char *const text[BJ_NPY_TYPES] = {"<f4", "<f8", "<i4", "<i8", "|u1", "|b1"};
    return text[type];
}

static void write_shape(part *p) {
    int used = snprintf(p->shape, sizeof p->shape, "(");
    for (int d = 0; d < p->npy.rank; d++)
        used += snprintf(p->shape + used, sizeof p->shape - (size_t)used, "%lld,",
                         (long long)p->npy.shape[d]);
    snprintf(p->shape + used, sizeof p->shape - (size_t)used, ")");
}

static void take_apart(copy *c, const char *name) {
    char path[128];
    bj_npz *npz = NULL;
    bj_error err = {0};
    memset(c, 0, sizeof *c);
    snprintf(path, sizeof path, "tests/golden/maze/%s.npz", name);
    CHECK_OK(bj_npz_open(&npz, path, &err), err);
    for (int i = 0; npz && i < bj_npz_count(npz) && i < ARRAYS; i++) {
        const bj_npz_array *a = bj_npz_at(npz, i);
        part *p = &c->parts[c->count++];
        bj_npz_rows *rows = NULL;
        snprintf(p->name, sizeof p->name, "%s", a->name);
        p->npy = a->npy;
        p->size = (size_t)a->npy.rows * a->npy.row_bytes;
        p->data = malloc(p->size + 1);
        write_shape(p);
        CHECK_OK(bj_npz_rows_open(&rows, npz, a->name, &err), err);
        CHECK_OK(bj_npz_rows_read(rows, p->data, a->npy.rows, &err), err);
        bj_npz_rows_close(rows);
    }
    bj_npz_close(npz);
}

static void put_away(copy *c) {
    for (int i = 0; i < c->count; i++) free(c->parts[i].data);
}

static part *find(copy *c, const char *name) {
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->parts[i].name, name)) return &c->parts[i];
    CHECK_MSG(0, "no array %s", name);
    return &c->parts[0];
}

static bj_status verdict(const copy *c, bj_parity_report *report, bj_error *err) {
    const bj_parity_options options = {1, NULL};
    npz_maker m = {0};
    for (int i = 0; i < c->count; i++)
        if (!c->parts[i].absent)
            npz_add(&m, c->parts[i].name, descr(c->parts[i].npy.type), c->parts[i].shape,
                    c->parts[i].data, c->parts[i].size, i % 2 ? NPZ_STORED : NPZ_DEFLATED);
    npz_write(&m, changed);
    return bj_parity_file(report, changed, &options, err);
}

/* Changes number k of the array. */
static void change(part *p, size_t k) {
    unsigned char *at = p->data + k * bj_npy_size(p->npy.type);
    double f8;
    switch (p->npy.type) {
    case BJ_NPY_F64:
        memcpy(&f8, at, 8);
        f8 = isnan(f8) ? 0.5 : f8 + 1e-9;
        memcpy(at, &f8, 8);
        break;
    case BJ_NPY_U8:
    case BJ_NPY_BOOL: *at = !*at; break;
    default: at[0] ^= 1;
    }
}

/* --------------------------------------------------------------------------------------- tests */

static void test_agreement(void) {
    const bj_parity_options options = {1, NULL};
    for (int i = 0; i < CASES; i++) {
        char path[128];
        bj_parity_report report;
        bj_error err = {0};
        snprintf(path, sizeof path, "tests/golden/maze/%s.npz", cases[i]);
        CHECK_OK(bj_parity_file(&report, path, &options, &err), err);
        CHECK_MSG(report.failed == 0, "%s: %s", cases[i], report.first_failure);
        CHECK(report.compared == (i < 4 ? 16 : i == 4 ? 5 : 2) && !strcmp(report.name, cases[i]));
        CHECK(report.worst[BJ_PARITY_M] <= 1e-12 && isnan(report.worst[BJ_PARITY_O]));
    }
}

static int is_stated(const copy *c, const char *name) {
    const int graph = !strcmp(c->parts[0].name, "candidates");
    return !strncmp(name, "expected_", 9) ||
           (graph && (!strcmp(name, "kept_edges") || !strcmp(name, "held_edges")));
}

/* Tests a change of every expected number, and an array that is one number too short. */
static void test_changes(void) {
    for (int i = 0; i < CASES; i++) {
        copy c;
        bj_parity_report report;
        bj_error err = {0};
        take_apart(&c, cases[i]);
        CHECK_OK(verdict(&c, &report, &err), err);
        CHECK(report.failed == 0);
        for (int k = 0; k < c.count; k++) {
            part *p = &c.parts[k];
            const size_t count = p->size / bj_npy_size(p->npy.type), step = count / 12 + 1;
            if (!is_stated(&c, p->name)) continue;
            for (size_t n = 0; n < count; n += step) {
                unsigned char kept[8];
                const size_t size = bj_npy_size(p->npy.type);
                memcpy(kept, p->data + n * size, size);
                change(p, n);
                const bj_status status = verdict(&c, &report, &err);
                CHECK_MSG(status == BJ_OK && report.failed > 0, "%s: %s[%zu] may be anything",
                          cases[i], p->name, n);
                memcpy(p->data + n * size, kept, size);
            }
            if (p->npy.rank == 0 || p->npy.rows < 2) continue;
            if (!strcmp(cases[i], "frames")) continue; /* its last cell is empty */
            p->npy.shape[0]--;
            p->size -= p->npy.row_bytes;
            write_shape(p);
            CHECK_OK(verdict(&c, &report, &err), err);
            CHECK_MSG(report.failed > 0, "%s: %s may be shorter", cases[i], p->name);
            p->npy.shape[0]++;
            p->size += p->npy.row_bytes;
            write_shape(p);
        }
        put_away(&c);
    }
}

static void test_names(void) {
    copy c;
    bj_parity_report report;
    bj_error err = {0};
    take_apart(&c, "small_k3");
    strcpy(find(&c, "expected_cov_r")->name, "expected_cov_x");
    CHECK_OK(verdict(&c, &report, &err), err);
    CHECK(report.failed == 1);
    CHECK_CONTAINS(report.first_failure,
                   "expected_cov_x: this program does not compute this array");
    put_away(&c);
    take_apart(&c, "small_k3"); /* every input is required */
    static const char *const inputs[] = {"cells",      "sources",      "true_edges",
                                         "held_edges", "plan_queries", "verified_queries",
                                         "candidates"};
    for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++) {
        find(&c, inputs[k])->absent = 1;
        CHECK(verdict(&c, &report, &err) == BJ_EFORMAT);
        CHECK_CONTAINS(err.message, inputs[k]);
        find(&c, inputs[k])->absent = 0;
    }
    for (int i = 0; i < c.count; i++) /* no expected results */
        c.parts[i].absent =
            !strncmp(c.parts[i].name, "expected_", 9) || !strcmp(c.parts[i].name, "edge_order");
    CHECK(verdict(&c, &report, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "has no array named expected_*");
    put_away(&c);
}

static void test_inputs(void) {
    copy c;
    bj_parity_report report;
    bj_error err = {0};
    static const struct {
        const char *name;
        int32_t value;
        const char *message;
    } bad[] = {{"sources", 99, "'sources': number 0 is 99, expected an integer from 0 to 11"},
               {"true_edges", -1, "'true_edges': number 0 is -1"},
               {"plan_queries", 12, "'plan_queries': number 0 is 12"},
               {"edge_order", 1000, "'edge_order': number 0 is 1000"}};
    take_apart(&c, "small_k3");
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        int32_t kept;
        part *p = find(&c, bad[k].name);
        memcpy(&kept, p->data, 4);
        memcpy(p->data, &bad[k].value, 4);
        CHECK(verdict(&c, &report, &err) == BJ_EFORMAT);
        CHECK_CONTAINS(err.message, changed);
        CHECK_CONTAINS(err.message, bad[k].message);
        memcpy(p->data, &kept, 4);
    }
    part *order = find(&c, "edge_order");
    memcpy(order->data, order->data + 4, 4);
    CHECK(verdict(&c, &report, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "twice");
    put_away(&c);

    take_apart(&c, "small_k3");
    const float nan = NAN;
    memcpy(find(&c, "candidates")->data + 40, &nan, 4);
    CHECK(verdict(&c, &report, &err) == BJ_ENONFINITE);
    CHECK_CONTAINS(err.message, changed);
    put_away(&c);

    take_apart(&c, "small_k3"); /* a width that differs from that of the cells */
    part *p = find(&c, "candidates");
    p->npy.shape[1] *= 2, p->npy.shape[2] /= 2;
    write_shape(p);
    CHECK(verdict(&c, &report, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "8 numbers in its last dimension, expected 16");
    put_away(&c);

    take_apart(&c, "walk");
    p = find(&c, "terminals");
    p->npy.shape[0]--, p->size--;
    write_shape(p);
    CHECK(verdict(&c, &report, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "'terminals' has 359 numbers, expected 360");
    put_away(&c);
    take_apart(&c, "walk"); /* other walks have other edges, which is a difference and not an
                               invalid file */
    memset(find(&c, "terminals")->data, 1, 360);
    CHECK_OK(verdict(&c, &report, &err), err);
    CHECK(report.failed > 0);
    put_away(&c);
}

static void test_memory(void) {
    copy c;
    bj_parity_report report;
    bj_error err = {0};
    for (int i = 0; i < CASES; i += 4) {
        take_apart(&c, cases[i]);
        CHECK_OK(verdict(&c, &report, &err), err);
        for (long n = 0; n < 4000; n++) {
            const bj_parity_options options = {1, NULL};
            bj_alloc_fail_after(n);
            const bj_status status = bj_parity_file(&report, changed, &options, &err);
            bj_alloc_fail_after(-1);
            CHECK(status == BJ_OK || status == BJ_ENOMEM);
            if (status == BJ_OK) break;
        }
        put_away(&c);
    }
}

static void test_others(void) {
    const char *name = getenv("BJ_MAZE_GOLDEN");
    DIR *dir = name ? opendir(name) : NULL;
    int files = 0;
    if (!name) {
        printf("skipped: set BJ_MAZE_GOLDEN to the folder of golden maze files\n");
        return;
    }
    CHECK_MSG(dir != NULL, "%s", name);
    for (const struct dirent *entry; dir && (entry = readdir(dir));) {
        const bj_parity_options options = {1, NULL};
        const size_t n = strlen(entry->d_name);
        char path[1024];
        bj_parity_report report;
        bj_error err = {0};
        if (n < 5 || strcmp(entry->d_name + n - 4, ".npz")) continue;
        snprintf(path, sizeof path, "%s/%s", name, entry->d_name);
        CHECK_OK(bj_parity_file(&report, path, &options, &err), err);
        CHECK_MSG(report.failed == 0 && report.compared > 0, "%s: %s", path, report.first_failure);
        files++;
    }
    if (dir) closedir(dir);
    CHECK(files > 0);
}

int main(void) {
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(changed, sizeof changed, "%s/changed.npz", folder);
    const long live = bj_alloc_live();
    test_agreement();
    test_changes();
    test_names();
    test_inputs();
    test_memory();
    test_others();
    CHECK(bj_alloc_live() == live);
    unlink(changed);
    rmdir(folder);
    return test_report("maze parity");
}
