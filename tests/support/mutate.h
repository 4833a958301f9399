/* mutate.h - a fuzz target on its corpus and on mutations of it, the same in each run.
 *
 * Mutations flip bits, copy, insert and delete spans, and put fragments of the format in place of
 * what was there; a target may then repair what its format counts, so that most of them get past
 * the first check. Each input sits at the end of an exactly sized block, where AddressSanitizer
 * sees a read beyond it. What must hold of an input is the target's to demand.
 */
#ifndef BJ_TESTS_MUTATE_H
#define BJ_TESTS_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct mutate_fragment {
    const char *bytes;
    size_t size;
} mutate_fragment;

/* A string literal, which may hold zeros, as a fragment. */
#define FRAGMENT(text)                                                                             \
    { (text), sizeof(text) - 1 }
/* What holds JSON together. */
#define JSON_FRAGMENTS                                                                             \
    FRAGMENT("\""), FRAGMENT("{"), FRAGMENT("}"), FRAGMENT("["), FRAGMENT("]"), FRAGMENT(","),     \
        FRAGMENT(":"), FRAGMENT("[]"), FRAGMENT("{}"), FRAGMENT("null")

typedef struct mutate_target {
    const char *name; /* corpus in tests/fuzz/corpus/<name> */
    int (*run)(const uint8_t *data, size_t size);
    const int *accepted; /* set by run */
    int rounds;
    const mutate_fragment *fragments;
    size_t fragment_count;
    /* Bytes at `at` were replaced and the file grew by `grown`; may be NULL. */
    void (*repair)(uint8_t *file, size_t size, size_t at, ptrdiff_t grown);
    /* Between these parts of a thousand of the mutations must be accepted: machinery whose output
     * is always, or never, refused would test little. */
    int least, most;
} mutate_target;

/* Runs everything; prints a line and returns the exit code of a test. */
int mutate_replay(const mutate_target *target);

#endif
