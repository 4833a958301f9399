/* fuzz_law.c - fuzz target of the reader of true distributions (laws).
 *
 * For any input, the reader must fail with a message that starts with the path, or return scenes
 * with sorted ids, at least one mode, and intents with names, from which futures can be drawn.
 * Violations abort. Corpus: tests/fuzz/corpus/law
 */
#define _XOPEN_SOURCE 700 /* mkstemp, pwrite */
#include "core/alloc.h"
#include "fuzz_file.h"

static volatile double sink; /* prevents removal of the reads */

static void examine(const bj_law *law) {
    static double future[2 * 64];
    bj_rng rng = bj_rng_seed(1);
    char hex[65];
    demand(bj_law_digest(hex, law, NULL) == BJ_OK && strlen(hex) == 64);
    for (int64_t i = 0; i < bj_law_count(law); i++) {
        const bj_law_scene scene = bj_law_at(law, i);
        bj_error err = {0};
        demand(scene.modes >= 1 && bj_law_find(law, scene.scenario_id) >= 0);
        for (int m = 0; m < scene.modes; m++) {
            demand(scene.weights[m] >= 0 && scene.weights[m] <= 1);
            demand(bj_law_intent(law, scene.intents[m]) != NULL);
        }
        bj_law_sample(future, &scene, &rng);
        sink = future[0];
        const bj_status status = bj_law_verify(law, i, &err);
        if (status != BJ_OK) demand(err.code == status && err.message[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_law *law = NULL;
    bj_error err = {0};
    const bj_status status = bj_law_open(&law, fuzz_file(data, size), &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) examine(law);
    else fuzz_rejected(status, &err);
    bj_law_free(law);
    demand(bj_alloc_live() == live);
    return 0;
}
