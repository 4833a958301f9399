/* cmd_data_split.c - bjepa data split: counts or lists the fit and development scenes.
 *
 * The part of a scene depends only on its id, so no list is stored. Training uses the same parts.
 */
#include "cli.h"
#include "data.h"
#include "json_out.h"

#include <stdio.h>

enum { PART_FIT, PART_DEV, PARTS };
static const char *const part_names[PARTS] = {"fit", "dev"};

typedef struct split_options {
    int list, part, json;
} split_options;

static int parse(split_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"list", 0, CLI_FLAG, NULL, &o->list, 0, 0, "print scenario ids, one per line"},
        {"part", 0, CLI_CHOICE, "fit|dev", &o->part, 0, 0, "part to list"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "data split",
        .summary = "count or list the fit and development scenes",
        .operands = "CACHE",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa data split train.bjc\n"
                    "bjepa data split train.bjc --list --part dev\n",
        .options = options,
    };
    int operands;
    return cli_parse(&usage, argc, argv, &operands);
}

static int part_of(const bj_cache *cache, int64_t index) {
    return bj_is_dev(bj_cache_info(cache, index).scenario_id) ? PART_DEV : PART_FIT;
}

static void print_counts(const bj_cache *cache, int json) {
    int64_t counts[PARTS] = {0};
    const int64_t total = bj_cache_count(cache);
    for (int64_t i = 0; i < total; i++) counts[part_of(cache, i)]++;
    if (json) {
        printf("{\"schema\": 1, \"type\": \"data_split\", \"scenes\": %lld, \"fit\": %lld, "
               "\"dev\": %lld, \"rule\": \"sha256(scenario_id)[0:8] / 2^64 < 9944/199908\", "
               "\"digest\": \"%s\"}\n",
               (long long)total, (long long)counts[PART_FIT], (long long)counts[PART_DEV],
               bj_cache_digest(cache));
        return;
    }
    char text[CLI_COUNT_SIZE];
    for (int p = 0; p < PARTS; p++)
        printf("%-8s%10s  %6.2f %%\n", part_names[p], cli_count(text, (size_t)counts[p]),
               100.0 * (double)counts[p] / (double)total);
    printf("%-8s%10s\n\n", "scenes", cli_count(text, (size_t)total));
    puts("A scene is a development scene if SHA-256(scenario id) is low enough:\n"
         "its first 8 bytes, as a fraction of 2^64, must be below 9944/199908 (4.97 %).");
}

/* Prints all scenes with their part, or the ids of one part. */
static void print_list(const bj_cache *cache, int wanted, int json) {
    for (int64_t i = 0; i < bj_cache_count(cache); i++) {
        const int part = part_of(cache, i);
        if (wanted >= 0 && part != wanted) continue;
        const char *id = bj_cache_info(cache, i).scenario_id;
        if (json) {
            printf("{\"schema\": 1, \"type\": \"data_split_scene\", \"scenario_id\": ");
            cli_json_text(stdout, id);
            printf(", \"part\": \"%s\"}\n", part_names[part]);
        } else if (wanted >= 0) puts(id);
        else printf("%s %s\n", id, part_names[part]);
    }
}

int cmd_data_split(int argc, char **argv) {
    split_options o = {.part = -1};
    const int result = parse(&o, argc, argv);
    if (result != CLI_CONTINUE) return result;
    if (o.part >= 0 && !o.list) return cli_misuse("data split", "--part needs --list");
    bj_cache *cache;
    bj_error err;
    if (bj_cache_open(&cache, argv[1], 1, &err) != BJ_OK) return cli_fail("data split", &err);
    if (o.list) print_list(cache, o.part, o.json);
    else print_counts(cache, o.json);
    bj_cache_free(cache);
    return CLI_OK;
}
