/* truth.h - what `bjepa truth` found out, and how it is printed. */
#ifndef BJEPA_TRUTH_H
#define BJEPA_TRUTH_H

#include "checkpoint.h"

typedef struct truth_arm {
    const char *name;          /* checkpoint or baseline */
    const cli_checkpoint *run; /* of a campaign, or NULL */
    bj_exam_report report;
} truth_arm;

typedef struct truth_result {
    const char *cache, *law;
    int64_t scenes, law_scenes;
    int samples;
    uint64_t seed;
    int world;              /* version of the simulated world */
    bj_blind_report inputs; /* scenes 0: not computed */
    int arms;
    truth_arm *arm;
} truth_result;

void truth_print_text(const truth_result *result);
void truth_print_json(const truth_result *result);

#endif
