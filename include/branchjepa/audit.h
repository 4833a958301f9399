/* audit.h - compares forecasts with the official drivable areas.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/AUDIT.md defines every number.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_AUDIT_H
#define BRANCHJEPA_AUDIT_H

/* ------------------------------------------------------------------------------- drivable areas */

#define BJ_AUDIT_TOLERANCE 0.1 /* meters */

/* A closed polygon. The first point is not repeated at the end. */
typedef struct bj_ring {
    const double *points; /* (count,2) city coordinates */
    int count;            /* >= 1 */
} bj_ring;

/* The drivable areas of a map: the union of its filled rings, expanded by a tolerance and indexed
 * for fast queries. A ring inside another ring is not a hole. Setting new rings reuses the memory.
 * Several threads may query the same object. */
typedef struct bj_drivable bj_drivable;

BJ_API BJ_CHECK bj_status bj_drivable_create(bj_drivable **out, bj_error *err); /* empty */
BJ_API void bj_drivable_free(bj_drivable *areas);
BJ_API BJ_CHECK bj_status bj_drivable_set_rings(bj_drivable *areas, const bj_ring *rings, int count,
                                                double tolerance, bj_error *err);
BJ_API BJ_CHECK bj_status bj_drivable_set_cache(bj_drivable *areas, const bj_cache *cache,
                                                int64_t map, double tolerance, bj_error *err);
/* Loads the areas from a raw map file, log_map_archive_ID.json. */
BJ_API BJ_CHECK bj_status bj_drivable_set_file(bj_drivable *areas, const char *path,
                                               double tolerance, bj_error *err);
/* Returns 1 if the point is inside a ring or at most the tolerance away from its boundary, and 0
 * otherwise. A NaN point is outside. */
BJ_API int bj_drivable_inside(const bj_drivable *areas, double x, double y);
/* Tests points (n,2) and returns the number of points inside. `inside` (n) receives 1 or 0 per
 * point and may be NULL. */
BJ_API int64_t bj_drivable_contains(uint8_t *inside, const bj_drivable *areas, const double *points,
                                    int64_t n);

/* -------------------------------------------------------------------------------------- metrics */

typedef enum bj_audit_metric {
    BJ_AUDIT_POINT_MASS,            /* sum_k p_k times the share of points inside */
    BJ_AUDIT_TRAJECTORY_MASS,       /* sum_k p_k f_k, where f_k is 1 if at least 95 % of the points
                                       are inside */
    BJ_AUDIT_UNIQUE_SUPPORT,        /* number of components of feasible candidates with mass >=
                                       .01 */
    BJ_AUDIT_ENTROPY_SUPPORT,       /* exp of the entropy of the masses of the feasible components;
                                       0 if there are none */
    BJ_AUDIT_MASS_WEIGHTED_SUPPORT, /* entropy support times trajectory mass */
    BJ_AUDIT_TRAJECTORY_DIVERSITY,  /* sum_kl p_k p_l f_k f_l times the RMS distance, m */
    BJ_AUDIT_ENDPOINT_DIVERSITY,    /* sum_kl p_k p_l f_k f_l times the distance between the last
                                       points, m */
    BJ_AUDIT_METRICS
} bj_audit_metric;

/* Returns the properties of a metric ("point_mass", ...). Masses are fractions. */
BJ_API bj_metric_info bj_audit_metric_at(int metric);

/* Metrics of one scene. */
typedef struct bj_audit_scene {
    int K, F;
    double value[BJ_AUDIT_METRICS];
    int inside[BJ_MAX_ATOMS];    /* (K) number of points inside, out of F */
    int component[BJ_MAX_ATOMS]; /* (K) smallest candidate index in the component of this candidate;
                                    -1: not feasible */
    int contained;               /* 1: all points of all candidates are inside */
} bj_audit_scene;

/* Measures a forecast: router weights (K) and trajectories (K,F,2) in city coordinates. K is at
 * most BJ_MAX_ATOMS. */
BJ_API void bj_audit_measure(bj_audit_scene *out, const bj_drivable *areas, int K, int F,
                             const double *weights, const double *trajectories);
/* Returns 1 if focal road users of this type are audited, which are "vehicle" and "bus". */
BJ_API int bj_audit_takes(const char *focal_type);

/* ---------------------------------------------------------------------------- cached-map screen */

#define BJ_PROXY_RADIUS 3.0   /* meters */
#define BJ_PROXY_OUTSIDE 0.10 /* max share of points outside */
#define BJ_PROXY_MASS 0.80    /* min total weight of the candidates within that limit */

/* A point is on the map if it is at most 3 m away from a polyline in the network's input. */
typedef struct bj_proxy {
    int K;
    double outside[BJ_MAX_ATOMS]; /* (K) share of points that are not on the map */
    double weighted_outside;      /* sum_k p_k outside_k */
    double compliant_mass;        /* total weight of candidates with outside_k <= .10 */
    int passes;                   /* weighted_outside <= .10 and compliant_mass >= .80 */
    int strict;                   /* 1: no point of any candidate is outside */
} bj_proxy;

/* Measures a forecast against polylines (count,points,6), for example from bj_scene_floats. weights
 * is (K), and trajectories is (K,F,2) in the scene's frame. */
BJ_API void bj_proxy_measure(bj_proxy *out, const float *polylines, int count, int points, int K,
                             int F, const double *weights, const double *trajectories);

/* ------------------------------------------------------------------------------ audit of models */

/* Audits models on those scenes of a cache whose focal road user has an audited type. Models are
 * grouped into arms, with one model per seed. The cache is opened blind, so no future can be
 * read. */
typedef struct bj_audit bj_audit;

typedef struct bj_audit_options {
    int threads; /* as in bj_predictor_options; does not change the results */
    bj_precision precision;
    const char *isa;
    int64_t limit; /* max number of scenes, counted from the start of the cache; 0: all */
    /* Called periodically. A nonzero return value stops the call with BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_audit_options;

/* Opens an audit. options->isa and options->context must outlive it. options may be NULL. Fails if
 * the cache has no scene to audit. */
BJ_API BJ_CHECK bj_status bj_audit_open(bj_audit **out, const char *cache,
                                        const bj_audit_options *options, bj_error *err);
BJ_API void bj_audit_free(bj_audit *audit);

typedef struct bj_audit_counts {
    int64_t total;   /* scenes examined */
    int64_t scenes;  /* audited scenes (vehicle or bus) */
    int64_t origins; /* number of audited scenes whose focal origin is inside; shows whether frames
                        and maps match */
} bj_audit_counts;

BJ_API bj_audit_counts bj_audit_count(const bj_audit *audit);
/* Returns the id of an audited scene. Scenes are in cache order. */
BJ_API const char *bj_audit_scenario_id(const bj_audit *audit, int64_t scene);
/* Returns the SHA-256 over the ids, frames and map hashes of the audited scenes, as 64 hex digits.
 * Futures are not included. */
BJ_API const char *bj_audit_digest(const bj_audit *audit);

/* Means over scenes for one model. */
typedef struct bj_audit_report {
    int64_t seed; /* seed passed to bj_audit_add */
    int atoms;
    int64_t empty; /* number of scenes without a feasible candidate; their metrics are 0 */
    double mean[BJ_AUDIT_METRICS];
} bj_audit_report;

/* Audits a model as `seed` of `arm`. Fails if the arm already has this seed. The audit is unchanged
 * if the call fails. values (BJ_AUDIT_METRICS,scenes), if not NULL, receives the value of every
 * scene. */
BJ_API BJ_CHECK bj_status bj_audit_add(bj_audit *audit, const char *arm, int64_t seed,
                                       const bj_model *model, double *values, bj_error *err);
BJ_API int bj_audit_arms(const bj_audit *audit); /* number of arms, in the order in which they were
                                                    added */
BJ_API const char *bj_audit_arm(const bj_audit *audit, int arm);
BJ_API int bj_audit_find_arm(const bj_audit *audit, const char *name); /* index, or -1 */
BJ_API int bj_audit_seeds(const bj_audit *audit, int arm);
BJ_API bj_audit_report bj_audit_report_at(const bj_audit *audit, int arm, int index);

typedef struct bj_audit_summary {
    int n;
    double mean, sd; /* mean and SD of the seed means; the SD has divisor n */
} bj_audit_summary;

BJ_API bj_audit_summary bj_audit_summarize(const bj_audit *audit, int arm, int metric);
/* Fills values (scenes) with the metric of every audited scene, averaged over the arm's seeds. */
BJ_API void bj_audit_values(double *values, const bj_audit *audit, int arm, int metric);
/* Computes the difference a - b of every metric, with a bootstrap interval over paired scenes. All
 * metrics use the same resamples. Fails if the arms have different seeds. */
BJ_API BJ_CHECK bj_status bj_audit_compare(bj_bootstrap out[BJ_AUDIT_METRICS],
                                           const bj_audit *audit, int a, int b, int resamples,
                                           uint64_t seed, double level, bj_error *err);

/* ------------------------------------------------------------------------- audit of submissions */

/* Audits a submission file from any model against the raw map files below a folder. */
typedef struct bj_submission_audit bj_submission_audit;

typedef enum bj_audit_outcome {
    BJ_AUDITED,
    BJ_AUDIT_OTHER_TYPE, /* the focal road user is neither a vehicle nor a bus */
    BJ_AUDIT_MISSING,    /* no rows for the focal track */
    BJ_AUDIT_MALFORMED,  /* rows violate the format */
    BJ_AUDIT_UNREADABLE, /* the scenario or map cannot be read */
    BJ_AUDIT_OUTCOMES
} bj_audit_outcome;

/* "audited", "other type", ... */
BJ_API const char *bj_audit_outcome_name(bj_audit_outcome outcome);

typedef struct bj_submission_scene {
    const char *scenario_id, *focal_id, *focal_type;
    bj_audit_outcome outcome;
    const char *message; /* reason if malformed or unreadable; otherwise NULL */
    int origin_inside;
    const bj_audit_scene *audit; /* NULL unless audited */
} bj_submission_scene;

typedef struct bj_submission_counts {
    int64_t total; /* scenarios found below the folder */
    int64_t outcomes[BJ_AUDIT_OUTCOMES];
    int64_t origins; /* audited scenes whose focal origin is inside */
    int64_t unknown; /* number of scenarios in the file that are not in the folder */
    int64_t empty;   /* audited scenes without a feasible candidate */
} bj_submission_counts;

/* Audits a submission, which must outlive the audit. `root` is a folder of scenario and map files,
 * or a cache. Does not read any rows of a scenario after its last observed step. Uses only the
 * options threads, progress and context. */
BJ_API BJ_CHECK bj_status bj_submission_audit_create(bj_submission_audit **out,
                                                     const bj_submission *submission,
                                                     const char *root,
                                                     const bj_audit_options *options,
                                                     bj_error *err);
BJ_API void bj_submission_audit_free(bj_submission_audit *audit);
BJ_API bj_submission_counts bj_submission_audit_count(const bj_submission_audit *audit);
/* Returns the mean over audited scenes, or NaN if there are none. */
BJ_API double bj_submission_audit_mean(const bj_submission_audit *audit, int metric);
/* Returns one of the folder's scenarios, which are sorted by id. */
BJ_API bj_submission_scene bj_submission_audit_at(const bj_submission_audit *audit, int64_t index);

#endif
