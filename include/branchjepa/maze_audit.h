/* maze_audit.h - the audit of a maze's predictor on episodes it was not trained on: rollouts in its
 * latents, held against what happened.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/MAZES.md defines every
 * number. Shapes: H steps of the horizon, L rollouts of a context (one for each latent the
 * predictor proposes), D latent width.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_MAZE_AUDIT_H
#define BRANCHJEPA_MAZE_AUDIT_H

#define BJ_PROBE_RIDGE 1e-3 /* relative to the mean variance of a latent's numbers */
enum { BJ_ROLLOUT_MAX_HORIZON = 256, BJ_ROLLOUT_ARMS = 2 };

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

/* One predictor's part. */
typedef struct bj_rollout_arm {
    char arm[BJ_NAME_SIZE];
    uint64_t seed;
    char settings_sha256[65], weights_sha256[65];
    int L;
    double length;                  /* mean length of fit contexts: of a latent fed back */
    double probe_error, probe_wall; /* over all held-out frames in a cell */
    bj_rollout_step *steps;         /* (H) */
    double *mass;                   /* (L) the first context: masses of the router */
    double *paths;                  /* (H,L,2) its rollouts as the probe reads them */
} bj_rollout_arm;

typedef struct bj_maze_audit {
    int arms, horizon; /* H */
    int stride;        /* simulator steps between frames */
    int64_t episodes, held_episodes, fit_frames, held_frames;
    uint64_t split_seed;
    double held_out;                  /* share of the episodes */
    int64_t contexts;                 /* eligible ones, all of which count */
    int64_t first_row, first_episode; /* the first context in frozen order, which is drawn */
    double *truth;                    /* (H + 1,2) where it went */
    bj_maze *maze;
    char data_sha256[65], order_sha256[65]; /* of the dataset; of the contexts' rows */
    bj_rollout_arm arm[BJ_ROLLOUT_ARMS];
} bj_maze_audit;

#endif
