/* gallery_svg.h - sheets of cases: the point model and all branches side by side on the same map.
 *
 * Panels are turned so that the focal road user heads up. A sheet is drawn before any future is
 * known; hindsight is one more line of SVG, put in front of the labels, and nothing else changes:
 *
 *   ... map, forecasts, observed past of every panel
 *   <g id="hindsight">...</g>      only afterwards
 *   <g id="labels">                numbers, captions, legend
 */
#ifndef BJEPA_GALLERY_SVG_H
#define BJEPA_GALLERY_SVG_H

#include "scene_svg.h"

#define GALLERY_LABELS "<g id=\"labels\">\n"

enum { GALLERY_MODELS = BJ_GALLERY_MODELS };

/* A case with everything that can be drawn before its future is known. */
typedef struct gallery_scene {
    scene_picture ground; /* no modes, no future */
    const bj_gallery_case *chosen;
} gallery_scene;

/* One panel: its position on the sheet in pixels, and what it shows. The window is in the frame of
 * the scene, so the width of the window is the height of the panel. */
typedef struct gallery_panel {
    int place, model;
    double x, y;
    int width, height;
    svg_window window;
} gallery_panel;

typedef struct gallery_sheet {
    const char *name; /* of its file, without ending */
    const char *title;
    int columns;       /* pairs of panels in a row */
    int width, height; /* of a panel */
    double unit;       /* size of letters, 1: small */
    int first, count;  /* places shown */
} gallery_sheet;

typedef struct gallery_look {
    const gallery_scene *scenes;       /* (all places) */
    const char *model[GALLERY_MODELS]; /* captions */
    int K[GALLERY_MODELS];
    const char *note; /* a line below the title */
} gallery_look;

/* Fills the panels of a sheet, two for each place: (2 * sheet->count). */
void gallery_layout(gallery_panel *panels, const gallery_sheet *sheet, const gallery_look *look);
BJ_CHECK bj_status gallery_svg_write(FILE *to, const gallery_sheet *sheet, const gallery_look *look,
                                     bj_error *err);
/* Space in the legend for the line below. It is at the same position in every picture. */
typedef struct gallery_legend {
    double x, y, unit;
} gallery_legend;
gallery_legend gallery_legend_of(const gallery_sheet *sheet);

/* Writes the line with the true futures, future (F,2) for each place. */
void gallery_svg_hindsight(FILE *to, const gallery_panel *panels, int count,
                           const gallery_legend *legend, const float *const *futures, int F);

/* "A" to "Z", then numbers. */
const char *gallery_letter(char text[8], int place);
/* "straight, left" */
const char *gallery_maneuvers(char text[48], unsigned maneuvers);

#endif
