/* check_batch.c - checks a batch against the architecture. */
#include "core/check_batch.h"

#include <math.h>

#include "core/status.h"

static bj_status check_rows(const char *what, int count, const bj_real *rows, int scene, int most,
                            bj_error *err) {
    if (count < 0 || count > most)
        return BJ_FAIL(err, BJ_EARG, "batch: scene %d has %d %ss, expected 0 to %d", scene, count,
                       what, most);
    if (count > 0 && !rows)
        return BJ_FAIL(err, BJ_EARG, "batch: scene %d: %ss is NULL, expected %d rows", scene, what,
                       count);
    return BJ_OK;
}

static bj_status check_pairs(const bj_batch *batch, const bj_arch *arch, int with_next,
                             bj_error *err) {
    if (!batch->pairs)
        return BJ_FAIL(err, BJ_EARG, "batch: pairs is NULL, expected %d transitions", batch->B);
    for (int b = 0; b < batch->B; b++) {
        const bj_pair *p = &batch->pairs[b];
        const int image = arch->encoder == BJ_ENCODER_IMAGE;
        const char *missing = NULL;
        if (image ? !p->image : !p->state) missing = image ? "image" : "state";
        else if (with_next && (image ? !p->next_image : !p->next))
            missing = image ? "next_image" : "next";
        else if (arch->action && !p->action) missing = "action";
        if (missing)
            return BJ_FAIL(err, BJ_EARG, "batch: transition %d: %s is NULL", b, missing);
    }
    return BJ_OK;
}

bj_status bj_batch_check(const bj_batch *batch, const bj_arch *arch, int max_batch,
                         int needs_future, bj_error *err) {
    if (batch->B < 1 || batch->B > max_batch)
        return BJ_FAIL(err, BJ_EARG, "batch: %d scenes, expected 1 to %d", batch->B, max_batch);
    if (arch->encoder != BJ_ENCODER_SCENE) return check_pairs(batch, arch, needs_future, err);
    if (!batch->scenes)
        return BJ_FAIL(err, BJ_EARG, "batch: scenes is NULL, expected %d scenes", batch->B);
    for (int b = 0; b < batch->B; b++) {
        const bj_scene *s = &batch->scenes[b];
        if (!s->focal) return BJ_FAIL(err, BJ_EARG, "batch: scene %d: focal is NULL", b);
        if (needs_future && !s->future)
            return BJ_FAIL(err, BJ_EARG, "batch: scene %d: future is NULL, expected %d steps", b,
                           arch->fut);
        BJ_TRY(check_rows("neighbor", s->neighbor_count, s->neighbors, b, arch->neighbors, err));
        BJ_TRY(check_rows("polyline", s->polyline_count, s->polylines, b, arch->polylines, err));
    }
    return BJ_OK;
}

static int finite_array(const bj_real *x, size_t n) {
    bj_real lane[16] = {0}; /* x * 0 is 0 if x is finite, otherwise NaN */
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) lane[j] += x[i + j] * 0;
    for (; i < n; i++) lane[0] += x[i] * 0;
    for (int j = 1; j < 16; j++) lane[0] += lane[j];
    return lane[0] == 0;
}

const char *bj_scene_nonfinite(const bj_scene *s, const bj_arch *arch, int with_future) {
    const size_t focal = (size_t)arch->obs * BJ_FOCAL_FEATURES;
    const size_t line = (size_t)arch->points * BJ_POLYLINE_FEATURES;
    if (!finite_array(s->focal, focal)) return "focal";
    if (!finite_array(s->neighbors, (size_t)s->neighbor_count * focal)) return "neighbors";
    if (!finite_array(s->polylines, (size_t)s->polyline_count * line)) return "polylines";
    if (with_future && s->future && !finite_array(s->future, 2 * (size_t)arch->fut))
        return "future";
    return NULL;
}

bj_status bj_scene_check(const bj_batch *batch, const bj_arch *arch, int b, int with_future,
                         bj_error *err) {
    const char *what = bj_scene_nonfinite(&batch->scenes[b], arch, with_future);
    if (!what) return BJ_OK;
    return BJ_FAIL(err, BJ_ENONFINITE, "scene %d of the batch: %s contains a NaN or infinity", b, what);
}

const char *bj_pair_nonfinite(const bj_pair *p, const bj_arch *arch, int with_next) {
    const size_t n = (size_t)arch->state, action = (size_t)arch->action;
    if (arch->encoder == BJ_ENCODER_STATE) { /* images are bytes, always finite */
        if (!finite_array(p->state, n)) return "state";
        if (with_next && !finite_array(p->next, n)) return "next";
    }
    return finite_array(p->action, action) ? NULL : "action";
}

bj_status bj_element_check(const bj_batch *batch, const bj_arch *arch, int b, int with_next,
                           bj_error *err) {
    if (arch->encoder == BJ_ENCODER_SCENE) return bj_scene_check(batch, arch, b, with_next, err);
    const char *what = bj_pair_nonfinite(&batch->pairs[b], arch, with_next);
    if (!what) return BJ_OK;
    return BJ_FAIL(err, BJ_ENONFINITE, "transition %d of the batch: %s contains a NaN or infinity", b,
                   what);
}
