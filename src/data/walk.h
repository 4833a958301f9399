/* walk.h - finding the scenarios below some folders.
 *
 * A scenario is a pair of files scenario_ID.parquet and log_map_archive_ID.json in one folder,
 * which is usually called ID. Known layouts, all found in the same way:
 *
 *   ROOT/{train,val,test}/ID/   ROOT/ID/   ROOT/{train,val,test}/raw/ID/   ROOT = the folder ID
 *   ROOT/.../anything/scenario_ID.parquet
 *
 *   1. A folder whose name is a UUID is a scenario, whatever it holds: missing files are met when
 * it is read, and reported. Its id is the name; it is not opened here, which keeps the walk fast.
 *   2. In any other folder each scenario_ID.parquet is a scenario, and folders below are entered.
 *      Names that start with a dot are passed over.
 *   3. Links to folders are followed down to BJ_WALK_LINKS levels below a root, never to a folder
 *      that lies above; nothing is entered below BJ_WALK_DEPTH levels.
 *   4. With a split, the last of the names train, val and test on the way to a scenario (the root's
 *      own absolute path included) must be that one.
 *   5. Scenarios are sorted by id as bytes; those with the same id keep the order of the roots and,
 *      below one root, of their paths.
 *
 * Test: tests/data/test_walk.c
 */
#ifndef BJ_DATA_WALK_H
#define BJ_DATA_WALK_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { BJ_WALK_LINKS = 4, BJ_WALK_DEPTH = 16, BJ_WALK_PATH = 4096 };

typedef struct bj_walk bj_walk;

/* A root that is not a readable folder is an error, and so is a folder below that cannot be listed:
 * scenes must not go missing in silence. split may be NULL. */
BJ_CHECK bj_status bj_walk_create(bj_walk **out, const char *const *roots, int count,
                                  const char *split, bj_error *err);
void bj_walk_free(bj_walk *walk); /* accepts NULL */
int64_t bj_walk_count(const bj_walk *walk);
const char *bj_walk_id(const bj_walk *walk, int64_t index);
/* Path of a scenario's folder. May be called from any thread. */
BJ_CHECK bj_status bj_walk_folder(char path[BJ_WALK_PATH], const bj_walk *walk, int64_t index,
                                  bj_error *err);

#endif
