/* signals.h - long commands that stop cleanly when they are asked to. */
#ifndef BJEPA_SIGNALS_H
#define BJEPA_SIGNALS_H

#include <signal.h>

/* The signal that came, SIGINT or SIGTERM, or 0. */
extern volatile sig_atomic_t cli_stop;

/* From now on both are noted there instead of ending the process. A signal that was ignored when we
 * started stays ignored. */
void cli_catch_signals(void);

#endif
