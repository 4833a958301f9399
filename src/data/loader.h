/* loader.h - internal interface of the loader (bj_loader_* in the public header). */
#ifndef BJ_DATA_LOADER_H
#define BJ_DATA_LOADER_H

#include <branchjepa/branchjepa.h>

#include "core/threads.h"

/* Returns the cache indices of an epoch's scenes in the order of its batches, without reading the
 * scenes. There are bj_loader_scenes of them, valid until another epoch is requested. */
const int64_t *bj_loader_order(bj_loader *loader, int64_t epoch);
/* Lets the workers of a pool check the digests of a batch. The pool must be idle whenever a batch is
 * requested. */
void bj_loader_use_pool(bj_loader *loader, bj_pool *pool);

#endif
