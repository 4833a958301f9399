/* gallery_page.h - dimensions of a sheet in pixels, used only by gallery_layout.c and
 * gallery_svg.c. */
#ifndef BJEPA_GALLERY_PAGE_H
#define BJEPA_GALLERY_PAGE_H

#include "gallery_svg.h"

typedef struct gallery_page {
    double width, height, margin;
    double head;         /* above the first row */
    double gap, between; /* of the panels of a pair, of pairs */
    double caption, strip, row, pair;
    double legend, unit; /* where it starts, and the size of its letters */
} gallery_page;

gallery_page gallery_page_of(const gallery_sheet *sheet);

#endif
