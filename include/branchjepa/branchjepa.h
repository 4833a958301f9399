/* branchjepa.h - the public interface of libbranchjepa.
 *
 * Branch-JEPA predicts K weighted latent futures of a scene and decodes each of them; nothing is
 * averaged. This header covers the network, its training step, prediction, metrics and files.
 *
 * Conventions
 *   - Fallible functions return bj_status and take a nullable bj_error last.
 *   - _create / _free make and release opaque handles; _free accepts NULL.
 *   - Arrays are row-major, last index contiguous; shapes stand beside every pointer:
 *     B scenes, T observed steps, N neighbors, P polylines, Q points of a polyline, E embedding,
 *     D latent width, K branches, F future steps.
 *   - Handles are not shared between threads without a lock; each owns its worker threads.
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

/* float, or double when library and caller are built with BJ_DOUBLE. */
#ifdef BJ_DOUBLE
typedef double bj_real;
#else
typedef float bj_real;
#endif

/* ------------------------------------------------------------------------------------- errors */

typedef enum bj_status {
    BJ_OK = 0,
    BJ_EARG = 10,       /* an argument or setting makes no sense */
    BJ_EIO = 20,        /* the operating system refused a read or write */
    BJ_EFORMAT = 30,    /* a file is not what it claims to be */
    BJ_EVERSION = 31,   /* a file is of a version this library does not know */
    BJ_ENOMEM = 40,     /* an allocation failed */
    BJ_ENONFINITE = 50, /* NaN or infinity in input, weights or loss */
    BJ_ELOCKED = 60,    /* a lock or gate refused */
    BJ_EMISMATCH = 61,  /* a comparison with a reference failed */
    BJ_ECOMM = 70       /* another process did not answer */
} bj_status;

typedef struct bj_error {
    bj_status code;
    char message[512];
} bj_error;

BJ_API const char *bj_status_name(bj_status code);
BJ_API const char *bj_version(void);

/* ------------------------------------------------------------------------------ random numbers */

/* An explicit generator (xoshiro256++). Its state may be stored and restored. */
typedef struct bj_rng {
    uint64_t state[4];
} bj_rng;

BJ_API bj_rng bj_rng_seed(uint64_t seed);
BJ_API uint64_t bj_rng_next(bj_rng *rng);
BJ_API double bj_rng_uniform(bj_rng *rng); /* [0,1) */
BJ_API double bj_rng_normal(bj_rng *rng);

/* --------------------------------------------------------------------------------------- words */

/* The closest of the words offered so far, for "did you mean"; start from BJ_NEAREST(word). */
typedef struct bj_nearest {
    const char *word, *best; /* best is NULL when none was close */
    int distance;
} bj_nearest;

#define BJ_NEAREST(word)                                                                           \
    { (word), NULL, 0 }

/* Remembers the candidate if it is close enough to be a slip of the fingers and nearest so far. */
BJ_API void bj_nearest_offer(bj_nearest *nearest, const char *candidate);
/* Insertions, deletions, substitutions and swaps of neighbors that turn a into b. */
BJ_API int bj_edit_distance(const char *a, const char *b);

/* ------------------------------------------------------------------------------- architecture */

typedef enum bj_model_kind {
    BJ_MODEL_BRANCH,      /* K atoms, router (K > 1), one shared decoder */
    BJ_MODEL_OUTPUT_ONLY, /* one latent, shared trunk, base head and K residual heads */
    BJ_MODEL_FUSED,       /* K atoms and router, and one latent: their weighted mean, normalized */
    BJ_MODEL_VARIATIONAL, /* one network of context and a Gaussian variable; K readouts: the prior's
                             mean and K - 1 draws */
    BJ_MODEL_CODEBOOK     /* one atom, and K codes, the same for every context */
} bj_model_kind;

/* What the encoder sees, and how. */
typedef enum bj_encoder_kind {
    BJ_ENCODER_SCENE, /* tracks and polylines: GRU, token networks, attention, projection */
    BJ_ENCODER_STATE, /* numbers, standardized, some with sines and cosines: MLP, projection */
    BJ_ENCODER_IMAGE  /* bytes, standardized: two layers of patches, MLP, projection */
} bj_encoder_kind;

/* Learned standard deviations of the mixture-density objective. */
typedef enum bj_scales {
    BJ_SCALES_FIXED,    /* none: the objective's sigma_z and sigma_y */
    BJ_SCALES_GLOBAL,   /* one number for latents, one for trajectories */
    BJ_SCALES_COMPONENT /* one for each branch and dimension */
} bj_scales;

/* Where the weights of the branches come from. */
typedef enum bj_weighting {
    BJ_WEIGHTS_ROUTER,
    BJ_WEIGHTS_UNIFORM /* 1/K; the router is there, without a role */
} bj_weighting;

/* Every size of the network. bj_arch_paper() has the paper's values. */
typedef struct bj_arch {
    bj_model_kind kind;
    bj_scales scales;
    bj_weighting weighting;
    int obs;            /* T: observed steps of the focal track and the neighbors */
    int fut;            /* F: future steps */
    int neighbors;      /* N: most neighbors of a scene */
    int polylines;      /* P: most polylines of a scene */
    int points;         /* Q: points of a polyline */
    int embed;          /* E: GRU state, tokens, attention */
    int heads;          /* attention heads; divides embed */
    int token_hidden;   /* hidden width of the two token networks */
    int latent;         /* D */
    int proj_hidden;    /* hidden width of the projection */
    int atoms;          /* K: 1 to 64 */
    int atom_hidden;    /* hidden width of an atom */
    int router_hidden;
    int decoder_hidden;
    int trunk;          /* trunk width of the output-only control */
    double dt;          /* seconds between steps */
    /* Encoders of observations, 0 for scenes; obs, fut, neighbors, polylines, points, heads,
     * token_hidden, decoder_hidden, trunk are 0 for them: nothing is decoded. */
    bj_encoder_kind encoder;
    int state;          /* numbers of a state */
    int waves;          /* of its first numbers have sines and cosines */
    int octaves;        /* frequencies of these: pi/4, pi/2, pi, ... of a standard deviation */
    int height, width;  /* of an image, multiples of 16 */
    int channels;       /* of an image */
    int patch_in;       /* outputs of a patch of 4x4 pixels */
    int patch_out;      /* outputs of a patch of 4x4 of those */
    int action;         /* numbers of an action that atoms and router see beside the context */
    int noise;          /* variational: width of the Gaussian variable */
    int noise_hidden;   /* variational: hidden width of prior and posterior */
} bj_arch;

enum { BJ_FOCAL_FEATURES = 7, BJ_POLYLINE_FEATURES = 6, BJ_MAX_ATOMS = 64, BJ_SEGMENT_STEPS = 10 };

BJ_API bj_arch bj_arch_paper(void);       /* K = 6 */
BJ_API bj_arch bj_arch_point(void);       /* K = 1, atom 3204 wide, no router */
BJ_API bj_arch bj_arch_output_only(void); /* one latent, six outputs */
/* The mazes' models of that kind, all within 0.1 % of the parameters of eight branches and their
 * router; K = 8. BJ_MODEL_BRANCH with one_atom is the standard model, one wide branch. */
BJ_API bj_arch bj_arch_maze(bj_model_kind kind, int one_atom);
BJ_API BJ_CHECK bj_status bj_arch_check(const bj_arch *arch, bj_error *err);
/* Refuses a model (`arch`) made for scenes of other sizes than those of `scenes`. */
BJ_API BJ_CHECK bj_status bj_arch_fits(const bj_arch *arch, const bj_arch *scenes, bj_error *err);

/* -------------------------------------------------------------------------------------- scenes */

/* One scene, without empty slots. Its arrays may lie anywhere, a mapped file included: they are read
 * during a call and not kept. */
typedef struct bj_scene {
    const bj_real *focal;     /* (T,7) x, y, vx, vy, cos h, sin h, type */
    const bj_real *neighbors; /* (neighbor_count,T,7); may be NULL where there is none */
    const bj_real *polylines; /* (polyline_count,Q,6) x, y, cos d, sin d, intersection, crosswalk;
                                 may be NULL where there is none */
    const bj_real *future;    /* (F,2), or NULL where it is unknown; prediction does not read it */
    int neighbor_count, polyline_count;
} bj_scene;

/* One transition, for encoders of states or images: what was seen, what was seen next, and what was
 * done in between. As in a scene, the arrays are read where they lie and not kept. */
typedef struct bj_pair {
    const bj_real *state, *next;       /* (state) */
    const uint8_t *image, *next_image; /* (height,width,channels) */
    const bj_real *action;             /* (action); may be NULL where that is 0 */
} bj_pair; /* prediction does not read next and next_image */

/* Scenes of a batch in any order, from any number of places; or transitions. */
typedef struct bj_batch {
    int B;
    const bj_scene *scenes; /* (B) */
    const bj_pair *pairs;   /* (B) in place of scenes where the encoder sees states or images */
} bj_batch;

/* Owns the arrays of a batch, each contiguous over its scenes. */
typedef struct bj_scenes bj_scenes;

/* Drops the absent slots of padded arrays. neighbors (B,N,T,7) with nmask (B,N), polylines
 * (B,P,Q,6) with pmask (B,P); a mask is 1 where the slot is present. future may be NULL. */
BJ_API BJ_CHECK bj_status bj_scenes_from_padded(bj_scenes **out, const bj_arch *arch, int B,
                                                const bj_real *focal, const bj_real *neighbors,
                                                const uint8_t *nmask, const bj_real *polylines,
                                                const uint8_t *pmask, const bj_real *future,
                                                bj_error *err);
/* Stand-in traffic with realistic magnitudes and mask statistics, the same for the same seed. */
BJ_API BJ_CHECK bj_status bj_scenes_synthetic(bj_scenes **out, const bj_arch *arch, int B,
                                              uint64_t seed, bj_error *err);
BJ_API const bj_batch *bj_scenes_batch(const bj_scenes *scenes);
BJ_API void bj_scenes_free(bj_scenes *scenes);

/* --------------------------------------------------------------------------------------- cache */

/* Scenes on disk: one file that is mapped, never read as a whole (docs/DATA.md has the format).
 * Scenes are sorted by scenario id. A handle may be shared between threads. */
typedef struct bj_cache bj_cache;

typedef struct bj_scene_info {
    const char *scenario_id, *city, *focal_id, *focal_type; /* live as long as the cache */
    double origin[2], heading; /* frame of the scene in city coordinates */
    int neighbors, polylines;  /* used; the nearest of so many available: */
    int neighbors_available, polylines_available;
    int has_future;
    uint64_t focal_valid;  /* bit t: observed at step t */
    uint64_t future_valid; /* bit k: observed at future step k */
    int64_t map;           /* number of its drivable areas, for bj_cache_rings */
    const uint8_t *map_sha256; /* (32) of the raw map file */
} bj_scene_info;

/* Opens a cache and checks its index. `blind` hides the futures: no call reaches them then. */
BJ_API BJ_CHECK bj_status bj_cache_open(bj_cache **out, const char *path, int blind, bj_error *err);
BJ_API void bj_cache_free(bj_cache *cache);
BJ_API int64_t bj_cache_count(const bj_cache *cache);
/* Sizes of its scenes: obs, fut, neighbors, polylines, points and dt of an architecture must be
 * these; the rest of `arch` is the paper's. */
BJ_API bj_arch bj_cache_arch(const bj_cache *cache);
BJ_API bj_scene_info bj_cache_info(const bj_cache *cache, int64_t index);
/* Number of the scene of that id, or -1. */
BJ_API int64_t bj_cache_find(const bj_cache *cache, const char *scenario_id);
/* SHA-256 over index and scene digests, 64 digits: names the content of the whole file. */
BJ_API const char *bj_cache_digest(const bj_cache *cache);
/* A fact of the file ("split", "features", ...), or NULL. */
BJ_API const char *bj_cache_fact(const bj_cache *cache, const char *key);
/* Recomputes the digest of one scene, or of one map's areas; the message names what is damaged. */
BJ_API BJ_CHECK bj_status bj_cache_verify(const bj_cache *cache, int64_t index, bj_error *err);
/* Where the arrays of a scene lie in the mapped file, as floats. future is NULL when unknown or
 * hidden. Nothing is copied. */
typedef struct bj_scene_floats {
    const float *focal, *neighbors, *polylines, *future;
} bj_scene_floats;
BJ_API bj_scene_floats bj_cache_floats(const bj_cache *cache, int64_t index);
/* Drivable areas of a map: rings of points in city coordinates, the first point not repeated.
 * bj_cache_ring fills points (bj_cache_ring_size,2). */
BJ_API int bj_cache_rings(const bj_cache *cache, int64_t map);
BJ_API int bj_cache_ring_size(const bj_cache *cache, int64_t map, int ring);
BJ_API void bj_cache_ring(double *points, const bj_cache *cache, int64_t map, int ring);
/* Writes one scene as a safetensors file of padded arrays, as docs/DATA.md lists them. */
BJ_API BJ_CHECK bj_status bj_cache_export(const bj_cache *cache, int64_t index, const char *path,
                                          bj_error *err);

/* -------------------------------------------------------------------------------------- loader */

/* Fit and development scenes: a scene is for development when the first 8 bytes of
 * SHA-256(scenario_id), as a fraction of 2^64, are below 9944/199908. */
typedef enum bj_part { BJ_PART_ALL, BJ_PART_FIT, BJ_PART_DEV } bj_part;
BJ_API int bj_is_dev(const char *scenario_id); /* 1, 0, or -1: libcrypto has no memory left */

/* Batches of a cache in an order that depends on seed and epoch alone, hence is the same for every
 * arm of a seed; the last batch of an epoch may be smaller. Scenes without a future are left out
 * when `needs_future`. Scenes are handed out where they lie in the file. */
typedef struct bj_loader bj_loader;

typedef struct bj_loader_options {
    bj_part part;
    int batch;         /* scenes of a batch */
    int shuffle;       /* 0: in the order of the cache */
    uint64_t seed;
    int needs_future;
} bj_loader_options;

BJ_API BJ_CHECK bj_status bj_loader_create(bj_loader **out, const bj_cache *cache,
                                           const bj_loader_options *options, bj_error *err);
BJ_API void bj_loader_free(bj_loader *loader);
BJ_API int64_t bj_loader_scenes(const bj_loader *loader); /* of an epoch */
BJ_API int64_t bj_loader_steps(const bj_loader *loader);  /* batches of an epoch */
/* Batch `step` of epoch `epoch`, both from 0; valid until the next call. numbers (B), when not
 * NULL, receives the scenes' numbers in the cache. */
BJ_API BJ_CHECK bj_status bj_loader_batch(const bj_batch **out, const int64_t **numbers,
                                          bj_loader *loader, int64_t epoch, int64_t step,
                                          bj_error *err);

/* --------------------------------------------------------------------------------- preparation */

typedef struct bj_prep_options {
    const char *const *roots; /* folders to walk */
    int root_count;
    const char *split; /* "train", "val", "test", or NULL: whatever lies below the roots */
    int jobs;          /* 0: one per available core */
    int strict;        /* stop at the first scene that is refused */
    int restart;       /* forget an interrupted run instead of continuing it */
    int force;         /* replace a cache that is there already */
    int dry_run;       /* only find out what there is: fills found and bytes, writes nothing */
    int64_t limit;     /* only so many scenarios, the first by id; 0: all */
    /* Called from the calling thread before the first scene and after each one; the run stops,
     * resumable, when it returns not 0. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total, int64_t rejected);
    void *context;
} bj_prep_options;

typedef struct bj_prep_report {
    int64_t found, resumed, accepted, rejected; /* scenes */
    int64_t without_future, maps;
    int64_t bytes;    /* of the cache; of a dry run, what it cannot exceed apart from its polygons */
    int interrupted;  /* progress asked to stop: there is no cache yet */
    char digest[65];
} bj_prep_report;

/* Bytes of a cache of that many scenes with every slot taken, without its polygons. */
BJ_API int64_t bj_cache_most_bytes(int64_t scenes);

/* Walks the official layout and writes a cache; scenes that cannot be used are listed with their
 * reasons in PATH.rejects.jsonl. An interrupted run leaves PATH.partial behind, and the next one
 * continues it: the bytes of the result depend neither on jobs nor on interruptions. */
BJ_API BJ_CHECK bj_status bj_prep(bj_prep_report *report, const char *path,
                                  const bj_prep_options *options, bj_error *err);

/* One scenario ready for bj_predict. `folder` holds one scenario_ID.parquet and its map file; that
 * parquet file may be named instead. */
typedef struct bj_scenario_scene bj_scenario_scene;
BJ_API BJ_CHECK bj_status bj_scenario_open(bj_scenario_scene **out, const char *folder,
                                           bj_error *err);
BJ_API void bj_scenario_free(bj_scenario_scene *scene);
BJ_API bj_scene_info bj_scenario_info(const bj_scenario_scene *scene); /* map is -1 */
BJ_API bj_scene_floats bj_scenario_floats(const bj_scenario_scene *scene);
BJ_API const bj_batch *bj_scenario_batch(const bj_scenario_scene *scene); /* that one scene */
/* Drivable areas of its map, as bj_cache_rings and its companions have them. */
BJ_API int bj_scenario_rings(const bj_scenario_scene *scene);
BJ_API int bj_scenario_ring_size(const bj_scenario_scene *scene, int ring);
BJ_API void bj_scenario_ring(double *points, const bj_scenario_scene *scene, int ring);

/* Every scenario below a folder, as bj_prep finds them, in the order of their ids. */
typedef struct bj_scenario_list bj_scenario_list;
BJ_API BJ_CHECK bj_status bj_scenario_list_create(bj_scenario_list **out, const char *root,
                                                  bj_error *err);
BJ_API void bj_scenario_list_free(bj_scenario_list *list);
BJ_API int64_t bj_scenario_list_count(const bj_scenario_list *list);
BJ_API const char *bj_scenario_list_id(const bj_scenario_list *list, int64_t index);
/* Keeps its buffers from call to call; the scene outlives the list. */
BJ_API BJ_CHECK bj_status bj_scenario_list_open(bj_scenario_scene **out, bj_scenario_list *list,
                                                int64_t index, bj_error *err);

/* Points of a scene's frame (count,2) in city coordinates, and back. */
BJ_API void bj_to_city(double *out, const double *points, int count, const double origin[2],
                       double heading);
BJ_API void bj_from_city(double *out, const double *points, int count, const double origin[2],
                         double heading);

/* ------------------------------------------------------------------------------ simulated world */

/* Made-up traffic in the official format whose distribution of futures is known exactly
 * (docs/WORLD.md). Scene i of (version, seed, split) is the same whatever else is made, on every
 * machine. In version 2 the law depends on nothing that the features of a scene do not show. */
enum { BJ_WORLD_VERSION = 2 };

typedef struct bj_world_options {
    int version; /* 1 or 2; 0: the default, BJ_WORLD_VERSION */
    uint64_t seed;
    const char *split; /* NULL: "train"; letters, digits, '-' and '_', at most 31 */
    int64_t scenes;    /* 0 .. scenes - 1; at most 2^32 */
    int jobs;          /* 0: one per available core */
    int restart;       /* forget an interrupted run; caches only */
    int force;         /* replace what is there already */
    /* As in bj_prep_options. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_world_options;

typedef struct bj_world_report {
    int64_t scenes, resumed, towns;
    int64_t modes;            /* of the laws of all scenes */
    int64_t bytes, law_bytes; /* of the cache, 0 for folders; of the law */
    int interrupted;          /* progress asked to stop: neither cache nor law are there yet */
    char digest[65];          /* of the cache */
} bj_world_report;

/* A cache, with the same bytes as from the folders below, and CACHE.law.safetensors beside it.
 * Continues an interrupted run. */
BJ_API BJ_CHECK bj_status bj_world_to_cache(bj_world_report *report, const char *cache,
                                            const bj_world_options *options, bj_error *err);
/* Folders <id>/scenario_<id>.parquet and <id>/log_map_archive_<id>.json in `folder`, which is
 * created, and law.safetensors. Scenario files that are there already are replaced. */
BJ_API BJ_CHECK bj_status bj_world_to_folders(bj_world_report *report, const char *folder,
                                              const bj_world_options *options, bj_error *err);
/* Further futures of the prefix of one scene: futures (draws,60,2) in its frame, modes (draws),
 * which may be NULL. Draw 0 is what the data shows. Versions are those of bj_world_options. */
BJ_API BJ_CHECK bj_status bj_world_redraw(double *futures, int *modes, int version,
                                          uint64_t seed, const char *split, int64_t index,
                                          int64_t first, int64_t draws, bj_error *err);

/* The laws of scenes, from a file that nothing that trains opens. */
typedef struct bj_law bj_law;
enum { BJ_LAW_FACTORS_MAX = 16 };

/* future = means[m] + sum_r z_r factor[m][r] + jitter e, m drawn by weight, z and e independent with
 * mean 0 and variance 1, z normal. Everything in the frame of the scene. */
typedef struct bj_law_scene {
    const char *scenario_id;
    double origin[2], heading; /* of the frame, in city coordinates */
    int modes, factors;
    int realized;              /* mode of the future that the data shows */
    double jitter;             /* m */
    const double *weights;     /* (modes) most likely first */
    const uint8_t *intents;    /* (modes) names: bj_law_intent */
    const float *means;        /* (modes,60,2) */
    const float *factor;       /* (modes,factors,60,2) */
} bj_law_scene;

BJ_API BJ_CHECK bj_status bj_law_open(bj_law **out, const char *path, bj_error *err);
BJ_API void bj_law_free(bj_law *law);
BJ_API int64_t bj_law_count(const bj_law *law);
BJ_API const char *bj_law_fact(const bj_law *law, const char *key); /* "seed", "split", "world", or NULL */
BJ_API int64_t bj_law_find(const bj_law *law, const char *scenario_id); /* or -1 */
BJ_API bj_law_scene bj_law_at(const bj_law *law, int64_t index); /* lives as long as the law */
BJ_API const char *bj_law_intent(const bj_law *law, int intent); /* "left", ..., or NULL */
/* Computes SHA-256 over the stored digests of all scenes, 64 digits: names the content of the file. */
BJ_API BJ_CHECK bj_status bj_law_digest(char hex[65], const bj_law *law, bj_error *err);
/* Recomputes the digest of one scene. */
BJ_API BJ_CHECK bj_status bj_law_verify(const bj_law *law, int64_t index, bj_error *err);
/* One draw: future (60,2). Returns its mode. */
BJ_API int bj_law_sample(double *future, const bj_law_scene *scene, bj_rng *rng);

/* Laws mixed over what the features of a scene hide (docs/TRUTH.md): what can be known of a law from
 * the inputs of a model. In version 2 of the world they hide nothing. */
typedef struct bj_law_blind bj_law_blind;
enum { BJ_HIDDEN_CONTROL = 1, BJ_HIDDEN_LIMITS = 2, BJ_HIDDEN_ALL = 3 };

/* The law is borrowed. Scenes are made again from its seed, split and world version. */
BJ_API BJ_CHECK bj_status bj_law_blind_create(bj_law_blind **out, const bj_law *law, bj_error *err);
BJ_API void bj_law_blind_free(bj_law_blind *blind);
/* Fills the mixture of scene `index` of the law over the quantities of `hidden`, at most 192 modes in
 * no order, without a realized mode (-1). It lives until the next call. */
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

/* Parameter counts as the paper reports them: what is trained. Means and scales of inputs and codes
 * are not. */
typedef struct bj_counts {
    size_t encoder, atoms, router, decoder, scales;
    size_t downstream; /* everything but the encoder and the mixture scales */
    size_t total;      /* encoder + downstream */
} bj_counts;

/* Fresh weights with PyTorch's default distributions from the given seed. */
BJ_API BJ_CHECK bj_status bj_model_create(bj_model **out, const bj_arch *arch, uint64_t seed,
                                          bj_error *err);
/* Replaces the weights of a fresh model by those conditioned training starts from (bj_optim). */
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
    BJ_FULLSET,        /* Energy Score of the whole weighted set; with K = 1 the point control */
    BJ_UNIFORM,        /* the same with weights 1/K */
    BJ_SPECIALIZATION, /* winner takes all */
    BJ_SOFTWTA,        /* softly assigned */
    BJ_SINKHORN,       /* half hard winner, half balanced plan over the batch */
    BJ_MDN,            /* mixture likelihood */
    BJ_OUTPUTONLY,     /* one latent, Energy Score over K outputs */
    BJ_ANCHOR_A,       /* future-view encoder and decoder with variance and rank floors */
    BJ_ANCHOR_B,       /* latent Energy Score against a frozen target and decoder */
    BJ_FUSED,          /* distance of the normalized weighted mean of all latents */
    BJ_VARIATIONAL     /* distance of a latent drawn with the posterior's noise, and KL */
} bj_objective_kind;

typedef struct bj_objective {
    bj_objective_kind kind;
    double lambda_z, lambda_y, lambda_rec; /* latent, decoded, reconstruction weights */
    double lambda_router;                  /* cross-entropy of the winner-takes-all family */
    double beta;                           /* time weight beta^t of the decoded distance, (0,1] */
    double tau;                            /* soft-WTA temperature */
    double rho, eps;                       /* Sinkhorn share and entropy */
    int sinkhorn_iters;
    int sigreg_slices;                     /* random directions of SIGReg: 256 */
    double sigma_z, sigma_y, usage_kl;     /* mixture density */
    double variance_floor;                 /* anchor stage A: .02 */
    double rank_floor, rank_weight;        /* anchor stage A: 8, .25 */
    double floor_weight;                   /* of both floors under the normalized contexts of a
                                              batch, in every other objective without decoder */
    double kl_weight;                      /* variational */
    /* Regularizers of the online encoder's output before normalization, in every objective
     * (docs/layers/regularizers.md); 0 turns a term off. */
    double sigreg;                              /* weight of SIGReg */
    double vicreg_variance, vicreg_covariance;  /* weights of two VICReg terms */
    double vicreg_gamma;                        /* VICReg's target standard deviation: 1 */
} bj_objective;

BJ_API bj_objective bj_objective_default(bj_objective_kind kind);
BJ_API BJ_CHECK bj_status bj_objective_check(const bj_objective *objective, const bj_arch *arch,
                                             bj_error *err);
BJ_API const char *bj_objective_name(bj_objective_kind kind);
BJ_API BJ_CHECK bj_status bj_objective_find(bj_objective_kind *out, const char *name,
                                            bj_error *err);

/* The unweighted terms of a loss, means over the batch; a term the objective lacks stays 0. */
typedef struct bj_loss {
    double total;
    double latent, decoded, rec, router;
    double usage; /* mixture density: penalty on uneven use; variational: KL divergence */
    double variance, rank, participation; /* of floors; participation is the rank itself */
    double sigreg, vicreg_variance, vicreg_covariance; /* regularizers; 0 if the weight is 0 */
} bj_loss;

/* ------------------------------------------------------------------------------------ training */

typedef struct bj_trainer bj_trainer;

typedef struct bj_optim {
    double beta1, beta2, eps; /* .9, .999, 1e-8 */
    double weight_decay;      /* 1e-2, on every trained tensor */
    double clip;              /* 5, global gradient norm */
    double ema;               /* .996 */
    /* 1: AdamW steps theta, where the weights are w = sigma theta and sigma follows from the units of
     * inputs and outputs (docs/TRAINING.md). Gradients, their norm and both moments are those of
     * theta. Start from bj_model_condition. 0: sigma is 1. */
    int conditioned;
} bj_optim;

BJ_API bj_optim bj_optim_default(void);

typedef enum bj_schedule_kind {
    BJ_SCHEDULE_COSINE,   /* half a cosine from `base` to zero */
    BJ_SCHEDULE_LINEAR,   /* a straight line from `base` to zero */
    BJ_SCHEDULE_TRAPEZOID /* `base`, then a straight line to zero over the last `decay` of the updates */
} bj_schedule_kind;

typedef struct bj_schedule {
    bj_schedule_kind kind;
    double base;           /* learning rate after the warm-up */
    double decay;          /* in (0, 1], trapezoid only */
    long updates, warmup;  /* updates in all, and of the linear warm-up at the start */
} bj_schedule;

/* Returns the learning rate of update `step`, which counts from 0. */
BJ_API double bj_lr_at(const bj_schedule *schedule, long step);
/* Finds "cosine", "linear" or "trapezoid"; returns -1 for another name. */
BJ_API int bj_schedule_find(const char *name);

typedef struct bj_trainer_options {
    bj_objective objective;
    bj_optim optim;
    int max_batch;   /* largest B a step will see */
    int threads;     /* 0: one per available core */
    const char *isa; /* NULL: BJ_ISA from the environment, else the best available */
    uint64_t seed;   /* of the variational model's noise and of SIGReg's directions */
} bj_trainer_options;

/* Seconds spent in the rounds of all steps so far. */
typedef struct bj_profile {
    double prepare, scenes, gradients, unfold, update;
} bj_profile;

typedef struct bj_step_report {
    bj_loss loss;
    double grad_norm; /* before clipping */
    long step;        /* updates done, this one included */
} bj_step_report;

/* The trainer borrows the model and updates it in place. The target starts as a copy of it. */
BJ_API BJ_CHECK bj_status bj_trainer_create(bj_trainer **out, bj_model *model,
                                            const bj_trainer_options *options, bj_error *err);
BJ_API void bj_trainer_free(bj_trainer *trainer);
/* One update: forward, loss, backward, clip, AdamW, EMA. Nothing changes when it fails. */
BJ_API BJ_CHECK bj_status bj_trainer_step(bj_trainer *trainer, const bj_batch *batch, double lr,
                                          bj_step_report *report, bj_error *err);
/* Loss and gradients only; weights stay. */
BJ_API BJ_CHECK bj_status bj_trainer_gradients(bj_trainer *trainer, const bj_batch *batch,
                                               bj_step_report *report, bj_error *err);
/* Gradient of a tensor after the last call above, of theta in conditioned training; data is NULL
 * where no term reached it. */
BJ_API bj_tensor bj_trainer_gradient(const bj_trainer *trainer, int index);
/* The target encoder's tensor with the name of the online one, by index; data is NULL outside the
 * encoder. The caller may write to it before the first step. */
BJ_API bj_tensor bj_trainer_target(const bj_trainer *trainer, int index);

/* Updates done so far, those of the run a checkpoint came from included. */
BJ_API long bj_trainer_updates(const bj_trainer *trainer);
BJ_API bj_profile bj_trainer_profile(const bj_trainer *trainer);
BJ_API const char *bj_trainer_isa(const bj_trainer *trainer);

/* What the last forward pass of the trainer produced. */
typedef struct bj_outputs {
    int B, K, latents, D, F;  /* latents = K, or 1 for the output-only control */
    const bj_real *context;   /* (B,D) rows context_stride apart */
    const bj_real *atoms;     /* (B,latents,D) rows atom_stride apart */
    const bj_real *logits;    /* (B,K) */
    const bj_real *weights;   /* (B,K) softmax of the logits, or 1/K for the uniform objective */
    const bj_real *decoded;   /* (B,K,F,2) rows decoded_stride apart */
    const bj_real *target;    /* (B,D) normalized target latent, rows atom_stride apart */
    const bj_real *recon;     /* (B,F,2) decoded target, rows decoded_stride apart */
    const bj_real *future;    /* (B,F,2) the true futures of the batch, as bj_metrics_add takes them */
    size_t context_stride, atom_stride, decoded_stride;
} bj_outputs;

BJ_API bj_outputs bj_trainer_outputs(const bj_trainer *trainer);

/* ---------------------------------------------------------------------------------- prediction */

typedef struct bj_predictor bj_predictor;

typedef enum bj_precision { BJ_PRECISION_FULL, BJ_PRECISION_BF16 } bj_precision;

typedef struct bj_predictor_options {
    int max_batch;
    int threads;     /* 0: one per available core */
    bj_precision precision; /* how the weights are stored */
    const char *isa; /* as in bj_trainer_options */
} bj_predictor_options;

/* Copies what it needs of the model: the model may be freed or trained on afterwards. */
BJ_API BJ_CHECK bj_status bj_predictor_create(bj_predictor **out, const bj_model *model,
                                              const bj_predictor_options *options, bj_error *err);
BJ_API void bj_predictor_free(bj_predictor *predictor);
/* Latents that prediction gives for a context: K, or 1 for output-only and fused models. */
BJ_API int bj_arch_latents(const bj_arch *arch);
/* All K branches: weights (B,K) and trajectories (B,K,F,2); atoms (B,latents,D) may be NULL. Models
 * of states and images give weights and atoms; trajectories are not read. */
BJ_API BJ_CHECK bj_status bj_predict(bj_predictor *predictor, const bj_batch *batch,
                                     bj_real *weights, bj_real *trajectories, bj_real *atoms,
                                     bj_error *err);
BJ_API const char *bj_predictor_isa(const bj_predictor *predictor);

/* ------------------------------------------------------------------------------------- metrics */

typedef struct bj_metrics bj_metrics;

/* Means over all scenes added so far. NaN where a metric does not apply. */
typedef struct bj_metric_values {
    double scenes;
    double traj_es, traj_obs, traj_disp;
    double end_es, latent_es;
    double exp_ade, exp_fde;
    double top1_ade, top1_fde, top1_mr;
    double min_ade, min_fde, min_mr; /* diagnostics only */
    double brier, ece;
    double exp_entropy, active_heads, neff_collision, dedup_support;
} bj_metric_values;

/* latents is K, 1, or 0 for forecasts without latents: those may have up to K modes each, other
 * numbers in other calls, and need neither atoms nor targets; latent metrics are NaN. */
BJ_API BJ_CHECK bj_status bj_metrics_create(bj_metrics **out, int K, int latents, int D, int F,
                                            bj_error *err);
BJ_API void bj_metrics_free(bj_metrics *metrics);
BJ_API void bj_metrics_reset(bj_metrics *metrics);
/* Adds outputs->B scenes whose true futures are future (B,F,2). */
BJ_API BJ_CHECK bj_status bj_metrics_add(bj_metrics *metrics, const bj_outputs *outputs,
                                         const bj_real *future, bj_error *err);
BJ_API bj_metric_values bj_metrics_values(const bj_metrics *metrics);

/* --------------------------------------------------------------------------------- submissions */

/* Forecasts of anybody's model in the official challenge format: a Parquet file with one row for
 * each scenario, track and mode; 60 points in city coordinates each (docs/SCORE.md). */
enum { BJ_SUBMISSION_STEPS = 60, BJ_SUBMISSION_MODES = 6 };

typedef struct bj_submission_writer bj_submission_writer;

BJ_API BJ_CHECK bj_status bj_submission_writer_create(bj_submission_writer **out, const char *path,
                                                      bj_error *err);
/* Appends a track: probabilities (modes), trajectories (modes,60,2) in city coordinates. Refused is
 * what the check of a score would find in it: numbers that are not finite, probabilities outside
 * [0,1] or with another sum than 1, an empty id. */
BJ_API BJ_CHECK bj_status bj_submission_writer_add(bj_submission_writer *writer,
                                                   const char *scenario_id, const char *track_id,
                                                   int modes, const double *probabilities,
                                                   const double *trajectories, bj_error *err);
/* Publishes the file, or removes it on failure. Frees the writer and sets it to NULL either way. */
BJ_API BJ_CHECK bj_status bj_submission_writer_commit(bj_submission_writer **writer, bj_error *err);
BJ_API void bj_submission_writer_abort(bj_submission_writer **writer); /* accepts NULL */

/* A submission that was read: decoded as a whole, not checked. */
typedef struct bj_submission bj_submission;

typedef struct bj_submission_row {
    const char *scenario_id, *track_id; /* NULL where the file has none */
    double probability;                 /* NaN where the file has none */
    const double *x, *y;                /* (x_count), (y_count) */
    int64_t x_count, y_count;
} bj_submission_row;

BJ_API BJ_CHECK bj_status bj_submission_open(bj_submission **out, const char *path, bj_error *err);
BJ_API void bj_submission_free(bj_submission *submission);
BJ_API int64_t bj_submission_rows(const bj_submission *submission);
BJ_API bj_submission_row bj_submission_at(const bj_submission *submission, int64_t row);
/* Scenarios are numbered in the order of their first rows. */
BJ_API int64_t bj_submission_scenarios(const bj_submission *submission);
BJ_API const char *bj_submission_scenario(const bj_submission *submission, int64_t scenario);
/* Number of the scenario of that id, or -1. */
BJ_API int64_t bj_submission_find(const bj_submission *submission, const char *scenario_id);
/* Its rows: tracks one after the other, in the order of the file within a track. (*count) */
BJ_API const int64_t *bj_submission_rows_of(int64_t *count, const bj_submission *submission,
                                            int64_t scenario);

typedef struct bj_submit_options {
    int threads; /* as in bj_predictor_options */
    bj_precision precision;
    const char *isa;
    /* Called now and then; stops without a file, BJ_OK, when it returns not 0. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_submit_options;

/* Predicts every scene of a cache and writes the submission. The router's weights, single precision
 * numbers that sum to one up to rounding, are divided by their sum in double; nothing else happens
 * to them. Returns the scenes written through `scenes`, 0 when progress stopped the run. */
BJ_API BJ_CHECK bj_status bj_submit(int64_t *scenes, const char *path, const bj_model *model,
                                    const bj_cache *cache, const bj_submit_options *options,
                                    bj_error *err);

/* --------------------------------------------------------------------------------------- score */

/* What really happened, to hold forecasts against: a cache, or scenario files below a folder (their
 * maps are not needed). */
typedef struct bj_truth bj_truth;

typedef struct bj_truth_options {
    int threads; /* 0: one per available core; for folders */
    /* As in bj_submit_options; stopping is BJ_ELOCKED. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_truth_options;

BJ_API BJ_CHECK bj_status bj_truth_open(bj_truth **out, const char *path,
                                        const bj_truth_options *options, bj_error *err);
BJ_API void bj_truth_free(bj_truth *truth);
BJ_API int64_t bj_truth_count(const bj_truth *truth);
/* Scenarios that could not be read; the reason names the file. */
BJ_API int64_t bj_truth_failures(const bj_truth *truth);
BJ_API const char *bj_truth_failure(const bj_truth *truth, int64_t index);

typedef enum bj_violation_kind {
    BJ_VIOLATION_ID,            /* a row without scenario or track id */
    BJ_VIOLATION_POINTS,        /* not 60 points */
    BJ_VIOLATION_NONFINITE,     /* a coordinate that is NaN or infinite */
    BJ_VIOLATION_PROBABILITY,   /* missing, not finite, negative or above one */
    BJ_VIOLATION_SUM,           /* probabilities of a track do not sum to one */
    BJ_VIOLATION_MODES,         /* more modes than allowed */
    BJ_VIOLATION_DUPLICATE,     /* a row that repeats another one */
    BJ_VIOLATION_INCONSISTENT,  /* tracks of a scenario differ in number or weights of modes */
    BJ_VIOLATION_TRACK,         /* not the focal track */
    BJ_VIOLATION_UNKNOWN,       /* a scenario the truth does not have */
    BJ_VIOLATION_MISSING,       /* a scenario of the truth that is not in the file, or without rows
                                   of its focal track */
    BJ_VIOLATION_KINDS
} bj_violation_kind;

BJ_API const char *bj_violation_name(bj_violation_kind kind); /* "points", ... */

typedef struct bj_violation {
    bj_violation_kind kind;
    int64_t row;             /* of the file, from 0; -1 for missing scenarios */
    const char *scenario_id; /* may be NULL */
    char message[200];
} bj_violation;

typedef struct bj_score_options {
    int max_modes; /* 0: BJ_SUBMISSION_MODES */
    int listed;    /* violations kept with their messages; all are counted */
} bj_score_options;

typedef struct bj_score_counts {
    int64_t rows, scenarios; /* of the file */
    int64_t truths;          /* scenarios of the truth, the sum of the next five; -1: no truth */
    int64_t scored;
    int64_t unreadable;      /* bj_truth_failures */
    int64_t missing;         /* as the violations */
    int64_t malformed;       /* in the file, but not to be scored */
    int64_t no_future;       /* in the file, but nothing to hold it against */
    int64_t unknown;         /* as the violations */
    int64_t gaps;            /* scored scenes with interpolated future steps */
    int64_t violations[BJ_VIOLATION_KINDS];
    int64_t violations_total;
} bj_score_counts;

/* Means over scenes. K = 1 is the most probable mode, K = 6 the six most probable ones. */
typedef struct bj_score_values {
    double scenes, modes;
    double min_ade_1, min_fde_1, mr_1, brier_min_ade_1, brier_min_fde_1;
    double min_ade_6, min_ade_at_min_fde_6, min_fde_6, mr_6, brier_min_ade_6, brier_min_fde_6;
    bj_metric_values distribution; /* of all modes; latent metrics are NaN */
} bj_score_values;

/* Scenes that have something in common. Group 0 is everything: by "all". */
typedef struct bj_score_group {
    const char *by, *key; /* "maneuver" "left", "type" "vehicle", "city" ..., "speed" "2-5" */
    bj_score_values values;
} bj_score_group;

typedef struct bj_score_scene {
    const char *scenario_id, *track_id, *maneuver, *type, *city, *speed;
    int gaps; /* interpolated future steps */
    bj_score_values values;
} bj_score_scene;

typedef struct bj_score bj_score;

/* Checks a submission and, with a truth, scores what can be scored. A submission that breaks the
 * rules is not an error of this call. Submission and truth are borrowed as long as the score
 * lives. */
BJ_API BJ_CHECK bj_status bj_score_create(bj_score **out, const bj_submission *submission,
                                          const bj_truth *truth, const bj_score_options *options,
                                          bj_error *err);
BJ_API void bj_score_free(bj_score *score);
BJ_API bj_score_counts bj_score_count(const bj_score *score);
BJ_API int bj_score_listed(const bj_score *score); /* violations kept */
BJ_API const bj_violation *bj_score_violation(const bj_score *score, int index);
BJ_API int bj_score_groups(const bj_score *score); /* 0 without a scored scene */
BJ_API bj_score_group bj_score_group_at(const bj_score *score, int index);
/* The scored scenes in the order of the truth. */
BJ_API int64_t bj_score_scenes(const bj_score *score);
BJ_API const bj_score_scene *bj_score_scene_at(const bj_score *score, int64_t index);

/* --------------------------------------------------------------------------------------- truth */

/* Forecasts held against the law of the futures and not only against the one that happened. Every
 * number is defined in docs/TRUTH.md. An exam is a set of scenes with their laws; forecasters take it
 * one after the other and meet the same draws. */
typedef struct bj_exam bj_exam;

typedef struct bj_exam_options {
    int samples;     /* draws of every mode: a multiple of 4, 16 to 4096; 0: 64 */
    uint64_t seed;   /* of the draws */
    int64_t limit;   /* only so many scenes, the first of the cache; 0: all */
    int best_scenes; /* scenes, evenly spaced, for which the best K atoms are searched; 0: none */
    int threads;     /* 0: one per available core; no number depends on it */
    /* As in bj_submit_options; stopping is BJ_ELOCKED. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_exam_options;

/* Cache and law are borrowed as long as the exam lives. Every scene of the cache must have its law,
 * with the same frame; the law may have more scenes. */
BJ_API BJ_CHECK bj_status bj_exam_create(bj_exam **out, const bj_cache *cache, const bj_law *law,
                                         const bj_exam_options *options, bj_error *err);
/* Creates an exam for submissions. `truth`, which is borrowed too, is a cache or a folder of scenario
 * files; NULL means all scenes of the law file. Without it there is no realized score, no
 * constant-velocity baseline, and every scenario of a submission must have exactly one track. Models
 * cannot take this exam. */
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
    int64_t count;            /* pairs of a scene and a maneuver */
    double predicted, actual; /* mean probabilities; NaN where there is none */
} bj_exam_bin;

typedef struct bj_exam_report {
    int64_t scenes;
    int atoms;
    /* Monte-Carlo errors. d is the RMS distance over steps, in meters. */
    bj_estimate discrepancy;     /* D^2 = 2 E d(X,Y) - E d(X,X') - E d(Y,Y') */
    double discrepancy_spread;   /* standard error of its mean due to the choice of scenes */
    bj_estimate floor;           /* 1/2 E d(Y,Y') */
    bj_estimate expected_es;     /* Energy Score expected under the law, from draws of its own */
    bj_estimate difference;      /* expected_es - (discrepancy / 2 + floor): 0, if all is right */
    double tolerated;            /* errors that it may be off: 5, more for very few scenes */
    int identity;                /* 1: it is within that */
    int64_t realized;            /* scenes whose future is known */
    bj_estimate realized_es;     /* of the cache's own futures; error: due to the choice of scenes */
    double surprise;             /* realized less expected score, in errors of drawing one future a
                                    scene; large: the futures are not from this law */
    /* The best K atoms, on a sample of scenes. */
    int64_t best_scenes;         /* the rest is NaN when 0 */
    bj_estimate best;            /* their discrepancy */
    bj_estimate best_own;        /* the forecaster's, on these scenes */
    double capacity, learning;   /* shares of best_own: best / best_own, and what is left */
    /* True modes, at 2 m RMS of their means. */
    int64_t modes;
    double recall, recall_mass;  /* share of modes found, mean true mass of them */
    double mass_error, unexplained;
    /* Probabilities of maneuvers: stop, straight, left, right. */
    double maneuver_error;       /* total variation, mean over scenes */
    double brier_excess;         /* sum of squares of predicted less true probability */
    double brier_floor;          /* Brier score of the true probabilities */
    double calibration_error;    /* mean |predicted - true| over the bins, weighted by count */
    bj_exam_bin bins[BJ_EXAM_BINS]; /* by predicted probability */
} bj_exam_report;

/* Fills weights (count,K) and trajectories (count,K,60,2), in the frames of the scenes, for scenes
 * first .. first + count - 1 of the cache. Called in order. */
typedef bj_status (*bj_forecaster)(void *context, double *weights, double *trajectories,
                                   int64_t first, int count, bj_error *err);

BJ_API BJ_CHECK bj_status bj_exam_run(bj_exam_report *report, bj_exam *exam, int K,
                                      bj_forecaster forecaster, void *context, bj_error *err);
BJ_API BJ_CHECK bj_status bj_exam_model(bj_exam_report *report, bj_exam *exam,
                                        const bj_model *model, bj_error *err);

/* Measures a submission file of any model. Every scenario of the exam must be in the file, and the
 * file must pass every check of bj_score with at most `max_modes` modes (0: BJ_SUBMISSION_MODES).
 * Otherwise the call fails with BJ_EMISMATCH, and the message contains the first violation. Scenarios
 * with fewer modes than others are filled up with modes of probability 0. */
BJ_API BJ_CHECK bj_status bj_exam_submission(bj_exam_report *report, bj_exam *exam,
                                             const bj_submission *submission, int max_modes,
                                             bj_error *err);

/* What a forecaster cannot reach that sees no more than a model's inputs: the mean discrepancy
 * between laws and their mixtures over what the inputs hide. 0 for version 2 of the world. */
typedef struct bj_blind_report {
    int64_t scenes;
    bj_estimate discrepancy; /* everything hidden */
    double spread;           /* standard error of its mean due to the choice of scenes */
    bj_estimate control;     /* only the control of junctions hidden */
    bj_estimate limits;      /* only the speed limits hidden */
} bj_blind_report;

/* At most `scenes` scenes, evenly spaced. The law file must state how its scenes were made. */
BJ_API BJ_CHECK bj_status bj_exam_blind(bj_blind_report *report, bj_exam *exam, int64_t scenes,
                                        bj_error *err);

typedef enum bj_baseline {
    BJ_BASELINE_VELOCITY, /* the last observed velocity goes on; one atom */
    BJ_BASELINE_MODES,    /* means of the K heaviest modes of the law, weights renormalized */
    BJ_BASELINES
} bj_baseline;

BJ_API const char *bj_baseline_name(bj_baseline baseline); /* "constant-velocity", ... */
BJ_API BJ_CHECK bj_status bj_exam_baseline(bj_exam_report *report, bj_exam *exam,
                                           bj_baseline baseline, int K, bj_error *err);

/* ---------------------------------------------------------------------------------- statistics */

/* What is known about a metric. Formulas of this section: docs/STATISTICS.md. */
typedef struct bj_metric_info {
    const char *name;  /* as in bj_metric_values and in files */
    const char *title; /* as in tables */
    int better;        /* -1: lower is better; 1: higher is; 0: neither, or not known */
    int digits;        /* decimals it is printed with */
} bj_metric_info;

BJ_API int bj_metric_count(void);
BJ_API bj_metric_info bj_metric_at(int index);
BJ_API int bj_metric_find(const char *name); /* its index, or -1 */
/* The field of that name, or NaN for a metric that is measured elsewhere. */
BJ_API double bj_metric_value(const bj_metric_values *values, int index);

/* The p-quantile of Student's t with that many degrees of freedom, any number >= 1, to a relative
 * precision of 1e-10 or better. NaN outside its domain. */
BJ_API double bj_student_quantile(double p, double degrees);

typedef struct bj_summary {
    int n;
    double mean, sd; /* SD with n - 1; NaN below two values */
    double lowest, highest;
} bj_summary;

/* Two arms of the same seeds. a - b is what is looked at. */
typedef struct bj_comparison {
    bj_summary a, b, difference;
    double low, high;          /* paired-t interval of the mean difference; NaN below two seeds */
    double improvement;        /* of a's mean over b's, a fraction, positive where a is better; NaN
                                  where nothing is better or b's mean is 0 */
    int lower, equal, higher;  /* seeds in which a is lower than b, ... */
    int better;                /* of the metric, as in bj_metric_info */
} bj_comparison;

BJ_API bj_summary bj_summarize(const double *values, int n); /* all NaN for n = 0 */
/* a and b (n), of the same seeds in the same order; level in (0,1), .95 as a rule. */
BJ_API BJ_CHECK bj_status bj_compare_paired(bj_comparison *out, const double *a, const double *b,
                                            int n, int better, double level, bj_error *err);

/* The values of arms, by metric and seed. */
typedef struct bj_seeds bj_seeds;

/* Reads a CSV file with the columns arm, seed, metric and value in any order, or seeds.csv of a
 * folder. Arms keep the order of the file, seeds are sorted, metrics follow the list above,
 * unknown ones last. */
BJ_API BJ_CHECK bj_status bj_seeds_read(bj_seeds **out, const char *path, bj_error *err);
/* The same from a list; source opens the messages. Names are copied. A campaign's: campaign.h. */
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
BJ_API int bj_seeds_find_arm(const bj_seeds *seeds, const char *name); /* or -1 */
BJ_API int bj_seeds_metric_count(const bj_seeds *seeds);
BJ_API bj_metric_info bj_seeds_metric(const bj_seeds *seeds, int metric);
BJ_API int bj_seeds_find_metric(const bj_seeds *seeds, const char *name); /* or -1 */
BJ_API int bj_seeds_count(const bj_seeds *seeds);
BJ_API int64_t bj_seeds_seed(const bj_seeds *seeds, int seed);
/* NaN where the file has none. */
BJ_API double bj_seeds_value(const bj_seeds *seeds, int arm, int metric, int seed);
/* Refuses a metric whose seeds differ between these arms and names the (arm, seed) pairs that are
 * missing. An arm without any value of the metric is not missing: it was not measured. */
BJ_API BJ_CHECK bj_status bj_seeds_check(const bj_seeds *seeds, const int *arms, int arm_count,
                                         int metric, bj_error *err);
/* Over the seeds that are there. */
BJ_API bj_summary bj_seeds_summary(const bj_seeds *seeds, int arm, int metric);
/* Over the seeds both arms have. A seed that only one of them has is refused, unless `partial`. */
BJ_API BJ_CHECK bj_status bj_seeds_compare(bj_comparison *out, const bj_seeds *seeds, int a, int b,
                                           int metric, double level, int partial, bj_error *err);

/* Mean difference over scenes and its percentile bootstrap interval. */
typedef struct bj_bootstrap {
    double mean, low, high;
    double se; /* SD of the resampled means */
} bj_bootstrap;

/* Resamples scenes with replacement, a and b (n) together, conditional on the models that gave them:
 * 10,000 resamples as a rule. The same for the same seed, whatever the number of threads (0: one per
 * available core). */
BJ_API BJ_CHECK bj_status bj_bootstrap_paired(bj_bootstrap *out, const double *a, const double *b,
                                              int64_t n, int resamples, uint64_t seed, double level,
                                              int threads, bj_error *err);

/* --------------------------------------------------------------------------------- checkpoints */

/* Something worth knowing about a file, as text. */
typedef struct bj_fact {
    const char *key, *value;
} bj_fact;

/* Writes a safetensors file with PyTorch's parameter names; the architecture, the facts and a
 * checksum of everything are its metadata. All or nothing: a file that was there before stays until
 * the new one is complete. Weights that are not finite are refused. */
BJ_API BJ_CHECK bj_status bj_model_save(const bj_model *model, const char *path,
                                        const bj_fact *facts, int count, bj_error *err);
/* Reads such a file, in single or double precision, and refuses it unless every tensor, and no
 * other, is there with its shape and finite values, and the checksum is right. */
BJ_API BJ_CHECK bj_status bj_model_load(bj_model **out, const char *path, bj_error *err);

/* Copies a model file with its facts. `facts` are added and replace facts with the same key. With
 * BJ_PRECISION_BF16 the copy stores 2 bytes per parameter, rounded to nearest even; bj_model_load
 * widens them. */
BJ_API BJ_CHECK bj_status bj_model_export(const char *from, const char *to, bj_precision precision,
                                          const bj_fact *facts, int count, bj_error *err);

/* A training run on disk is a folder of these two files. */
#define BJ_CHECKPOINT_MODEL "model.safetensors" /* as bj_model_save writes it, with the facts */
#define BJ_CHECKPOINT_STATE "state.safetensors" /* optimizer, target, step, settings, generator */

/* Writes both and puts them in place in one step: whatever happens, `dir` holds the old checkpoint or
 * the new one. What killed writers left is removed. A folder with other files in it is refused. rng,
 * the caller's generator, may be NULL. One writer at a time for a `dir`. */
BJ_API BJ_CHECK bj_status bj_trainer_save(const bj_trainer *trainer, const char *dir,
                                          const bj_rng *rng, const bj_fact *facts, int fact_count,
                                          bj_error *err);
/* Continues that run, bit for bit on the same instruction set, with any number of threads and any
 * max_batch. Architecture, objective and optimizer settings must be those of the trainer
 * (BJ_EMISMATCH names the first that is not). rng may be NULL. Nothing changes when it fails. */
BJ_API BJ_CHECK bj_status bj_trainer_load(bj_trainer *trainer, const char *dir, bj_rng *rng,
                                          bj_error *err);

/* Stage B of the frozen anchor: the target encoder and the model's decoder become the encoder and
 * the decoder of a stage A model; no step changes them. The online encoder keeps its own initial
 * weights. Only for BJ_ANCHOR_B and before the first step. K and the widths of atoms and router may
 * differ from the file's. */
BJ_API BJ_CHECK bj_status bj_trainer_load_anchor(bj_trainer *trainer, const char *model_path,
                                                 bj_error *err);
/* SHA-256 over the target encoder and the decoder, as 64 digits: equal digests, no drift. */
BJ_API BJ_CHECK bj_status bj_trainer_anchor_digest(const bj_trainer *trainer, char hex[65],
                                                   bj_error *err);

/* Spread of a set of latents, to notice collapse and to gate the frozen anchor. */
typedef struct bj_latent_health {
    double mean_std;         /* mean over dimensions of the population standard deviation */
    double low_std_fraction; /* share of dimensions whose standard deviation is below 1e-3 */
    double entropy_rank;     /* exp of the entropy of the covariance spectrum */
    double participation;    /* (sum of eigenvalues)^2 / sum of their squares */
} bj_latent_health;

/* z (B,D), rows `stride` apart. */
BJ_API BJ_CHECK bj_status bj_latent_health_measure(bj_latent_health *out, const bj_real *z,
                                                   size_t stride, int B, int D, bj_error *err);

/* -------------------------------------------------------------------------------------- parity */

/* Groups of a golden file: outputs, loss parts, gradients, metrics, weights and target weights
 * after the updates. */
enum { BJ_PARITY_O, BJ_PARITY_L, BJ_PARITY_G, BJ_PARITY_M, BJ_PARITY_S, BJ_PARITY_ST,
       BJ_PARITY_GROUPS };

typedef struct bj_parity_report {
    char name[64];                   /* case, from the file's metadata */
    double worst[BJ_PARITY_GROUPS];  /* largest error, in the group's measure; NaN: not in file */
    double beyond;                   /* share of updated weights off by more than the tolerance */
    int compared;                    /* tensors looked at */
    int failed;                      /* comparisons above tolerance */
    char first_failure[256];         /* what, found, expected; empty when none */
} bj_parity_report;

typedef struct bj_parity_options {
    int threads;     /* as in bj_trainer_options */
    const char *isa;
} bj_parity_options;

/* Recomputes a golden file from its weights and inputs and compares everything it states. */
BJ_API BJ_CHECK bj_status bj_parity_file(bj_parity_report *report, const char *path,
                                         const bj_parity_options *options, bj_error *err);
BJ_API const char *bj_parity_group_name(int group); /* "o", "l", "g", "m", "s", "st" */

/* Built on all of the above. */
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
