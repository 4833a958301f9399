/* step.h - runs a verb as a step of a longer command, in a separate process. */
#ifndef BJEPA_STEP_H
#define BJEPA_STEP_H

#include "cli.h"

enum { CLI_STEP_ARGS = 24 };

/* Prints `bjepa ARGS...` (a list that ends with NULL) to stderr, runs it and waits for it. Its
 * output goes to the file `output`, which is published on success, or to stdout if `output` is
 * NULL. A signal that stops us is passed on. *code is the exit code, or 128 + signal if a signal
 * ended it. */
BJ_CHECK bj_status cli_step(int *code, const char *const *args, const char *output, bj_error *err);

#endif
