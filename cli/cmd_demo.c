/* cmd_demo.c - bjepa demo: train on synthetic scenes, measure, and draw the result.
 *
 * Trains a small K = 6 full-set model and its K = 1 point control on the same scenes, prints the
 * metrics before and after, and writes a checkpoint and a page with pictures. An interrupt during
 * training ends the command cleanly; nothing is written before training is over.
 */
#include "demo.h"
#include "output.h"
#include "signals.h"

#include <string.h>
#include <unistd.h>

typedef struct demo_options {
    const char *out;
    int steps, threads, json;
    uint64_t seed;
} demo_options;

enum { STEPS = 2500, MOST_STEPS = 1000000 };

static int parse(demo_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "DIR", (void *)&o->out, 0, 0,
         "folder for model.safetensors and demo.html; made if missing (default: demo)"},
        {"steps", 0, CLI_INT, "N", &o->steps, 1, MOST_STEPS,
         "training steps of each model (default: 2500)"},
        CLI_OPTION_SEED(&o->seed),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "demo",
        .summary = "train on synthetic scenes and draw what came out",
        .examples = "bjepa demo\n"
                    "bjepa demo --out /tmp/demo --seed 7\n"
                    "bjepa demo --steps 200 --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result == CLI_CONTINUE && !*o->out)
        return cli_misuse("demo", "--out: found '', expected a folder");
    return result;
}

/* --------------------------------------------------------------------------------------- result */

static void print_table(const demo *d) {
    printf("%-26s", "held-out scenes");
    for (int i = 0; i < DEMO_RUNS; i++) {
        char title[32];
        snprintf(title, sizeof title, "%s (K = %d)", d->run[i].title, d->run[i].arch.atoms);
        printf("%22s", title);
    }
    printf("\n%-26d", DEMO_HELD_OUT);
    for (int i = 0; i < DEMO_RUNS; i++) printf("%11s%11s", "before", "after");
    putchar('\n');
    for (int m = 0; m < demo_metric_count; m++) {
        const demo_metric *metric = &demo_metrics[m];
        char title[64];
        const int in_meters = !strcmp(metric->unit, "m"); /* other units are in the title */
        snprintf(title, sizeof title, "%s%s", metric->title, in_meters ? ", m" : "");
        printf("%-26s", title);
        for (int i = 0; i < DEMO_RUNS; i++)
            printf("%11.4f%11.4f", metric->of(&d->run[i].before), metric->of(&d->run[i].after));
        putchar('\n');
    }
}

static void print_json_values(const char *name, const bj_metric_values *values) {
    printf("\"%s\": {", name);
    for (int m = 0; m < demo_metric_count; m++)
        printf("%s\"%s\": %.9g", m ? ", " : "", demo_metrics[m].key, demo_metrics[m].of(values));
    putchar('}');
}

static void print_json(const demo *d) {
    printf("{\"schema\": 1, \"type\": \"demo\", \"version\": \"%s\", \"isa\": \"%s\", "
           "\"seed\": %llu, \"steps\": %d, \"batch\": %d, \"held_out\": %d,\n  \"models\": [\n",
           bj_version(), d->isa, (unsigned long long)d->seed, d->steps, DEMO_BATCH, DEMO_HELD_OUT);
    for (int i = 0; i < DEMO_RUNS; i++) {
        const demo_run *r = &d->run[i];
        printf("    {\"name\": \"%s\", \"atoms\": %d, \"parameters\": %zu,\n     ", r->title,
               r->arch.atoms, bj_arch_counts(&r->arch).total);
        print_json_values("before", &r->before);
        printf(",\n     ");
        print_json_values("after", &r->after);
        printf("}%s\n", i + 1 < DEMO_RUNS ? "," : "");
    }
    puts("  ]}");
}

/* ---------------------------------------------------------------------------------------- files */

typedef struct demo_files {
    char model[CLI_PATH_SIZE], page[CLI_PATH_SIZE];
    int created; /* the folder is new */
} demo_files;

/* Whatever can be wrong with the folder is said before training, not after it. */
static bj_status prepare_files(demo_files *f, const char *folder, bj_error *err) {
    bj_status status = cli_path(f->model, folder, "model.safetensors", err);
    if (status == BJ_OK) status = cli_path(f->page, folder, "demo.html", err);
    if (status == BJ_OK) status = cli_folder(&f->created, folder, err);
    if (status == BJ_OK) status = cli_file_replaceable(f->model, err);
    if (status == BJ_OK) status = cli_file_replaceable(f->page, err);
    return status;
}

static bj_status write_files(const demo_files *f, const demo *d, bj_error *err) {
    char seed[32], steps[32], batch[32], rate[32];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)d->seed);
    snprintf(steps, sizeof steps, "%d", d->steps);
    snprintf(batch, sizeof batch, "%d", DEMO_BATCH);
    snprintf(rate, sizeof rate, "%g", DEMO_LEARNING_RATE);
    const bj_fact facts[] = {{"made_by", "bjepa demo " BJ_VERSION},
                             {"data", "synthetic"},
                             {"objective", bj_objective_name(BJ_FULLSET)},
                             {"seed", seed},
                             {"steps", steps},
                             {"batch", batch},
                             {"learning_rate", rate},
                             {"isa", d->isa}};
    bj_status status = bj_model_save(d->run[DEMO_FULLSET].model, f->model, facts,
                                     sizeof facts / sizeof *facts, err);
    cli_file page;
    if (status == BJ_OK) status = cli_file_open(&page, f->page, err);
    if (status != BJ_OK) return status;
    demo_page_write(page.stream, d);
    return cli_file_commit(&page, err);
}

/* ------------------------------------------------------------------------------------------ run */

static int run(demo *d, const demo_options *o, const demo_files *f, bj_error *err) {
    const int threads = cli_threads(o->threads);
    fprintf(stderr,
            "training full-set (K = %d) and point (K = 1): %d steps of %d fresh scenes each, "
            "%d thread%s, %s\n",
            d->run[DEMO_FULLSET].arch.atoms, d->steps, DEMO_BATCH, threads, threads == 1 ? "" : "s",
            d->isa);
    if (demo_train(d, &cli_stop, err) != BJ_OK) return cli_fail("demo", err);
    if (d->done < d->steps) {
        fprintf(stderr, "bjepa demo: interrupted after %d of %d steps; no file was written\n",
                d->done, d->steps);
        return CLI_SIGNALED + (int)cli_stop;
    }
    if (write_files(f, d, err) != BJ_OK) return cli_fail("demo", err);
    if (o->json) print_json(d);
    else print_table(d);
    fprintf(stderr, "wrote %s\nwrote %s: open it in a browser\n", f->model, f->page);
    return CLI_OK;
}

int cmd_demo(int argc, char **argv) {
    demo_options o = {.out = "demo", .steps = STEPS};
    const int result = parse(&o, argc, argv);
    if (result != CLI_CONTINUE) return result;
    bj_error err;
    demo_files files = {.created = 0};
    demo d;
    if (prepare_files(&files, o.out, &err) != BJ_OK) return cli_fail("demo", &err);
    cli_catch_signals();
    int code;
    if (demo_create(&d, o.seed, o.steps, o.threads, &err) != BJ_OK) {
        code = cli_fail("demo", &err);
    } else {
        code = run(&d, &o, &files, &err);
        demo_free(&d);
    }
    if (code != CLI_OK && files.created) rmdir(o.out); /* only if it is empty */
    return code;
}
