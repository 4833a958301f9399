/* predict_source.c - reads the scenes of one operand of bjepa predict; see predict.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "predict.h"

#include "data_scene.h"
#include "output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bj_status open_cache(predict_source *s, const char *scene, int sees, bj_error *err) {
    bj_loader_options options = {.part = BJ_PART_ALL, .batch = PREDICT_BATCH};
    bj_status status = bj_cache_open(&s->cache, s->path, !sees, err);
    if (status != BJ_OK) return status;
    s->sizes = bj_cache_arch(s->cache);
    if (scene) {
        options.batch = 1; /* then a step is a scene */
        status = data_find_scene(&s->next, s->cache, s->path, scene, err);
        if (status != BJ_OK) return status;
    }
    status = bj_loader_create(&s->loader, s->cache, &options, err);
    if (status == BJ_OK) s->end = scene ? s->next + 1 : bj_loader_steps(s->loader);
    return status;
}

static bj_status find_in_list(predict_source *s, const char *scene, bj_error *err) {
    bj_nearest nearest = BJ_NEAREST(scene);
    for (int64_t i = 0; i < s->end; i++) {
        const char *id = bj_scenario_list_id(s->list, i);
        if (!strcmp(id, scene)) {
            s->next = i;
            s->end = i + 1;
            return BJ_OK;
        }
        bj_nearest_offer(&nearest, id);
    }
    return cli_error(err, BJ_EARG, "%s: no scenario '%s' among %lld scenarios%s%s%s", s->path, scene,
                     (long long)s->end, nearest.best ? "; did you mean '" : "",
                     nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

static bj_status open_folder(predict_source *s, const char *scene, bj_error *err) {
    const bj_status status = bj_scenario_list_create(&s->list, s->path, err);
    if (status != BJ_OK) return status;
    s->end = bj_scenario_list_count(s->list);
    if (!s->end)
        return cli_error(err, BJ_EFORMAT,
                         "%s: contains no scenario_ID.parquet, not even in subfolders", s->path);
    return scene ? find_in_list(s, scene, err) : BJ_OK;
}

bj_status predict_source_open(predict_source *s, const char *path, const char *scene, int sees,
                              bj_error *err) {
    struct stat info;
    *s = (predict_source){.path = path, .sizes = bj_arch_paper()};
    if (stat(path, &info)) return cli_error(err, BJ_EIO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return open_folder(s, scene, err);
    if (!cli_ends_in(path, ".parquet")) return open_cache(s, scene, sees, err);
    s->end = 1;
    const bj_status status = bj_scenario_open(&s->single, path, err);
    if (status != BJ_OK || !scene) return status;
    const char *id = bj_scenario_info(s->single).scenario_id;
    return strcmp(id, scene) ? cli_error(err, BJ_EARG, "%s: contains scenario '%s', expected '%s'",
                                         path, id, scene)
                             : BJ_OK;
}

/* ---------------------------------------------------------------------------------- handing out */

static void drop(predict_source *s) {
    for (int i = 0; i < s->count; i++) bj_scenario_free(s->scenes[i].owned);
    s->count = 0;
}

static void take(predict_source *s, bj_scenario_scene *scene) {
    s->table[s->count] = bj_scenario_batch(scene)->scenes[0];
    s->scenes[s->count++] =
        (predict_scene){bj_scenario_info(scene), bj_scenario_floats(scene), scene};
}

static bj_status next_of_cache(const bj_batch **batch, predict_source *s, bj_error *err) {
    const int64_t *numbers;
    const bj_status status = bj_loader_batch(batch, &numbers, s->loader, 0, s->next, err);
    if (status != BJ_OK) return status;
    s->next++;
    s->count = (*batch)->B;
    for (int b = 0; b < s->count; b++)
        s->scenes[b] = (predict_scene){bj_cache_info(s->cache, numbers[b]),
                                       bj_cache_floats(s->cache, numbers[b]), NULL};
    return BJ_OK;
}

/* An unreadable file affects only its scenario, but a lack of memory ends the command. */
static bj_status next_of_list(predict_source *s, int most, bj_error *err) {
    while (s->next < s->end && s->count < most) {
        bj_scenario_scene *scene;
        const bj_status status = bj_scenario_list_open(&scene, s->list, s->next++, err);
        if (status == BJ_ENOMEM) return status;
        if (status == BJ_OK) {
            take(s, scene);
            continue;
        }
        const int code = cli_fail("predict", err);
        if (code > s->worst_code) s->worst_code = code;
        s->refused++;
    }
    return BJ_OK;
}

bj_status predict_source_next(const bj_batch **batch, bj_batch *room, predict_source *s, int most,
                              bj_error *err) {
    bj_status status = BJ_OK;
    *batch = NULL;
    drop(s);
    if (s->next >= s->end) return BJ_OK;
    if (s->loader) return next_of_cache(batch, s, err);
    if (most > PREDICT_BATCH) most = PREDICT_BATCH;
    if (s->list) {
        status = next_of_list(s, most, err);
    } else {
        take(s, s->single);
        s->single = NULL;
        s->next++;
    }
    *room = (bj_batch){.B = s->count, .scenes = s->table};
    if (s->count) *batch = room;
    return status;
}

void predict_source_close(predict_source *s) {
    drop(s);
    bj_loader_free(s->loader);
    bj_cache_free(s->cache);
    bj_scenario_list_free(s->list);
    bj_scenario_free(s->single);
    s->loader = NULL;
    s->cache = NULL;
    s->list = NULL;
    s->single = NULL;
}
