/* fuzz_seeds.c - fuzz target of the CSV reader and of the table of seeds that uses it.
 *
 * For any input, the reader must fail with a message that starts with the path, or return distinct
 * arms and metrics, of which every value is finite or missing. Violations abort.
 * Corpus: tests/fuzz/corpus/seeds
 */
#define _XOPEN_SOURCE 700 /* mkstemp, pwrite */
#include <math.h>

#include "core/alloc.h"
#include "fuzz_file.h"

static void examine(const bj_seeds *s) {
    for (int a = 0; a < bj_seeds_arm_count(s); a++) {
        demand(bj_seeds_find_arm(s, bj_seeds_arm(s, a)) == a);
        for (int m = 0; m < bj_seeds_metric_count(s); m++) {
            demand(bj_seeds_find_metric(s, bj_seeds_metric(s, m).name) == m);
            for (int i = 0; i < bj_seeds_count(s); i++)
                demand(!isinf(bj_seeds_value(s, a, m, i)));
            demand(bj_seeds_summary(s, a, m).n >= 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_seeds *seeds = NULL;
    bj_error err = {0};
    const bj_status status = bj_seeds_read(&seeds, fuzz_file(data, size), &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) examine(seeds);
    else fuzz_rejected(status, &err);
    bj_seeds_free(seeds);
    demand(bj_alloc_live() == live);
    return 0;
}
