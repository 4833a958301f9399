/* json_out.h - pieces of JSON as the commands print them. */
#ifndef BJEPA_JSON_OUT_H
#define BJEPA_JSON_OUT_H

#include <stdio.h>

/* A string with its quotes; NULL becomes null. The text is taken as UTF-8. */
void cli_json_text(FILE *to, const char *text);
/* A number that reads back as the same float or double; null when it is not finite. */
void cli_json_float(FILE *to, float value);
void cli_json_double(FILE *to, double value);

#endif
