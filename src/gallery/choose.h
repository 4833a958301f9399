/* choose.h - the rule by which the cases of a gallery are chosen; used only in src/gallery. */
#ifndef BJ_GALLERY_CHOOSE_H
#define BJ_GALLERY_CHOOSE_H

#include "core/sha256.h"

/* Input of the rule. */
typedef struct bj_strict_case {
    int64_t scene, map;
    unsigned maneuvers;                   /* BJ_GALLERY_STOP, ... */
    unsigned char order[BJ_SHA256_BYTES]; /* bj_gallery_order */
    int taken;                            /* 1: chosen */
} bj_strict_case;

/* Computes the SHA-256 of "SEED:ID". */
void bj_gallery_order(unsigned char order[BJ_SHA256_BYTES], uint64_t seed, const char *scenario_id);
/* Sorts the cases by `order` and chooses at most `wanted` of them. Fills `chosen` with their
 * indices in the sorted list and returns their count. */
int bj_gallery_choose(int64_t *chosen, int wanted, bj_strict_case *cases, int64_t count);

#endif
