/* truth.h - measures and prints the results of `bjepa truth`, also for `bjepa benchmark score`. */
#ifndef BJEPA_TRUTH_H
#define BJEPA_TRUTH_H

#include "checkpoint.h"

typedef struct truth_options {
    const char *verb; /* opens messages */
    int submission;   /* operands are submission files */
    int baseline, max_modes, atoms, limit, samples, best, inputs, threads, quiet, json;
    uint64_t seed;
    const char *const
        *operands;            /* (operand_count) checkpoints and campaigns, or submission files */
    const char *const *names; /* (operand_count) names of submission files in the tables; NULL: use
                                 their paths */
    int operand_count;
    int detailed;           /* arms whose calibration table is printed; 0: all */
    const char *cache;      /* NULL for submission files */
    const char *data, *law; /* data: of submission files; may be NULL */
} truth_options;

extern const truth_options truth_defaults;

/* Measures everything and prints the result. Returns the exit code. */
int truth_run(const truth_options *options);

typedef struct truth_arm {
    const char *name;          /* checkpoint, submission or baseline */
    const cli_checkpoint *run; /* of a campaign, or NULL */
    bj_exam_report report;
} truth_arm;

typedef struct truth_result {
    const char *cache; /* NULL for submission files */
    const char *data;  /* of submission files, or NULL */
    const char *law;
    int64_t scenes, law_scenes;
    int samples;
    uint64_t seed;
    int world;              /* version of the simulated world */
    bj_blind_report inputs; /* scenes 0: not computed */
    int arms, detailed;
    truth_arm *arm;
} truth_result;

void truth_print_text(const truth_result *result);
void truth_print_json(const truth_result *result);

#endif
