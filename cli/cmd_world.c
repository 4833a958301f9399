/* cmd_world.c - bjepa world show: prints or draws a simulated scene with the law of its futures. */
#include "cli.h"
#include "data_scene.h"
#include "json_out.h"
#include "output.h"
#include "picture.h"
#include "scene_svg.h"
#include "verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char verb[] = "world show";

/* The source of the scene: a cache, or a folder of scenarios. */
typedef struct source {
    bj_cache *cache;
    bj_scenario_list *list;
    bj_scenario_scene *scenario;
    bj_law *law;
    bj_arch sizes;
    bj_scene_info info;
    bj_scene_floats at;
    bj_law_scene stated;
} source;

static void source_close(source *s) {
    bj_law_free(s->law);
    bj_scenario_free(s->scenario);
    bj_scenario_list_free(s->list);
    bj_cache_free(s->cache);
}

/* ------------------------------------------------------------------------------------- opening */

static bj_status open_cache(source *s, const char *path, const char *name, bj_error *err) {
    int64_t index = 0;
    bj_status status = bj_cache_open(&s->cache, path, 0, err);
    if (status == BJ_OK) status = data_find_scene(&index, s->cache, path, name, err);
    if (status == BJ_OK) status = bj_cache_verify(s->cache, index, err);
    if (status != BJ_OK) return status;
    s->sizes = bj_cache_arch(s->cache);
    s->info = bj_cache_info(s->cache, index);
    s->at = bj_cache_floats(s->cache, index);
    return BJ_OK;
}

/* Finds a scene by its id, the beginning of its id, or "#number", like data_find_scene. */
static int64_t find_listed(const bj_scenario_list *list, const char *name) {
    const int64_t count = bj_scenario_list_count(list);
    if (name[0] == '#') {
        char *end;
        const long long number = strtoll(name + 1, &end, 10);
        return *end || end == name + 1 || number < 0 || number >= count ? -1 : number;
    }
    for (int64_t i = 0; i < count; i++)
        if (!strncmp(bj_scenario_list_id(list, i), name, strlen(name))) return i;
    return -1;
}

static bj_status open_folder(source *s, const char *path, const char *name, bj_error *err) {
    bj_status status = bj_scenario_list_create(&s->list, path, err);
    if (status != BJ_OK) return status;
    const int64_t index = find_listed(s->list, name);
    if (index < 0)
        return cli_error(err, BJ_EARG, "%s: no scene '%s' among %lld scenes", path, name,
                         (long long)bj_scenario_list_count(s->list));
    status = bj_scenario_list_open(&s->scenario, s->list, index, err);
    if (status != BJ_OK) return status;
    s->sizes = bj_arch_paper();
    s->info = bj_scenario_info(s->scenario);
    s->at = bj_scenario_floats(s->scenario);
    return BJ_OK;
}

static bj_status open_law(source *s, const char *path, bj_error *err) {
    bj_status status = bj_law_open(&s->law, path, err);
    if (status != BJ_OK) return status;
    const int64_t index = bj_law_find(s->law, s->info.scenario_id);
    if (index < 0)
        return cli_error(err, BJ_EFORMAT, "%s: contains no true distribution for scene %s", path, s->info.scenario_id);
    status = bj_law_verify(s->law, index, err);
    if (status != BJ_OK) return status;
    s->stated = bj_law_at(s->law, index);
    const double apart = fabs(s->stated.origin[0] - s->info.origin[0]) +
                         fabs(s->stated.origin[1] - s->info.origin[1]) +
                         fabs(s->stated.heading - s->info.heading);
    if (!(apart < 1e-9))
        return cli_error(err, BJ_EFORMAT,
                         "%s: the distribution of scene %s has a different coordinate frame, "
                         "so the file belongs to other data",
                         path, s->info.scenario_id);
    return BJ_OK;
}

static bj_status source_open(source *s, const char *path, const char *name, const char *law,
                             bj_error *err) {
    struct stat info;
    char beside[CLI_PATH_SIZE];
    const int folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    const bj_status status =
        folder ? open_folder(s, path, name, err) : open_cache(s, path, name, err);
    if (status != BJ_OK) return status;
    if (!law) {
        if (snprintf(beside, sizeof beside, "%s%s", path,
                     folder ? "/law.safetensors" : ".law.safetensors") >= (int)sizeof beside)
            return cli_error(err, BJ_EARG, "%.200s...: path too long", path);
        law = beside;
    }
    return open_law(s, law, err);
}

/* --------------------------------------------------------------------------------------- output */

static void end_of(const source *s, int mode, double *x, double *y) {
    const float *end = s->stated.means + ((size_t)mode + 1) * (size_t)s->sizes.fut * 2 - 2;
    *x = (double)end[0];
    *y = (double)end[1];
}

static void print_text(const source *s) {
    const float *now = s->at.focal + (size_t)(s->sizes.obs - 1) * BJ_FOCAL_FEATURES;
    printf("scene         %s, %s\n", s->info.scenario_id, s->info.city);
    printf("focal         %s %s, %.2f m/s\n", s->info.focal_type, s->info.focal_id,
           hypot((double)now[2], (double)now[3]));
    printf("distribution  %d modes, jitter %g m\n", s->stated.modes, s->stated.jitter);
    for (int m = 0; m < s->stated.modes; m++) {
        double x, y;
        end_of(s, m, &x, &y);
        printf("  %5.1f %%  %-12s  ends at (%7.2f, %7.2f) m%s\n", 100 * s->stated.weights[m],
               bj_law_intent(s->law, s->stated.intents[m]), x, y,
               m == s->stated.realized ? "  <- drawn as the true future" : "");
    }
}

static void print_json(const source *s) {
    printf("{\"schema\":1,\"type\":\"world_show\",\"scenario_id\":");
    cli_json_text(stdout, s->info.scenario_id);
    printf(",\"city\":");
    cli_json_text(stdout, s->info.city);
    printf(",\"realized\":%d,\"jitter\":%g,\"modes\":[", s->stated.realized, s->stated.jitter);
    for (int m = 0; m < s->stated.modes; m++) {
        double x, y;
        end_of(s, m, &x, &y);
        printf("%s{\"weight\":%.17g,\"intent\":", m ? "," : "", s->stated.weights[m]);
        cli_json_text(stdout, bj_law_intent(s->law, s->stated.intents[m]));
        printf(",\"end\":[%.9g,%.9g]}", x, y);
    }
    printf("]}\n");
}

static bj_status draw(const source *s, const char *path, bj_error *err) {
    const size_t numbers = (size_t)s->stated.modes * (size_t)s->sizes.fut * 2;
    double *paths = malloc(numbers * sizeof *paths);
    cli_file file;
    if (!paths) return cli_error(err, BJ_ENOMEM, "out of memory");
    for (size_t i = 0; i < numbers; i++) paths[i] = (double)s->stated.means[i];
    const scene_picture picture = {.sizes = s->sizes,
                                   .info = s->info,
                                   .at = s->at,
                                   .cache = s->cache,
                                   .modes = s->stated.modes,
                                   .weights = s->stated.weights,
                                   .paths = paths,
                                   .modes_title = "true distribution of the future"};
    bj_status status = cli_file_open(&file, path, err);
    if (status == BJ_OK) {
        status = scene_svg_write(file.stream, &picture, err);
        if (status == BJ_OK) status = cli_picture_commit(&file, err);
        else cli_file_abort(&file);
    }
    free(paths);
    return status;
}

static int show(int argc, char **argv) {
    const char *out = NULL, *law = NULL, *scene = "#0";
    int json = 0, operands;
    const cli_option options[] = {
        {"scene", 0, CLI_TEXT, "ID", &scene, 0, 0, "scene id, or its number, for example '#12'"},
        {"law", 0, CLI_TEXT, "FILE", &law, 0, 0,
         "file with the true distribution, if it is not next to the data"},
        {"out", 'o', CLI_TEXT, "FILE", &out, 0, 0, "draw the scene to a file (.svg, .png or .pdf)"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "print or draw a simulated scene with the true distribution of its futures",
        .operands = "CACHE|DIR",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa world show train.bjc --scene '#12'\n"
                    "bjepa world show train.bjc --scene '#12' --out scene.svg\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (out && !cli_picture_name(out))
        return cli_misuse(
            verb, "--out: found '%s', expected a name that ends in " CLI_PICTURE_NAMES, out);
    source s = {0};
    bj_error err;
    bj_status status = source_open(&s, argv[1], scene, law, &err);
    if (status == BJ_OK && out) status = draw(&s, out, &err);
    else if (status == BJ_OK && json) print_json(&s);
    else if (status == BJ_OK) print_text(&s);
    source_close(&s);
    if (status != BJ_OK) return cli_fail(verb, &err);
    if (out) fprintf(stderr, "bjepa %s: wrote %s\n", verb, out);
    return CLI_OK;
}

int cmd_world(int argc, char **argv) {
    static const cli_verb verbs[] = {
        {"show", "print or draw a simulated scene with the true distribution of its futures", show},
        CLI_VERB_END,
    };
    static const cli_group group = {
        .name = "world",
        .summary = "inspect simulated traffic",
        .examples = "bjepa world show train.bjc --scene '#12' --out scene.svg\n",
        .verbs = verbs,
    };
    return cli_group_run(&group, argc, argv);
}
