/* law_blind.c - the law of a scene for an observer who sees only the features.
 *
 *   M = sum_h prior(h) Q_h        h: control of the junction ahead, speed limits of the streets
 *
 * Q_h is the law that would follow from the recorded past if the hidden quantities were h. In
 * version 1 the scene is generated again from the seed in the law file, and its law is computed for
 * every h:
 *
 *   control   signal, stop sign, or priority of one of the two streets, with the probabilities of
 *             the generator given the streets, arms, crossings and turning lanes
 *             (bj_town_control_odds); a roundabout is visible and therefore not hidden
 *   limits    all values of the vehicle's own street; the values of the other streets cycle along
 *             with it, from a random start per scene, so every street takes each of its values
 *             equally often. Values that are too low for a vehicle seen on the street are excluded
 *
 * Other information that the past contains about h is not used. In version 2 nothing is hidden, so
 * M is the law.
 * Test: tests/world/test_law_blind.c
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "world/law_file.h"

enum { CONTROLS = 4, SPEEDS = 6, MODES = CONTROLS * SPEEDS * BJ_LAW_MODES, SPLIT = 32 };

struct bj_law_blind {
    const bj_law *law;
    int version;
    uint64_t seed;
    char split[SPLIT];
    int64_t number; /* index of the town, or -1 */
    bj_town *town, *changed;
    bj_world_scene *scene;
    bj_rows rows[BJ_WORLD_AGENTS];
    bj_law_record *record;
    /* The mixture. */
    int count;
    double weight[MODES];
    uint8_t intent[MODES];
    float mean[MODES][BJ_LAW_STEPS][2];
    float factor[MODES][BJ_LAW_FACTORS][BJ_LAW_STEPS][2];
};

void bj_law_blind_free(bj_law_blind *b) {
    if (!b) return;
    bj_free(b->town);
    bj_free(b->changed);
    bj_free(b->scene);
    bj_free(b->record);
    bj_free(b);
}

/* Reads world version, seed and split from the metadata. */
static bj_status read_source(bj_law_blind *b, bj_error *err) {
    const char *world = bj_law_fact(b->law, "world"), *seed = bj_law_fact(b->law, "seed");
    const char *split = bj_law_fact(b->law, "split");
    char *end = NULL;
    b->version = world ? atoi(world) : 1;
    if (b->version < 1 || b->version > BJ_WORLD_VERSION)
        return BJ_FAIL(err, BJ_EVERSION,
                       "distribution file: the world version is '%.20s', expected 1 to %d", world,
                       BJ_WORLD_VERSION);
    if (seed) b->seed = strtoull(seed, &end, 10);
    if (!seed || !*seed || *end || !split || strlen(split) >= SPLIT)
        return BJ_FAIL(err, BJ_EFORMAT,
                       "distribution file: seed is '%.40s' and split is '%.40s', "
                       "expected a number and a name",
                       seed ? seed : "not stated", split ? split : "not stated");
    memcpy(b->split, split, strlen(split) + 1);
    return BJ_OK;
}

bj_status bj_law_blind_create(bj_law_blind **out, const bj_law *law, bj_error *err) {
    bj_law_blind *b;
    *out = NULL;
    BJ_TRY(BJ_ALLOC(b, 1, err));
    b->law = law;
    b->number = -1;
    bj_status status = read_source(b, err);
    if (status == BJ_OK) status = BJ_ALLOC(b->town, 1, err);
    if (status == BJ_OK) status = BJ_ALLOC(b->changed, 1, err);
    if (status == BJ_OK) status = BJ_ALLOC(b->scene, 1, err);
    if (status == BJ_OK) status = BJ_ALLOC(b->record, 1, err);
    if (status != BJ_OK) {
        bj_law_blind_free(b);
        return status;
    }
    *out = b;
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------- the scene */

static bj_status make_scene(bj_law_blind *b, const bj_law_scene *law, bj_error *err) {
    char digits[9] = "";
    strncpy(digits, law->scenario_id, 8);
    const int64_t index = (int64_t)strtoull(digits, NULL, 16);
    const int64_t number = index / BJ_WORLD_TOWN_SCENES;
    if (number != b->number)
        BJ_TRY(bj_town_make(b->town, b->version, b->seed, b->split, number, err));
    b->number = number;
    bj_world_scene *s = b->scene;
    bj_world_scene_observe(s, b->town, b->seed, b->split, index);
    bj_world_scene_id(s->id, b->version, b->seed, b->split, index);
    const bj_row *frame = &s->rows[0][BJ_WORLD_OBSERVED - 1];
    if (strcmp(s->id, law->scenario_id) || frame->x != law->origin[0] || frame->y != law->origin[1])
        return BJ_FAIL(
            err, BJ_EFORMAT, "scene %s is not scene %lld of world version %d, seed %llu, split %s",
            law->scenario_id, (long long)index, b->version, (unsigned long long)b->seed, b->split);
    bj_world_scene_rows(b->rows, s);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ mixing */

/* Adds the law of the scene in the modified town and merges equal modes. */
static void add_law(bj_law_blind *b, double share) {
    bj_law_record *r = b->record;
    b->scene->traffic.town = b->changed;
    bj_law_make(&b->scene->law, &b->scene->traffic, b->rows);
    bj_law_record_fill(r, b->scene);
    for (int m = 0; m < r->count; m++) {
        int at = 0;
        while (at < b->count && (memcmp(b->mean[at], r->mean[m], sizeof r->mean[m]) ||
                                 memcmp(b->factor[at], r->factor[m], sizeof r->factor[m])))
            at++;
        if (at == b->count) {
            memcpy(b->mean[at], r->mean[m], sizeof r->mean[m]);
            memcpy(b->factor[at], r->factor[m], sizeof r->factor[m]);
            b->intent[at] = r->intent[m];
            b->weight[at] = 0;
            b->count++;
        }
        b->weight[at] += share * r->weight[m];
    }
}

/* Adds the laws for every possible control of the junction. `node` is -1 if the control is not
 * hidden. */
static void add_controls(bj_law_blind *b, int node, double share) {
    if (node < 0) {
        add_law(b, share);
        return;
    }
    const bj_control_odds o = bj_town_control_odds(b->town, node);
    const struct {
        bj_control control;
        int major;
        double odds;
    } all[CONTROLS] = {{BJ_CONTROL_SIGNAL, 0, o.signal},
                       {BJ_CONTROL_STOP, 0, o.stop},
                       {BJ_CONTROL_PRIORITY, 1, o.priority * o.vertical},
                       {BJ_CONTROL_PRIORITY, 0, o.priority * (1 - o.vertical)}};
    for (int i = 0; i < CONTROLS; i++) {
        if (!(all[i].odds > 0)) continue;
        b->changed->nodes[node].control = all[i].control;
        b->changed->nodes[node].major = all[i].major;
        add_law(b, share * all[i].odds);
    }
}

/* ------------------------------------------------------------------------------------- limits */

static void change_limits(bj_law_blind *b, const double speed[BJ_TOWN_STREETS]) {
    bj_town *t = b->changed;
    for (int i = 0; i < t->lane_count; i++) {
        bj_road_lane *l = &t->lanes[i];
        if (l->bike || (l->node >= 0 && t->nodes[l->node].control == BJ_CONTROL_ROUNDABOUT))
            continue;
        const int from = l->street >= 0 ? l->street : t->lanes[l->prev[0]].street;
        const int to = l->street >= 0 ? l->street : t->lanes[l->next[0]].street;
        l->speed = speed[from] < speed[to] ? speed[from] : speed[to];
        if (l->speed > l->curve_speed) l->speed = l->curve_speed;
        if (l->speed < 2.5) l->speed = 2.5;
    }
}

/* Returns the street of a lane. For a lane in a junction, returns the street from which it
 * comes. */
static int street_of(const bj_town *town, int lane) {
    for (int k = 0; k < 8 && town->lanes[lane].street < 0 && town->lanes[lane].prev_count; k++)
        lane = town->lanes[lane].prev[0];
    return town->lanes[lane].street < 0 ? 0 : town->lanes[lane].street;
}

/* Excludes speed limits that are too low for the visible traffic. No vehicle drives faster than
 * 1.12 times the limit, so `low` is raised until it allows the fastest visible vehicle. */
static void exclude_limits(const bj_law_blind *b, int low[BJ_TOWN_STREETS],
                           const int high[BJ_TOWN_STREETS]) {
    const bj_traffic *tr = &b->scene->traffic;
    for (int i = 0; i < tr->count; i++) {
        const bj_agent *a = &tr->agents[i];
        double v, acceleration;
        if (a->mover != BJ_MOVER_DRIVES || !b->rows[i]) continue;
        if (b->town->lanes[a->route[a->at]].street < 0) continue;
        const int street = b->town->lanes[a->route[a->at]].street;
        bj_law_motion(&v, &acceleration, b->rows[i]);
        while (low[street] < high[street] && 1.12 * low[street] + 0.5 < v) low[street]++;
    }
}

static void add_limits(bj_law_blind *b, int node) {
    const bj_town *t = b->town;
    const int own = street_of(t, b->scene->law.observed.lane);
    int low[BJ_TOWN_STREETS], high[BJ_TOWN_STREETS], start[BJ_TOWN_STREETS];
    bj_rng rng = bj_rng_named(b->seed, b->scene->id);
    for (int i = 0; i < t->street_count; i++) {
        bj_street_speeds(&t->streets[i], &low[i], &high[i]);
        start[i] = bj_world_integer(&rng, 0, 29);
    }
    exclude_limits(b, low, high);
    const int count = high[own] - low[own] + 1;
    for (int k = 0; k < count; k++) {
        double speed[BJ_TOWN_STREETS];
        for (int i = 0; i < t->street_count; i++)
            speed[i] = low[i] + (i == own ? k : (k + start[i]) % (high[i] - low[i] + 1));
        change_limits(b, speed);
        add_controls(b, node, 1.0 / count);
    }
}

/* ---------------------------------------------------------------------------------- interface */

bj_status bj_law_blind_at(bj_law_scene *out, bj_law_blind *b, int64_t index, int hidden,
                          bj_error *err) {
    *out = bj_law_at(b->law, index);
    if (b->version > 1 || !hidden) return BJ_OK;
    BJ_TRY(make_scene(b, out, err));
    b->count = 0;
    *b->changed = *b->town;
    int node = hidden & BJ_HIDDEN_CONTROL ? b->scene->law.observed.node : -1;
    if (node >= 0 && b->town->nodes[node].control == BJ_CONTROL_ROUNDABOUT) node = -1;
    if (hidden & BJ_HIDDEN_LIMITS) add_limits(b, node);
    else add_controls(b, node, 1);
    out->modes = b->count;
    out->realized = -1;
    out->weights = b->weight;
    out->intents = b->intent;
    out->means = b->mean[0][0];
    out->factor = b->factor[0][0][0];
    return BJ_OK;
}
