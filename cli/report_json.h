/* report_json.h - the JSON files of a campaign folder, as report_data reads them. */
#ifndef BJEPA_REPORT_JSON_H
#define BJEPA_REPORT_JSON_H

#include <yyjson.h>

#include "report_data.h"

/* *out is NULL when there is no such file, which is no error. */
BJ_CHECK bj_status report_json_open(yyjson_doc **out, const char *folder, const char *name,
                                    bj_error *err);
/* The member as text, cut to `room`; empty when it is not there or no text. */
void report_json_text(char *out, size_t room, yyjson_val *object, const char *key);
/* NaN when it is not there, null or no number. */
double report_json_number(yyjson_val *object, const char *key);
/* A member that must be a list, with at most `most` items. */
BJ_CHECK bj_status report_json_list(yyjson_val **out, yyjson_val *object, const char *key,
                                    size_t most, const char *file, bj_error *err);

/* Copies the content of the verified evaluation, if there is one. */
BJ_CHECK bj_status report_read_locked(report_data *data, bj_error *err);
/* Fill what the files in the folder say; files that are not there leave everything as it is. */
BJ_CHECK bj_status report_read_audit(report_data *data, const char *folder, bj_error *err);
BJ_CHECK bj_status report_read_truth(report_data *data, const char *folder, bj_error *err);
void report_audit_free(report_audit *audit);
void report_truth_free(report_truth *truth);

#endif
