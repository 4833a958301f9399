/* signals.c - see signals.h. */
#define _XOPEN_SOURCE 700 /* sigaction, SIGXFSZ */
#include "signals.h"

#include <stddef.h>

volatile sig_atomic_t cli_stop, cli_save;

static void on_stop(int number) { cli_stop = number; }

static void on_save(int number) {
    (void)number;
    cli_save = 1;
}

static void catch_one(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}, old;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_catch_signals(void) {
    catch_one(SIGINT, on_stop);
    catch_one(SIGTERM, on_stop);
    signal(SIGXFSZ, SIG_IGN); /* a file that exceeds the size limit then fails with a write error */
}

void cli_catch_save(void) { catch_one(SIGUSR1, on_save); }
