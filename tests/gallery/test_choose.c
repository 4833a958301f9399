/* test_choose.c - tests the selection rule of galleries on hand-made lists: maneuvers, order,
 * places. */
#include "core/sha256.h"
#include "gallery/choose.h"
#include "support/test.h"

enum {
    STOP = BJ_GALLERY_STOP,
    AHEAD = BJ_GALLERY_STRAIGHT,
    LEFT = BJ_GALLERY_LEFT,
    RIGHT = BJ_GALLERY_RIGHT
};

/* ------------------------------------------------------------------------------------ maneuvers */

static void test_maneuvers(void) {
    enum { K = 4, F = 2 };
    double w[K] = {0.40, 0.40, 0.16, 0.04};
    /* Only the last point counts. The first points would give another maneuver. */
    double y[K][F][2] = {
        {{-50, 50}, {10, 0}}, {{9, 9}, {1.9, 0}}, {{0, 0}, {-5, 5}}, {{0, 0}, {0, -9}}};
    CHECK(bj_gallery_maneuvers(K, F, w, &y[0][0][0]) ==
          (STOP | AHEAD | LEFT)); /* .04 is too little */
    w[3] = 0.05;
    CHECK(bj_gallery_maneuvers(K, F, w, &y[0][0][0]) == (STOP | AHEAD | LEFT | RIGHT));
    CHECK(bj_gallery_maneuvers(1, F, w, &y[0][0][0]) == AHEAD);
    const double limits[][2] = {{2, 0},        {0, 1.99},     {8.66, 5.01}, {8.67, 4.99},
                                {8.66, -5.01}, {8.67, -4.99}, {-9, -0.1},   {-9, 0.1}};
    const unsigned expected[] = {AHEAD, STOP, LEFT, AHEAD, RIGHT, AHEAD, RIGHT, LEFT};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const double one = 1;
        CHECK_MSG(bj_gallery_maneuvers(1, 1, &one, limits[i]) == expected[i], "end %zu", i);
    }
    /* Tests that several branches with small weights and the same ending form a maneuver. */
    double light[2] = {0.03, 0.03}, both[2][2] = {{0, 9}, {1, 9}};
    CHECK(bj_gallery_maneuvers(2, 1, light, &both[0][0]) == LEFT);
    CHECK(bj_gallery_maneuvers(1, 1, light, &both[0][0]) == 0);
}

static void test_order(void) {
    const struct {
        uint64_t seed;
        const char *id, *text;
    } cases[] = {{0, "abc", "0:abc"},
                 {7, "", "7:"},
                 {10, "x", "10:x"},
                 {1203, "abc", "1203:abc"},
                 {UINT64_MAX, "abc", "18446744073709551615:abc"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char order[BJ_SHA256_BYTES];
        char found[BJ_SHA256_HEX], expected[BJ_SHA256_HEX];
        bj_gallery_order(order, cases[i].seed, cases[i].id);
        bj_sha256_hex(found, order);
        bj_sha256_memory(expected, cases[i].text, strlen(cases[i].text));
        CHECK_MSG(!strcmp(found, expected), "%s", cases[i].text);
    }
}

/* ----------------------------------------------------------------------------------------- rule */

enum { MOST = 16 };

/* Checks the chosen scenes. `order` is the first byte of the hash. */
static void check_choice(const int64_t (*list)[4], int count, int wanted, const int64_t *expected,
                         int found) {
    bj_strict_case cases[MOST];
    int64_t chosen[MOST];
    for (int i = 0; i < count; i++) {
        cases[i] = (bj_strict_case){.scene = list[i][0],
                                    .map = list[i][2],
                                    .maneuvers = (unsigned)list[i][1],
                                    .taken = 1 /* whatever was there before does not matter */};
        memset(cases[i].order, 0, sizeof cases[i].order);
        cases[i].order[0] = (unsigned char)list[i][3];
    }
    const int n = bj_gallery_choose(chosen, wanted, cases, count);
    CHECK_MSG(n == found, "%d cases, expected %d", n, found);
    for (int i = 0; i < n && i < found; i++)
        CHECK_MSG(cases[chosen[i]].scene == expected[i], "place %d: scene %d, expected %d", i + 1,
                  (int)cases[chosen[i]].scene, (int)expected[i]);
}

static void test_rule(void) {
    /* scene, maneuvers, map, order */
    const int64_t list[][4] = {{1, AHEAD, 0, 50},        {2, STOP, 1, 10},
                               {3, STOP | AHEAD, 2, 20}, {4, STOP | AHEAD, 3, 30},
                               {5, AHEAD | LEFT, 4, 90}, {6, AHEAD, 5, 40}};
    const int64_t expected[] = {6, 3, 5, 4, 1, 2};
    check_choice(list, 6, 6, expected, 6);
    check_choice(list, 6, 3, expected, 3);
    check_choice(list, 6, 8, expected, 6); /* no more than there are */
    check_choice(list, 0, 8, expected, 0);
    /* Tests that the first place gets a case with several maneuvers if there is no other case, and
     * that cases with only stop come last. */
    const int64_t none[][4] = {{2, STOP, 1, 10}, {3, STOP | AHEAD, 2, 20}};
    const int64_t only[] = {3, 2};
    check_choice(none, 2, 2, only, 2);
}

static void test_maps_and_ties(void) {
    /* Tests that a new map is preferred among equal sets, and a new set before a new map. */
    const int64_t list[][4] = {{1, LEFT, 7, 1},          {2, STOP | AHEAD, 7, 2},
                               {3, STOP | AHEAD, 8, 3},  {4, STOP | AHEAD, 8, 4},
                               {5, STOP | AHEAD, 9, 99}, {6, LEFT | AHEAD, 8, 100}};
    const int64_t expected[] = {1, 3, 6, 5, 2, 4};
    check_choice(list, 6, 6, expected, 6);
    /* Tests equal hashes, which cannot occur for different ids. The index of the scene breaks the
     * tie. */
    const int64_t equal[][4] = {{9, AHEAD, 1, 1}, {4, AHEAD, 1, 1}, {6, AHEAD, 1, 1}};
    const int64_t by_number[] = {4, 6, 9};
    check_choice(equal, 3, 3, by_number, 3);
}

int main(void) {
    test_maneuvers();
    test_order();
    test_rule();
    test_maps_and_ties();
    CHECK(strlen(bj_gallery_rule()) > 200);
    return test_report("choose");
}
