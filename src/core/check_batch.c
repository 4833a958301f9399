/* check_batch.c - is a batch what the architecture expects? */
#include "core/check_batch.h"

#include <math.h>

#include "core/status.h"

static bj_status check_rows(const char *what, const int *start, const bj_real *rows, int B, int most,
                            bj_error *err) {
    if (!start) return BJ_FAIL(err, BJ_EARG, "batch: %s_start is NULL", what);
    if (start[0] != 0) return BJ_FAIL(err, BJ_EARG, "batch: %s_start[0] is %d, expected 0", what, start[0]);
    for (int b = 0; b < B; b++) {
        const long n = (long)start[b + 1] - start[b]; /* any two numbers may stand there */
        if (n < 0 || n > most)
            return BJ_FAIL(err, BJ_EARG, "batch: scene %d has %ld %ss, expected 0 to %d", b, n,
                           what, most);
    }
    if (start[B] > 0 && !rows)
        return BJ_FAIL(err, BJ_EARG, "batch: %ss is NULL, expected %d rows", what, start[B]);
    return BJ_OK;
}

bj_status bj_batch_check(const bj_batch *batch, const bj_arch *arch, int max_batch,
                         int needs_future, bj_error *err) {
    if (batch->B < 1 || batch->B > max_batch)
        return BJ_FAIL(err, BJ_EARG, "batch: %d scenes, expected 1 to %d", batch->B, max_batch);
    if (!batch->focal) return BJ_FAIL(err, BJ_EARG, "batch: focal is NULL");
    if (needs_future && !batch->future)
        return BJ_FAIL(err, BJ_EARG, "batch: future is NULL, expected %d futures", batch->B);
    BJ_TRY(check_rows("neighbor", batch->neighbor_start, batch->neighbors, batch->B,
                      arch->neighbors, err));
    return check_rows("polyline", batch->polyline_start, batch->polylines, batch->B,
                      arch->polylines, err);
}

static int finite_array(const bj_real *x, size_t n) {
    bj_real lane[16] = {0}; /* x * 0 is 0 for a finite x and NaN for any other */
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) lane[j] += x[i + j] * 0;
    for (; i < n; i++) lane[0] += x[i] * 0;
    for (int j = 1; j < 16; j++) lane[0] += lane[j];
    return lane[0] == 0;
}

const char *bj_scene_nonfinite(const bj_batch *batch, const bj_arch *arch, int b) {
    const size_t focal = (size_t)arch->obs * BJ_FOCAL_FEATURES;
    const size_t line = (size_t)arch->points * BJ_POLYLINE_FEATURES, future = 2 * (size_t)arch->fut;
    const size_t n0 = (size_t)batch->neighbor_start[b], n1 = (size_t)batch->neighbor_start[b + 1];
    const size_t p0 = (size_t)batch->polyline_start[b], p1 = (size_t)batch->polyline_start[b + 1];
    if (!finite_array(batch->focal + (size_t)b * focal, focal)) return "focal";
    if (n1 > n0 && !finite_array(batch->neighbors + n0 * focal, (n1 - n0) * focal))
        return "neighbors";
    if (p1 > p0 && !finite_array(batch->polylines + p0 * line, (p1 - p0) * line))
        return "polylines";
    if (batch->future && !finite_array(batch->future + (size_t)b * future, future)) return "future";
    return NULL;
}

bj_status bj_scene_check(const bj_batch *batch, const bj_arch *arch, int b, bj_error *err) {
    const char *what = bj_scene_nonfinite(batch, arch, b);
    if (!what) return BJ_OK;
    return BJ_FAIL(err, BJ_ENONFINITE, "scene %d of the batch: %s holds a NaN or infinity", b, what);
}
