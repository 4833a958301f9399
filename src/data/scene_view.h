/* scene_view.h - converts a stored scene, which consists of floats, to a bj_scene.
 *
 * If bj_real is float, the view points to the stored arrays. If bj_real is double, the arrays are
 * converted into the caller's memory, which has room for bj_scene_room() numbers.
 *
 * Shapes  focal (T,7)   neighbors (n,T,7)   polylines (p,Q,6)   future (F,2)
 * Test    tests/data/test_loader.c
 */
#ifndef BJ_DATA_SCENE_VIEW_H
#define BJ_DATA_SCENE_VIEW_H

#include "core/real.h"
#include "core/status.h"

static inline size_t bj_track_size(const bj_arch *a) { return (size_t)a->obs * BJ_FOCAL_FEATURES; }
static inline size_t bj_line_size(const bj_arch *a) {
    return (size_t)a->points * BJ_POLYLINE_FEATURES;
}
static inline size_t bj_future_size(const bj_arch *a) { return 2 * (size_t)a->fut; }

/* Returns the number of values in a scene with all slots occupied. */
static inline size_t bj_scene_room(const bj_arch *a) {
    return bj_track_size(a) * (size_t)(1 + a->neighbors) + bj_line_size(a) * (size_t)a->polylines +
           bj_future_size(a);
}

#if BJ_REAL_IS_DOUBLE
static inline const bj_real *bj_scene_copied(bj_real **room, const float *source, size_t count) {
    bj_real *const copy = *room;
    for (size_t i = 0; i < count; i++) copy[i] = (bj_real)source[i];
    *room += count;
    return copy;
}
#endif

/* Returns a view of a scene. If bj_real is float, `room` is unused and may be NULL. */
static inline bj_scene bj_scene_view(bj_real *room, const bj_arch *a, const bj_scene_info *info,
                                     bj_scene_floats at) {
    bj_scene scene = {.neighbor_count = info->neighbors, .polyline_count = info->polylines};
#if BJ_REAL_IS_DOUBLE
    const size_t tracks = (size_t)info->neighbors, lines = (size_t)info->polylines;
    scene.focal = bj_scene_copied(&room, at.focal, bj_track_size(a));
    scene.neighbors = bj_scene_copied(&room, at.neighbors, tracks * bj_track_size(a));
    scene.polylines = bj_scene_copied(&room, at.polylines, lines * bj_line_size(a));
    if (at.future) scene.future = bj_scene_copied(&room, at.future, bj_future_size(a));
#else
    (void)room, (void)a;
    scene.focal = at.focal;
    scene.neighbors = at.neighbors;
    scene.polylines = at.polylines;
    scene.future = at.future;
#endif
    return scene;
}

#endif
