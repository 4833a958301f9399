/* picture.h - writes pictures: SVG directly, PNG and PDF with librsvg.
 *
 * Commands draw SVG into a cli_file and publish it here. The file name determines the format.
 * librsvg is loaded at run time (Debian: librsvg2-2), so it is not needed to build bjepa or to draw
 * SVG.
 */
#ifndef BJEPA_PICTURE_H
#define BJEPA_PICTURE_H

#include "output.h"

#define CLI_PICTURE_NAMES ".svg, .png or .pdf"

/* Returns 1 if the name ends with one of the picture formats. */
int cli_picture_name(const char *path);

/* Publishes the SVG written to the stream in the format given by the file name, or removes the file
 * and reports the reason. */
BJ_CHECK bj_status cli_picture_commit(cli_file *file, bj_error *err);

#endif
