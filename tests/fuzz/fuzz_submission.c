/* fuzz_submission.c - fuzz target of the reader of challenge submissions.
 *
 * For any input, the reader must fail with a message that starts with the path, or return rows that
 * belong to exactly one scenario each, with all their coordinates readable. Violations abort.
 * Corpus: tests/fuzz/corpus/submission
 */
#define _XOPEN_SOURCE 700 /* mkstemp, pwrite */
#include "core/alloc.h"
#include "fuzz_file.h"

static void examine(const bj_submission *s) {
    int64_t rows = 0;
    for (int64_t i = 0; i < bj_submission_scenarios(s); i++) {
        const char *id = bj_submission_scenario(s, i);
        int64_t count = 0;
        demand(id && bj_submission_find(s, id) == i);
        const int64_t *list = bj_submission_rows_of(&count, s, i);
        for (int64_t k = 0; k < count; k++) {
            demand(list[k] >= 0 && list[k] < bj_submission_rows(s));
            (void)bj_submission_at(s, list[k]);
        }
        rows += count;
    }
    demand(rows == bj_submission_rows(s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_submission *submission = NULL;
    bj_error err = {0};
    const bj_status status = bj_submission_open(&submission, fuzz_file(data, size), &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) examine(submission);
    else fuzz_rejected(status, &err);
    bj_submission_free(submission);
    demand(bj_alloc_live() == live);
    return 0;
}
