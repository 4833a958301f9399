/* mutate.h - runs a fuzz target on its corpus and on reproducible mutations of it.
 *
 * Mutations flip bits, copy, insert and delete spans, and insert fragments of the format. A target
 * may then repair the sizes in its format, so that most mutations pass the first check. Each input
 * is in an allocation of its exact size, so AddressSanitizer detects a read beyond its end. The
 * target itself checks the invariants of an input.
 */
#ifndef BJ_TESTS_MUTATE_H
#define BJ_TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct mutate_fragment {
    const char *bytes;
    size_t size;
} mutate_fragment;

/* Makes a fragment of a string literal, which may contain zeros. */
#define FRAGMENT(text)                                                                             \
    { (text), sizeof(text) - 1 }
/* Structural tokens of JSON. */
#define JSON_FRAGMENTS                                                                             \
    FRAGMENT("\""), FRAGMENT("{"), FRAGMENT("}"), FRAGMENT("["), FRAGMENT("]"), FRAGMENT(","),     \
        FRAGMENT(":"), FRAGMENT("[]"), FRAGMENT("{}"), FRAGMENT("null")

typedef struct mutate_target {
    const char *name; /* corpus in tests/fuzz/corpus/<name> */
    int (*run)(const uint8_t *data, size_t size);
    const int *accepted; /* set by run: 1 if the input was accepted */
    int rounds;
    const mutate_fragment *fragments;
    size_t fragment_count;
    /* Repairs a file after bytes at `at` were replaced and the file grew by `grown`. May be
     * NULL. */
    void (*repair)(uint8_t *file, size_t size, size_t at, ptrdiff_t grown);
    /* Min and max number of accepted mutations per thousand. Mutations that are always or never
     * rejected test little. */
    int least, most;
} mutate_target;

/* Runs the corpus and the mutations, prints a line and returns the exit code of a test. */
int mutate_replay(const mutate_target *target);

#endif
