/* json_out.c - see json_out.h. */
#include "json_out.h"

#include <math.h>
#include <stdlib.h>

void cli_json_text(FILE *to, const char *text) {
    if (!text) {
        fputs("null", to);
        return;
    }
    fputc('"', to);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f) fprintf(to, "\\u%04x", c);
        else if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
        else fputc(c, to);
    }
    fputc('"', to);
}

void cli_json_float(FILE *to, float value) {
    if (isfinite(value)) fprintf(to, "%.9g", (double)value);
    else fputs("null", to);
}

void cli_json_double(FILE *to, double value) {
    char text[32];
    if (!isfinite(value)) {
        fputs("null", to);
        return;
    }
    snprintf(text, sizeof text, "%.15g", value); /* short where that is enough */
    if (strtod(text, NULL) != value) snprintf(text, sizeof text, "%.17g", value);
    fputs(text, to);
}
