/* number.c - see number.h. */
#include "world/number.h"

#include <math.h>
#include <string.h>

void bj_world_sincos(double *sine, double *cosine, double x) {
    /* Uses x = k pi/2 + r with |r| <= pi/4. pi/2 is split into two parts, the first of which has
     * trailing zeros. */
    const double k = floor(x * (2 / BJ_PI) + 0.5);
    const double r = (x - k * 1.57079632673412561417e+00) - k * 6.07710050650619224932e-11;
    const double q = r * r;
    double s = -1.0 / 1307674368000.0, c = 1.0 / 20922789888000.0; /* Taylor: 1/15!, 1/16! */
    s = s * q + 1.0 / 6227020800.0;
    s = s * q - 1.0 / 39916800.0;
    s = s * q + 1.0 / 362880.0;
    s = s * q - 1.0 / 5040.0;
    s = s * q + 1.0 / 120.0;
    s = s * q - 1.0 / 6.0;
    s = r + r * q * s;
    c = c * q - 1.0 / 87178291200.0;
    c = c * q + 1.0 / 479001600.0;
    c = c * q - 1.0 / 3628800.0;
    c = c * q + 1.0 / 40320.0;
    c = c * q - 1.0 / 720.0;
    c = c * q + 1.0 / 24.0;
    c = 1.0 - 0.5 * q + q * q * c;
    switch ((int)((int64_t)k & 3)) {
    case 0: *sine = s, *cosine = c; break;
    case 1: *sine = c, *cosine = -s; break;
    case 2: *sine = -s, *cosine = -c; break;
    default: *sine = -c, *cosine = s; break;
    }
}

/* Evaluates the odd series for |x| <= tan(pi/8). */
static double atan_small(double x) {
    const double q = x * x;
    double sum = 0;
    for (int n = 41; n >= 3; n -= 2) sum = (1.0 / n - sum) * q;
    return x - x * sum;
}

double bj_world_atan2(double y, double x) {
    const double ax = fabs(x), ay = fabs(y);
    if (!(ax > 0 || ay > 0)) return 0;
    const double t = ax > ay ? ay / ax : ax / ay; /* 0 .. 1 */
    double angle =
        t > 0.41421356237309503 ? BJ_PI / 4 + atan_small((t - 1) / (t + 1)) : atan_small(t);
    if (ay >= ax) angle = BJ_PI / 2 - angle;
    if (x < 0) angle = BJ_PI - angle;
    return y < 0 ? -angle : angle;
}

/* Returns 2^k for -1022 <= k <= 1023. */
static double power_of_two(int k) {
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double bj_world_exp(double x) {
    if (x < -700) return 0;
    if (x > 700) x = 700;
    const double k = floor(x * 1.4426950408889634 + 0.5);
    const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double sum = 1;
    for (int n = 14; n >= 1; n--) sum = 1 + r / n * sum;
    return sum * power_of_two((int)k);
}

double bj_world_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int k = (int)(bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffu) | (uint64_t)1023 << 52;
    memcpy(&x, &bits, sizeof x); /* 1 <= x < 2 */
    if (x > 1.4142135623730951) x *= 0.5, k++;
    const double z = (x - 1) / (x + 1), q = z * z;
    double sum = 0;
    for (int n = 23; n >= 1; n -= 2) sum = 1.0 / n + q * sum;
    return k * 0.6931471805599453 + 2 * z * sum;
}

double bj_world_wrap(double angle) {
    if (angle > -BJ_PI && angle <= BJ_PI) return angle;
    const double turns = floor(angle / (2 * BJ_PI) + 0.5);
    angle -= turns * (2 * BJ_PI);
    if (angle <= -BJ_PI) angle += 2 * BJ_PI;
    if (angle > BJ_PI) angle -= 2 * BJ_PI;
    return angle;
}

double bj_world_cents(double x) { return floor(x * 100 + 0.5) / 100; }

/* ------------------------------------------------------------------------------------- random */

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t bj_world_hash(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    return mix(mix(mix(mix(a) ^ b) ^ c) ^ d);
}

uint64_t bj_world_hash_text(const char *text) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

double bj_world_uniform(bj_rng *rng, double low, double high) {
    return low + (high - low) * bj_rng_uniform(rng);
}

int bj_world_integer(bj_rng *rng, int low, int high) {
    return low + (int)(bj_rng_uniform(rng) * (high - low + 1));
}

int bj_world_chance(bj_rng *rng, double probability) { return bj_rng_uniform(rng) < probability; }

double bj_world_normal(bj_rng *rng) {
    const double u = 1 - bj_rng_uniform(rng), v = bj_rng_uniform(rng);
    double s, c;
    bj_world_sincos(&s, &c, 2 * BJ_PI * v);
    return sqrt(-2 * bj_world_log(u)) * c;
}

/* Adds four random bytes, each with variance (2^16 - 1) / 12, and scales the sum to variance 1. */
static double four_bytes(uint32_t bits) {
    const int sum =
        (int)(bits & 0xff) + (int)(bits >> 8 & 0xff) + (int)(bits >> 16 & 0xff) + (int)(bits >> 24);
    return (sum - 510) * (1 / 147.80054127099805);
}

void bj_world_jitter2(double out[2], bj_rng *rng) {
    const uint64_t bits = bj_rng_next(rng);
    out[0] = four_bytes((uint32_t)bits);
    out[1] = four_bytes((uint32_t)(bits >> 32));
}

double bj_world_jitter(bj_rng *rng) { return four_bytes((uint32_t)(bj_rng_next(rng) >> 32)); }
