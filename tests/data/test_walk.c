/* test_walk.c - tests that scenarios are found in all common layouts and sorted, and that
 * duplicates are kept. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/alloc.h"
#include "data/walk.h"
#include "support/test.h"

#define A "aaaaaaaa-0000-4000-8000-000000000000"
#define B "bbbbbbbb-0000-4000-8000-000000000000"
#define C "CCCCCCCC-0000-4000-8000-000000000000"
#define D "dddddddd-0000-4000-8000-000000000000"

static char root[] = "/tmp/test_walk.XXXXXX";

/* Creates a folder with its parents, or an empty file. The path is relative to the root. */
static void make(const char *path, int is_file) {
    char whole[1024];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *c = whole + strlen(root) + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            mkdir(whole, 0777);
            *c = '/';
        }
    if (is_file) {
        FILE *f = fopen(whole, "w");
        CHECK(f != NULL);
        if (f) fclose(f);
    } else {
        CHECK(mkdir(whole, 0777) == 0);
    }
}

static void link_to(const char *target, const char *path) {
    char whole[1024];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    CHECK(symlink(target, whole) == 0);
}

/* Walks root/where and compares the result with "id@folder id@folder ...". Folders are relative to
 * the root. */
static void expect(const char *where, const char *split, const char *expected) {
    char path[1024], found[4096] = "", folder[BJ_WALK_PATH];
    const char *roots[] = {path};
    bj_walk *walk = NULL;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s%s%s", root, *where ? "/" : "", where);
    CHECK_OK(bj_walk_create(&walk, roots, 1, split, &err), err);
    if (!walk) return;
    for (int64_t i = 0; i < bj_walk_count(walk); i++) {
        CHECK_OK(bj_walk_folder(folder, walk, i, &err), err);
        const char *shown = folder;
        if (!strncmp(folder, root, strlen(root))) shown = folder + strlen(root) + 1;
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%.1s@%.200s", i ? " " : "",
                 bj_walk_id(walk, i), shown);
    }
    CHECK_MSG(!strcmp(found, expected), "'%s', expected '%s'", found, expected);
    bj_walk_free(walk);
}

static void test_layouts(void) {
    make("av2/train/" B, 0);
    make("av2/train/" A, 0);
    make("av2/val/" C, 0);
    make("av2/train/raw/" D, 0);
    make("av2/train/readme.txt", 1);
    make("av2/.hidden/" D, 0);
    expect("av2", NULL, "C@av2/val/" C " a@av2/train/" A " b@av2/train/" B " d@av2/train/raw/" D);
    expect("av2", "train", "a@av2/train/" A " b@av2/train/" B " d@av2/train/raw/" D);
    expect("av2", "val", "C@av2/val/" C);
    expect("av2", "test", "");
    expect("av2/train", "train", "a@av2/train/" A " b@av2/train/" B " d@av2/train/raw/" D);
    expect("av2/train/raw", "train", "d@av2/train/raw/" D);
    expect("av2/train/raw", "val", "");
    expect("av2/train/" A, NULL, "a@av2/train/" A);
    expect("av2/train/" A, "train", "a@av2/train/" A);
    expect("av2/train/" A, "val", "");
    expect("av2/train/" A "/", NULL, "a@av2/train/" A);
    expect("av2/train/", NULL, "a@av2/train/" A " b@av2/train/" B " d@av2/train/raw/" D);

    /* Test folders with other names, and a folder with several files. */
    make("odd/1/scenario_" B ".parquet", 1);
    make("odd/flat/scenario_" C ".parquet", 1);
    make("odd/flat/scenario_" A ".parquet", 1);
    make("odd/flat/log_map_archive_" A ".json", 1);
    make("odd/flat/scenario_.parquet", 1);
    make("odd/flat/other_" D ".parquet", 1);
    make("odd/aaaaaaaa-0000-4000-8000-00000000000", 0); /* one digit too short */
    make("odd/" D ".txt", 1);
    expect("odd", NULL, "C@odd/flat a@odd/flat b@odd/1");
    /* The last split name on the path determines the split. */
    make("nest/val/train/" A, 0);
    make("nest/val/" B, 0);
    expect("nest/val", "val", "b@nest/val/" B);
    expect("nest/val", "train", "a@nest/val/train/" A);
    expect("nest/val/train", "train", "a@nest/val/train/" A);
}

static void test_repeated(void) {
    const char *expected = "a@twice/x/" A " a@twice/y/" A;
    make("twice/x/" A, 0);
    make("twice/y/" A, 0);
    expect("twice", NULL, expected);
    char x[1024], y[1024];
    snprintf(x, sizeof x, "%s/twice/x", root);
    snprintf(y, sizeof y, "%s/twice/y", root);
    const char *roots[] = {y, x};
    bj_walk *walk = NULL;
    bj_error err = {0};
    char folder[BJ_WALK_PATH];
    CHECK_OK(bj_walk_create(&walk, roots, 2, NULL, &err), err);
    CHECK(bj_walk_count(walk) == 2);
    CHECK_OK(bj_walk_folder(folder, walk, 0, &err), err);
    CHECK_CONTAINS(folder, "/twice/y/"); /* in the order of the roots */
    bj_walk_free(walk);
}

static void test_links(void) {
    make("links/real/train/" A, 0);
    link_to("../real", "links/real/up"); /* real/up/train/... would be an endless loop */
    link_to("..", "links/real/train/loop");
    expect("links/real", NULL, "a@links/real/train/" A);
    make("links/data/one", 0);
    link_to("../real/train", "links/data/train");
    expect("links/data", "train", "a@links/data/train/" A);
    link_to("nowhere", "links/data/dangling");
    expect("links/data", NULL, "a@links/data/train/" A);
    link_to("../../real/train/" A, "links/data/one/" B); /* a link to a scenario */
    expect("links/data/one", NULL, "b@links/data/one/" B);
    make("links/deep/1/2/3/4/5", 0);
    link_to("../../../../../../real", "links/deep/1/2/3/4/5/real");
    expect("links/deep", NULL, ""); /* too deep for a link to be followed */
    make("links/deep/1/2/3/4/5/" C, 0);
    expect("links/deep", NULL, "C@links/deep/1/2/3/4/5/" C);
    make("far/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/" A, 0);
    expect("far", NULL, "a@far/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/" A);
    make("far/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/" B, 0);
    expect("far", NULL, "a@far/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/" A);
}

static void test_errors(void) {
    char file[1024];
    const char *roots[] = {"/nonexistent/folder"};
    bj_walk *walk = NULL;
    bj_error err = {0};
    CHECK(bj_walk_create(&walk, roots, 1, NULL, &err) == BJ_EIO && !walk);
    CHECK_CONTAINS(err.message, "/nonexistent/folder: cannot open");
    snprintf(file, sizeof file, "%s/av2/train/readme.txt", root);
    roots[0] = file;
    CHECK(bj_walk_create(&walk, roots, 1, NULL, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "Not a directory");
    roots[0] = root;
    CHECK(bj_walk_create(&walk, roots, 1, "training", &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'training', expected train, val or test");
    for (long n = 0; n < 100; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_walk_create(&walk, roots, 1, NULL, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || (status == BJ_ENOMEM && !walk));
        bj_walk_free(walk);
        walk = NULL;
        if (status == BJ_OK) break;
        CHECK(n < 99);
    }
}

int main(void) {
    const long live = bj_alloc_live();
    char command[64];
    if (!mkdtemp(root)) return 1;
    test_layouts();
    test_repeated();
    test_links();
    test_errors();
    CHECK(bj_alloc_live() == live);
    snprintf(command, sizeof command, "rm -rf %s", root);
    CHECK(system(command) == 0);
    return test_report("walk");
}
