/* settings.c - see settings.h. Test: tests/cli/config.sh */
#include "settings.h"

#include "builtin.h"

#include <stdlib.h>
#include <string.h>

bj_status cli_split_set(bj_assignment *out, char **memory, const char *text, bj_error *err) {
    const char *equals = strchr(text, '=');
    const size_t size = strlen(text) + 1;
    if (!equals || equals == text)
        return cli_error(err, BJ_EARG, "--set: found '%.60s', expected KEY=VALUE", text);
    char *copy = *memory = malloc(size);
    if (!copy) return cli_error(err, BJ_ENOMEM, "out of memory");
    memcpy(copy, text, size);
    copy[equals - text] = '\0';
    *out = (bj_assignment){copy, copy + (equals - text) + 1, "--set"};
    return BJ_OK;
}

bj_status cli_resolve_builtin(bj_assignment *list, int count, char path[CLI_PATH_SIZE],
                              bj_error *err) {
    for (int i = 0; i < count; i++) {
        if (strcmp(list[i].key, "init") || !cli_is_builtin(list[i].value)) continue;
        const bj_status status = cli_builtin_path(path, err);
        if (status != BJ_OK) return status;
        list[i].value = path;
    }
    return BJ_OK;
}

/* If an option is not given, cli_parse returns the value from the environment. */
static int from_environment(const bj_assignment *option, const char *variable) {
    return option->value && option->value == getenv(variable);
}

/* Adds options that have their own names: first those from the environment, later those on the
 * command line. */
static int add_named(bj_assignment *list, const cli_settings_options *o, int environment) {
    const bj_assignment options[] = {{"recipe", o->recipe, "--recipe"},
                                     {"arm", o->arm, "--arm"},
                                     {"seed", o->seed, "--seed"},
                                     {"init", o->init, "--init"}};
    static const char *const variables[] = {"BJEPA_RECIPE", "BJEPA_ARM", "BJEPA_SEED",
                                            "BJEPA_INIT"};
    int n = 0;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i].value || from_environment(&options[i], variables[i]) != environment)
            continue;
        list[n] = options[i];
        if (environment) list[n].origin = variables[i];
        n++;
    }
    return n;
}

static bj_status gather(cli_settings *s, bj_assignment *list, int *count,
                        const cli_settings_options *o, const char *arm_default, bj_error *err) {
    int n = 0;
    if (arm_default) list[n++] = (bj_assignment){"arm", arm_default, "default"};
    for (int i = 0; i < s->in_file; i++) list[n++] = bj_config_at(s->config, i);
    n += add_named(list + n, o, 1);
    for (int i = 0; i < o->set.count; i++) {
        const bj_status status = cli_split_set(&list[n++], &s->memory[i], o->set.items[i], err);
        if (status != BJ_OK) return status;
    }
    n += add_named(list + n, o, 0);
    *count = n;
    return BJ_OK;
}

bj_status cli_settings_open(cli_settings *out, const cli_settings_options *options,
                            const char *arm_default, bj_error *err) {
    int count;
    memset(out, 0, sizeof *out);
    if (options->config) {
        const bj_status status = bj_config_read(&out->config, options->config, err);
        if (status != BJ_OK) return status;
    }
    out->in_file = bj_config_count(out->config);
    const size_t most = (size_t)out->in_file + CLI_LIST_SIZE + 5;
    bj_assignment *list = calloc(most, sizeof *list);
    out->origins = calloc((size_t)bj_setting_count(), sizeof *out->origins);
    bj_status status = list && out->origins ? BJ_OK : cli_error(err, BJ_ENOMEM, "out of memory");
    if (status == BJ_OK) status = gather(out, list, &count, options, arm_default, err);
    if (status == BJ_OK) status = cli_resolve_builtin(list, count, out->builtin, err);
    if (status == BJ_OK) status = bj_settings_resolve(&out->value, out->origins, list, count, err);
    free(list);
    if (status != BJ_OK) cli_settings_close(out);
    return status;
}

void cli_settings_close(cli_settings *settings) {
    for (int i = 0; i < CLI_LIST_SIZE; i++) free(settings->memory[i]);
    free(settings->origins);
    bj_config_free(settings->config);
    memset(settings, 0, sizeof *settings);
}
