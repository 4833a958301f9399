/* split.c - selects the held-out episodes, and the contexts in them that an audit uses.
 *
 * Episodes are shuffled with the generator of (seed, "maze episode split"). The first floor(share *
 * count) episodes are used for training.
 * Test: tests/maze/test_split.c
 */
#include <math.h>

#include "core/alloc.h"
#include "core/rng.h"
#include "maze/drive.h"

bj_status bj_episode_split(uint8_t *training, int64_t count, double share, uint64_t seed,
                           bj_error *err) {
    bj_rng rng = bj_rng_named(seed, "maze episode split");
    int64_t *order;
    if (count < 0 || !(share >= 0 && share <= 1))
        return BJ_FAIL(err, BJ_EARG,
                       "episode split: the share is %g (of %lld episodes), expected 0 to 1", share,
                       (long long)count);
    BJ_TRY(BJ_ALLOC(order, (size_t)count, err));
    const int64_t want = (int64_t)floor(share * (double)count + 1e-9); /* 0.7 * 10 is below 7 */
    for (int64_t k = 0; k < count; k++) {
        order[k] = k;
        training[k] = 0;
    }
    for (int64_t k = 0; k < want; k++) {
        const int64_t other = k + (int64_t)bj_rng_below(&rng, (uint64_t)(count - k));
        training[order[other]] = 1;
        order[other] = order[k];
    }
    bj_free(order);
    return BJ_OK;
}

/* Writes the contexts of one episode to `out`, which may be NULL. Returns their count. */
static int64_t list_episode(int64_t *out, const int16_t *cells, int64_t begin, int64_t end,
                            int64_t stride, int64_t horizon) {
    int64_t n = 0;
    for (int64_t t = begin; t + horizon * stride < end; t += horizon * stride) {
        int inside = 1;
        for (int64_t h = 0; h <= horizon; h++) inside &= cells[t + h * stride] >= 0;
        if (!inside) continue;
        if (out) out[n] = t;
        n++;
    }
    return n;
}

bj_status bj_audit_contexts(int64_t **out, int64_t *count, const bj_maze_data *data,
                            const uint8_t *training, int stride, int horizon, bj_error *err) {
    const int64_t *episodes = bj_maze_data_episodes(data);
    const int16_t *cells = bj_maze_data_cells(data);
    const int64_t total = bj_maze_data_about(data).episodes;
    int64_t n = 0;
    *out = NULL;
    *count = 0;
    if (stride < 1 || horizon < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "audit contexts: stride is %d and horizon is %d, expected at least 1",
                       stride, horizon);
    for (int64_t e = 0; e < total; e++)
        if (!training || !training[e])
            n += list_episode(NULL, cells, episodes[e], episodes[e + 1], stride, horizon);
    BJ_TRY(BJ_ALLOC(*out, (size_t)n, err));
    for (int64_t e = 0; e < total; e++)
        if (!training || !training[e])
            *count +=
                list_episode(*out + *count, cells, episodes[e], episodes[e + 1], stride, horizon);
    return BJ_OK;
}

void bj_rows_free(int64_t *rows) { bj_free(rows); }
