/* signals.c - see signals.h. Test: tests/cli/signals.sh */
#define _XOPEN_SOURCE 700 /* sigaction, SIGXFSZ */
#include "signals.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

volatile sig_atomic_t cli_stop, cli_save;

static void on_stop(int number) { cli_stop = number; }

static void on_save(int number) {
    (void)number;
    cli_save = 1;
}

static void on_end(int number) {
    bj_remove_temporaries();
    _exit(CLI_SIGNALED + number);
}

/* --------------------------------------------------------------------------------- mapped files */

/* Reads a hexadecimal number and moves *text behind it and one more character. */
static uintptr_t read_hex(const char **text) {
    uintptr_t value = 0;
    for (const char *digit; **text && (digit = strchr("0123456789abcdef", **text)); ++*text)
        value = value * 16 + (uintptr_t)(digit - "0123456789abcdef");
    if (**text) ++*text;
    return value;
}

/* Returns the path in a line of /proc/self/maps, or NULL if the line does not contain the address. */
static const char *path_at(const char *line, uintptr_t address) {
    const uintptr_t first = read_hex(&line), end = read_hex(&line);
    return address >= first && address < end ? strchr(line, '/') : NULL;
}

/* Copies the path of the file that is mapped at the address. `path` is empty if it is not found.
 * Calls only functions that POSIX allows in signal handlers. */
static void find_mapped(char *path, size_t room, uintptr_t address) {
    static char line[4096 + 128];
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    *path = '\0';
    for (char c; fd >= 0 && !*path && read(fd, &c, 1) == 1;) {
        if (c != '\n') {
            if (used < sizeof line - 1) line[used++] = c;
            continue;
        }
        line[used] = '\0';
        used = 0;
        const char *found = path_at(line, address);
        if (found) {
            const size_t length = strlen(found) < room ? strlen(found) : room - 1;
            memcpy(path, found, length);
            path[length] = '\0';
        }
    }
    if (fd >= 0) close(fd);
}

static void put(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) return; /* no other place for a message */
}

static void on_bus(int number, siginfo_t *info, void *context) {
    static char path[4096];
    (void)context;
    if (info->si_code != BUS_ADRERR) { /* not a file: a defect of the program */
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    find_mapped(path, sizeof path, (uintptr_t)info->si_addr);
    for (char *c = path; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    put("bjepa: ");
    put(*path ? path : "a mapped file");
    put(": cannot read: the file became shorter while it was used, or its disk failed\n");
    bj_remove_temporaries();
    _exit(CLI_SYSTEM);
}

/* ----------------------------------------------------------------------------------- installing */

static void catch_one(int number, void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler}, old;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_handle_signals(void) {
    struct sigaction bus = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigemptyset(&bus.sa_mask);
    sigaction(SIGBUS, &bus, NULL);
    catch_one(SIGINT, on_end);
    catch_one(SIGTERM, on_end);
    catch_one(SIGHUP, on_end);
    signal(SIGXFSZ, SIG_IGN);
}

void cli_catch_signals(void) {
    catch_one(SIGINT, on_stop);
    catch_one(SIGTERM, on_stop);
}

void cli_catch_save(void) { catch_one(SIGUSR1, on_save); }
