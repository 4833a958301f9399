/* info_model.c - see info.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "builtin.h"
#include "checkpoint.h"
#include "info.h"
#include "json_out.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* What is known of a model file. */
typedef struct model_file {
    char path[CLI_PATH_SIZE], card[CLI_PATH_SIZE]; /* card: empty if there is none */
    char sha256[65];
    size_t bytes, parameters;
    int atoms;
    bj_facts *facts;
} model_file;

/* Facts about the origin of a model, with their titles. Runs store some of them with a prefix. */
static const struct {
    const char *key, *also, *title;
} origins[] = {
    {"name", "name", "name"},
    {"run.arm", "arm", "arm"},
    {"recipe", "run.recipe", "recipe"},
    {"run.seed", "seed", "seed"},
    {"data", "run.data_digest", "data"},
    {"scenes", "scenes", "scenes seen"},
    {"license", "license", "license"},
};
enum { ORIGINS = sizeof origins / sizeof *origins };

static const char *origin(const model_file *m, int i) {
    const char *value = bj_facts_get(m->facts, origins[i].key);
    return value ? value : bj_facts_get(m->facts, origins[i].also);
}

static bj_status read_file(model_file *m, const char *checkpoint, bj_error *err) {
    bj_model *model = NULL;
    struct stat info;
    bj_status status = cli_checkpoint_path(m->path, checkpoint, err);
    if (status == BJ_OK) status = bj_model_load(&model, m->path, err);
    if (status == BJ_OK) {
        m->parameters = bj_arch_counts(bj_model_arch(model)).total;
        m->atoms = bj_model_arch(model)->atoms;
        bj_model_free(model);
        status = bj_facts_read(&m->facts, m->path, err);
    }
    if (status == BJ_OK) status = bj_file_digest(m->sha256, m->path, err);
    if (status == BJ_OK && !stat(m->path, &info)) m->bytes = (size_t)info.st_size;
    cli_builtin_card(m->card, m->path);
    return status;
}

static void print_text(const model_file *m) {
    char count[CLI_COUNT_SIZE];
    printf("file          %s\n", m->path);
    printf("SHA-256       %s\n", m->sha256);
    printf("size          %s bytes\n", cli_count(count, m->bytes));
    printf("parameters    %s, K = %d\n", cli_count(count, m->parameters), m->atoms);
    for (int i = 0; i < ORIGINS; i++)
        if (origin(m, i)) printf("%-12s  %s\n", origins[i].title, origin(m, i));
    printf("card          %s\n", *m->card ? m->card : "none next to the file");
}

static void print_json(const model_file *m) {
    printf("{\"schema\":1,\"type\":\"model\",\"file\":");
    cli_json_text(stdout, m->path);
    printf(",\"sha256\":\"%s\",\"bytes\":%zu,\"parameters\":%zu,\"atoms\":%d,\"card\":", m->sha256,
           m->bytes, m->parameters, m->atoms);
    if (*m->card) cli_json_text(stdout, m->card);
    else fputs("null", stdout);
    fputs(",\"facts\":{", stdout);
    for (int i = 0; i < bj_facts_count(m->facts); i++) {
        const bj_fact fact = bj_facts_at(m->facts, i);
        if (i) putchar(',');
        cli_json_text(stdout, fact.key);
        putchar(':');
        cli_json_text(stdout, fact.value);
    }
    puts("}}");
}

int info_model(const char *checkpoint, int json) {
    model_file m = {.bytes = 0};
    bj_error err;
    const bj_status status = read_file(&m, checkpoint, &err);
    if (status == BJ_OK) (json ? print_json : print_text)(&m);
    bj_facts_free(m.facts);
    return status == BJ_OK ? CLI_OK : cli_fail("info", &err);
}
