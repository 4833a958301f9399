/* gallery_plan.h - what a gallery contains, computed from models and scenes without any future.
 *
 * `gallery lock` writes it. `gallery draw` computes it again and compares it with the manifest.
 */
#ifndef BJEPA_GALLERY_PLAN_H
#define BJEPA_GALLERY_PLAN_H

#include "gallery_manifest.h"

/* Loads a model file and fills in the manifest's description of it, including its path. */
BJ_CHECK bj_status gallery_plan_model(bj_model **out, gallery_model *model, const char *checkpoint,
                                      int which, bj_error *err);

typedef struct gallery_plan {
    gallery_look look;
    gallery_scene scenes[BJ_GALLERY_CASES];
    gallery_sheet sheets[GALLERY_IMAGES];
    char names[GALLERY_IMAGES][GALLERY_NAME], titles[GALLERY_IMAGES][128], note[256];
    int count; /* of sheets */
} gallery_plan;

/* Lists the sheets. The plan points into the gallery and the manifest, which must outlive it. */
void gallery_plan_sheets(gallery_plan *plan, const gallery_manifest *m, const bj_gallery *gallery);
/* Fills in the manifest's description of a sheet except its digest. */
BJ_CHECK bj_status gallery_plan_image(gallery_image *image, const gallery_plan *plan, int sheet,
                                      bj_error *err);

#endif
