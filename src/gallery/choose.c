/* choose.c - chooses the strict cases of a gallery.
 *
 * Places are filled one after the other. Each place gets the remaining case that comes first in the
 * order of
 *
 *   1. the requirement of the place: one maneuver other than stop for the first place, several
 *      maneuvers for all others; cases with only stop come last
 *   2. the number of times that its set of maneuvers was chosen
 *   3. the number of times that its map was chosen
 *   4. SHA-256("SEED:SCENARIO_ID")
 *
 * The rule does not use any future, because the maneuvers are those of the forecasts.
 * Test: tests/gallery/test_choose.c
 */
#include "gallery/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *bj_gallery_rule(void) {
    return "The focal road user of every case is a vehicle or bus, "
           "and no candidate of either model leaves the road: "
           "every point is within 3 m of the cached polylines, "
           "and within 0.1 m of the drivable areas. "
           "A maneuver is the type of a candidate's end (stop: within 2 m; "
           "left, right: 30 degrees or more; otherwise straight), "
           "and it counts if it has at least 0.05 of the branch model's weight. "
           "The first place gets a case with exactly one maneuver that is not a stop. "
           "All other places get cases with several maneuvers. "
           "If there is no such case, other cases follow, and cases with only a stop come last. "
           "Ties go to the case whose set of maneuvers was chosen least often so far, "
           "then to the case whose map was chosen least often, "
           "then to the smallest SHA-256 of SEED:SCENARIO_ID. "
           "No future is read, and no candidate is moved, reweighted or left out.";
}

void bj_gallery_order(unsigned char order[BJ_SHA256_BYTES], uint64_t seed,
                      const char *scenario_id) {
    bj_sha256 hash;
    char text[24];
    int length = 0;
    for (uint64_t rest = seed; rest >= 10; rest /= 10) length++;
    text[length + 1] = ':';
    for (int i = length; i >= 0; i--, seed /= 10) text[i] = (char)('0' + seed % 10);
    bj_sha256_init(&hash);
    bj_sha256_update(&hash, text, (size_t)length + 2);
    bj_sha256_update(&hash, scenario_id, strlen(scenario_id));
    bj_sha256_final_bytes(&hash, order);
}

/* ------------------------------------------------------------------------------------ maneuvers */

static int ending(double x, double y) {
    const double degrees = atan2(y, x) * 57.29577951308232;
    if (sqrt(x * x + y * y) < 2) return 0;
    return degrees >= 30 ? 2 : degrees <= -30 ? 3 : 1;
}

unsigned bj_gallery_maneuvers(int K, int F, const double *weights, const double *trajectories) {
    double mass[4] = {0, 0, 0, 0};
    unsigned bits = 0;
    for (int k = 0; k < K; k++) {
        const double *end = trajectories + 2 * ((size_t)(k + 1) * (size_t)F - 1);
        mass[ending(end[0], end[1])] += weights[k];
    }
    for (int i = 0; i < 4; i++)
        if (mass[i] >= BJ_GALLERY_MASS) bits |= 1u << i;
    return bits;
}

static int is_several(unsigned bits) { return (bits & (bits - 1)) != 0; }

/* ----------------------------------------------------------------------------------------- rule */

static int by_order(const void *a, const void *b) {
    const bj_strict_case *x = a, *y = b;
    const int order = memcmp(x->order, y->order, sizeof x->order);
    return order ? order : (x->scene > y->scene) - (x->scene < y->scene);
}

/* Returns 0 if the case meets the requirement for the place. */
static int rank_for(const bj_strict_case *c, int place) {
    if (c->maneuvers == BJ_GALLERY_STOP) return 2;
    return is_several(c->maneuvers) != (place > 0);
}

typedef struct standing {
    int rank, kind, map;
} standing;

static standing look_at(const bj_strict_case *cases, int64_t index, const int64_t *chosen,
                        int place) {
    standing s = {rank_for(&cases[index], place), 0, 0};
    for (int i = 0; i < place; i++) {
        s.kind += cases[chosen[i]].maneuvers == cases[index].maneuvers;
        s.map += cases[chosen[i]].map == cases[index].map;
    }
    return s;
}

static int is_before(const standing *a, const standing *b) {
    if (a->rank != b->rank) return a->rank < b->rank;
    return a->kind != b->kind ? a->kind < b->kind : a->map < b->map;
}

int bj_gallery_choose(int64_t *chosen, int wanted, bj_strict_case *cases, int64_t count) {
    int place = 0;
    if (count > 0) qsort(cases, (size_t)count, sizeof *cases, by_order);
    for (int64_t i = 0; i < count; i++) cases[i].taken = 0;
    for (; place < wanted && place < count; place++) {
        int64_t best = -1;
        standing leads = {0, 0, 0};
        for (int64_t i = 0; i < count; i++) {
            if (cases[i].taken) continue;
            const standing s = look_at(cases, i, chosen, place);
            if (best >= 0 && !is_before(&s, &leads)) continue;
            best = i;
            leads = s;
        }
        chosen[place] = best;
        cases[best].taken = 1;
    }
    return place;
}
