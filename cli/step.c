/* step.c - see step.h. */
#define _POSIX_C_SOURCE 200809L /* fork, sigaction */
#include "step.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "output.h"
#include "signals.h"

static void announce(const char *const *args) {
    fprintf(stderr, "$ bjepa");
    for (; *args; args++)
        fprintf(stderr, strpbrk(*args, " '\"$&;<>|*?") ? " '%s'" : " %s", *args);
    fputc('\n', stderr);
}

/* After the fork. */
static void become(const char *const *args, int out) {
    char *list[CLI_STEP_ARGS + 2], program[] = "bjepa";
    int count = 0;
    list[count++] = program;
    while (*args && count <= CLI_STEP_ARGS) list[count++] = (char *)(uintptr_t)*args++;
    list[count] = NULL;
    if (out >= 0) dup2(out, STDOUT_FILENO);
    execv("/proc/self/exe", list);
    execvp(program, list); /* where there is no /proc */
    _exit(127);
}

/* Waits for the process. If a signal stops us, passes it on once. */
static int wait_for(pid_t child) {
    int status, told = 0;
    while (waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return CLI_FAILED;
        if (cli_stop && !told) kill(child, told = (int)cli_stop);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_SIGNALED + WTERMSIG(status);
}

bj_status cli_step(int *code, const char *const *args, const char *output, bj_error *err) {
    cli_file file;
    if (output) {
        const bj_status status = cli_file_open(&file, output, err);
        if (status != BJ_OK) return status;
    }
    announce(args);
    fflush(NULL); /* or the child would have it too */
    const pid_t child = fork();
    if (child == 0) become(args, output ? bj_file_writer_descriptor(file.writer) : -1);
    if (child < 0) {
        const int reason = errno;
        if (output) cli_file_abort(&file);
        return cli_error(err, BJ_ENOMEM, "cannot start a process: %s", strerror(reason));
    }
    *code = wait_for(child);
    if (!output) return BJ_OK;
    if (*code == 0) return cli_file_commit(&file, err);
    cli_file_abort(&file);
    return BJ_OK;
}
