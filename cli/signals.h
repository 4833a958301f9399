/* signals.h - how the program reacts to signals. The library installs no signal handler. */
#ifndef BJEPA_SIGNALS_H
#define BJEPA_SIGNALS_H

#include <signal.h>

/* Signal that arrived, SIGINT or SIGTERM, or 0. */
extern volatile sig_atomic_t cli_stop;
/* 1 if SIGUSR1 arrived. The code that acts on it sets it back to 0. */
extern volatile sig_atomic_t cli_save;

/* Installs the handlers that every verb needs. SIGINT, SIGTERM and SIGHUP remove the hidden files of
 * unfinished outputs and end the process with exit code 128 + signal. SIGBUS from a mapped file that
 * became shorter ends the process with a message and exit code 5. A file that grows beyond a limit
 * (ulimit -f) is an error like a full disk. A signal that was ignored at the start stays ignored. */
void cli_handle_signals(void);
/* Stores SIGINT and SIGTERM in cli_stop instead, for verbs that end at the next safe point. */
void cli_catch_signals(void);
/* Stores SIGUSR1 in cli_save, which requests a checkpoint. */
void cli_catch_save(void);

#endif
