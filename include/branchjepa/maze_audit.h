/* maze_audit.h - audit of maze predictors: compares latent rollouts with recorded episodes that
 * were not used for training.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/MAZES.md defines every number.
 * Shapes: H steps of the horizon, L rollouts per context (one per predicted latent), D latent
 * width.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_MAZE_AUDIT_H
#define BRANCHJEPA_MAZE_AUDIT_H

#define BJ_PROBE_RIDGE 1e-3 /* ridge penalty of the probe, relative to the mean variance of a
                               latent's components */
enum {
    BJ_ROLLOUT_MAX_HORIZON = 256,
    BJ_ROLLOUT_ARMS = 2,
    BJ_PROBE_FRAMES = 32768 /* max number of evenly spaced frames used to fit a probe */
};

/* One step of the rollouts. Every value is a mean over contexts. Distances are between unit
 * latents. Errors are in maze units. */
typedef struct bj_rollout_step {
    double distance, best_distance;   /* distance to the latent of the true frame: mean weighted by
                                         router mass; minimum */
    double hit, hit_mass;             /* share of contexts with a rollout whose cosine exceeds 0.5;
                                         router mass of these rollouts */
    double error, best_error;         /* error of the position from the probe: mean weighted by
                                         router mass; minimum */
    double wall_mass;                 /* router mass of positions outside all cells */
    double probe_error, probe_wall;   /* error and wall rate of the probe on the true frame, the
                                         lower bound for rollouts */
    double stay_distance, stay_error; /* values for an agent that stays at the context */
} bj_rollout_step;

/* Return the name and the value of a metric of a step, in the order of the struct. The name is NULL
 * for larger indices. */
BJ_API const char *bj_rollout_name(int index);
BJ_API double bj_rollout_value(const bj_rollout_step *step, int index);

/* Results of one predictor. */
typedef struct bj_rollout_arm {
    char arm[BJ_NAME_SIZE];
    uint64_t seed;
    char settings_sha256[65], weights_sha256[65];
    int L;
    double length;                  /* mean length of fit contexts, to which a latent is scaled
                                       before it is fed back */
    double probe_error, probe_wall; /* over held-out frames */
    bj_rollout_step *steps;         /* (H) */
    double *mass;                   /* (L) router mass in the drawn context */
    double *paths;                  /* (H,L,2) probe positions of the rollouts in the drawn
                                       context */
} bj_rollout_arm;

typedef struct bj_rollout_audit {
    int arms, horizon;                                        /* H */
    int stride;                                               /* simulator steps between frames */
    int64_t episodes, held_episodes, fit_frames, held_frames; /* episodes, and frames used by the
                                                                 probe */
    uint64_t split_seed;
    double held_out;                  /* share of held-out episodes */
    int64_t contexts;                 /* number of eligible contexts, all of which are used */
    int64_t first_row, first_episode; /* row and episode of the drawn context, the first in the
                                         fixed order */
    double *truth;                    /* (H + 1,2) true positions in the drawn context */
    bj_maze *maze;
    char data_sha256[65], order_sha256[65]; /* hash of the dataset; hash of the context rows in
                                               order */
    bj_rollout_arm arm[BJ_ROLLOUT_ARMS];
} bj_rollout_audit;

typedef struct bj_rollout_options {
    const char *data; /* dataset; NULL: the path stored in the first run */
    const char *maze; /* name or file; NULL: the maze of the first run */
    int horizon;      /* 0: BJ_MAZE_HORIZON */
    int threads;      /* 0: one per available core; does not change the results */
    const char *isa;  /* as in bj_trainer_options */
    /* Called with the number of finished contexts and the total number, over all arms. A nonzero
     * return value stops the audit with BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_rollout_options;

/* Audits one or two finished runs (folders) with the same data, split and stride. Fails if a run
 * has no held-out episodes or if its transitions end in the next cell. options may be NULL. */
BJ_API BJ_CHECK bj_status bj_rollout_audit_runs(bj_rollout_audit *out, const char *const *runs,
                                                int count, const bj_rollout_options *options,
                                                bj_error *err);
BJ_API void bj_rollout_audit_reset(bj_rollout_audit *audit);

#endif
