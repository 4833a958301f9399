/* audit.h - the results of `bjepa audit` and functions that print them. */
#ifndef BJEPA_AUDIT_H
#define BJEPA_AUDIT_H

#include "cli.h"

#include <stdio.h>

typedef struct audit_options {
    const char *data;             /* cache, for checkpoints */
    const char *submission, *av2; /* or these two */
    const char *a, *b;            /* arms to compare, or NULL */
    const char *rows;             /* CSV of every scene, or NULL */
    int resamples, limit, list, threads, quiet, json, csv;
    uint64_t seed;
    const char *const *operands;
    int operand_count;
} audit_options;

/* The difference of two arms. */
typedef struct audit_comparison {
    int a, b;
    double level;
    bj_bootstrap metric[BJ_AUDIT_METRICS];
} audit_comparison;

/* Print the results. comparison may be NULL. The text and CSV functions return an exit code. */
int audit_print_text(const bj_audit *audit, const audit_comparison *comparison,
                     const audit_options *o);
void audit_print_json(const bj_audit *audit, const audit_comparison *comparison,
                      const audit_options *o);
void audit_print_csv(const bj_audit *audit); /* arm,seed,metric,value: as `bjepa table` reads it */
BJ_CHECK bj_status audit_print_rows(FILE *to, const bj_audit *audit, bj_error *err);

void audit_print_submission(const bj_submission_audit *audit, const audit_options *o);
void audit_print_submission_json(const bj_submission_audit *audit, const audit_options *o);
void audit_print_submission_csv(const bj_submission_audit *audit);
void audit_print_submission_rows(FILE *to, const bj_submission_audit *audit);

#endif
