/* step.h - a verb as a step of a longer command: a process of its own, like one typed in a shell. */
#ifndef BJEPA_STEP_H
#define BJEPA_STEP_H

#include "cli.h"

enum { CLI_STEP_ARGS = 24 };

/* Runs `bjepa ARGS...` (up to NULL), after printing that line to stderr, and waits for it. Its
 * results go to the file `output`, which appears when it succeeds, or are shown (NULL). A signal
 * that stops us is passed on. *code: its exit code, 128 + signal when one ended it. */
BJ_CHECK bj_status cli_step(int *code, const char *const *args, const char *output, bj_error *err);

#endif
