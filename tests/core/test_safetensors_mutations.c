/* test_safetensors_mutations.c - the fuzz target on mutations of a good file, the same in each run.
 *
 * Mutations know the format a little: they flip bits, copy, insert and delete spans, put numbers
 * and fragments of JSON into the header and then mostly repair the header length, so that most of
 * them get past the first check. Each input sits at the end of an exactly sized block, where
 * AddressSanitizer sees a read beyond it.
 */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "../fuzz/fuzz_safetensors.c"
#include "core/file.h"
#include "support/test.h"

enum { ROUNDS = 200000, MAX_SIZE = 4096 };

static uint64_t state = 20240521;

static uint32_t draw(uint32_t below) { /* splitmix64 */
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

/* Replaces `gone` bytes at `at` by `count` bytes of `with`. */
static size_t splice(uint8_t *file, size_t size, size_t at, size_t gone, const void *with,
                     size_t count) {
    uint8_t copy[MAX_SIZE];
    if (at > size) at = size;
    if (gone > size - at) gone = size - at;
    if (count > sizeof copy || size - gone + count > MAX_SIZE) return size;
    memcpy(copy, with, count); /* may overlap */
    memmove(file + at + count, file + at + gone, size - at - gone);
    memcpy(file + at, copy, count);
    return size - gone + count;
}

static size_t mutate(uint8_t *file, size_t size, size_t *header) {
    static const char *const fragments[] = {
        "0",
        "1",
        "4",
        "8",
        "-1",
        "18446744073709551615",
        "9223372036854775807",
        "1e3",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "[]",
        "{}",
        "null",
        "\"F32\"",
        "\"F64\"",
        "\"BOOL\"",
        "\"U8\"",
        "\"\"",
        "\\u0000",
        "\\u0061",
        "\xc3\xa9",
        "\xff",
        " ",
        "\"__metadata__\":{},",
        "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"};
    const size_t whole = 8 + *header;
    const size_t at = draw(4) ? 8 + draw((uint32_t)*header + 1) : draw((uint32_t)size + 1);
    const size_t span = draw(12);
    size_t after = size;
    switch (draw(6)) {
    case 0:
        if (at < size) file[at] ^= (uint8_t)(1u << draw(8));
        break;
    case 1:
        if (at < size) file[at] = (uint8_t)draw(256);
        break;
    case 2: after = splice(file, size, at, span, "", 0); break;
    case 3: {
        const size_t from = draw((uint32_t)size + 1);
        const size_t count = span * 5 < size - from ? span * 5 : size - from;
        after = splice(file, size, at, draw(2) ? count : 0, file + from, count);
        break;
    }
    case 4: { /* a number or a fragment over a token, so that it stays JSON more often */
        const char *text = fragments[draw(sizeof fragments / sizeof *fragments)];
        size_t end = at;
        while (draw(2) && end < size && file[end] >= '0' && file[end] <= '9') end++;
        after = splice(file, size, at, end - at, text, strlen(text));
        break;
    }
    default: after = splice(file, size, size - draw((uint32_t)size), 1 + draw(3), "", 0); break;
    }
    if (at >= 8 && at < whole) *header = *header + after - size;
    if (*header > MAX_SIZE) *header = 0;
    if (draw(8) && after >= 8)
        for (int i = 0; i < 8; i++) file[i] = (uint8_t)((uint64_t)*header >> 8 * i);
    return after;
}

int main(void) {
    static const float weights[6] = {1, 2, 3, 4, 5, 6};
    static const double scale[1] = {0.5};
    static const uint8_t mask[3] = {1, 0, 1};
    const bj_tensor_view views[] = {
        {.name = "w", .dtype = BJ_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = weights},
        {.name = "scale", .dtype = BJ_DTYPE_F64, .rank = 0, .data = scale},
        {.name = "mask", .dtype = BJ_DTYPE_BOOL, .rank = 1, .shape = {3}, .data = mask},
        {.name = "none", .dtype = BJ_DTYPE_I64, .rank = 1, .shape = {0}}};
    const bj_fact facts[] = {{"model", "branch"}, {"seed", "7"}};
    bj_error err = {0};
    char path[] = "/tmp/test_mutations.XXXXXX", *good = NULL;
    size_t good_size = 0;
    const int fd = mkstemp(path);
    CHECK(fd >= 0 && close(fd) == 0);
    CHECK_OK(bj_safetensors_write(path, views, 4, facts, 2, &err), err);
    CHECK_OK(bj_file_read(&good, &good_size, path, MAX_SIZE, &err), err);
    CHECK(remove(path) == 0);
    CHECK(LLVMFuzzerTestOneInput((const uint8_t *)good, good_size) == 0 && fuzz_accepted);
    const size_t good_header = good_size - (24 + 8 + 3) - 8;
    CHECK((uint8_t)good[0] + 256u * (uint8_t)good[1] == good_header);

    long accepted = 0, changed = 0;
    for (int round = 0; round < ROUNDS && !test_failed; round++) {
        uint8_t file[MAX_SIZE];
        size_t size = good_size, header = good_header;
        memcpy(file, good, good_size);
        for (uint32_t n = 1 + draw(3); n; n--) size = mutate(file, size, &header);
        uint8_t *exact = malloc(size ? size : 1);
        CHECK(exact != NULL);
        if (!exact) break;
        memcpy(exact, file, size);
        CHECK(LLVMFuzzerTestOneInput(exact, size) == 0);
        const int same = size == good_size && !memcmp(exact, good, size);
        accepted += fuzz_accepted && !same;
        changed += !same;
        free(exact);
    }
    /* A mutation machine whose output is always, or never, refused would test little. */
    CHECK_MSG(accepted > changed / 100 && accepted < changed / 2, "%ld of %ld accepted", accepted,
              changed);
    bj_free(good);
    return test_report("safetensors_mutations");
}
