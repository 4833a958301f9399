/* eval.h - the results of `bjepa eval` and functions that print them. */
#ifndef BJEPA_EVAL_H
#define BJEPA_EVAL_H

#include "output.h"

typedef struct eval_result {
    const char *data;          /* as given */
    char model[CLI_PATH_SIZE]; /* the file */
    const char *digest;        /* of the model file */
    const char *arm, *seed;    /* of the run, or NULL */
    const char *data_digest, *part;
    bj_arch arch;
    int has_target;     /* 0: no latent metrics */
    int64_t scenes;     /* evaluated */
    int64_t no_future;  /* of the part, and left out */
    int64_t over_limit; /* of the part, and left out */
    bj_latent_health health;
    bj_exchange_values exchange; /* scenes 0: not wanted */
    double seconds; /* of the evaluation */
    double latency; /* seconds, one scene at a time */
    int latency_scenes, threads;
    const char *isa, *precision;
    const bj_evaluator *evaluator;
} eval_result;

void eval_print_text(const eval_result *result);
void eval_print_json(const eval_result *result);

#endif
