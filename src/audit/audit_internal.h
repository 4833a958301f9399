/* audit_internal.h - the state of an audit, used only by audit.c and audit_arms.c. */
#ifndef BJ_AUDIT_INTERNAL_H
#define BJ_AUDIT_INTERNAL_H

#include "core/sha256.h"
#include "core/threads.h"

enum { BJ_AUDIT_BATCH = 64 };

typedef struct bj_audit_arm_data {
    char *name;
    bj_audit_report *reports; /* (count) */
    int count, room;
    double *sums; /* (BJ_AUDIT_METRICS,scenes) sums over seeds */
} bj_audit_arm_data;

struct bj_audit {
    bj_cache *cache; /* opened blind */
    bj_audit_options options;
    bj_arch arch;
    bj_audit_counts counts;
    int64_t *numbers; /* (scenes) indices in the cache */
    char digest[BJ_SHA256_HEX];
    bj_pool *pool;
    bj_drivable **areas; /* (workers) */
    int64_t *maps;       /* (workers) the map that is loaded, or -1 */
    bj_scene scenes[BJ_AUDIT_BATCH];
    bj_real *room; /* double builds: (BJ_AUDIT_BATCH,bj_scene_room) */
    bj_audit_arm_data *arms;
    int arm_count, arm_room;
};

/* Finds or creates the arm and reserves space for a report with `seed`, which the arm must not have
 * yet. A new arm is not counted until bj_audit_keep is called. */
BJ_CHECK bj_status bj_audit_place(bj_audit_arm_data **out, bj_audit *audit, const char *name,
                                  int64_t seed, bj_error *err);
/* Adds a report and its values (BJ_AUDIT_METRICS,scenes) to the arm.
   bj_audit_give_back frees a new arm if the audit failed. */
void bj_audit_keep(bj_audit *audit, bj_audit_arm_data *arm, const bj_audit_report *report,
                   const double *values);
void bj_audit_give_back(bj_audit *audit, bj_audit_arm_data *arm);
void bj_audit_arm_free(bj_audit_arm_data *arm);

#endif
