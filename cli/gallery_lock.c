/* gallery_lock.c - bjepa gallery lock: chooses and draws cases before any future is read.
 *
 * Invariants
 *   1. The cache is opened blind, here and in the library: nothing in this file can reach a future.
 *   2. The folder is filled under a hidden name, the manifest last, and appears as a whole. An
 *      existing folder is not replaced.
 * Tests: tests/cli/gallery.sh
 */
#include <string.h>

#include "gallery.h"
#include "gallery_plan.h"
#include "progress.h"
#include "signals.h"

static const char verb[] = "gallery lock";

typedef struct lock_options {
    const char *campaign, *data, *out;
    const char *model[GALLERY_MODELS]; /* a checkpoint, or an arm of the campaign */
    int cases, limit, threads, quiet, json;
    int model_seed; /* of the campaign; -1: its first */
    uint64_t seed;
} lock_options;

static int parse(lock_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "CACHE", &o->data, 0, 0, "scenes and maps; futures are not read"},
        {"out", 'o', CLI_TEXT, "GALLERY", &o->out, 0, 0, "folder to create"},
        {"branch", 0, CLI_TEXT, "CHECKPOINT|ARM", &o->model[BJ_GALLERY_BRANCH], 0, 0,
         "model with several branches (default for a campaign: arm fullset)"},
        {"point", 0, CLI_TEXT, "CHECKPOINT|ARM", &o->model[BJ_GALLERY_POINT], 0, 0,
         "model with one branch (default for a campaign: arm point)"},
        {"model-seed", 0, CLI_INT, "N", &o->model_seed, 0, 2147483647,
         "seed of the campaign's runs (default: the first)"},
        {"cases", 0, CLI_INT, "N", &o->cases, 1, BJ_GALLERY_CASES, "max number of cases to choose"},
        {"seed", 0, CLI_SEED, "N", &o->seed, 0, 0, "seed of the random order among equal cases"},
        {"limit", 0, CLI_INT, "N", &o->limit, 0, 2147483647,
         "use only the first N scenes of the cache; 0 means all"},
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "select and draw cases without reading any future",
        .operands = "[CAMPAIGN]",
        .max_operands = 1,
        .examples = "bjepa gallery lock runs/world --data val.bjc --out gallery\n"
                    "bjepa gallery lock --branch full/ckpt/best --point point/ckpt/best "
                    "--data val.bjc --out gallery --cases 6\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (operands) o->campaign = argv[1];
    if (!o->data) return cli_misuse(verb, "--data CACHE is missing");
    if (!o->out) return cli_misuse(verb, "--out GALLERY is missing");
    if (!o->campaign && (!o->model[0] || !o->model[1]))
        return cli_misuse(verb,
                          "found no model, expected a campaign, or both --branch and --point");
    return CLI_CONTINUE;
}

/* --------------------------------------------------------------------------------------- models */

/* Finds the run of an arm with the requested seed, or its first run. */
static bj_status find_run(char path[CLI_PATH_SIZE], const bj_campaign *campaign, const char *arm,
                          int seed, bj_error *err) {
    char done[CLI_PATH_SIZE];
    for (int i = 0; i < bj_campaign_runs(campaign); i++) {
        const bj_campaign_run run = bj_campaign_run_at(campaign, i);
        if (strcmp(run.name, arm)) continue;
        if (seed >= 0 && run.settings->seed != (uint64_t)seed) continue;
        bj_status status = cli_path(done, run.dir, "result.json", err);
        if (status == BJ_OK && !cli_exists(done))
            status = cli_error(err, BJ_ELOCKED, "%s: this run is not finished", run.dir);
        return status == BJ_OK ? cli_path(path, run.dir, "ckpt/best", err) : status;
    }
    if (seed < 0)
        return cli_error(err, BJ_EARG, "%s: has no arm '%s'", bj_campaign_dir(campaign), arm);
    return cli_error(err, BJ_EARG, "%s: has no arm '%s' with seed %d", bj_campaign_dir(campaign),
                     arm, seed);
}

static int has_arm(const bj_campaign *campaign, const char *name) {
    for (int i = 0; i < bj_campaign_runs(campaign); i++)
        if (!strcmp(bj_campaign_run_at(campaign, i).name, name)) return 1;
    return 0;
}

/* Takes the checkpoints as given, or finds them in the campaign, where both models must have the
 * same seed. */
static bj_status find_models(char path[GALLERY_MODELS][CLI_PATH_SIZE], const lock_options *o,
                             bj_error *err) {
    static const char *const arms[GALLERY_MODELS] = {"fullset", "point"};
    bj_campaign *campaign = NULL;
    bj_status status = o->campaign ? bj_campaign_open(&campaign, o->campaign, err) : BJ_OK;
    for (int m = 0; m < GALLERY_MODELS && status == BJ_OK; m++) {
        const char *asked = o->model[m] ? o->model[m] : arms[m];
        if (campaign && (!o->model[m] || has_arm(campaign, asked)))
            status = find_run(path[m], campaign, asked, o->model_seed, err);
        else if (snprintf(path[m], CLI_PATH_SIZE, "%s", asked) >= CLI_PATH_SIZE)
            status = cli_error(err, BJ_EARG, "%.64s...: the path is too long", asked);
    }
    bj_campaign_free(campaign);
    return status;
}

/* --------------------------------------------------------------------------------------- sheets */

static bj_status write_sheet(gallery_image *image, const char *folder, const gallery_plan *plan,
                             int sheet, bj_error *err) {
    char path[CLI_PATH_SIZE], name[GALLERY_NAME + 8];
    cli_file file;
    bj_status status = gallery_plan_image(image, plan, sheet, err);
    snprintf(name, sizeof name, "%s.svg", image->name);
    if (status == BJ_OK) status = cli_path(path, folder, name, err);
    if (status == BJ_OK) status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    status = gallery_svg_write(file.stream, &plan->sheets[sheet], &plan->look, err);
    if (status == BJ_OK) status = cli_file_commit(&file, err);
    else cli_file_abort(&file);
    return status == BJ_OK ? bj_file_digest(image->sha256, path, err) : status;
}

static bj_status write_all(gallery_manifest *m, const char *folder, const bj_gallery *gallery,
                           const bj_gallery_options *options, bj_error *err) {
    static gallery_plan plan;
    bj_status status = BJ_OK;
    gallery_plan_sheets(&plan, m, gallery);
    for (int i = 0; i < plan.count && status == BJ_OK; i++)
        status = write_sheet(&m->images[m->image_count++], folder, &plan, i, err);
    return status == BJ_OK ? gallery_manifest_write(folder, m, gallery, options, err) : status;
}

/* --------------------------------------------------------------------------------------- folder */

static bj_status publish(gallery_manifest *m, const lock_options *o, const bj_gallery *gallery,
                         const bj_gallery_options *options, bj_error *err) {
    static char names[GALLERY_IMAGES][GALLERY_NAME + 8];
    const char *files[GALLERY_IMAGES + 2] = {NULL};
    bj_folder_writer *writer = NULL;
    int count = 0;
    for (; count < BJ_GALLERY_CASES; count++)
        snprintf(names[count], sizeof names[count], "case_%d.svg", count + 1);
    snprintf(names[count++], sizeof names[0], "mechanism.svg");
    snprintf(names[count++], sizeof names[0], "atlas.svg");
    for (int i = 0; i < count; i++) files[i] = names[i];
    files[count] = GALLERY_MANIFEST;
    bj_status status = bj_folder_writer_open(&writer, o->out, files, err);
    if (status != BJ_OK) return status;
    status = write_all(m, bj_folder_writer_path(writer), gallery, options, err);
    if (status == BJ_OK && cli_exists(o->out))
        status = cli_error(err, BJ_ELOCKED, "%s: already exists; a locked gallery is not replaced",
                           o->out);
    if (status == BJ_OK) return bj_folder_writer_commit(&writer, err);
    bj_folder_writer_abort(&writer);
    return status;
}

/* -------------------------------------------------------------------------------------- command */

static double percent(int64_t part, int64_t whole) {
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_text(const lock_options *o, const gallery_manifest *m,
                       const bj_gallery *gallery) {
    const bj_gallery_counts c = bj_gallery_count(gallery);
    char letter[8], maneuvers[48];
    printf("%lld scenes, futures hidden\n", (long long)c.scenes);
    for (int i = 0; i < GALLERY_MODELS; i++)
        printf("%-7s K=%d: %lld scenes pass the map screen (%.2f %%), "
               "and in %lld scenes every point is within %g m of the map\n",
               gallery_model_name(i), m->model[i].K, (long long)c.passes[i],
               percent(c.passes[i], c.scenes), (long long)c.near[i], BJ_PROXY_RADIUS);
    printf("%lld of %lld scenes with a vehicle or bus pass the strict screen, "
           "and %lld of these have several maneuvers\n",
           (long long)c.strict, (long long)c.audited, (long long)c.several);
    for (int i = 0; i < c.cases; i++) {
        const bj_gallery_case *chosen = bj_gallery_at(gallery, i);
        printf("  %s  %s  %s\n", gallery_letter(letter, i),
               bj_cache_info(bj_gallery_cache(gallery), chosen->scene).scenario_id,
               gallery_maneuvers(maneuvers, chosen->maneuvers));
    }
    if (c.cases < o->cases)
        printf("fewer than the %d requested cases: %s\n", o->cases,
               c.cases ? "no more scenes pass the strict screen"
                       : "no scene passes the strict screen, so the gallery is empty");
    printf("%s %s/" GALLERY_MANIFEST "\n", m->sha256, o->out);
    printf("next: bjepa gallery draw %s --data %s\n", o->out, o->data);
}

static void print_json(const gallery_manifest *m, const bj_gallery *gallery) {
    const bj_gallery_counts c = bj_gallery_count(gallery);
    printf("{\"schema\": 1, \"type\": \"gallery lock\", \"scenes\": %lld, \"passes\": %lld, "
           "\"strict\": %lld, \"cases\": %d, \"manifest_sha256\": \"%s\"}\n",
           (long long)c.scenes, (long long)c.passes[BJ_GALLERY_BRANCH], (long long)c.strict,
           c.cases, m->sha256);
}

static bj_status lock(const lock_options *o, gallery_manifest *m, bj_error *err) {
    static char checkpoint[GALLERY_MODELS][CLI_PATH_SIZE];
    cli_watch w = {cli_progress_begin("scenes", 0), "screening, futures hidden", o->quiet};
    const double start = w.progress.last;
    const bj_gallery_options options = {.cases = o->cases,
                                        .seed = o->seed,
                                        .threads = o->threads,
                                        .limit = o->limit,
                                        .progress = cli_watch_show,
                                        .context = &w};
    bj_model *model[GALLERY_MODELS] = {NULL, NULL};
    bj_gallery *gallery = NULL;
    snprintf(m->version, sizeof m->version, "%s", bj_version());
    bj_status status = find_models(checkpoint, o, err);
    for (int i = 0; i < GALLERY_MODELS && status == BJ_OK; i++)
        status = gallery_plan_model(&model[i], &m->model[i], checkpoint[i], i, err);
    if (status == BJ_OK)
        status = bj_gallery_create(&gallery, o->data, model[BJ_GALLERY_BRANCH],
                                   model[BJ_GALLERY_POINT], &options, err);
    if (!o->quiet && w.progress.last > start)
        cli_progress_end(&w.progress, status == BJ_OK ? w.progress.total : 0, "screened");
    if (status == BJ_OK) status = publish(m, o, gallery, &options, err);
    if (status == BJ_OK && o->json) print_json(m, gallery);
    else if (status == BJ_OK) print_text(o, m, gallery);
    for (int i = 0; i < GALLERY_MODELS; i++) bj_model_free(model[i]);
    bj_gallery_free(gallery);
    return status;
}

int cmd_gallery_lock(int argc, char **argv) {
    static gallery_manifest manifest;
    lock_options o = {.cases = 8, .model_seed = -1};
    bj_error err = {0};
    const int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    if (cli_exists(o.out)) {
        fprintf(stderr, "bjepa %s: %s: already exists, and a locked gallery is never replaced\n",
                verb, o.out);
        return CLI_REFUSED;
    }
    cli_catch_signals();
    const bj_status status = lock(&o, &manifest, &err);
    gallery_manifest_free(&manifest);
    if (status == BJ_OK) return CLI_OK;
    const int failed = cli_fail(verb, &err);
    return cli_stop ? CLI_SIGNALED + (int)cli_stop : failed;
}
