/* benchmark.c - the standard benchmark of the simulated world, and the seeds reserved for
 * evaluation (branchjepa/benchmark.h).
 *
 * Each digest below covers the stored digests of all 2,000 laws of a split. It therefore covers the
 * id, frame, realized mode, weights, means and factors of every scene. bj_law_verify recomputes the
 * digest of a scene from its numbers when the scene is measured.
 * Tests: tests/world/test_benchmark.c, tests/cli/benchmark.sh
 */
#include <stdio.h>
#include <string.h>

#include "world/law_file.h"

static const struct {
    const char *split, *digest;
} splits[] = {
    {"val", "ca7621eced0daafc835b321878a9f2c273f4f8bdb6f144fd13793cc8bf7ce553"},
    {"test", "ac29f698d2160f8b6f4ade016e058752a306e5b425564acfcf632b89fb31e0ff"},
};

enum { SPLITS = sizeof splits / sizeof *splits };

const char *bj_world_seed_reserved(uint64_t seed) {
    if (seed == BJ_BENCHMARK_SEED) return "the standard benchmark";
    if (seed == BJ_FRESH_DEV_SEED) return "development scenes";
    return seed >= BJ_BLIND_SEEDS ? "blind comparisons" : NULL;
}

static bj_status check_fact(const bj_law *law, const char *key, const char *expected,
                            bj_error *err) {
    const char *found = bj_law_fact(law, key);
    if (found && !strcmp(found, expected)) return BJ_OK;
    return BJ_FAIL(err, BJ_EMISMATCH,
                   "this is not the distribution file of the standard benchmark: "
                   "%s is %s, expected %s",
                   key, found ? found : "missing", expected);
}

bj_status bj_benchmark_check(const bj_law *law, const char *split, bj_error *err) {
    char seed[32], world[8], digest[65];
    int at = 0;
    while (at < SPLITS && strcmp(splits[at].split, split)) at++;
    if (at == SPLITS)
        return BJ_FAIL(err, BJ_EARG, "benchmark: split is '%.40s', expected val or test", split);
    snprintf(seed, sizeof seed, "%u", BJ_BENCHMARK_SEED);
    snprintf(world, sizeof world, "%d", BJ_BENCHMARK_WORLD);
    BJ_TRY(check_fact(law, "world", world, err));
    BJ_TRY(check_fact(law, "seed", seed, err));
    BJ_TRY(check_fact(law, "split", split, err));
    if (bj_law_count(law) != BJ_BENCHMARK_SCENES)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "this is not the distribution file of the standard benchmark: "
                       "it has %lld scenes, expected %d",
                       (long long)bj_law_count(law), BJ_BENCHMARK_SCENES);
    BJ_TRY(bj_law_digest(digest, law, err));
    if (strcmp(digest, splits[at].digest))
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "this is not the distribution file of the standard benchmark: "
                       "its digest is %s, expected %s",
                       digest, splits[at].digest);
    return BJ_OK;
}
