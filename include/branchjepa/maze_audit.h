/* maze_audit.h - the audit of maze predictors on episodes they were not trained on: rollouts in
 * their latents, held against what happened.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/MAZES.md defines every
 * number. Shapes: H steps of the horizon, L rollouts of a context (one for each latent the
 * predictor proposes), D latent width.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_MAZE_AUDIT_H
#define BRANCHJEPA_MAZE_AUDIT_H

#define BJ_PROBE_RIDGE 1e-3 /* relative to the mean variance of a latent's numbers */
enum {
    BJ_ROLLOUT_MAX_HORIZON = 256,
    BJ_ROLLOUT_ARMS = 2,
    BJ_PROBE_FRAMES = 32768 /* frames, evenly spaced, that a probe is fitted to at most */
};

/* A step of the rollouts; every number is a mean over contexts. Distances are between unit latents,
 * errors in units of the maze. */
typedef struct bj_rollout_step {
    double distance, best_distance;   /* to the latent of the true frame: by router mass; least */
    double hit, hit_mass;             /* contexts with a cosine above 0.5; router mass on these */
    double error, best_error;         /* of the position the probe reads: by router mass; least */
    double wall_mass;                 /* router mass of positions in no cell */
    double probe_error, probe_wall;   /* the probe on the true frame: the floor of both */
    double stay_distance, stay_error; /* of whoever stays where the context is */
} bj_rollout_step;

/* The numbers of a step by their names, in that order; NULL beyond them. */
BJ_API const char *bj_rollout_name(int index);
BJ_API double bj_rollout_value(const bj_rollout_step *step, int index);

/* One predictor's part. */
typedef struct bj_rollout_arm {
    char arm[BJ_NAME_SIZE];
    uint64_t seed;
    char settings_sha256[65], weights_sha256[65];
    int L;
    double length;                  /* mean length of fit contexts: of a latent that is fed back */
    double probe_error, probe_wall; /* over held-out frames */
    bj_rollout_step *steps;         /* (H) */
    double *mass;                   /* (L) of the context that is drawn */
    double *paths;                  /* (H,L,2) its rollouts as the probe reads them */
} bj_rollout_arm;

typedef struct bj_rollout_audit {
    int arms, horizon;                                        /* H */
    int stride;                                               /* simulator steps between frames */
    int64_t episodes, held_episodes, fit_frames, held_frames; /* frames the probe saw */
    uint64_t split_seed;
    double held_out;                  /* share of the episodes */
    int64_t contexts;                 /* eligible ones, all of which count */
    int64_t first_row, first_episode; /* the first in frozen order is drawn */
    double *truth;                    /* (H + 1,2) where that one went */
    bj_maze *maze;
    char data_sha256[65], order_sha256[65]; /* of the dataset; of the contexts' rows, in order */
    bj_rollout_arm arm[BJ_ROLLOUT_ARMS];
} bj_rollout_audit;

typedef struct bj_rollout_options {
    const char *data; /* dataset; NULL: where the first run found it */
    const char *maze; /* name or file; NULL: as the first run has it */
    int horizon;      /* 0: BJ_MAZE_HORIZON */
    int threads;      /* 0: one per available core; no number depends on it */
    const char *isa;  /* as in bj_trainer_options */
    /* Contexts of all arms; not 0 stops the audit, which is BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_rollout_options;

/* Audits one or two finished runs (folders) that share data, split and stride. A run without
 * held-out episodes, or whose transitions end in the next cell, is refused. options may be NULL. */
BJ_API BJ_CHECK bj_status bj_rollout_audit_runs(bj_rollout_audit *out, const char *const *runs,
                                                int count, const bj_rollout_options *options,
                                                bj_error *err);
BJ_API void bj_rollout_audit_reset(bj_rollout_audit *audit);

#endif
