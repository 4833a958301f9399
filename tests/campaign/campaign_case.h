/* campaign_case.h - a scratch folder with a small cache and campaign files, for tests of campaigns.
 */
#ifndef BJ_TESTS_CAMPAIGN_CASE_H
#define BJ_TESTS_CAMPAIGN_CASE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "support/test.h"

enum { CASE_PATH = 512 };

static char case_folder[64] = "/tmp/test_campaign.XXXXXX";

static inline int case_remove(const char *path, const struct stat *info, int kind,
                              struct FTW *where) {
    (void)info, (void)kind, (void)where;
    return remove(path);
}

static inline void case_end(void) { nftw(case_folder, case_remove, 16, FTW_DEPTH | FTW_PHYS); }

static inline const char *case_path(char path[CASE_PATH], const char *name) {
    snprintf(path, CASE_PATH, "%s/%s", case_folder, name);
    return path;
}

static inline void case_write(const char *name, const char *text) {
    char path[CASE_PATH];
    FILE *file = fopen(case_path(path, name), "wb");
    if (file && fputs(text, file) >= 0 && fclose(file) == 0) return;
    fprintf(stderr, "cannot write %s\n", path);
    exit(1);
}

/* Creates a campaign from a text, in a folder below the scratch folder. */
static inline bj_status case_create(bj_campaign **out, const char *text, const char *dir,
                                    const bj_campaign_options *options, bj_error *err) {
    char file[CASE_PATH], path[CASE_PATH];
    case_write("c.yaml", text);
    return bj_campaign_create(out, case_path(file, "c.yaml"), case_path(path, dir), options, err);
}

static inline char *case_read(const char *name) { /* for free() */
    char path[CASE_PATH], *text = calloc(1, 1 << 20);
    FILE *file = fopen(case_path(path, name), "rb");
    if (!text) exit(1);
    if (file) {
        text[fread(text, 1, (1 << 20) - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

/* Creates the folder with the caches a.bjc and b.bjc, which have a few scenes each. */
static inline void case_begin(void) {
    if (!mkdtemp(case_folder)) exit(1);
    for (int i = 0; i < 2; i++) {
        char path[CASE_PATH];
        bj_error err = {0};
        bj_world_report report;
        const bj_world_options options = {.seed = (uint64_t)i + 1, .scenes = 3, .jobs = 1};
        CHECK_OK(bj_world_to_cache(&report, case_path(path, i ? "b.bjc" : "a.bjc"), &options, &err),
                 err);
    }
}

/* Checks that a call failed with the given code and that the message contains the text. */
#define CHECK_REFUSED(call, expected, part)                                                        \
    do {                                                                                           \
        CHECK((call) == (expected));                                                               \
        CHECK_CONTAINS(err.message, part);                                                         \
        err.message[0] = '\0';                                                                     \
    } while (0)

#endif
