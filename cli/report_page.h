/* report_page.h - writes a page from a template in cli/assets.
 *
 * A placeholder is {{name}}. The style and the script come from the assets, and everything else
 * comes from the caller.
 * Test: tests/cli/view.sh, tests/cli/report.sh
 */
#ifndef BJEPA_REPORT_PAGE_H
#define BJEPA_REPORT_PAGE_H

#include "cli.h"

#include <stdio.h>

/* Writes the content for the placeholder of that name. */
typedef bj_status (*report_filler)(FILE *to, const char *name, void *context, bj_error *err);

/* Writes a template, given by its file name, such as "browser.html". */
BJ_CHECK bj_status report_template(FILE *to, const char *name, report_filler fill, void *context,
                                   bj_error *err);
/* Writes the whole page. Calls `fill` for title, navigation, sections, footer and scenes, in this
 * order. */
BJ_CHECK bj_status report_page_write(FILE *to, report_filler fill, void *context, bj_error *err);
/* Writes the page with other styles and scripts from cli/assets. Both lists end with NULL. */
BJ_CHECK bj_status report_page_write_with(FILE *to, const char *const *styles,
                                          const char *const *scripts, report_filler fill,
                                          void *context, bj_error *err);

/* Writes the text above the scenes. */
void report_about_glance(FILE *to, const char *model);

/* Writes text in which the special characters of HTML are escaped. */
void report_text(FILE *to, const char *text);
void report_textf(FILE *to, const char *fmt, ...) CLI_PRINTF(2, 3);

#endif
