/* walk.h - finds the scenarios below a list of folders.
 *
 * A scenario is a pair of files scenario_ID.parquet and log_map_archive_ID.json in one folder,
 * which is usually named ID. The rules below cover all of these layouts:
 *
 *   ROOT/{train,val,test}/ID/   ROOT/ID/   ROOT/{train,val,test}/raw/ID/   ROOT = the folder ID
 *   ROOT/.../anything/scenario_ID.parquet
 *
 *   1. A folder whose name is a UUID is a scenario with this id. The folder is not opened, which
 *      keeps the walk fast. A missing file is reported when the scenario is read.
 *   2. In any other folder each scenario_ID.parquet is a scenario, and subfolders are entered.
 *      Names that start with a dot are skipped.
 *   3. Links to folders are followed if they are at most BJ_WALK_LINKS levels below a root and do
 *      not lead to an ancestor. Folders more than BJ_WALK_DEPTH levels below a root are not
 *      entered.
 *   4. If a split is given, the last of the names train, val and test on the path to a scenario
 *      must be that split. The path includes the root's own absolute path.
 *   5. Scenarios are sorted bytewise by id. Scenarios with the same id are in the order of the
 *      roots and, below one root, in the order of their paths.
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

/* Finds all scenarios. Fails if a root is not a readable folder or if a folder below it cannot be
 * listed, so that no scenes are lost silently. `split` may be NULL. */
BJ_CHECK bj_status bj_walk_create(bj_walk **out, const char *const *roots, int count,
                                  const char *split, bj_error *err);
void bj_walk_free(bj_walk *walk); /* accepts NULL */
int64_t bj_walk_count(const bj_walk *walk);
const char *bj_walk_id(const bj_walk *walk, int64_t index);
/* Returns the path of a scenario's folder. May be called from any thread. */
BJ_CHECK bj_status bj_walk_folder(char path[BJ_WALK_PATH], const bj_walk *walk, int64_t index,
                                  bj_error *err);

#endif
