/* test_cache_resume.c - tests that a resumed run gives the same bytes as an uninterrupted run.
 *
 * After a process was killed, the files of PATH.partial can have any length. A power failure may
 * also leave wrong bytes after the point of the last sync. The tests create these states from
 * copies of one interrupted run.
 */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <sys/stat.h>

#include "cache_case.h"
#include "data/cache_partial.h"

enum { ITEMS = 13, DONE = 9 };

static char folder[64];
static char whole[80], whole_rejects[100], path[80], path_rejects[100], kept[80];

/* Returns the path of a file in path.partial or in its saved copy. */
static const char *inside(const char *of, const char *name) {
    static char text[2][200];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "%s/%s", of, name);
    return text[turn];
}

static char partial[100];

static const char *const names[] = {"records",   "journal", "maps",   "rings",
                                    "points_cm", "points",  "rejects"};
enum { NAMES = sizeof names / sizeof names[0] };

static off_t size_of(const char *file) {
    struct stat info;
    return stat(file, &info) ? -1 : info.st_size;
}

static void copy_file(const char *from, const char *to) {
    char *text = NULL;
    size_t size = 0;
    bj_error err = {0};
    CHECK_OK(bj_file_read(&text, &size, from, 1 << 28, &err), err);
    FILE *f = fopen(to, "wb");
    CHECK(f && fwrite(text, 1, size, f) == size);
    if (f) fclose(f);
    bj_free(text);
}

/* Restores path.partial to the state of the interrupted run, and removes the cache. */
static void set_up(void) {
    for (int i = 0; i < NAMES; i++) unlink(inside(partial, names[i]));
    unlink(inside(partial, "facts"));
    rmdir(partial);
    unlink(path);
    unlink(path_rejects);
    CHECK(mkdir(partial, 0777) == 0);
    for (int i = 0; i < NAMES; i++) copy_file(inside(kept, names[i]), inside(partial, names[i]));
    copy_file(inside(kept, "facts"), inside(partial, "facts"));
}

static void go_on(const char *how, long detail) {
    bj_prep_report report = {0};
    bj_error err = {0};
    const bj_status status = case_write(path, ITEMS, 1, &report, &err);
    CHECK_MSG(status == BJ_OK, "%s %ld: %s", how, detail, err.message);
    CHECK_MSG(case_same(path, whole), "%s %ld: another cache", how, detail);
    CHECK_MSG(case_same(path_rejects, whole_rejects), "%s %ld: another list", how, detail);
    CHECK_MSG(size_of(partial) < 0, "%s %ld: %s is still there", how, detail, partial);
}

/* Returns the number of items that a new writer finds. */
static int64_t items_found(void) {
    bj_cache_writer *w = NULL;
    bj_error err = {0};
    CHECK_OK(bj_cache_writer_open(&w, path, case_facts, 2, 0, &err), err);
    const int64_t items = w ? bj_cache_writer_items(w) : -1;
    for (int64_t i = 0; i < items; i++) {
        char id[64];
        const char *name = NULL;
        snprintf(id, sizeof id, "scene-%05d", (int)i);
        CHECK_OK(bj_cache_writer_item(&name, w, i, &err), err);
        CHECK(name && !strcmp(name, id));
    }
    bj_cache_writer_close(&w);
    return items;
}

static void test_stops(void) {
    bj_prep_report report = {0};
    bj_error err = {0};
    for (int first = 0; first <= ITEMS; first++) {
        case_remove(partial);
        CHECK_OK(case_write(path, first, 0, &report, &err), err);
        CHECK(items_found() == first);
        go_on("stopped after", first);
        CHECK(unlink(path) == 0);
    }
    for (int i = 1; i <= ITEMS; i++) CHECK_OK(case_write(path, i, 0, &report, &err), err);
    go_on("stopped after every item", ITEMS);
}

static void test_truncated(void) {
    for (int f = 0; f < NAMES; f++) {
        const off_t size = size_of(inside(kept, names[f]));
        CHECK(size > 0);
        const off_t step = size / 13 + 1;
        for (off_t at = 0; at < size; at += step) {
            set_up();
            CHECK(truncate(inside(partial, names[f]), at) == 0);
            CHECK(items_found() < DONE);
            go_on(names[f], at);
        }
        set_up();
        CHECK(truncate(inside(partial, names[f]), size - 1) == 0);
        go_on(names[f], size - 1);
        set_up();
        CHECK(truncate(inside(partial, names[f]), size + 1000) == 0); /* append zeros, as after an
                                                                         incomplete write */
        CHECK(items_found() == DONE);
        CHECK(size_of(inside(partial, names[f])) == size);
        go_on(names[f], size + 1000);
        set_up();
        CHECK(f == 0 || unlink(inside(partial, names[f])) == 0);
        go_on(names[f], -1);
    }
    /* truncate all files at random positions */
    bj_rng rng = bj_rng_seed(1);
    for (int round = 0; round < 30; round++) {
        set_up();
        for (int f = 0; f < NAMES; f++) {
            const off_t size = size_of(inside(partial, names[f]));
            if (bj_rng_uniform(&rng) < 0.5)
                CHECK(truncate(inside(partial, names[f]),
                               (off_t)((double)size * sqrt(bj_rng_uniform(&rng)))) == 0);
        }
        go_on("round", round);
    }
}

/* Tests that a resumed run detects data that never reached the disk. Nothing was synced, because
 * the sync interval is longer than the run. */
static void test_torn(void) {
    bj_rng rng = bj_rng_seed(2);
    for (int f = 0; f < NAMES; f++)
        for (int round = 0; round < 8; round++) {
            set_up();
            const char *file = inside(partial, names[f]);
            const off_t size = size_of(file), first = f == 0 ? BJ_CACHE_HEADER : 0;
            const off_t at = first + (off_t)((double)(size - first) * bj_rng_uniform(&rng));
            const int fd = open(file, O_RDWR);
            char byte = 0;
            CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
            byte ^= 1 << round % 8;
            CHECK(pwrite(fd, &byte, 1, at) == 1);
            close(fd);
            CHECK(items_found() < DONE);
            go_on(names[f], at);
        }
}

/* Tests a run that was killed while finishing, after the header and a part of the index were
 * written. */
static void test_half_finished(void) {
    bj_prep_report report = {0};
    bj_error err = {0};
    char garbage[5000];
    memset(garbage, 'g', sizeof garbage);
    case_remove(partial);
    unlink(path);
    CHECK_OK(case_write(path, ITEMS, 0, &report, &err), err);
    FILE *f = fopen(inside(partial, "records"), "r+b");
    CHECK(f != NULL);
    if (!f) return;
    CHECK(fwrite(garbage, 1, sizeof garbage, f) == sizeof garbage);
    fseek(f, 0, SEEK_END);
    CHECK(fwrite(garbage, 1, sizeof garbage, f) == sizeof garbage);
    fclose(f);
    CHECK(items_found() == ITEMS);
    go_on("half finished", 0);
}

/* Tests a run that was killed after the rename, so that only the folder is left. */
static void test_published(void) {
    int64_t items = 0;
    bj_error err = {0};
    bj_prep_report report = {0};
    CHECK_OK(bj_cache_writer_tidy(&items, path, &err), err);
    CHECK(items == -1);
    set_up();
    CHECK_OK(bj_cache_writer_tidy(&items, path, &err), err);
    CHECK(items == -1 && items_found() == DONE); /* an interrupted run is not touched */
    CHECK(unlink(inside(partial, "records")) == 0);
    copy_file(whole, path);
    CHECK_OK(bj_cache_writer_tidy(&items, path, &err), err);
    CHECK(items == DONE && size_of(partial) < 0);
    /* The folder is already partly removed. */
    set_up();
    CHECK(unlink(inside(partial, "records")) == 0 && unlink(inside(partial, "journal")) == 0);
    CHECK_OK(bj_cache_writer_tidy(&items, path, &err), err);
    CHECK(items == 0 && size_of(partial) < 0);
    /* Only the rmdir is missing. */
    CHECK(mkdir(partial, 0777) == 0);
    CHECK_OK(bj_cache_writer_tidy(&items, path, &err), err);
    CHECK(items == -1 && size_of(partial) < 0);
    /* A new writer must not resume from such a folder. */
    set_up();
    CHECK(unlink(inside(partial, "records")) == 0);
    bj_cache_writer *w = NULL;
    CHECK_OK(bj_cache_writer_open(&w, path, NULL, 0, 0, &err), err); /* other settings */
    CHECK(w && bj_cache_writer_items(w) == 0);
    bj_cache_writer_close(&w);
    set_up();
    CHECK(unlink(inside(partial, "records")) == 0);
    CHECK(items_found() == 0);
    CHECK_OK(case_write(path, ITEMS, 1, &report, &err), err);
    CHECK(case_same(path, whole));
}

static void test_refusals(void) {
    const bj_fact others[] = {{"split", "val"}, {"note", "made up"}};
    bj_cache_writer *w = NULL, *second = NULL;
    bj_error err = {0};
    set_up();
    CHECK(bj_cache_writer_open(&w, path, others, 2, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "found 'split=train', expected 'split=val'");
    CHECK(bj_cache_writer_open(&w, path, case_facts, 1, 0, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "settings");
    CHECK(items_found() == DONE); /* nothing has changed */

    CHECK_OK(bj_cache_writer_open(&w, path, case_facts, 2, 0, &err), err);
    CHECK(bj_cache_writer_open(&second, path, case_facts, 2, 0, &err) == BJ_ELOCKED && !second);
    CHECK_CONTAINS(err.message, "another process is writing it");
    int64_t items;
    CHECK(bj_cache_writer_tidy(&items, path, &err) == BJ_ELOCKED);
    bj_cache_writer_close(&w);
    CHECK(items_found() == DONE);

    CHECK_OK(bj_cache_writer_open(&w, path, others, 2, 1, &err), err); /* restart */
    CHECK(w && bj_cache_writer_items(w) == 0);
    bj_cache_writer_close(&w);
    CHECK(bj_cache_writer_open(&w, "/nonexistent/x", others, 2, 0, &err) == BJ_EIO);
    CHECK(bj_cache_writer_open(&w, folder, others, 2, 0, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "not a regular file");
}

/* Tests that ids must be in ascending order across an interruption, too. */
static void test_order(void) {
    bj_cache_writer *w = NULL;
    bj_cache_bytes *bytes = NULL;
    case_scene *s = NULL;
    bj_error err = {0};
    set_up();
    CHECK_OK(bj_cache_writer_open(&w, path, case_facts, 2, 0, &err), err);
    CHECK_OK(bj_cache_bytes_create(&bytes, &err), err);
    CHECK_OK(BJ_ALLOC(s, 1, &err), err);
    if (w && bytes && s) CHECK(case_add(w, bytes, s, 2, &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "'scene-00002' comes after 'scene-00007'");
    bj_cache_writer_close(&w);
    bj_cache_bytes_free(bytes);
    bj_free(s);
    go_on("a scene out of order", 2);
}

/* Tests that unrelated files in the folder are kept, together with the folder. */
static void test_strangers(void) {
    bj_prep_report report = {0};
    bj_error err = {0};
    set_up();
    copy_file(whole, inside(partial, "mine.txt"));
    CHECK_OK(case_write(path, ITEMS, 1, &report, &err), err);
    CHECK(case_same(path, whole) && case_same(inside(partial, "mine.txt"), whole));
    CHECK(size_of(inside(partial, "journal")) < 0);
    case_remove(partial);
}

/* Tests that an existing cache stays in place until the new one is complete, and that links are
 * followed. */
static void test_replacing(void) {
    bj_prep_report report = {0};
    bj_error err = {0};
    char link[80];
    struct stat info;
    snprintf(link, sizeof link, "%s/link", folder);
    CHECK(symlink("run.bjc", link) == 0);
    copy_file(whole_rejects, path); /* use any other content as the previous cache */
    CHECK_OK(case_write(link, 4, 0, &report, &err), err);
    CHECK(case_same(path, whole_rejects));
    CHECK_OK(case_write(link, ITEMS, 1, &report, &err), err);
    CHECK(case_same(path, whole));
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
}

int main(void) {
    const long live = bj_alloc_live();
    bj_prep_report report = {0};
    bj_error err = {0};
    char command[256];
    if (!case_folder(folder, "test_cache_resume")) return 1;
    snprintf(whole, sizeof whole, "%s/whole.bjc", folder);
    snprintf(whole_rejects, sizeof whole_rejects, "%s.rejects.jsonl", whole);
    snprintf(path, sizeof path, "%s/run.bjc", folder);
    snprintf(path_rejects, sizeof path_rejects, "%s.rejects.jsonl", path);
    snprintf(partial, sizeof partial, "%s.partial", path);
    snprintf(kept, sizeof kept, "%s/kept", folder);
    CHECK_OK(case_write(whole, ITEMS, 1, &report, &err), err);
    CHECK_OK(case_write(path, DONE, 0, &report, &err), err);
    snprintf(command, sizeof command, "mv '%s' '%s'", partial, kept);
    CHECK(system(command) == 0);
    test_stops();
    test_truncated();
    test_torn();
    test_half_finished();
    test_published();
    test_refusals();
    test_order();
    test_strangers();
    test_replacing();
    CHECK(bj_alloc_live() == live);
    case_remove(folder);
    return test_report("cache_resume");
}
