/* registry.h - tables in SQLite, for registry.c and campaign_status.c.
 *
 * SQLite's memory comes from its own allocator, an exception to core/alloc.h like libyaml's.
 */
#ifndef BJ_CAMPAIGN_REGISTRY_H
#define BJ_CAMPAIGN_REGISTRY_H

#include <sqlite3.h>

#include "campaign/campaign_internal.h"

enum { BJ_REGISTRY_NAME = 64, BJ_REGISTRY_VERSION = 1 };

/* "registry.sqlite", or "registry-I-of-N.sqlite". */
void bj_registry_name(char name[BJ_REGISTRY_NAME], int shard, int shards);
/* 1 when a file of that name is a registry. */
int bj_registry_named(int *shard, int *shards, const char *name);

/* The status of a result of SQLite, with its message. */
bj_status bj_registry_fail(sqlite3 *db, const char *path, const char *what, bj_error *err);
/* Opens a file; *version is 0 for one without tables. */
BJ_CHECK bj_status bj_registry_connect(sqlite3 **out, int *version, const char *path, int create,
                                       bj_error *err);
/* Calls take(context, run, record) for each row; with run >= 0 only for that one. */
typedef void (*bj_registry_take)(void *context, int run, const bj_run_record *record);
BJ_CHECK bj_status bj_registry_rows(sqlite3 *db, const char *path, int run, bj_registry_take take,
                                    void *context, bj_error *err);

#endif
