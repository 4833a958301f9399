/* campaign_arms.c - see campaign_arms.h. Test: tests/campaign/test_campaign_arms.c */
#include "campaign/campaign_arms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int bj_campaign_is_arm_name(const char *name) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.=+";
    const size_t length = strlen(name);
    return length && length < BJ_NAME_SIZE && name[0] != '.' && !name[strspn(name, letters)];
}

bj_status bj_campaign_check_key(const bj_assignment *setting, bj_error *err) {
    static const char *const taken[][2] = {
        {"arm", "arms are listed under 'arms'"},
        {"seed", "seeds are listed under 'seeds'"},
        {"anchor", "stage B starts from the anchor-a run with the same seed"},
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (!strcmp(setting->key, taken[i][0]))
            return BJ_FAIL(err, BJ_EARG, "%s: '%s' cannot be set here: %s", setting->origin,
                           setting->key, taken[i][1]);
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- lines */

static bj_status wrong_arm(const bj_assignment *line, bj_error *err) {
    return BJ_FAIL(err, BJ_EARG,
                   "%s: '%s' is not part of an arm, "
                   "expected a built-in arm or {name: NAME, arm: ARM, set: {KEY: VALUE}}",
                   line->origin, line->key);
}

bj_status bj_arm_plan_take_arm(bj_arm_plan *plan, const char *below, const bj_assignment *line,
                               bj_error *err) {
    char *end;
    const unsigned long index = strtoul(below, &end, 10);
    if (end == below || (*end && *end != '.')) return wrong_arm(line, err);
    if (index >= BJ_CAMPAIGN_ARMS)
        return BJ_FAIL(err, BJ_EARG, "%s: more than %d arms", line->origin, BJ_CAMPAIGN_ARMS);
    bj_listed_arm *entry = &plan->listed[index];
    if ((int)index >= plan->count) plan->count = (int)index + 1;
    if (!entry->origin) entry->origin = line->origin;
    const bj_assignment arm = {"arm", line->value, line->origin};
    if (!*end) {
        entry->name = line->value;
        entry->arm = arm;
        return BJ_OK;
    }
    const char *member = end + 1;
    if (!strcmp(member, "name")) entry->name = line->value;
    else if (!strcmp(member, "arm")) entry->arm = arm;
    else if (!strncmp(member, "set.", 4) && member[4]) {
        const bj_assignment setting = {member + 4, line->value, line->origin};
        BJ_TRY(bj_campaign_check_key(&setting, err));
        if (entry->set_count == BJ_ARM_SETS)
            return BJ_FAIL(err, BJ_EARG, "%s: more than %d settings for one arm", line->origin,
                           BJ_ARM_SETS);
        entry->set[entry->set_count++] = setting;
    } else return wrong_arm(line, err);
    return BJ_OK;
}

bj_status bj_arm_plan_take_sweep(bj_arm_plan *plan, const char *below, const bj_assignment *line,
                                 bj_error *err) {
    const char *dot = strrchr(below, '.');
    const int item = dot && dot > below && dot[1] && !dot[1 + strspn(dot + 1, "0123456789")];
    if (!item)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: '%s' has a single value, expected a list; "
                       "for example, sweep: {optim.lr: [1e-3, 3e-4]}",
                       line->origin, line->key);
    char key[BJ_SWEEP_KEY];
    if (snprintf(key, sizeof key, "%.*s", (int)(dot - below), below) >= (int)sizeof key)
        return BJ_FAIL(err, BJ_EARG, "%s: no setting '%.80s'", line->origin, below);
    int at = 0;
    while (at < plan->sweep_count && strcmp(plan->sweeps[at].key, key)) at++;
    if (at == BJ_SWEEP_KEYS)
        return BJ_FAIL(err, BJ_EARG, "%s: more than %d swept settings", line->origin, BJ_SWEEP_KEYS);
    bj_sweep *sweep = &plan->sweeps[at];
    if (at == plan->sweep_count) {
        memcpy(sweep->key, key, sizeof key);
        plan->sweep_count++;
    }
    if (sweep->count == BJ_SWEEP_VALUES)
        return BJ_FAIL(err, BJ_EARG, "%s: more than %d values for '%s'", line->origin,
                       BJ_SWEEP_VALUES, key);
    const bj_assignment setting = {sweep->key, line->value, line->origin};
    BJ_TRY(bj_campaign_check_key(&setting, err));
    for (int i = 0; i < sweep->count; i++)
        if (!strcmp(sweep->values[i].value, line->value))
            return BJ_FAIL(err, BJ_EARG, "%s: the value '%.60s' of '%s' is listed twice", line->origin,
                           line->value, key);
    sweep->values[sweep->count++] = setting;
    return BJ_OK;
}

/* ---------------------------------------------------------------------------------------- checks */

static bj_status check_entry(const bj_arm_plan *plan, int index, const char *file, bj_error *err) {
    const bj_listed_arm *a = &plan->listed[index];
    if (!a->origin) return BJ_FAIL(err, BJ_EARG, "%s: arm %d is empty", file, index);
    if (!a->name || !a->arm.value)
        return BJ_FAIL(err, BJ_EARG, "%s: arms.%d has no '%s', expected {name: NAME, arm: ARM}",
                       a->origin, index, a->name ? "arm" : "name");
    if (strpbrk(a->name, "=+") || !bj_campaign_is_arm_name(a->name))
        return BJ_FAIL(
            err, BJ_EARG,
            "%s: the arm name is '%.60s', expected 1 to %d letters, digits, '-', '_' or '.'",
            a->origin, a->name, BJ_NAME_SIZE - 1);
    if (bj_arm_find(a->name) >= 0 && (a->set_count || strcmp(a->name, a->arm.value)))
        return BJ_FAIL(err, BJ_EARG,
                       "%s: '%s' is the name of a built-in arm; "
                       "choose another name for an arm with its own settings",
                       a->origin, a->name);
    for (int i = 0; i < index; i++)
        if (!strcmp(plan->listed[i].name, a->name))
            return BJ_FAIL(err, BJ_EARG, "%s: arm '%s' is listed twice", a->origin, a->name);
    return BJ_OK;
}

bj_status bj_arm_plan_check(const bj_arm_plan *plan, const char *file, bj_error *err) {
    for (int i = 0; i < plan->count; i++) BJ_TRY(check_entry(plan, i, file, err));
    long arms = plan->count;
    for (int s = 0; s < plan->sweep_count && arms <= BJ_CAMPAIGN_ARMS; s++)
        arms *= plan->sweeps[s].count;
    if (arms > BJ_CAMPAIGN_ARMS)
        return BJ_FAIL(err, BJ_EARG, "%s: the sweep creates more than %d arms", file,
                       BJ_CAMPAIGN_ARMS);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------------ grid */

int bj_arm_plan_combinations(const bj_arm_plan *plan) {
    int count = 1;
    for (int s = 0; s < plan->sweep_count; s++) count *= plan->sweeps[s].count;
    return count;
}

/* Returns the last part of a swept key, or the whole key if another swept key has the same last
 * part. */
static const char *short_key(const bj_arm_plan *plan, int sweep) {
    const char *key = plan->sweeps[sweep].key, *dot = strrchr(key, '.');
    for (int s = 0; s < plan->sweep_count && dot; s++) {
        const char *other = strrchr(plan->sweeps[s].key, '.');
        if (s != sweep && other && !strcmp(other, dot)) return key;
    }
    return dot ? dot + 1 : key;
}

bj_status bj_arm_plan_at(bj_planned_arm *out, const bj_arm_plan *plan, int entry, int combination,
                         bj_error *err) {
    const bj_listed_arm *a = &plan->listed[entry];
    int used = snprintf(out->name, sizeof out->name, "%s", a->name);
    int rest = combination, below = bj_arm_plan_combinations(plan);
    out->arm = a->arm;
    memcpy(out->set, a->set, sizeof a->set);
    out->set_count = a->set_count;
    for (int s = 0; s < plan->sweep_count; s++) {
        below /= plan->sweeps[s].count;
        const bj_assignment *value = &plan->sweeps[s].values[rest / below];
        rest %= below;
        out->set[out->set_count++] = *value;
        if (used < (int)sizeof out->name)
            used += snprintf(out->name + used, sizeof out->name - (size_t)used, "+%s=%s",
                             short_key(plan, s), value->value);
        if (used >= (int)sizeof out->name || !bj_campaign_is_arm_name(out->name))
            return BJ_FAIL(err, BJ_EARG,
                           "%s: the sweep creates the arm name '%.60s', "
                           "expected at most %d letters, digits, '-', '_', '.', '=' or '+'",
                           value->origin, out->name, BJ_NAME_SIZE - 1);
    }
    return BJ_OK;
}
