/* archive.h - declarations shared by archive.c and archive_emit.c. */
#ifndef BJ_MAZE_ARCHIVE_H
#define BJ_MAZE_ARCHIVE_H

#include "maze/drive.h"

#define BJ_ARCHIVE_FORMAT "branchjepa-emissions"
enum { BJ_ARCHIVE_MAX_CONTEXTS = 4096, BJ_ARCHIVE_MAX_K = 4096, BJ_ARCHIVE_MAX_D = 1 << 16 };

#endif
