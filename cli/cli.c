/* cli.c - exit codes, error reports and words; see cli.h. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "cli.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The one place that turns a status of the library into an exit code. */
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

int cli_misuse(const char *verb, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "bjepa %s: ", verb);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fprintf(stderr, "\nhint: 'bjepa %s --help' lists the options\n", verb);
    return CLI_USAGE;
}

bj_status cli_error(bj_error *err, bj_status code, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    err->code = code;
    vsnprintf(err->message, sizeof err->message, fmt, args);
    va_end(args);
    return code;
}

int cli_threads(int asked) {
    cpu_set_t set;
    if (asked > 0) return asked;
    const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return cores < 1 ? 1 : cores;
}

/* ---------------------------------------------------------------------------------------- words */

enum { LONGEST_WORD = 64 }; /* longer ones are not compared: no verb, option or id is */

static int least(int a, int b) { return a < b ? a : b; }

int cli_edit_distance(const char *a, const char *b) {
    const int n = (int)strlen(a), m = (int)strlen(b);
    if (n > LONGEST_WORD || m > LONGEST_WORD) return n > m ? n : m;
    int cost[LONGEST_WORD + 1][LONGEST_WORD + 1]; /* [i][j]: first i of a to first j of b */
    for (int i = 0; i <= n; i++) cost[i][0] = i;
    for (int j = 0; j <= m; j++) cost[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int best = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = least(best, cost[i - 1][j] + 1);
            best = least(best, cost[i][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    return cost[n][m];
}

void cli_nearest_offer(cli_nearest *nearest, const char *candidate) {
    const int distance = cli_edit_distance(nearest->word, candidate);
    const int length = (int)strlen(candidate);
    /* A third of the letters may be wrong, at least one and never all of them. */
    const int allowed = length < 6 ? 1 + (length > 3) : length / 3;
    if (distance > allowed || distance >= length) return;
    if (nearest->best && distance >= nearest->distance) return;
    nearest->best = candidate;
    nearest->distance = distance;
}

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
