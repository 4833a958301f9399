/* fresh.h - scenes of the simulated world for a training run, without a file in between.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/TRAINING.md, "Fresh
 * scenes", explains the rules. Scenes have the same bits as the records of a cache written by
 * bj_world_to_cache. Their true distribution is not available here.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_FRESH_H
#define BRANCHJEPA_FRESH_H

/* --------------------------------------------------------------------------------------- stream */

enum { BJ_FRESH_WINDOW_TOWNS = 64, BJ_FRESH_TOWN_SCENES = 32 };

typedef struct bj_world_stream_options {
    int version; /* of the world; 0: BJ_WORLD_VERSION */
    uint64_t seed;
    const char *split; /* NULL: "train" */
    int towns;         /* per window; 0: BJ_FRESH_WINDOW_TOWNS */
    int ordered;       /* 1: ascending scene numbers; 0: permuted within each window */
    int threads;       /* 0: one per available core */
} bj_world_stream_options;

/* Scenes of one split in a fixed order. Window w contains the scenes of towns w * towns to
 * (w + 1) * towns - 1, permuted by a generator that depends on seed, split and w alone. A stream
 * keeps at most two windows in memory and makes a window on all threads when a scene of it is
 * first read. */
typedef struct bj_world_stream bj_world_stream;

BJ_API BJ_CHECK bj_status bj_world_stream_create(bj_world_stream **out,
                                                 const bj_world_stream_options *options,
                                                 bj_error *err);
BJ_API void bj_world_stream_free(bj_world_stream *stream); /* accepts NULL */
/* Returns the scenes at positions first .. first + count - 1 and their numbers (count), both valid
 * until the next call. count is at most the size of a window. */
BJ_API BJ_CHECK bj_status bj_world_stream_read(const bj_scene **scenes, const int64_t **numbers,
                                               bj_world_stream *stream, int64_t first, int count,
                                               bj_error *err);
/* Writes the scenario id of a scene number; `stream` is a bj_world_stream. */
BJ_API void bj_world_stream_id(char id[64], void *stream, int64_t number);
BJ_API bj_arch bj_world_stream_arch(void); /* sizes of a scene; other fields are 0 */
/* Seconds spent making scenes so far. */
BJ_API double bj_world_stream_seconds(const bj_world_stream *stream);

/* ---------------------------------------------------------------------------------------- fresh */

/* Development scenes: scenes 0 .. BJ_FRESH_DEV_SCENES - 1 of this seed and split "dev". The seed is
 * reserved: a run cannot train on it. */
#define BJ_FRESH_DEV_SEED 900001u
enum { BJ_FRESH_DEV_SCENES = 1000 };

/* "world:SEED[:SCENES]", "world1:SEED[:SCENES]" or "world2:SEED[:SCENES]"; without a number the
 * version is BJ_WORLD_VERSION. */
typedef struct bj_fresh_spec {
    int version;
    uint64_t seed;
    int64_t scenes; /* that the run sees in all; 0: not given */
} bj_fresh_spec;

/* Returns 1 if the text has the form of a specification, and 0 if it is a file name. */
BJ_API int bj_fresh_is_spec(const char *text);
BJ_API BJ_CHECK bj_status bj_fresh_parse(bj_fresh_spec *out, const char *text, bj_error *err);
/* SHA-256 over everything that decides the scenes and their order. */
BJ_API BJ_CHECK bj_status bj_fresh_digest(char hex[65], const bj_fresh_spec *spec, bj_error *err);
/* Returns 1 if the scenario is a training or development scene of such a run. Without a number of
 * scenes, every scene of the training split counts. */
BJ_API int bj_fresh_has(const bj_fresh_spec *spec, const char *scenario_id);

/* The two sources of a run; see bj_run_options. */
typedef struct bj_fresh bj_fresh;

BJ_API BJ_CHECK bj_status bj_fresh_create(bj_fresh **out, const bj_fresh_spec *spec, int threads,
                                          bj_error *err);
BJ_API void bj_fresh_free(bj_fresh *fresh); /* accepts NULL */
BJ_API const bj_scene_source *bj_fresh_fit(const bj_fresh *fresh);
BJ_API const bj_scene_source *bj_fresh_dev(const bj_fresh *fresh);
BJ_API double bj_fresh_seconds(const bj_fresh *fresh); /* spent making training scenes */

#endif
