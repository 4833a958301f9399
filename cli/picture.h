/* picture.h - pictures as files: SVG as it is drawn, PNG and PDF through librsvg.
 *
 * Commands draw SVG into a cli_file and publish it here; the name decides the format. librsvg is
 * looked for at run time (Debian: librsvg2-2), so that nobody needs it to build bjepa or to draw SVG.
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
