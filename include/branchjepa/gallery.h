/* gallery.h - selects example cases without reading any future.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/GALLERY.md defines the screen and
 * the selection rule.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_GALLERY_H
#define BRANCHJEPA_GALLERY_H

/* The two models whose forecasts are shown side by side. */
enum { BJ_GALLERY_BRANCH, BJ_GALLERY_POINT, BJ_GALLERY_MODELS };
enum { BJ_GALLERY_CASES = 64 }; /* max */

/* Screens every scene of a cache with the cached-map screen of audit.h and selects cases among the
 * strict scenes. The cache is opened blind, so only ids, observed tracks, maps and forecasts are
 * used. */
typedef struct bj_gallery bj_gallery;

typedef struct bj_gallery_options {
    int cases;     /* number of cases to select, 1 to BJ_GALLERY_CASES; fewer are selected if there
                      are not enough */
    uint64_t seed; /* determines the order of cases with equal rank */
    int threads;   /* as in bj_predictor_options; does not change the results */
    const char *isa;
    int64_t limit; /* max number of scenes, counted from the start of the cache; 0: all */
    /* Called periodically. A nonzero return value stops the call with BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_gallery_options;

typedef struct bj_gallery_counts {
    int64_t scenes;                    /* scenes examined */
    int64_t passes[BJ_GALLERY_MODELS]; /* scenes that pass the screen (bj_proxy.passes) */
    int64_t near[BJ_GALLERY_MODELS];   /* scenes without any point beyond 3 m (bj_proxy.strict) */
    int64_t audited;                   /* number of scenes with a vehicle or bus as focal road
                                          user */
    int64_t strict;  /* number of audited scenes in which no point of either model is more than 3 m
                        from the map or outside the drivable areas */
    int64_t several; /* strict scenes with more than one maneuver */
    int cases;       /* selected */
} bj_gallery_counts;

/* Maneuver of a forecast, determined by its last point: stop if the point is within 2 m, left or
 * right if its direction deviates by at least 30 degrees to that side, otherwise straight. */
enum { BJ_GALLERY_STOP = 1, BJ_GALLERY_STRAIGHT = 2, BJ_GALLERY_LEFT = 4, BJ_GALLERY_RIGHT = 8 };

#define BJ_GALLERY_MASS 0.05 /* min weight of a maneuver */

/* Returns a bit mask of the maneuvers that have at least BJ_GALLERY_MASS of a forecast's weight.
 * weights is (K), and trajectories is (K,F,2) in the scene's frame. */
BJ_API unsigned bj_gallery_maneuvers(int K, int F, const double *weights,
                                     const double *trajectories);

typedef struct bj_gallery_case {
    int64_t scene;      /* index in the cache */
    unsigned maneuvers; /* bj_gallery_maneuvers of the branch model */
    char order[65];     /* SHA-256 of "SEED:SCENARIO_ID", 64 hex digits */
    char observed[65];  /* bj_gallery_observed */
    char areas[65];     /* bj_gallery_areas of the scene's map */
    /* Unmodified forecasts of each model, in the scene's frame. */
    const double *weights[BJ_GALLERY_MODELS];      /* (K) */
    const double *trajectories[BJ_GALLERY_MODELS]; /* (K,F,2) */
    bj_proxy proxy[BJ_GALLERY_MODELS];
    bj_audit_scene audit[BJ_GALLERY_MODELS];
} bj_gallery_case;

/* Returns the selection rule as text for a manifest. */
BJ_API const char *bj_gallery_rule(void);

/* Creates a gallery. The point model must have K = 1. */
BJ_API BJ_CHECK bj_status bj_gallery_create(bj_gallery **out, const char *cache,
                                            const bj_model *branch, const bj_model *point,
                                            const bj_gallery_options *options, bj_error *err);
BJ_API void bj_gallery_free(bj_gallery *gallery);
BJ_API bj_gallery_counts bj_gallery_count(const bj_gallery *gallery);
BJ_API const bj_cache *bj_gallery_cache(const bj_gallery *gallery); /* blind */
BJ_API const char *bj_gallery_isa(const bj_gallery *gallery);
/* Returns the SHA-256 of the bj_gallery_observed digests of all examined scenes, in order. */
BJ_API const char *bj_gallery_digest(const bj_gallery *gallery);
BJ_API const bj_gallery_case *bj_gallery_at(const bj_gallery *gallery, int place);

/* ------------------------------------------------------------------------------------- digests */

/* Computes the SHA-256 over everything that is known about a scene except its future: ids, frame,
 * raw map hash, observed tracks and polylines. All digests below have 64 hex digits. */
BJ_API BJ_CHECK bj_status bj_gallery_observed(char hex[65], const bj_cache *cache, int64_t scene,
                                              bj_error *err);
/* Computes the SHA-256 over the drivable areas of a map. */
BJ_API BJ_CHECK bj_status bj_gallery_areas(char hex[65], const bj_cache *cache, int64_t map,
                                           bj_error *err);
/* Computes the value of bj_gallery_digest for the first `scenes` scenes of a cache. */
BJ_API BJ_CHECK bj_status bj_gallery_digest_of(char hex[65], const bj_cache *cache, int64_t scenes,
                                               bj_error *err);
/* Compute the SHA-256 of a file and of a memory block. */
BJ_API BJ_CHECK bj_status bj_file_digest(char hex[65], const char *path, bj_error *err);
BJ_API BJ_CHECK bj_status bj_memory_digest(char hex[65], const void *data, size_t size,
                                           bj_error *err);

#endif
