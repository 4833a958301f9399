/* gallery_manifest.h - GALLERY/manifest.json, which records what was chosen and drawn before any
 * future was read.
 *
 * Written last into a folder that appears as a whole. `bjepa gallery draw` computes the manifest
 * again and compares it with the file. docs/GALLERY.md lists the fields.
 */
#ifndef BJEPA_GALLERY_MANIFEST_H
#define BJEPA_GALLERY_MANIFEST_H

#include "gallery_svg.h"
#include "output.h"

#define GALLERY_MANIFEST "manifest.json"
#define GALLERY_SCHEMA "branchjepa-gallery-1"

enum { GALLERY_DIGEST = 65, GALLERY_NAME = 32, GALLERY_IMAGES = BJ_GALLERY_CASES + 2 };

typedef struct gallery_model {
    char path[CLI_PATH_SIZE]; /* of the model file, as it was found */
    char sha256[GALLERY_DIGEST];
    char arm[BJ_NAME_SIZE]; /* empty: the file does not say */
    char seed[24];
    char caption[80];
    int K;
} gallery_model;

typedef struct gallery_case {
    char scenario_id[80];
    char map_sha256[GALLERY_DIGEST]; /* of the raw map file */
    char areas_sha256[GALLERY_DIGEST], observed_sha256[GALLERY_DIGEST];
} gallery_case;

typedef struct gallery_image {
    char name[GALLERY_NAME]; /* of the file, without ".svg" */
    char sha256[GALLERY_DIGEST];
    gallery_legend legend;
    int panel_count;
    gallery_panel *panels;
} gallery_image;

typedef struct gallery_manifest {
    gallery_model model[GALLERY_MODELS];
    char version[32], isa[32]; /* of the program and the processor that locked the gallery */
    uint64_t seed;
    int wanted;     /* max number of cases */
    int64_t scenes; /* number of screened scenes */
    char data_sha256[GALLERY_DIGEST];
    int case_count, image_count;
    gallery_case cases[BJ_GALLERY_CASES];
    gallery_image images[GALLERY_IMAGES];
    char sha256[GALLERY_DIGEST]; /* of the file itself */
} gallery_manifest;

/* "branch", "point" */
const char *gallery_model_name(int model);

/* Writes the manifest. `manifest` has the version, models and images, `gallery` everything else. */
void gallery_manifest_put(FILE *to, const gallery_manifest *manifest, const bj_gallery *gallery,
                          const bj_gallery_options *options);
/* Writes FOLDER/manifest.json. */
BJ_CHECK bj_status gallery_manifest_write(const char *folder, gallery_manifest *manifest,
                                          const bj_gallery *gallery,
                                          const bj_gallery_options *options, bj_error *err);
BJ_CHECK bj_status gallery_manifest_read(gallery_manifest *manifest, const char *folder,
                                         bj_error *err);
void gallery_manifest_free(gallery_manifest *manifest);

/* Reads a file of at most 64 MiB. The caller frees the bytes. */
BJ_CHECK bj_status gallery_read_file(char **bytes, size_t *size, const char *path, bj_error *err);

#endif
