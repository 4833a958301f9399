/* town_worker.c - see town_worker.h.
 * Tests: tests/world/test_simulate.c, tests/world/test_stream.c
 */
#include "world/town_worker.h"

#include "core/alloc.h"

bj_status bj_town_worker_init(bj_town_worker *w, bj_error *err) {
    BJ_TRY(BJ_ALLOC(w->town, 1, err));
    BJ_TRY(BJ_ALLOC(w->scene, 1, err));
    BJ_TRY(BJ_ALLOC(w->features, 1, err));
    BJ_TRY(bj_map_reader_create(&w->maps, err));
    return bj_features_maker_create(&w->maker, err);
}

void bj_town_worker_reset(bj_town_worker *w) {
    bj_free(w->town);
    bj_free(w->scene);
    bj_free(w->features);
    bj_town_text_free(&w->text);
    bj_map_reader_free(w->maps);
    bj_features_maker_free(w->maker);
    *w = (bj_town_worker){0};
}

bj_status bj_town_worker_make(bj_town_worker *w, bj_map *map, int version, uint64_t seed,
                              const char *split, int64_t number, bj_error *err) {
    BJ_TRY(bj_town_make(w->town, version, seed, split, number, err));
    BJ_TRY(bj_town_write(&w->text, w->town, err));
    return bj_map_read_memory(map, w->maps, w->text.text, w->text.size, "simulated map", err);
}
