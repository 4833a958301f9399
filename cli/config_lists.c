/* config_lists.c - bjepa config arms, recipes, keys: prints the tables of the library.
 *
 * docs/TRAINING.md contains the output of --format markdown, and tests/cli/config.sh compares the
 * two.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "grid.h"
#include "json_out.h"

#define FORMAT_WORDS "text|json|markdown"
static const cli_format formats[] = {CLI_FORMAT_TEXT, CLI_FORMAT_JSON, CLI_FORMAT_MARKDOWN};

typedef struct listing {
    const char *verb, *type, *summary, *example;
    int columns;
    const char *heading[6]; /* keys of the JSON objects too */
    int count;
    /* Adds the cells of a row. */
    void (*row)(cli_grid *grid, int index);
} listing;

static int print_json(const listing *l, const cli_grid *grid) {
    printf("{\"schema\": 1, \"type\": \"%s\", \"%s\": [\n", l->type, l->type);
    for (int i = 0; i < l->count; i++) {
        for (int c = 0; c < l->columns; c++) {
            printf("%s\"%s\": ", c ? ", " : "  {", l->heading[c]);
            cli_json_text(stdout, grid->cell[(i + 1) * l->columns + c].text);
        }
        puts(i < l->count - 1 ? "}," : "}");
    }
    puts("]}");
    free(grid->cell);
    return CLI_OK;
}

static int run_list(const listing *l, int argc, char **argv) {
    int format = 0, json = 0;
    const cli_option options[] = {
        {"format", 'f', CLI_CHOICE, FORMAT_WORDS, &format, 0, 0, "output format"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = l->verb, .summary = l->summary, .examples = l->example, .options = options};
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    cli_grid grid = {.columns = l->columns, .left = l->columns};
    for (int c = 0; c < l->columns; c++) cli_grid_text(&grid, l->heading[c]);
    for (int i = 0; i < l->count; i++) l->row(&grid, i);
    const cli_format chosen = json ? CLI_FORMAT_JSON : formats[format];
    if (chosen == CLI_FORMAT_JSON && !grid.failed) return print_json(l, &grid);
    return cli_grid_print(&grid, l->verb, chosen, 0);
}

/* ---------------------------------------------------------------------------------------- lists */

static void add_arm(cli_grid *grid, int index) {
    const bj_arm_info arm = bj_arm_at(index);
    cli_grid_text(grid, arm.name);
    cli_grid_text(grid, arm.family);
    cli_grid_text(grid, arm.summary);
}

int cmd_config_arms(int argc, char **argv) {
    const listing l = {"config arms",         "arms", "list the arms, which are objectives with "
                                                      "their models",
                       "bjepa config arms\n", 3,      {"arm", "family", "summary"},
                       bj_arm_count(),        add_arm};
    return run_list(&l, argc, argv);
}

/* Settings of the full-set arm. */
static int settings_of(bj_settings *s, const char *recipe) {
    const bj_assignment list[] = {{"arm", "fullset", ""}, {"recipe", recipe, ""}};
    return bj_settings_resolve(s, NULL, list, 2, NULL) == BJ_OK;
}

/* What the recipes differ in. */
static const char *const keys[] = {"optim.conditioned", "optim.lr", "train.batch", "train.epochs"};

static void add_recipe(cli_grid *grid, int index) {
    const bj_recipe_info recipe = bj_recipe_at(index);
    bj_settings s;
    cli_grid_text(grid, recipe.name);
    const int known = settings_of(&s, recipe.name);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char text[BJ_SETTING_TEXT_SIZE] = "";
        if (known) bj_setting_text(text, &s, bj_setting_find(keys[i]));
        cli_grid_text(grid, text);
    }
    cli_grid_text(grid, recipe.summary);
}

int cmd_config_recipes(int argc, char **argv) {
    const listing l = {"config recipes",
                       "recipes",
                       "list the recipes, which are sets of optimization settings for any arm",
                       "bjepa config recipes\n",
                       6,
                       {"recipe", keys[0], keys[1], keys[2], keys[3], "summary"},
                       bj_recipe_count(),
                       add_recipe};
    return run_list(&l, argc, argv);
}

static void add_key(cli_grid *grid, int index) {
    const bj_setting_info info = bj_setting_at(index);
    char text[BJ_SETTING_TEXT_SIZE] = "", range[CLI_CELL_SIZE] = "text";
    bj_settings s;
    if (settings_of(&s, "paper") && strcmp(info.key, "arm")) bj_setting_text(text, &s, index);
    if (info.type == BJ_SETTING_SEED) snprintf(range, sizeof range, "integer in [0, 2^64)");
    else if (info.type != BJ_SETTING_TEXT)
        snprintf(range, sizeof range, "%s in %s%.10g, %.10g]",
                 info.type == BJ_SETTING_INT ? "integer" : "number", info.above ? "(" : "[",
                 info.least, info.most);
    cli_grid_text(grid, info.key);
    cli_grid_text(grid, *text ? text : "-");
    cli_grid_text(grid, range);
    cli_grid_text(grid, info.help);
}

int cmd_config_keys(int argc, char **argv) {
    const listing l = {"config keys",
                       "keys",
                       "list all settings with their default (arm fullset), range and meaning",
                       "bjepa config keys\n",
                       4,
                       {"key", "default", "range", "meaning"},
                       bj_setting_count(),
                       add_key};
    return run_list(&l, argc, argv);
}
