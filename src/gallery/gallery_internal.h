/* gallery_internal.h - state that is needed while a gallery is created; used only in
 * src/gallery. */
#ifndef BJ_GALLERY_INTERNAL_H
#define BJ_GALLERY_INTERNAL_H

#include "core/threads.h"
#include "gallery/choose.h"

enum { BJ_GALLERY_BATCH = 64 };

/* Properties of one scene of a batch. */
typedef struct bj_gallery_look {
    bj_proxy proxy[BJ_GALLERY_MODELS];
    bj_audit_scene audit[BJ_GALLERY_MODELS]; /* 0 unless the scene is audited and all candidates are
                                                near the map */
    unsigned maneuvers;
    int audited, strict;
    bj_status status;
    bj_error error;
} bj_gallery_look;

struct bj_gallery {
    bj_cache *cache; /* blind */
    bj_loader *loader;
    bj_pool *pool;
    bj_arch arch;
    bj_gallery_options options;
    bj_gallery_counts counts;
    bj_predictor *predictor[BJ_GALLERY_MODELS];
    int K[BJ_GALLERY_MODELS];
    bj_real *weights[BJ_GALLERY_MODELS];      /* (BATCH,K) */
    bj_real *trajectories[BJ_GALLERY_MODELS]; /* (BATCH,K,F,2) */
    double *local, *city;                     /* (workers,most K,F,2) */
    bj_drivable **areas;                      /* (workers) */
    int64_t *maps;                            /* (workers) map of these areas, or -1 */
    bj_gallery_look *look;                    /* (BATCH) */
    bj_strict_case *strict;                   /* (strict_count) */
    int64_t strict_count, strict_room;
    bj_gallery_case *cases; /* (counts.cases) */
    double *forecasts;      /* (cases) weights and trajectories of both models */
    char digest[65];
};

#endif
