/* evaluate.h - checkpoint metadata, target latents, streaming evaluation and exchange losses.
 *
 * Part of the public API. Include <branchjepa/branchjepa.h>. docs/EVALUATE.md defines every number.
 */
#include <branchjepa/branchjepa.h> /* before the guard, because it includes this file */

#ifndef BRANCHJEPA_EVALUATE_H
#define BRANCHJEPA_EVALUATE_H

/* --------------------------------------------------------------------------------------- facts */

/* The metadata of a model file by key: the entries passed to bj_model_save, the architecture,
 * "format" and "sha256". The weights are not read. */
typedef struct bj_facts bj_facts;

BJ_API BJ_CHECK bj_status bj_facts_read(bj_facts **out, const char *model_path, bj_error *err);
BJ_API void bj_facts_free(bj_facts *facts);
BJ_API int bj_facts_count(const bj_facts *facts);
BJ_API bj_fact bj_facts_at(const bj_facts *facts, int index);
BJ_API const char *bj_facts_get(const bj_facts *facts, const char *key); /* or NULL */

/* -------------------------------------------------------------------------------------- target */

/* The weights of a future encoder. */
typedef struct bj_target bj_target;

/* Copies the trainer's current target encoder. */
BJ_API BJ_CHECK bj_status bj_target_from_trainer(bj_target **out, const bj_trainer *trainer,
                                                 bj_error *err);
/* Copies the encoder of the model itself. This is the encoder that stage A of the frozen anchor
 * trains. */
BJ_API BJ_CHECK bj_status bj_target_from_model(bj_target **out, const bj_model *model,
                                               bj_error *err);
/* Loads the target encoder from a checkpoint folder (BJ_CHECKPOINT_STATE) with the same checks as
 * bj_trainer_load. */
BJ_API BJ_CHECK bj_status bj_target_load(bj_target **out, const char *checkpoint_dir,
                                         bj_error *err);
BJ_API void bj_target_free(bj_target *target);

/* Encodes true futures and decodes them again. Copies the weights it needs from model and target.
 * Weights are kept in full precision, so options.precision is ignored. */
typedef struct bj_future_encoder bj_future_encoder;

BJ_API BJ_CHECK bj_status bj_future_encoder_create(bj_future_encoder **out, const bj_model *model,
                                                   const bj_target *target,
                                                   const bj_predictor_options *options,
                                                   bj_error *err);
BJ_API void bj_future_encoder_free(bj_future_encoder *encoder);
/* Computes latents (B,D) of length one and recon (B,F,2), the decoded latents, which may be NULL.
 * The results are bit-identical to bj_outputs.target and .recon of the training step. For stage A
 * of the anchor, which trains the future encoder, they are equal up to rounding. */
BJ_API BJ_CHECK bj_status bj_future_encode(bj_future_encoder *encoder, const bj_batch *batch,
                                           bj_real *latents, bj_real *recon, bj_error *err);

/* ----------------------------------------------------------------------------------- evaluator */

/* Evaluates one model on a stream of scenes. Keeps only sums, not the scenes. */
typedef struct bj_evaluator bj_evaluator;

typedef struct bj_evaluator_options {
    int max_batch;
    int threads;            /* as in bj_predictor_options; does not change the results */
    bj_precision precision;
    const char *isa;
    int grouped;            /* also group by maneuver, speed, type and city */
} bj_evaluator_options;

/* If target is NULL, latent metrics are NaN. Copies the weights it needs from model and target. */
BJ_API BJ_CHECK bj_status bj_evaluator_create(bj_evaluator **out, const bj_model *model,
                                              const bj_target *target,
                                              const bj_evaluator_options *options, bj_error *err);
BJ_API void bj_evaluator_free(bj_evaluator *evaluator);
/* Predicts the scenes of a batch and adds them to the sums. Their futures must be known. infos (B)
 * describes the scenes and may be NULL unless `grouped` is set. */
BJ_API BJ_CHECK bj_status bj_evaluator_add(bj_evaluator *evaluator, const bj_batch *batch,
                                           const bj_scene_info *infos, bj_error *err);
/* Removes all scenes. After an error the evaluator can only be freed. */
BJ_API BJ_CHECK bj_status bj_evaluator_clear(bj_evaluator *evaluator, bj_error *err);
BJ_API bj_metric_values bj_evaluator_values(const bj_evaluator *evaluator);
/* Fills shares (K) with each branch's share of the total weight. */
BJ_API void bj_evaluator_usage(double *shares, const bj_evaluator *evaluator);
/* Measures the spread of the target latents over the first BJ_HEALTH_SCENES scenes. All values are
 * NaN without a target. */
enum { BJ_HEALTH_SCENES = 4096 };
BJ_API BJ_CHECK bj_status bj_evaluator_health(bj_latent_health *out, const bj_evaluator *evaluator,
                                              bj_error *err);

/* Averages over the outputs of the context encoder. They are NaN before the first scene. */
typedef struct bj_encoder_values {
    double attention_tokens; /* effective number of attended tokens: exp of the attention entropy,
                                averaged over scenes and heads */
    double context_norm;     /* mean norm of the context vectors, which are not normalized */
} bj_encoder_values;
BJ_API bj_encoder_values bj_evaluator_encoder(const bj_evaluator *evaluator);

typedef struct bj_evaluation_group {
    const char *by, *key; /* as in bj_score_group; group 0 contains all scenes; owned by the
                             evaluator */
    bj_metric_values values;
} bj_evaluation_group;

BJ_API int bj_evaluator_groups(const bj_evaluator *evaluator); /* 1 unless grouped */
BJ_API bj_evaluation_group bj_evaluator_group_at(const bj_evaluator *evaluator, int index);

/* Calibration of the most likely maneuver, in ten bins of its probability. */
enum { BJ_CALIBRATION_BINS = 10 };
typedef struct bj_calibration_bin {
    double count, confidence, hits; /* number of scenes; mean probability and hit rate, both NaN if
                                       the bin is empty */
} bj_calibration_bin;
BJ_API void bj_evaluator_calibration(bj_calibration_bin bins[BJ_CALIBRATION_BINS],
                                     const bj_evaluator *evaluator);

/* ------------------------------------------------------------------------------------ exchange */

/* Increase of the trajectory Energy Score if one part of the observation is taken from another
 * scene. docs/EVALUATE.md defines the partner scene. A value is NaN if there is only one scene, or
 * if no scene has this part. */
typedef struct bj_exchange_values {
    double scenes;
    double plain;     /* mean trajectory Energy Score of the unmodified scenes, m */
    double map;       /* score with exchanged polylines minus `plain`, m */
    double neighbors; /* score with exchanged neighbors minus `plain`, m */
    double focal;     /* score with exchanged focal tracks minus `plain`, m */
} bj_exchange_values;

typedef struct bj_exchange_options {
    int max_batch;
    int threads; /* as in bj_predictor_options; does not change the results */
    bj_precision precision;
    const char *isa;
    const double *plain; /* score of the unmodified scenes, if known; NULL: compute it */
    /* Called after every batch with the number of finished forecasts and the total number. A
     * nonzero return value ends the measurement, and all values are NaN. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_exchange_options;

/* Evaluates the scenes (count) unmodified and with each part exchanged. Their futures must be
 * known. The choice of partners does not depend on futures. */
BJ_API BJ_CHECK bj_status bj_exchange_measure(bj_exchange_values *out, const bj_model *model,
                                              const bj_scene *scenes, int count,
                                              const bj_exchange_options *options, bj_error *err);

#endif
