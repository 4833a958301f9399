/* report_page.h - the frame of a page: a template of cli/assets with its gaps filled.
 *
 * A gap is {{name}}. The style and the script come from the assets; everything else from the
 * caller.
 * Test: tests/cli/view.sh, tests/cli/report.sh
 */
#ifndef BJEPA_REPORT_PAGE_H
#define BJEPA_REPORT_PAGE_H

#include "cli.h"

#include <stdio.h>

/* Writes what belongs into the gap of that name. */
typedef bj_status (*report_filler)(FILE *to, const char *name, void *context, bj_error *err);

/* A template by the name of its file, "browser.html". */
BJ_CHECK bj_status report_template(FILE *to, const char *name, report_filler fill, void *context,
                                   bj_error *err);
/* The whole page: asks `fill` for title, navigation, sections, footer and scenes, in this order. */
BJ_CHECK bj_status report_page_write(FILE *to, report_filler fill, void *context, bj_error *err);
/* The same frame with other styles and scripts of cli/assets; both lists end with NULL. */
BJ_CHECK bj_status report_page_write_with(FILE *to, const char *const *styles,
                                          const char *const *scripts, report_filler fill,
                                          void *context, bj_error *err);

/* What is written above the scenes at a glance. */
void report_about_glance(FILE *to, const char *model);

/* Text with the characters escaped that mean something in HTML. */
void report_text(FILE *to, const char *text);
void report_textf(FILE *to, const char *fmt, ...) CLI_PRINTF(2, 3);

#endif
