/* manual.h - the man pages and shell completions, which are generated from the option tables.
 *manual.c collects a page for every verb and writes the man pages. manual_complete.c writes the
 *completions. The build runs the hidden verb `bjepa manual DIR`, which users do not need.
 */
#ifndef BJEPA_MANUAL_H
#define BJEPA_MANUAL_H

#include <stdio.h>

#include "cli.h"
#include "verbs.h"

typedef struct manual_page {
    const char *verb; /* "data prep"; "" for bjepa itself */
    const char *summary, *operands, *examples;
    const cli_verb *verbs; /* below this one, or NULL */
    int count;
    struct manual_option {
        cli_option option;
        char initial[CLI_DEFAULT_SIZE];
    } options[64]; /* (count) with --help */
} manual_page;

typedef struct manual {
    manual_page *page; /* (count) */
    int count, room, failed;
} manual;

/* Writes the words of a choice, "one two three". Writes nothing for options of other types. */
void manual_choices(FILE *to, const cli_option *option);

void manual_bash(FILE *to, const manual *m);
void manual_zsh(FILE *to, const manual *m);
void manual_fish(FILE *to, const manual *m);

#endif
