/* verbs.c - finds a verb by its name, and runs groups of verbs. */
#include "verbs.h"

#include <string.h>

#include "cli.h"

void cli_verbs_print(FILE *stream, const cli_verb *verbs) {
    for (; verbs->name; verbs++) fprintf(stream, "  %-9s  %s\n", verbs->name, verbs->summary);
}

const cli_verb *cli_verbs_find(const cli_verb *verbs, const char *name, const char **nearest) {
    bj_nearest close = BJ_NEAREST(name);
    for (const cli_verb *verb = verbs; verb->name; verb++) {
        if (!strcmp(verb->name, name)) return verb;
        bj_nearest_offer(&close, verb->name);
    }
    *nearest = close.best;
    return NULL;
}

static void print_overview(FILE *to, const cli_group *group) {
    fprintf(to, "bjepa %s - %s\n\nExamples:\n", group->name, group->summary);
    for (const char *line = group->examples; *line; line = strchr(line, '\n') + 1)
        fprintf(to, "  %.*s\n", (int)strcspn(line, "\n"), line);
    fprintf(to, "\nUsage: bjepa %s VERB [OPTION...]\n\nVerbs:\n", group->name);
    cli_verbs_print(to, group->verbs);
    fprintf(to,
            "\nOptions:\n  -h, --help  print this help; "
            "'bjepa %s VERB --help' prints the help of a verb\n",
            group->name);
}

void (*cli_group_hook)(const cli_group *group) = NULL;

int cli_group_run(const cli_group *group, int argc, char **argv) {
    if (cli_group_hook) {
        cli_group_hook(group);
        return CLI_OK;
    }
    if (argc < 2) {
        print_overview(stderr, group);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_overview(stdout, group);
        return CLI_OK;
    }
    if (argv[1][0] == '-') return cli_misuse(group->name, "unknown option '%s'", argv[1]);
    const char *nearest;
    const cli_verb *verb = cli_verbs_find(group->verbs, argv[1], &nearest);
    if (verb) return verb->run(argc - 1, argv + 1);
    if (nearest)
        return cli_misuse(group->name, "unknown verb '%s'; did you mean '%s'?", argv[1], nearest);
    return cli_misuse(group->name, "unknown verb '%s'", argv[1]);
}
