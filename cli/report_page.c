/* report_page.c - see report_page.h. */
#include "report_page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "embedded.h"
#include "svg.h"

enum { NAME_SIZE = 32 };

static bj_status asset(const cli_embedded **out, const char *name, bj_error *err) {
    *out = cli_embedded_find(name);
    if (*out) return BJ_OK;
    return cli_error(err, BJ_EFORMAT, "this program was built without the file %s", name);
}

bj_status report_template(FILE *to, const char *name, report_filler fill, void *context,
                          bj_error *err) {
    const cli_embedded *file;
    bj_status status = asset(&file, name, err);
    if (status != BJ_OK) return status;
    const char *at = file->bytes, *gap;
    while ((gap = strstr(at, "{{")) != NULL) {
        const char *end = strstr(gap, "}}");
        char inside[NAME_SIZE];
        const size_t length = end ? (size_t)(end - gap) - 2 : NAME_SIZE;
        if (length >= NAME_SIZE)
            return cli_error(err, BJ_EFORMAT, "%s: a placeholder is not closed", name);
        fwrite(at, 1, (size_t)(gap - at), to);
        memcpy(inside, gap + 2, length);
        inside[length] = '\0';
        status = fill(to, inside, context, err);
        if (status != BJ_OK) return status;
        at = end + 2;
    }
    fputs(at, to);
    return BJ_OK;
}

typedef struct frame {
    const char *const *styles, *const *scripts;
    report_filler fill;
    void *context;
} frame;

static bj_status copy(FILE *to, const char *name, bj_error *err) {
    const cli_embedded *file;
    const bj_status status = asset(&file, name, err);
    if (status == BJ_OK) fwrite(file->bytes, 1, file->size, to);
    return status;
}

static bj_status copy_all(FILE *to, const char *const *names, bj_error *err) {
    bj_status status = BJ_OK;
    for (; *names && status == BJ_OK; names++) status = copy(to, *names, err);
    return status;
}

static bj_status fill_frame(FILE *to, const char *name, void *context, bj_error *err) {
    const frame *f = context;
    if (!strcmp(name, "style")) return copy_all(to, f->styles, err);
    if (!strcmp(name, "script")) return copy_all(to, f->scripts, err);
    return f->fill(to, name, f->context, err);
}

bj_status report_page_write_with(FILE *to, const char *const *styles, const char *const *scripts,
                                 report_filler fill, void *context, bj_error *err) {
    frame f = {styles, scripts, fill, context};
    return report_template(to, "report.html", fill_frame, &f, err);
}

bj_status report_page_write(FILE *to, report_filler fill, void *context, bj_error *err) {
    static const char *const styles[] = {"report.css", "plot.css", NULL};
    static const char *const scripts[] = {"report.js", "scene.js", "browser.js", "glance.js", NULL};
    return report_page_write_with(to, styles, scripts, fill, context, err);
}

void report_about_glance(FILE *to, const char *model) {
    fputs("<p>This section shows the futures that ", to);
    report_text(to, model);
    fputs(" predicts, each with its probability, "
          "next to the distribution from which the true future was drawn. "
          "This distribution is known because the scenes are simulated. "
          "Thin lines are draws from it, labels name its modes, "
          "and the dashed line is the true future. "
          "Bars compare probabilities: each predicted future counts toward the closest true mode. "
          "Blue is the forecast, and purple is the true distribution.</p>\n",
          to);
}

void report_text(FILE *to, const char *text) { svg_text(to, text ? text : ""); }

void report_textf(FILE *to, const char *fmt, ...) {
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    report_text(to, text);
}
