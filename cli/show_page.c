/* show_page.c - see show_page.h. Test: tests/cli/demo.sh */
#define _POSIX_C_SOURCE 200809L /* fork, setsid */
#include "show_page.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_set(const char *variable) {
    const char *value = getenv(variable);
    return value && *value;
}

/* Runs in the child: a second fork leaves the browser without a parent that would have to wait. */
static void become(const char *path) {
    setsid();
    if (fork() == 0) {
        const int null = open("/dev/null", O_RDWR);
        for (int fd = 0; null >= 0 && fd < 3; fd++) dup2(null, fd);
        execlp("xdg-open", "xdg-open", path, (char *)NULL);
    }
    _exit(0);
}

void cli_show_page(const char *path) {
    if (!isatty(STDOUT_FILENO) || !(is_set("DISPLAY") || is_set("WAYLAND_DISPLAY"))) return;
    fflush(NULL); /* or the child would have it too */
    const pid_t child = fork();
    if (child == 0) become(path);
    if (child > 0) waitpid(child, NULL, 0);
}
