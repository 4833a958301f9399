/* rng.c - see rng.h. */
#include "core/rng.h"

#include <math.h>

static uint64_t rotate(uint64_t x, int k) { return x << k | x >> (64 - k); }

/* Expands a seed into the state (splitmix64), so that similar seeds produce unrelated streams. */
static uint64_t spread(uint64_t *seed) {
    uint64_t x = *seed += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

bj_rng bj_rng_seed(uint64_t seed) {
    bj_rng rng;
    for (int i = 0; i < 4; i++) rng.state[i] = spread(&seed);
    return rng;
}

bj_rng bj_rng_named(uint64_t seed, const char *name) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
    return bj_rng_seed(spread(&seed) ^ hash);
}

uint64_t bj_rng_next(bj_rng *rng) {
    uint64_t *s = rng->state;
    const uint64_t result = rotate(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t bj_rng_below(bj_rng *rng, uint64_t n) {
    const uint64_t last = UINT64_MAX - (UINT64_MAX % n + 1) % n; /* last multiple of n, minus 1 */
    uint64_t r;
    do r = bj_rng_next(rng);
    while (r > last);
    return r % n;
}

double bj_rng_uniform(bj_rng *rng) { return (double)(bj_rng_next(rng) >> 11) * 0x1p-53; }

double bj_rng_normal(bj_rng *rng) {
    /* Box-Muller transform. The second value is not cached, so that the state remains four
     * words. */
    const double u = 1.0 - bj_rng_uniform(rng), v = bj_rng_uniform(rng);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}
