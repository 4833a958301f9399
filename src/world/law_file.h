/* law_file.h - stores the laws of many scenes in one safetensors file, written scene by scene.
 *
 * S scenes sorted by id, M modes in total, R factors:
 *
 *   scenario_id U8 [S,64]     mode_start I64 [S+1]      origin F64 [S,2]     heading F64 [S]
 *   weight F64 [M]            intent U8 [M]             mean F32 [M,60,2]    factor F32 [M,R,60,2]
 *   realized I32 [S]          sha256 U8 [S,32]
 *
 * Modes mode_start[i] .. mode_start[i+1] - 1 belong to scene i, most likely first. Positions are in
 * the scene frame. sha256 covers id, origin, heading, realized, weights, intents, means and factors
 * of the scene, in this order and as stored. Metadata: format "branchjepa-law", version (of the
 * format), world (version of the world, missing in version 1), seed, split, jitter (sigma in
 * meters), intents (a JSON list of names).
 *
 * During writing, every tensor is a separate unlinked file, so memory use does not grow and a crash
 * leaves no files behind. At the end the files are concatenated and published atomically.
 * Tests: tests/world/test_law_file.c
 */
#ifndef BJ_WORLD_LAW_FILE_H
#define BJ_WORLD_LAW_FILE_H

#include "world/scene.h"

/* The stored law of one scene. */
typedef struct bj_law_record {
    char id[BJ_SCENARIO_NAME];
    double origin[2], heading;
    int32_t realized;
    int count;
    double weight[BJ_LAW_MODES];
    uint8_t intent[BJ_LAW_MODES];
    float mean[BJ_LAW_MODES][BJ_LAW_STEPS][2];
    float factor[BJ_LAW_MODES][BJ_LAW_FACTORS][BJ_LAW_STEPS][2];
} bj_law_record;

void bj_law_record_fill(bj_law_record *record, const bj_world_scene *scene);

typedef struct bj_law_writer bj_law_writer;

BJ_CHECK bj_status bj_law_writer_open(bj_law_writer **out, const char *path, bj_error *err);
BJ_CHECK bj_status bj_law_writer_add(bj_law_writer *writer, const bj_law_record *record,
                                     bj_error *err);
/* Publishes the file and sets *bytes to its size. Always frees the writer. */
BJ_CHECK bj_status bj_law_writer_finish(bj_law_writer **writer, int version, uint64_t seed,
                                        const char *split, int64_t *bytes, bj_error *err);
void bj_law_writer_abort(bj_law_writer **writer); /* accepts NULL */

#endif
