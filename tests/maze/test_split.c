/* test_split.c - tests the selection of held-out episodes, and the contexts of an audit. */
#define _XOPEN_SOURCE 700 /* mkstemp */
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "npz/npz_write.h"
#include "test.h"

#include <branchjepa/maze_drive.h>

static void test_split(void) {
    uint8_t a[1000], b[1000];
    bj_error err = {0};
    int training = 0, both = 0, early = 0;
    CHECK_OK(bj_episode_split(a, 1000, BJ_MAZE_TRAINING, 0, &err), err);
    CHECK_OK(bj_episode_split(b, 1000, BJ_MAZE_TRAINING, 0, &err), err);
    CHECK(!memcmp(a, b, sizeof a));
    CHECK_OK(bj_episode_split(b, 1000, BJ_MAZE_TRAINING, 1, &err), err);
    for (int k = 0; k < 1000; k++) {
        CHECK(a[k] <= 1);
        training += a[k];
        both += a[k] && b[k];
        early += k < 500 && a[k];
    }
    CHECK(training == 700 && both > 440 && both < 540 && early > 310 && early < 390);
    CHECK_OK(bj_episode_split(a, 10, 0.7, 3, &err), err);
    training = 0;
    for (int k = 0; k < 10; k++) training += a[k];
    CHECK(training == 7);
    CHECK_OK(bj_episode_split(a, 0, 0.7, 3, &err), err);
    CHECK(bj_episode_split(a, 10, 1.1, 3, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "the share is 1.1 (of 10");
}

/* Three episodes of 20, 9 and 5 rows in the first cell of the medium maze. One row is in a wall. */
static void test_contexts(void) {
    char path[] = "/tmp/test_split_XXXXXX";
    float xy[34][2] = {{0}};
    uint8_t ends[34] = {0};
    const uint8_t training[3] = {0, 1, 0};
    bj_error err = {0};
    bj_maze *m = NULL;
    bj_maze_data *data = NULL;
    int64_t *rows = NULL, count = 0;
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (fd >= 0) close(fd);
    ends[19] = ends[28] = ends[33] = 1;
    xy[6][0] = -4;
    const bj_npz_source arrays[] = {{"observations", BJ_NPY_F32, 2, {34, 2}, xy},
                                    {"terminals", BJ_NPY_BOOL, 1, {34}, ends}};
    CHECK_OK(bj_npz_write(path, arrays, 2, &err), err);
    CHECK_OK(bj_maze_create(&m, "medium", &err), err);
    CHECK_OK(bj_maze_data_open(&data, path, m, &err), err);
    if (!data) return;
    /* windows of 4 rows start at 0 (4 .. 8 avoids row 6 unless the stride is 2 or 1), 4, 8, 12; 20,
     * 24; 29 */
    CHECK_OK(bj_audit_contexts(&rows, &count, data, NULL, 2, 2, &err), err);
    const int64_t want[] = {0, 8, 12, 20, 24, 29};
    CHECK(count == 6 && rows && !memcmp(rows, want, sizeof want));
    bj_rows_free(rows);
    CHECK_OK(bj_audit_contexts(&rows, &count, data, training, 4, 1, &err), err);
    const int64_t others[] = {0, 4, 8, 12, 29};
    CHECK(count == 5 && rows && !memcmp(rows, others, sizeof others));
    bj_rows_free(rows);
    CHECK_OK(bj_audit_contexts(&rows, &count, data, NULL, 25, 8, &err), err);
    CHECK(count == 0);
    bj_rows_free(rows);
    CHECK(bj_audit_contexts(&rows, &count, data, NULL, 0, 8, &err) == BJ_EARG && !rows);
    bj_maze_data_free(data);
    bj_maze_free(m);
    unlink(path);
}

int main(void) {
    const long live = bj_alloc_live();
    test_split();
    test_contexts();
    CHECK(bj_alloc_live() == live);
    return test_report("split");
}
