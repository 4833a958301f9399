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

/* ------------------------------------------------------------------------------- architecture */

typedef enum bj_model_kind {
    BJ_MODEL_BRANCH,     /* K atoms, router (K > 1), one shared decoder */
    BJ_MODEL_OUTPUT_ONLY /* one latent, shared trunk, base head and K residual heads */
} bj_model_kind;

/* Learned standard deviations of the mixture-density objective. */
typedef enum bj_scales {
    BJ_SCALES_FIXED,    /* none: the objective's sigma_z and sigma_y */
    BJ_SCALES_GLOBAL,   /* one number for latents, one for trajectories */
    BJ_SCALES_COMPONENT /* one for each branch and dimension */
} bj_scales;

/* Every size of the network. bj_arch_paper() has the paper's values. */
typedef struct bj_arch {
    bj_model_kind kind;
    bj_scales scales;
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
} bj_arch;

enum { BJ_FOCAL_FEATURES = 7, BJ_POLYLINE_FEATURES = 6, BJ_MAX_ATOMS = 64, BJ_SEGMENT_STEPS = 10 };

BJ_API bj_arch bj_arch_paper(void);       /* K = 6 */
BJ_API bj_arch bj_arch_point(void);       /* K = 1, atom 3204 wide, no router */
BJ_API bj_arch bj_arch_output_only(void); /* one latent, six outputs */
BJ_API BJ_CHECK bj_status bj_arch_check(const bj_arch *arch, bj_error *err);

/* -------------------------------------------------------------------------------------- scenes */

/* B scenes without empty slots: neighbors and polylines are listed scene after scene, and
 * *_start[b] .. *_start[b + 1] are the rows of scene b. A scene may have none of either. */
typedef struct bj_batch {
    int B;
    const bj_real *focal;       /* (B,T,7) x, y, vx, vy, cos h, sin h, type */
    const bj_real *neighbors;   /* (rows,T,7) */
    const int *neighbor_start;  /* (B+1) */
    const bj_real *polylines;   /* (rows,Q,6) x, y, cos d, sin d, intersection, crosswalk */
    const int *polyline_start;  /* (B+1) */
    const bj_real *future;      /* (B,F,2), or NULL where it is unknown */
} bj_batch;

/* Owns the arrays of a batch. */
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

/* -------------------------------------------------------------------------------------- model */

typedef struct bj_model bj_model;

typedef struct bj_tensor {
    const char *name; /* PyTorch state_dict name */
    int rank;         /* 1 or 2 */
    int shape[2];
    size_t size;      /* product of the shape */
    bj_real *data;    /* owned by the model */
} bj_tensor;

/* Parameter counts as the paper reports them. */
typedef struct bj_counts {
    size_t encoder, atoms, router, decoder, scales;
    size_t downstream; /* everything but the encoder and the mixture scales */
    size_t total;      /* encoder + downstream */
} bj_counts;

/* Fresh weights with PyTorch's default distributions from the given seed. */
BJ_API BJ_CHECK bj_status bj_model_create(bj_model **out, const bj_arch *arch, uint64_t seed,
                                          bj_error *err);
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
    BJ_ANCHOR_B        /* latent Energy Score against a frozen target and decoder */
} bj_objective_kind;

typedef struct bj_objective {
    bj_objective_kind kind;
    double lambda_z, lambda_y, lambda_rec; /* latent, decoded, reconstruction weights */
    double lambda_router;                  /* cross-entropy of the winner-takes-all family */
    double beta;                           /* time weight beta^t of the decoded distance, (0,1] */
    double tau;                            /* soft-WTA temperature */
    double rho, eps;                       /* Sinkhorn share and entropy */
    int sinkhorn_iters;
    double sigma_z, sigma_y, usage_kl;     /* mixture density */
    double variance_floor;                 /* anchor stage A: .02 */
    double rank_floor, rank_weight;        /* anchor stage A: 8, .25 */
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
    double latent, decoded, rec, router, usage;
    double variance, rank, participation; /* anchor stage A; participation is the rank itself */
} bj_loss;

/* ------------------------------------------------------------------------------------ training */

typedef struct bj_trainer bj_trainer;

typedef struct bj_optim {
    double beta1, beta2, eps; /* .9, .999, 1e-8 */
    double weight_decay;      /* 1e-2, on every trained tensor */
    double clip;              /* 5, global gradient norm */
    double ema;               /* .996 */
} bj_optim;

BJ_API bj_optim bj_optim_default(void);

/* Linear warm-up over `warmup` epochs, then cosine to zero; step counts from 0. */
BJ_API double bj_lr_at(long step, long steps_per_epoch, int epochs, int warmup, double base);

typedef struct bj_trainer_options {
    bj_objective objective;
    bj_optim optim;
    int max_batch;   /* largest B a step will see */
    int threads;     /* 0: one per available core */
    const char *isa; /* NULL: BJ_ISA from the environment, else the best available */
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
/* Gradient of a tensor after the last call above; data is NULL where no term reached it. */
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
/* All K branches: weights (B,K) and trajectories (B,K,F,2); atoms (B,latents,D) may be NULL. */
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

BJ_API BJ_CHECK bj_status bj_metrics_create(bj_metrics **out, int K, int latents, int D, int F,
                                            bj_error *err);
BJ_API void bj_metrics_free(bj_metrics *metrics);
BJ_API void bj_metrics_reset(bj_metrics *metrics);
/* Adds outputs->B scenes whose true futures are future (B,F,2). */
BJ_API BJ_CHECK bj_status bj_metrics_add(bj_metrics *metrics, const bj_outputs *outputs,
                                         const bj_real *future, bj_error *err);
BJ_API bj_metric_values bj_metrics_values(const bj_metrics *metrics);

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

#ifdef __cplusplus
}
#endif

#endif
