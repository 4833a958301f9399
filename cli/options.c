/* options.c - one table-driven parser for all verbs, and the help made from the same table.
 *
 * Accepted: --name VALUE, --name=VALUE, -x VALUE, -xVALUE; "--" ends the options. Long names are
 * never abbreviated; the last of several wins, but a list takes all. A message says what was found
 * and expected.
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

/* ----------------------------------------------------------------------------------------- help */

/* "-j, --threads N", the left column of the help. */
static int left_column(char *text, size_t size, const cli_option *option) {
    char letter[8] = "    ";
    if (option->letter) snprintf(letter, sizeof letter, "-%c, ", option->letter);
    return snprintf(text, size, "%s--%s%s%s", letter, option->name, option->arg ? " " : "",
                    option->arg ? option->arg : "");
}

static void print_help(const cli_usage *usage) {
    static const cli_option help = {"help", 'h', CLI_FLAG, NULL, NULL, 0, 0, "print this help"};
    char text[128];
    int width = left_column(text, sizeof text, &help), has_value = 0;
    for (const cli_option *o = usage->options; o->name; o++) {
        const int length = left_column(text, sizeof text, o);
        if (length > width) width = length;
        if (o->type != CLI_FLAG) has_value = 1;
    }
    printf("bjepa %s - %s\n\nExamples:\n", usage->verb, usage->summary);
    for (const char *line = usage->examples; *line; line = strchr(line, '\n') + 1)
        printf("  %.*s\n", (int)strcspn(line, "\n"), line);
    printf("\nUsage: bjepa %s [OPTION...]%s%s\n\n", usage->verb,
           usage->operands ? " " : "", usage->operands ? usage->operands : "");
    if (usage->verbs) {
        printf("Verbs:\n");
        cli_verbs_print(stdout, usage->verbs);
        printf("\n");
    }
    printf("Options:\n");
    for (const cli_option *o = usage->options; o->name; o++) {
        left_column(text, sizeof text, o);
        printf("  %-*s  %s\n", width, text, o->help);
    }
    left_column(text, sizeof text, &help);
    printf("  %-*s  %s\n", width, text, help.help);
    if (has_value)
        printf("\nAn option with a value may come from the environment instead: --some-name VALUE "
               "from\nBJEPA_SOME_NAME.\n");
}

/* --------------------------------------------------------------------------------------- values */

/* Copies word `index` of "one|two|three"; returns 0 behind the last one. */
static int choice_word(char word[NAME_SIZE], const char *words, int index) {
    for (; index > 0 && words; index--) {
        words = strchr(words, '|');
        if (words) words++;
    }
    if (words) snprintf(word, NAME_SIZE, "%.*s", (int)strcspn(words, "|"), words);
    return words != NULL;
}

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

/* Stores the value, or says what is wrong with it. `source` is the option or variable as named by
 * the user. */
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
        return cli_misuse(usage->verb, "unknown option '%s'; it is a setting: use --set %s=VALUE", name,
                          key);
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
static int parse_option(const cli_usage *usage, int argc, char **argv, int *at, char *given) {
    const char *text = argv[*at];
    const int is_long = text[1] == '-';
    const size_t length = is_long ? strcspn(text, "=") : 2; /* of the name, dashes included */
    if ((is_long && length == 6 && !strncmp(text, "--help", 6)) || !strcmp(text, "-h")) {
        print_help(usage);
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
    char given[MAX_OPTIONS] = {0};
    int count = 0, only_operands = 0;
    for (int i = 1; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || !argv[i][1]) {
            argv[++count] = argv[i];
        } else if (!strcmp(argv[i], "--")) {
            only_operands = 1;
        } else {
            const int result = parse_option(usage, argc, argv, &i, given);
            if (result != CLI_CONTINUE) return result;
        }
    }
    if (count > usage->max_operands)
        return cli_misuse(usage->verb, "unexpected argument '%s'", argv[usage->max_operands + 1]);
    if (count < usage->min_operands)
        return cli_misuse(usage->verb, "found %d arguments, expected %s", count, usage->operands);
    for (const cli_option *o = usage->options; o->name; o++) {
        if (given[o - usage->options] || o->type == CLI_FLAG) continue;
        const int result = set_from_environment(usage, o);
        if (result != CLI_CONTINUE) return result;
    }
    if (operands) *operands = count;
    return CLI_CONTINUE;
}
