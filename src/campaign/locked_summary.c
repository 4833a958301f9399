/* locked_summary.c - checks run_summary.json against seed_table.json and in itself; see
 * locked_records.h. */
#include "campaign/locked_records.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

/* Checks that an object has exactly these members, in this order. */
static int has_members(yyjson_val *object, const char *const *keys, size_t count) {
    size_t i = 0;
    yyjson_val *key;
    if (yyjson_obj_size(object) != count) return 0;
    yyjson_obj_iter iter = yyjson_obj_iter_with(object);
    while ((key = yyjson_obj_iter_next(&iter)))
        if (!yyjson_equals_str(key, keys[i++])) return 0;
    return 1;
}

#define HAS_MEMBERS(object, ...)                                                                   \
    has_members((object), (const char *const[]){__VA_ARGS__},                                      \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static double number(yyjson_val *object, const char *key) {
    yyjson_val *value = yyjson_obj_get(object, key);
    return yyjson_is_num(value) ? yyjson_get_num(value) : NAN;
}

/* Returns what is wrong with the calibration bins, or NULL. */
static const char *wrong_bins(yyjson_val *list, double scenes) {
    double counts[BJ_CALIBRATION_BINS], sum = 0;
    uint8_t shown[BJ_CALIBRATION_BINS];
    if (yyjson_arr_size(list) != BJ_CALIBRATION_BINS) return "the number of bins";
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++) {
        yyjson_val *bin = yyjson_arr_get(list, (size_t)b);
        if (!HAS_MEMBERS(bin, "from", "to", "count", "confidence", "hits") ||
            !yyjson_is_uint(yyjson_obj_get(bin, "count")))
            return "the members of a bin";
        if (number(bin, "from") != b / (double)BJ_CALIBRATION_BINS ||
            number(bin, "to") != (b + 1) / (double)BJ_CALIBRATION_BINS)
            return "the limits of a bin";
        sum += counts[b] = number(bin, "count");
    }
    if (sum != scenes) return "the sum of the counts";
    bj_locked_shown(shown, counts, BJ_CALIBRATION_BINS);
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++) {
        yyjson_val *bin = yyjson_arr_get(list, (size_t)b);
        const double confidence = number(bin, "confidence"), hits = number(bin, "hits");
        if (!shown[b] || !counts[b]) {
            if (!yyjson_is_null(yyjson_obj_get(bin, "confidence")) ||
                !yyjson_is_null(yyjson_obj_get(bin, "hits")))
                return "a bin with too few scenes";
            continue;
        }
        if (!(confidence >= number(bin, "from") - 1e-6 && confidence <= number(bin, "to") + 1e-6))
            return "a confidence outside its bin";
        if (!(hits >= 0 && hits <= 1) || !(fabs(hits * counts[b] - round(hits * counts[b])) < 1e-6))
            return "a share of hits that no number of scenes gives";
    }
    return NULL;
}

/* Group means of these metrics add up to the mean over all scenes. */
static int adds_up(const char *metric) {
    int other = !strcmp(metric, "ece") || !strcmp(metric, "active_heads");
    for (int m = 0; m < BJ_LOCKED_MAP; m++) other |= !strcmp(metric, bj_locked_extra_name(m));
    return !other;
}

/* Checks the groups first to end - 1, which are of one kind and partition all scenes. */
static const char *wrong_kind(yyjson_val *list, size_t first, size_t end, yyjson_val *metrics,
                              double scenes, double *counts, uint8_t *shown) {
    const size_t n = end - first;
    double sum = 0;
    int hidden = 0;
    for (size_t g = 0; g < n; g++) sum += counts[g] = number(yyjson_arr_get(list, first + g), "scenes");
    if (sum != scenes) return "the number of scenes of its groups";
    bj_locked_shown(shown, counts, (int)n);
    for (size_t g = 0; g < n; g++) {
        yyjson_val *of = yyjson_obj_get(yyjson_arr_get(list, first + g), "metrics"), *key, *value;
        size_t i, m;
        hidden |= !shown[g];
        if (!shown[g] ? !yyjson_is_null(of) : !yyjson_is_obj(of))
            return "a group with too few scenes";
        yyjson_obj_foreach(of, i, m, key, value) {
            if (!yyjson_obj_get(metrics, yyjson_get_str(key)) ||
                !HAS_MEMBERS(value, "mean", "sd", "n") || !yyjson_is_num(yyjson_obj_get(value, "mean")))
                return "the metrics of a group";
        }
    }
    yyjson_val *key, *value;
    size_t i, m;
    yyjson_obj_foreach(metrics, i, m, key, value) {
        const double mean = number(value, "mean");
        double total = 0;
        if (hidden || !adds_up(yyjson_get_str(key))) continue;
        for (size_t g = 0; g < n; g++) {
            yyjson_val *of = yyjson_obj_get(yyjson_arr_get(list, first + g), "metrics");
            if (counts[g] > 0)
                total += counts[g] * number(yyjson_obj_get(of, yyjson_get_str(key)), "mean");
        }
        if (!(fabs(total / scenes - mean) <= 1e-9 * (1 + fabs(mean))))
            return "a group mean: the groups do not add up to the mean over all scenes";
    }
    return NULL;
}

static const char *wrong_groups(yyjson_val *list, yyjson_val *metrics, double scenes,
                                double *counts, uint8_t *shown) {
    const size_t count = yyjson_arr_size(list);
    if (!yyjson_is_arr(list)) return "the list of groups";
    for (size_t first = 0, end; first < count; first = end) {
        yyjson_val *group = yyjson_arr_get(list, first);
        const char *by = yyjson_get_str(yyjson_obj_get(group, "by"));
        for (end = first; end < count; end++) {
            yyjson_val *next = yyjson_arr_get(list, end);
            if (!HAS_MEMBERS(next, "by", "key", "scenes", "metrics") || !by ||
                !yyjson_is_uint(yyjson_obj_get(next, "scenes")))
                return "the members of a group";
            if (!yyjson_equals_str(yyjson_obj_get(next, "by"), by)) break;
        }
        const char *wrong = wrong_kind(list, first, end, metrics, scenes, counts, shown);
        if (wrong) return wrong;
    }
    return NULL;
}

/* Returns 1 if two lists have the same groups with the same number of scenes. */
static int same_groups(yyjson_val *a, yyjson_val *b) {
    int same = yyjson_arr_size(a) == yyjson_arr_size(b);
    for (size_t g = 0; same && g < yyjson_arr_size(a); g++) {
        yyjson_val *x = yyjson_arr_get(a, g), *y = yyjson_arr_get(b, g);
        same = yyjson_equals(yyjson_obj_get(x, "by"), yyjson_obj_get(y, "by")) &&
               yyjson_equals(yyjson_obj_get(x, "key"), yyjson_obj_get(y, "key")) &&
               yyjson_equals(yyjson_obj_get(x, "scenes"), yyjson_obj_get(y, "scenes"));
    }
    return same;
}

static bj_status check_arms(yyjson_val *arms, double scenes, const char *path, bj_error *err) {
    yyjson_val *first = yyjson_obj_get(yyjson_arr_get_first(arms), "groups"), *arm;
    const size_t room = yyjson_arr_size(first) + 1;
    double *counts = NULL;
    uint8_t *shown = NULL;
    bj_status status;
    BJ_GOTO(status, done, BJ_ALLOC(counts, room, err));
    BJ_GOTO(status, done, BJ_ALLOC(shown, room, err));
    yyjson_arr_iter iter = yyjson_arr_iter_with(arms);
    while ((arm = yyjson_arr_iter_next(&iter))) {
        yyjson_val *groups = yyjson_obj_get(arm, "groups");
        const char *name = yyjson_get_str(yyjson_obj_get(arm, "arm"));
        const double seeds = (double)yyjson_arr_size(yyjson_obj_get(arm, "seeds"));
        const char *wrong = HAS_MEMBERS(arm, "arm", "branches", "seeds", "metrics", "usage",
                                        "calibration", "groups")
                                ? NULL
                                : "the list of members";
        if (!wrong && !same_groups(first, groups)) wrong = "the list of groups";
        if (!wrong) wrong = wrong_bins(yyjson_obj_get(arm, "calibration"), scenes * seeds);
        if (!wrong)
            wrong = wrong_groups(groups, yyjson_obj_get(arm, "metrics"), scenes, counts, shown);
        if (!wrong) continue;
        status = BJ_FAIL(err, BJ_EMISMATCH, "%s: was changed: arm '%.60s': found a wrong value in %s",
                         path, name ? name : "", wrong);
        goto done;
    }
done:
    bj_free(shown);
    bj_free(counts);
    return status;
}

/* Returns the text of a document as the evaluation writes it. With `brief`, leaves out calibration
 * and groups. */
static bj_status spell(bj_locked_text *out, yyjson_doc *doc, int brief, bj_error *err) {
    bj_doc copy = {.json = yyjson_doc_mut_copy(doc, &bj_json_alc)};
    yyjson_mut_val *arm;
    size_t i, n;
    copy.root = yyjson_mut_doc_get_root(copy.json);
    copy.ok = copy.json != NULL;
    if (brief)
        yyjson_mut_arr_foreach(yyjson_mut_obj_get(copy.root, "arms"), i, n, arm) {
            yyjson_mut_obj_remove_key(arm, "calibration");
            yyjson_mut_obj_remove_key(arm, "groups");
        }
    return bj_locked_text_of(out, &copy, BJ_LOCKED_SUMMARY, err);
}

/* Reads the counts of the map summary. The audited scenes are the vehicles and buses. */
static bj_status read_map(bj_records *r, yyjson_val *root, const char *path, bj_error *err) {
    yyjson_val *map, *group, *groups;
    int64_t expected = 0;
    size_t i, n;
    if (r->lock.schema < 2) return BJ_OK;
    BJ_TRY(bj_locked_get_object(&map, root, "map", path, err));
    BJ_TRY(bj_locked_get_integer(&r->results.map_scenes, map, "scenes", path, err));
    BJ_TRY(bj_locked_get_integer(&r->results.map_origins, map, "origins_inside", path, err));
    groups = yyjson_obj_get(yyjson_arr_get_first(yyjson_obj_get(root, "arms")), "groups");
    yyjson_arr_foreach(groups, i, n, group) {
        const char *key = yyjson_get_str(yyjson_obj_get(group, "key"));
        if (yyjson_equals_str(yyjson_obj_get(group, "by"), "type") && key && bj_audit_takes(key))
            expected += (int64_t)yyjson_get_uint(yyjson_obj_get(group, "scenes"));
    }
    if (r->results.map_scenes == expected && r->results.map_origins <= expected) return BJ_OK;
    return BJ_FAIL(err, BJ_EMISMATCH,
                   "%s: was changed: its map summary has %lld scenes, but %lld are of vehicles and "
                   "buses",
                   path, (long long)r->results.map_scenes, (long long)expected);
}

bj_status bj_records_check_summary(bj_records *r, bj_error *err) {
    const bj_locked_text *text = &r->text[BJ_RECORD_SUMMARY];
    const char *path = r->path[BJ_RECORD_SUMMARY];
    bj_locked_text same = {0}, found = {0}, expected = {0};
    yyjson_doc *doc = NULL;
    bj_status status;
    BJ_TRY(bj_locked_parse(&doc, text, path, BJ_LOCKED_SUMMARY_SCHEMA, err));
    BJ_GOTO(status, done, spell(&same, doc, 0, err));
    BJ_GOTO(status, done, bj_locked_same_text(text, &same, path, err));
    BJ_GOTO(status, done, read_map(r, yyjson_doc_get_root(doc), path, err));
    BJ_GOTO(status, done, spell(&found, doc, 1, err));
    BJ_GOTO(status, done,
            bj_locked_summary_text(&expected, &r->results, &r->lock,
                                   r->text[BJ_RECORD_LOCK].sha256, 1, err));
    if (found.size != expected.size || memcmp(found.bytes, expected.bytes, found.size)) {
        status = BJ_FAIL(err, BJ_EMISMATCH,
                         "%s: was changed: its means do not follow from %s", path, BJ_LOCKED_SEEDS);
        goto done;
    }
    status = check_arms(yyjson_obj_get(yyjson_doc_get_root(doc), "arms"), (double)r->lock.scenes,
                        path, err);
done:
    bj_locked_text_reset(&expected);
    bj_locked_text_reset(&found);
    bj_locked_text_reset(&same);
    yyjson_doc_free(doc);
    return status;
}
