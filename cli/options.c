/* options.c - a table-driven option parser for all verbs, and the help text generated from the same
 * table.
 *
 * Accepted forms are --name VALUE, --name=VALUE, -x VALUE and -xVALUE. "--" ends the options. Long
 * names cannot be abbreviated. If an option is repeated, the last value is used. A list keeps all
 * values.
 */
#include "cli.h"
#include "verbs.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_SIZE = 64, MAX_OPTIONS = 64 };

void (*cli_usage_hook)(const cli_usage *usage) = NULL;

/* ------------------------------------------------------------------------------------- defaults */

/* Copies word `index` of "one|two|three". Returns 0 if there is none. */
static int choice_word(char word[NAME_SIZE], const char *words, int index) {
    for (; index > 0 && words; index--) {
        words = strchr(words, '|');
        if (words) words++;
    }
    if (words && index == 0)
        snprintf(word, NAME_SIZE, "%.*s", (int)strcspn(words, "|"), words);
    return words != NULL && index == 0;
}

void cli_default(char text[CLI_DEFAULT_SIZE], const cli_option *option) {
    char word[NAME_SIZE];
    text[0] = '\0';
    switch (option->type) {
    case CLI_FLAG:
    case CLI_LIST: break;
    case CLI_INT: {
        const int value = *(const int *)option->value;
        if (value >= option->min && value <= option->max)
            snprintf(text, CLI_DEFAULT_SIZE, "%d", value);
        break;
    }
    case CLI_SEED:
        snprintf(text, CLI_DEFAULT_SIZE, "%llu",
                 (unsigned long long)*(const uint64_t *)option->value);
        break;
    case CLI_REAL: {
        const double value = *(const double *)option->value;
        if (value >= option->min && value <= option->max)
            snprintf(text, CLI_DEFAULT_SIZE, "%g", value);
        break;
    }
    case CLI_TEXT:
        if (*(const char *const *)option->value)
            snprintf(text, CLI_DEFAULT_SIZE, "%s", *(const char *const *)option->value);
        break;
    case CLI_CHOICE:
        if (choice_word(word, option->arg, *(const int *)option->value))
            snprintf(text, CLI_DEFAULT_SIZE, "%.*s", CLI_DEFAULT_SIZE - 1, word);
        break;
    }
}

/* ----------------------------------------------------------------------------------------- help */

enum { HELP_COLUMNS = 100, NO_BREAK = 1 /* a space at which no line ends */ };

const cli_option cli_help_option = {"help", 'h', CLI_FLAG, NULL, NULL, 0, 0, "print this help"};

/* Writes "-j, --threads N", the left column of the help. */
static int left_column(char *text, size_t size, const cli_option *option) {
    char letter[8] = "    ";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    return snprintf(text, size, "%s--%s%s%s", letter, option->name, option->arg ? " " : "",
                    option->arg ? option->arg : "");
}

/* Prints a text in lines of at most HELP_COLUMNS; it begins at column `indent`. */
static void print_wrapped(const char *text, int indent) {
    int column = indent;
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column > indent && column + 1 + length > HELP_COLUMNS) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            putchar(' ');
            column++;
        }
        for (int i = 0; i < length; i++) putchar(text[i] == NO_BREAK ? ' ' : text[i]);
        column += length;
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

static void print_option(const cli_option *option, const char *initial, int width) {
    char left[128], text[512];
    left_column(left, sizeof left, option);
    printf("  %-*s  ", width, left);
    if (*initial)
        snprintf(text, sizeof text, "%s (default:%c%s)", option->help, NO_BREAK, initial);
    else snprintf(text, sizeof text, "%s", option->help);
    print_wrapped(text, width + 4);
}

static void print_help(const cli_usage *usage, char (*initial)[CLI_DEFAULT_SIZE]) {
    char text[128];
    int width = left_column(text, sizeof text, &cli_help_option), has_value = 0;
    for (const cli_option *o = usage->options; o->name; o++) {
        const int length = left_column(text, sizeof text, o);
        if (length > width) width = length;
        if (o->type != CLI_FLAG) has_value = 1;
    }
    printf("bjepa %s - %s\n\nExamples:\n", usage->verb, usage->summary);
    for (const char *line = usage->examples; *line; line = strchr(line, '\n') + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
    printf("\nUsage: bjepa %s [OPTION...]%s%s\n\n", usage->verb, usage->operands ? " " : "",
           usage->operands ? usage->operands : "");
    if (usage->verbs) {
        printf("Verbs:\n");
        cli_verbs_print(stdout, usage->verbs);
        printf("\n");
    }
    printf("Options:\n");
    for (const cli_option *o = usage->options; o->name; o++)
        print_option(o, initial[o - usage->options], width);
    print_option(&cli_help_option, "", width);
    if (has_value)
        printf("\nAn option that takes a value can also be set with an environment variable: "
               "--some-name with BJEPA_SOME_NAME.\n");
}

/* --------------------------------------------------------------------------------------- values */

static int bad_choice(const cli_usage *usage, const cli_option *option, const char *source,
                      const char *value) {
    char word[NAME_SIZE], best[NAME_SIZE];
    bj_nearest nearest = BJ_NEAREST(value);
    for (int i = 0; choice_word(word, option->arg, i); i++) {
        bj_nearest_offer(&nearest, word);
        if (nearest.best == word) nearest.best = strcpy(best, word); /* `word` is reused */
    }
    if (nearest.best)
        return cli_misuse(usage->verb, "%s: found '%s', expected %s; did you mean '%s'?", source,
                          value, option->arg, nearest.best);
    return cli_misuse(usage->verb, "%s: found '%s', expected %s", source, value, option->arg);
}

/* Stores the value, or prints why it is invalid. `source` is the option or the environment variable
 * that the user set. */
static int set_value(const cli_usage *usage, const cli_option *option, const char *source,
                     const char *value) {
    char *end = NULL;
    errno = 0;
    switch (option->type) {
    case CLI_FLAG: break; /* never has a value */
    case CLI_TEXT: *(const char **)option->value = value; return CLI_CONTINUE;
    case CLI_LIST: {
        cli_list *list = option->value;
        if (list->count == CLI_LIST_SIZE)
            return cli_misuse(usage->verb, "%s is given more than %d times", source, CLI_LIST_SIZE);
        list->items[list->count++] = value;
        return CLI_CONTINUE;
    }
    case CLI_INT: {
        const long number = strtol(value, &end, 10);
        if (end == value || *end || errno || number < option->min || number > option->max)
            return cli_misuse(usage->verb, "%s: found '%s', expected an integer from %.0f to %.0f",
                              source, value, option->min, option->max);
        *(int *)option->value = (int)number;
        return CLI_CONTINUE;
    }
    case CLI_SEED: {
        const unsigned long long number = strtoull(value, &end, 10);
        if (!isdigit((unsigned char)value[0]) || *end || errno)
            return cli_misuse(usage->verb,
                              "%s: found '%s', expected an integer from 0 to 18446744073709551615",
                              source, value);
        *(uint64_t *)option->value = number;
        return CLI_CONTINUE;
    }
    case CLI_REAL: {
        const double number = strtod(value, &end);
        if (end == value || *end || !(number >= option->min && number <= option->max))
            return cli_misuse(usage->verb, "%s: found '%s', expected a number from %g to %g",
                              source, value, option->min, option->max);
        *(double *)option->value = number;
        return CLI_CONTINUE;
    }
    case CLI_CHOICE: {
        char word[NAME_SIZE];
        for (int i = 0; choice_word(word, option->arg, i); i++)
            if (!strcmp(word, value)) {
                *(int *)option->value = i;
                return CLI_CONTINUE;
            }
        return bad_choice(usage, option, source, value);
    }
    }
    return CLI_CONTINUE;
}

/* -------------------------------------------------------------------------------------- parsing */

static const cli_option *find_long(const cli_usage *usage, const char *name, size_t length) {
    for (const cli_option *o = usage->options; o->name; o++)
        if (strlen(o->name) == length && !strncmp(o->name, name, length)) return o;
    return NULL;
}

static const cli_option *find_letter(const cli_usage *usage, char letter) {
    for (const cli_option *o = usage->options; o->name; o++)
        if (o->letter == letter) return o;
    return NULL;
}

/* Returns the key of the setting that an unknown option names, "epochs" or "train.epochs", or NULL. */
static const char *find_setting(const cli_usage *usage, const char *name) {
    static const char *const others[][2] = {{"batch-size", "batch"}, {"learning-rate", "lr"}};
    if (!find_long(usage, "set", 3)) return NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(name, others[i][0])) name = others[i][1];
    for (int i = 0; i < bj_setting_count(); i++) {
        const char *key = bj_setting_at(i).key, *dot = strrchr(key, '.');
        if (!strcmp(key, name) || (dot && !strcmp(dot + 1, name))) return key;
    }
    return NULL;
}

static int unknown_option(const cli_usage *usage, const char *text, size_t length) {
    char name[NAME_SIZE];
    snprintf(name, sizeof name, "%.*s", (int)length, text);
    const char *key = find_setting(usage, name + strspn(name, "-"));
    if (key)
        return cli_misuse(usage->verb, "unknown option '%s'; use --set %s=VALUE for this setting",
                          name, key);
    bj_nearest nearest = BJ_NEAREST(name + strspn(name, "-"));
    for (const cli_option *o = usage->options; o->name; o++) bj_nearest_offer(&nearest, o->name);
    bj_nearest_offer(&nearest, "help");
    if (nearest.best)
        return cli_misuse(usage->verb, "unknown option '%s'; did you mean '--%s'?", name,
                          nearest.best);
    return cli_misuse(usage->verb, "unknown option '%s'", name);
}

/* --threads is BJEPA_THREADS, --dry-run is BJEPA_DRY_RUN. */
static int set_from_environment(const cli_usage *usage, const cli_option *option) {
    char name[NAME_SIZE] = "BJEPA_";
    size_t at = strlen(name);
    for (const char *c = option->name; *c && at + 1 < sizeof name; c++)
        name[at++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    name[at] = '\0';
    const char *value = getenv(name);
    return value && *value ? set_value(usage, option, name, value) : CLI_CONTINUE;
}

/* Handles the option at argv[*at] and moves *at to the last argument it used. */
static int parse_option(const cli_usage *usage, int argc, char **argv, int *at, char *given,
                        char (*initial)[CLI_DEFAULT_SIZE]) {
    const char *text = argv[*at];
    const int is_long = text[1] == '-';
    const size_t length = is_long ? strcspn(text, "=") : 2; /* of the name, dashes included */
    if ((is_long && length == 6 && !strncmp(text, "--help", 6)) || !strcmp(text, "-h")) {
        print_help(usage, initial);
        return CLI_OK;
    }
    const cli_option *option =
        is_long ? find_long(usage, text + 2, length - 2) : find_letter(usage, text[1]);
    if (!option) return unknown_option(usage, text, is_long ? length : strlen(text));
    assert(option - usage->options < MAX_OPTIONS);
    given[option - usage->options] = 1;

    char source[NAME_SIZE];
    snprintf(source, sizeof source, "%.*s", (int)length, text);
    const char *rest = text + length;
    const char *value = *rest ? rest + is_long : NULL;
    if (option->type == CLI_FLAG) {
        if (value) return cli_misuse(usage->verb, "%s takes no value, found '%s'", source, value);
        *(int *)option->value = 1;
        return CLI_CONTINUE;
    }
    if (!value) {
        if (*at + 1 >= argc)
            return cli_misuse(usage->verb, "%s needs a value: %s", source, option->arg);
        value = argv[++*at];
    }
    return set_value(usage, option, source, value);
}

int cli_parse(const cli_usage *usage, int argc, char **argv, int *operands) {
    char given[MAX_OPTIONS] = {0}, initial[MAX_OPTIONS][CLI_DEFAULT_SIZE];
    int count = 0, only_operands = 0;
    if (cli_usage_hook) {
        cli_usage_hook(usage);
        return CLI_OK;
    }
    for (const cli_option *o = usage->options; o->name; o++)
        cli_default(initial[o - usage->options], o);
    for (int i = 1; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || !argv[i][1]) {
            argv[++count] = argv[i];
        } else if (!strcmp(argv[i], "--")) {
            only_operands = 1;
        } else {
            const int result = parse_option(usage, argc, argv, &i, given, initial);
            if (result != CLI_CONTINUE) return result;
        }
    }
    if (count > usage->max_operands)
        return cli_misuse(usage->verb, "unexpected argument '%s'", argv[usage->max_operands + 1]);
    if (count < usage->min_operands)
        return cli_misuse(usage->verb, "found %s, expected %s",
                          count == 0   ? "no argument"
                          : count == 1 ? "one argument"
                                       : "too few arguments",
                          usage->operands);
    for (const cli_option *o = usage->options; o->name; o++) {
        if (given[o - usage->options] || o->type == CLI_FLAG) continue;
        const int result = set_from_environment(usage, o);
        if (result != CLI_CONTINUE) return result;
    }
    if (operands) *operands = count;
    return CLI_CONTINUE;
}
