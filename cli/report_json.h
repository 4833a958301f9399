/* report_json.h - reads the JSON files of a campaign folder for report_data. */
#ifndef BJEPA_REPORT_JSON_H
#define BJEPA_REPORT_JSON_H

#include <yyjson.h>

#include "report_data.h"

/* Reads a file. *out is NULL if the file does not exist, which is not an error. */
BJ_CHECK bj_status report_json_open(yyjson_doc **out, const char *folder, const char *name,
                                    bj_error *err);
/* Returns a member as text, truncated to `room`. The text is empty if the member is missing or not
 * a string. */
void report_json_text(char *out, size_t room, yyjson_val *object, const char *key);
/* Returns NaN if the member is missing, null or not a number. */
double report_json_number(yyjson_val *object, const char *key);
/* Returns a member that must be a list with at most `most` items. */
BJ_CHECK bj_status report_json_list(yyjson_val **out, yyjson_val *object, const char *key,
                                    size_t most, const char *file, bj_error *err);

/* Copies the content of the verified evaluation, if there is one. */
BJ_CHECK bj_status report_read_locked(report_data *data, bj_error *err);
/* Read the files in the folder. Missing files change nothing. */
BJ_CHECK bj_status report_read_audit(report_data *data, const char *folder, bj_error *err);
BJ_CHECK bj_status report_read_truth(report_data *data, const char *folder, bj_error *err);
void report_audit_free(report_audit *audit);
void report_truth_free(report_truth *truth);

#endif
