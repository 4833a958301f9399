/* settings.c - the typed table of settings, and the resolution of layers to a bj_settings.
 *
 * Later layers override earlier ones: defaults, the arm, the recipe, then the assignments in order.
 * A value is text until it is stored. An integer consists of digits with an optional minus. A
 * number has the syntax of JSON, but the zero before the point is optional. Spaces are not allowed.
 *
 *   digest = SHA-256 of "KEY=VALUE\n" for every setting in the order of settings.def, except for
 *            those that were ADDED later and have their default
 *
 * Invariants
 *   1. bj_setting_text of a resolved setting resolves to the same bits; -0 is stored as 0.
 *   2. A text is valid UTF-8 without control characters and line separators, so that lines, JSON
 *      and YAML can contain it.
 * Test: tests/run/test_settings.c
 */
#include "run/settings.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"
#include "core/sha256.h"
#include "core/utf8.h"
#include "run/init.h"

typedef struct setting {
    bj_setting_info info;
    size_t offset, size; /* offset of its field */
    const char *source;  /* text of its default */
    int added;           /* see settings.def */
} setting;

#define PAPER "paper"
#define OURS "default"
#define ROW(key, type, field, least, most, above, source, help, added)                             \
    {{(key), BJ_SETTING_##type, (least), (most), (above), (help)},                                 \
     offsetof(bj_settings, field),                                                                 \
     sizeof((bj_settings *)NULL)->field,                                                           \
     (source),                                                                                     \
     (added)},
#define SETTING(key, type, field, least, most, above, source, help)                                \
    ROW(key, type, field, least, most, above, source, help, 0)
#define ADDED(key, type, field, least, most, above, source, help)                                  \
    ROW(key, type, field, least, most, above, source, help, 1)
static const setting table[] = {
#include "run/settings.def"
};
#undef ADDED
#undef SETTING
#undef ROW
enum { SETTINGS = sizeof table / sizeof *table };
_Static_assert((int)SETTINGS <= (int)BJ_SETTINGS_MAX, "BJ_SETTINGS_MAX is too small");

/* ---------------------------------------------------------------------------------------- table */

int bj_setting_count(void) { return SETTINGS; }

bj_setting_info bj_setting_at(int index) {
    return index >= 0 && index < SETTINGS ? table[index].info : (bj_setting_info){0};
}

int bj_setting_find(const char *key) {
    for (int i = 0; key && i < SETTINGS; i++)
        if (!strcmp(table[i].info.key, key)) return i;
    return -1;
}

static const char *last_part(const char *key) {
    const char *dot = strrchr(key, '.');
    return dot ? dot + 1 : key;
}

/* Returns the key that the user probably meant, or NULL. A key with a missing or wrong group
 * matches if its last part is unique. */
static const char *nearest_key(const char *key) {
    bj_nearest near = BJ_NEAREST(key);
    const char *same = NULL;
    int count = 0;
    for (int i = 0; i < SETTINGS; i++) {
        bj_nearest_offer(&near, table[i].info.key);
        if (!strcmp(last_part(key), last_part(table[i].info.key))) {
            same = table[i].info.key;
            count++;
        }
    }
    return count == 1 ? same : near.best;
}

/* --------------------------------------------------------------------------------------- values */

static bj_settings defaults(void);

static void *field_of(bj_settings *s, const setting *row) { return (char *)s + row->offset; }

static const void *value_of(const bj_settings *s, const setting *row) {
    return (const char *)s + row->offset;
}

void bj_setting_text(char text[BJ_SETTING_TEXT_SIZE], const bj_settings *settings, int index) {
    text[0] = '\0';
    if (!settings || index < 0 || index >= SETTINGS) return;
    const setting *row = &table[index];
    const void *value = value_of(settings, row);
    switch (row->info.type) {
    case BJ_SETTING_INT: snprintf(text, BJ_SETTING_TEXT_SIZE, "%d", *(const int *)value); break;
    case BJ_SETTING_SEED:
        snprintf(text, BJ_SETTING_TEXT_SIZE, "%" PRIu64, *(const uint64_t *)value);
        break;
    case BJ_SETTING_REAL: {
        char number[BJ_JSON_NUMBER] = "nan"; /* a resolved setting is never NaN, but a caller may
                                                fill in the struct */
        (void)!bj_json_number_write(number, *(const double *)value);
        const size_t size = strlen(number);
        if (size > 2 && !strcmp(number + size - 2, ".0")) number[size - 2] = '\0';
        memcpy(text, number, sizeof number);
        break;
    }
    case BJ_SETTING_TEXT:
        snprintf(text, BJ_SETTING_TEXT_SIZE, "%.*s", (int)row->size - 1, (const char *)value);
        break;
    }
}

int bj_setting_is_added(int index) { return table[index].added; }

void bj_setting_default(char text[BJ_SETTING_TEXT_SIZE], int index) {
    const bj_settings plain = defaults();
    bj_setting_text(text, &plain, index);
}

/* Parses digits with an optional minus sign. Leading zeros are rejected, because other programs
 * read them as octal. */
static int is_integer(const char *text) {
    text += *text == '-';
    const size_t digits = strspn(text, "0123456789");
    return digits > 0 && !text[digits] && (digits == 1 || *text != '0');
}

static int read_real(double *out, const char *text) {
    char number[64];
    const int minus = *text == '-', point = text[minus] == '.';
    if (!point) return bj_json_number_read(out, text);
    const int size = snprintf(number, sizeof number, "%s0%s", minus ? "-" : "", text + minus);
    return size < (int)sizeof number && bj_json_number_read(out, number);
}

/* Checks invariant 2 for a text. */
static int is_clean(const char *text) {
    for (size_t left = strlen(text), n; left > 0; left -= n, text += n) {
        n = bj_utf8_sequence(text, left);
        if (!n || (unsigned char)*text < 0x20 || *text == 0x7f) return 0;
        if (n == 2 && !strncmp(text, "\xc2", 1) && (unsigned char)text[1] < 0xa0) return 0;
        if (n == 3 && (!strncmp(text, "\xe2\x80\xa8", 3) || !strncmp(text, "\xe2\x80\xa9", 3)))
            return 0;
    }
    return 1;
}

static bj_status bad_value(const setting *row, const bj_assignment *a, bj_error *err) {
    const bj_setting_info *info = &row->info;
    const char *what = info->type == BJ_SETTING_REAL ? "a number" : "an integer";
    if (info->type == BJ_SETTING_SEED)
        return BJ_FAIL(err, BJ_EARG, "%s: %s is '%s', expected an integer in [0, %" PRIu64 "]",
                       a->origin, a->key, a->value, UINT64_MAX);
    return BJ_FAIL(err, BJ_EARG, "%s: %s is '%s', expected %s in %s%.10g, %.10g]", a->origin,
                   a->key, a->value, what, info->above ? "(" : "[", info->least, info->most);
}

/* Stores the value of a known key. Fails if the value is invalid. */
static bj_status store(bj_settings *s, const setting *row, const bj_assignment *a, bj_error *err) {
    const bj_setting_info *info = &row->info;
    double number;
    errno = 0;
    switch (info->type) {
    case BJ_SETTING_INT: {
        const long value = is_integer(a->value) ? strtol(a->value, NULL, 10) : LONG_MIN;
        if (value == LONG_MIN || errno || (double)value < info->least || (double)value > info->most)
            return bad_value(row, a, err);
        *(int *)field_of(s, row) = (int)value;
        return BJ_OK;
    }
    case BJ_SETTING_SEED: {
        const uint64_t value = strtoumax(a->value, NULL, 10);
        if (!is_integer(a->value) || *a->value == '-' || errno) return bad_value(row, a, err);
        *(uint64_t *)field_of(s, row) = value;
        return BJ_OK;
    }
    case BJ_SETTING_REAL:
        if (!read_real(&number, a->value) || !isfinite(number) || number < info->least ||
            number > info->most || (info->above && number <= info->least))
            return bad_value(row, a, err);
        *(double *)field_of(s, row) = number + 0.0; /* converts -0 to 0 */
        return BJ_OK;
    case BJ_SETTING_TEXT:
        if (!is_clean(a->value))
            return BJ_FAIL(err, BJ_EARG, "%s: %s has control characters or is not UTF-8", a->origin,
                           a->key);
        if (strlen(a->value) >= row->size)
            return BJ_FAIL(err, BJ_EARG, "%s: %s has %zu bytes, expected at most %zu", a->origin,
                           a->key, strlen(a->value), row->size - 1);
        memset(field_of(s, row), 0, row->size);
        memcpy(field_of(s, row), a->value, strlen(a->value));
        return BJ_OK;
    }
    return BJ_FAIL(err, BJ_EARG, "%s: %s has no type", a->origin, a->key);
}

/* -------------------------------------------------------------------------------------- resolve */

static bj_settings defaults(void) {
    return (bj_settings){
        .recipe = "paper",
        .arch = bj_arch_paper(),
        .objective = bj_objective_default(BJ_FULLSET),
        .optim = bj_optim_default(),
        .lr = 3e-4,
        .batch = 256,
        .epochs = 30,
        .warmup = 2,
        .schedule = "cosine",
        .precision = "single",
        .decay = 0.4,
        .patience = 0,
        .save_minutes = 10,
        .gate_ade = 2,
        .gate_fde = 4,
        .gate_std = 0.005,
        .gate_low_std = 0.9,
        .gate_rank = 8,
        .middle = 1,
        .withheld = BJ_MAZE_WITHHELD,
        .gate_separated = 0.9,
    };
}

/* Returns the default settings of maze arms, whose models decode nothing. */
static bj_settings maze_defaults(const bj_arm *arm) {
    bj_settings s = defaults();
    s.arch = bj_arch_maze(arm->model, arm->one_atom);
    s.objective = bj_objective_default(arm->objective);
    s.objective.lambda_y = s.objective.lambda_rec = 0;
    return s;
}

static bj_status apply(bj_settings *s, const char **origins, const bj_assignment *a,
                       bj_error *err) {
    const int index = bj_setting_find(a->key);
    if (index < 0) {
        const char *nearest = nearest_key(a->key);
        if (nearest)
            return BJ_FAIL(err, BJ_EARG, "%s: no setting '%s'; did you mean '%s'?", a->origin,
                           a->key, nearest);
        return BJ_FAIL(err, BJ_EARG, "%s: no setting '%s'", a->origin, a->key);
    }
    BJ_TRY(store(s, &table[index], a, err));
    origins[index] = a->origin;
    return BJ_OK;
}

static bj_status apply_layer(bj_settings *s, const char **origins, const bj_assignment *layer,
                             bj_error *err) {
    for (int i = 0; i < BJ_LAYER_SIZE && layer[i].key; i++)
        BJ_TRY(apply(s, origins, &layer[i], err));
    return BJ_OK;
}

static const char *origin_of(const char *const *origins, const char *key) {
    return origins[bj_setting_find(key)];
}

/* Checks the settings that describe the checkpoint to start from. */
static bj_status check_init(const bj_settings *s, const char *const *origins, const bj_arm *arm,
                            bj_error *err) {
    const size_t digits = strspn(s->init_sha256, "0123456789abcdef");
    if (s->init[0] && arm->needs_anchor)
        return BJ_FAIL(err, BJ_EARG, "%s: init is '%s', but arm %s starts from 'anchor'",
                       origin_of(origins, "init"), s->init, s->arm);
    for (int i = 0; !s->init[0] && i < 2; i++) {
        const char *key = i ? "init_sha256" : "init_parts";
        const char *value = i ? s->init_sha256 : s->init_parts;
        if (value[0])
            return BJ_FAIL(err, BJ_EARG, "%s: %s is '%s', but 'init' is not set",
                           origin_of(origins, key), key, value);
    }
    if (s->init_sha256[0] && (digits != 64 || s->init_sha256[digits]))
        return BJ_FAIL(err, BJ_EARG, "%s: init_sha256 is '%s', expected 64 hexadecimal digits",
                       origin_of(origins, "init_sha256"), s->init_sha256);
    return bj_init_check_parts(s->init_parts, origin_of(origins, "init_parts"), err);
}

/* Checks for values that are valid on their own but not in combination. */
static bj_status check_together(const bj_settings *s, const char *const *origins, const bj_arm *arm,
                                bj_error *err) {
    const bj_arch *arch = &s->arch;
    const bj_objective *o = &s->objective;
    if (arch->heads && arch->embed % arch->heads)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: model.heads is %d, which does not divide model.embed = %d (%s)",
                       origin_of(origins, "model.heads"), arch->heads, arch->embed,
                       origin_of(origins, "model.embed"));
    if (s->warmup > s->epochs)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: train.warmup is %d, which is more than train.epochs = %d (%s)",
                       origin_of(origins, "train.warmup"), s->warmup, s->epochs,
                       origin_of(origins, "train.epochs"));
    if (bj_schedule_find(s->schedule) < 0)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: train.schedule is '%s', expected cosine, linear, trapezoid or constant",
                       origin_of(origins, "train.schedule"), s->schedule);
    if (strcmp(s->precision, "single") && strcmp(s->precision, "mixed"))
        return BJ_FAIL(err, BJ_EARG, "%s: train.precision is '%s', expected single or mixed",
                       origin_of(origins, "train.precision"), s->precision);
    if (arm->one_atom && arch->atoms != 1)
        return BJ_FAIL(err, BJ_EARG, "%s: model.atoms is %d, but arm %s has only one atom",
                       origin_of(origins, "model.atoms"), arch->atoms, s->arm);
    for (int i = 0; arm->scales != BJ_SCALES_FIXED && i < 2; i++) {
        const char *key = i ? "loss.sigma_y" : "loss.sigma_z";
        const double value = i ? o->sigma_y : o->sigma_z, first = i ? 2 : 0.25;
        if (value != first)
            return BJ_FAIL(err, BJ_EARG, "%s: %s is %g, but arm %s learns it, starting at %g",
                           origin_of(origins, key), key, value, s->arm, first);
    }
    if (arm->needs_anchor && !s->anchor[0])
        return BJ_FAIL(err, BJ_EARG,
                       "%s: arm %s needs 'anchor', the checkpoint folder of an anchor-a run",
                       origin_of(origins, "arm"), s->arm);
    if (!arm->needs_anchor && s->anchor[0])
        return BJ_FAIL(err, BJ_EARG, "%s: anchor is '%s', but arm %s uses no anchor",
                       origin_of(origins, "anchor"), s->anchor, s->arm);
    BJ_TRY(check_init(s, origins, arm, err));
    bj_arch known = *arch;
    if (arm->maze) known.patch_in = known.patch_out = 0; /* only the data determines whether there
                                                            are images */
    BJ_TRY(bj_arch_check(&known, err));
    return bj_objective_check(o, &known, err);
}

static bj_status no_arm(bj_error *err) {
    char list[400] = "";
    size_t used = 0;
    for (int i = 0; i < bj_arm_count() && used < sizeof list; i++)
        if (strcmp(bj_arm_at(i).family, "mdn") && strcmp(bj_arm_at(i).family, "ablation"))
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
                                     bj_arm_at(i).name);
    return BJ_FAIL(err, BJ_EARG,
                   "settings: 'arm' is missing\n"
                   "hint: use --arm with %s; 'bjepa config arms' describes them and lists more",
                   list);
}

/* s and origins contain the defaults. */
static bj_status resolve(bj_settings *s, const char **origins, const bj_assignment *list, int count,
                         bj_error *err) {
    const bj_arm *arm;
    int recipe;
    /* Apply all assignments once to find the arm and the recipe. */
    for (int i = 0; i < count; i++) BJ_TRY(apply(s, origins, &list[i], err));
    if (!s->arm[0]) return no_arm(err);
    BJ_TRY(bj_arm_named(&arm, s->arm, origin_of(origins, "arm"), err));
    BJ_TRY(bj_recipe_named(&recipe, s->recipe, origin_of(origins, "recipe"), err));

    /* Apply all assignments again, on top of the arm and the recipe. */
    if (arm->maze) {
        const uint64_t seed = s->seed;
        char name[BJ_NAME_SIZE], recipe_name[BJ_NAME_SIZE];
        memcpy(name, s->arm, sizeof name);
        memcpy(recipe_name, s->recipe, sizeof recipe_name);
        *s = maze_defaults(arm);
        s->seed = seed;
        memcpy(s->arm, name, sizeof name);
        memcpy(s->recipe, recipe_name, sizeof recipe_name);
    }
    s->arch.kind = arm->model;
    s->arch.scales = arm->scales;
    s->arch.weighting = arm->weighting;
    s->objective.kind = arm->objective;
    BJ_TRY(apply_layer(s, origins, arm->set, err));
    BJ_TRY(apply_layer(s, origins, bj_recipe_set(recipe), err));
    for (int i = 0; i < count; i++) BJ_TRY(apply(s, origins, &list[i], err));
    return check_together(s, origins, arm, err);
}

bj_status bj_settings_resolve(bj_settings *out, const char **origins, const bj_assignment *list,
                              int count, bj_error *err) {
    const char *where[SETTINGS];
    bj_settings s = defaults();
    if (!out || count < 0 || (count > 0 && !list))
        return BJ_FAIL(err, BJ_EARG, "settings: output or assignments are missing");
    for (int i = 0; i < count; i++)
        if (!list[i].key || !list[i].value || !list[i].origin)
            return BJ_FAIL(err, BJ_EARG, "settings: assignment %d lacks key, value or origin", i);
    for (int i = 0; i < SETTINGS; i++) where[i] = table[i].source;
    BJ_TRY(resolve(&s, where, list, count, err));
    *out = s;
    if (origins) memcpy(origins, where, sizeof where);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- digest */

bj_status bj_settings_digest(char hex[65], const bj_settings *settings, bj_error *err) {
    bj_sha256 hash;
    if (!hex || !settings) return BJ_FAIL(err, BJ_EARG, "settings: output or settings are missing");
    hex[0] = '\0';
    bj_sha256_init(&hash);
    for (int i = 0; i < SETTINGS; i++) {
        char text[BJ_SETTING_TEXT_SIZE];
        const char *key = table[i].info.key;
        bj_setting_text(text, settings, i);
        if (bj_setting_is_added(i)) {
            char plain[BJ_SETTING_TEXT_SIZE];
            bj_setting_default(plain, i);
            if (!strcmp(text, plain)) continue;
        }
        bj_sha256_update(&hash, key, strlen(key));
        bj_sha256_update(&hash, "=", 1);
        bj_sha256_update(&hash, text, strlen(text));
        bj_sha256_update(&hash, "\n", 1);
    }
    bj_sha256_final(&hash, hex);
    return BJ_OK;
}
