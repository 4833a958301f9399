/* report_truth.c - reads truth.json, which `bjepa truth --json` writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "report_json.h"

enum { MOST_ENTRIES = 4096 };

static bj_estimate estimate(yyjson_val *object, const char *key) {
    yyjson_val *value = yyjson_obj_get(object, key);
    return (bj_estimate){report_json_number(value, "mean"), report_json_number(value, "error")};
}

static int64_t whole(yyjson_val *object, const char *key) {
    const double value = report_json_number(object, key);
    return value >= 0 && value < 1e15 ? (int64_t)value : 0;
}

/* ".../runs/ARM/seed-S/..." refers to a run of the campaign. All other names are used unchanged. */
static void name_entry(report_truth_entry *entry, const report_data *data, const char *name) {
    const char *last = NULL;
    char arm[BJ_NAME_SIZE];
    long long seed;
    int baseline = -1;
    for (const char *at = name; (at = strstr(at, "runs/")); at++) last = at;
    entry->arm = -1;
    entry->seed = -1;
    if (last && sscanf(last, "runs/%47[^/]/seed-%lld", arm, &seed) == 2) {
        entry->arm = report_find_arm(data, arm);
        entry->seed = seed;
    }
    if (entry->arm >= 0) {
        entry->style = data->arm[entry->arm].style;
        snprintf(entry->name, sizeof entry->name, "%s", data->arm[entry->arm].title);
        return;
    }
    for (int b = 0; b < BJ_BASELINES; b++)
        if (!strcmp(name, bj_baseline_name((bj_baseline)b))) baseline = b;
    const size_t length = strlen(name), room = sizeof entry->name - 4;
    if (length < room) snprintf(entry->name, sizeof entry->name, "%s", name);
    else snprintf(entry->name, sizeof entry->name, "...%s", name + length - room + 1);
    entry->style = baseline >= 0 ? PLOT_STYLES - 1 : PLOT_STYLE_OTHER;
    entry->seed = -1;
}

static void read_entry(report_truth_entry *entry, const report_data *data, yyjson_val *arm) {
    const char *name = yyjson_get_str(yyjson_obj_get(arm, "name"));
    bj_exam_report *r = &entry->report;
    name_entry(entry, data, name ? name : "");
    r->scenes = whole(arm, "scenes");
    r->atoms = (int)fmin((double)whole(arm, "atoms"), BJ_MAX_ATOMS);
    r->discrepancy = estimate(arm, "discrepancy");
    r->discrepancy_spread = report_json_number(arm, "discrepancy_spread");
    r->floor = estimate(arm, "floor");
    r->expected_es = estimate(arm, "expected_es");
    r->difference = estimate(arm, "difference");
    r->tolerated = report_json_number(arm, "tolerated");
    r->identity = yyjson_is_true(yyjson_obj_get(arm, "identity"));
    r->realized = whole(arm, "realized");
    r->realized_es = estimate(arm, "realized_es");
    r->surprise = report_json_number(arm, "surprise");
    r->best_scenes = whole(arm, "best_scenes");
    r->best = estimate(arm, "best");
    r->best_own = estimate(arm, "best_own");
    r->capacity = report_json_number(arm, "capacity");
    r->learning = report_json_number(arm, "learning");
    r->modes = whole(arm, "modes");
    r->recall = report_json_number(arm, "recall");
    r->recall_mass = report_json_number(arm, "recall_mass");
    r->mass_error = report_json_number(arm, "mass_error");
    r->unexplained = report_json_number(arm, "unexplained");
    r->maneuver_error = report_json_number(arm, "maneuver_error");
    r->brier_excess = report_json_number(arm, "brier_excess");
    r->brier_floor = report_json_number(arm, "brier_floor");
    r->calibration_error = report_json_number(arm, "calibration_error");
    yyjson_val *bins = yyjson_obj_get(arm, "bins");
    for (int b = 0; b < BJ_EXAM_BINS; b++) {
        yyjson_val *bin = yyjson_arr_get(bins, (size_t)b);
        r->bins[b] = (bj_exam_bin){whole(bin, "count"), report_json_number(bin, "predicted"),
                                   report_json_number(bin, "true")};
    }
}

bj_status report_read_truth(report_data *data, const char *folder, bj_error *err) {
    yyjson_doc *doc;
    yyjson_val *arms, *arm;
    bj_status status = report_json_open(&doc, folder, REPORT_TRUTH_FILE, err);
    if (status != BJ_OK || !doc) return status;
    yyjson_val *root = yyjson_doc_get_root(doc);
    status = report_json_list(&arms, root, "arms", MOST_ENTRIES, REPORT_TRUTH_FILE, err);
    report_truth *truth = status == BJ_OK ? calloc(1, sizeof *truth) : NULL;
    if (truth) truth->entry = calloc(yyjson_arr_size(arms) + 1, sizeof *truth->entry);
    if (status == BJ_OK && (!truth || !truth->entry))
        status = cli_error(err, BJ_ENOMEM, "out of memory");
    if (status == BJ_OK) {
        truth->scenes = whole(root, "scenes");
        truth->samples = (int)fmin((double)whole(root, "samples"), 1e6);
        yyjson_arr_iter iter = yyjson_arr_iter_with(arms);
        while ((arm = yyjson_arr_iter_next(&iter)))
            read_entry(&truth->entry[truth->entries++], data, arm);
        data->truth = truth;
    } else report_truth_free(truth);
    yyjson_doc_free(doc);
    return status;
}

void report_truth_free(report_truth *truth) {
    if (!truth) return;
    free(truth->entry);
    free(truth);
}
