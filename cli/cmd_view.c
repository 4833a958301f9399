/* cmd_view.c - bjepa view: anybody's forecasts in the official format, in the scene browser.
 *
 * Scenes come from raw scenario files below a folder, or from a cache. Which ones are shown is
 * decided by their ids alone. Several submissions stand side by side.
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "cli.h"
#include "output.h"
#include "report_choose.h"
#include "report_page.h"
#include "report_scenes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char verb[] = "view";

enum { SUBMISSIONS = 16, SCENES = 1000, PAGE_LIMIT = 14000000 };

typedef struct view_options {
    const char *av2, *out, *law;
    int count;
    cli_list ids;
    char *const *files;
    int file_count;
} view_options;

static int parse(view_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"av2", 0, CLI_TEXT, "DIR_OR_CACHE", &o->av2, 0, 0,
         "the scenes: scenario files below a folder, or a cache"},
        {"out", 'o', CLI_TEXT, "FILE.html", &o->out, 0, 0, "the page; view.html"},
        {"count", 0, CLI_INT, "N", &o->count, 1, SCENES,
         "most scenes, chosen by a hash of their ids; 24"},
        {"scene", 0, CLI_LIST, "ID", &o->ids, 0, 0, "this scene; may be given several times"},
        {"law", 0, CLI_TEXT, "FILE", &o->law, 0, 0,
         "law of simulated scenes, if it is not beside them"},
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "look at the forecasts of submissions in a page of one file",
        .operands = "SUBMISSION.parquet...",
        .min_operands = 1,
        .max_operands = SUBMISSIONS,
        .examples = "bjepa view submission.parquet --av2 /data/av2/val\n"
                    "bjepa view ours.parquet theirs.parquet --av2 val.bjc --out compare.html\n"
                    "bjepa view submission.parquet --av2 val "
                    "--scene 0a1e6f0a-1817-4a98-b02e-db8c9327d151\n",
        .options = options,
    };
    const int code = cli_parse(&usage, argc, argv, &o->file_count);
    if (code != CLI_CONTINUE) return code;
    if (!o->av2) return cli_misuse(verb, "--av2 DIR_OR_CACHE is missing: where the scenes are");
    o->files = argv + 1;
    return CLI_CONTINUE;
}

/* --------------------------------------------------------------------------------------- scenes */

typedef struct viewer {
    const view_options *options;
    bj_submission *submissions[SUBMISSIONS];
    report_model models[SUBMISSIONS];
    char titles[SUBMISSIONS][96];
    bj_scenario_list *list; /* one of these two is not NULL */
    bj_cache *cache;
    bj_law *law; /* may be NULL */
    report_scenes *scenes;
    int refused; /* scenes that could not be shown */
    int most;    /* scenes in both submissions and data */
    int dropped; /* for the size of the page */
    int laws;    /* scenes with a law */
} viewer;

static void viewer_close(viewer *v) {
    for (int i = 0; i < v->options->file_count; i++) bj_submission_free(v->submissions[i]);
    bj_scenario_list_free(v->list);
    bj_cache_free(v->cache);
    bj_law_free(v->law);
    report_scenes_free(v->scenes);
}

/* The name of the file, without its folder and ".parquet". */
static void title_of(char title[96], const char *path) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const size_t length = strlen(name) - (cli_ends_in(name, ".parquet") ? 8 : 0);
    snprintf(title, 96, "%.*s", (int)(length < 90 ? length : 90), name);
}

/* Beside simulated scenes lies their law; scenes of the street have none. */
static bj_status open_law(viewer *v, int folder, bj_error *err) {
    char beside[CLI_PATH_SIZE];
    struct stat info;
    if (v->options->law) return bj_law_open(&v->law, v->options->law, err);
    if (snprintf(beside, sizeof beside, "%s%s", v->options->av2,
                 folder ? "/law.safetensors" : ".law.safetensors") >= (int)sizeof beside ||
        stat(beside, &info))
        return BJ_OK;
    return bj_law_open(&v->law, beside, err);
}

static bj_status viewer_open(viewer *v, bj_error *err) {
    const view_options *o = v->options;
    struct stat info;
    bj_status status = BJ_OK;
    for (int i = 0; i < o->file_count && status == BJ_OK; i++) {
        status = bj_submission_open(&v->submissions[i], o->files[i], err);
        title_of(v->titles[i], o->files[i]);
        v->models[i] = (report_model){o->files[i], v->titles[i], -1};
    }
    if (status != BJ_OK) return status;
    if (stat(o->av2, &info)) return cli_error(err, BJ_EIO, "%s: %s", o->av2, strerror(errno));
    const int folder = S_ISDIR(info.st_mode);
    status = folder ? bj_scenario_list_create(&v->list, o->av2, err)
                    : bj_cache_open(&v->cache, o->av2, 0, err);
    if (status == BJ_OK) status = open_law(v, folder, err);
    if (status == BJ_OK) status = report_scenes_create(&v->scenes, v->models, o->file_count, err);
    return status;
}

static int64_t scene_count(const viewer *v) {
    return v->list ? bj_scenario_list_count(v->list) : bj_cache_count(v->cache);
}

static const char *scene_id(const viewer *v, int64_t index) {
    return v->list ? bj_scenario_list_id(v->list, index)
                   : bj_cache_info(v->cache, index).scenario_id;
}

/* The id, when a submission has it. */
static const char *forecast_id(const void *context, int64_t index) {
    const viewer *v = context;
    const char *id = scene_id(v, index);
    for (int i = 0; i < v->options->file_count; i++)
        if (bj_submission_find(v->submissions[i], id) >= 0) return id;
    return NULL;
}

/* ------------------------------------------------------------------------------------ forecasts */

/* One track of a submission in the frame of a scene. */
typedef struct forecast {
    int K;
    double weights[BJ_MAX_ATOMS], paths[BJ_MAX_ATOMS * BJ_SUBMISSION_STEPS * 2];
} forecast;

static bj_status bad_row(const char *file, int64_t row, const char *id, const char *what,
                         bj_error *err) {
    return cli_error(err, BJ_EFORMAT, "%s: row %lld, scenario %s: %s", file, (long long)row, id,
                     what);
}

static bj_status take_row(forecast *f, const bj_submission_row *row, const bj_scene_info *info,
                          const char *file, int64_t number, bj_error *err) {
    double *path = f->paths + 2 * (size_t)f->K * BJ_SUBMISSION_STEPS;
    if (f->K == BJ_MAX_ATOMS)
        return bad_row(file, number, info->scenario_id, "more modes than can be shown", err);
    if (row->x_count != BJ_SUBMISSION_STEPS || row->y_count != BJ_SUBMISSION_STEPS)
        return bad_row(file, number, info->scenario_id, "expected 60 points", err);
    if (!(row->probability >= 0 && row->probability <= 1))
        return bad_row(file, number, info->scenario_id, "expected a probability of 0 to 1", err);
    for (int t = 0; t < BJ_SUBMISSION_STEPS; t++) {
        path[2 * t] = row->x[t];
        path[2 * t + 1] = row->y[t];
        if (!isfinite(row->x[t]) || !isfinite(row->y[t]))
            return bad_row(file, number, info->scenario_id, "a point is not finite", err);
    }
    bj_from_city(path, path, BJ_SUBMISSION_STEPS, info->origin, info->heading);
    f->weights[f->K++] = row->probability;
    return BJ_OK;
}

/* The rows of the focal track; K is 0 when the file has none. */
static bj_status read_forecast(forecast *f, const bj_submission *s, const bj_scene_info *info,
                               const char *file, bj_error *err) {
    bj_status status = BJ_OK;
    int64_t count = 0;
    f->K = 0;
    const int64_t scenario = bj_submission_find(s, info->scenario_id);
    if (scenario < 0) return BJ_OK;
    const int64_t *rows = bj_submission_rows_of(&count, s, scenario);
    for (int64_t i = 0; i < count && status == BJ_OK; i++) {
        const bj_submission_row row = bj_submission_at(s, rows[i]);
        if (row.track_id && !strcmp(row.track_id, info->focal_id))
            status = take_row(f, &row, info, file, rows[i], err);
    }
    return status;
}

/* What cannot be used is said and left out; the rest of the page does not suffer. */
static bj_status add_forecasts(viewer *v, const bj_scene_info *info, forecast *room,
                               bj_error *err) {
    const int scene = report_scenes_count(v->scenes) - 1;
    for (int i = 0; i < v->options->file_count; i++) {
        bj_error why;
        if (read_forecast(room, v->submissions[i], info, v->options->files[i], &why) != BJ_OK) {
            cli_fail(verb, &why);
            v->refused++;
        } else if (room->K) {
            const bj_status status = report_scenes_forecast(v->scenes, scene, i, room->K,
                                                            room->weights, room->paths, err);
            if (status != BJ_OK) return status;
        }
    }
    return BJ_OK;
}

static bj_status add_truth(viewer *v, const report_scene *scene, bj_error *err) {
    const int number = report_scenes_count(v->scenes) - 1;
    int found = 0;
    bj_status status = BJ_OK;
    if (scene->at.future)
        status = report_scenes_future(v->scenes, number, scene->at.future, scene->info.future_valid,
                                      err);
    if (status == BJ_OK && v->law)
        status = report_scenes_law(v->scenes, number, v->law, &scene->info, &found, err);
    v->laws += found;
    return status;
}

static bj_status add_scene(viewer *v, int64_t index, forecast *room, bj_error *err) {
    bj_scenario_scene *owned = NULL;
    report_scene scene = {.cache = v->cache};
    bj_status status = BJ_OK;
    if (v->list) {
        bj_error why;
        status = bj_scenario_list_open(&owned, v->list, index, &why);
        if (status != BJ_OK) {
            v->refused++;
            if (status == BJ_ENOMEM) return cli_error(err, status, "%s", why.message);
            cli_fail(verb, &why);
            return BJ_OK;
        }
        scene.sizes = bj_arch_paper();
        scene.info = bj_scenario_info(owned);
        scene.at = bj_scenario_floats(owned);
        scene.scenario = owned;
    } else {
        scene.sizes = bj_cache_arch(v->cache);
        scene.info = bj_cache_info(v->cache, index);
        scene.at = bj_cache_floats(v->cache, index);
    }
    status = report_scenes_add(v->scenes, &scene, err);
    if (status == BJ_OK) status = add_forecasts(v, &scene.info, room, err);
    if (status == BJ_OK) status = add_truth(v, &scene, err);
    bj_scenario_free(owned);
    return status;
}

/* ------------------------------------------------------------------------------------- choosing */

static bj_status find_scene(int64_t *index, const viewer *v, const char *id, bj_error *err) {
    bj_nearest nearest = BJ_NEAREST(id);
    for (*index = 0; *index < scene_count(v); ++*index) {
        if (!strcmp(scene_id(v, *index), id)) return BJ_OK;
        bj_nearest_offer(&nearest, scene_id(v, *index));
    }
    return cli_error(err, BJ_EARG, "%s: no scenario '%s' among %lld%s%s%s", v->options->av2, id,
                     (long long)scene_count(v), nearest.best ? "; did you mean '" : "",
                     nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

static bj_status add_scenes(viewer *v, bj_error *err) {
    const view_options *o = v->options;
    static int64_t chosen[SCENES];
    static forecast room; /* 62 kB: not for the stack */
    int count = 0;
    bj_status status = BJ_OK;
    for (int64_t i = 0; i < scene_count(v); i++) v->most += forecast_id(v, i) != NULL;
    if (o->ids.count) {
        for (; count < o->ids.count && status == BJ_OK; count++)
            status = find_scene(&chosen[count], v, o->ids.items[count], err);
    } else {
        status = report_choose(chosen, &count, o->count, scene_count(v), forecast_id, v, err);
    }
    if (status == BJ_OK && !count)
        return cli_error(err, BJ_EFORMAT, "%s: none of its %lld scenarios is in %s%s", o->av2,
                         (long long)scene_count(v), o->files[0],
                         o->file_count > 1 ? " or the other files" : "");
    for (int i = 0; i < count && status == BJ_OK; i++) status = add_scene(v, chosen[i], &room, err);
    if (status == BJ_OK && o->law && !v->laws)
        return cli_error(err, BJ_EFORMAT, "%s: it has no law of the scenes of %s", o->law, o->av2);
    if (status == BJ_OK && !report_scenes_count(v->scenes))
        return cli_error(err, BJ_EFORMAT, "%s: none of the %d scenes could be read", o->av2, count);
    return status;
}

/* ----------------------------------------------------------------------------------------- page */

static void put_names(FILE *to, const viewer *v) {
    const int count = v->options->file_count;
    for (int i = 0; i < count; i++) {
        fputs(!i ? "" : i + 1 < count ? ", " : " and ", to);
        report_text(to, v->titles[i]);
    }
}

static bj_status fill_browser(FILE *to, const char *name, void *context, bj_error *err) {
    const viewer *v = context;
    (void)err;
    if (strcmp(name, "about")) return BJ_OK;
    fputs("<p>Every scene is shown as it was known at the moment of prediction: the map, the road "
          "users, and five seconds of their past. The colored lines are the futures that were "
          "predicted for one of them, each with its probability. ",
          to);
    if (v->options->ids.count) fputs("The scenes were asked for by id", to);
    else
        fprintf(to, "%d of %d scenes, chosen by a hash of their ids",
                report_scenes_count(v->scenes), v->most);
    fputs("; those whose futures end far apart come first. What really happened is kept back until "
          "you ask for it.</p>\n",
          to);
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
        return report_template(to, "browser.html", fill_browser, v, err);
    } else if (!strcmp(name, "footer")) {
        fprintf(to,
                "<p>Written by bjepa %s. Everything is in this one file; it asks nothing of any "
                "network.</p>",
                bj_version());
    } else if (!strcmp(name, "scenes")) {
        return report_scenes_write(to, v->scenes, err);
    }
    return BJ_OK;
}

static bj_status write_page(viewer *v, bj_error *err) {
    cli_file file;
    bj_status status = cli_file_replaceable(v->options->out, err);
    if (status == BJ_OK) status = cli_file_open(&file, v->options->out, err);
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
    viewer v = {.options = &o};
    bj_error err;
    bj_status status = viewer_open(&v, &err);
    if (status == BJ_OK) status = add_scenes(&v, &err);
    if (status == BJ_OK) v.dropped = report_scenes_fit(v.scenes, PAGE_LIMIT);
    if (status == BJ_OK) status = write_page(&v, &err);
    const int shown = v.scenes ? report_scenes_count(v.scenes) : 0;
    viewer_close(&v);
    if (status != BJ_OK) return cli_fail(verb, &err);
    fprintf(stderr, "bjepa %s: wrote %s, %d scene%s: open it in a browser\n", verb, o.out, shown,
            shown == 1 ? "" : "s");
    if (v.dropped)
        fprintf(stderr, "bjepa %s: left out %d scenes: the page would be larger than 15 MB\n", verb,
                v.dropped);
    return v.refused ? CLI_DATA : CLI_OK;
}
