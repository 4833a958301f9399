/* number.h - elementary functions and random numbers with bit-identical results on all platforms.
 *
 * Stored numbers of the simulated world must not depend on the C library. Everything here uses only
 * + - * / and sqrt, which IEEE 754 defines exactly (the library is compiled without contraction).
 * Errors are a few units in the last place. Arguments must not be too large (angles below 1e5).
 * Test: tests/world/test_number.c
 */
#ifndef BJ_WORLD_NUMBER_H
#define BJ_WORLD_NUMBER_H

#include <stdint.h>

#include "core/rng.h"

#define BJ_PI 3.14159265358979323846

void bj_world_sincos(double *sine, double *cosine, double x);
double bj_world_atan2(double y, double x); /* (-pi, pi]; 0 at the origin */
double bj_world_exp(double x);
double bj_world_log(double x); /* x > 0 and normal */

/* Wraps an angle to (-pi, pi]. */
double bj_world_wrap(double angle);
/* Rounds to the nearest multiple of 1/100, the precision of the map files. */
double bj_world_cents(double x);
static inline double bj_world_clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}
/* Returns 0 below 0, 1 above 1, and 3t^2 - 2t^3 in between. */
static inline double bj_world_smooth(double t) {
    t = bj_world_clamp(t, 0, 1);
    return t * t * (3 - 2 * t);
}

/* ------------------------------------------------------------------------------------- random */

/* Hashes the arguments to a seed for towns, scenes and draws. */
uint64_t bj_world_hash(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
uint64_t bj_world_hash_text(const char *text);

double bj_world_uniform(bj_rng *rng, double low, double high);
int bj_world_integer(bj_rng *rng, int low, int high); /* in [low, high] */
int bj_world_chance(bj_rng *rng, double probability);
/* Draws a standard normal number (Box-Muller). */
double bj_world_normal(bj_rng *rng);
/* Draw sensor jitter with mean 0 and variance 1 as the sum of four uniform numbers, which is fast.
 * bj_world_jitter2 draws two independent values. */
double bj_world_jitter(bj_rng *rng);
void bj_world_jitter2(double out[2], bj_rng *rng);

#endif
