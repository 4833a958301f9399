/* embedded.h - files of the source tree that are embedded in the program, so that it needs no data
 * folder: the contents of cli/assets, and the paper's numbers (the CSV files of data/paper).
 *
 * cmake/Embed.cmake generates the table. A file is found by its name without a folder.
 */
#ifndef BJEPA_EMBEDDED_H
#define BJEPA_EMBEDDED_H

#include <stddef.h>

typedef struct cli_embedded {
    const char *name;
    const char *bytes; /* bytes of the file, followed by a zero that `size` does not count */
    size_t size;
} cli_embedded;

extern const cli_embedded cli_embedded_files[]; /* up to a name of NULL */

/* NULL when there is none of that name. */
const cli_embedded *cli_embedded_find(const char *name);

#endif
