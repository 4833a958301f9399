/* mutate.c - see mutate.h. */
#define _XOPEN_SOURCE 700
#include "mutate.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 100, MOST_SIZE = 64 * 1024 };

typedef struct sample {
    char name[256];
    uint8_t *data;
    size_t size;
} sample;

static uint64_t state;

static size_t draw(size_t below) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (size_t)((z ^ z >> 31) >> 32) % below;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const sample *)a)->name, ((const sample *)b)->name);
}

/* Loads the files of the corpus sorted by name. Skips the README. */
static int load(sample *out, const char *name) {
    char folder[256], path[600];
    int count = 0;
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name);
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (const struct dirent *entry; (entry = readdir(dir)) && count < MOST_FILES;) {
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, "README.md")) continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        uint8_t *data = malloc(MOST_SIZE);
        if (!file || !data) exit(1);
        const size_t size = fread(data, 1, MOST_SIZE, file);
        fclose(file);
        snprintf(out[count].name, sizeof out[count].name, "%s", entry->d_name);
        out[count].data = data;
        out[count++].size = size;
    }
    closedir(dir);
    qsort(out, (size_t)count, sizeof *out, by_name);
    return count;
}

/* Replaces `gone` bytes at `at` by `count` bytes of `with` and usually repairs the format. */
static size_t splice(uint8_t *file, size_t size, size_t at, size_t gone, const void *with,
                     size_t count, const mutate_target *target) {
    static uint8_t copy[MOST_SIZE];
    if (gone > size - at) gone = size - at;
    if (size - gone + count > MOST_SIZE) return size;
    memcpy(copy, with, count); /* the ranges may overlap */
    memmove(file + at + count, file + at + gone, size - at - gone);
    memcpy(file + at, copy, count);
    const size_t after = size - gone + count;
    if (target->repair && draw(16))
        target->repair(file, after, at, (ptrdiff_t)count - (ptrdiff_t)gone);
    return after;
}

static size_t mutate(uint8_t *file, size_t size, const mutate_target *target) {
    const size_t at = draw(size + 1), span = draw(12);
    switch (draw(6)) {
    case 0:
        if (at < size) file[at] ^= (uint8_t)(1u << draw(8));
        return size;
    case 1:
        if (at < size) file[at] = (uint8_t)draw(256);
        return size;
    case 2: return splice(file, size, at, span, "", 0, target);
    case 3: {
        const size_t from = draw(size + 1);
        const size_t count = span * 5 < size - from ? span * 5 : size - from;
        return splice(file, size, at, draw(2) ? count : 0, file + from, count, target);
    }
    case 4: { /* overwrite bytes of the same size half of the time, so that later bytes keep their
                 positions */
        if (!target->fragment_count) return size;
        const mutate_fragment *f = &target->fragments[draw(target->fragment_count)];
        return splice(file, size, at, draw(2) ? f->size : draw(2), f->bytes, f->size, target);
    }
    default: return size ? splice(file, size, draw(size), 1 + draw(3), "", 0, target) : size;
    }
}

/* Runs the target on a copy in an allocation of the exact size. Returns 1 if it is accepted. */
static int run(const mutate_target *target, const uint8_t *data, size_t size) {
    uint8_t *exact = malloc(size ? size : 1);
    if (!exact) exit(1);
    memcpy(exact, data, size);
    target->run(exact, size);
    free(exact);
    return *target->accepted != 0;
}

int mutate_replay(const mutate_target *target) {
    static sample samples[MOST_FILES];
    static uint8_t file[MOST_SIZE];
    long accepted = 0, changed = 0, good = 0;
    const int count = load(samples, target->name);
    state = 20240521;
    for (int i = 0; i < count; i++) good += run(target, samples[i].data, samples[i].size);
    for (int round = 0; round < target->rounds && count; round++) {
        const sample *from = &samples[round % count];
        size_t size = from->size;
        memcpy(file, from->data, size);
        for (size_t n = 1 + draw(3); n; n--) size = mutate(file, size, target);
        const int took = run(target, file, size);
        const int same = size == from->size && !memcmp(file, from->data, size);
        accepted += took && !same;
        changed += !same;
    }
    for (int i = 0; i < count; i++) free(samples[i].data);
    const long share = changed ? 1000 * accepted / changed : 0;
    const int ok = good > 0 && share >= target->least && share <= target->most;
    printf("%s: %d files, of which %ld are valid; %ld of %ld mutations were accepted%s\n",
           target->name, count, good, accepted, changed, ok ? "" : ": not as it should be");
    return !ok;
}
