/* verbs.h - a table of verbs and functions to select one; also used for subcommands such as `bjepa
 * data prep`. */
#ifndef BJEPA_VERBS_H
#define BJEPA_VERBS_H

#include <stdio.h>

typedef struct cli_verb {
    const char *name, *summary;
    int (*run)(int argc, char **argv); /* argv[0] is the name; returns the exit code */
} cli_verb;

#define CLI_VERB_END                                                                               \
    { 0, 0, 0 }

/* "  name  summary", one a line. */
void cli_verbs_print(FILE *stream, const cli_verb *verbs);
/* Returns the verb with that name, or NULL. In that case *nearest is the most similar verb, or
 * NULL. */
const cli_verb *cli_verbs_find(const cli_verb *verbs, const char *name, const char **nearest);

typedef struct cli_group {
    const char *name, *summary;
    const char *examples;  /* one a line, each ending in a newline */
    const cli_verb *verbs; /* up to CLI_VERB_END */
} cli_group;

/* If set, cli_group_run calls this function and returns CLI_OK; see cli_usage_hook. */
extern void (*cli_group_hook)(const cli_group *group);

/* The verbs of bjepa. */
extern const cli_verb cli_main_verbs[];

/* Runs a group. argv[0] is the name of the group, and argv[1] is its verb or --help. */
int cli_group_run(const cli_group *group, int argc, char **argv);

#endif
