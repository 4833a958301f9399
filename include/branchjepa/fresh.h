/* fresh.h - simulated scenes for a training run, generated on the fly.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/TRAINING.md, "Fresh scenes",
 * explains the rules. A scene is bit-identical to its record in a cache written by
 * bj_world_to_cache. The laws of the scenes are not available here.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_FRESH_H
#define BRANCHJEPA_FRESH_H

/* --------------------------------------------------------------------------------------- stream */

enum { BJ_FRESH_WINDOW_TOWNS = 64, BJ_FRESH_TOWN_SCENES = 32 };

typedef struct bj_world_stream_options {
    int version; /* world version; 0: BJ_WORLD_VERSION */
    uint64_t seed;
    const char *split; /* NULL: "train" */
    int towns;         /* towns per window; 0: BJ_FRESH_WINDOW_TOWNS */
    int ordered;       /* 1: ascending scene numbers; 0: permuted within each window */
    int threads;       /* 0: one per available core */
} bj_world_stream_options;

/* The scenes of one split in a fixed order. Window w contains the scenes of towns w * towns to (w +
 * 1) * towns - 1, permuted by a generator that depends only on seed, split and w. A stream keeps at
 * most two windows in memory. A window is generated, using all threads, when one of its scenes is
 * read for the first time. */
typedef struct bj_world_stream bj_world_stream;

BJ_API BJ_CHECK bj_status bj_world_stream_create(bj_world_stream **out,
                                                 const bj_world_stream_options *options,
                                                 bj_error *err);
BJ_API void bj_world_stream_free(bj_world_stream *stream); /* accepts NULL */
/* Returns the scenes at positions first .. first + count - 1 and their numbers (count). The arrays
 * are valid until the next call. count is at most the size of a window. */
BJ_API BJ_CHECK bj_status bj_world_stream_read(const bj_scene **scenes, const int64_t **numbers,
                                               bj_world_stream *stream, int64_t first, int count,
                                               bj_error *err);
/* Writes the scenario id of a scene number. `stream` is a bj_world_stream. */
BJ_API void bj_world_stream_id(char id[64], void *stream, int64_t number);
BJ_API bj_arch bj_world_stream_arch(void); /* scene sizes; other fields are 0 */
/* Returns the seconds spent generating scenes so far. */
BJ_API double bj_world_stream_seconds(const bj_world_stream *stream);

/* ---------------------------------------------------------------------------------------- fresh */

/* The development scenes are scenes 0 .. BJ_FRESH_DEV_SCENES - 1 of this seed in split "dev". The
 * seed is reserved, so a run cannot train on it. */
#define BJ_FRESH_DEV_SEED 900001u
enum { BJ_FRESH_DEV_SCENES = 1000 };

/* Parsed form of "world:SEED[:SCENES]", "world1:SEED[:SCENES]" or "world2:SEED[:SCENES]". "world"
 * without a version number means BJ_WORLD_VERSION. */
typedef struct bj_fresh_spec {
    int version;
    uint64_t seed;
    int64_t scenes; /* total number of scenes that the run is trained on; 0: not given */
} bj_fresh_spec;

/* Returns 1 if the text starts like a specification, and 0 if it must be a file name. */
BJ_API int bj_fresh_is_spec(const char *text);
BJ_API BJ_CHECK bj_status bj_fresh_parse(bj_fresh_spec *out, const char *text, bj_error *err);
/* Computes the SHA-256 over everything that determines the scenes and their order. */
BJ_API BJ_CHECK bj_status bj_fresh_digest(char hex[65], const bj_fresh_spec *spec, bj_error *err);
/* Returns 1 if the scenario is a training or development scene of a run with this specification. If
 * `scenes` is 0, every scene of the training split counts. */
BJ_API int bj_fresh_has(const bj_fresh_spec *spec, const char *scenario_id);

/* Sources of the training and development scenes of a run; see bj_run_options. */
typedef struct bj_fresh bj_fresh;

BJ_API BJ_CHECK bj_status bj_fresh_create(bj_fresh **out, const bj_fresh_spec *spec, int threads,
                                          bj_error *err);
BJ_API void bj_fresh_free(bj_fresh *fresh); /* accepts NULL */
BJ_API const bj_scene_source *bj_fresh_fit(const bj_fresh *fresh);
BJ_API const bj_scene_source *bj_fresh_dev(const bj_fresh *fresh);
BJ_API double bj_fresh_seconds(const bj_fresh *fresh); /* spent generating training scenes */

#endif
