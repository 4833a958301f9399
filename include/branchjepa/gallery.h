/* gallery.h - cases to show, chosen before anybody looks at what happened.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/GALLERY.md states screen
 * and rule.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_GALLERY_H
#define BRANCHJEPA_GALLERY_H

/* The two models whose forecasts stand side by side. */
enum { BJ_GALLERY_BRANCH, BJ_GALLERY_POINT, BJ_GALLERY_MODELS };
enum { BJ_GALLERY_CASES = 64 }; /* most */

/* Every scene of a cache against the cached-map screen of audit.h, and cases chosen among the
 * strict ones. The cache is opened blind: ids, observed tracks, maps and forecasts are all there
 * is. */
typedef struct bj_gallery bj_gallery;

typedef struct bj_gallery_options {
    int cases;     /* to choose, fewer when there are not as many; 1 to BJ_GALLERY_CASES */
    uint64_t seed; /* of the order among equals */
    int threads;   /* as in bj_predictor_options; no number depends on it */
    const char *isa;
    int64_t limit; /* only so many scenes, the first of the cache; 0: all */
    /* As in bj_submit_options; stopping is BJ_ELOCKED. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_gallery_options;

typedef struct bj_gallery_counts {
    int64_t scenes;                    /* looked at */
    int64_t passes[BJ_GALLERY_MODELS]; /* of these past the screen: bj_proxy.passes */
    int64_t near[BJ_GALLERY_MODELS];   /* without any point beyond 3 m: bj_proxy.strict */
    int64_t audited;                   /* vehicle or bus */
    int64_t strict;  /* audited; of both models no point is beyond 3 m or off the drivable areas */
    int64_t several; /* of these with more than one maneuver */
    int cases;       /* chosen */
} bj_gallery_counts;

/* How a forecast ends, by its last point: within 2 m, or less than 30 degrees to a side. */
enum { BJ_GALLERY_STOP = 1, BJ_GALLERY_STRAIGHT = 2, BJ_GALLERY_LEFT = 4, BJ_GALLERY_RIGHT = 8 };

#define BJ_GALLERY_MASS 0.05 /* least weight of a maneuver that counts */

/* Returns the maneuvers that at least BJ_GALLERY_MASS of a forecast's weight ends in, as bits:
 * weights (K), trajectories (K,F,2) in the frame of the scene. */
BJ_API unsigned bj_gallery_maneuvers(int K, int F, const double *weights,
                                     const double *trajectories);

typedef struct bj_gallery_case {
    int64_t scene;      /* number in the cache */
    unsigned maneuvers; /* of the branches, those with enough weight: bits as above */
    char order[65];     /* SHA-256 of "SEED:SCENARIO_ID", 64 digits */
    char observed[65];  /* bj_gallery_observed */
    char areas[65];     /* bj_gallery_areas of its map */
    /* Of each model; forecasts as they came, in the frame of the scene. */
    const double *weights[BJ_GALLERY_MODELS];      /* (K) */
    const double *trajectories[BJ_GALLERY_MODELS]; /* (K,F,2) */
    bj_proxy proxy[BJ_GALLERY_MODELS];
    bj_audit_scene audit[BJ_GALLERY_MODELS];
} bj_gallery_case;

/* In words, for a manifest. */
BJ_API const char *bj_gallery_rule(void);

/* The point model must have K = 1. */
BJ_API BJ_CHECK bj_status bj_gallery_create(bj_gallery **out, const char *cache,
                                            const bj_model *branch, const bj_model *point,
                                            const bj_gallery_options *options, bj_error *err);
BJ_API void bj_gallery_free(bj_gallery *gallery);
BJ_API bj_gallery_counts bj_gallery_count(const bj_gallery *gallery);
BJ_API const bj_cache *bj_gallery_cache(const bj_gallery *gallery); /* blind */
BJ_API const char *bj_gallery_isa(const bj_gallery *gallery);
/* SHA-256 over bj_gallery_observed of the scenes looked at, in order. */
BJ_API const char *bj_gallery_digest(const bj_gallery *gallery);
BJ_API const bj_gallery_case *bj_gallery_at(const bj_gallery *gallery, int place);

/* ------------------------------------------------------------------------------------- digests */

/* SHA-256, 64 digits, over all that may be known of a scene before its future is: ids, frame, raw
 * map hash, observed tracks, polylines. */
BJ_API BJ_CHECK bj_status bj_gallery_observed(char hex[65], const bj_cache *cache, int64_t scene,
                                              bj_error *err);
/* ... over the drivable areas of a map. */
BJ_API BJ_CHECK bj_status bj_gallery_areas(char hex[65], const bj_cache *cache, int64_t map,
                                           bj_error *err);
/* As bj_gallery_digest, of the first `scenes` of a cache. */
BJ_API BJ_CHECK bj_status bj_gallery_digest_of(char hex[65], const bj_cache *cache, int64_t scenes,
                                               bj_error *err);
/* ... over the bytes of a file, or of memory. */
BJ_API BJ_CHECK bj_status bj_file_digest(char hex[65], const char *path, bj_error *err);
BJ_API BJ_CHECK bj_status bj_memory_digest(char hex[65], const void *data, size_t size,
                                           bj_error *err);

#endif
