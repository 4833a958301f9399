/* evaluate.h - checkpoints on data: what files say, target latents, streaming evaluation.
 *
 * Part of the public interface; include <branchjepa/branchjepa.h>. docs/EVALUATE.md defines every
 * number.
 */
#include <branchjepa/branchjepa.h> /* outside the guard: it includes this file in turn */

#ifndef BRANCHJEPA_EVALUATE_H
#define BRANCHJEPA_EVALUATE_H

/* --------------------------------------------------------------------------------------- facts */

/* Everything a model file says about itself, by key: the facts given to bj_model_save, the
 * architecture, "format" and "sha256". The weights are not read. */
typedef struct bj_facts bj_facts;

BJ_API BJ_CHECK bj_status bj_facts_read(bj_facts **out, const char *model_path, bj_error *err);
BJ_API void bj_facts_free(bj_facts *facts);
BJ_API int bj_facts_count(const bj_facts *facts);
BJ_API bj_fact bj_facts_at(const bj_facts *facts, int index);
BJ_API const char *bj_facts_get(const bj_facts *facts, const char *key); /* or NULL */

/* -------------------------------------------------------------------------------------- target */

/* The weights of an encoder of futures. */
typedef struct bj_target bj_target;

/* A copy of the target as it is now. */
BJ_API BJ_CHECK bj_status bj_target_from_trainer(bj_target **out, const bj_trainer *trainer,
                                                 bj_error *err);
/* The model's own encoder: what stage A of the frozen anchor trains. */
BJ_API BJ_CHECK bj_status bj_target_from_model(bj_target **out, const bj_model *model,
                                               bj_error *err);
/* The target of a checkpoint folder (BJ_CHECKPOINT_STATE), checked like bj_trainer_load checks it. */
BJ_API BJ_CHECK bj_status bj_target_load(bj_target **out, const char *checkpoint_dir,
                                         bj_error *err);
BJ_API void bj_target_free(bj_target *target);

/* Encodes true futures and decodes them again. Copies what it needs of model and target. Weights
 * are kept in full precision, whatever the options say. */
typedef struct bj_future_encoder bj_future_encoder;

BJ_API BJ_CHECK bj_status bj_future_encoder_create(bj_future_encoder **out, const bj_model *model,
                                                   const bj_target *target,
                                                   const bj_predictor_options *options,
                                                   bj_error *err);
BJ_API void bj_future_encoder_free(bj_future_encoder *encoder);
/* latents (B,D), of length one; recon (B,F,2), the decoder's answer to them, may be NULL. The same
 * bits as bj_outputs.target and .recon of the training step (of the anchor's first stage, which
 * trains the encoder of futures, to rounding). */
BJ_API BJ_CHECK bj_status bj_future_encode(bj_future_encoder *encoder, const bj_batch *batch,
                                           bj_real *latents, bj_real *recon, bj_error *err);

/* ----------------------------------------------------------------------------------- evaluator */

/* One model on a stream of scenes: sums, nothing of a scene is kept. */
typedef struct bj_evaluator bj_evaluator;

typedef struct bj_evaluator_options {
    int max_batch;
    int threads;            /* as in bj_predictor_options; no number depends on it */
    bj_precision precision;
    const char *isa;
    int grouped;            /* also by maneuver, speed, type and city */
} bj_evaluator_options;

/* target may be NULL: latent metrics are NaN then. Copies what it needs of both. */
BJ_API BJ_CHECK bj_status bj_evaluator_create(bj_evaluator **out, const bj_model *model,
                                              const bj_target *target,
                                              const bj_evaluator_options *options, bj_error *err);
BJ_API void bj_evaluator_free(bj_evaluator *evaluator);
/* Predicts the scenes, whose futures must be known, and counts them. infos (B) says what they are;
 * it may be NULL unless `grouped`. */
BJ_API BJ_CHECK bj_status bj_evaluator_add(bj_evaluator *evaluator, const bj_batch *batch,
                                           const bj_scene_info *infos, bj_error *err);
/* Forgets all scenes. After an error the evaluator can only be freed. */
BJ_API BJ_CHECK bj_status bj_evaluator_clear(bj_evaluator *evaluator, bj_error *err);
BJ_API bj_metric_values bj_evaluator_values(const bj_evaluator *evaluator);
/* Share of all weight that a branch got: shares (K). */
BJ_API void bj_evaluator_usage(double *shares, const bj_evaluator *evaluator);
/* Spread of the target latents of the first scenes, at most so many; all NaN without a target. */
enum { BJ_HEALTH_SCENES = 4096 };
BJ_API BJ_CHECK bj_status bj_evaluator_health(bj_latent_health *out, const bj_evaluator *evaluator,
                                              bj_error *err);

/* What the context encoder did on average; NaN before the first scene. */
typedef struct bj_encoder_values {
    double attention_tokens; /* exp of the attention entropy, averaged over scenes and heads: the
                                effective number of tokens that are attended to */
    double context_norm;     /* mean norm of the context, which is not normalized */
} bj_encoder_values;
BJ_API bj_encoder_values bj_evaluator_encoder(const bj_evaluator *evaluator);

typedef struct bj_evaluation_group {
    const char *by, *key; /* as in bj_score_group; group 0 is everything; of the evaluator */
    bj_metric_values values;
} bj_evaluation_group;

BJ_API int bj_evaluator_groups(const bj_evaluator *evaluator); /* 1 unless grouped */
BJ_API bj_evaluation_group bj_evaluator_group_at(const bj_evaluator *evaluator, int index);

/* Calibration of the likeliest maneuver: ten bins of its probability. */
enum { BJ_CALIBRATION_BINS = 10 };
typedef struct bj_calibration_bin {
    double count, confidence, hits; /* scenes; mean probability and share of hits, NaN if none */
} bj_calibration_bin;
BJ_API void bj_evaluator_calibration(bj_calibration_bin bins[BJ_CALIBRATION_BINS],
                                     const bj_evaluator *evaluator);

/* ------------------------------------------------------------------------------------ exchange */

/* How much the trajectory Energy Score increases when a part of the observation is replaced by
 * that of another scene. docs/EVALUATE.md defines which scene is the partner. A value is NaN if there
 * is only one scene, or if no scene has the part. */
typedef struct bj_exchange_values {
    double scenes;
    double plain;     /* mean trajectory Energy Score of the scenes as they are, m */
    double map;       /* the score with exchanged polylines minus `plain`, m */
    double neighbors; /* with exchanged neighbors */
    double focal;     /* with exchanged tracks of the focal road user */
} bj_exchange_values;

typedef struct bj_exchange_options {
    int max_batch;
    int threads; /* as in bj_predictor_options; no number depends on it */
    bj_precision precision;
    const char *isa;
    const double *plain; /* score of the scenes as they are, if it is known; NULL: measured */
    /* Called after every batch with the number of forecasts done and needed. A return value other
     * than 0 ends the measurement, and all values are NaN. May be NULL. */
    int (*progress)(void *context, int64_t done, int64_t total);
    void *context;
} bj_exchange_options;

/* Evaluates the scenes (count) as they are and with each part exchanged. Their futures must be
 * known; partners do not depend on futures. */
BJ_API BJ_CHECK bj_status bj_exchange_measure(bj_exchange_values *out, const bj_model *model,
                                              const bj_scene *scenes, int count,
                                              const bj_exchange_options *options, bj_error *err);

#endif
