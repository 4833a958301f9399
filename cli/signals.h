/* signals.h - lets long commands stop cleanly on a signal. */
#ifndef BJEPA_SIGNALS_H
#define BJEPA_SIGNALS_H

#include <signal.h>

/* The signal that was received, SIGINT or SIGTERM, or 0. */
extern volatile sig_atomic_t cli_stop;
/* 1 if SIGUSR1 was received. The code that handles it resets it to 0. */
extern volatile sig_atomic_t cli_save;

/* From now on, both signals are recorded there instead of ending the process. Signals that were
 * ignored at the start stay ignored. A file that grows beyond a limit (ulimit -f) causes an error,
 * like a full disk. */
void cli_catch_signals(void);
/* SIGUSR1 too: "save now and go on". */
void cli_catch_save(void);

#endif
