/* gallery_lock.c - bjepa gallery lock: chooses and draws cases before any future is read.
 *
 * Invariants
 *   1. The cache is opened blind, here and in the library, so no code in this file can read a
 *   future. 2. The folder is filled under a hidden name, with the manifest last, and then published
 *   as a whole. An existing folder is never replaced. Tests: tests/cli/gallery.sh
 */
#define _POSIX_C_SOURCE 200809L /* mkdir, fsync */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "gallery.h"
#include "gallery_manifest.h"
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

static void keep_fact(char *out, size_t room, const bj_facts *facts, const char *key) {
    const char *text = bj_facts_get(facts, key);
    snprintf(out, room, "%s", text ? text : "");
}

static bj_status open_model(bj_model **out, gallery_model *model, const char *checkpoint, int m,
                            bj_error *err) {
    bj_facts *facts = NULL;
    bj_status status = cli_checkpoint_path(model->path, checkpoint, err);
    if (status == BJ_OK) status = bj_facts_read(&facts, model->path, err);
    if (status == BJ_OK) status = bj_file_digest(model->sha256, model->path, err);
    if (status == BJ_OK) status = bj_model_load(out, model->path, err);
    if (status == BJ_OK) {
        keep_fact(model->arm, sizeof model->arm, facts, "run.arm");
        keep_fact(model->seed, sizeof model->seed, facts, "run.seed");
        model->K = bj_model_arch(*out)->atoms;
        char what[41], number[sizeof model->seed]; /* copies: the compiler cannot see them apart */
        snprintf(what, sizeof what, "%.40s", *model->arm ? model->arm : gallery_model_name(m));
        memcpy(number, model->seed, sizeof number);
        snprintf(model->caption, sizeof model->caption, "%s%s%s", what, *number ? ", seed " : "",
                 number);
    }
    bj_facts_free(facts);
    return status;
}

/* --------------------------------------------------------------------------------------- sheets */

enum { MECHANISM = 6 };

static int list_sheets(gallery_sheet *sheets, char names[][GALLERY_NAME], char titles[][128],
                       int cases, const gallery_scene *scenes) {
    int n = 0;
    for (; n < cases; n++) {
        char letter[8];
        snprintf(names[n], GALLERY_NAME, "case_%d", n + 1);
        snprintf(titles[n], 128, "%s: scenario %s", gallery_letter(letter, n),
                 scenes[n].ground.info.scenario_id);
        sheets[n] = (gallery_sheet){names[n], titles[n], 1, 440, 540, 1.5, n, 1};
    }
    if (cases)
        sheets[n++] =
            (gallery_sheet){"mechanism", "One future or a weighted set of futures", 3, 204, 264, 1,
                            0,           cases < MECHANISM ? cases : MECHANISM};
    sheets[n++] = (gallery_sheet){"atlas", "Atlas of locked cases", 4, 182, 236, 0.95, 0, cases};
    return n;
}

static bj_status write_sheet(gallery_image *image, const char *folder, const gallery_sheet *sheet,
                             const gallery_look *look, bj_error *err) {
    char path[CLI_PATH_SIZE], name[GALLERY_NAME + 8];
    cli_file file;
    snprintf(image->name, sizeof image->name, "%s", sheet->name);
    snprintf(name, sizeof name, "%s.svg", sheet->name);
    image->legend = gallery_legend_of(sheet);
    image->panels = calloc(2 * (size_t)sheet->count + 1, sizeof *image->panels);
    if (!image->panels) return cli_error(err, BJ_ENOMEM, "out of memory");
    image->panel_count = 2 * sheet->count;
    gallery_layout(image->panels, sheet, look);
    bj_status status = cli_path(path, folder, name, err);
    if (status == BJ_OK) status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    status = gallery_svg_write(file.stream, sheet, look, err);
    if (status == BJ_OK) status = cli_file_commit(&file, err);
    else cli_file_abort(&file);
    return status == BJ_OK ? bj_file_digest(image->sha256, path, err) : status;
}

static void put_note(char note[256], const bj_gallery_counts *c) {
    const double rate =
        c->scenes ? 100.0 * (double)c->passes[BJ_GALLERY_BRANCH] / (double)c->scenes : 0;
    char scenes[CLI_COUNT_SIZE], strict[CLI_COUNT_SIZE];
    snprintf(note, 256,
             "%s scenes were screened without futures: "
             "%.1f %% pass the map screen, and %s pass the strict screen. "
             "All branches are shown unchanged.%s",
             cli_count(scenes, (size_t)c->scenes), rate, cli_count(strict, (size_t)c->strict),
             c->cases ? "" : " There is no case to show.");
}

static bj_status write_all(gallery_manifest *m, const char *folder, const bj_gallery *gallery,
                           const bj_gallery_options *options, bj_error *err) {
    static gallery_scene scenes[BJ_GALLERY_CASES];
    static gallery_sheet sheets[GALLERY_IMAGES];
    static char names[GALLERY_IMAGES][GALLERY_NAME], titles[GALLERY_IMAGES][128];
    const bj_gallery_counts counts = bj_gallery_count(gallery);
    const bj_cache *cache = bj_gallery_cache(gallery);
    char note[256];
    put_note(note, &counts);
    const gallery_look look = {.scenes = scenes,
                               .model = {m->model[0].caption, m->model[1].caption},
                               .K = {m->model[0].K, m->model[1].K},
                               .note = note};
    for (int i = 0; i < counts.cases; i++) {
        const bj_gallery_case *c = bj_gallery_at(gallery, i);
        scenes[i] = (gallery_scene){{.sizes = bj_cache_arch(cache),
                                     .info = bj_cache_info(cache, c->scene),
                                     .at = bj_cache_floats(cache, c->scene),
                                     .cache = cache},
                                    c};
    }
    const int count = list_sheets(sheets, names, titles, counts.cases, scenes);
    bj_status status = BJ_OK;
    for (int i = 0; i < count && status == BJ_OK; i++)
        status = write_sheet(&m->images[m->image_count++], folder, &sheets[i], &look, err);
    return status == BJ_OK ? gallery_manifest_write(folder, m, gallery, options, err) : status;
}

/* --------------------------------------------------------------------------------------- folder */

static bj_status refused(const char *path, const char *what, bj_error *err) {
    return cli_error(err, BJ_EIO, "%s: cannot %s: %s", path, what, strerror(errno));
}

/* "parent/.name.PID.tmp"; ends of "/" are left out. */
static bj_status hidden_name(char hidden[CLI_PATH_SIZE], const char *out, bj_error *err) {
    size_t length = strlen(out);
    while (length > 1 && out[length - 1] == '/') length--;
    size_t name = length;
    while (name > 0 && out[name - 1] != '/') name--;
    if (snprintf(hidden, CLI_PATH_SIZE, "%.*s.%.*s.%ld.tmp", (int)name, out, (int)(length - name),
                 out + name, (long)getpid()) >= CLI_PATH_SIZE)
        return cli_error(err, BJ_EARG, "%.64s...: the path is too long", out);
    return BJ_OK;
}

static void remove_hidden(const char *hidden, const gallery_manifest *m) {
    char path[CLI_PATH_SIZE + GALLERY_NAME + 8];
    for (int i = 0; i < m->image_count; i++) {
        snprintf(path, sizeof path, "%s/%s.svg", hidden, m->images[i].name);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/" GALLERY_MANIFEST, hidden);
    unlink(path);
    rmdir(hidden);
}

/* The folder must be synced, so that the names of its files survive a power failure. */
static void sync_folder(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    fsync(fd);
    close(fd);
}

static bj_status publish(gallery_manifest *m, const lock_options *o, const bj_gallery *gallery,
                         const bj_gallery_options *options, bj_error *err) {
    char hidden[CLI_PATH_SIZE];
    bj_status status = hidden_name(hidden, o->out, err);
    if (status != BJ_OK) return status;
    if (mkdir(hidden, 0777)) return refused(hidden, "create the folder", err);
    status = write_all(m, hidden, gallery, options, err);
    if (status == BJ_OK) {
        sync_folder(hidden);
        if (rename(hidden, o->out)) status = refused(o->out, "rename the finished folder", err);
    }
    if (status != BJ_OK) remove_hidden(hidden, m);
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
    bj_status status = find_models(checkpoint, o, err);
    for (int i = 0; i < GALLERY_MODELS && status == BJ_OK; i++)
        status = open_model(&model[i], &m->model[i], checkpoint[i], i, err);
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
