/* figures_gallery.h - finds the pictures of a gallery, which are also written as figures for a
 * paper. */
#ifndef BJEPA_FIGURES_GALLERY_H
#define BJEPA_FIGURES_GALLERY_H

#include "output.h"

typedef struct gallery_pictures {
    char (*path)[CLI_PATH_SIZE]; /* (count) SVG files, sorted */
    char (*name)[256];           /* (count) "gallery-..." without a suffix */
    int count;
} gallery_pictures;

/* Finds the SVG files in the folder and in its subfolders, except hidden ones. A folder that does
 * not exist contains none. */
BJ_CHECK bj_status gallery_pictures_find(gallery_pictures *out, const char *folder, bj_error *err);
void gallery_pictures_free(gallery_pictures *pictures);
/* Copies an SVG file to a stream. */
BJ_CHECK bj_status gallery_picture_copy(FILE *to, const char *path, bj_error *err);

#endif
