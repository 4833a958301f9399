/* manual.c - see manual.h. Test: tests/cli/manual.sh */
#include "manual.h"

#include <stdlib.h>
#include <string.h>

#include "output.h"

static manual collected;

/* ------------------------------------------------------------------------------------ collecting */

static manual_page *new_page(void) {
    if (collected.count == collected.room) {
        const int room = collected.room ? 2 * collected.room : 64;
        manual_page *larger = realloc(collected.page, (size_t)room * sizeof *larger);
        if (!larger) {
            collected.failed = 1;
            return NULL;
        }
        collected.page = larger;
        collected.room = room;
    }
    manual_page *page = &collected.page[collected.count++];
    memset(page, 0, sizeof *page);
    return page;
}

static void add_option(manual_page *page, const cli_option *option) {
    struct manual_option *o = &page->options[page->count];
    if (page->count == (int)(sizeof page->options / sizeof *page->options)) {
        collected.failed = 1;
        return;
    }
    o->option = *option;
    if (option->value) cli_default(o->initial, option);
    page->count++;
}

/* Calls every verb of a table. Each verb adds its own page through the hooks. */
static void collect(const cli_verb *verbs) {
    for (; verbs && verbs->name; verbs++) {
        char name[64], *arguments[] = {name, NULL};
        snprintf(name, sizeof name, "%s", verbs->name);
        verbs->run(1, arguments);
    }
}

static void on_usage(const cli_usage *usage) {
    manual_page *page = new_page();
    if (!page) return;
    page->verb = usage->verb;
    page->summary = usage->summary;
    page->operands = usage->operands;
    page->examples = usage->examples;
    page->verbs = usage->verbs;
    for (const cli_option *o = usage->options; o->name; o++) add_option(page, o);
    add_option(page, &cli_help_option);
    collect(usage->verbs);
}

static void on_group(const cli_group *group) {
    manual_page *page = new_page();
    if (!page) return;
    page->verb = group->name;
    page->summary = group->summary;
    page->operands = "VERB";
    page->examples = group->examples;
    page->verbs = group->verbs;
    add_option(page, &cli_help_option);
    collect(group->verbs);
}

void manual_choices(FILE *to, const cli_option *option) {
    if (option->type != CLI_CHOICE) return;
    for (const char *c = option->arg; *c; c++) fputc(*c == '|' ? ' ' : *c, to);
}

/* ------------------------------------------------------------------------------------- man pages */

/* Writes a text in roff. Minus signs are escaped, and no line may look like a request. */
static void put(FILE *to, const char *text, size_t length) {
    if (length && (text[0] == '.' || text[0] == '\'')) fputs("\\&", to);
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '-') fputs("\\-", to);
        else if (text[i] == '\\') fputs("\\e", to);
        else fputc(text[i], to);
    }
}

static void put_text(FILE *to, const char *text) { put(to, text, strlen(text)); }

/* Writes "bjepa-data-prep". */
static void put_name(FILE *to, const char *verb) {
    fputs("bjepa", to);
    if (*verb) fputc('-', to);
    for (; *verb; verb++) fputc(*verb == ' ' ? '-' : *verb, to);
}

static void put_title(FILE *to, const char *name, int section) {
    fputs(".TH ", to);
    for (const char *c = name; *c; c++) fputc(*c == ' ' ? '-' : *c >= 'a' && *c <= 'z' ? *c - 32 : *c, to);
    fprintf(to, " %d \"\" \"bjepa %s\" \"Branch-JEPA\"\n", section, bj_version());
}

static void put_verbs(FILE *to, const char *verb, const cli_verb *verbs) {
    fputs(".SH VERBS\n", to);
    for (; verbs && verbs->name; verbs++) {
        fputs(".TP\n.BR bjepa\\-", to);
        for (const char *c = verb; *c; c++) fputs(*c == ' ' ? "\\-" : (char[]){*c, 0}, to);
        if (*verb) fputs("\\-", to);
        put_text(to, verbs->name);
        fputs(" (1)\n", to);
        put_text(to, verbs->summary);
        fputc('\n', to);
    }
}

static void put_options(FILE *to, const manual_page *page) {
    fputs(".SH OPTIONS\n", to);
    for (int i = 0; i < page->count; i++) {
        const struct manual_option *o = &page->options[i];
        fputs(".TP\n", to);
        if (o->option.letter) fprintf(to, "\\fB\\-%c\\fR, ", o->option.letter);
        fputs("\\fB\\-\\-", to);
        put_text(to, o->option.name);
        fputs("\\fR", to);
        if (o->option.arg) {
            fputs(" \\fI", to);
            put_text(to, o->option.arg);
            fputs("\\fR", to);
        }
        fputc('\n', to);
        put_text(to, o->option.help);
        if (*o->initial) {
            fputs(" (default: ", to);
            put_text(to, o->initial);
            fputc(')', to);
        }
        fputs(".\n", to);
    }
}

static void put_exit_status(FILE *to) {
    static const char *const codes[][2] = {
        {"0", "success"},           {"1", "other failure"},
        {"2", "usage error"},       {"3", "invalid input file"},
        {"4", "failed check, gate or lock"}, {"5", "I/O error or out of memory"},
        {"130", "interrupted by SIGINT; 143 by SIGTERM"}};
    fputs(".SH \"EXIT STATUS\"\n", to);
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        fprintf(to, ".TP\n%s\n%s.\n", codes[i][0], codes[i][1]);
}

static void put_page(FILE *to, const manual_page *page) {
    char name[80];
    snprintf(name, sizeof name, "bjepa%s%s", *page->verb ? " " : "", page->verb);
    put_title(to, name, 1);
    fputs(".SH NAME\n", to);
    put_name(to, page->verb);
    fputs(" \\- ", to);
    put_text(to, page->summary);
    fprintf(to, "\n.SH SYNOPSIS\n.B %s\n", name);
    fprintf(to, *page->verb ? "[\\fIOPTION\\fR...]" : "\\fIVERB\\fR [\\fIOPTION\\fR...]");
    if (page->operands) {
        fputc(' ', to);
        put_text(to, page->operands);
    }
    fputc('\n', to);
    if (page->verbs) put_verbs(to, page->verb, page->verbs);
    put_options(to, page);
    fputs(".SH ENVIRONMENT\n"
          "An option that takes a value can also be set with an environment variable:\n"
          ".B \\-\\-some\\-name\nwith\n.BR BJEPA_SOME_NAME .\n"
          "If\n.B NO_COLOR\nis set, warnings are not colored.\n",
          to);
    put_exit_status(to);
    if (page->examples) {
        fputs(".SH EXAMPLES\n.nf\n", to);
        for (const char *line = page->examples; *line; line = strchr(line, '\n') + 1) {
            put(to, line, strcspn(line, "\n"));
            fputc('\n', to);
        }
        fputs(".fi\n", to);
    }
    fputs(".SH \"SEE ALSO\"\n.BR bjepa (1),\n.BR bjepa\\-settings (5),\n.BR bjepa\\-campaign (5),\n"
          ".BR bjepa\\-cache (5),\n.BR bjepa\\-run (5)\n",
          to);
}

/* Writes bjepa-settings(5), the settings of a run, from the table of the library. */
static void put_settings(FILE *to) {
    const bj_assignment paper[] = {{"arm", "fullset", ""}, {"recipe", "paper", ""}};
    bj_settings s;
    const int known = bj_settings_resolve(&s, NULL, paper, 2, NULL) == BJ_OK;
    put_title(to, "bjepa settings", 5);
    fputs(".SH NAME\nbjepa\\-settings \\- settings of training runs\n.SH DESCRIPTION\n"
          "Settings come from a YAML or JSON file\n(\\fB\\-\\-config\\fR), from\n"
          ".B \\-\\-set\n\\fIKEY\\fR=\\fIVALUE\\fR\nand, in campaign files, from\n.BR set .\n"
          "Keys can be nested: \\fIoptim.lr: 1e\\-3\\fR is the same as "
          "\\fIoptim: {lr: 1e\\-3}\\fR.\n"
          "Unknown keys are rejected. Defaults are those of arm fullset with recipe paper;\n"
          ".B bjepa config show\nprints the settings of a run and their origin.\n.SH SETTINGS\n",
          to);
    for (int i = 0; i < bj_setting_count(); i++) {
        const bj_setting_info info = bj_setting_at(i);
        char text[BJ_SETTING_TEXT_SIZE] = "";
        if (known && strcmp(info.key, "arm")) bj_setting_text(text, &s, i);
        fputs(".TP\n.B ", to);
        put_text(to, info.key);
        fputc('\n', to);
        put_text(to, info.help);
        if (info.type == BJ_SETTING_INT || info.type == BJ_SETTING_REAL)
            fprintf(to, "; %s from %.10g to %.10g", info.type == BJ_SETTING_INT ? "integer" : "number",
                    info.least, info.most);
        if (*text) {
            fputs(" (default: ", to);
            put_text(to, text);
            fputc(')', to);
        }
        fputs(".\n", to);
    }
    fputs(".SH \"SEE ALSO\"\n.BR bjepa\\-config (1),\n.BR bjepa\\-train (1),\n.BR bjepa\\-campaign (5)\n",
          to);
}

/* --------------------------------------------------------------------------------------- command */

static bj_status open_in(cli_file *file, const char *dir, const char *name, bj_error *err) {
    char path[CLI_PATH_SIZE];
    const bj_status status = cli_path(path, dir, name, err);
    return status == BJ_OK ? cli_file_open(file, path, err) : status;
}

static bj_status write_pages(const char *dir, bj_error *err) {
    cli_file file;
    bj_status status = BJ_OK;
    for (int i = 0; i < collected.count && status == BJ_OK; i++) {
        char name[96] = "bjepa";
        size_t used = strlen(name);
        for (const char *c = collected.page[i].verb; *c && used < 80; c++) {
            if (c == collected.page[i].verb) name[used++] = '-';
            name[used++] = *c == ' ' ? '-' : *c;
        }
        memcpy(name + used, ".1", 3);
        status = open_in(&file, dir, name, err);
        if (status != BJ_OK) return status;
        put_page(file.stream, &collected.page[i]);
        status = cli_file_commit(&file, err);
    }
    if (status == BJ_OK) status = open_in(&file, dir, "bjepa-settings.5", err);
    if (status != BJ_OK) return status;
    put_settings(file.stream);
    return cli_file_commit(&file, err);
}

static bj_status write_completions(const char *dir, bj_error *err) {
    static const struct {
        const char *name;
        void (*write)(FILE *to, const manual *m);
    } files[] = {{"bjepa.bash", manual_bash}, {"_bjepa", manual_zsh}, {"bjepa.fish", manual_fish}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cli_file file;
        bj_status status = open_in(&file, dir, files[i].name, err);
        if (status != BJ_OK) return status;
        files[i].write(file.stream, &collected);
        status = cli_file_commit(&file, err);
        if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

int cmd_manual(int argc, char **argv) {
    static const cli_option options[] = {CLI_OPTION_END};
    static const cli_usage usage = {
        .verb = "manual",
        .summary = "write the man pages and shell completions",
        .operands = "DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa manual build/manual\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    bj_error err = {0};
    int created;
    manual_page *top = new_page();
    if (top) {
        top->verb = "";
        top->summary = "train and evaluate models that predict K weighted latent futures of a scene";
        top->verbs = cli_main_verbs;
        add_option(top, &cli_help_option);
    }
    cli_usage_hook = on_usage;
    cli_group_hook = on_group;
    collect(cli_main_verbs);
    cli_usage_hook = NULL;
    cli_group_hook = NULL;
    bj_status status = collected.failed ? cli_error(&err, BJ_ENOMEM, "out of memory")
                                        : cli_folder(&created, argv[1], &err);
    if (status == BJ_OK) status = write_pages(argv[1], &err);
    if (status == BJ_OK) status = write_completions(argv[1], &err);
    free(collected.page);
    collected = (manual){0};
    return status == BJ_OK ? CLI_OK : cli_fail(usage.verb, &err);
}
