/* signals.h - long commands that stop cleanly when they are asked to. */
#ifndef BJEPA_SIGNALS_H
#define BJEPA_SIGNALS_H

#include <signal.h>

/* The signal that came, SIGINT or SIGTERM, or 0. */
extern volatile sig_atomic_t cli_stop;
/* 1 when SIGUSR1 came; whoever acts on it sets it back to 0. */
extern volatile sig_atomic_t cli_save;

/* From now on both are noted there instead of ending the process. A signal that was ignored when we
 * started stays ignored. A file that grows beyond a limit (ulimit -f) is an error like a full disk.
 */
void cli_catch_signals(void);
/* SIGUSR1 too: "save now and go on". */
void cli_catch_save(void);

#endif
