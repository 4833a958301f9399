/* groups.c - see groups.h. */
#include "eval/groups.h"

#include <string.h>

#include "core/alloc.h"

static const char *const kind_names[BJ_GROUP_KINDS] = {"all", "maneuver", "type", "city", "speed"};

const char *bj_group_by(const bj_group *group) { return kind_names[group->kind]; }

int bj_speed_bin(double speed) {
    return speed < 2 ? 0 : speed < 5 ? 1 : speed < 10 ? 2 : speed < 15 ? 3 : 4;
}

const char *bj_speed_bin_name(int bin) {
    static const char *const names[BJ_SPEED_BINS] = {"0-2", "2-5", "5-10", "10-15", "15+"};
    return names[bin];
}

/* ---------------------------------------------------------------------------------------- keys */

typedef struct group_key {
    int kind, place;
    const char *key;
} group_key;

static void keys_of(group_key keys[BJ_GROUP_KINDS], const bj_scene_class *c) {
    const int bin = bj_speed_bin(c->speed);
    keys[BJ_BY_ALL] = (group_key){BJ_BY_ALL, 0, "all"};
    keys[BJ_BY_MANEUVER] =
        (group_key){BJ_BY_MANEUVER, (int)c->maneuver, bj_maneuver_name(c->maneuver)};
    keys[BJ_BY_TYPE] = (group_key){BJ_BY_TYPE, 0, c->type};
    keys[BJ_BY_CITY] = (group_key){BJ_BY_CITY, 0, c->city};
    keys[BJ_BY_SPEED] = (group_key){BJ_BY_SPEED, bin, bj_speed_bin_name(bin)};
}

/* Returns a negative value if the key comes before the group, and 0 if they are equal. */
static int compare(const group_key *k, const bj_group *g) {
    if (k->kind != g->kind) return k->kind - g->kind;
    if (k->place != g->place) return k->place - g->place;
    return strcmp(k->key, g->key);
}

/* Returns the index of the key, or the index at which to insert it. */
static int place_of(const bj_groups *s, const group_key *k) {
    int at = 0;
    while (at < s->count && compare(k, &s->list[at]) > 0) at++;
    return at;
}

/* -------------------------------------------------------------------------------------- groups */

static void free_group(bj_group *g) {
    bj_metrics_free(g->metrics);
    bj_free(g->sums);
    bj_free(g->key);
}

static bj_status make_group(bj_group *g, const bj_groups *s, const group_key *k, bj_error *err) {
    bj_status status;
    const size_t length = strlen(k->key) + 1;
    *g = (bj_group){.kind = k->kind, .place = k->place};
    BJ_GOTO(status, fail, BJ_ALLOC(g->key, length, err));
    memcpy(g->key, k->key, length);
    BJ_GOTO(status, fail, BJ_ALLOC(g->sums, (size_t)s->sums, err));
    /* One time step is enough, because this accumulator only adds values that were measured
     * elsewhere. */
    BJ_GOTO(status, fail, bj_metrics_create(&g->metrics, s->K, s->latents, s->D, 1, err));
    return BJ_OK;
fail:
    free_group(g);
    return status;
}

static bj_status make_room(bj_groups *s, bj_error *err) {
    bj_group *larger;
    if (s->count < s->room) return BJ_OK;
    const int room = s->room ? 2 * s->room : 32;
    BJ_TRY(BJ_ALLOC(larger, (size_t)room, err));
    if (s->list) memcpy(larger, s->list, (size_t)s->count * sizeof *larger);
    bj_free(s->list);
    s->list = larger;
    s->room = room;
    return BJ_OK;
}

static bj_status admit(bj_groups *s, const group_key *k, bj_error *err) {
    bj_group made;
    const int at = place_of(s, k);
    if (at < s->count && !compare(k, &s->list[at])) return BJ_OK;
    BJ_TRY(make_room(s, err));
    BJ_TRY(make_group(&made, s, k, err));
    memmove(s->list + at + 1, s->list + at, (size_t)(s->count - at) * sizeof *s->list);
    s->list[at] = made;
    s->count++;
    return BJ_OK;
}

bj_status bj_groups_start(bj_groups *groups, bj_error *err) {
    return admit(groups, &(group_key){BJ_BY_ALL, 0, "all"}, err);
}

bj_status bj_groups_admit(bj_groups *groups, const bj_scene_class *scene, bj_error *err) {
    group_key keys[BJ_GROUP_KINDS];
    keys_of(keys, scene);
    for (int i = 0; i < BJ_GROUP_KINDS; i++) BJ_TRY(admit(groups, &keys[i], err));
    return BJ_OK;
}

void bj_groups_find(bj_group *found[BJ_GROUP_KINDS], const bj_groups *groups,
                    const bj_scene_class *scene) {
    group_key keys[BJ_GROUP_KINDS];
    keys_of(keys, scene);
    for (int i = 0; i < BJ_GROUP_KINDS; i++) found[i] = &groups->list[place_of(groups, &keys[i])];
}

void bj_groups_trim(bj_groups *groups) {
    int kept = 0;
    for (int i = 0; i < groups->count; i++) {
        bj_group *g = &groups->list[i];
        if (g->kind == BJ_BY_ALL || bj_metrics_values(g->metrics).scenes > 0)
            groups->list[kept++] = *g;
        else free_group(g);
    }
    groups->count = kept;
}

void bj_groups_reset(bj_groups *groups) {
    for (int i = 0; i < groups->count; i++) free_group(&groups->list[i]);
    bj_free(groups->list);
    groups->list = NULL;
    groups->count = groups->room = 0;
}
