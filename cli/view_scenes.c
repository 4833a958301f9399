/* view_scenes.c - see view.h. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "view.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

bj_status view_scenes_open(view_scenes *s, const char *path, bj_error *err) {
    const bj_loader_options one = {.part = BJ_PART_ALL, .batch = 1};
    struct stat info;
    *s = (view_scenes){.path = path};
    if (stat(path, &info)) return cli_error(err, BJ_EIO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return bj_scenario_list_create(&s->list, path, err);
    const bj_status status = bj_cache_open(&s->cache, path, 1, err);
    return status == BJ_OK ? bj_loader_create(&s->loader, s->cache, &one, err) : status;
}

void view_scenes_close(view_scenes *s) {
    bj_loader_free(s->loader);
    bj_cache_free(s->cache);
    bj_scenario_list_free(s->list);
}

int64_t view_scenes_count(const view_scenes *s) {
    return s->list ? bj_scenario_list_count(s->list) : bj_cache_count(s->cache);
}

const char *view_scenes_id(const view_scenes *s, int64_t index) {
    return s->list ? bj_scenario_list_id(s->list, index)
                   : bj_cache_info(s->cache, index).scenario_id;
}

bj_arch view_scenes_sizes(const view_scenes *s) {
    return s->list ? bj_arch_paper() : bj_cache_arch(s->cache);
}

bj_status view_scene_open(view_scene *scene, const view_scenes *s, int64_t index, bj_error *err) {
    *scene = (view_scene){.shown = {.sizes = view_scenes_sizes(s), .cache = s->cache}};
    if (s->cache) {
        scene->shown.info = bj_cache_info(s->cache, index);
        scene->shown.at = bj_cache_floats(s->cache, index);
        const bj_status drawn = bj_cache_check_map(s->cache, scene->shown.info.map, err);
        if (drawn != BJ_OK) return drawn;
        return bj_loader_batch(&scene->batch, NULL, s->loader, 0, index, err);
    }
    const bj_status status = bj_scenario_list_open(&scene->owned, s->list, index, err);
    if (status != BJ_OK) return status;
    scene->shown.info = bj_scenario_info(scene->owned);
    scene->shown.at = bj_scenario_floats(scene->owned);
    scene->shown.scenario = scene->owned;
    scene->batch = bj_scenario_batch(scene->owned);
    return BJ_OK;
}

void view_scene_close(view_scene *scene) {
    bj_scenario_free(scene->owned);
    *scene = (view_scene){.batch = NULL};
}
