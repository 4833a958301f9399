/* report_audit.c - reads audit.json, which `bjepa audit --json` writes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "report_json.h"

enum { MOST_ARMS = 1024, MOST_SEEDS = 4096 };

static int64_t whole(yyjson_val *object, const char *key) {
    const double value = report_json_number(object, key);
    return value >= 0 && value < 1e15 ? (int64_t)value : 0;
}

static bj_status read_arm(report_audit_arm *arm, yyjson_val *item, int number, bj_error *err) {
    yyjson_val *seeds, *mean = yyjson_obj_get(item, "mean");
    yyjson_val *sd = yyjson_obj_get(item, "population_sd");
    const bj_status status =
        report_json_list(&seeds, item, "seeds", MOST_SEEDS, REPORT_AUDIT_FILE, err);
    if (status != BJ_OK) return status;
    report_json_text(arm->name, sizeof arm->name, item, "arm");
    const int known = bj_arm_find(arm->name);
    snprintf(arm->title, sizeof arm->title, "%s", known >= 0 ? bj_arm_at(known).title : arm->name);
    arm->style = plot_style(arm->name, number);
    arm->value = calloc(yyjson_arr_size(seeds) * BJ_AUDIT_METRICS + 1, sizeof *arm->value);
    arm->seed = calloc(yyjson_arr_size(seeds) + 1, sizeof *arm->seed);
    if (!arm->value || !arm->seed) return cli_error(err, BJ_ENOMEM, "out of memory");
    arm->seeds = (int)yyjson_arr_size(seeds);
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        const char *name = bj_audit_metric_at(m).name;
        arm->mean[m] = report_json_number(mean, name);
        arm->sd[m] = report_json_number(sd, name);
        for (int s = 0; s < arm->seeds; s++)
            arm->value[s * BJ_AUDIT_METRICS + m] =
                report_json_number(yyjson_arr_get(seeds, (size_t)s), name);
    }
    for (int s = 0; s < arm->seeds; s++)
        arm->seed[s] = whole(yyjson_arr_get(seeds, (size_t)s), "seed");
    return BJ_OK;
}

static int find(const report_audit *audit, yyjson_val *object, const char *key) {
    const char *name = yyjson_get_str(yyjson_obj_get(object, key));
    for (int i = 0; name && i < audit->arms; i++)
        if (!strcmp(audit->arm[i].name, name)) return i;
    return -1;
}

static void read_comparison(report_audit *audit, yyjson_val *object) {
    yyjson_val *metrics = yyjson_obj_get(object, "metrics");
    audit->a = find(audit, object, "a");
    audit->b = find(audit, object, "b");
    audit->resamples = (int)fmin((double)whole(object, "resamples"), 1e9);
    if (audit->a < 0 || audit->b < 0) audit->a = audit->b = -1;
    for (int m = 0; m < BJ_AUDIT_METRICS; m++) {
        yyjson_val *d = yyjson_obj_get(metrics, bj_audit_metric_at(m).name);
        audit->difference[m] =
            (bj_bootstrap){report_json_number(d, "difference"), report_json_number(d, "low"),
                           report_json_number(d, "high"), report_json_number(d, "se")};
    }
}

static bj_status read_all(report_audit *audit, yyjson_val *root, bj_error *err) {
    yyjson_val *arms, *item;
    bj_status status = report_json_list(&arms, root, "arms", MOST_ARMS, REPORT_AUDIT_FILE, err);
    if (status != BJ_OK) return status;
    audit->arm = calloc(yyjson_arr_size(arms) + 1, sizeof *audit->arm);
    if (!audit->arm) return cli_error(err, BJ_ENOMEM, "out of memory");
    yyjson_arr_iter iter = yyjson_arr_iter_with(arms);
    while (status == BJ_OK && (item = yyjson_arr_iter_next(&iter))) {
        const int number = audit->arms++;
        status = read_arm(&audit->arm[number], item, number, err);
    }
    audit->total = whole(root, "total");
    audit->scenes = whole(root, "scenes");
    audit->origins = whole(root, "origins_inside");
    read_comparison(audit, yyjson_obj_get(root, "comparison"));
    return status;
}

bj_status report_read_audit(report_data *data, const char *folder, bj_error *err) {
    yyjson_doc *doc;
    bj_status status = report_json_open(&doc, folder, REPORT_AUDIT_FILE, err);
    if (status != BJ_OK || !doc) return status;
    data->audit = calloc(1, sizeof *data->audit); /* report_data_free frees it, whatever happens */
    status = data->audit ? read_all(data->audit, yyjson_doc_get_root(doc), err)
                         : cli_error(err, BJ_ENOMEM, "out of memory");
    yyjson_doc_free(doc);
    return status;
}

void report_audit_free(report_audit *audit) {
    if (!audit) return;
    for (int i = 0; i < audit->arms; i++) {
        free(audit->arm[i].value);
        free(audit->arm[i].seed);
    }
    free(audit->arm);
    free(audit);
}
