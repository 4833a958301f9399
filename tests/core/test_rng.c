/* test_rng.c - compares the generator with known values and checks its moments.
 *
 * The values after state {1,2,3,4} were published by the generator's authors. The other values were
 * computed with arbitrary-precision integers from the definitions of splitmix64, FNV-1a and
 * xoshiro256++.
 */
#include "core/rng.h"

#include "test.h"

static void test_known_values(void) {
    static const uint64_t expected[10] = {41943041u,
                                          58720359u,
                                          3588806011781223u,
                                          3591011842654386u,
                                          9228616714210784205u,
                                          9973669472204895162u,
                                          14011001112246962877u,
                                          12406186145184390807u,
                                          15849039046786891736u,
                                          10450023813501588000u};
    bj_rng rng = {{1, 2, 3, 4}};
    for (int i = 0; i < 10; i++) CHECK(bj_rng_next(&rng) == expected[i]);

    static const struct {
        uint64_t seed, state[4], next[4];
    } seeded[] = {
        {0,
         {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu, 0xf88bb8a8724c81ecu},
         {0x53175d61490b23dfu, 0x61da6f3dc380d507u, 0x5c0fdf91ec9a7bfcu, 0x02eebf8c3bbe5e1au}},
        {42,
         {0xbdd732262feb6e95u, 0x28efe333b266f103u, 0x47526757130f9f52u, 0x581ce1ff0e4ae394u},
         {0xd0764d4f4476689fu, 0x519e4174576f3791u, 0xfbe07cfb0c24ed8cu, 0xb37d9f600cd835b8u}},
        {UINT64_MAX,
         {0xe4d971771b652c20u, 0xe99ff867dbf682c9u, 0x382ff84cb27281e9u, 0x6d1db36ccba982d2u},
         {0x56ccf8ce948e27b2u, 0xe68588432e5a5b90u, 0xe3e9b5a48119ca8bu, 0x460f19495532ae73u}}};
    for (size_t s = 0; s < sizeof seeded / sizeof *seeded; s++) {
        rng = bj_rng_seed(seeded[s].seed);
        CHECK(memcmp(rng.state, seeded[s].state, sizeof rng.state) == 0);
        for (int i = 0; i < 4; i++) CHECK(bj_rng_next(&rng) == seeded[s].next[i]);
    }

    rng = bj_rng_seed(42);
    CHECK(bj_rng_uniform(&rng) == 0x1.a0ec9a9e88ecdp-1);
    CHECK(bj_rng_uniform(&rng) == 0x1.467905d15dbccp-2);
    rng = bj_rng_seed(42);
    CHECK_NEAR(bj_rng_normal(&rng), -0.7689930538210061, 1e-15);
    CHECK(bj_rng_uniform(&rng) == 0x1.f7c0f9f61849dp-1); /* a normal consumes two words */
}

static void test_named_streams(void) {
    static const uint64_t atom[3] = {0x076cef5de080cb67u, 0xd6569fe0252f1e8au, 0x344f2d56d54cd132u};
    static const uint64_t proj[3] = {0x88361b73faf79704u, 0x3d0a1f1f5b5cc22cu, 0x99b59e1ed0022ee2u};
    bj_rng a = bj_rng_named(0, "atoms.0.0.weight"), p = bj_rng_named(7, "encoder.proj.0.bias");
    for (int i = 0; i < 3; i++) {
        CHECK(bj_rng_next(&a) == atom[i]);
        CHECK(bj_rng_next(&p) == proj[i]);
    }
    /* Names that differ in one letter, or seeds that differ in one bit, give unrelated streams. */
    const char *names[] = {"atoms.0.0.weight", "atoms.1.0.weight", "atoms.0.0.bias", "a", ""};
    uint64_t first[16];
    int n = 0;
    for (int i = 0; i < 5; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            bj_rng rng = bj_rng_named(seed, names[i]);
            first[n++] = bj_rng_next(&rng);
        }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++) {
            int same = 0;
            for (uint64_t x = first[i] ^ first[j]; x; x &= x - 1) same++;
            CHECK_MSG(same > 10 && same < 54, "streams %d and %d differ in %d of 64 bits", i, j,
                      same);
        }
}

static void test_stored_state(void) {
    bj_rng rng = bj_rng_seed(9);
    for (int i = 0; i < 5; i++) bj_rng_next(&rng);
    bj_rng stored = rng;
    for (int i = 0; i < 100; i++) CHECK(bj_rng_normal(&rng) == bj_rng_normal(&stored));
}

/* Tests that the moments of n draws are within five standard errors of their expectation. */
static void test_moments(void) {
    enum { N = 200000, CELLS = 64 };
    bj_rng rng = bj_rng_seed(3);
    double sum = 0, square = 0, lag = 0, before = 0, least = 1, most = 0;
    int cell[CELLS] = {0};
    for (int i = 0; i < N; i++) {
        const double u = bj_rng_uniform(&rng), c = u - 0.5;
        sum += c;
        square += c * c;
        lag += c * before;
        before = c;
        if (u < least) least = u;
        if (u > most) most = u;
        cell[(int)(u * CELLS)]++;
    }
    CHECK(least >= 0 && least < 1e-4 && most < 1 && most > 1 - 1e-4);
    CHECK_NEAR(sum / N, 0, 5 * sqrt(1.0 / 12 / N));
    CHECK_NEAR(square / N, 1.0 / 12, 5 * sqrt(1.0 / 180 / N));
    CHECK_NEAR(lag / N, 0, 5.0 / 12 / sqrt(N));
    double chi = 0;
    for (int i = 0; i < CELLS; i++) {
        const double e = (double)N / CELLS;
        chi += (cell[i] - e) * (cell[i] - e) / e;
    }
    CHECK_NEAR(chi, CELLS - 1, 5 * sqrt(2.0 * (CELLS - 1)));

    double m[5] = {0};
    lag = before = 0;
    for (int i = 0; i < N; i++) {
        const double x = bj_rng_normal(&rng);
        for (int p = 1; p <= 4; p++) m[p] += pow(x, p) / N;
        lag += x * before;
        before = x;
    }
    CHECK_NEAR(m[1], 0, 5 * sqrt(1.0 / N));
    CHECK_NEAR(m[2], 1, 5 * sqrt(2.0 / N));
    CHECK_NEAR(m[3], 0, 5 * sqrt(15.0 / N));
    CHECK_NEAR(m[4], 3, 5 * sqrt(96.0 / N));
    CHECK_NEAR(lag / N, 0, 5 / sqrt(N));
}

/* Tests that the smallest and the largest random word give uniform numbers in [0,1) and finite
 * normal numbers. */
static void test_extremes(void) {
    bj_rng ones = {{UINT64_MAX, 0, 0, 0}}; /* the first word is rotate(max) + max = max - 1 */
    CHECK(bj_rng_uniform(&ones) == 1 - 0x1p-53);
    bj_rng zeros = {{0, 1, 0, 0}}; /* first word 0 */
    CHECK(bj_rng_uniform(&zeros) == 0);
    bj_rng top = {{UINT64_MAX, 0, 0, 0}}, low = {{0, 1, 0, 0}};
    CHECK(isfinite(bj_rng_normal(&top)));
    CHECK(bj_rng_normal(&low) == 0);
}

int main(void) {
    test_known_values();
    test_named_streams();
    test_stored_state();
    test_moments();
    test_extremes();
    return test_report("rng");
}
