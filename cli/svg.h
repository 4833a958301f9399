/* svg.h - draws a part of a road as SVG: conversion of meters to pixels, lines, road users, scale
 * bars.
 *
 * Both axes have the same scale, with x to the right and y up. The caller passes the attributes of
 * shapes, which are a class or colors.
 */
#ifndef BJEPA_SVG_H
#define BJEPA_SVG_H

#include <stdio.h>

/* m */
typedef struct svg_bounds {
    double x0, x1, y0, y1;
} svg_bounds;

typedef struct svg_window {
    svg_bounds b;
    double scale; /* pixels per meter */
} svg_window;

static inline double svg_x(const svg_window *w, double x) { return (x - w->b.x0) * w->scale; }
static inline double svg_y(const svg_window *w, double y) { return (w->b.y1 - y) * w->scale; }

void svg_include(svg_bounds *b, double x, double y);
/* Adds `margin` meters around the bounds and extends them to the proportions of the picture, with a
 * width of at least `smallest` meters. */
svg_window svg_fit(svg_bounds b, double margin, double smallest, int width, int height);
/* Returns 1 if one of the points may be visible. Points are `stride` numbers apart. */
int svg_sees(const svg_window *w, const double *points, int count, int stride);

/* Draws a line through the points. If `closed` is set, the line is a ring. */
void svg_path(FILE *to, const svg_window *w, const double *points, int count, int stride,
              int closed, const char *attributes);
/* Draws a car in its true size with a mark at the front, or a drop that points ahead for smaller
 * road users. */
void svg_user(FILE *to, const svg_window *w, double x, double y, double heading, int is_small,
              const char *attributes);
/* Returns 1, 2 or 5 times a power of ten, at most `most`. */
double svg_round_length(double most);
/* Draws a scale bar of round length, with its left end at pixels (x, y). */
void svg_scale_bar(FILE *to, const svg_window *w, int x, int y, int most, const char *attributes,
                   const char *text_attributes);
/* Writes text in which the special characters of XML are escaped. */
void svg_text(FILE *to, const char *text);

#endif
