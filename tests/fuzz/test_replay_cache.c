/* test_replay_cache.c - runs the fuzz target of the cache reader without a fuzzer.
 *
 * With the argument FOLDER, writes the corpus of generated scenes there.
 */
#define _XOPEN_SOURCE 700
#include "fuzz_cache.c"

#include "data/cache_case.h"
#include "data/cache_format.h"
#include "support/mutate.h"

/* Repairs the header length, which is stored in the first eight bytes. */
static void repair(uint8_t *file, size_t size, size_t at, ptrdiff_t grown) {
    uint64_t header = 0;
    if (size < 8 || at < 8) return;
    for (int i = 0; i < 8; i++) header |= (uint64_t)file[i] << 8 * i;
    if (header > 1 << 20 || at > 8 + header) return;
    header += (uint64_t)grown;
    for (int i = 0; i < 8; i++) file[i] = (uint8_t)(header >> 8 * i);
}

/* Writes a few small scenes with a header without the reserved space of a large cache. */
static void write_seed(const char *folder, const char *name, int first, int count) {
    char path[256], scratch[256], *text = NULL;
    size_t size = 0;
    bj_cache_writer *w = NULL;
    bj_cache_bytes *bytes = NULL;
    case_scene *s = NULL;
    bj_prep_report report;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(scratch, sizeof scratch, "%s/.scratch", folder);
    CHECK_OK(bj_cache_writer_open(&w, scratch, case_facts, 2, 1, &err), err);
    CHECK_OK(bj_cache_bytes_create(&bytes, &err), err);
    CHECK_OK(BJ_ALLOC(s, 1, &err), err);
    for (int i = first; i < first + count; i++) {
        case_draw(s, i);
        if (s->features.neighbors > 1) s->features.neighbors = i == first;
        if (s->features.polylines > 2) s->features.polylines = 2;
        if (s->map.area_count > 2) s->map.area_count = 2;
        CHECK_OK(bj_cache_encode(bytes, &s->scenario, &s->map, &s->features, s->map_sha256, &err),
                 err);
        CHECK_OK(bj_cache_writer_add(w, bytes, &err), err);
    }
    CHECK_OK(bj_cache_writer_finish(&w, &report, &err), err);
    CHECK_OK(bj_file_read(&text, &size, scratch, 1 << 24, &err), err);
    size_t end = BJ_CACHE_HEADER;
    while (text[end - 1] == ' ') end--;
    end = (end + 63) / 64 * 64;
    for (int i = 0; i < 8; i++) text[i] = (char)((uint64_t)(end - 8) >> 8 * i);
    memmove(text + end, text + BJ_CACHE_HEADER, size - BJ_CACHE_HEADER);
    CHECK_OK(bj_file_write(path, text, size - BJ_CACHE_HEADER + end, &err), err);
    CHECK(unlink(scratch) == 0);
    bj_free(text);
    bj_free(s);
    bj_cache_bytes_free(bytes);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        write_seed(argv[1], "one.bjc", 0, 1);
        write_seed(argv[1], "shared_map.bjc", 2, 1);
        write_seed(argv[1], "three.bjc", 5, 3);
        return test_report("corpus");
    }
    static const mutate_fragment fragments[] = {FRAGMENT("0"),
                                                FRAGMENT("1"),
                                                FRAGMENT("2"),
                                                FRAGMENT("64"),
                                                FRAGMENT("255"),
                                                FRAGMENT("-1"),
                                                FRAGMENT("9223372036854775807"),
                                                FRAGMENT("\""),
                                                FRAGMENT("["),
                                                FRAGMENT("]"),
                                                FRAGMENT("{}"),
                                                FRAGMENT("[0]"),
                                                FRAGMENT("[0,2]"),
                                                FRAGMENT("\\\"x\\\""),
                                                FRAGMENT("\"F64\""),
                                                FRAGMENT("\"I64\""),
                                                FRAGMENT("\"U8\""),
                                                FRAGMENT("\\u0001"),
                                                FRAGMENT(" "),
                                                FRAGMENT("\0"),
                                                FRAGMENT("\1"),
                                                FRAGMENT("\x7f"),
                                                FRAGMENT("\xff"),
                                                FRAGMENT("\xff\xff\xff\x7f"),
                                                FRAGMENT("\0\0\0\0\0\0\xf0\x7f"),
                                                FRAGMENT("\xff\xff\xff\xff\xff\xff\xff\x7f"),
                                                FRAGMENT("\0\0\0\0\0\0\0\0")};
    return mutate_replay(&(mutate_target){.name = "cache",
                                          .run = LLVMFuzzerTestOneInput,
                                          .accepted = &fuzz_accepted,
                                          .rounds = 20000,
                                          .fragments = fragments,
                                          .fragment_count = sizeof fragments / sizeof *fragments,
                                          .repair = repair,
                                          .least = 100,
                                          .most = 900});
}
