/* branchjepa.h - public API of libbranchjepa.
 *
 * Branch-JEPA predicts K weighted latent futures of a scene and decodes each of them without
 * averaging. This header covers the network, training, prediction, metrics and file formats.
 *
 * Conventions
 *   - Functions that can fail return bj_status and take a nullable bj_error as the last argument.
 *   - _create and _free functions create and release opaque handles. _free accepts NULL.
 *   - Arrays are row-major with the last index contiguous. Comments give the shape of every array:
 *     B scenes, T observed steps, N neighbors, P polylines, Q points per polyline, E embedding,
 *     D latent width, K branches, F future steps.
 *   - A handle must not be used by two threads at the same time unless its comment allows it. Each
 *     handle owns its worker threads.
 */
#ifndef BRANCHJEPA_H
#define BRANCHJEPA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BJ_VERSION "0.1.0"

#if defined(__GNUC__)
#define BJ_API __attribute__((visibility("default")))
#define BJ_CHECK __attribute__((warn_unused_result))
#else
#define BJ_API
#define BJ_CHECK
#endif

/* float, or double if both the library and the caller are compiled with BJ_DOUBLE. */
#ifdef BJ_DOUBLE
typedef double bj_real;
#else
typedef float bj_real;
#endif

/* ------------------------------------------------------------------------------------- errors */

typedef enum bj_status {
    BJ_OK = 0,
    BJ_EARG = 10,       /* invalid argument or setting */
    BJ_EIO = 20,        /* the operating system reported a read or write error */
    BJ_EFORMAT = 30,    /* invalid file content */
    BJ_EVERSION = 31,   /* unsupported file version */
    BJ_ENOMEM = 40,     /* an allocation failed */
    BJ_ENONFINITE = 50, /* NaN or infinity in the input, weights or loss */
    BJ_ELOCKED = 60,    /* rejected by a lock or gate, or stopped by a callback */
    BJ_EMISMATCH = 61,  /* a comparison with a reference failed */
    BJ_ECOMM = 70       /* another process did not respond */
} bj_status;

typedef struct bj_error {
    bj_status code;
    char message[512];
} bj_error;

BJ_API const char *bj_status_name(bj_status code);
/* Makes text from an untrusted source safe to print. Replaces control characters, bytes that are not
 * UTF-8, and characters that change the direction of text by '?'. A newline stays only before
 * "hint: ". All messages in a bj_error have been cleaned. */
BJ_API void bj_clean_text(char *text);
BJ_API const char *bj_version(void);

/* ------------------------------------------------------------------------------ random numbers */

/* Random number generator (xoshiro256++). The state can be saved and restored. */
typedef struct bj_rng {
    uint64_t state[4];
} bj_rng;

BJ_API bj_rng bj_rng_seed(uint64_t seed);
BJ_API uint64_t bj_rng_next(bj_rng *rng);
BJ_API double bj_rng_uniform(bj_rng *rng); /* in [0,1) */
BJ_API double bj_rng_normal(bj_rng *rng);

/* ------------------------------------------------------------------------------ spelling hints */

/* Tracks the candidate closest to a word, for "did you mean" hints. Initialize with
 * BJ_NEAREST(word). */
typedef struct bj_nearest {
    const char *word, *best; /* best is NULL if no candidate was close */
    int distance;
} bj_nearest;

#define BJ_NEAREST(word)                                                                           \
    { (word), NULL, 0 }

/* Stores the candidate if it is a plausible misspelling of the word and the closest one so far. */
BJ_API void bj_nearest_offer(bj_nearest *nearest, const char *candidate);
/* Returns the edit distance between a and b. Insertions, deletions, substitutions and
 * transpositions of adjacent characters each cost 1. */
BJ_API int bj_edit_distance(const char *a, const char *b);

/* ------------------------------------------------------------------------------- architecture */

typedef enum bj_model_kind {
    BJ_MODEL_BRANCH,      /* K atoms, a router (if K > 1), one shared decoder */
    BJ_MODEL_OUTPUT_ONLY, /* one latent, a shared trunk, a base head and K residual heads */
    BJ_MODEL_FUSED,       /* K atoms and a router; the only latent is their normalized weighted
                             mean */
    BJ_MODEL_VARIATIONAL, /* one network with the context and a Gaussian variable as inputs; the K
                             outputs use the prior mean and K - 1 samples */
    BJ_MODEL_CODEBOOK     /* one atom and K codes that do not depend on the context */
} bj_model_kind;

/* Input type and structure of the encoder. */
typedef enum bj_encoder_kind {
    BJ_ENCODER_SCENE, /* tracks and polylines: GRU, token networks, attention, projection */
    BJ_ENCODER_STATE, /* MLP with projection for a standardized numeric vector, with sine and cosine
                         features of some components */
    BJ_ENCODER_IMAGE  /* bytes, standardized: two patch layers, MLP, projection */
} bj_encoder_kind;

/* Standard deviations of the mixture-density objective. */
typedef enum bj_scales {
    BJ_SCALES_FIXED,    /* not learned: sigma_z and sigma_y of the objective */
    BJ_SCALES_GLOBAL,   /* one value for latents and one for trajectories */
    BJ_SCALES_COMPONENT /* one value per branch and dimension */
} bj_scales;

/* Source of the branch weights. */
typedef enum bj_weighting {
    BJ_WEIGHTS_ROUTER,
    BJ_WEIGHTS_UNIFORM /* 1/K; the router exists but is not used */
} bj_weighting;

/* All sizes of the network. bj_arch_paper() returns the paper's values. */
typedef struct bj_arch {
    bj_model_kind kind;
    bj_scales scales;
    bj_weighting weighting;
    int obs;            /* T: observed steps of the focal track and the neighbors */
    int fut;            /* F: future steps */
    int neighbors;      /* N: max neighbors per scene */
    int polylines;      /* P: max polylines per scene */
    int points;         /* Q: points per polyline */
    int embed;          /* E: width of the GRU state, tokens and attention */
    int heads;          /* attention heads; divides embed */
    int token_hidden;   /* hidden width of the two token networks */
    int latent;         /* D: latent width */
    int proj_hidden;    /* hidden width of the projection */
    int atoms;          /* K: 1 to 64 */
    int atom_hidden;    /* hidden width of an atom */
    int router_hidden;
    int decoder_hidden;
    int trunk;          /* trunk width of the output-only model */
    double dt;          /* seconds between steps */
    /* Sizes of state and image encoders, all 0 for the scene encoder. With a state or image
     * encoder, obs, fut, neighbors, polylines, points, heads, token_hidden, decoder_hidden and
     * trunk are 0, because nothing is decoded. */
    bj_encoder_kind encoder;
    int state;          /* components of a state */
    int waves;          /* number of leading state components with sine and cosine features */
    int octaves;        /* number of frequencies per component: pi/4, pi/2, pi, ... per standard
                           deviation */
    int height, width;  /* image size in pixels, multiples of 16 */
    int channels;       /* image channels */
    int patch_in;       /* outputs per patch of 4x4 pixels */
    int patch_out;      /* outputs per patch of 4x4 first-layer patches */
    int action;         /* number of components of an action, which is an input of the atoms and the
                           router in addition to the context */
    int noise;          /* variational: width of the Gaussian variable */
    int noise_hidden;   /* variational: hidden width of the prior and the posterior */
} bj_arch;

enum { BJ_FOCAL_FEATURES = 7, BJ_POLYLINE_FEATURES = 6, BJ_MAX_ATOMS = 64, BJ_SEGMENT_STEPS = 10 };

BJ_API bj_arch bj_arch_paper(void);       /* K = 6 */
BJ_API bj_arch bj_arch_point(void);       /* K = 1, atom width 3204, no router */
BJ_API bj_arch bj_arch_output_only(void); /* one latent, six trajectories */
/* Returns the maze model of the given kind with K = 8. Its parameter count differs by at most 0.1 %
 * from that of the model with eight branches and a router. BJ_MODEL_BRANCH with `one_atom` set is
 * the standard model with one wide branch. */
BJ_API bj_arch bj_arch_maze(bj_model_kind kind, int one_atom);
BJ_API BJ_CHECK bj_status bj_arch_check(const bj_arch *arch, bj_error *err);
/* Fails if the scene sizes in `arch`, a model's architecture, differ from those in `scenes`. */
BJ_API BJ_CHECK bj_status bj_arch_fits(const bj_arch *arch, const bj_arch *scenes, bj_error *err);

/* -------------------------------------------------------------------------------------- scenes */

/* One scene, without empty slots. The arrays may be anywhere in memory, including a mapped file.
 * The arrays are read only during a call, and no pointer to them is kept. */
typedef struct bj_scene {
    const bj_real *focal;     /* (T,7) x, y, vx, vy, cos h, sin h, type */
    const bj_real *neighbors; /* (neighbor_count,T,7); may be NULL if the count is 0 */
    const bj_real *polylines; /* (polyline_count,Q,6) x, y, cos d, sin d, intersection, crosswalk;
                                 may be NULL if the count is 0 */
    const bj_real *future;    /* (F,2), or NULL if unknown; not read by prediction */
    int neighbor_count, polyline_count;
} bj_scene;

/* One transition for state or image encoders: the current observation, the next observation and the
 * action in between. The arrays are read only during a call, and no pointer to them is kept. */
typedef struct bj_pair {
    const bj_real *state, *next;       /* (state) */
    const uint8_t *image, *next_image; /* (height,width,channels) */
    const bj_real *action;             /* (action); may be NULL if the width is 0 */
} bj_pair; /* next and next_image are not read by prediction */

/* A batch of scenes or transitions, in any order. The items need not be contiguous in memory. */
typedef struct bj_batch {
    int B;
    const bj_scene *scenes; /* (B) */
    const bj_pair *pairs;   /* (B) used instead of scenes by state and image encoders */
} bj_batch;

/* A batch that owns its arrays. Each array is contiguous across scenes. */
typedef struct bj_scenes bj_scenes;

/* Creates a batch from padded arrays and drops the empty slots. neighbors is (B,N,T,7) with mask
 * nmask (B,N), polylines is (B,P,Q,6) with mask pmask (B,P). A mask is 1 for an occupied slot.
 * future may be NULL. */
BJ_API BJ_CHECK bj_status bj_scenes_from_padded(bj_scenes **out, const bj_arch *arch, int B,
                                                const bj_real *focal, const bj_real *neighbors,
                                                const uint8_t *nmask, const bj_real *polylines,
                                                const uint8_t *pmask, const bj_real *future,
                                                bj_error *err);
/* Creates synthetic scenes with realistic magnitudes and mask statistics. Equal seeds give equal
 * scenes. */
BJ_API BJ_CHECK bj_status bj_scenes_synthetic(bj_scenes **out, const bj_arch *arch, int B,
                                              uint64_t seed, bj_error *err);
BJ_API const bj_batch *bj_scenes_batch(const bj_scenes *scenes);
BJ_API void bj_scenes_free(bj_scenes *scenes);

/* --------------------------------------------------------------------------------------- cache */

/* Scenes on disk in one memory-mapped file, sorted by scenario id (format: docs/DATA.md). A handle
 * may be shared between threads. */
typedef struct bj_cache bj_cache;

typedef struct bj_scene_info {
    const char *scenario_id, *city, *focal_id, *focal_type; /* owned by the cache */
    double origin[2], heading; /* scene frame in city coordinates */
    int neighbors, polylines;  /* number stored, nearest ones first */
    int neighbors_available, polylines_available;
    int has_future;
    uint64_t focal_valid;  /* bit t: observed at step t */
    uint64_t future_valid; /* bit k: observed at future step k */
    int64_t map;           /* index of the scene's map, for bj_cache_rings */
    const uint8_t *map_sha256; /* (32) SHA-256 of the raw map file */
} bj_scene_info;

/* Opens a cache and checks its index. If `blind` is set, no function returns futures from this
 * cache. */
BJ_API BJ_CHECK bj_status bj_cache_open(bj_cache **out, const char *path, int blind, bj_error *err);
BJ_API void bj_cache_free(bj_cache *cache);
BJ_API int64_t bj_cache_count(const bj_cache *cache);
/* Returns the scene sizes obs, fut, neighbors, polylines, points and dt. A model's architecture
 * must match them. All other fields have the paper's values. */
BJ_API bj_arch bj_cache_arch(const bj_cache *cache);
BJ_API bj_scene_info bj_cache_info(const bj_cache *cache, int64_t index);
/* Returns the index of the scene with this id, or -1. */
BJ_API int64_t bj_cache_find(const bj_cache *cache, const char *scenario_id);
/* Returns the SHA-256 over the index and all scene digests, as 64 hex digits. It identifies the
 * file's content. */
BJ_API const char *bj_cache_digest(const bj_cache *cache);
/* Returns a metadata value of the file ("split", "features", ...), or NULL. */
BJ_API const char *bj_cache_fact(const bj_cache *cache, const char *key);
/* Recomputes the digest of one scene or of one map's drivable areas and compares it with the stored
 * digest. The error message names the damaged item. */
BJ_API BJ_CHECK bj_status bj_cache_verify(const bj_cache *cache, int64_t index, bj_error *err);
/* Check a scene's features and future, or a map's areas, against their digests when they are used
 * for the first time with this handle. Later calls return at once. The loader, audit, gallery,
 * scoring and export functions call them, so only code that uses bj_cache_floats or bj_cache_ring
 * directly has to. A blind handle also compares the digest, but still returns no future. */
BJ_API BJ_CHECK bj_status bj_cache_check_scene(const bj_cache *cache, int64_t index, bj_error *err);
BJ_API BJ_CHECK bj_status bj_cache_check_map(const bj_cache *cache, int64_t map, bj_error *err);
/* Pointers to a scene's arrays in the mapped file, without a copy. future is NULL if it is unknown
 * or hidden. */
typedef struct bj_scene_floats {
    const float *focal, *neighbors, *polylines, *future;
} bj_scene_floats;
BJ_API bj_scene_floats bj_cache_floats(const bj_cache *cache, int64_t index);
/* Return the drivable areas of a map as rings of points in city coordinates. The first point of a
 * ring is not repeated. bj_cache_ring fills points (bj_cache_ring_size,2). */
BJ_API int bj_cache_rings(const bj_cache *cache, int64_t map);
BJ_API int bj_cache_ring_size(const bj_cache *cache, int64_t map, int ring);
BJ_API void bj_cache_ring(double *points, const bj_cache *cache, int64_t map, int ring);
/* Writes one scene as a safetensors file with the padded arrays listed in docs/DATA.md. */
BJ_API BJ_CHECK bj_status bj_cache_export(const bj_cache *cache, int64_t index, const char *path,
                                          bj_error *err);

/* -------------------------------------------------------------------------------------- loader */

/* Split into fit and development scenes. A scene is a development scene if the first 8 bytes of
 * SHA-256(scenario_id), as a fraction of 2^64, are below 9944/199908. */
typedef enum bj_part { BJ_PART_ALL, BJ_PART_FIT, BJ_PART_DEV } bj_part;
BJ_API int bj_is_dev(const char *scenario_id); /* 1 or 0 */

/* Iterates over the batches of a cache. The order depends only on seed and epoch, so all arms of a
 * seed see the same order. The last batch of an epoch may be smaller. If `needs_future` is set,
 * scenes without a future are skipped. Scenes are not copied out of the mapped file. */
typedef struct bj_loader bj_loader;

typedef struct bj_loader_options {
    bj_part part;
    int batch;         /* scenes per batch */
    int shuffle;       /* 0: cache order */
    uint64_t seed;
    int needs_future;
} bj_loader_options;

BJ_API BJ_CHECK bj_status bj_loader_create(bj_loader **out, const bj_cache *cache,
                                           const bj_loader_options *options, bj_error *err);
BJ_API void bj_loader_free(bj_loader *loader);
BJ_API int64_t bj_loader_scenes(const bj_loader *loader); /* scenes per epoch */
BJ_API int64_t bj_loader_steps(const bj_loader *loader);  /* batches per epoch */
/* Returns batch `step` of epoch `epoch`, both counted from 0. The batch is valid until the next
 * call. `numbers`, if not NULL, receives the cache indices (B) of the scenes. */
BJ_API BJ_CHECK bj_status bj_loader_batch(const bj_batch **out, const int64_t **numbers,
                                          bj_loader *loader, int64_t epoch, int64_t step,
                                          bj_error *err);

/* --------------------------------------------------------------------------------- preparation */

typedef struct bj_prep_options {
    const char *const *roots; /* folders to search */
    int root_count;
    const char *split; /* "train", "val" or "test"; NULL: everything below the roots */
    int jobs;          /* 0: one per available core */
    int strict;        /* stop at the first rejected scene */
    int restart;       /* discard an interrupted run instead of resuming it */
    int force;         /* replace an existing cache */
    int dry_run;       /* only search: fills found and bytes, writes nothing */
    int64_t limit;     /* max number of scenarios, in the order of their ids; 0: all */
    /* Called on the calling thread, before the first scene and after each scene. A nonzero return
     * value stops the run, which can be resumed. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total, int64_t rejected);
    void *context;
} bj_prep_options;

typedef struct bj_prep_report {
    int64_t found, resumed, accepted, rejected; /* scenes */
    int64_t without_future, maps;
    int64_t bytes;    /* size of the cache; for a dry run, an upper bound without map polygons */
    int interrupted;  /* stopped by progress; the cache does not exist yet */
    char digest[65];
} bj_prep_report;

/* Returns the size in bytes of a cache with this many scenes, assuming that every slot is occupied.
 * Map polygons are not included. */
BJ_API int64_t bj_cache_most_bytes(int64_t scenes);

/* Searches folders in the official layout and writes a cache. Rejected scenes are listed with their
 * reasons in PATH.rejects.jsonl. An interrupted run leaves PATH.partial behind, and the next call
 * resumes it. The bytes of the cache depend neither on the number of jobs nor on interruptions. */
BJ_API BJ_CHECK bj_status bj_prep(bj_prep_report *report, const char *path,
                                  const bj_prep_options *options, bj_error *err);

/* One scenario, ready for bj_predict. `folder` contains one scenario_ID.parquet and its map file.
 * The path of the parquet file is accepted as well. */
typedef struct bj_scenario_scene bj_scenario_scene;
BJ_API BJ_CHECK bj_status bj_scenario_open(bj_scenario_scene **out, const char *folder,
                                           bj_error *err);
BJ_API void bj_scenario_free(bj_scenario_scene *scene);
BJ_API bj_scene_info bj_scenario_info(const bj_scenario_scene *scene); /* map is -1 */
BJ_API bj_scene_floats bj_scenario_floats(const bj_scenario_scene *scene);
BJ_API const bj_batch *bj_scenario_batch(const bj_scenario_scene *scene); /* a batch with this one
                                                                             scene */
/* Return the drivable areas of the scenario's map, like bj_cache_rings. */
BJ_API int bj_scenario_rings(const bj_scenario_scene *scene);
BJ_API int bj_scenario_ring_size(const bj_scenario_scene *scene, int ring);
BJ_API void bj_scenario_ring(double *points, const bj_scenario_scene *scene, int ring);

/* A list of the scenarios that bj_prep would find below a folder, sorted by id. */
typedef struct bj_scenario_list bj_scenario_list;
BJ_API BJ_CHECK bj_status bj_scenario_list_create(bj_scenario_list **out, const char *root,
                                                  bj_error *err);
BJ_API void bj_scenario_list_free(bj_scenario_list *list);
BJ_API int64_t bj_scenario_list_count(const bj_scenario_list *list);
BJ_API const char *bj_scenario_list_id(const bj_scenario_list *list, int64_t index);
/* Opens one scenario. The list keeps its buffers between calls, and the scene may outlive the
 * list. */
BJ_API BJ_CHECK bj_status bj_scenario_list_open(bj_scenario_scene **out, bj_scenario_list *list,
                                                int64_t index, bj_error *err);

/* Convert points (count,2) from a scene's frame to city coordinates, and back. */
BJ_API void bj_to_city(double *out, const double *points, int count, const double origin[2],
                       double heading);
BJ_API void bj_from_city(double *out, const double *points, int count, const double origin[2],
                         double heading);

/* ------------------------------------------------------------------------------ simulated world */

/* Simulated traffic in the official format with a known distribution of futures (docs/WORLD.md).
 * Scene i of (version, seed, split) is identical on every machine and does not depend on which
 * other scenes are generated. In version 2, the law depends only on quantities that the scene
 * features contain. */
enum { BJ_WORLD_VERSION = 2 };

typedef struct bj_world_options {
    int version; /* 1 or 2; 0: the default, BJ_WORLD_VERSION */
    uint64_t seed;
    const char *split; /* NULL: "train"; at most 31 letters, digits, '-' or '_' */
    int64_t scenes;    /* scenes 0 .. scenes - 1 are generated; at most 2^32 */
    int jobs;          /* 0: one per available core */
    int restart;       /* 1: discard an interrupted run instead of resuming it; only for caches */
    int force;         /* replace existing files */
    /* As in bj_prep_options. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_world_options;

typedef struct bj_world_report {
    int64_t scenes, resumed, towns;
    int64_t modes;            /* total number of modes in the laws of all scenes */
    int64_t bytes, law_bytes; /* size of the cache (0 for folders) and of the law file */
    int interrupted;          /* stopped by progress; neither the cache nor the law file exists
                                 yet */
    char digest[65];          /* digest of the cache */
} bj_world_report;

/* Writes a cache and, next to it, CACHE.law.safetensors. The cache has the same bytes as a cache
 * prepared from the output of bj_world_to_folders. Resumes an interrupted run. */
BJ_API BJ_CHECK bj_status bj_world_to_cache(bj_world_report *report, const char *cache,
                                            const bj_world_options *options, bj_error *err);
/* Writes <id>/scenario_<id>.parquet and <id>/log_map_archive_<id>.json for every scene, and
 * law.safetensors, to `folder`. Creates `folder`. Replaces existing scenario files. */
BJ_API BJ_CHECK bj_status bj_world_to_folders(bj_world_report *report, const char *folder,
                                              const bj_world_options *options, bj_error *err);
/* Draws more futures for the observed part of one scene: futures (draws,60,2) in the scene's frame
 * and modes (draws), which may be NULL. Draw 0 is the future in the data. `version` is 1, 2 or 0 as
 * in bj_world_options. */
BJ_API BJ_CHECK bj_status bj_world_redraw(double *futures, int *modes, int version,
                                          uint64_t seed, const char *split, int64_t index,
                                          int64_t first, int64_t draws, bj_error *err);

/* The laws of many scenes, read from a law file. Training never opens this file. */
typedef struct bj_law bj_law;
enum { BJ_LAW_FACTORS_MAX = 16 };

/* The law of one scene, in the scene's frame:
 *   future = means[m] + sum_r z_r factor[m][r] + jitter e
 * Mode m is drawn by weight. z and e are independent with mean 0 and variance 1, and z is
 * normal. */
typedef struct bj_law_scene {
    const char *scenario_id;
    double origin[2], heading; /* scene frame in city coordinates */
    int modes, factors;
    int realized;              /* mode of the future in the data */
    double jitter;             /* m */
    const double *weights;     /* (modes) in descending order */
    const uint8_t *intents;    /* (modes) see bj_law_intent for names */
    const float *means;        /* (modes,60,2) */
    const float *factor;       /* (modes,factors,60,2) */
} bj_law_scene;

BJ_API BJ_CHECK bj_status bj_law_open(bj_law **out, const char *path, bj_error *err);
BJ_API void bj_law_free(bj_law *law);
BJ_API int64_t bj_law_count(const bj_law *law);
/* Returns a metadata value of the file ("seed", "split", "world", ...), or NULL. */
BJ_API const char *bj_law_fact(const bj_law *law, const char *key);
BJ_API int64_t bj_law_find(const bj_law *law, const char *scenario_id); /* or -1 */
BJ_API bj_law_scene bj_law_at(const bj_law *law, int64_t index); /* owned by the law */
BJ_API const char *bj_law_intent(const bj_law *law, int intent); /* "left", ..., or NULL */
/* Computes the SHA-256 over the stored digests of all scenes, as 64 hex digits. It identifies the
 * file's content. */
BJ_API BJ_CHECK bj_status bj_law_digest(char hex[65], const bj_law *law, bj_error *err);
/* Recomputes the digest of one scene and compares it with the stored digest. */
BJ_API BJ_CHECK bj_status bj_law_verify(const bj_law *law, int64_t index, bj_error *err);
/* Draws one future (60,2) and returns its mode. */
BJ_API int bj_law_sample(double *future, const bj_law_scene *scene, bj_rng *rng);

/* Laws mixed over the quantities that the scene features hide (docs/TRUTH.md). A mixture is the
 * best prediction that is possible from a model's inputs. In version 2 of the world, the features
 * hide nothing. */
typedef struct bj_law_blind bj_law_blind;
enum { BJ_HIDDEN_CONTROL = 1, BJ_HIDDEN_LIMITS = 2, BJ_HIDDEN_ALL = 3 };

/* Creates mixtures for a law, which must outlive them. Scenes are regenerated from the law's seed,
 * split and world version. */
BJ_API BJ_CHECK bj_status bj_law_blind_create(bj_law_blind **out, const bj_law *law, bj_error *err);
BJ_API void bj_law_blind_free(bj_law_blind *blind);
/* Computes the law of scene `index` mixed over the quantities in `hidden`. The mixture has at most
 * 192 modes in no particular order, and its realized mode is -1. It is valid until the next
 * call. */
BJ_API BJ_CHECK bj_status bj_law_blind_at(bj_law_scene *out, bj_law_blind *blind, int64_t index,
                                          int hidden, bj_error *err);

/* -------------------------------------------------------------------------------------- model */

typedef struct bj_model bj_model;

typedef struct bj_tensor {
    const char *name; /* PyTorch state_dict name */
    int rank;         /* 1 or 2 */
    int shape[2];
    size_t size;      /* product of the shape */
    bj_real *data;    /* owned by the model */
} bj_tensor;

/* Parameter counts as reported in the paper. Only trained parameters count, so the means and scales
 * of inputs and codes are excluded. */
typedef struct bj_counts {
    size_t encoder, atoms, router, decoder, scales;
    size_t downstream; /* everything except the encoder and the mixture scales */
    size_t total;      /* encoder + downstream */
} bj_counts;

/* Creates a model with PyTorch's default initialization, drawn from the seed. */
BJ_API BJ_CHECK bj_status bj_model_create(bj_model **out, const bj_arch *arch, uint64_t seed,
                                          bj_error *err);
/* Replaces the weights of a new model with the initialization for conditioned training
 * (bj_optim). */
BJ_API void bj_model_condition(bj_model *model, uint64_t seed);
BJ_API void bj_model_free(bj_model *model);
BJ_API const bj_arch *bj_model_arch(const bj_model *model);
BJ_API int bj_model_tensor_count(const bj_model *model);
BJ_API bj_tensor bj_model_tensor(const bj_model *model, int index);
BJ_API BJ_CHECK bj_status bj_model_find(bj_tensor *out, const bj_model *model, const char *name,
                                        bj_error *err);
BJ_API bj_counts bj_arch_counts(const bj_arch *arch);

/* ---------------------------------------------------------------------------------- objectives */

typedef enum bj_objective_kind {
    BJ_FULLSET,        /* Energy Score of the whole weighted set; with K = 1, the point model */
    BJ_UNIFORM,        /* Energy Score with weights 1/K */
    BJ_SPECIALIZATION, /* winner takes all */
    BJ_SOFTWTA,        /* soft assignment */
    BJ_SINKHORN,       /* hard winner, mixed with a balanced assignment over the batch */
    BJ_MDN,            /* mixture likelihood */
    BJ_OUTPUTONLY,     /* one latent, Energy Score of K outputs */
    BJ_ANCHOR_A,       /* future encoder and decoder with variance and rank floors */
    BJ_ANCHOR_B,       /* latent Energy Score with a frozen target encoder and decoder */
    BJ_FUSED,          /* distance between the normalized weighted mean of all latents and the
                          target */
    BJ_VARIATIONAL     /* distance between the target and a latent drawn from the posterior, plus
                          KL */
} bj_objective_kind;

typedef struct bj_objective {
    bj_objective_kind kind;
    double lambda_z, lambda_y, lambda_rec; /* weights of the latent, decoded and reconstruction
                                              terms */
    double lambda_router;                  /* cross-entropy weight of the winner-takes-all family */
    double beta;                           /* time weight beta^t of the decoded distance, (0,1] */
    double tau;                            /* soft-WTA temperature */
    double rho, eps;                       /* Sinkhorn mixing share and entropy */
    int sinkhorn_iters;
    int sigreg_slices;                     /* random directions of SIGReg, default 256 */
    double sigma_z, sigma_y, usage_kl;     /* mixture density: standard deviations and weight of the
                                              usage penalty */
    double variance_floor;                 /* anchor stage A, default .02 */
    double rank_floor, rank_weight;        /* anchor stage A, defaults 8 and .25 */
    double floor_weight;                   /* weight of the variance and rank floors on normalized
                                              contexts; for objectives without a decoder, except
                                              stage A */
    double kl_weight;                      /* weight of the variational KL term */
    /* Regularizers of the online encoder's output before normalization. They are available in every
     * objective (docs/layers/regularizers.md). A weight of 0 disables a term. */
    double sigreg;                              /* weight of SIGReg */
    double vicreg_variance, vicreg_covariance;  /* weights of two VICReg terms */
    double vicreg_gamma;                        /* VICReg's target standard deviation, default 1 */
} bj_objective;

BJ_API bj_objective bj_objective_default(bj_objective_kind kind);
BJ_API BJ_CHECK bj_status bj_objective_check(const bj_objective *objective, const bj_arch *arch,
                                             bj_error *err);
BJ_API const char *bj_objective_name(bj_objective_kind kind);
BJ_API BJ_CHECK bj_status bj_objective_find(bj_objective_kind *out, const char *name,
                                            bj_error *err);

/* Unweighted loss terms, averaged over the batch. Terms that are not part of the objective are
 * 0. */
typedef struct bj_loss {
    double total;
    double latent, decoded, rec, router;
    double usage; /* mixture density: penalty on uneven branch use; variational: KL divergence */
    double variance, rank, participation; /* floor terms; participation is the measured rank */
    double sigreg, vicreg_variance, vicreg_covariance; /* regularizers; 0 if the weight is 0 */
} bj_loss;

/* ------------------------------------------------------------------------------------ training */

typedef struct bj_trainer bj_trainer;

typedef struct bj_optim {
    double beta1, beta2, eps; /* defaults .9, .999, 1e-8 */
    double weight_decay;      /* applied to every trained tensor, default 1e-2 */
    double clip;              /* max global gradient norm, default 5 */
    double ema;               /* decay of the target encoder's moving average, default .996 */
    /* 1: AdamW updates theta, where the weights are w = sigma theta and sigma follows from the
     * units of the inputs and outputs (docs/TRAINING.md). Gradients, gradient norm and moments
     * refer to theta. Initialize with bj_model_condition. 0: sigma is 1. */
    int conditioned;
    /* 1: the inner matrices of the encoder are updated with Muon instead of AdamW. These are the
     * recurrent, attention and projection weights and the second token layers. */
    int muon;
    /* 1: schedule-free AdamW: gradients are computed near a running average of the weights, which
     * replaces the decay of the learning rate. The model contains the average. Cannot be combined
     * with muon. */
    int schedule_free;
} bj_optim;

BJ_API bj_optim bj_optim_default(void);

typedef enum bj_schedule_kind {
    BJ_SCHEDULE_COSINE,   /* half a cosine from `base` to zero */
    BJ_SCHEDULE_LINEAR,   /* linear from `base` to zero */
    BJ_SCHEDULE_TRAPEZOID, /* constant `base`, then linear decay to zero over the last share `decay`
                              of the updates */
    BJ_SCHEDULE_CONSTANT   /* `base`, for schedule-free AdamW */
} bj_schedule_kind;

typedef struct bj_schedule {
    bj_schedule_kind kind;
    double base;           /* learning rate after the warm-up */
    double decay;          /* in (0, 1], trapezoid only */
    long updates, warmup;  /* total number of updates; updates of the linear warm-up */
} bj_schedule;

/* Returns the learning rate of update `step`, which counts from 0. */
BJ_API double bj_lr_at(const bj_schedule *schedule, long step);
/* Returns the bj_schedule_kind for "cosine", "linear", "trapezoid" or "constant", or -1 for any
 * other name. */
BJ_API int bj_schedule_find(const char *name);

/* Precision of matrix product operands. In mixed precision (BF16), operands are rounded to
 * bfloat16. Sums, weights, optimizer state, losses, normalization and regularizers stay in full
 * precision. */
typedef enum bj_precision { BJ_PRECISION_FULL, BJ_PRECISION_BF16 } bj_precision;

/* Returns the instruction set that trainers and predictors use unless their options name another
 * one. It is the value of the environment variable BJ_ISA if set, otherwise the choice for this
 * processor. Returns NULL if BJ_ISA names an instruction set that is not available. */
BJ_API const char *bj_isa(bj_precision precision);

typedef struct bj_trainer_options {
    bj_objective objective;
    bj_optim optim;
    int max_batch;   /* max B per step */
    int threads;     /* 0: one per available core */
    const char *isa; /* NULL: bj_isa(precision) */
    uint64_t seed;   /* seed for the variational noise and the directions of SIGReg */
    bj_precision precision;
} bj_trainer_options;

/* Seconds spent in each phase, summed over all steps. */
typedef struct bj_profile {
    double prepare, scenes, gradients, unfold, update;
} bj_profile;

typedef struct bj_step_report {
    bj_loss loss;
    double grad_norm; /* before clipping */
    long step;        /* updates done, including this one */
} bj_step_report;

/* Creates a trainer that borrows the model and updates it in place. The target encoder starts as a
 * copy of the model's encoder. */
BJ_API BJ_CHECK bj_status bj_trainer_create(bj_trainer **out, bj_model *model,
                                            const bj_trainer_options *options, bj_error *err);
BJ_API void bj_trainer_free(bj_trainer *trainer);
/* Performs one update: forward, loss, backward, clip, AdamW, EMA. Changes nothing on failure. */
BJ_API BJ_CHECK bj_status bj_trainer_step(bj_trainer *trainer, const bj_batch *batch, double lr,
                                          bj_step_report *report, bj_error *err);
/* Computes the loss and the gradients without changing the weights. */
BJ_API BJ_CHECK bj_status bj_trainer_gradients(bj_trainer *trainer, const bj_batch *batch,
                                               bj_step_report *report, bj_error *err);
/* Returns the gradient of a tensor, as computed by the last call to one of the two functions above.
 * In conditioned training it is the gradient of theta. data is NULL if no loss term depends on the
 * tensor. */
BJ_API bj_tensor bj_trainer_gradient(const bj_trainer *trainer, int index);
/* Returns the target encoder's counterpart of tensor `index`. data is NULL for tensors outside the
 * encoder. The caller may write to it before the first step. */
BJ_API bj_tensor bj_trainer_target(const bj_trainer *trainer, int index);

/* Returns the number of updates so far, including those of a loaded checkpoint. */
BJ_API long bj_trainer_updates(const bj_trainer *trainer);
BJ_API bj_profile bj_trainer_profile(const bj_trainer *trainer);
BJ_API const char *bj_trainer_isa(const bj_trainer *trainer);

/* Outputs of the trainer's last forward pass. */
typedef struct bj_outputs {
    int B, K, latents, D, F;  /* latents is K, or 1 for the output-only model */
    const bj_real *context;   /* (B,D) row stride context_stride */
    const bj_real *atoms;     /* (B,latents,D) row stride atom_stride */
    const bj_real *logits;    /* (B,K) */
    const bj_real *weights;   /* (B,K) softmax of the logits, or 1/K for the uniform objective */
    const bj_real *decoded;   /* (B,K,F,2) row stride decoded_stride */
    const bj_real *target;    /* (B,D) normalized target latent, row stride atom_stride */
    const bj_real *recon;     /* (B,F,2) decoded target, row stride decoded_stride */
    const bj_real *future;    /* (B,F,2) true futures, in the layout of bj_metrics_add */
    size_t context_stride, atom_stride, decoded_stride;
} bj_outputs;

BJ_API bj_outputs bj_trainer_outputs(const bj_trainer *trainer);

/* ---------------------------------------------------------------------------------- prediction */

typedef struct bj_predictor bj_predictor;

typedef struct bj_predictor_options {
    int max_batch;
    int threads;     /* 0: one per available core */
    bj_precision precision; /* BF16 also stores the weights in 16 bits */
    const char *isa; /* as in bj_trainer_options */
} bj_predictor_options;

/* Creates a predictor. Copies the weights it needs, so the model may be freed or trained
 * further. */
BJ_API BJ_CHECK bj_status bj_predictor_create(bj_predictor **out, const bj_model *model,
                                              const bj_predictor_options *options, bj_error *err);
BJ_API void bj_predictor_free(bj_predictor *predictor);
/* Returns the number of latents that prediction returns per context: K, or 1 for output-only and
 * fused models. */
BJ_API int bj_arch_latents(const bj_arch *arch);
/* Predicts all K branches: weights (B,K), trajectories (B,K,F,2) and atoms (B,latents,D), which may
 * be NULL. With a state or image encoder, only weights and atoms are filled, and trajectories is
 * ignored. */
BJ_API BJ_CHECK bj_status bj_predict(bj_predictor *predictor, const bj_batch *batch,
                                     bj_real *weights, bj_real *trajectories, bj_real *atoms,
                                     bj_error *err);
BJ_API const char *bj_predictor_isa(const bj_predictor *predictor);

/* ------------------------------------------------------------------------------------- metrics */

typedef struct bj_metrics bj_metrics;

/* Means over all scenes added so far. Metrics that do not apply are NaN. */
typedef struct bj_metric_values {
    double scenes;
    double traj_es, traj_obs, traj_disp;
    double end_es, latent_es;
    double exp_ade, exp_fde;
    double top1_ade, top1_fde, top1_mr;
    double min_ade, min_fde, min_mr; /* diagnostics only */
    double brier, ece;
    double exp_entropy, active_heads, neff_collision, dedup_support;
    /* Argoverse 2 leaderboard metrics for the K most probable branches. They are diagnostics,
     * because the best branch is chosen with hindsight. minADE, minFDE and the miss rate for K = 1
     * are top1_ade, top1_fde and top1_mr. */
    double brier_min_fde_1, min_ade_6, min_fde_6, mr_6, brier_min_fde_6;
} bj_metric_values;

/* Creates an accumulator. `latents` is K, 1, or 0 for forecasts without latents. If it is 0, calls
 * to bj_metrics_add may differ in their number of modes (at most K), atoms and targets are not
 * needed, and latent metrics are NaN. */
BJ_API BJ_CHECK bj_status bj_metrics_create(bj_metrics **out, int K, int latents, int D, int F,
                                            bj_error *err);
BJ_API void bj_metrics_free(bj_metrics *metrics);
BJ_API void bj_metrics_reset(bj_metrics *metrics);
/* Adds outputs->B scenes with the true futures (B,F,2). */
BJ_API BJ_CHECK bj_status bj_metrics_add(bj_metrics *metrics, const bj_outputs *outputs,
                                         const bj_real *future, bj_error *err);
BJ_API bj_metric_values bj_metrics_values(const bj_metrics *metrics);

/* --------------------------------------------------------------------------------- submissions */

/* Forecasts from any model in the official challenge format: a Parquet file with one row per
 * scenario, track and mode, and 60 points in city coordinates per row (docs/SCORE.md). */
enum { BJ_SUBMISSION_STEPS = 60, BJ_SUBMISSION_MODES = 6 };

typedef struct bj_submission_writer bj_submission_writer;

BJ_API BJ_CHECK bj_status bj_submission_writer_create(bj_submission_writer **out, const char *path,
                                                      bj_error *err);
/* Appends a track: probabilities (modes) and trajectories (modes,60,2) in city coordinates. Fails
 * if a number is not finite, if a probability is outside [0,1], if the probabilities do not sum to
 * 1 or if an id is empty. */
BJ_API BJ_CHECK bj_status bj_submission_writer_add(bj_submission_writer *writer,
                                                   const char *scenario_id, const char *track_id,
                                                   int modes, const double *probabilities,
                                                   const double *trajectories, bj_error *err);
/* Renames the finished file to its final path, or removes it on failure. Frees the writer and sets
 * it to NULL in either case. */
BJ_API BJ_CHECK bj_status bj_submission_writer_commit(bj_submission_writer **writer, bj_error *err);
BJ_API void bj_submission_writer_abort(bj_submission_writer **writer); /* accepts NULL */

/* A submission file, decoded completely into memory but not validated. */
typedef struct bj_submission bj_submission;

typedef struct bj_submission_row {
    const char *scenario_id, *track_id; /* NULL if missing in the file */
    double probability;                 /* NaN if missing in the file */
    const double *x, *y;                /* (x_count), (y_count) */
    int64_t x_count, y_count;
} bj_submission_row;

BJ_API BJ_CHECK bj_status bj_submission_open(bj_submission **out, const char *path, bj_error *err);
BJ_API void bj_submission_free(bj_submission *submission);
BJ_API int64_t bj_submission_rows(const bj_submission *submission);
BJ_API bj_submission_row bj_submission_at(const bj_submission *submission, int64_t row);
/* Return the scenarios, in the order of their first rows. */
BJ_API int64_t bj_submission_scenarios(const bj_submission *submission);
BJ_API const char *bj_submission_scenario(const bj_submission *submission, int64_t scenario);
/* Returns the index of the scenario with this id, or -1. */
BJ_API int64_t bj_submission_find(const bj_submission *submission, const char *scenario_id);
/* Returns the row indices (*count) of a scenario, grouped by track and in file order within a
 * track. */
BJ_API const int64_t *bj_submission_rows_of(int64_t *count, const bj_submission *submission,
                                            int64_t scenario);

typedef struct bj_submit_options {
    int threads; /* as in bj_predictor_options */
    bj_precision precision;
    const char *isa;
    /* Called periodically. If it returns nonzero, the call stops, writes no file and returns BJ_OK.
     * May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_submit_options;

/* Predicts every scene of a cache and writes the submission. The router weights sum to one only up
 * to single-precision rounding, so they are divided by their sum in double precision. `scenes`
 * receives the number of scenes written, or 0 if progress stopped the call. */
BJ_API BJ_CHECK bj_status bj_submit(int64_t *scenes, const char *path, const bj_model *model,
                                    const bj_cache *cache, const bj_submit_options *options,
                                    bj_error *err);

/* --------------------------------------------------------------------------------------- score */

/* Ground truth for scoring forecasts: a cache, or a folder with scenario files. Map files are not
 * needed. */
typedef struct bj_truth bj_truth;

typedef struct bj_truth_options {
    int threads; /* used only for folders; 0: one per available core */
    /* Called periodically. A nonzero return value stops the call with BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_truth_options;

BJ_API BJ_CHECK bj_status bj_truth_open(bj_truth **out, const char *path,
                                        const bj_truth_options *options, bj_error *err);
BJ_API void bj_truth_free(bj_truth *truth);
BJ_API int64_t bj_truth_count(const bj_truth *truth);
/* Return the scenarios that could not be read. The text names the file and the reason. */
BJ_API int64_t bj_truth_failures(const bj_truth *truth);
BJ_API const char *bj_truth_failure(const bj_truth *truth, int64_t index);

typedef enum bj_violation_kind {
    BJ_VIOLATION_ID,            /* row without a scenario or track id */
    BJ_VIOLATION_POINTS,        /* number of points is not 60 */
    BJ_VIOLATION_NONFINITE,     /* NaN or infinite coordinate */
    BJ_VIOLATION_PROBABILITY,   /* missing, not finite, negative or above 1 */
    BJ_VIOLATION_SUM,           /* the probabilities of a track do not sum to 1 */
    BJ_VIOLATION_MODES,         /* more modes than allowed */
    BJ_VIOLATION_DUPLICATE,     /* row repeats another row */
    BJ_VIOLATION_INCONSISTENT,  /* the tracks of a scenario differ in the number or the weights of
                                   their modes */
    BJ_VIOLATION_TRACK,         /* not the focal track */
    BJ_VIOLATION_UNKNOWN,       /* scenario is not in the ground truth */
    BJ_VIOLATION_MISSING,       /* a scenario of the ground truth is not in the file, or its focal
                                   track has no rows */
    BJ_VIOLATION_KINDS
} bj_violation_kind;

BJ_API const char *bj_violation_name(bj_violation_kind kind); /* "points", ... */

typedef struct bj_violation {
    bj_violation_kind kind;
    int64_t row;             /* row number in the file, starting at 0; -1 for missing scenarios */
    const char *scenario_id; /* may be NULL */
    char message[200];
} bj_violation;

typedef struct bj_score_options {
    int max_modes; /* 0: BJ_SUBMISSION_MODES */
    int listed;    /* max number of violations that are stored with a message; all are counted */
} bj_score_options;

typedef struct bj_score_counts {
    int64_t rows, scenarios; /* in the file */
    int64_t truths;          /* number of scenarios in the ground truth, which is the sum of the
                                next five counts; -1: no ground truth */
    int64_t scored;
    int64_t unreadable;      /* bj_truth_failures */
    int64_t missing;         /* BJ_VIOLATION_MISSING */
    int64_t malformed;       /* in the file, but cannot be scored */
    int64_t no_future;       /* in the file, but without a known future */
    int64_t unknown;         /* BJ_VIOLATION_UNKNOWN */
    int64_t gaps;            /* number of scored scenes whose true future has interpolated steps */
    int64_t violations[BJ_VIOLATION_KINDS];
    int64_t violations_total;
} bj_score_counts;

/* Means over scenes. Fields with suffix _1 use only the most probable mode, and fields with suffix
 * _6 the six most probable modes. */
typedef struct bj_score_values {
    double scenes, modes;
    double min_ade_1, min_fde_1, mr_1, brier_min_ade_1, brier_min_fde_1;
    double min_ade_6, min_ade_at_min_fde_6, min_fde_6, mr_6, brier_min_ade_6, brier_min_fde_6;
    bj_metric_values distribution; /* over all modes; latent metrics are NaN */
} bj_score_values;

/* A group of scenes with a common property. Group 0 contains all scenes (by "all"). */
typedef struct bj_score_group {
    const char *by, *key; /* "maneuver" "left", "type" "vehicle", "city" ..., "speed" "2-5" */
    bj_score_values values;
} bj_score_group;

typedef struct bj_score_scene {
    const char *scenario_id, *track_id, *maneuver, *type, *city, *speed;
    int gaps; /* interpolated steps in the true future */
    bj_score_values values;
} bj_score_scene;

typedef struct bj_score bj_score;

/* Validates a submission and, if `truth` is not NULL, scores the valid scenarios. Violations are
 * counted and do not make the call fail. Submission and truth must outlive the score. */
BJ_API BJ_CHECK bj_status bj_score_create(bj_score **out, const bj_submission *submission,
                                          const bj_truth *truth, const bj_score_options *options,
                                          bj_error *err);
BJ_API void bj_score_free(bj_score *score);
BJ_API bj_score_counts bj_score_count(const bj_score *score);
BJ_API int bj_score_listed(const bj_score *score); /* violations kept */
BJ_API const bj_violation *bj_score_violation(const bj_score *score, int index);
BJ_API int bj_score_groups(const bj_score *score); /* 0 if no scene was scored */
BJ_API bj_score_group bj_score_group_at(const bj_score *score, int index);
/* Return the scored scenes in the order of the ground truth. */
BJ_API int64_t bj_score_scenes(const bj_score *score);
BJ_API const bj_score_scene *bj_score_scene_at(const bj_score *score, int64_t index);

/* --------------------------------------------------------------------------- true distribution */

/* Compares forecasts with the law of the futures instead of a single outcome. docs/TRUTH.md defines
 * every number. An exam is a set of scenes with their laws. All forecasters of an exam are measured
 * with the same random draws. */
typedef struct bj_exam bj_exam;

typedef struct bj_exam_options {
    int samples;     /* draws per mode, a multiple of 4 from 16 to 4096; 0: 64 */
    uint64_t seed;   /* seed of the draws */
    int64_t limit;   /* max scenes, from the start of the cache; 0: all */
    int best_scenes; /* number of evenly spaced scenes for which the best K atoms are computed; 0:
                        none */
    int threads;     /* 0: one per available core; does not change the results */
    /* Called periodically. A nonzero return value stops the call with BJ_ELOCKED. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_exam_options;

/* Creates an exam. Cache and law must outlive it. Every scene of the cache must have a law with the
 * same frame. The law may contain more scenes. */
BJ_API BJ_CHECK bj_status bj_exam_create(bj_exam **out, const bj_cache *cache, const bj_law *law,
                                         const bj_exam_options *options, bj_error *err);
/* Creates an exam for submission files. Truth and law must outlive it. `truth` may be NULL, which
 * means all scenes of the law file. Without `truth` there is no realized score and no
 * constant-velocity baseline, and every scenario of a submission must have exactly one track.
 * bj_exam_model rejects these exams. */
BJ_API BJ_CHECK bj_status bj_exam_create_submissions(bj_exam **out, const bj_truth *truth,
                                                     const bj_law *law,
                                                     const bj_exam_options *options, bj_error *err);
BJ_API void bj_exam_free(bj_exam *exam);
BJ_API int64_t bj_exam_scenes(const bj_exam *exam);
BJ_API int bj_exam_samples(const bj_exam *exam);

/* A mean over scenes and its standard error. */
typedef struct bj_estimate {
    double mean, error;
} bj_estimate;

enum { BJ_EXAM_BINS = 10 };

typedef struct bj_exam_bin {
    int64_t count;            /* pairs of scene and maneuver */
    double predicted, actual; /* mean probabilities; NaN if the bin is empty */
} bj_exam_bin;

typedef struct bj_exam_report {
    int64_t scenes;
    int atoms;
    /* Errors are Monte Carlo standard errors. d is the RMS distance over steps in meters. X is a
     * branch drawn from the forecast, and Y is a future drawn from the law. */
    bj_estimate discrepancy;     /* D^2 = 2 E d(X,Y) - E d(X,X') - E d(Y,Y') */
    double discrepancy_spread;   /* standard error of the mean due to the choice of scenes */
    bj_estimate floor;           /* 1/2 E d(Y,Y') */
    bj_estimate expected_es;     /* expected Energy Score under the law, from independent draws */
    bj_estimate difference;      /* expected_es - (discrepancy / 2 + floor), which is 0 in theory */
    double tolerated;            /* max allowed |difference| in standard errors: 5, or more if there
                                    are very few scenes */
    int identity;                /* 1: difference is within `tolerated` */
    int64_t realized;            /* scenes with a known future */
    bj_estimate realized_es;     /* Energy Score for the known futures; the error is due to the
                                    choice of scenes */
    double surprise;             /* (realized - expected score), divided by the standard error of
                                    drawing one future per scene; a large value means that the
                                    futures were not drawn from this law */
    /* Results of the best possible K atoms, on a sample of scenes. */
    int64_t best_scenes;         /* if 0, the next four values are NaN */
    bj_estimate best;            /* discrepancy of the best K atoms */
    bj_estimate best_own;        /* discrepancy of the forecaster on the same scenes */
    double capacity, learning;   /* best / best_own and 1 - best / best_own */
    /* Modes of the law. A mode is found if a trajectory is within 2 m (RMS) of its mean. */
    int64_t modes;
    double recall, recall_mass;  /* share of modes that are found; mean true mass of these modes */
    double mass_error, unexplained;
    /* Maneuver probabilities: stop, straight, left, right. */
    double maneuver_error;       /* mean total variation over scenes */
    double brier_excess;         /* sum of (predicted - true probability)^2 */
    double brier_floor;          /* Brier score of the true probabilities */
    double calibration_error;    /* mean |predicted - true| over the bins, weighted by count */
    bj_exam_bin bins[BJ_EXAM_BINS]; /* by predicted probability */
} bj_exam_report;

/* Fills weights (count,K) and trajectories (count,K,60,2), in scene frames, for scenes first ..
 * first + count - 1 of the cache. Called in ascending order. */
typedef bj_status (*bj_forecaster)(void *context, double *weights, double *trajectories,
                                   int64_t first, int count, bj_error *err);

BJ_API BJ_CHECK bj_status bj_exam_run(bj_exam_report *report, bj_exam *exam, int K,
                                      bj_forecaster forecaster, void *context, bj_error *err);
BJ_API BJ_CHECK bj_status bj_exam_model(bj_exam_report *report, bj_exam *exam,
                                        const bj_model *model, bj_error *err);

/* Measures a submission file from any model. Every scenario of the exam must be in the file, and
 * the file must pass every check of bj_score with at most `max_modes` modes (0:
 * BJ_SUBMISSION_MODES). Otherwise the call fails with BJ_EMISMATCH, and the message contains the
 * first violation. Scenarios with fewer modes than others are padded with modes of probability
 * 0. */
BJ_API BJ_CHECK bj_status bj_exam_submission(bj_exam_report *report, bj_exam *exam,
                                             const bj_submission *submission, int max_modes,
                                             bj_error *err);

/* Lower bound on the discrepancy of a forecaster that sees only a model's inputs. It is the mean
 * discrepancy between laws and their mixtures over the hidden quantities, which is 0 for version 2
 * of the world. */
typedef struct bj_blind_report {
    int64_t scenes;
    bj_estimate discrepancy; /* all quantities hidden */
    double spread;           /* standard error of the mean due to the choice of scenes */
    bj_estimate control;     /* only the junction control hidden */
    bj_estimate limits;      /* only the speed limits hidden */
} bj_blind_report;

/* Measures at most `scenes` evenly spaced scenes. The law file must contain the seed, split and
 * world version of its scenes. */
BJ_API BJ_CHECK bj_status bj_exam_blind(bj_blind_report *report, bj_exam *exam, int64_t scenes,
                                        bj_error *err);

typedef enum bj_baseline {
    BJ_BASELINE_VELOCITY, /* constant last observed velocity; one atom */
    BJ_BASELINE_MODES,    /* means of the K modes of the law with the largest weights,
                             renormalized */
    BJ_BASELINES
} bj_baseline;

BJ_API const char *bj_baseline_name(bj_baseline baseline); /* "constant-velocity", ... */
BJ_API BJ_CHECK bj_status bj_exam_baseline(bj_exam_report *report, bj_exam *exam,
                                           bj_baseline baseline, int K, bj_error *err);

/* ---------------------------------------------------------------------------------- statistics */

/* Properties of a metric. Formulas of this section: docs/STATISTICS.md. */
typedef struct bj_metric_info {
    const char *name;  /* name in bj_metric_values and in files */
    const char *title; /* name in tables */
    int better;        /* -1: lower is better; 1: higher is better; 0: neither or unknown */
    int digits;        /* number of decimals to print */
    const char *unit;  /* "m", "branches", ...; "" for numbers without a unit */
} bj_metric_info;

BJ_API int bj_metric_count(void);
BJ_API bj_metric_info bj_metric_at(int index);
BJ_API int bj_metric_find(const char *name); /* index, or -1 */
/* Returns the field of a metric, or NaN for a metric that is measured elsewhere. */
BJ_API double bj_metric_value(const bj_metric_values *values, int index);
/* Sets a metric. Returns 0 if the metric is not a field of bj_metric_values. */
BJ_API int bj_metric_set(bj_metric_values *values, int index, double value);

/* Returns the p-quantile of Student's t distribution for any degrees of freedom >= 1, with a
 * relative error of at most 1e-10. Returns NaN outside the domain. */
BJ_API double bj_student_quantile(double p, double degrees);

typedef struct bj_summary {
    int n;
    double mean, sd; /* the SD has divisor n - 1 and is NaN for fewer than two values */
    double lowest, highest;
} bj_summary;

/* Comparison of two arms with the same seeds. Differences are a - b. */
typedef struct bj_comparison {
    bj_summary a, b, difference;
    double low, high;          /* paired-t interval of the mean difference; NaN for fewer than two
                                  seeds */
    double improvement;        /* relative improvement of a's mean over b's, positive if a is
                                  better; NaN if the metric has no direction of improvement or the
                                  mean of b is 0 */
    int lower, equal, higher;  /* number of seeds for which a is lower than b, equal to b, or higher
                                  than b */
    int better;                /* bj_metric_info.better of the metric */
} bj_comparison;

BJ_API bj_summary bj_summarize(const double *values, int n); /* all NaN for n = 0 */
/* Compares a and b (n), which have the same seeds in the same order. `level` is in (0,1), usually
 * .95. */
BJ_API BJ_CHECK bj_status bj_compare_paired(bj_comparison *out, const double *a, const double *b,
                                            int n, int better, double level, bj_error *err);

/* A table of values by arm, metric and seed. */
typedef struct bj_seeds bj_seeds;

/* Reads a CSV file with the columns arm, seed, metric and value in any order. If the path is a
 * folder, reads its seeds.csv. Arms keep the file order, and seeds are sorted. Metrics are in the
 * order of bj_metric_at, followed by unknown metrics. */
BJ_API BJ_CHECK bj_status bj_seeds_read(bj_seeds **out, const char *path, bj_error *err);
/* Creates the table from a list. Error messages start with `source`. Names are copied. See
 * bj_campaign_seeds for the values of a campaign. */
typedef struct bj_seed_value {
    const char *arm, *metric;
    int64_t seed;
    double value;
} bj_seed_value;
BJ_API BJ_CHECK bj_status bj_seeds_create(bj_seeds **out, const char *source,
                                          const bj_seed_value *values, int count, bj_error *err);
BJ_API void bj_seeds_free(bj_seeds *seeds);
BJ_API int bj_seeds_arm_count(const bj_seeds *seeds);
BJ_API const char *bj_seeds_arm(const bj_seeds *seeds, int arm);
BJ_API int bj_seeds_find_arm(const bj_seeds *seeds, const char *name); /* index, or -1 */
BJ_API int bj_seeds_metric_count(const bj_seeds *seeds);
BJ_API bj_metric_info bj_seeds_metric(const bj_seeds *seeds, int metric);
BJ_API int bj_seeds_find_metric(const bj_seeds *seeds, const char *name); /* index, or -1 */
BJ_API int bj_seeds_count(const bj_seeds *seeds);
BJ_API int64_t bj_seeds_seed(const bj_seeds *seeds, int seed);
/* Returns NaN if there is no value. */
BJ_API double bj_seeds_value(const bj_seeds *seeds, int arm, int metric, int seed);
/* Fails if the arms have different seeds for a metric. The message lists the missing (arm, seed)
 * pairs. An arm without any value of the metric counts as not measured, which is not an error. */
BJ_API BJ_CHECK bj_status bj_seeds_check(const bj_seeds *seeds, const int *arms, int arm_count,
                                         int metric, bj_error *err);
/* Summarizes the available seeds. */
BJ_API bj_summary bj_seeds_summary(const bj_seeds *seeds, int arm, int metric);
/* Compares two arms on the seeds that they have in common. Fails if only one arm has a seed, unless
 * `partial` is set. */
BJ_API BJ_CHECK bj_status bj_seeds_compare(bj_comparison *out, const bj_seeds *seeds, int a, int b,
                                           int metric, double level, int partial, bj_error *err);

/* Mean difference over scenes with its percentile bootstrap interval. */
typedef struct bj_bootstrap {
    double mean, low, high;
    double se; /* SD of the resampled means */
} bj_bootstrap;

/* Resamples the n scenes with replacement, using the same scenes for a and b. The models are not
 * resampled. `resamples` is usually 10,000. The result depends on the seed but not on the number of
 * threads (0: one per available core). */
BJ_API BJ_CHECK bj_status bj_bootstrap_paired(bj_bootstrap *out, const double *a, const double *b,
                                              int64_t n, int resamples, uint64_t seed, double level,
                                              int threads, bj_error *err);

/* --------------------------------------------------------------------------------- checkpoints */

/* A key and value of a file's metadata. */
typedef struct bj_fact {
    const char *key, *value;
} bj_fact;

/* Writes a safetensors file with PyTorch's parameter names. Its metadata contains the architecture,
 * the entries in `facts` and a checksum over the whole content. An existing file stays in place
 * until the new file is complete. Fails if a weight is not finite. */
BJ_API BJ_CHECK bj_status bj_model_save(const bj_model *model, const char *path,
                                        const bj_fact *facts, int count, bj_error *err);
/* Reads a model file in single or double precision. Fails unless the file contains exactly the
 * expected tensors with their shapes and finite values, and the checksum is correct. */
BJ_API BJ_CHECK bj_status bj_model_load(bj_model **out, const char *path, bj_error *err);

/* Copies a model file with its metadata. The entries in `facts` are added and replace entries with
 * the same key. With BJ_PRECISION_BF16, the copy stores 2 bytes per parameter, rounded to nearest
 * even. bj_model_load can read it. */
BJ_API BJ_CHECK bj_status bj_model_export(const char *from, const char *to, bj_precision precision,
                                          const bj_fact *facts, int count, bj_error *err);

/* A checkpoint on disk is a folder with these two files. */
#define BJ_CHECKPOINT_MODEL "model.safetensors" /* written by bj_model_save, with the facts */
#define BJ_CHECKPOINT_STATE "state.safetensors" /* optimizer, target, step, settings, random
                                                   generator */

/* Writes both files and puts them in place atomically, so `dir` always contains either the old or
 * the new checkpoint. Removes leftovers of killed writers. Fails if the folder contains other
 * files. `rng`, the caller's generator, may be NULL. Only one process may write to `dir` at a
 * time. */
BJ_API BJ_CHECK bj_status bj_trainer_save(const bj_trainer *trainer, const char *dir,
                                          const bj_rng *rng, const bj_fact *facts, int fact_count,
                                          bj_error *err);
/* Restores the state of a run. On the same instruction set, training then continues with
 * bit-identical results, for any number of threads and any max_batch. The architecture and the
 * objective and optimizer settings must match the trainer. Otherwise the call fails with
 * BJ_EMISMATCH, and the message names the first difference. rng may be NULL. Changes nothing on
 * failure. */
BJ_API BJ_CHECK bj_status bj_trainer_load(bj_trainer *trainer, const char *dir, bj_rng *rng,
                                          bj_error *err);

/* Starts stage B of the frozen anchor. Replaces the target encoder and the model's decoder with the
 * encoder and decoder of a stage A model, and freezes them. The online encoder keeps its initial
 * weights. Only valid for BJ_ANCHOR_B before the first step. K and the widths of the atoms and the
 * router may differ from the file. */
BJ_API BJ_CHECK bj_status bj_trainer_load_anchor(bj_trainer *trainer, const char *model_path,
                                                 bj_error *err);
/* Computes the SHA-256 over the target encoder and the decoder, as 64 hex digits. If the digest is
 * unchanged, neither of them has changed. */
BJ_API BJ_CHECK bj_status bj_trainer_anchor_digest(const bj_trainer *trainer, char hex[65],
                                                   bj_error *err);

/* Statistics of a set of latents. They are used to detect collapse, and in the gates of the frozen
 * anchor. */
typedef struct bj_latent_health {
    double mean_std;         /* mean over dimensions of the population standard deviation */
    double low_std_fraction; /* share of dimensions whose standard deviation is below 1e-3 */
    double entropy_rank;     /* exp of the entropy of the covariance eigenvalues */
    double participation;    /* (sum of eigenvalues)^2 / sum of their squares */
} bj_latent_health;

/* Measures latents z (B,D) with the given row stride. */
BJ_API BJ_CHECK bj_status bj_latent_health_measure(bj_latent_health *out, const bj_real *z,
                                                   size_t stride, int B, int D, bj_error *err);

/* -------------------------------------------------------------------------------------- parity */

/* Groups of tensors in a golden file: outputs, loss terms, gradients, metrics, and the weights and
 * target weights after the updates. */
enum { BJ_PARITY_O, BJ_PARITY_L, BJ_PARITY_G, BJ_PARITY_M, BJ_PARITY_S, BJ_PARITY_ST,
       BJ_PARITY_GROUPS };

typedef struct bj_parity_report {
    char name[64];                   /* case name from the file's metadata */
    double worst[BJ_PARITY_GROUPS];  /* largest error, in the error unit of the group; NaN: the
                                        group is not in the file */
    double beyond;                   /* share of updated weights whose error exceeds the
                                        tolerance */
    int compared;                    /* number of tensors compared */
    int failed;                      /* number of comparisons whose error exceeds the tolerance */
    char first_failure[256];         /* tensor, found and expected value; empty if none */
} bj_parity_report;

typedef struct bj_parity_options {
    int threads;     /* as in bj_trainer_options */
    const char *isa;
} bj_parity_options;

/* Recomputes a golden file from its weights and inputs and compares every stored tensor. */
BJ_API BJ_CHECK bj_status bj_parity_file(bj_parity_report *report, const char *path,
                                         const bj_parity_options *options, bj_error *err);
BJ_API const char *bj_parity_group_name(int group); /* "o", "l", "g", "m", "s", "st" */

/* Headers that build on the declarations above. */
#include <branchjepa/files.h>
#include <branchjepa/evaluate.h>
#include <branchjepa/run.h>
#include <branchjepa/fresh.h>
#include <branchjepa/campaign.h>
#include <branchjepa/audit.h>
#include <branchjepa/gallery.h>
#include <branchjepa/maze.h>
#include <branchjepa/maze_drive.h>
#include <branchjepa/maze_audit.h>
#include <branchjepa/maze_run.h>
#include <branchjepa/benchmark.h>

#ifdef __cplusplus
}
#endif

#endif
