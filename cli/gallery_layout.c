/* gallery_layout.c - places the panels on a sheet, and draws the line with the true future.
 *
 * A window is chosen only from the forecasts and the end of the past. It does not depend on the
 * true future, which may leave the window.
 */
#include "gallery_svg.h"

#include <math.h>
#include <string.h>

#include "gallery_page.h"

/* -------------------------------------------------------------------------------------- windows */

static svg_window window_of(const gallery_scene *scene, const gallery_look *look, int width,
                            int height) {
    const double behind = 10, margin = 6, smallest = 44; /* m */
    const int F = scene->ground.sizes.fut;
    svg_bounds b = {-behind, behind, -behind / 2, behind / 2};
    for (int m = 0; m < GALLERY_MODELS; m++)
        for (int i = 0; i < look->K[m] * F; i++)
            svg_include(&b, scene->chosen->trajectories[m][2 * i],
                        scene->chosen->trajectories[m][2 * i + 1]);
    return svg_fit(b, margin, smallest, height, width);
}

/* --------------------------------------------------------------------------------------- layout */

gallery_page gallery_page_of(const gallery_sheet *s) {
    const double u = s->unit;
    gallery_page p = {.margin = 16, .gap = 5, .between = 24};
    const int columns = s->count < s->columns ? (s->count > 0 ? s->count : 1) : s->columns;
    const int rows = s->count > 0 ? (s->count + s->columns - 1) / s->columns : 0;
    p.head = 56;
    p.caption = 32 * u;
    p.strip = 22 * u;
    p.row = p.caption + s->height + p.strip + 10;
    p.pair = 2 * s->width + p.gap;
    p.width = 2 * p.margin + columns * p.pair + (columns - 1) * p.between;
    if (p.width < 880) p.width = 880;
    p.legend = p.head + rows * p.row + 12;
    p.unit = fmin(fmin(u, 1.1), (p.width - 2 * p.margin) / 890);
    p.height = p.legend + 46 * p.unit;
    return p;
}

void gallery_layout(gallery_panel *panels, const gallery_sheet *s, const gallery_look *look) {
    const gallery_page page = gallery_page_of(s);
    for (int i = 0; i < s->count; i++) {
        const gallery_scene *scene = &look->scenes[s->first + i];
        const svg_window window = window_of(scene, look, s->width, s->height);
        const double x = page.margin + (i % s->columns) * (page.pair + page.between);
        const double y = page.head + (int)(i / s->columns) * page.row + page.caption;
        for (int half = 0; half < 2; half++)
            panels[2 * i + half] = (gallery_panel){
                .place = s->first + i,
                .model = half ? BJ_GALLERY_BRANCH : BJ_GALLERY_POINT,
                .x = x + half * (s->width + page.gap),
                .y = y,
                .width = s->width,
                .height = s->height,
                .window = window,
            };
    }
}

gallery_legend gallery_legend_of(const gallery_sheet *s) {
    const gallery_page page = gallery_page_of(s);
    return (gallery_legend){page.margin, page.legend + 30 * page.unit, page.unit};
}

/* ------------------------------------------------------------------------------------ hindsight */

/* From the focal road user to the end. */
static void put_future(FILE *to, const gallery_panel *p, const float *future, int F,
                       const char *attributes) {
    fprintf(to, "<path %sd=\"M%.1f %.1f", attributes, svg_y(&p->window, 0),
            p->height - svg_x(&p->window, 0));
    for (int t = 0; t < F; t++)
        fprintf(to, "L%.1f %.1f", svg_y(&p->window, (double)future[2 * t + 1]),
                p->height - svg_x(&p->window, (double)future[2 * t]));
    fputs("\"/>", to);
}

/* Writes the true future as one line of text, so that removing this line restores the locked
 * picture. A pale line below the dashes separates them from the branches. */
void gallery_svg_hindsight(FILE *to, const gallery_panel *panels, int count,
                           const gallery_legend *legend, const float *const *futures, int F) {
    const double u = legend->unit;
    char pale[96];
    snprintf(pale, sizeof pale,
             "stroke=\"#fff\" stroke-width=\"%.1f\" stroke-dasharray=\"none\" opacity=\".75\" ",
             3.6 * u);
    fprintf(to,
            "<g id=\"hindsight\" fill=\"none\" stroke=\"#000\" stroke-width=\"%.1f\" "
            "stroke-linejoin=\"round\" stroke-dasharray=\"%.1f %.1f\">",
            1.8 * u, 4.5 * u, 2.5 * u);
    for (int i = 0; i < count; i++) {
        const gallery_panel *p = &panels[i];
        if (!futures[p->place]) continue;
        fprintf(to, "<g transform=\"translate(%.1f %.1f)\" clip-path=\"url(#panel)\">", p->x, p->y);
        put_future(to, p, futures[p->place], F, pale);
        put_future(to, p, futures[p->place], F, "");
        fputs("</g>", to);
    }
    fprintf(to,
            "<path d=\"M%.1f %.1fh%.1f\"/><text class=\"key\" stroke=\"none\" x=\"%.1f\" "
            "y=\"%.1f\">"
            "true future (hindsight), added after the cases and pictures were locked</text></g>\n",
            legend->x, legend->y, 28 * u, legend->x + 35 * u, legend->y + 3.6 * u);
}

/* ---------------------------------------------------------------------------------------- words */

const char *gallery_letter(char text[8], int place) {
    if (place < 26) snprintf(text, 8, "%c", 'A' + place);
    else snprintf(text, 8, "%d", (place + 1) % 1000);
    return text;
}

const char *gallery_maneuvers(char text[48], unsigned maneuvers) {
    static const char *const names[] = {"stop", "straight", "left", "right"};
    *text = '\0';
    for (int i = 0; i < 4; i++)
        if (maneuvers >> i & 1) {
            if (*text) strcat(text, ", ");
            strcat(text, names[i]);
        }
    return text;
}
