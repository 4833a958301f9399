/* number.h - elementary functions and random draws that give the same bits everywhere.
 *
 * Stored numbers of the simulated world must not depend on the C library, so everything here is
 * built from + - * / and sqrt, which IEEE 754 fixes (the library is compiled without contraction).
 * Errors are a few units in the last place; arguments stay moderate (angles below 1e5).
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

/* Angle in (-pi, pi]. */
double bj_world_wrap(double angle);
/* Nearest multiple of 1/100, as the map files print it. */
double bj_world_cents(double x);
static inline double bj_world_clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}
/* 0 below 0, 1 above 1, and 3t^2 - 2t^3 between. */
static inline double bj_world_smooth(double t) {
    t = bj_world_clamp(t, 0, 1);
    return t * t * (3 - 2 * t);
}

/* ------------------------------------------------------------------------------------- random */

/* A number for every combination of the arguments: the seeds of towns, scenes and draws. */
uint64_t bj_world_hash(uint64_t a, uint64_t b, uint64_t c, uint64_t d);
uint64_t bj_world_hash_text(const char *text);

double bj_world_uniform(bj_rng *rng, double low, double high);
int bj_world_integer(bj_rng *rng, int low, int high); /* low .. high, both included */
int bj_world_chance(bj_rng *rng, double probability);
/* Standard normal (Box-Muller). */
double bj_world_normal(bj_rng *rng);
/* Mean 0, variance 1, sum of four uniform numbers: the sensor's jitter, which must be cheap. The
 * second gives two independent ones. */
double bj_world_jitter(bj_rng *rng);
void bj_world_jitter2(double out[2], bj_rng *rng);

#endif
