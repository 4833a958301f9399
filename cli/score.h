/* score.h - the output of `bjepa score`, and the check that `bjepa submit --check` also uses. */
#ifndef BJEPA_SCORE_H
#define BJEPA_SCORE_H

#include "cli.h"

#include <stdio.h>

typedef struct score_options {
    const char *file;  /* the submission */
    const char *truth; /* NULL: check only */
    const char *rows;  /* CSV of every scored scene, or NULL */
    int max_modes, list, threads, strict, json;
} score_options;

/* Reads, checks and scores a file and prints the result. Returns the exit code. Messages start with
 * `verb`. */
int score_run(const char *verb, const score_options *options);

void score_print_text(const bj_score *score, const score_options *options);
void score_print_json(const bj_score *score, const score_options *options);
void score_print_rows(FILE *to, const bj_score *score);

#endif
