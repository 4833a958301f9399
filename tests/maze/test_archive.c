/* test_archive.c - tests the emissions and successors of an archive: values computed by hand,
 * order, hashes.
 *
 * test_archive latents FILE writes latents for tests/cli/maze_archive.sh.
 */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "npz/npz_write.h"
#include "test.h"

#include <branchjepa/maze_drive.h>

enum { C = 26, D = C, K = 2, S = 2 };

/* Each cell of the medium maze has its own axis. */
typedef struct numbers {
    bj_real latents[C][D], candidates[S][K][D], mass[S][K], point[S][D];
    int32_t cells[S];
} numbers;

static void fill(numbers *n) {
    memset(n, 0, sizeof *n);
    for (int c = 0; c < C; c++) n->latents[c][c] = 2;
    n->cells[0] = 1; /* which the walk leaves for 0 and 5 */
    n->candidates[0][0][5] = 3;
    n->candidates[0][1][9] = 1; /* a cell nobody went to */
    n->mass[0][0] = (bj_real)0.75;
    n->mass[0][1] = (bj_real)0.25;
    n->cells[1] = 4; /* left for 5 only */
    n->candidates[1][0][5] = 1;
    n->candidates[1][0][0] = 1; /* cosine 0.707 with both */
    n->mass[1][0] = 1;
    n->point[0][0] = n->point[1][7] = 1;
}

static bj_emissions emissions_of(const numbers *n, const bj_maze *m) {
    static const bj_fact facts[] = {{"predictor", "branch"}};
    return (bj_emissions){.maze = m,
                          .contexts = S,
                          .K = K,
                          .D = D,
                          .context_cells = n->cells,
                          .candidates = n->candidates[0][0],
                          .mass = n->mass[0],
                          .point = n->point[0],
                          .latents = n->latents[0],
                          .facts = facts,
                          .fact_count = 1};
}

/* Two episodes with the cells 0 1 5 1 0 and 4 5. */
static void write_walk(const char *path) {
    static const float xy[][2] = {{0, 0}, {4, 0}, {4, 4}, {4, 0}, {0, 0}, {0, 4}, {4, 4}};
    static const uint8_t ends[] = {0, 0, 0, 0, 1, 0, 1};
    const bj_npz_source arrays[] = {{"observations", BJ_NPY_F32, 2, {7, 2}, xy},
                                    {"terminals", BJ_NPY_BOOL, 1, {7}, ends}};
    bj_error err = {0};
    CHECK_OK(bj_npz_write(path, arrays, 2, &err), err);
}

static int write_latents(const char *path) {
    numbers n;
    bj_error err = {0};
    fill(&n);
    const bj_tensor_view tensors[] = {
        {.name = "context_cells", .dtype = BJ_DTYPE_I32, .rank = 1, .shape = {S}, .data = n.cells},
        {.name = "candidates",
         .dtype = BJ_DTYPE_REAL,
         .rank = 3,
         .shape = {S, K, D},
         .data = n.candidates},
        {.name = "mass", .dtype = BJ_DTYPE_REAL, .rank = 2, .shape = {S, K}, .data = n.mass},
        {.name = "latents", .dtype = BJ_DTYPE_REAL, .rank = 2, .shape = {C, D}, .data = n.latents},
        {.name = "point", .dtype = BJ_DTYPE_REAL, .rank = 2, .shape = {S, D}, .data = n.point}};
    return bj_safetensors_write(path, tensors, 5, NULL, 0, &err) != BJ_OK;
}

static char folder[] = "/tmp/test_archive_XXXXXX";
static const char *in(const char *name) {
    static char paths[8][128];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void test_numbers(const bj_maze *m) {
    numbers n;
    bj_error err = {0};
    char sha[65], again[65];
    bj_archive_report r;
    fill(&n);
    const bj_emissions e = emissions_of(&n, m);
    CHECK_OK(bj_archive_emit(sha, in("e"), &e, &err), err);
    CHECK_OK(bj_archive_emit(again, in("e2"), &e, &err), err);
    CHECK(strlen(sha) == 64 && !strcmp(sha, again)); /* the same emissions, the same bytes */
    write_walk(in("walk"));
    CHECK_OK(bj_archive_reveal(&r, in("s"), in("e"), sha, m, in("walk"), &err), err);
    CHECK(r.contexts == S && r.K == K && r.has_point && !strcmp(r.emissions_sha256, sha));
    if (r.context) {
        CHECK(r.context[0].cell == 1 && r.context[0].successors == 2 && r.context[0].hit == 1);
        CHECK(r.context[0].coverage == 0.5 && r.context[0].mass_on_support == 0.75);
        CHECK(r.context[0].point_hit == 1 && r.context[1].point_hit == 0);
        CHECK(r.context[1].successors == 1 && r.context[1].coverage == 1);
        CHECK(r.context[1].mass_on_support == 1);
    }
    CHECK(r.coverage == 0.75 && r.point_coverage == 0.25);
    char *text = NULL;
    size_t size;
    CHECK_OK(bj_file_read(&text, &size, in("s"), 1 << 20, &err), err);
    if (text) {
        CHECK_CONTAINS(text, sha);
        CHECK_CONTAINS(text, "\"successors\":[[0,1,0],[5,1,1]]");
        CHECK_CONTAINS(text, "\"candidates\":[[5,1.0,0.75,1],[9,1.0,0.25,0]]");
        CHECK_CONTAINS(text, "\"point\":[0,1.0]");
    }
    bj_free(text);
    bj_archive_report_reset(&r);
    CHECK_OK(bj_archive_check(in("s"), in("e"), &err), err);
    for (int k = 0; k < 20; k++) { /* memory ends anywhere */
        const long live = bj_alloc_live();
        bj_alloc_fail_after(k);
        const bj_status status = bj_archive_reveal(&r, in("s2"), in("e"), sha, m, in("walk"), &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_ENOMEM && !r.context && bj_alloc_live() == live);
    }
}

/* The predictor of `point` has its own latents, in which the cells are numbered in reverse order.
 */
static void test_point_latents(const bj_maze *m) {
    numbers n, mirrored;
    bj_error err = {0};
    char sha[65];
    bj_archive_report r;
    fill(&n);
    fill(&mirrored);
    for (int c = 0; c < C; c++) memcpy(mirrored.latents[c], n.latents[C - 1 - c], sizeof n.latents[c]);
    bj_emissions e = emissions_of(&n, m);
    e.point_latents = mirrored.latents[0];
    for (int s = 0; s < S; s++) /* context 1: successors 0 and 5 */
        for (int d = 0; d < D; d++) n.point[s][d] = n.latents[C - 1 - (s ? 7 : 5)][d];
    CHECK_OK(bj_archive_emit(sha, in("own"), &e, &err), err);
    CHECK_OK(bj_archive_reveal(&r, in("s3"), in("own"), sha, m, in("walk"), &err), err);
    CHECK(r.context && r.context[0].point_hit == 1 && r.context[0].hit == 1);
    CHECK(r.coverage == 0.75);
    char *text = NULL;
    size_t size;
    CHECK_OK(bj_file_read(&text, &size, in("s3"), 1 << 20, &err), err);
    if (text) CHECK_CONTAINS(text, "\"point\":[5,1.0]");
    bj_free(text);
    bj_archive_report_reset(&r);
    e.point = NULL;
    CHECK(bj_archive_emit(sha, in("y"), &e, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "but `point` is missing");
}

/* Tests the order of the checks. Emissions with another hash are rejected before the dataset, which
 * is missing, is opened. */
static void test_order(const bj_maze *m) {
    numbers n;
    bj_error err = {0};
    char sha[65];
    bj_archive_report r;
    fill(&n);
    n.mass[0][0] = (bj_real)0.5;
    n.mass[0][1] = (bj_real)0.5;
    const bj_emissions e = emissions_of(&n, m);
    CHECK_OK(bj_archive_emit(sha, in("other"), &e, &err), err);
    CHECK(bj_archive_check(in("s"), in("other"), &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "according to");
    /* refused before the data is looked for */
    CHECK(bj_archive_reveal(&r, in("x"), in("e"), sha, m, in("nothing"), &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "SHA-256 is");
    CHECK(bj_archive_reveal(&r, in("x"), in("other"), sha, m, in("nothing"), &err) == BJ_EIO);
    CHECK(access(in("x"), F_OK) != 0);
    bj_maze *large = NULL;
    CHECK_OK(bj_maze_create(&large, "large", &err), err);
    CHECK(bj_archive_reveal(&r, in("x"), in("e"), NULL, large, in("walk"), &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message,
                   "the emissions belong to maze 'medium' with 26 cells, expected 'large' with 46");
    bj_maze_free(large);
    /* one bit of the first file */
    char *bytes = NULL;
    size_t size;
    CHECK_OK(bj_file_read(&bytes, &size, in("e"), 1 << 20, &err), err);
    if (bytes) {
        bytes[size - 1] ^= 1;
        CHECK_OK(bj_file_write(in("e"), bytes, size, &err), err);
        CHECK(bj_archive_check(in("s"), in("e"), &err) == BJ_EMISMATCH);
    }
    bj_free(bytes);
}

static void test_refused(const bj_maze *m) {
    numbers n;
    bj_error err = {0};
    char sha[65];
    bj_archive_report r;
    fill(&n);
    bj_emissions e = emissions_of(&n, m);
    n.mass[1][1] = (bj_real)0.5;
    CHECK(bj_archive_emit(sha, in("y"), &e, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the masses of context 1 sum to 1.5, expected 1");
    n.mass[1][1] = (bj_real)-0.5;
    CHECK(bj_archive_emit(sha, in("y"), &e, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "mass 1 of context 1 is -0.5");
    fill(&n);
    n.cells[1] = 26;
    CHECK(bj_archive_emit(sha, in("y"), &e, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "context 1 is in cell 26, but there are only 26 cells");
    fill(&n);
    n.candidates[1][1][3] = (bj_real)NAN;
    CHECK(bj_archive_emit(sha, in("y"), &e, &err) == BJ_ENONFINITE);
    fill(&n);
    e.contexts = 0;
    CHECK(bj_archive_emit(sha, in("y"), &e, &err) == BJ_EARG);
    CHECK(access(in("y"), F_OK) != 0);
    /* latents are no emissions, until they are emitted */
    CHECK(!write_latents(in("latents")));
    CHECK(bj_archive_reveal(&r, in("x"), in("latents"), NULL, m, in("walk"), &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "format is 'not stated'");
    CHECK_OK(bj_archive_emit_file(sha, in("z"), in("latents"), m, &err), err);
    CHECK_OK(bj_archive_reveal(&r, in("s"), in("z"), sha, m, in("walk"), &err), err);
    CHECK(r.coverage == 0.75 && r.point_coverage == 0.25);
    bj_archive_report_reset(&r);
    bj_maze *large = NULL;
    CHECK_OK(bj_maze_create(&large, "large", &err), err);
    CHECK(bj_archive_emit_file(sha, in("z2"), in("latents"), large, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "latents");
    bj_maze_free(large);
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "latents")) return write_latents(argv[2]);
    bj_error err = {0};
    bj_maze *m = NULL;
    const long live = bj_alloc_live();
    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(bj_maze_create(&m, "medium", &err), err);
    if (m) {
        test_numbers(m);
        test_point_latents(m);
        test_order(m);
        test_refused(m);
    }
    bj_maze_free(m);
    CHECK(bj_alloc_live() == live);
    static const char *const names[] = {"e",     "e2",  "s",  "s2",      "walk",
                                        "other", "own", "s3", "latents", "z"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) unlink(in(names[k]));
    CHECK(rmdir(folder) == 0); /* and nothing else was left there */
    return test_report("archive");
}
