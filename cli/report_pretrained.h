/* report_pretrained.h - a model that was trained elsewhere, next to the arms of a campaign.
 *
 * It is not an arm, because it was trained on other scenes, and more of them. Its numbers come from
 * the entries with its name in truth.json and audit.json of the campaign folder, so the
 * model and the arms are compared on the same scenes.
 * Test: tests/cli/report.sh
 */
#ifndef BJEPA_REPORT_PRETRAINED_H
#define BJEPA_REPORT_PRETRAINED_H

#include "report_data.h"

#define REPORT_PRETRAINED_ARM "pretrained" /* its arm in the scene browser */

typedef struct report_pretrained {
    const char *model; /* as given; NULL: there is none */
    char path[CLI_PATH_SIZE], title[REPORT_TITLE_SIZE], sha256[65];
    size_t parameters;
    bj_facts *facts;
} report_pretrained;

/* Reads the description of the model file. model may be NULL. */
BJ_CHECK bj_status report_pretrained_open(report_pretrained *out, const char *model, bj_error *err);
void report_pretrained_close(report_pretrained *pretrained);

/* Writes the section, which consists of a description of the model and a table with the arms. */
void report_pretrained_write(FILE *to, const report_pretrained *pretrained,
                             const report_data *data);

#endif
