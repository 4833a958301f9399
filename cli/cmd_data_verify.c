/* cmd_data_verify.c - bjepa data verify: checks every checksum of a cache and lists what is
 * damaged.
 *
 * Opening the cache checks the index. This command also checks all scenes and their maps, and
 * continues after a damaged scene.
 */
#include <stdio.h>

#include "cli.h"
#include "data.h"
#include "json_out.h"
#include "progress.h"

static const char verb[] = "data verify";

static void print_damage(const bj_cache *cache, int64_t scene, const bj_error *err, int json) {
    if (!json) {
        printf("damaged: %s\n", err->message);
        return;
    }
    printf("{\"schema\":1,\"type\":\"data_damage\",\"scenario_id\":");
    cli_json_text(stdout, bj_cache_info(cache, scene).scenario_id);
    printf(",\"scene\":%lld,\"reason\":", (long long)scene);
    cli_json_text(stdout, err->message);
    printf("}\n");
}

static int verify(const char *path, int json, int quiet) {
    bj_cache *cache;
    bj_error err;
    char count[CLI_COUNT_SIZE], bad[CLI_COUNT_SIZE], text[64];
    if (bj_cache_open(&cache, path, 0, &err) != BJ_OK) return cli_fail(verb, &err);
    const int64_t scenes = bj_cache_count(cache);
    cli_progress progress = cli_progress_begin("scenes", (long)scenes);
    int64_t damaged = 0;
    for (int64_t i = 0; i < scenes; i++) {
        const bj_status status = bj_cache_verify(cache, i, &err);
        if (status != BJ_OK && status != BJ_EFORMAT) { /* not the file's fault */
            bj_cache_free(cache);
            return cli_fail(verb, &err);
        }
        if (status != BJ_OK) {
            damaged++;
            print_damage(cache, i, &err, json);
        }
        snprintf(text, sizeof text, "%lld damaged", (long long)damaged);
        if (!quiet) cli_progress_show(&progress, (long)i + 1, text);
    }
    if (json)
        printf("{\"schema\":1,\"type\":\"data_verify\",\"scenes\":%lld,\"damaged\":%lld,"
               "\"digest\":\"%s\"}\n",
               (long long)scenes, (long long)damaged, bj_cache_digest(cache));
    else
        printf("%s: %s scenes, %s damaged\ndigest %s\n", path, cli_count(count, (size_t)scenes),
               cli_count(bad, (size_t)damaged), bj_cache_digest(cache));
    bj_cache_free(cache);
    return damaged ? CLI_REFUSED : CLI_OK;
}

int cmd_data_verify(int argc, char **argv) {
    int json = 0, quiet = 0, operands, worst = CLI_OK;
    const cli_option options[] = {
        CLI_OPTION_QUIET(&quiet),
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "recompute every checksum of a cache",
        .operands = "CACHE...",
        .min_operands = 1,
        .max_operands = 4096,
        .examples = "bjepa data verify train.bjc\n"
                    "bjepa data verify --json train.bjc val.bjc\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    for (int i = 1; i <= operands; i++) {
        const int code = verify(argv[i], json, quiet);
        if (code > worst) worst = code;
    }
    return worst;
}
