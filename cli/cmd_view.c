/* cmd_view.c - bjepa view: shows forecasts of submissions and models in the scene browser.
 *
 * Scenes come from raw scenario files below a folder, or from a cache. They are selected by their
 * ids, or by the forecasts of models. The true futures are read afterwards. Several submissions and
 * models are shown side by side.
 * Test: tests/cli/view.sh
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "cli.h"
#include "output.h"
#include "progress.h"
#include "report_choose.h"
#include "report_page.h"
#include "report_scenes.h"
#include "view.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char verb[] = "view";

enum { SOURCES = 16, SCENES = 1000, PAGE_LIMIT = 14000000 };

typedef struct view_options {
    const char *av2, *out, *law;
    int count, by_maneuvers, threads;
    cli_list ids;
    char *const *names;
    int source_count;
} view_options;

static int parse(view_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"av2", 0, CLI_TEXT, "DIR_OR_CACHE", &o->av2, 0, 0,
         "scenes to show: a folder of scenario files, or a cache"},
        {"out", 'o', CLI_TEXT, "FILE.html", &o->out, 0, 0, "HTML page to write"},
        {"count", 0, CLI_INT, "N", &o->count, 1, SCENES, "number of scenes"},
        {"choose", 0, CLI_CHOICE, "hash|maneuvers", &o->by_maneuvers, 0, 0,
         "choose scenes by a hash of their ids, "
         "or prefer scenes whose forecasts include several maneuvers"},
        {"scene", 0, CLI_LIST, "ID", &o->ids, 0, 0, "show this scene; may be repeated"},
        {"law", 0, CLI_TEXT, "FILE", &o->law, 0, 0,
         "file with the true distribution, if it is not next to the scenes"},
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "show the forecasts of submissions and models on a single HTML page",
        .operands = "SUBMISSION.parquet|CHECKPOINT...",
        .min_operands = 1,
        .max_operands = SOURCES,
        .examples = "bjepa view submission.parquet --av2 /data/av2/val\n"
                    "bjepa view ours.parquet theirs.parquet --av2 val.bjc --out compare.html\n"
                    "bjepa view builtin --av2 val.bjc --choose maneuvers --count 12\n"
                    "bjepa view submission.parquet --av2 val "
                    "--scene 0a1e6f0a-1817-4a98-b02e-db8c9327d151\n",
        .options = options,
    };
    const int code = cli_parse(&usage, argc, argv, &o->source_count);
    if (code != CLI_CONTINUE) return code;
    if (!o->av2) return cli_misuse(verb, "--av2 DIR_OR_CACHE is missing");
    if (o->by_maneuvers && o->ids.count)
        return cli_misuse(verb,
                          "found both --choose maneuvers and --scene, expected only one of them");
    o->names = argv + 1;
    return CLI_CONTINUE;
}

/* --------------------------------------------------------------------------------------- viewer */

typedef struct viewer {
    const view_options *options;
    view_source source[SOURCES];
    report_model models[SOURCES];
    view_scenes from;
    bj_cache *seeing; /* the cache with its futures; opened after the forecasts */
    bj_law *law;      /* may be NULL */
    view_forecast room;
    report_scenes *scenes;
    int64_t chosen[SCENES];
    int64_t shown[SCENES]; /* indices of the scenes that are on the page */
    int count;             /* chosen */
    int refused;           /* scenes that could not be shown */
    int most;              /* scenes in both forecasts and data */
    int dropped;           /* for the size of the page */
    int laws;              /* scenes with a law */
} viewer;

static void viewer_close(viewer *v) {
    for (int i = 0; i < v->options->source_count; i++) view_source_close(&v->source[i]);
    view_forecast_free(&v->room);
    view_scenes_close(&v->from);
    bj_cache_free(v->seeing);
    bj_law_free(v->law);
    report_scenes_free(v->scenes);
}

/* Opens the law next to simulated scenes. Recorded scenes have none. */
static bj_status open_law(viewer *v, bj_error *err) {
    char beside[CLI_PATH_SIZE];
    if (v->options->law) return bj_law_open(&v->law, v->options->law, err);
    if (snprintf(beside, sizeof beside, "%s%s", v->options->av2,
                 v->from.list ? "/law.safetensors" : ".law.safetensors") >= (int)sizeof beside ||
        !cli_exists(beside))
        return BJ_OK;
    return bj_law_open(&v->law, beside, err);
}

static bj_status viewer_open(viewer *v, bj_error *err) {
    const view_options *o = v->options;
    bj_status status = BJ_OK;
    for (int i = 0; i < o->source_count && status == BJ_OK; i++) {
        status = view_source_open(&v->source[i], o->names[i], o->threads, err);
        v->models[i] = (report_model){o->names[i], v->source[i].title, -1};
    }
    if (status == BJ_OK) status = view_scenes_open(&v->from, o->av2, err);
    if (status != BJ_OK) return status;
    const bj_arch sizes = view_scenes_sizes(&v->from);
    for (int i = 0; i < o->source_count && status == BJ_OK; i++)
        status = view_source_fits(&v->source[i], &sizes, err);
    if (status == BJ_OK) status = open_law(v, err);
    if (status == BJ_OK) status = view_forecast_create(&v->room, sizes.fut, err);
    if (status == BJ_OK) status = report_scenes_create(&v->scenes, v->models, o->source_count, err);
    return status;
}

/* Opens one of the chosen scenes and sets *opened. If that fails, reports the reason on stderr. */
static bj_status try_open(int *opened, view_scene *scene, viewer *v, int64_t index, bj_error *err) {
    bj_error why;
    const bj_status status = view_scene_open(scene, &v->from, index, &why);
    *opened = status == BJ_OK;
    if (status == BJ_OK) return BJ_OK;
    v->refused++;
    if (status == BJ_ENOMEM) return cli_error(err, status, "%s", why.message);
    cli_fail(verb, &why);
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------- choosing */

/* Returns the id if a source has a forecast for it. */
static const char *forecast_id(const void *context, int64_t index) {
    const viewer *v = context;
    const char *id = view_scenes_id(&v->from, index);
    for (int i = 0; i < v->options->source_count; i++)
        if (view_source_has(&v->source[i], id)) return id;
    return NULL;
}

typedef struct candidate {
    int64_t index, map;
    unsigned maneuvers; /* of all forecasts; 0: cannot be shown */
    int taken;
} candidate;

static bj_status look_at(candidate *c, viewer *v, int64_t index, bj_error *err) {
    view_scene scene;
    int opened;
    bj_status status = try_open(&opened, &scene, v, index, err);
    view_forecast *f = &v->room;
    *c = (candidate){.index = index, .map = -1};
    if (!opened) return status;
    c->map = scene.shown.info.map;
    for (int i = 0; i < v->options->source_count && status == BJ_OK; i++) {
        status = view_source_forecast(f, &v->source[i], &scene.shown.info, scene.batch, err);
        if (status == BJ_OK)
            c->maneuvers |= bj_gallery_maneuvers(f->K, f->steps, f->weights, f->paths);
    }
    view_scene_close(&scene);
    return status;
}

/* Returns the priority of a candidate for the next place. Lower values come first: scenes with two
 * or more directions, then scenes with two maneuvers of which one is a stop, then rarely shown sets
 * of maneuvers, then rarely shown maps. */
static int worth(const candidate *list, int64_t count, const candidate *c) {
    const unsigned ways = c->maneuvers & ~(unsigned)BJ_GALLERY_STOP;
    int kind = 0, map = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!list[i].taken) continue;
        kind += list[i].maneuvers == c->maneuvers;
        map += c->map >= 0 && list[i].map == c->map;
    }
    const int rank = ways & (ways - 1) ? 0 : c->maneuvers & (c->maneuvers - 1) ? 1 : 2;
    return (rank * (SCENES + 1) + kind) * (SCENES + 1) + map;
}

/* Fills one place after the other from the list, which is sorted by a hash of the ids. */
static void fill_places(viewer *v, candidate *list, int64_t count) {
    while (v->count < v->options->count) {
        candidate *best = NULL;
        int least = 0;
        for (int64_t i = 0; i < count; i++) {
            if (list[i].taken || !list[i].maneuvers) continue;
            const int here = worth(list, count, &list[i]);
            if (best && here >= least) continue;
            best = &list[i];
            least = here;
        }
        if (!best) return;
        best->taken = 1;
        v->chosen[v->count++] = best->index;
    }
}

/* Chooses from what was observed and forecast alone. */
static bj_status choose_by_maneuvers(viewer *v, bj_error *err) {
    const int64_t all = view_scenes_count(&v->from);
    const int most = all < 1000000 ? (int)all : 1000000;
    cli_progress bar = cli_progress_begin("scenes", most);
    const double start = bar.last;
    int count = 0;
    int64_t *order = malloc(((size_t)most + 1) * sizeof *order);
    candidate *list = malloc(((size_t)most + 1) * sizeof *list);
    bj_status status = order && list
                           ? report_choose(order, &count, most, all, forecast_id, v, err)
                           : cli_error(err, BJ_ENOMEM, "out of memory for %d scenes", most);
    for (int i = 0; i < count && status == BJ_OK; i++) {
        status = look_at(&list[i], v, order[i], err);
        cli_progress_show(&bar, i, "predicting");
    }
    if (status == BJ_OK && bar.last > start) cli_progress_end(&bar, count, "");
    if (status == BJ_OK) fill_places(v, list, count);
    free(list);
    free(order);
    return status;
}

static bj_status find_scene(int64_t *index, const viewer *v, const char *id, bj_error *err) {
    const int64_t count = view_scenes_count(&v->from);
    bj_nearest nearest = BJ_NEAREST(id);
    for (*index = 0; *index < count; ++*index) {
        const char *here = view_scenes_id(&v->from, *index);
        if (!strcmp(here, id)) return BJ_OK;
        bj_nearest_offer(&nearest, here);
    }
    return cli_error(err, BJ_EARG, "%s: no scenario '%s' among %lld scenarios%s%s%s", v->options->av2, id,
                     (long long)count, nearest.best ? "; did you mean '" : "",
                     nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

static bj_status choose(viewer *v, bj_error *err) {
    const view_options *o = v->options;
    const int64_t count = view_scenes_count(&v->from);
    bj_status status = BJ_OK;
    for (int64_t i = 0; i < count; i++) v->most += forecast_id(v, i) != NULL;
    if (o->ids.count)
        for (; v->count < o->ids.count && status == BJ_OK; v->count++)
            status = find_scene(&v->chosen[v->count], v, o->ids.items[v->count], err);
    else if (o->by_maneuvers) status = choose_by_maneuvers(v, err);
    else status = report_choose(v->chosen, &v->count, o->count, count, forecast_id, v, err);
    if (status == BJ_OK && !v->count)
        return cli_error(err, BJ_EFORMAT, "%s: none of the %lld scenarios is in %s%s", o->av2,
                         (long long)count, o->names[0],
                         o->source_count > 1 ? " or the other files" : "");
    return status;
}

/* --------------------------------------------------------------------------------------- scenes */

/* Scenes that cannot be used are reported and left out. The rest of the page is not affected. */
static bj_status add_forecasts(viewer *v, const view_scene *scene, bj_error *err) {
    const int number = report_scenes_count(v->scenes) - 1;
    view_forecast *f = &v->room;
    for (int i = 0; i < v->options->source_count; i++) {
        bj_error why;
        if (view_source_forecast(f, &v->source[i], &scene->shown.info, scene->batch, &why) !=
            BJ_OK) {
            cli_fail(verb, &why);
            v->refused++;
        } else if (f->K) {
            const bj_status status =
                report_scenes_forecast(v->scenes, number, i, f->K, f->weights, f->paths, err);
            if (status != BJ_OK) return status;
        }
    }
    return BJ_OK;
}

/* Adds a scene with its forecasts and, for raw files, the true future, because it is available only
 * here. */
static bj_status add_scene(viewer *v, int64_t index, bj_error *err) {
    view_scene scene;
    int opened;
    bj_status status = try_open(&opened, &scene, v, index, err);
    if (!opened) return status;
    const int number = report_scenes_count(v->scenes);
    v->shown[number] = index;
    status = report_scenes_add(v->scenes, &scene.shown, err);
    if (status == BJ_OK) status = add_forecasts(v, &scene, err);
    if (status == BJ_OK && v->law) {
        int found;
        status = report_scenes_law(v->scenes, number, v->law, &scene.shown.info, &found, err);
        v->laws += found;
    }
    if (status == BJ_OK && scene.owned && scene.shown.at.future)
        status = report_scenes_future(v->scenes, number, scene.shown.at.future,
                                      scene.shown.info.future_valid, err);
    view_scene_close(&scene);
    return status;
}

/* Adds the true futures from a second handle, which is opened after all predictions have been
 * made. */
static bj_status add_futures(viewer *v, bj_error *err) {
    bj_status status = bj_cache_open(&v->seeing, v->options->av2, 0, err);
    for (int i = 0; i < report_scenes_count(v->scenes) && status == BJ_OK; i++) {
        const float *future = bj_cache_floats(v->seeing, v->shown[i]).future;
        status = bj_cache_check_scene(v->seeing, v->shown[i], err);
        if (status == BJ_OK && future)
            status = report_scenes_future(v->scenes, i, future,
                                          bj_cache_info(v->seeing, v->shown[i]).future_valid, err);
    }
    return status;
}

static bj_status add_scenes(viewer *v, bj_error *err) {
    const view_options *o = v->options;
    bj_status status = choose(v, err);
    for (int i = 0; i < v->count && status == BJ_OK; i++) status = add_scene(v, v->chosen[i], err);
    if (status == BJ_OK && v->from.cache) status = add_futures(v, err);
    if (status == BJ_OK && o->law && !v->laws)
        return cli_error(err, BJ_EFORMAT,
                         "%s: does not contain the true distribution of the scenes in %s", o->law,
                         o->av2);
    if (status == BJ_OK && !report_scenes_count(v->scenes))
        return cli_error(err, BJ_EFORMAT, "%s: none of the %d scenes could be read", o->av2,
                         v->count);
    return status;
}

/* ----------------------------------------------------------------------------------------- page */

static void put_abouts(FILE *to, const viewer *v) {
    for (int i = 0; i < v->options->source_count; i++) {
        if (!*v->source[i].about) continue;
        fputs("<p class=\"note\">", to);
        report_textf(to, "%s: %s", v->source[i].title, v->source[i].about);
        fputs("</p>\n", to);
    }
}

static void put_names(FILE *to, const viewer *v) {
    const int count = v->options->source_count;
    for (int i = 0; i < count; i++) {
        fputs(!i ? "" : i + 1 < count ? ", " : " and ", to);
        report_text(to, v->source[i].title);
    }
}

/* A single forecast is shown next to the true distribution. Several forecasts are compared in the
 * browser. */
static int has_glance(const viewer *v) { return v->laws && v->options->source_count == 1; }

static bj_status fill_browser(FILE *to, const char *name, void *context, bj_error *err) {
    const viewer *v = context;
    (void)err;
    if (!strcmp(name, "glance")) report_about_glance(to, v->source[0].title);
    if (strcmp(name, "about")) return BJ_OK;
    fputs(
        "<p>Each scene is shown as it was known at the time of prediction: "
        "the map, the road users and the last five seconds of their motion. "
        "The colored lines are the predicted futures of one road user, each with its probability. ",
        to);
    if (v->options->ids.count) fputs("The scenes were selected by id", to);
    else if (v->options->by_maneuvers)
        fprintf(to,
                "This page shows %d of %d scenes, which were selected without reading any future. "
                "Scenes whose forecasts include several routes were preferred, "
                "with varied maneuvers and maps",
                report_scenes_count(v->scenes), v->most);
    else
        fprintf(to, "This page shows %d of %d scenes, which were selected by a hash of their ids",
                report_scenes_count(v->scenes), v->most);
    fprintf(to, "; scenes whose predicted futures end far apart come first. %s</p>\n",
            has_glance(v) ? "The true future is hidden until you reveal it."
                          : "The true future is hidden until you reveal it.");
    return BJ_OK;
}

static bj_status fill(FILE *to, const char *name, void *context, bj_error *err) {
    viewer *v = context;
    if (!strcmp(name, "title")) {
        fputs("Forecasts of ", to);
        put_names(to, v);
    } else if (!strcmp(name, "sections")) {
        fputs("<h1>Forecasts of ", to);
        put_names(to, v);
        fputs("</h1>\n", to);
        put_abouts(to, v);
        const bj_status status =
            has_glance(v) ? report_template(to, "glance.html", fill_browser, v, err) : BJ_OK;
        return status == BJ_OK ? report_template(to, "browser.html", fill_browser, v, err) : status;
    } else if (!strcmp(name, "footer")) {
        fprintf(to, "<p>Written by bjepa %s. This file is self-contained and works offline.</p>",
                bj_version());
    } else if (!strcmp(name, "scenes")) {
        return report_scenes_write(to, v->scenes, err);
    }
    return BJ_OK;
}

static bj_status write_page(viewer *v, bj_error *err) {
    cli_file file;
    bj_status status = cli_file_open(&file, v->options->out, err);
    if (status != BJ_OK) return status;
    status = report_page_write(file.stream, fill, v, err);
    if (status == BJ_OK) return cli_file_commit(&file, err);
    cli_file_abort(&file);
    return status;
}

int cmd_view(int argc, char **argv) {
    view_options o = {.out = "view.html", .count = 24};
    const int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    viewer *v = calloc(1, sizeof *v); /* large */
    bj_error err;
    bj_status status = v ? BJ_OK : cli_error(&err, BJ_ENOMEM, "out of memory");
    if (status != BJ_OK) return cli_fail(verb, &err);
    v->options = &o;
    status = viewer_open(v, &err);
    if (status == BJ_OK) status = add_scenes(v, &err);
    if (status == BJ_OK) v->dropped = report_scenes_fit(v->scenes, PAGE_LIMIT);
    if (status == BJ_OK) status = write_page(v, &err);
    const int shown = v->scenes ? report_scenes_count(v->scenes) : 0;
    const int dropped = v->dropped, refused = v->refused;
    viewer_close(v);
    free(v);
    if (status != BJ_OK) return cli_fail(verb, &err);
    fprintf(stderr, "bjepa %s: wrote %s with %d scene%s; open it in a browser\n", verb, o.out,
            shown, shown == 1 ? "" : "s");
    if (dropped)
        fprintf(stderr, "bjepa %s: left out %d scenes to keep the page below 15 MB\n", verb,
                dropped);
    return refused ? CLI_DATA : CLI_OK;
}
