/* registry.h - SQLite tables shared by registry.c and campaign_status.c.
 *
 * SQLite uses its own allocator. Like libyaml, it is an exception to core/alloc.h.
 */
#ifndef BJ_CAMPAIGN_REGISTRY_H
#define BJ_CAMPAIGN_REGISTRY_H

#include <sqlite3.h>

#include "campaign/campaign_internal.h"

enum { BJ_REGISTRY_NAME = 64, BJ_REGISTRY_VERSION = 1 };

/* Writes the file name "registry.sqlite" or "registry-I-of-N.sqlite". */
void bj_registry_name(char name[BJ_REGISTRY_NAME], int shard, int shards);
/* Returns 1 if `name` is the name of a registry file. */
int bj_registry_named(int *shard, int *shards, const char *name);

/* Converts an SQLite error to a status with SQLite's message. */
bj_status bj_registry_fail(sqlite3 *db, const char *path, const char *what, bj_error *err);
/* Opens a registry file. Sets *version to 0 if the file has no tables. */
BJ_CHECK bj_status bj_registry_connect(sqlite3 **out, int *version, const char *path, int create,
                                       bj_error *err);
/* Calls take(context, run, record) for each row, or only for `run` if run >= 0. */
typedef void (*bj_registry_take)(void *context, int run, const bj_run_record *record);
BJ_CHECK bj_status bj_registry_rows(sqlite3 *db, const char *path, int run, bj_registry_take take,
                                    void *context, bj_error *err);

#endif
