/* gallery_plan.c - see gallery_plan.h. */
#include "gallery_plan.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"

/* --------------------------------------------------------------------------------------- models */

static void keep_fact(char *out, size_t room, const bj_facts *facts, const char *key) {
    const char *text = bj_facts_get(facts, key);
    snprintf(out, room, "%s", text ? text : "");
}

bj_status gallery_plan_model(bj_model **out, gallery_model *model, const char *checkpoint,
                             int which, bj_error *err) {
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
        snprintf(what, sizeof what, "%.40s", *model->arm ? model->arm : gallery_model_name(which));
        memcpy(number, model->seed, sizeof number);
        snprintf(model->caption, sizeof model->caption, "%s%s%s", what, *number ? ", seed " : "",
                 number);
    }
    bj_facts_free(facts);
    return status;
}

/* --------------------------------------------------------------------------------------- sheets */

enum { MECHANISM = 6 };

static void list_sheets(gallery_plan *p, int cases) {
    int n = 0;
    for (; n < cases; n++) {
        char letter[8];
        snprintf(p->names[n], GALLERY_NAME, "case_%d", n + 1);
        snprintf(p->titles[n], 128, "%s: scenario %s", gallery_letter(letter, n),
                 p->scenes[n].ground.info.scenario_id);
        p->sheets[n] = (gallery_sheet){p->names[n], p->titles[n], 1, 440, 540, 1.5, n, 1};
    }
    if (cases)
        p->sheets[n++] =
            (gallery_sheet){"mechanism", "One future or a weighted set of futures", 3, 204, 264, 1,
                            0,           cases < MECHANISM ? cases : MECHANISM};
    p->sheets[n++] = (gallery_sheet){"atlas", "Atlas of locked cases", 4, 182, 236, 0.95, 0, cases};
    p->count = n;
}

static void put_note(char note[256], const bj_gallery_counts *c) {
    const double rate =
        c->scenes ? 100.0 * (double)c->passes[BJ_GALLERY_BRANCH] / (double)c->scenes : 0;
    char scenes[CLI_COUNT_SIZE], strict[CLI_COUNT_SIZE];
    snprintf(note, 256,
             "%s scenes screened without their futures: %.1f %% pass the map screen, %s pass the "
             "strict screen. All branches are shown unchanged.%s",
             cli_count(scenes, (size_t)c->scenes), rate, cli_count(strict, (size_t)c->strict),
             c->cases ? "" : " There is no case to show.");
}

void gallery_plan_sheets(gallery_plan *p, const gallery_manifest *m, const bj_gallery *gallery) {
    const bj_gallery_counts counts = bj_gallery_count(gallery);
    const bj_cache *cache = bj_gallery_cache(gallery);
    put_note(p->note, &counts);
    p->look = (gallery_look){.scenes = p->scenes,
                             .model = {m->model[0].caption, m->model[1].caption},
                             .K = {m->model[0].K, m->model[1].K},
                             .note = p->note};
    for (int i = 0; i < counts.cases; i++) {
        const bj_gallery_case *c = bj_gallery_at(gallery, i);
        p->scenes[i] = (gallery_scene){{.sizes = bj_cache_arch(cache),
                                        .info = bj_cache_info(cache, c->scene),
                                        .at = bj_cache_floats(cache, c->scene),
                                        .cache = cache},
                                       c};
    }
    list_sheets(p, counts.cases);
}

bj_status gallery_plan_image(gallery_image *image, const gallery_plan *p, int sheet,
                             bj_error *err) {
    const gallery_sheet *s = &p->sheets[sheet];
    snprintf(image->name, sizeof image->name, "%s", s->name);
    image->legend = gallery_legend_of(s);
    image->panels = calloc(2 * (size_t)s->count + 1, sizeof *image->panels);
    if (!image->panels) return cli_error(err, BJ_ENOMEM, "out of memory");
    image->panel_count = 2 * s->count;
    gallery_layout(image->panels, s, &p->look);
    return BJ_OK;
}
