/* test_split.c - tests the split for known ids and for ids near the threshold, and the sizes of the
 * two parts.
 *
 * The expected values were computed with Python's hashlib and exact integers.
 */
#include "data/split.h"

#include "branchjepa/branchjepa.h"
#include "test.h"

static void test_known(void) {
    static const struct {
        const char *id;
        int dev;
    } known[] = {
        {"", 0},    /* SHA-256 e3b0c44298fc1c14... */
        {"abc", 0}, /* ba7816bf8f01cfea... */
        /* Of the ids "scene 0" .. "scene 2999999", the two whose fractions are nearest to
         * 9944/199908 on either side. The two fractions differ by 2e-7. */
        {"scene 954484", 1},
        {"scene 1399312", 1},
        {"scene 1151828", 0},
        {"scene 2693031", 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        CHECK_MSG(bj_is_dev(known[i].id) == known[i].dev, "'%s'", known[i].id);
}

static void test_count(void) {
    int dev = 0;
    for (int i = 0; i < 20000; i++) {
        char id[32];
        snprintf(id, sizeof id, "scene %d", i);
        dev += bj_is_dev(id);
    }
    CHECK_MSG(dev == 992, "%d of 20000, expected 992", dev);
}

/* Tests that 199908 * threshold is the first multiple of 199908 that is at least 9944 * 2^64. The
 * computation uses 32-bit halves. */
static void test_threshold(void) {
    const uint64_t low = (BJ_SPLIT_THRESHOLD & UINT32_MAX) * 199908;
    const uint64_t high = (BJ_SPLIT_THRESHOLD >> 32) * 199908 + (low >> 32);
    CHECK(high >> 32 == 9944);
    CHECK((high << 32 | (low & UINT32_MAX)) < 199908);
}

int main(void) {
    test_threshold();
    test_known();
    test_count();
    return test_report("split");
}
