/* cmd_parity.c - bjepa parity: recomputes golden files and compares the results. */
#define _POSIX_C_SOURCE 200809L /* scandir */
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

static const char *const suffixes[] = {".safetensors", ".npz"};

/* Writes a JSON string. Names of cases and files may contain any characters. */
static void print_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20) printf("\\u%04x", c);
        else if (c == '"' || c == '\\') printf("\\%c", c);
        else putchar(c);
    }
    putchar('"');
}

static void print_json(const bj_parity_report *r, const char *path) {
    printf("{\"schema\":1,\"type\":\"parity\",\"case\":");
    print_text(r->name);
    printf(",\"file\":");
    print_text(path);
    for (int g = 0; g < BJ_PARITY_GROUPS; g++)
        if (!isnan(r->worst[g])) printf(",\"%s\":%.3e", bj_parity_group_name(g), r->worst[g]);
    printf(",\"compared\":%d,\"passed\":%s}\n", r->compared, r->failed ? "false" : "true");
}

static void print_line(const bj_parity_report *r) {
    printf("%-4s %-16s", r->failed ? "FAIL" : "ok", r->name);
    for (int g = 0; g < BJ_PARITY_GROUPS; g++) {
        if (isnan(r->worst[g])) printf("  %2s    -    ", bj_parity_group_name(g));
        else printf("  %2s %.2e", bj_parity_group_name(g), r->worst[g]);
    }
    printf("\n");
    if (r->failed) printf("     %d of %d: %s\n", r->failed, r->compared, r->first_failure);
}

typedef struct tally {
    int files, failed, refused, worst_code;
} tally;

static void check_file(const char *path, const bj_parity_options *options, int json, tally *t) {
    bj_error err;
    bj_parity_report report;
    t->files++;
    if (bj_parity_file(&report, path, options, &err) != BJ_OK) {
        const int code = cli_fail("parity", &err);
        t->refused++;
        if (code > t->worst_code) t->worst_code = code;
        return;
    }
    if (json) print_json(&report, path);
    else print_line(&report);
    t->failed += report.failed > 0;
}

static int is_golden(const struct dirent *entry) {
    const size_t n = strlen(entry->d_name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t m = strlen(suffixes[i]);
        if (n > m && strcmp(entry->d_name + n - m, suffixes[i]) == 0) return 1;
    }
    return 0;
}

static int check_folder(const char *path, const bj_parity_options *options, int json, tally *t) {
    struct dirent **entries;
    const int n = scandir(path, &entries, is_golden, alphasort);
    if (n < 0) {
        fprintf(stderr, "bjepa parity: %s: %s\n", path, strerror(errno));
        return CLI_SYSTEM;
    }
    if (n == 0)
        fprintf(stderr, "bjepa parity: %s: contains neither *%s nor *%s files\n", path, suffixes[0],
                suffixes[1]);
    for (int i = 0; i < n; i++) {
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
        check_file(file, options, json, t);
        free(entries[i]);
    }
    free(entries);
    return n ? CLI_OK : CLI_DATA;
}

int cmd_parity(int argc, char **argv) {
    int json = 0, threads = 0, operands;
    const char *isa = NULL;
    const cli_option options[] = {
        CLI_OPTION_JSON(&json),
        CLI_OPTION_THREADS(&threads),
        {"isa", 0, CLI_TEXT, "NAME", &isa, 0, 0,
         "instruction set: c, avx2 or avx512 (default: the fastest one that is available)"},
        CLI_OPTION_END};
    const cli_usage usage = {
        "parity",
        "recompute golden files and compare outputs, losses, gradients, metrics and updates; "
        "for .npz files, compare the graphs and metrics of mazes",
        "FILE_OR_DIR...",
        1,
        4096,
        "bjepa parity tests/golden/tiny\n"
        "bjepa parity tests/golden/maze/small_k3.npz\n"
        "BJ_ISA=c bjepa parity fullset.safetensors\n",
        options,
        NULL};
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    const bj_parity_options how = {threads, isa};
    tally t = {0};
    for (int i = 1; i <= operands; i++) {
        struct stat info;
        if (stat(argv[i], &info) == 0 && S_ISDIR(info.st_mode)) {
            const int folder = check_folder(argv[i], &how, json, &t);
            if (folder > t.worst_code) t.worst_code = folder;
        } else {
            check_file(argv[i], &how, json, &t);
        }
    }
    if (!json)
        printf("%d passed, %d failed, %d rejected\n", t.files - t.failed - t.refused, t.failed,
               t.refused);
    return t.failed ? CLI_REFUSED : t.worst_code;
}
