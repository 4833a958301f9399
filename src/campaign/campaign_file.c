/* campaign_file.c - converts FILE.yaml to the grid of runs.
 *
 *   name: demo              letters, digits, '-', '_', '.' data: train.bjc         optional; from
 *   the folder of the file, or world:SEED:SCENES. Or several,
 *                           each with a name:
 *   data: {medium: a.npz, large: b.npz}
 *   dev: dev.bjc            optional; likewise
 *   recipe: small           optional
 *   arms: [fullset, mdn]    built-in arms, or arms with settings of their own, see campaign_arms.h
 *   sweep: {optim.lr: [1e-3, 3e-4]}   optional; every arm with every value
 *   seeds: [0, 1, 2]        or a number: 3 means the same
 *   set: {train.epochs: 4}  optional; any settings but arm, seed and anchor
 *
 * A run's settings are resolved from arm, seed, recipe, anchor, `set` of the file, `set` of the arm,
 * the sweep and `set` of the caller. Later ones override earlier ones. Runs are ordered by seed, then
 * by dataset, then by arm as listed. Stage B runs need the stage A run of their seed, and start from
 * its chosen checkpoint.
 * Test: tests/campaign/test_campaign.c
 */
#define _XOPEN_SOURCE 700 /* realpath, stat */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "campaign/campaign_arms.h"
#include "core/alloc.h"
#include "core/sha256.h"
#include "run/init.h"
#include "run/settings.h"

static const char stage_a[] = "anchor-a";

/* The lines of a campaign file, grouped by purpose. The configuration owns the strings. */
typedef struct plan {
    const char *file;
    const bj_config *config;
    bj_assignment name, data, dev, recipe; /* value NULL: not given */
    bj_assignment sets[BJ_CAMPAIGN_SETS];  /* datasets: name and path */
    int set_count;                         /* 0 if the file has only `data`, or no data at all */
    bj_arm_plan listed;
    bj_planned_arm arms[BJ_CAMPAIGN_ARMS]; /* with the combinations of the sweep */
    int arm_count, combinations;
    bj_assignment seeds[BJ_CAMPAIGN_SEEDS];
    int seed_count;
    char numbers[BJ_CAMPAIGN_SEEDS][12]; /* number of `seeds: 3` */
    bj_assignment *list;                 /* of one run */
    int fixed, from_file;                /* index after the run's own entries, and after the `set`
                                            entries of the file */
    const bj_campaign_options *options;
    char init_given[BJ_RUN_PATH_SIZE]; /* the `init` path that was resolved last, its absolute path
                                          and its digest */
    char init[BJ_RUN_PATH_SIZE], init_sha256[BJ_SHA256_HEX];
} plan;

int bj_campaign_is_stage_b(const char *arm) {
    const int index = bj_arm_find(arm);
    return index >= 0 && bj_arm_row(index)->needs_anchor;
}

/* ---------------------------------------------------------------------------------------- lines */

static bj_status take_seed_count(plan *p, const bj_assignment *a, bj_error *err) {
    int count = 0;
    const char *c = a->value;
    for (; *c >= '0' && *c <= '9' && count <= BJ_CAMPAIGN_SEEDS; c++) count = 10 * count + *c - '0';
    if (c == a->value || *c || count < 1 || count > BJ_CAMPAIGN_SEEDS)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: seeds is '%s', expected a list of seeds or a count from 1 to %d",
                       a->origin, a->value, BJ_CAMPAIGN_SEEDS);
    for (int i = 0; i < count; i++) {
        snprintf(p->numbers[i], sizeof p->numbers[i], "%d", i);
        p->seeds[i] = (bj_assignment){"seed", p->numbers[i], a->origin};
    }
    p->seed_count = count;
    return BJ_OK;
}

static bj_status unknown_key(const bj_assignment *a, size_t length, bj_error *err) {
    static const char *const known[] = {"name", "data", "dev",  "recipe",
                                        "arms", "seeds", "set", "sweep"};
    enum { KNOWN = sizeof known / sizeof *known };
    char key[BJ_NAME_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)length, a->key);
    for (int i = 0; i < KNOWN; i++) {
        if (strcmp(known[i], key)) continue;
        const char *shape = i == 1   ? "a string, or 'name: file' for several datasets"
                            : i < 4  ? "one string"
                            : i == 6 ? "settings of the form 'key: value'"
                            : i == 7 ? "settings of the form 'key: [value, value]'"
                                     : "a list";
        return BJ_FAIL(err, BJ_EARG, "%s: '%s' is not valid for '%s', expected %s", a->origin, a->key,
                       key, shape);
    }
    bj_nearest nearest = BJ_NEAREST(key);
    for (int i = 0; i < KNOWN; i++) bj_nearest_offer(&nearest, known[i]);
    /* Rejects a setting at the top level, because settings belong under `set`. */
    if (!nearest.best && bj_setting_find(a->key) >= 0)
        return BJ_FAIL(err, BJ_EARG, "%s: '%s' is a setting and belongs under 'set'", a->origin,
                       a->key);
    if (nearest.best)
        return BJ_FAIL(err, BJ_EARG, "%s: unknown key '%s'; did you mean '%s'?", a->origin, key,
                       nearest.best);
    return BJ_FAIL(err, BJ_EARG,
                   "%s: unknown key '%s', expected name, data, dev, recipe, arms, seeds, set or sweep",
                   a->origin, key);
}

static bj_status take_set(plan *p, const bj_assignment *a, bj_error *err) {
    BJ_TRY(bj_campaign_check_key(a, err));
    p->list[p->from_file++] = *a;
    return BJ_OK;
}

static bj_status take_set_name(plan *p, const bj_assignment *a, bj_error *err) {
    for (int i = 0; i < p->set_count; i++)
        if (!strcmp(p->sets[i].key, a->key))
            return BJ_FAIL(err, BJ_EARG, "%s: dataset '%s' is listed twice", a->origin, a->key);
    if (!bj_campaign_is_set_name(a->key))
        return BJ_FAIL(err, BJ_EARG,
                       "%s: '%.60s' is not a valid dataset name, expected 'data: {name: file}'; "
                       "a name has 1 to %d letters, digits, '-' or '_', but not only digits",
                       a->origin, a->key, BJ_SET_NAME - 1);
    if (p->set_count == BJ_CAMPAIGN_SETS)
        return BJ_FAIL(err, BJ_EARG, "%s: more than %d datasets", a->origin, BJ_CAMPAIGN_SETS);
    p->sets[p->set_count++] = *a;
    return BJ_OK;
}

static bj_status take_line(plan *p, const bj_assignment *a, bj_error *err) {
    const size_t head = strcspn(a->key, ".");
    const struct {
        const char *key;
        bj_assignment *place;
    } texts[] = {{"name", &p->name}, {"data", &p->data}, {"dev", &p->dev}, {"recipe", &p->recipe}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(a->key, texts[i].key)) {
            *texts[i].place = *a;
            return BJ_OK;
        }
    if (!strcmp(a->key, "seeds")) return take_seed_count(p, a, err);
    const char *below = a->key + head + (a->key[head] == '.');
    const int item = *below && below[strspn(below, "0123456789")] == '\0';
    if (head == 3 && !strncmp(a->key, "set", 3) && *below) {
        const bj_assignment setting = {below, a->value, a->origin};
        return take_set(p, &setting, err);
    }
    if (head == 4 && !strncmp(a->key, "data", 4) && *below) {
        const bj_assignment set = {below, a->value, a->origin};
        return take_set_name(p, &set, err);
    }
    if (head == 4 && !strncmp(a->key, "arms", 4) && *below)
        return bj_arm_plan_take_arm(&p->listed, below, a, err);
    if (head == 5 && !strncmp(a->key, "sweep", 5) && *below)
        return bj_arm_plan_take_sweep(&p->listed, below, a, err);
    if (head == 5 && !strncmp(a->key, "seeds", 5) && item) {
        if (p->seed_count == BJ_CAMPAIGN_SEEDS)
            return BJ_FAIL(err, BJ_EARG, "%s: more than %d seeds", a->origin, BJ_CAMPAIGN_SEEDS);
        p->seeds[p->seed_count++] = (bj_assignment){"seed", a->value, a->origin};
        return BJ_OK;
    }
    return unknown_key(a, head, err);
}

static bj_status check_name(const plan *p, bj_error *err) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const char *name = p->name.value;
    if (!name) return BJ_FAIL(err, BJ_EARG, "%s: no 'name'", p->file);
    const size_t length = strlen(name);
    if (!length || length >= BJ_NAME_SIZE || name[strspn(name, letters)])
        return BJ_FAIL(err, BJ_EARG,
                       "%s: name is '%.60s', expected 1 to %d letters, digits, '-', '_' or '.'",
                       p->name.origin, name, BJ_NAME_SIZE - 1);
    return BJ_OK;
}

/* Fails if an option of the caller would override a swept setting. */
static bj_status check_options(const plan *p, bj_error *err) {
    for (int i = 0; i < p->options->set_count; i++) {
        BJ_TRY(bj_campaign_check_key(&p->options->set[i], err));
        for (int s = 0; s < p->listed.sweep_count; s++)
            if (!strcmp(p->listed.sweeps[s].key, p->options->set[i].key))
                return BJ_FAIL(err, BJ_EARG, "%s: '%s' is swept in %s and cannot be set as well",
                               p->options->set[i].origin, p->options->set[i].key, p->file);
    }
    return BJ_OK;
}

static bj_status read_plan(plan *p, bj_error *err) {
    const int lines = bj_config_count(p->config);
    BJ_TRY(BJ_ALLOC(p->list,
                    (size_t)(p->fixed + lines + BJ_ARM_SETS + BJ_SWEEP_KEYS + p->options->set_count),
                    err));
    p->from_file = p->fixed;
    for (int i = 0; i < lines; i++) {
        const bj_assignment line = bj_config_at(p->config, i);
        BJ_TRY(take_line(p, &line, err));
    }
    BJ_TRY(check_options(p, err));
    BJ_TRY(check_name(p, err));
    if (!p->listed.count) return BJ_FAIL(err, BJ_EARG, "%s: no 'arms'", p->file);
    if (!p->seed_count) return BJ_FAIL(err, BJ_EARG, "%s: no 'seeds'", p->file);
    BJ_TRY(bj_arm_plan_check(&p->listed, p->file, err));
    p->combinations = bj_arm_plan_combinations(&p->listed);
    for (int i = 0; i < p->listed.count; i++)
        for (int c = 0; c < p->combinations; c++)
            BJ_TRY(bj_arm_plan_at(&p->arms[p->arm_count++], &p->listed, i, c, err));
    return BJ_OK;
}

/* ----------------------------------------------------------------------------------------- grid */

/* Returns the stage A arm that has the same swept values as `arm`, or -1. */
static int find_anchor(const plan *p, int arm) {
    for (int i = arm % p->combinations; i < p->arm_count; i += p->combinations)
        if (!strcmp(p->arms[i].arm.value, stage_a)) return i;
    return -1;
}

static bj_status anchor_of(char path[BJ_CAMPAIGN_PATH], const bj_campaign *c,
                           const bj_grid_run *needed, bj_error *err) {
    if (snprintf(path, BJ_CAMPAIGN_PATH, "%s/runs/%s/seed-%llu/ckpt/best", c->root, needed->name,
                 (unsigned long long)needed->settings.seed) >= BJ_RUN_PATH_SIZE)
        return BJ_FAIL(err, BJ_EARG,
                       "%.100s...: the path to the anchor of stage B is too long", c->root);
    return BJ_OK;
}

/* Replaces the `init` path of a run by its absolute path and adds the digest of the model file, so
 * that every process of the campaign loads the same weights. Like the data path, an `init` path in
 * the campaign file is relative to the folder of that file. */
static bj_status pin_init(bj_settings *s, plan *p, int from_caller, bj_error *err) {
    if (!s->init[0]) return BJ_OK;
    if (strcmp(s->init, p->init_given)) {
        char path[BJ_CAMPAIGN_PATH], full[PATH_MAX];
        const char *slash = strrchr(p->file, '/');
        const int here = !slash || s->init[0] == '/' || from_caller;
        snprintf(path, sizeof path, "%.*s%s", here ? 0 : (int)(slash + 1 - p->file), p->file,
                 s->init);
        memcpy(p->init_given, s->init, sizeof p->init_given);
        const char *found = realpath(path, full) ? full : path; /* hashing reports a missing file */
        if (strlen(found) >= sizeof p->init)
            return BJ_FAIL(err, BJ_EARG, "%.100s...: path too long for 'init'", found);
        memcpy(s->init, found, strlen(found) + 1);
        BJ_TRY(bj_init_pin(s, err));
        memcpy(p->init, s->init, sizeof p->init);
        memcpy(p->init_sha256, s->init_sha256, sizeof p->init_sha256);
    }
    memcpy(s->init, p->init, sizeof s->init);
    memcpy(s->init_sha256, p->init_sha256, sizeof s->init_sha256);
    return BJ_OK;
}

/* Resolves the settings of a run. The first four entries of the list are the arm, the seed, the
 * recipe and the anchor. If there is no recipe or anchor, the entry is the arm again. */
static bj_status resolve_run(bj_campaign *c, plan *p, int index, int seed, int arm,
                             bj_error *err) {
    char anchor[BJ_CAMPAIGN_PATH];
    bj_grid_run *run = &c->runs[index];
    const bj_planned_arm *planned = &p->arms[arm];
    int count = p->from_file, from_caller = 0;
    p->list[0] = planned->arm;
    p->list[1] = p->seeds[seed];
    p->list[2] = p->recipe.value ? p->recipe : planned->arm;
    p->list[3] = planned->arm;
    if (run->needs >= 0) {
        BJ_TRY(anchor_of(anchor, c, &c->runs[run->needs], err));
        p->list[3] = (bj_assignment){"anchor", anchor, planned->arm.origin};
    }
    for (int i = 0; i < planned->set_count; i++) p->list[count++] = planned->set[i];
    for (int i = 0; i < p->options->set_count; i++) {
        p->list[count++] = p->options->set[i];
        from_caller |= !strcmp(p->options->set[i].key, "init");
    }
    BJ_TRY(bj_settings_resolve(&run->settings, NULL, p->list, count, err));
    BJ_TRY(pin_init(&run->settings, p, from_caller, err));
    BJ_TRY(bj_settings_digest(run->digest, &run->settings, err));
    if (strcmp(planned->name, run->settings.arm))
        BJ_TRY(bj_campaign_text(&run->label, planned->name, err));
    return bj_campaign_name_run(c, index, err);
}

/* Resolves the runs of one seed on one dataset, starting at run index `begin`. */
static bj_status resolve_arms(bj_campaign *c, plan *p, int begin, int seed, int set,
                              bj_error *err) {
    for (int pass = 0; pass < 2; pass++) /* stage A before the runs that need it */
        for (int a = 0; a < p->arm_count; a++) {
            const bj_assignment *arm = &p->arms[a].arm;
            const int stage_b = bj_campaign_is_stage_b(arm->value);
            const int anchor = stage_b ? find_anchor(p, a) : -1;
            if (stage_b != pass) continue;
            if (stage_b && anchor < 0)
                return BJ_FAIL(err, BJ_EARG, "%s: arm '%s' needs arm '%s' in the same campaign",
                               arm->origin, arm->value, stage_a);
            c->runs[begin + a].needs = stage_b ? begin + anchor : -1;
            c->runs[begin + a].set = set;
            BJ_TRY(resolve_run(c, p, begin + a, seed, a, err));
        }
    return BJ_OK;
}

static bj_status resolve_runs(bj_campaign *c, plan *p, bj_error *err) {
    const int of_seed = c->set_count * p->arm_count;
    BJ_TRY(BJ_ALLOC(c->runs, (size_t)(p->seed_count * of_seed), err));
    c->count = p->seed_count * of_seed;
    for (int s = 0; s < p->seed_count; s++) {
        for (int d = 0; d < c->set_count; d++)
            BJ_TRY(resolve_arms(c, p, s * of_seed + d * p->arm_count, s, d, err));
        for (int t = 0; t < s; t++)
            if (c->runs[t * of_seed].settings.seed == c->runs[s * of_seed].settings.seed)
                return BJ_FAIL(err, BJ_EARG, "%s: seed %s is listed twice", p->seeds[s].origin,
                               p->seeds[s].value);
    }
    return BJ_OK;
}

/* Resolves a path in the campaign file relative to the folder of that file. Paths from the caller
 * and specifications of fresh scenes are not changed. */
static bj_status take_path(char **out, const bj_assignment *line, const char *given,
                           const char *file, bj_error *err) {
    char path[BJ_CAMPAIGN_PATH];
    const char *slash = strrchr(file, '/');
    if (given) return bj_campaign_text(out, given, err);
    if (!line->value) return BJ_OK;
    if (!*line->value) return BJ_FAIL(err, BJ_EARG, "%s: '%s' is empty", line->origin, line->key);
    if (*line->value == '/' || !slash || bj_fresh_is_spec(line->value))
        return bj_campaign_text(out, line->value, err);
    if (snprintf(path, sizeof path, "%.*s/%s", (int)(slash - file), file, line->value) >=
        (int)sizeof path)
        return BJ_FAIL(err, BJ_EARG, "%s: path too long", line->origin);
    return bj_campaign_text(out, path, err);
}

static int is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Finds the data. It is one dataset, given by the caller or the file, or several datasets that the
 * file lists and that can be in a folder given by the caller. */
static bj_status take_sets(bj_campaign *c, const plan *p, const char *given, const char *file,
                           bj_error *err) {
    const int several = p->set_count && (!given || is_folder(given));
    BJ_TRY(BJ_ALLOC(c->sets, several ? (size_t)p->set_count : 1, err));
    c->set_count = several ? p->set_count : 1;
    if (!several) return take_path(&c->sets[0].path, &p->data, given, file, err);
    for (int i = 0; i < p->set_count; i++) {
        char from[BJ_CAMPAIGN_PATH];
        BJ_TRY(bj_campaign_text(&c->sets[i].name, p->sets[i].key, err));
        if (given) BJ_TRY(bj_campaign_path(from, given, "", err)); /* resolve paths as if the
                                                                      campaign file were in that
                                                                      folder */
        BJ_TRY(take_path(&c->sets[i].path, &p->sets[i], NULL, given ? from : file, err));
    }
    return BJ_OK;
}

bj_status bj_campaign_file_read(bj_campaign *c, const char *file,
                                const bj_campaign_options *options, bj_error *err) {
    bj_status status;
    bj_config *config = NULL;
    plan *p = NULL;
    BJ_TRY(bj_config_read(&config, file, err));
    BJ_GOTO(status, done, BJ_ALLOC(p, 1, err));
    p->file = file;
    p->config = config;
    p->fixed = 4;
    p->options = options;
    BJ_GOTO(status, done, read_plan(p, err));
    BJ_GOTO(status, done, bj_campaign_text(&c->name, p->name.value, err));
    BJ_GOTO(status, done, take_sets(c, p, options->data, file, err));
    BJ_GOTO(status, done, take_path(&c->dev, &p->dev, options->dev, file, err));
    if (c->dev && c->set_count > 1) {
        status = BJ_FAIL(err, BJ_EARG, "%s: with %d datasets, development data is not allowed",
                         file, c->set_count);
        goto done;
    }
    status = resolve_runs(c, p, err);
done:
    if (p) bj_free(p->list);
    bj_free(p);
    bj_config_free(config);
    return status;
}
