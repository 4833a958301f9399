/* cmd_config.c - bjepa config: shows the settings with which a run would be trained, and the origin
 * of each value. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "json_out.h"
#include "output.h"
#include "settings.h"
#include "verbs.h"

enum { KEY_WIDTH = 20 };

/* Writes a value as JSON: numbers unchanged, strings in quotes. */
static void print_value(const char *text, bj_setting_type type) {
    if (type == BJ_SETTING_TEXT) cli_json_text(stdout, text);
    else fputs(text, stdout);
}

/* ----------------------------------------------------------------------------------------- show */

static void show_text(const cli_settings *s, const char *digest) {
    char text[BJ_SETTING_TEXT_SIZE];
    for (int i = 0; i < bj_setting_count(); i++) {
        bj_setting_text(text, &s->value, i);
        printf("%-*s  %-14s  %s\n", KEY_WIDTH, bj_setting_at(i).key, *text ? text : "-",
               s->origins[i]);
    }
    printf("digest %s\n", digest);
}

static void show_json(const cli_settings *s, const char *digest) {
    char text[BJ_SETTING_TEXT_SIZE];
    printf("{\"schema\": 1, \"type\": \"config\", \"digest\": \"%s\",\n", digest);
    puts("  \"settings\": [");
    for (int i = 0; i < bj_setting_count(); i++) {
        const bj_setting_info info = bj_setting_at(i);
        bj_setting_text(text, &s->value, i);
        printf("    {\"key\": \"%s\", \"value\": ", info.key);
        print_value(text, info.type);
        fputs(", \"origin\": ", stdout);
        cli_json_text(stdout, s->origins[i]);
        puts(i < bj_setting_count() - 1 ? "}," : "}");
    }
    puts("  ]}");
}

int cmd_config_show(int argc, char **argv) {
    cli_settings_options o = {0};
    int json = 0;
    const cli_option options[] = {CLI_SETTINGS_OPTIONS(&o), CLI_OPTION_JSON(&json), CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "config show",
        .summary = "print all settings of a run and where each value comes from",
        .examples = "bjepa config show --arm fullset\n"
                    "bjepa config show --arm mdn -c run.yaml --set optim.lr=1e-3 --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    cli_settings s;
    bj_error err;
    char digest[65];
    if (cli_settings_open(&s, &o, NULL, &err) != BJ_OK) return cli_fail(usage.verb, &err);
    const bj_status status = bj_settings_digest(digest, &s.value, &err);
    if (status == BJ_OK) (json ? show_json : show_text)(&s, digest);
    cli_settings_close(&s);
    return status == BJ_OK ? CLI_OK : cli_fail(usage.verb, &err);
}

/* ---------------------------------------------------------------------------------------- check */

/* The arm that is used if nothing names an arm, because files for several arms contain none. */
#define ANY_ARM "fullset"

/* Returns 1 if the arm is ANY_ARM because no arm was given. */
static int arm_is_assumed(const cli_settings *s) {
    return !strcmp(s->origins[bj_setting_find("arm")], "default");
}

int cmd_config_check(int argc, char **argv) {
    cli_settings_options o = {0};
    int json = 0;
    const cli_option options[] = {
        {"arm", 'a', CLI_TEXT, "NAME", &o.arm, 0, 0, "arm, if the file does not name one"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "config check",
        .summary = "check every key and value of a config file",
        .operands = "FILE",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa config check run.yaml\n"
                    "bjepa config check shared.yaml --arm anchor-a\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    cli_settings s;
    bj_error err;
    char digest[65];
    o.config = argv[1];
    if (cli_settings_open(&s, &o, ANY_ARM, &err) != BJ_OK) return cli_fail(usage.verb, &err);
    const bj_status status = bj_settings_digest(digest, &s.value, &err);
    if (status == BJ_OK && json) {
        printf("{\"schema\": 1, \"type\": \"config_check\", \"file\": ");
        cli_json_text(stdout, o.config);
        printf(", \"arm\": \"%s\", \"recipe\": \"%s\", \"seed\": %llu, \"given\": %d, \"digest\": "
               "\"%s\"}\n",
               s.value.arm, s.value.recipe, (unsigned long long)s.value.seed, s.in_file, digest);
    } else if (status == BJ_OK) {
        printf("%s: arm %s%s, recipe %s, seed %llu; %d of %d settings are in the file\n", o.config,
               s.value.arm, arm_is_assumed(&s) ? " (default; the file does not name one)" : "",
               s.value.recipe, (unsigned long long)s.value.seed, s.in_file, bj_setting_count());
    }
    cli_settings_close(&s);
    return status == BJ_OK ? CLI_OK : cli_fail(usage.verb, &err);
}

/* ----------------------------------------------------------------------------------------- diff */

/* A run folder represents the settings with which it was trained. */
static bj_status open_side(cli_settings *s, char path[CLI_PATH_SIZE], const char *name,
                           bj_error *err) {
    struct stat info;
    cli_settings_options o = {0};
    const int folder = stat(name, &info) == 0 && S_ISDIR(info.st_mode);
    const bj_status status = cli_path(path, folder ? name : ".", "config.resolved.json", err);
    if (status != BJ_OK) return status;
    o.config = folder ? path : name;
    return cli_settings_open(s, &o, ANY_ARM, err);
}

static int print_difference(const cli_settings *a, const cli_settings *b, int json) {
    char left[BJ_SETTING_TEXT_SIZE], right[BJ_SETTING_TEXT_SIZE];
    int count = 0;
    if (json) fputs("{\"schema\": 1, \"type\": \"config_diff\", \"differences\": [", stdout);
    for (int i = 0; i < bj_setting_count(); i++) {
        const bj_setting_info info = bj_setting_at(i);
        bj_setting_text(left, &a->value, i);
        bj_setting_text(right, &b->value, i);
        if (!strcmp(left, right)) continue;
        if (json) {
            printf("%s\n  {\"key\": \"%s\", \"a\": ", count ? "," : "", info.key);
            print_value(left, info.type);
            fputs(", \"b\": ", stdout);
            print_value(right, info.type);
            putchar('}');
        } else {
            printf("%-*s  %-14s  %s\n", KEY_WIDTH, info.key, *left ? left : "-",
                   *right ? right : "-");
        }
        count++;
    }
    if (json) puts("]}");
    else if (!count) puts("no difference");
    return count ? CLI_REFUSED : CLI_OK;
}

int cmd_config_diff(int argc, char **argv) {
    int json = 0;
    const cli_option options[] = {CLI_OPTION_JSON(&json), CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "config diff",
        .summary = "print the settings in which two config files or run folders differ; "
                   "the exit code is 4 if any setting differs",
        .operands = "A B",
        .min_operands = 2,
        .max_operands = 2,
        .examples = "bjepa config diff runs/fullset-0 runs/fullset-1\n"
                    "bjepa config diff run.yaml runs/fullset-0\n",
        .options = options,
    };
    int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE) return code;
    char path_a[CLI_PATH_SIZE], path_b[CLI_PATH_SIZE];
    cli_settings a, b;
    bj_error err;
    if (open_side(&a, path_a, argv[1], &err) != BJ_OK) return cli_fail(usage.verb, &err);
    if (open_side(&b, path_b, argv[2], &err) != BJ_OK) code = cli_fail(usage.verb, &err);
    else code = print_difference(&a, &b, json);
    cli_settings_close(&a);
    cli_settings_close(&b);
    return code;
}

/* ---------------------------------------------------------------------------------------- group */

int cmd_config(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"show", "print all settings of a run and where each value comes from", cmd_config_show},
        {"check", "check every key and value of a config file", cmd_config_check},
        {"diff", "print the settings in which two config files or run folders differ",
         cmd_config_diff},
        {"arms", "list the arms", cmd_config_arms},
        {"recipes", "list the recipes and the settings they change", cmd_config_recipes},
        {"keys", "list the settings with default, range and meaning", cmd_config_keys},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "config",
        .summary = "list the arms and settings, and print, check or compare the settings of runs",
        .examples = "bjepa config arms\n"
                    "bjepa config show --arm fullset --set optim.lr=1e-3\n"
                    "bjepa config diff runs/fullset-0 runs/fullset-1\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
