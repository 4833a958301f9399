/* json_out.h - writes JSON values for the commands. */
#ifndef BJEPA_JSON_OUT_H
#define BJEPA_JSON_OUT_H

#include <stdio.h>

/* Writes a string in quotes. NULL becomes null. The text must be UTF-8. */
void cli_json_text(FILE *to, const char *text);
/* Writes a number that reads back as the same float or double. A number that is not finite becomes
 * null. */
void cli_json_float(FILE *to, float value);
void cli_json_double(FILE *to, double value);

#endif
