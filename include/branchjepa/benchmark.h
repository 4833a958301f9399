/* benchmark.h - the standard benchmark and its rule-based baselines.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/BENCHMARK.md defines the
 * benchmark and every rule.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_BENCHMARK_H
#define BRANCHJEPA_BENCHMARK_H

/* ------------------------------------------------------------------------------------ benchmark */

/* The benchmark consists of scenes 0 .. BJ_BENCHMARK_SCENES - 1 of the splits "val" and "test" of
 * this world version and seed. */
#define BJ_BENCHMARK_SEED 20260u
enum { BJ_BENCHMARK_WORLD = 2, BJ_BENCHMARK_SCENES = 2000 };
/* Seeds at or above this value are reserved for blind comparisons. */
#define BJ_BLIND_SEEDS 1000000u

/* Returns the purpose for which a world seed is reserved, or NULL if models may be trained on its
 * scenes. */
BJ_API const char *bj_world_seed_reserved(uint64_t seed);
/* Checks that a law file belongs to a split ("val" or "test") of the standard benchmark. Compares
 * the world version, seed, split, number of scenes and digest. */
BJ_API BJ_CHECK bj_status bj_benchmark_check(const bj_law *law, const char *split, bj_error *err);

/* ---------------------------------------------------------------------------------------- rules */

/* Rules that forecast the focal track from the observed rows and the map of a scenario. They need
 * no training (docs/BENCHMARK.md). */
typedef enum bj_rule {
    BJ_RULE_VELOCITY,        /* "constant-velocity": one trajectory */
    BJ_RULE_VELOCITY_SPREAD, /* "constant-velocity-6": constant velocity with six speeds */
    BJ_RULE_TURN,            /* "constant-turn-rate": one arc */
    BJ_RULE_LANES,           /* "lane-following": up to six trajectories along map lanes */
    BJ_RULES
} bj_rule;

BJ_API const char *bj_rule_name(bj_rule rule); /* NULL for other values */
/* Finds a rule by name. The error message for an unknown name lists all names. */
BJ_API BJ_CHECK bj_status bj_rule_find(bj_rule *out, const char *name, bj_error *err);

typedef struct bj_rule_options {
    int threads; /* 0: one per available core; does not change the file */
    /* Called periodically. A nonzero return value stops the call with BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_rule_options;

/* Applies a rule to every scenario of `data`, a cache or a folder of scenario files, and writes a
 * submission sorted by scenario id. BJ_RULE_LANES requires a folder, because a cache does not
 * contain the lane graph. Futures are not read. `scenes` receives the number of scenarios and may
 * be NULL. */
BJ_API BJ_CHECK bj_status bj_rule_submit(int64_t *scenes, const char *path, bj_rule rule,
                                         const char *data, const bj_rule_options *options,
                                         bj_error *err);

#endif
