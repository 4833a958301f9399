/* scene.c - see scene.h. */
#include "world/scene.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world/populate.h"

enum { WARM_UP = 15, LAST = BJ_WORLD_OBSERVED - 1 };

/* Random streams of a scene. */
enum { STREAM_ID, STREAM_SCENE, STREAM_SIGHT, STREAM_NOISE, STREAM_DRAW };

static uint64_t scene_key(uint64_t seed, const char *split, int64_t index, int stream) {
    return bj_world_hash(seed, bj_world_hash_text(split), (uint64_t)index, (uint64_t)stream + 1000);
}

void bj_world_scene_id(char id[BJ_SCENARIO_NAME], int version, uint64_t seed, const char *split,
                       int64_t index) {
    const uint64_t a = scene_key(seed, split, index, STREAM_ID), b = bj_world_hash(a, 0, 0, 0);
    snprintf(id, BJ_SCENARIO_NAME, "%08llx-%04x-%c%03x-%04x-%012llx",
             (unsigned long long)index & 0xffffffffu, (unsigned)(a & 0xffff),
             version == 1 ? '5' : '8', (unsigned)(a >> 16 & 0xfff),
             (unsigned)(0x8000 | (a >> 32 & 0x3fff)), (unsigned long long)(b & 0xffffffffffffu));
}

bj_status bj_world_check_split(const char *split, bj_error *err) {
    const size_t size = 32; /* including the terminator */
    size_t n = 0;
    while (n < size &&
           (isalnum((unsigned char)split[n]) || (n && strchr("-_", split[n]) && split[n])))
        n++;
    if (split[n] || n == 0 || n >= size)
        return BJ_FAIL(err, BJ_EARG,
                       "split: found '%.40s', expected 1 to 31 letters, digits, '-' or '_'", split);
    return BJ_OK;
}

bj_status bj_world_choose_version(int *out, int version, bj_error *err) {
    if (version < 0 || version > BJ_WORLD_VERSION)
        return BJ_FAIL(err, BJ_EARG,
                       "world: found version %d, expected 1 to %d, or 0 for the default", version,
                       BJ_WORLD_VERSION);
    *out = version ? version : BJ_WORLD_VERSION;
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------- the past */

/* Simulates the observed steps. Near the end, the focal vehicle may start to leave its lane. */
static void drive_past(bj_world_scene *scene, bj_rng *rng) {
    bj_traffic *tr = &scene->traffic;
    bj_agent *focal = &tr->agents[0];
    const int sways = bj_world_chance(rng, 0.3), from = bj_world_integer(rng, 30, 46);
    const double rate = bj_world_uniform(rng, 0.15, 0.6);
    const int left = bj_world_chance(rng, 0.5);
    for (int t = -WARM_UP; t < BJ_WORLD_OBSERVED; t++) {
        if (sways && t == from) {
            const bj_road_lane *lane = &tr->town->lanes[focal->route[focal->at]];
            const int there = left ? lane->change_left : lane->change_right;
            if (lane->node < 0 && there >= 0) focal->drift = left ? rate : -rate;
        }
        bj_traffic_step(tr, t, NULL, 0);
    }
    bj_traffic_walkers(tr);
}

/* --------------------------------------------------------------------------------------- sight */

/* Chooses the steps in which the sensor sees each agent. The focal and the ego vehicle are always
 * seen. Everything on which the law depends is visible in steps 38 to 49: vehicles ahead of the
 * focal vehicle and pedestrians on crossings. */
static void see(bj_world_scene *scene, bj_rng *rng) {
    const bj_traffic *tr = &scene->traffic;
    const bj_motion *focal = &tr->agents[0].path[LAST];
    double fs, fc;
    bj_world_sincos(&fs, &fc, focal->heading);
    for (int i = 0; i < tr->count; i++) {
        const bj_agent *a = &tr->agents[i];
        const double dx = a->path[LAST].x - focal->x, dy = a->path[LAST].y - focal->y;
        const double kind = bj_rng_uniform(rng);
        int from = 0, until = BJ_WORLD_STEPS;
        const int early = bj_world_integer(rng, 1, 75), late = bj_world_integer(rng, 15, 108);
        const int begin = bj_world_integer(rng, 0, 90), rows = bj_world_integer(rng, 8, 60);
        const int gap = bj_world_integer(rng, 5, 100), missing = bj_world_integer(rng, 1, 9);
        int holes = 0;
        if (i > 1) {
            if (kind < 0.25) from = early;
            else if (kind < 0.48) until = late;
            else if (kind < 0.66) from = begin, until = begin + rows < 110 ? begin + rows : 110;
            else if (kind < 0.78) holes = 1;
        }
        const int needed = (a->mover == BJ_MOVER_DRIVES && dx * fc + dy * fs > -3 &&
                            dx * dx + dy * dy < 95 * 95) ||
                           (a->crossing >= 0 && dx * dx + dy * dy < 60 * 60);
        if (needed && from > 38) from = 38;
        if (needed && until < BJ_WORLD_OBSERVED) until = BJ_WORLD_OBSERVED;
        for (int t = 0; t < BJ_WORLD_STEPS; t++) {
            const int hole = holes && t >= gap && t < gap + missing;
            scene->seen[i][t] =
                t >= from && t < until && (!hole || (needed && t >= 38 && t < BJ_WORLD_OBSERVED));
        }
        if (a->mover == BJ_MOVER_WALKS && a->crossing >= 0)
            for (int t = 0; t < BJ_WORLD_STEPS; t++) /* may appear and disappear, as if through
                                                        doors */
                if (t < a->from - 12 || t > a->until + 25) scene->seen[i][t] = 0;
    }
}

/* Adds sensor noise: white noise on the position, and slowly varying errors of velocity and
 * heading. */
static void sense(bj_world_scene *scene, int agent, int from, int until) {
    const bj_agent *a = &scene->traffic.agents[agent];
    bj_rng *rng = &scene->noise[agent];
    double *slow = scene->slow[agent];
    const double still = a->mover == BJ_MOVER_STANDS ? 0.3 : 1;
    const double walks = a->kind == BJ_KIND_PEDESTRIAN ? 1.5 : 1;
    const double jitter = BJ_LAW_JITTER * still * walks;
    for (int t = from; t < until; t++) {
        if (!scene->seen[agent][t]) continue;
        const bj_motion *m = &a->path[t];
        bj_row *row = &scene->rows[agent][t];
        double fresh[4];
        bj_world_jitter2(fresh, rng);
        bj_world_jitter2(fresh + 2, rng);
        slow[0] = 0.92 * slow[0] + 0.392 * fresh[2];
        slow[1] = 0.92 * slow[1] + 0.392 * fresh[3];
        /* The heading error reuses the two velocity draws, which saves a draw. */
        slow[2] = 0.7 * slow[2] + 0.505 * (fresh[2] - fresh[3]);
        const double speed = fabs(m->vx) + fabs(m->vy);
        const double error = (0.02 + 0.3 * bj_world_clamp(speed / 4, 0, 1)) * still;
        row->x = m->x + jitter * fresh[0];
        row->y = m->y + jitter * fresh[1];
        row->vx = m->vx + error * slow[0];
        row->vy = m->vy + error * slow[1];
        row->heading = bj_world_wrap(m->heading + 0.004 * still * slow[2]);
    }
}

/* Hides agents that have left the map. */
static void hide(bj_world_scene *scene, int step) {
    const bj_traffic *tr = &scene->traffic;
    for (int i = 2; i < tr->count; i++) {
        const bj_agent *a = &tr->agents[i];
        if (a->mover != BJ_MOVER_DRIVES) continue;
        const double beyond = a->s - tr->town->lanes[a->route[a->at]].length;
        if (beyond > 25 || a->s < -25) scene->seen[i][step] = 0;
    }
}

/* Returns 1 if agent i is one of the neighbors in the features. */
static int is_kept(const bj_world_scene *scene, int i) {
    const bj_row *focal = &scene->rows[0][LAST];
    int nearer = 0;
    double limit = 0;
    for (int k = -1; k < scene->traffic.count; k++) {
        const int other = k < 0 ? i : k;
        if (k == 0 || k == i || !scene->seen[other][LAST]) continue;
        const bj_row *r = &scene->rows[other][LAST];
        const double dx = r->x - focal->x, dy = r->y - focal->y;
        const double rank = bj_features_rank(dx * dx + dy * dy);
        if (k < 0) limit = rank;
        else nearer += rank <= limit;
    }
    return nearer < BJ_AV2_NEIGHBORS;
}

void bj_world_scene_rows(bj_rows rows[BJ_WORLD_AGENTS], const bj_world_scene *scene) {
    for (int i = 0; i < scene->traffic.count; i++) {
        int seen = 1;
        for (int t = 38; t < BJ_WORLD_OBSERVED; t++) seen &= scene->seen[i][t];
        if (i && seen && scene->traffic.town->version > 1) seen = is_kept(scene, i);
        rows[i] = seen ? scene->rows[i] : NULL;
    }
}

void bj_world_scene_observe(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                            const char *split, int64_t index) {
    bj_rng rng = bj_rng_seed(scene_key(seed, split, index, STREAM_SCENE));
    scene->index = index;
    bj_world_populate(&scene->traffic, town, &rng);
    drive_past(scene, &rng);
    bj_rng sight = bj_rng_seed(scene_key(seed, split, index, STREAM_SIGHT));
    see(scene, &sight);
    const uint64_t noise = scene_key(seed, split, index, STREAM_NOISE);
    bj_rows rows[BJ_WORLD_AGENTS];
    for (int i = 0; i < scene->traffic.count; i++) {
        scene->noise[i] = bj_rng_seed(bj_world_hash(noise, (uint64_t)i, 0, 0));
        memset(scene->slow[i], 0, sizeof scene->slow[i]);
        sense(scene, i, 0, BJ_WORLD_OBSERVED);
    }
    bj_world_scene_rows(rows, scene);
    bj_law_make(&scene->law, &scene->traffic, rows);
}

/* ---------------------------------------------------------------------------------- the future */

static int draw_future(double smooth[BJ_LAW_STEPS][2], double stored[BJ_LAW_STEPS][2],
                       const bj_world_scene *scene, uint64_t seed, const char *split,
                       uint64_t draw) {
    const uint64_t key = scene_key(seed, split, scene->index, STREAM_DRAW);
    bj_rng rng = bj_rng_seed(bj_world_hash(key, draw, 0, 0));
    const int mode = bj_law_draw(&scene->law, &rng, smooth);
    for (int t = 0; t < BJ_LAW_STEPS; t++)
        for (int k = 0; k < 2; k++)
            stored[t][k] = smooth[t][k] + BJ_LAW_JITTER * bj_world_jitter(&rng);
    return mode;
}

int bj_world_scene_future(double future[BJ_LAW_STEPS][2], const bj_world_scene *scene,
                          uint64_t seed, const char *split, uint64_t draw) {
    double smooth[BJ_LAW_STEPS][2];
    return draw_future(smooth, future, scene, seed, split, draw);
}

/* Simulates the future. The focal vehicle, its leaders and the lights follow the drawn mode. */
static void drive_future(bj_world_scene *scene, double smooth[BJ_LAW_STEPS][2]) {
    bj_traffic *tr = &scene->traffic;
    const bj_mode *m = &scene->law.modes[scene->mode];
    const bj_observed *o = &scene->law.observed;
    if (m->green >= 0 && o->node >= 0) {
        const bj_road_lane *lane = NULL;
        for (int i = 0; i < m->route_count && !lane; i++)
            if (tr->town->lanes[m->route[i]].approach == o->node)
                lane = &tr->town->lanes[m->route[i]];
        if (lane)
            tr->lights[o->node] = (bj_light){m->green ? lane->arm % 2 : 1 - lane->arm % 2, 100000};
    }
    for (int k = 0; k <= BJ_LAW_LEADERS; k++) {
        const int agent = m->scripts[k].agent;
        if (agent < 0) continue;
        bj_agent *a = &tr->agents[agent];
        memcpy(a->route, m->route, sizeof a->route);
        a->route_count = m->route_count;
        a->at = 0;
        while (a->at + 1 < a->route_count &&
               a->route[a->at] != m->scripts[k].lane[BJ_WORLD_OBSERVED])
            a->at++;
    }
    for (int t = 0; t < BJ_LAW_STEPS; t++) {
        const int step = BJ_WORLD_OBSERVED + t;
        bj_traffic_step(tr, step, m->scripts, 1 + BJ_LAW_LEADERS);
        for (int k = 1; k <= BJ_LAW_LEADERS; k++)
            if (m->scripts[k].agent >= 0)
                tr->agents[m->scripts[k].agent].path[step] = m->leader_path[k - 1][t];
        hide(scene, step);
        /* Compute the velocity as a central difference, or as a one-sided difference at the end. */
        const double *here = smooth[t], *next = smooth[t + 1 < BJ_LAW_STEPS ? t + 1 : t];
        const bj_motion *start = &tr->agents[0].path[LAST];
        const double first[2] = {start->x, start->y}, *before = t ? smooth[t - 1] : first;
        const double span = t + 1 < BJ_LAW_STEPS ? 0.2 : 0.1;
        tr->agents[0].path[step] =
            (bj_motion){here[0], here[1], m->heading[t], (next[0] - before[0]) / span,
                        (next[1] - before[1]) / span};
    }
}

/* ------------------------------------------------------------------------------------ scenario */

static bj_text text_of(const char *text) { return (bj_text){text, strlen(text)}; }

/* Assigns track names. Names are numbers, except for the ego vehicle "AV", which sorts after
 * them. */
static void name_tracks(bj_world_scene *scene, uint64_t key) {
    const int n = scene->traffic.count;
    for (int i = 0; i < n; i++) {
        uint64_t number = bj_world_hash(key, (uint64_t)i, 0, 0);
        for (int fresh = 0; !fresh; number++) {
            if (i == 1) snprintf(scene->names[i], sizeof scene->names[i], "AV");
            else
                snprintf(scene->names[i], sizeof scene->names[i], "%u",
                         (unsigned)(1000 + number % 250000));
            fresh = 1;
            for (int k = 0; k < i; k++) fresh &= strcmp(scene->names[i], scene->names[k]) != 0;
        }
    }
}

static int categorize(const bj_world_scene *scene, int i) {
    if (i < 2) return i ? 1 : 3;
    int rows = 0;
    for (int t = 0; t < BJ_WORLD_STEPS; t++) rows += scene->seen[i][t];
    if (rows < 50) return 0;
    const bj_motion *a = &scene->traffic.agents[i].path[0], *b = a + BJ_WORLD_STEPS - 1;
    const bj_motion *f = &scene->traffic.agents[0].path[LAST];
    const double way = fabs(b->x - a->x) + fabs(b->y - a->y);
    const double dx = a[LAST].x - f->x, dy = a[LAST].y - f->y;
    return rows == BJ_WORLD_STEPS && way > 3 && dx * dx + dy * dy < 50 * 50 ? 2 : 1;
}

/* Lists the rows at steps below `until`, and all rows of the focal vehicle. */
static void list_rows(bj_world_scene *scene, int until) {
    const bj_traffic *tr = &scene->traffic;
    bj_scenario *out = &scene->scenario;
    int order[BJ_WORLD_AGENTS], n = 0;
    for (int i = 0; i < tr->count; i++) {
        int any = 0;
        for (int t = 0; t < until; t++) any |= scene->seen[i][t];
        if (!any) continue;
        int at = n++;
        for (; at > 0 && strcmp(scene->names[order[at - 1]], scene->names[i]) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    int64_t rows = 0;
    for (int k = 0; k < n; k++) {
        const int i = order[k];
        scene->agent_of[k] = i;
        scene->track_id[k] = text_of(scene->names[i]);
        scene->type[k] = text_of(bj_kind_name(tr->agents[i].kind));
        if (i == 0) out->focal = k;
        for (int t = 0; t < (i ? until : BJ_WORLD_STEPS); t++) {
            if (!scene->seen[i][t]) continue;
            const bj_row *r = &scene->rows[i][t];
            scene->track[rows] = k;
            scene->step[rows] = t;
            scene->x[rows] = r->x, scene->y[rows] = r->y;
            scene->vx[rows] = r->vx, scene->vy[rows] = r->vy;
            scene->heading[rows] = r->heading;
            rows++;
        }
    }
    out->id = text_of(scene->id);
    out->city = text_of(tr->town->city);
    out->tracks = n;
    out->rows = rows;
    out->track_id = scene->track_id;
    out->type = scene->type;
    out->track = scene->track;
    out->step = scene->step;
    out->x = scene->x, out->y = scene->y;
    out->vx = scene->vx, out->vy = scene->vy;
    out->heading = scene->heading;
}

/* Stores the drawn positions in the future rows of the focal vehicle. */
static void store_future(bj_world_scene *scene, double stored[BJ_LAW_STEPS][2]) {
    for (int t = 0; t < BJ_LAW_STEPS; t++) {
        scene->rows[0][BJ_WORLD_OBSERVED + t].x = stored[t][0];
        scene->rows[0][BJ_WORLD_OBSERVED + t].y = stored[t][1];
    }
}

/* Names the scene and its tracks, and lists the rows at steps below `until`. */
static void finish(bj_world_scene *scene, uint64_t seed, const char *split, int until) {
    bj_world_scene_id(scene->id, scene->traffic.town->version, seed, split, scene->index);
    name_tracks(scene, scene_key(seed, split, scene->index, STREAM_ID));
    scene->start_timestamp = 3.15968e17 + (double)(scene->index % 1000000) * 1.1e10;
    list_rows(scene, until);
}

void bj_world_scene_make(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                         const char *split, int64_t index, uint64_t draw) {
    double smooth[BJ_LAW_STEPS][2], stored[BJ_LAW_STEPS][2];
    bj_world_scene_observe(scene, town, seed, split, index);
    scene->mode = draw_future(smooth, stored, scene, seed, split, draw);
    drive_future(scene, smooth);
    for (int i = 0; i < scene->traffic.count; i++)
        sense(scene, i, BJ_WORLD_OBSERVED, BJ_WORLD_STEPS);
    store_future(scene, stored);
    for (int i = 0; i < scene->traffic.count; i++) scene->category[i] = categorize(scene, i);
    finish(scene, seed, split, BJ_WORLD_STEPS);
}

void bj_world_scene_make_short(bj_world_scene *scene, const bj_town *town, uint64_t seed,
                               const char *split, int64_t index) {
    double smooth[BJ_LAW_STEPS][2], stored[BJ_LAW_STEPS][2];
    bj_world_scene_observe(scene, town, seed, split, index);
    scene->mode = draw_future(smooth, stored, scene, seed, split, 0);
    store_future(scene, stored);
    finish(scene, seed, split, BJ_WORLD_OBSERVED);
}

void bj_world_scene_local(double *x, double *y, const bj_world_scene *scene) {
    const bj_row *o = &scene->rows[0][LAST];
    double s, c;
    bj_world_sincos(&s, &c, o->heading);
    const double dx = *x - o->x, dy = *y - o->y;
    *x = c * dx + s * dy;
    *y = -s * dx + c * dy;
}
