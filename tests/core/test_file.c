/* test_file.c - tests reads with limits and atomic writes with injected failures. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "support/test.h"

static char folder[] = "/tmp/test_file.XXXXXX";

/* Returns a path in the scratch folder. Up to eight paths can be in use at a time. */
static const char *in_folder(const char *name) {
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* Returns the number of entries in the scratch folder, including hidden ones. */
static int folder_entries(void) {
    DIR *dir = opendir(folder);
    int count = -2; /* . and .. */
    while (dir && readdir(dir)) count++;
    if (dir) closedir(dir);
    return count;
}

/* Returns the lowest free descriptor, which changes if a descriptor leaks. */
static int free_descriptor(void) {
    const int fd = dup(0);
    close(fd);
    return fd;
}

static int content_is(const char *path, const char *expected) {
    char *text;
    size_t size;
    if (bj_file_read(&text, &size, path, 1 << 20, NULL) != BJ_OK) return 0;
    const int same = size == strlen(expected) && !memcmp(text, expected, size + 1);
    bj_free(text);
    return same;
}

static void test_read(void) {
    bj_error err = {0};
    char *text;
    size_t size;
    CHECK_OK(bj_file_write(in_folder("text"), "hello", 5, &err), err);
    CHECK_OK(bj_file_read(&text, &size, in_folder("text"), 5, &err), err);
    CHECK(size == 5 && !strcmp(text, "hello"));
    bj_free(text);
    CHECK(bj_file_read(&text, &size, in_folder("text"), 4, &err) == BJ_EFORMAT);
    CHECK(text == NULL && size == 0);
    CHECK_CONTAINS(err.message, "text: file has more than 4 bytes");

    CHECK_OK(bj_file_write(in_folder("empty"), NULL, 0, &err), err);
    CHECK_OK(bj_file_read(&text, &size, in_folder("empty"), 0, &err), err);
    CHECK(size == 0 && text && !*text);
    bj_free(text);

    CHECK(bj_file_read(&text, &size, in_folder("absent"), 9, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "absent: cannot open: No such file or directory");
    CHECK(bj_file_read(&text, &size, folder, 9, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "cannot read: Is a directory");

    /* Devices and named pipes are rejected at once, with or without a writer. */
    CHECK(bj_file_read(&text, &size, "/dev/zero", 200000, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "/dev/zero: cannot read: not a regular file");
    CHECK(mkfifo(in_folder("fifo"), 0600) == 0);
    alarm(20); /* instead of waiting forever */
    CHECK(bj_file_read(&text, &size, in_folder("fifo"), 9, &err) == BJ_EFORMAT && !text);
    CHECK_CONTAINS(err.message, "fifo: cannot read: not a regular file");
    const int both = open(in_folder("fifo"), O_RDWR);
    CHECK(both >= 0 && write(both, "x", 1) == 1);
    CHECK(bj_file_read(&text, &size, in_folder("fifo"), 9, &err) == BJ_EFORMAT);
    alarm(0);
    CHECK(close(both) == 0 && remove(in_folder("fifo")) == 0);
}

/* Tests that a reused buffer is replaced only for a larger file, and that the caller still owns it
 * after a failure. */
static void test_read_again(void) {
    bj_error err = {0};
    char *memory = NULL;
    size_t room = 0, size;
    const long live = bj_alloc_live();
    CHECK_OK(bj_file_write(in_folder("text"), "hello", 5, &err), err);
    CHECK_OK(bj_file_write(in_folder("more"), "hello again", 11, &err), err);
    CHECK_OK(bj_file_read_again(&memory, &room, &size, in_folder("more"), 11, &err), err);
    CHECK(size == 11 && room > 11 && !strcmp(memory, "hello again"));
    const char *const before = memory;
    const long count = bj_alloc_count();
    CHECK_OK(bj_file_read_again(&memory, &room, &size, in_folder("text"), 11, &err), err);
    CHECK(size == 5 && memory == before && !strcmp(memory, "hello"));
    CHECK_OK(bj_file_read_again(&memory, &room, &size, in_folder("more"), 11, &err), err);
    CHECK(size == 11 && memory == before && !strcmp(memory, "hello again"));
    CHECK(bj_alloc_count() == count);
    CHECK(bj_file_read_again(&memory, &room, &size, in_folder("more"), 10, &err) == BJ_EFORMAT);
    CHECK(memory == before && size == 0);
    CHECK(bj_file_read_again(&memory, &room, &size, "/dev/zero", 200000, &err) == BJ_EFORMAT);
    CHECK(bj_alloc_live() == live + 1);
    bj_free(memory);
    CHECK(unlink(in_folder("more")) == 0);
}

/* Tests a pipe, which has no size and arrives in pieces, with more data than the reader's first
 * buffer. */
static void test_read_pipe(size_t limit, int memory) {
    enum { SIZE = 300000 };
    bj_error err = {0};
    int ends[2], state = 0;
    char path[64], *text;
    size_t size;
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (int i = 0; i < SIZE; i += 100) {
            char piece[100];
            memset(piece, 'a' + i / 100 % 26, sizeof piece);
            if (write(ends[1], piece, sizeof piece) != (ssize_t)sizeof piece) _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    if (!memory) bj_alloc_fail_after(1); /* while growing */
    const bj_status status = bj_file_read(&text, &size, path, limit, &err);
    bj_alloc_fail_after(-1);
    if (!memory) {
        CHECK(status == BJ_ENOMEM && text == NULL);
        for (char rest[4096]; read(ends[0], rest, sizeof rest) > 0;) continue;
    } else if (limit < SIZE) {
        CHECK(status == BJ_EFORMAT && text == NULL);
        CHECK_CONTAINS(err.message, "file has more than 299999 bytes");
    } else {
        CHECK_OK(status, err);
        CHECK(size == SIZE);
        int same = text != NULL;
        for (size_t i = 0; same && i < size; i++) same = text[i] == (char)('a' + i / 100 % 26);
        CHECK(same);
        bj_free(text);
    }
    close(ends[0]);
    CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

static void test_map(void) {
    bj_error err = {0};
    bj_file_map map = {0};
    bj_file_map_close(&map);
    CHECK_OK(bj_file_map_open(&map, in_folder("text"), 5, &err), err);
    CHECK(map.size == 5 && !memcmp(map.data, "hello", 5));
    bj_file_map_close(&map);
    CHECK(map.data == NULL && map.size == 0);
    CHECK_OK(bj_file_map_open(&map, in_folder("empty"), 5, &err), err);
    CHECK(map.size == 0 && map.data != NULL);
    bj_file_map_close(&map);
    CHECK(bj_file_map_open(&map, in_folder("text"), 4, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "more than 4 bytes");
    CHECK(bj_file_map_open(&map, in_folder("absent"), 4, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "absent: cannot open: No such file or directory");
    CHECK(bj_file_map_open(&map, folder, 4, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "Is a directory");
    CHECK(bj_file_map_open(&map, "/dev/null", 4, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "not a regular file");
    /* Opening a pipe without a writer must not block. */
    CHECK(mkfifo(in_folder("fifo"), 0600) == 0);
    CHECK(bj_file_map_open(&map, in_folder("fifo"), 4, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "not a regular file");
    CHECK(remove(in_folder("fifo")) == 0);
}

static void test_write_is_atomic(void) {
    bj_error err = {0};
    bj_file_writer *writer = NULL;
    const char *path = in_folder("atomic");
    const int before = folder_entries();
    CHECK_OK(bj_file_write(path, "old", 3, &err), err);
    CHECK(folder_entries() == before + 1);

    CHECK_OK(bj_file_writer_open(&writer, path, &err), err);
    static char block[200000];
    memset(block, 'x', sizeof block - 1);
    CHECK_OK(bj_file_writer_write(writer, block, 10, &err), err);
    CHECK_OK(bj_file_writer_write(writer, block, sizeof block - 11, &err), err);
    CHECK(content_is(path, "old")); /* large enough to bypass the buffer */
    CHECK(folder_entries() == before + 2);
    CHECK_OK(bj_file_writer_commit(&writer, &err), err);
    CHECK(writer == NULL);
    CHECK(content_is(path, block));
    CHECK(folder_entries() == before + 1);

    CHECK_OK(bj_file_writer_open(&writer, path, &err), err);
    CHECK_OK(bj_file_writer_write(writer, "new", 3, &err), err);
    bj_file_writer_abort(&writer);
    CHECK(writer == NULL);
    bj_file_writer_abort(&writer);
    CHECK(content_is(path, block));
    CHECK(folder_entries() == before + 1);

    /* Many buffered pieces keep their order. */
    CHECK_OK(bj_file_writer_open(&writer, path, &err), err);
    for (size_t i = 0, piece = 1; i < sizeof block - 1; i += piece, piece = piece % 997 + 1) {
        if (piece > sizeof block - 1 - i) piece = sizeof block - 1 - i;
        for (size_t j = 0; j < piece; j++) block[i + j] = (char)('a' + (i + j) % 23);
        CHECK_OK(bj_file_writer_write(writer, block + i, piece, &err), err);
    }
    CHECK_OK(bj_file_writer_commit(&writer, &err), err);
    CHECK(content_is(path, block));

    /* The temporary name must be valid even if the file has the longest possible name. */
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    CHECK_OK(bj_file_write(in_folder(name), "long", 4, &err), err);
    CHECK(content_is(in_folder(name), "long"));
    CHECK(remove(in_folder(name)) == 0);
    CHECK(remove(path) == 0);
}

/* Tests that two writers of one file do not interfere, that the last commit wins, and that the next
 * writer removes what a crash left behind, even under the name of its own process id. */
static void test_concurrent_writers(void) {
    bj_error err = {0};
    bj_file_writer *a = NULL, *b = NULL;
    char path[512], own[64];
    snprintf(path, sizeof path, "%s", in_folder("race"));
    snprintf(own, sizeof own, ".race.%ld-0.tmp", (long)getpid());
    const char *const made[] = {own, ".race.1-999.tmp", ".race.1-x.tmp", ".racer.1-0.tmp",
                                ".race.tmp"};
    for (size_t i = 0; i < 5; i++) {
        const int fd = open(in_folder(made[i]), O_WRONLY | O_CREAT, 0600);
        CHECK(fd >= 0 && close(fd) == 0);
    }
    const int before = folder_entries();
    CHECK_OK(bj_file_writer_open(&a, path, &err), err);
    CHECK(folder_entries() == before - 1); /* two leftovers are gone, one new file */
    for (size_t i = 2; i < 5; i++) CHECK(content_is(in_folder(made[i]), ""));
    CHECK_OK(bj_file_writer_open(&b, path, &err), err);
    CHECK(folder_entries() == before);
    CHECK_OK(bj_file_writer_write(a, "from a", 6, &err), err);
    CHECK_OK(bj_file_writer_write(b, "from b", 6, &err), err);
    CHECK_OK(bj_file_writer_commit(&b, &err), err);
    CHECK(content_is(path, "from b"));
    CHECK_OK(bj_file_writer_commit(&a, &err), err);
    CHECK(content_is(path, "from a"));
    for (size_t i = 2; i < 5; i++) CHECK(remove(in_folder(made[i])) == 0);

    /* A signal handler removes the hidden files of all open writers. */
    CHECK_OK(bj_file_writer_open(&a, path, &err), err);
    CHECK_OK(bj_file_writer_open(&b, path, &err), err);
    bj_remove_temporaries();
    CHECK(folder_entries() == before - 4 && content_is(path, "from a"));
    bj_file_writer_abort(&a);
    CHECK(bj_file_writer_commit(&b, &err) == BJ_EIO);
    CHECK(content_is(path, "from a") && remove(path) == 0);
}

static void test_permissions_and_links(void) {
    bj_error err = {0};
    struct stat info;
    const mode_t mask = umask(022);
    const char *path = in_folder("mode"), *link = in_folder("link");
    CHECK_OK(bj_file_write(path, "1", 1, &err), err);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 0644);
    CHECK(chmod(path, 0640) == 0);
    CHECK_OK(bj_file_write(path, "2", 1, &err), err);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 0640);
    umask(mask);

    CHECK(symlink("mode", link) == 0);
    CHECK_OK(bj_file_write(link, "3", 1, &err), err);
    CHECK(lstat(link, &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(content_is(path, "3"));
    CHECK(remove(path) == 0);
    CHECK(bj_file_write(link, "4", 1, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "broken symbolic link");
    CHECK(remove(link) == 0);
}

/* Tests the messages for paths that cannot be created. */
static void test_bad_targets(void) {
    bj_error err = {0};
    const int entries = folder_entries(), fd = free_descriptor();
    static char long_name[400];
    snprintf(long_name, sizeof long_name, "%s/%0300d", folder, 0);
    const struct {
        const char *path, *message;
    } cases[] = {
        {in_folder("absent/file"), "absent/file: cannot open the directory: No such file"},
        {in_folder("text/file"), "text/file: cannot create: Not a directory"},
        {long_name, "cannot create: File name too long"},
        {folder, "cannot replace: Is a directory"},
        {in_folder("absent/"), "absent/: cannot create: no file name"},
        {"", ": cannot create: no file name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK(bj_file_write(cases[i].path, "x", 1, &err) == BJ_EIO);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK(err.code == BJ_EIO);
    }
    CHECK(bj_file_write(in_folder("absent/file"), "x", 1, NULL) == BJ_EIO);
    CHECK(folder_entries() == entries);
    CHECK(free_descriptor() == fd);
}

/* Tests that /dev/full behaves like a full disk, and that devices are written directly and never
 * replaced. */
static void test_devices(void) {
    bj_error err = {0};
    bj_file_writer *writer = NULL;
    struct stat info;
    CHECK(bj_file_write("/dev/full", "x", 1, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "/dev/full: cannot write: No space left on device");
    static char block[100000];
    CHECK_OK(bj_file_writer_open(&writer, "/dev/full", &err), err);
    CHECK(bj_file_writer_write(writer, block, sizeof block, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "No space left on device");
    /* All later calls to a failed writer fail too, even if the caller ignores the first failure. */
    CHECK(bj_file_writer_write(writer, "x", 1, &err) == BJ_EIO);
    CHECK(bj_file_writer_write(writer, "x", 0, &err) == BJ_EIO);
    memset(&err, 0, sizeof err);
    CHECK(bj_file_writer_commit(&writer, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "No space left on device");
    CHECK_OK(bj_file_write("/dev/null", "x", 1, &err), err);
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
}

/* Tests writes beyond a file size limit, in a process of its own. */
static void too_large_child(void) {
    bj_error err = {0};
    const struct rlimit limit = {150000, 150000};
    static char block[200000];
    const int entries = folder_entries(), fd = free_descriptor();
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK(bj_file_write(in_folder("kept"), block, sizeof block, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "kept: cannot write: File too large");
    CHECK(content_is(in_folder("kept"), "old"));
    CHECK(bj_file_write(in_folder("never"), block, sizeof block, &err) == BJ_EIO);
    CHECK(access(in_folder("never"), F_OK) != 0);

    /* If only the second of two files is too large, neither is published and the first keeps its
     * old content. */
    bj_file_writer *writers[2] = {NULL, NULL};
    CHECK_OK(bj_file_writer_open(&writers[0], in_folder("kept"), &err), err);
    CHECK_OK(bj_file_writer_open(&writers[1], in_folder("never"), &err), err);
    CHECK_OK(bj_file_writer_write(writers[0], "new", 3, &err), err);
    for (int i = 0; i < 3; i++) /* the last piece is buffered until the commit */
        CHECK_OK(bj_file_writer_write(writers[1], block, 51000, &err), err);
    CHECK(bj_file_writer_commit_all(writers, 2, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "never: cannot write: File too large");
    CHECK(writers[0] == NULL && writers[1] == NULL);
    CHECK(content_is(in_folder("kept"), "old"));
    CHECK(folder_entries() == entries);
    CHECK(free_descriptor() == fd);
}

/* Tests write permissions as a user other than root, because permissions do not apply to root. */
static void read_only_child(void) {
    bj_error err = {0};
    const char *locked = in_folder("locked");
    CHECK(mkdir(locked, 0777) == 0 && chmod(folder, 0755) == 0);
    CHECK(bj_file_write(in_folder("locked/file"), "old", 3, &err) == BJ_OK);
    CHECK(chmod(in_folder("locked/file"), 0666) == 0 && chmod(locked, 0555) == 0);
    CHECK(bj_file_write(in_folder("frozen"), "old", 3, &err) == BJ_OK);
    CHECK(chmod(in_folder("frozen"), 0444) == 0);
    if (geteuid() == 0) CHECK(setgid(65534) == 0 && setuid(65534) == 0);
    CHECK(bj_file_write(in_folder("locked/file"), "new", 3, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "locked/file: cannot create a temporary file: Permission denied");
    CHECK(content_is(in_folder("locked/file"), "old"));
    CHECK(bj_file_write(in_folder("frozen"), "new", 3, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "frozen: cannot replace: Permission denied");
    CHECK(content_is(in_folder("frozen"), "old"));
}

/* Runs a test in a child process and adds its counts to those of this process. */
static void in_child(void (*test)(void)) {
    int ends[2], counts[2] = {0, 1}, state = 0;
    CHECK(pipe(ends) == 0);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        test_passed = test_failed = 0;
        test();
        counts[0] = test_passed;
        counts[1] = test_failed;
        _exit(write(ends[1], counts, sizeof counts) != (ssize_t)sizeof counts);
    }
    close(ends[1]);
    CHECK(read(ends[0], counts, sizeof counts) == (ssize_t)sizeof counts);
    close(ends[0]);
    CHECK(waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0);
    test_passed += counts[0];
    test_failed += counts[1];
}

static void test_commit_all(void) {
    bj_error err = {0};
    bj_file_writer *writers[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(bj_file_writer_open(&writers[i], in_folder(i ? "two" : "one"), &err), err);
        CHECK_OK(bj_file_writer_write(writers[i], i ? "2" : "1", 1, &err), err);
    }
    CHECK_OK(bj_file_writer_commit_all(writers, 2, &err), err);
    CHECK(writers[0] == NULL && writers[1] == NULL);
    CHECK(content_is(in_folder("one"), "1") && content_is(in_folder("two"), "2"));
    CHECK(remove(in_folder("one")) == 0 && remove(in_folder("two")) == 0);
}

/* Tests that the rename fails and leaves nothing behind if the final name has become a
 * directory. */
static void test_rename_failure(void) {
    bj_error err = {0};
    bj_file_writer *writer = NULL;
    CHECK_OK(bj_file_writer_open(&writer, in_folder("taken"), &err), err);
    CHECK_OK(bj_file_writer_write(writer, "x", 1, &err), err);
    CHECK(mkdir(in_folder("taken"), 0700) == 0);
    const int entries = folder_entries();
    CHECK(bj_file_writer_commit(&writer, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "taken: cannot rename the finished file: Is a directory");
    CHECK(folder_entries() == entries - 1);
    CHECK(rmdir(in_folder("taken")) == 0);
}

static void test_allocation_failures(void) {
    bj_error err = {0};
    char *text;
    size_t size;
    const long live = bj_alloc_live();
    const int entries = folder_entries(), fd = free_descriptor();
    int failures = 0;
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_file_write(in_folder("kept"), "new", 3, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        failures++;
        CHECK(status == BJ_ENOMEM && err.code == BJ_ENOMEM);
        CHECK(content_is(in_folder("kept"), "old"));
        CHECK(bj_alloc_live() == live && folder_entries() == entries && free_descriptor() == fd);
    }
    CHECK(failures >= 2);
    CHECK(content_is(in_folder("kept"), "new"));
    bj_alloc_fail_after(0);
    CHECK(bj_file_read(&text, &size, in_folder("kept"), 9, &err) == BJ_ENOMEM);
    bj_alloc_fail_after(-1);
    CHECK(bj_alloc_live() == live && free_descriptor() == fd);
}

int main(void) {
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    const long live = bj_alloc_live();
    const int fd = free_descriptor();
    bj_error err = {0};
    test_read();
    test_read_again();
    test_read_pipe(300000, 1);
    test_read_pipe(299999, 1);
    test_read_pipe(300000, 0);
    test_map();
    test_write_is_atomic();
    test_concurrent_writers();
    test_permissions_and_links();
    test_bad_targets();
    test_devices();
    test_commit_all();
    test_rename_failure();
    CHECK_OK(bj_file_write(in_folder("kept"), "old", 3, &err), err);
    in_child(too_large_child);
    test_allocation_failures();
    in_child(read_only_child);
    CHECK(bj_alloc_live() == live);
    CHECK(free_descriptor() == fd);

    static const char *const leftovers[] = {"text", "empty", "kept", "frozen", "locked/file"};
    CHECK(chmod(in_folder("locked"), 0700) == 0);
    for (size_t i = 0; i < sizeof leftovers / sizeof *leftovers; i++)
        CHECK(remove(in_folder(leftovers[i])) == 0);
    CHECK(rmdir(in_folder("locked")) == 0);
    CHECK(rmdir(folder) == 0); /* fails if a temporary file is left */
    return test_report("file");
}
