/* csv.c - see csv.h. Quotes are removed in place, which only makes fields shorter. */
#include "stats/csv.h"

#include <string.h>

void bj_csv_begin(bj_csv *csv, char *text, size_t size, const char *path) {
    *csv = (bj_csv){.path = path, .at = text, .end = text + size, .next_line = 1};
    *csv->end = '\n'; /* terminates the last line, and stops every search for a newline */
    if (size >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) csv->at += 3;
}

static bj_status fail(const bj_csv *csv, bj_error *err, const char *what) {
    return BJ_FAIL(err, BJ_EFORMAT, "%s: line %ld: %s", csv->path, csv->next_line, what);
}

static int at_line_end(const bj_csv *csv) {
    return *csv->at == '\n' || (*csv->at == '\r' && csv->at + 1 <= csv->end && csv->at[1] == '\n');
}

/* Reads a quoted field, from the opening quote at `at` to just after the closing quote. */
static bj_status quoted_field(bj_csv *csv, char **begin, char **stop, bj_error *err) {
    const long opened = csv->next_line;
    char *to = *begin = ++csv->at;
    for (;;) {
        if (csv->at >= csv->end)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: line %ld: the quote that starts here is not closed",
                           csv->path, opened);
        if (*csv->at == '"') {
            if (csv->at[1] != '"' || csv->at + 1 >= csv->end) break;
            csv->at++; /* keep the second of two quotes */
        }
        if (*csv->at == '\n') csv->next_line++;
        if (!*csv->at) return fail(csv, err, "found a zero byte, expected text");
        *to++ = *csv->at++;
    }
    csv->at++;
    *stop = to;
    if (*csv->at != ',' && !at_line_end(csv))
        return fail(csv, err, "found text after a closing quote, expected a comma");
    return BJ_OK;
}

static bj_status bare_field(bj_csv *csv, char **begin, char **stop, bj_error *err) {
    *begin = csv->at;
    while (*csv->at != ',' && !at_line_end(csv)) {
        if (*csv->at == '"') return fail(csv, err, "found a quote inside a field without quotes");
        if (!*csv->at) return fail(csv, err, "found a zero byte, expected text");
        csv->at++;
    }
    *stop = csv->at;
    return BJ_OK;
}

static void skip_line_end(bj_csv *csv) {
    csv->at += *csv->at == '\r' ? 2 : 1;
    csv->next_line++;
}

bj_status bj_csv_next(bj_csv *csv, int *found, bj_error *err) {
    *found = 0;
    csv->count = 0;
    while (csv->at < csv->end && at_line_end(csv)) skip_line_end(csv);
    if (csv->at >= csv->end) return BJ_OK;
    csv->line = csv->next_line;
    for (;;) {
        char *begin = csv->at, *stop = csv->at;
        if (csv->count == BJ_CSV_FIELDS)
            return BJ_FAIL(err, BJ_EFORMAT, "%s: line %ld: more than %d fields", csv->path,
                           csv->line, BJ_CSV_FIELDS);
        if (*csv->at == '"') BJ_TRY(quoted_field(csv, &begin, &stop, err));
        else BJ_TRY(bare_field(csv, &begin, &stop, err));
        const int last = *csv->at != ',';
        if (last) skip_line_end(csv);
        else csv->at++;
        *stop = '\0'; /* done last because it overwrites the separator */
        csv->fields[csv->count++] = begin;
        if (last) break;
    }
    *found = 1;
    return BJ_OK;
}
