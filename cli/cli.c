/* cli.c - exit codes, error messages and word lists; see cli.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cli.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This is the only place that converts a library status to an exit code. */
int cli_exit_code(bj_status status) {
    switch (status) {
    case BJ_OK: return CLI_OK;
    case BJ_EARG: return CLI_USAGE;
    case BJ_EFORMAT:
    case BJ_EVERSION:
    case BJ_ENONFINITE: return CLI_DATA;
    case BJ_ELOCKED:
    case BJ_EMISMATCH: return CLI_REFUSED;
    case BJ_EIO:
    case BJ_ENOMEM: return CLI_SYSTEM;
    case BJ_ECOMM: return CLI_FAILED;
    }
    return CLI_FAILED;
}

int cli_fail(const char *verb, const bj_error *err) {
    fprintf(stderr, "bjepa %s: %s\n", verb, err->message);
    return cli_exit_code(err->code);
}

static void print_clean(const char *fmt, va_list args) {
    char text[1024];
    vsnprintf(text, sizeof text, fmt, args);
    bj_clean_text(text);
    fputs(text, stderr);
}

int cli_misuse(const char *verb, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "bjepa %s: ", verb);
    print_clean(fmt, args);
    va_end(args);
    fprintf(stderr, "\nhint: 'bjepa %s --help' lists the options\n", verb);
    return CLI_USAGE;
}

void cli_warn(const char *fmt, ...) {
    const char *terminal = getenv("TERM"), *no_color = getenv("NO_COLOR");
    const int color = isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0 &&
                      (!no_color || !*no_color);
    va_list args;
    va_start(args, fmt);
    fputs(color ? "\x1b[33mwarning:\x1b[0m " : "warning: ", stderr);
    print_clean(fmt, args);
    fputc('\n', stderr);
    va_end(args);
}

void cli_warn_missing(const char *campaign, const bj_locked_report *report) {
    cli_warn("%s: the evaluation is only partly verified, because %d of %d locked files are "
             "missing; the first is %s",
             campaign, report->missing, report->files, report->first);
}

bj_status cli_error(bj_error *err, bj_status code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    err->code = code;
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    bj_clean_text(err->message);
    return code;
}

static int out_of_memory;

void *cli_alloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) out_of_memory = 1;
    return memory;
}

int cli_out_of_memory(void) { return out_of_memory; }

int cli_threads(int asked) {
    cpu_set_t set;
    if (asked > 0) return asked;
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return cores < 1 ? 1 : cores;
}

/* --------------------------------------------------------------------------------------- counts */

const char *cli_count(char buffer[CLI_COUNT_SIZE], size_t count) {
    char digits[CLI_COUNT_SIZE];
    const int n = snprintf(digits, sizeof digits, "%zu", count);
    int out = 0;
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) buffer[out++] = ',';
        buffer[out++] = digits[i];
    }
    buffer[out] = '\0';
    return buffer;
}
