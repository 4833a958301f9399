/* audit.h - forecasts held against the official drivable areas.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/AUDIT.md defines every
 * number.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_AUDIT_H
#define BRANCHJEPA_AUDIT_H

/* ------------------------------------------------------------------------------- drivable areas */

#define BJ_AUDIT_TOLERANCE 0.1 /* m */

/* A closed line; the first point is not repeated. */
typedef struct bj_ring {
    const double *points; /* (count,2) city coordinates */
    int count;            /* >= 1 */
} bj_ring;

/* The union of the filled rings of a map, grown by a tolerance and prepared for many questions. A
 * ring inside another one is no hole. Filling it again keeps its buffers. Questions may be asked
 * from several threads. */
typedef struct bj_drivable bj_drivable;

BJ_API BJ_CHECK bj_status bj_drivable_create(bj_drivable **out, bj_error *err); /* empty */
BJ_API void bj_drivable_free(bj_drivable *areas);
BJ_API BJ_CHECK bj_status bj_drivable_set_rings(bj_drivable *areas, const bj_ring *rings, int count,
                                                double tolerance, bj_error *err);
BJ_API BJ_CHECK bj_status bj_drivable_set_cache(bj_drivable *areas, const bj_cache *cache,
                                                int64_t map, double tolerance, bj_error *err);
/* From a raw map file, log_map_archive_ID.json. */
BJ_API BJ_CHECK bj_status bj_drivable_set_file(bj_drivable *areas, const char *path,
                                               double tolerance, bj_error *err);
/* 1: inside a ring, or at most the tolerance from its line. Not a number is outside. */
BJ_API int bj_drivable_inside(const bj_drivable *areas, double x, double y);
/* The same for points (n,2): fills inside (n), which may be NULL, and returns how many are. */
BJ_API int64_t bj_drivable_contains(uint8_t *inside, const bj_drivable *areas, const double *points,
                                    int64_t n);

/* -------------------------------------------------------------------------------------- metrics */

typedef enum bj_audit_metric {
    BJ_AUDIT_POINT_MASS,            /* sum_k p_k share of points inside */
    BJ_AUDIT_TRAJECTORY_MASS,       /* sum_k p_k f_k; f_k: at least 95 % of the points are inside */
    BJ_AUDIT_UNIQUE_SUPPORT,        /* components of feasible candidates with mass >= .01 */
    BJ_AUDIT_ENTROPY_SUPPORT,       /* exp H of the feasible components; 0 when there is none */
    BJ_AUDIT_MASS_WEIGHTED_SUPPORT, /* the same times trajectory mass */
    BJ_AUDIT_TRAJECTORY_DIVERSITY,  /* sum_kl p_k p_l f_k f_l RMS distance, m */
    BJ_AUDIT_ENDPOINT_DIVERSITY,    /* sum_kl p_k p_l f_k f_l distance of the last points, m */
    BJ_AUDIT_METRICS
} bj_audit_metric;

/* "point_mass", ...; masses are fractions. */
BJ_API bj_metric_info bj_audit_metric_at(int metric);

/* One scene. */
typedef struct bj_audit_scene {
    int K, F;
    double value[BJ_AUDIT_METRICS];
    int inside[BJ_MAX_ATOMS];    /* (K) points inside, of F */
    int component[BJ_MAX_ATOMS]; /* (K) smallest member of its component; -1: not feasible */
    int contained;               /* 1: every point of every candidate is inside */
} bj_audit_scene;

/* weights (K), as the router gave them; trajectories (K,F,2) in city coordinates. K is at most
 * BJ_MAX_ATOMS. */
BJ_API void bj_audit_measure(bj_audit_scene *out, const bj_drivable *areas, int K, int F,
                             const double *weights, const double *trajectories);
/* Whether a focal actor of that type is audited: "vehicle" and "bus". */
BJ_API int bj_audit_takes(const char *focal_type);

/* ---------------------------------------------------------------------------- cached-map screen */

#define BJ_PROXY_RADIUS 3.0   /* m */
#define BJ_PROXY_OUTSIDE 0.10 /* most points outside, a share */
#define BJ_PROXY_MASS 0.80    /* least weight of candidates with so few outside */

/* A point is on the map when it is at most 3 m from a polyline the network has seen. */
typedef struct bj_proxy {
    int K;
    double outside[BJ_MAX_ATOMS]; /* (K) share of points that are not */
    double weighted_outside;      /* sum_k p_k outside_k */
    double compliant_mass;        /* weight of candidates with outside_k <= .10 */
    int passes;                   /* weighted_outside <= .10 and compliant_mass >= .80 */
    int strict;                   /* no point of any candidate is outside */
} bj_proxy;

/* polylines (count,points,6), of a bj_scene_floats for example; weights (K) and trajectories
 * (K,F,2) in the frame of the scene. */
BJ_API void bj_proxy_measure(bj_proxy *out, const float *polylines, int count, int points, int K,
                             int F, const double *weights, const double *trajectories);

/* ------------------------------------------------------------------------------ audit of models */

/* The scenes of a cache whose focal actor is audited, and what models make of them. Models are
 * grouped into arms, one for each seed. The cache is opened blind: no future is within reach. */
typedef struct bj_audit bj_audit;

typedef struct bj_audit_options {
    int threads; /* as in bj_predictor_options; no number depends on it */
    bj_precision precision;
    const char *isa;
    int64_t limit; /* only so many scenes, the first of the cache; 0: all */
    /* As in bj_submit_options; stopping is BJ_ELOCKED. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_audit_options;

/* Borrows options->isa and context as long as the audit lives. options may be NULL. A cache without
 * a scene to audit is refused. */
BJ_API BJ_CHECK bj_status bj_audit_open(bj_audit **out, const char *cache,
                                        const bj_audit_options *options, bj_error *err);
BJ_API void bj_audit_free(bj_audit *audit);

typedef struct bj_audit_counts {
    int64_t total;   /* scenes looked at */
    int64_t scenes;  /* of these audited: vehicle or bus */
    int64_t origins; /* of these with the focal origin inside: a check of frames and maps */
} bj_audit_counts;

BJ_API bj_audit_counts bj_audit_count(const bj_audit *audit);
/* Of the audited scenes, in the order of the cache. */
BJ_API const char *bj_audit_scenario_id(const bj_audit *audit, int64_t scene);
/* SHA-256 over ids, frames and map hashes of the audited scenes, 64 digits; not over futures. */
BJ_API const char *bj_audit_digest(const bj_audit *audit);

/* One model: means over scenes. */
typedef struct bj_audit_report {
    int64_t seed; /* as given */
    int atoms;
    int64_t empty; /* scenes without a feasible candidate; they count as 0 */
    double mean[BJ_AUDIT_METRICS];
} bj_audit_report;

/* Audits a model as `seed` of `arm`; a second model of the same seed is refused. When it fails the
 * audit is as before. values (BJ_AUDIT_METRICS,scenes), when not NULL, receives every scene. */
BJ_API BJ_CHECK bj_status bj_audit_add(bj_audit *audit, const char *arm, int64_t seed,
                                       const bj_model *model, double *values, bj_error *err);
BJ_API int bj_audit_arms(const bj_audit *audit); /* in the order of their first models */
BJ_API const char *bj_audit_arm(const bj_audit *audit, int arm);
BJ_API int bj_audit_find_arm(const bj_audit *audit, const char *name); /* or -1 */
BJ_API int bj_audit_seeds(const bj_audit *audit, int arm);
BJ_API bj_audit_report bj_audit_report_at(const bj_audit *audit, int arm, int index);

typedef struct bj_audit_summary {
    int n;
    double mean, sd; /* of the seeds' means; population SD, dividing by n */
} bj_audit_summary;

BJ_API bj_audit_summary bj_audit_summarize(const bj_audit *audit, int arm, int metric);
/* Values of all audited scenes, averaged over the seeds of the arm: values (scenes). */
BJ_API void bj_audit_values(double *values, const bj_audit *audit, int arm, int metric);
/* a - b of every metric with the paired-scene bootstrap interval of these values; all metrics meet
 * the same resamples. Arms of other seeds than each other's are refused. */
BJ_API BJ_CHECK bj_status bj_audit_compare(bj_bootstrap out[BJ_AUDIT_METRICS],
                                           const bj_audit *audit, int a, int b, int resamples,
                                           uint64_t seed, double level, bj_error *err);

/* ------------------------------------------------------------------------- audit of submissions */

/* Anybody's forecasts in the official format against the raw map files below a folder. */
typedef struct bj_submission_audit bj_submission_audit;

typedef enum bj_audit_outcome {
    BJ_AUDITED,
    BJ_AUDIT_OTHER_TYPE, /* the focal actor is neither vehicle nor bus */
    BJ_AUDIT_MISSING,    /* no rows of the focal track */
    BJ_AUDIT_MALFORMED,  /* rows that break the rules of the format */
    BJ_AUDIT_UNREADABLE, /* scenario or map cannot be read */
    BJ_AUDIT_OUTCOMES
} bj_audit_outcome;

/* "audited", "other type", ... */
BJ_API const char *bj_audit_outcome_name(bj_audit_outcome outcome);

typedef struct bj_submission_scene {
    const char *scenario_id, *focal_id, *focal_type;
    bj_audit_outcome outcome;
    const char *message; /* of a malformed or unreadable one; else NULL */
    int origin_inside;
    const bj_audit_scene *audit; /* NULL unless audited */
} bj_submission_scene;

typedef struct bj_submission_counts {
    int64_t total; /* scenarios below the folder */
    int64_t outcomes[BJ_AUDIT_OUTCOMES];
    int64_t origins; /* audited scenes with the focal origin inside */
    int64_t unknown; /* scenarios of the file that the folder does not have */
    int64_t empty;   /* audited scenes without a feasible candidate */
} bj_submission_counts;

/* The submission is borrowed as long as the audit lives. Of a scenario the rows of the last
 * observed step are used, and no later ones. Only threads, progress and context of the options
 * matter. */
BJ_API BJ_CHECK bj_status bj_submission_audit_create(bj_submission_audit **out,
                                                     const bj_submission *submission,
                                                     const char *root,
                                                     const bj_audit_options *options,
                                                     bj_error *err);
BJ_API void bj_submission_audit_free(bj_submission_audit *audit);
BJ_API bj_submission_counts bj_submission_audit_count(const bj_submission_audit *audit);
/* Mean over audited scenes; NaN when there is none. */
BJ_API double bj_submission_audit_mean(const bj_submission_audit *audit, int metric);
/* All scenarios of the folder, by id. */
BJ_API bj_submission_scene bj_submission_audit_at(const bj_submission_audit *audit, int64_t index);

#endif
