/* fuzz_file.h - for fuzz targets of readers that open a path: writes the input to a file. */
#ifndef BJ_TESTS_FUZZ_FILE_H
#define BJ_TESTS_FUZZ_FILE_H

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"
#include "fuzz.h"

static char fuzz_path[] = "/tmp/fuzz.XXXXXX";

static inline void fuzz_remove(void) { (void)unlink(fuzz_path); }

/* Returns the path of a file with the input. The next call replaces the content. */
static inline const char *fuzz_file(const uint8_t *data, size_t size) {
    static int fd = -1;
    if (fd < 0) {
        fd = mkstemp(fuzz_path);
        demand(fd >= 0 && atexit(fuzz_remove) == 0);
    }
    demand(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return fuzz_path;
}

/* Checks that a rejected input has a message that starts with the path. */
static inline void fuzz_rejected(bj_status status, const bj_error *err) {
    demand(status == BJ_EFORMAT || status == BJ_EVERSION || status == BJ_ENONFINITE);
    demand(err->code == status && !strncmp(err->message, fuzz_path, sizeof fuzz_path - 1));
}

#endif
