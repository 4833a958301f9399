/* report_locked.c - reads lock.json and the three files of a verified evaluation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report_json.h"

enum { MOST_ROWS = 1 << 20 };

/* Parses a verified file. */
static bj_status open_record(yyjson_doc **out, const report_data *data, const char *name,
                             bj_error *err) {
    size_t size = 0;
    const char *bytes = bj_locked_bytes(data->evaluation, name, &size);
    *out = yyjson_read(bytes, size, 0);
    return *out ? BJ_OK : cli_error(err, BJ_ENOMEM, "out of memory");
}

static bj_status read_lock(report_data *data, bj_error *err) {
    yyjson_doc *doc;
    const bj_status status = open_record(&doc, data, BJ_LOCK_FILE, err);
    if (status != BJ_OK) return status;
    yyjson_val *root = yyjson_doc_get_root(doc);
    yyjson_val *evaluator = yyjson_obj_get(root, "evaluator"), *held = yyjson_obj_get(root, "data");
    report_protocol *p = &data->protocol;
    report_json_text(p->evaluator_sha256, sizeof p->evaluator_sha256, evaluator, "sha256");
    report_json_text(p->evaluator_version, sizeof p->evaluator_version, evaluator, "version");
    report_json_text(p->data, sizeof p->data, held, "path");
    report_json_text(p->data_sha256, sizeof p->data_sha256, held, "sha256");
    report_json_text(p->data_digest, sizeof p->data_digest, held, "digest");
    yyjson_doc_free(doc);
    return BJ_OK;
}

static bj_status read_completion(report_data *data, bj_error *err) {
    yyjson_doc *doc;
    const bj_status status = open_record(&doc, data, BJ_LOCKED_COMPLETION, err);
    if (status != BJ_OK) return status;
    yyjson_val *root = yyjson_doc_get_root(doc), *files = yyjson_obj_get(root, "sha256");
    report_protocol *p = &data->protocol;
    report_json_text(p->lock_sha256, sizeof p->lock_sha256, files, BJ_LOCK_FILE);
    report_json_text(p->summary_sha256, sizeof p->summary_sha256, files, BJ_LOCKED_SUMMARY);
    report_json_text(p->seeds_sha256, sizeof p->seeds_sha256, files, BJ_LOCKED_SEEDS);
    report_json_text(p->isa, sizeof p->isa, root, "isa");
    report_json_text(p->started, sizeof p->started, root, "started");
    report_json_text(p->finished, sizeof p->finished, root, "finished");
    const double scenes = report_json_number(root, "scenes");
    data->scenes = scenes >= 0 && scenes < 1e15 ? (int64_t)scenes : 0;
    yyjson_doc_free(doc);
    return BJ_OK;
}

static int arm_of(const report_data *data, yyjson_val *object) {
    const char *name = yyjson_get_str(yyjson_obj_get(object, "arm"));
    return name ? report_find_arm(data, name) : -1;
}

static void read_bins(report_arm *arm, yyjson_val *list) {
    if (yyjson_arr_size(list) != BJ_CALIBRATION_BINS) return;
    for (int b = 0; b < BJ_CALIBRATION_BINS; b++) {
        yyjson_val *bin = yyjson_arr_get(list, (size_t)b);
        arm->bins[b] = (bj_calibration_bin){report_json_number(bin, "count"),
                                            report_json_number(bin, "confidence"),
                                            report_json_number(bin, "hits")};
    }
    arm->has_bins = 1;
}

static bj_status read_summary(report_data *data, bj_error *err) {
    yyjson_doc *doc;
    yyjson_val *arms, *item;
    bj_status status = open_record(&doc, data, BJ_LOCKED_SUMMARY, err);
    if (status != BJ_OK) return status;
    status = report_json_list(&arms, yyjson_doc_get_root(doc), "arms", MOST_ROWS, BJ_LOCKED_SUMMARY,
                              err);
    yyjson_arr_iter iter = yyjson_arr_iter_with(status == BJ_OK ? arms : NULL);
    while ((item = yyjson_arr_iter_next(&iter))) {
        const int arm = arm_of(data, item);
        if (arm >= 0) read_bins(&data->arm[arm], yyjson_obj_get(item, "calibration"));
    }
    yyjson_doc_free(doc);
    return status;
}

/* Reads one row, which contains the shares of the branches of one run. */
static bj_status read_usage(report_data *data, yyjson_val *row, bj_error *err) {
    const int number = arm_of(data, row);
    yyjson_val *shares = yyjson_obj_get(row, "shares");
    const double seed = report_json_number(row, "seed");
    if (number < 0) return BJ_OK;
    report_arm *arm = &data->arm[number];
    const size_t atoms = (size_t)arm->atoms, count = atoms * (size_t)data->seeds;
    if (!atoms || yyjson_arr_size(shares) != atoms) return BJ_OK;
    if (!arm->usage) {
        arm->usage = malloc(count * sizeof *arm->usage);
        if (!arm->usage) return cli_error(err, BJ_ENOMEM, "out of memory");
        for (size_t i = 0; i < count; i++) arm->usage[i] = NAN;
    }
    for (int s = 0; s < data->seeds; s++) {
        if ((double)data->seed[s] != seed) continue;
        for (size_t k = 0; k < atoms; k++) {
            yyjson_val *share = yyjson_arr_get(shares, k);
            arm->usage[(size_t)s * atoms + k] = yyjson_is_num(share) ? yyjson_get_num(share) : NAN;
        }
    }
    return BJ_OK;
}

static bj_status read_seeds(report_data *data, bj_error *err) {
    yyjson_doc *doc;
    yyjson_val *rows, *row;
    bj_status status = open_record(&doc, data, BJ_LOCKED_SEEDS, err);
    if (status != BJ_OK) return status;
    status =
        report_json_list(&rows, yyjson_doc_get_root(doc), "usage", MOST_ROWS, BJ_LOCKED_SEEDS, err);
    yyjson_arr_iter iter = yyjson_arr_iter_with(status == BJ_OK ? rows : NULL);
    while (status == BJ_OK && (row = yyjson_arr_iter_next(&iter)))
        status = read_usage(data, row, err);
    yyjson_doc_free(doc);
    return status;
}

bj_status report_read_locked(report_data *data, bj_error *err) {
    if (!data->locked) return BJ_OK;
    bj_status status = read_lock(data, err);
    if (status == BJ_OK) status = read_completion(data, err);
    if (status == BJ_OK) status = read_summary(data, err);
    if (status == BJ_OK) status = read_seeds(data, err);
    return status;
}
