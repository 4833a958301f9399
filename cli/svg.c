/* svg.c - see svg.h. */
#include "svg.h"

#include <math.h>

void svg_include(svg_bounds *b, double x, double y) {
    b->x0 = fmin(b->x0, x);
    b->x1 = fmax(b->x1, x);
    b->y0 = fmin(b->y0, y);
    b->y1 = fmax(b->y1, y);
}

svg_window svg_fit(svg_bounds b, double margin, double smallest, int width, int height) {
    double scale = fmin(width / (b.x1 - b.x0 + 2 * margin), height / (b.y1 - b.y0 + 2 * margin));
    scale = fmin(scale, width / smallest);
    const double x = (b.x0 + b.x1) / 2, y = (b.y0 + b.y1) / 2;
    const double half_x = width / scale / 2, half_y = height / scale / 2;
    return (svg_window){{x - half_x, x + half_x, y - half_y, y + half_y}, scale};
}

int svg_sees(const svg_window *w, const double *points, int count, int stride) {
    for (int i = 0; i < count; i++) {
        const double x = points[i * stride], y = points[i * stride + 1];
        if (x > w->b.x0 && x < w->b.x1 && y > w->b.y0 && y < w->b.y1) return 1;
    }
    return 0;
}

void svg_path(FILE *to, const svg_window *w, const double *points, int count, int stride,
              int closed, const char *attributes) {
    fprintf(to, "<path %s d=\"", attributes);
    for (int i = 0; i < count; i++)
        fprintf(to, "%c%.1f %.1f", i ? 'L' : 'M', svg_x(w, points[i * stride]),
                svg_y(w, points[i * stride + 1]));
    fputs(closed ? "Z\"/>\n" : "\"/>\n", to);
}

void svg_user(FILE *to, const svg_window *w, double x, double y, double heading, int is_small,
              const char *attributes) {
    const double degrees = -heading * 57.29577951308232;
    fprintf(to, "<g %s transform=\"translate(%.1f %.1f) rotate(%.1f)\">", attributes, svg_x(w, x),
            svg_y(w, y), degrees);
    if (is_small) {
        const double r = fmax(0.6 * w->scale, 3.5);
        fprintf(to, "<path d=\"M%.1f %.1fA%.1f %.1f 0 1 0 %.1f %.1fL%.1f 0Z\"/>", r / 2, -0.866 * r,
                r, r, r / 2, 0.866 * r, 1.9 * r);
    } else {
        const double length = fmax(4.6 * w->scale, 10), width = fmax(1.9 * w->scale, 4.5);
        fprintf(to,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%.1f\"/>"
                "<path fill=\"#fff\" stroke=\"none\" d=\"M%.1f %.1fL%.1f 0L%.1f %.1fZ\"/>",
                -length / 2, -width / 2, length, width, width / 4, length * 0.08, -width * 0.32,
                length * 0.42, length * 0.08, width * 0.32);
    }
    fputs("</g>\n", to);
}

double svg_round_length(double most) {
    const double power = pow(10, floor(log10(most)));
    const double digit = most / power;
    return power * (digit >= 5 ? 5 : digit >= 2 ? 2 : 1);
}

void svg_scale_bar(FILE *to, const svg_window *w, int x, int y, int most, const char *attributes,
                   const char *text_attributes) {
    const double meters = svg_round_length(most / w->scale), length = meters * w->scale;
    fprintf(to,
            "<path %s d=\"M%d %dv-5m0 5h%.1fm0 0v-5\"/>\n"
            "<text %s x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g m</text>\n",
            attributes, x, y, length, text_attributes, x + length / 2, y - 8, meters);
}

void svg_text(FILE *to, const char *text) {
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '&') fputs("&amp;", to);
        else if (c == '<') fputs("&lt;", to);
        else if (c == '>') fputs("&gt;", to);
        else if (c == '"') fputs("&quot;", to);
        else if (c < 0x20) fputc('?', to); /* not allowed in XML at all */
        else fputc(c, to);
    }
}
