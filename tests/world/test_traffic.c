/* test_traffic.c - tests the driver model, the lights and the traffic in many scenes. */
#include <stdlib.h>

#include "support/test.h"
#include "world/populate.h"

enum { SCENES = 96 };

static void test_driver_model(void) {
    /* On a free road, a vehicle accelerates fully from standstill, and not at all at the desired
     * speed. */
    CHECK_NEAR(bj_idm(0, 12, 1e9, 0, 1.5, 2, 1.2), 1.5, 0);
    CHECK_NEAR(bj_idm(12, 12, 1e9, 0, 1.5, 2, 1.2), 0, 1e-12);
    CHECK(bj_idm(14, 12, 1e9, 0, 1.5, 2, 1.2) < -1);
    /* In equilibrium, at the gap for which (v/w)^4 + (reach/gap)^2 = 1, there is no
     * acceleration. */
    const double v = 8, reach = 2 + v * 1.2, share = 1 - (v / 12) * (v / 12) * (v / 12) * (v / 12);
    CHECK_NEAR(bj_idm(v, 12, reach / sqrt(share), 0, 1.5, 2, 1.2), 0, 1e-12);
    /* A smaller gap or a higher closing speed causes harder braking, limited to -6. */
    CHECK(bj_idm(8, 12, 8, 0, 1.5, 2, 1.2) < bj_idm(8, 12, 12, 0, 1.5, 2, 1.2));
    CHECK(bj_idm(8, 12, 20, 8, 1.5, 2, 1.2) < bj_idm(8, 12, 20, 0, 1.5, 2, 1.2));
    CHECK_NEAR(bj_idm(15, 12, 0.1, 15, 1.5, 2, 1.2), -6, 0);
}

static void test_lights(void) {
    const bj_light light = {1, 30};
    CHECK(bj_light_green(&light, 1, 29) && !bj_light_green(&light, 0, 29));
    CHECK(!bj_light_green(&light, 1, 30) && !bj_light_green(&light, 0, 30)); /* all red */
    CHECK(!bj_light_green(&light, 0, 49) && bj_light_green(&light, 0, 50));
    CHECK(!bj_light_green(&light, 1, 50));
}

/* Returns 1 if two cars on one route overlap along the road. */
static int overlap(const bj_agent *a, const bj_agent *b, int t) {
    const bj_motion *p = &a->path[t], *q = &b->path[t];
    double s, c;
    bj_world_sincos(&s, &c, p->heading);
    const double dx = q->x - p->x, dy = q->y - p->y;
    const double along = fabs(dx * c + dy * s), across = fabs(-dx * s + dy * c);
    return along < (a->length + b->length) / 2 - 0.6 && across < 1.4 &&
           cos(p->heading - q->heading) > 0.7;
}

static void test_scenes(void) {
    bj_town *town = calloc(1, sizeof *town);
    bj_traffic *tr = calloc(1, sizeof *tr);
    bj_error err = {0};
    long moves = 0, pairs = 0, overlaps = 0, red = 0, drivers = 0, walkers = 0;
    if (!town || !tr) exit(1);
    for (int i = 0; i < SCENES; i++) {
        if (i % 16 == 0)
            CHECK_OK(bj_town_make(town, BJ_WORLD_VERSION, 11, "train", i / 16, &err), err);
        bj_rng rng = bj_rng_seed(bj_world_hash(11, 0, (uint64_t)i, 0));
        bj_world_populate(tr, town, &rng);
        CHECK(tr->count >= 2 && tr->count <= BJ_WORLD_AGENTS);
        for (int t = -15; t < BJ_WORLD_STEPS; t++) {
            int was[BJ_WORLD_AGENTS];
            for (int k = 0; k < tr->count; k++) was[k] = tr->agents[k].route[tr->agents[k].at];
            bj_traffic_step(tr, t, NULL, 0);
            for (int k = 0; k < tr->count; k++) {
                const bj_agent *a = &tr->agents[k];
                if (a->mover != BJ_MOVER_DRIVES || was[k] == a->route[a->at]) continue;
                const bj_road_lane *from = &town->lanes[was[k]],
                                   *to = &town->lanes[a->route[a->at]];
                int linked = 0; /* a step may skip short lanes, but never a stop line */
                for (int q = 0; q < from->next_count; q++)
                    linked |= from->next[q] == a->route[a->at];
                CHECK(linked);
                if (from->approach >= 0 && to->node >= 0 &&
                    town->nodes[to->node].control == BJ_CONTROL_SIGNAL && t > 20)
                    red += !bj_light_green(&tr->lights[to->node], from->arm % 2, t - 20) &&
                           !bj_light_green(&tr->lights[to->node], from->arm % 2, t);
            }
        }
        bj_traffic_walkers(tr);
        for (int k = 0; k < tr->count; k++) {
            const bj_agent *a = &tr->agents[k];
            drivers += a->mover == BJ_MOVER_DRIVES;
            walkers += a->mover == BJ_MOVER_WALKS;
            for (int t = 1; t < BJ_WORLD_STEPS; t++) {
                const bj_motion *p = &a->path[t - 1], *q = &a->path[t];
                const double vx = (p->vx + q->vx) / 2, vy = (p->vy + q->vy) / 2;
                /* The velocity must be the derivative of the position, except for the effect of the
                 * road's curvature. */
                if (a->mover == BJ_MOVER_DRIVES)
                    CHECK_NEAR(hypot((q->x - p->x) * 10 - vx, (q->y - p->y) * 10 - vy), 0, 0.6);
                CHECK(hypot(q->vx, q->vy) < 20);
                moves++;
            }
            for (int j = 0; j < k; j++) {
                const bj_agent *b = &tr->agents[j];
                if (a->mover != BJ_MOVER_DRIVES || b->mover != BJ_MOVER_DRIVES) continue;
                if (a->kind == BJ_KIND_CYCLIST || b->kind == BJ_KIND_CYCLIST) continue;
                pairs++;
                overlaps += overlap(a, b, 49) || overlap(a, b, 105);
            }
        }
    }
    CHECK(drivers > 8 * SCENES && walkers > 2 * SCENES && moves > 0);
    CHECK_MSG(overlaps * 300 < pairs, "%ld of %ld pairs of cars overlap", overlaps, pairs);
    CHECK_MSG(red == 0, "%ld cars passed a light that had been red for two seconds", red);
    free(tr);
    free(town);
}

int main(void) {
    test_driver_model();
    test_lights();
    test_scenes();
    return test_report("world.traffic");
}
