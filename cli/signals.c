/* signals.c - see signals.h. */
#define _POSIX_C_SOURCE 200809L /* sigaction */
#include "signals.h"

#include <stddef.h>

volatile sig_atomic_t cli_stop;

static void on_signal(int number) { cli_stop = number; }

void cli_catch_signals(void) {
    static const int numbers[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        struct sigaction action = {.sa_handler = on_signal}, old;
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}
