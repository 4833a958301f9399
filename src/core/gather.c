/* gather.c - see gather.h. */
#include "core/gather.h"

void bj_gathered_take(bj_gathered *g, bj_arena *arena, const bj_arch *arch, size_t B,
                      int with_future) {
    const size_t track = (size_t)arch->obs * BJ_FOCAL_FEATURES;
    const size_t line = (size_t)arch->points * BJ_POLYLINE_FEATURES;
    *g = (bj_gathered){0};
    g->focal = bj_arena_take(arena, B * track);
    g->neighbors = bj_arena_take(arena, B * (size_t)arch->neighbors * track);
    g->polylines = bj_arena_take(arena, B * (size_t)arch->polylines * line);
    if (with_future) g->future = bj_arena_take(arena, B * 2 * (size_t)arch->fut);
    g->neighbor_start = bj_arena_take_bytes(arena, (B + 1) * sizeof(int));
    g->polyline_start = bj_arena_take_bytes(arena, (B + 1) * sizeof(int));
}

void bj_gathered_lay_out(bj_gathered *g, const bj_scene *scenes, int B) {
    g->B = B;
    g->neighbor_start[0] = g->polyline_start[0] = 0;
    for (int b = 0; b < B; b++) {
        g->neighbor_start[b + 1] = g->neighbor_start[b] + scenes[b].neighbor_count;
        g->polyline_start[b + 1] = g->polyline_start[b] + scenes[b].polyline_count;
    }
}

/* Copies n numbers. Returns 0 if all of them are finite. The check relies on x * 0 being 0 for
 * finite x and NaN otherwise. */
static bj_real copy(bj_real *restrict to, const bj_real *restrict from, size_t n) {
    bj_real lane[16] = {0};
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) {
            to[i + j] = from[i + j];
            lane[j] += from[i + j] * 0;
        }
    for (; i < n; i++) {
        to[i] = from[i];
        lane[0] += from[i] * 0;
    }
    for (int j = 1; j < 16; j++) lane[0] += lane[j];
    return lane[0];
}

int bj_gathered_copy(const bj_gathered *g, const bj_scene *scenes, const bj_arch *arch, int b0,
                     int b1) {
    const size_t track = (size_t)arch->obs * BJ_FOCAL_FEATURES, line = 2 * (size_t)arch->fut;
    const size_t points = (size_t)arch->points * BJ_POLYLINE_FEATURES;
    int bad = -1;
    for (int b = b0; b < b1; b++) {
        const bj_scene *s = &scenes[b];
        const size_t n = (size_t)g->neighbor_start[b], p = (size_t)g->polyline_start[b];
        bj_real sum = 0;
        if (g->focal) sum += copy(g->focal + (size_t)b * track, s->focal, track);
        if (g->neighbors && s->neighbor_count)
            sum += copy(g->neighbors + n * track, s->neighbors, (size_t)s->neighbor_count * track);
        if (s->polyline_count)
            sum +=
                copy(g->polylines + p * points, s->polylines, (size_t)s->polyline_count * points);
        if (g->future) sum += copy(g->future + (size_t)b * line, s->future, line);
        if (sum != 0 && bad < 0) bad = b;
    }
    return bad;
}
