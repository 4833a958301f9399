/* scene_svg.h - draws a scene: the map, road users, the past, the future and predicted futures.
 *
 * One self-contained SVG file with a light background, a legend and a scale bar. The focal road
 * user is at the origin of the scene's frame and heads to the right.
 */
#ifndef BJEPA_SCENE_SVG_H
#define BJEPA_SCENE_SVG_H

#include "cli.h"
#include "svg.h"

#include <stdio.h>

typedef struct scene_picture {
    bj_arch sizes; /* obs, fut, points */
    bj_scene_info info;
    bj_scene_floats at;
    const bj_cache *cache; /* cache that contains the drivable areas of info.map; NULL: they are not
                              drawn */
    /* Futures with weights, predicted or from a law. modes is 0 if there are none. At most
     * BJ_MAX_ATOMS of them are labeled. */
    int modes;
    const double *weights;   /* (modes) */
    const double *paths;     /* (modes,F,2) in the frame of the scene */
    const char *modes_title; /* in the legend */
} scene_picture;

/* Fails only without memory. */
BJ_CHECK bj_status scene_svg_write(FILE *to, const scene_picture *picture, bj_error *err);

/* Draw layers for other pictures. Their appearance is determined by the classes edge, area, lane,
 * inner, arrow, crosswalk, track, small-track, vehicle, other; past; focal. The ground layer is the
 * map with the neighbors. */
BJ_CHECK bj_status scene_svg_ground(FILE *to, const svg_window *w, const scene_picture *picture,
                                    bj_error *err);
void scene_svg_past(FILE *to, const svg_window *w, const scene_picture *picture);
void scene_svg_focal(FILE *to, const svg_window *w, const scene_picture *picture);

#endif
