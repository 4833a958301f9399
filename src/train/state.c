/* state.c - saves and loads a training run, and loads the frozen anchor of stage B.
 *
 * A checkpoint is a folder of two safetensors files that are committed together (core/folder.h):
 *   model.safetensors   the model, as written by bj_model_save
 *   state.safetensors   everything else that a step changes: AdamW's mean.P and variance.P for
 *                       every parameter P and target.Q for every parameter encoder.Q. The metadata
 *                       contains the step, the generator and all objective and optimizer settings.
 * docs/FORMAT.md has the details.
 *
 * Invariants
 *   1. Saving and loading restores everything on which a later step depends, bit for bit. Threads,
 *      batch capacity and instruction set are not saved. Of these, only the instruction set affects
 *      the results of later steps.
 *   2. state.safetensors contains its model's digest, so files of two checkpoints cannot be mixed.
 *   3. Loading changes the trainer only after all checks have passed.
 * Tests: tests/train/test_state.c, test_state_files.c; tests/train/peer_state.py
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/folder.h"
#include "core/json.h"
#include "train/state_file.h"
#include "train/trainer.h"

static const char objective_key[] = "objective", step_key[] = "step", rng_key[] = "rng";
static const char precision_key[] = "precision"; /* written in mixed precision only */
/* Written by schedule-free AdamW only. */
static const char highest_key[] = "highest_lr", weights_key[] = "weight_sum";
static const char seed_key[] = "noise_seed"; /* used by variational models and SIGReg */
static const char *const files[] = {BJ_CHECKPOINT_MODEL, BJ_CHECKPOINT_STATE, NULL};

/* ------------------------------------------------------------------------------------- settings */

/* clang-format off */
#define EACH_SETTING(X)                                                                            \
    X(objective, lambda_z)  X(objective, lambda_y)       X(objective, lambda_rec)                  \
    X(objective, beta)      X(objective, lambda_router)  X(objective, tau)                         \
    X(objective, rho)       X(objective, eps)            X(objective, sinkhorn_iters)              \
    X(objective, sigma_z)   X(objective, sigma_y)        X(objective, usage_kl)                    \
    X(objective, rank_floor) X(objective, rank_weight)   X(objective, variance_floor)              \
    X(optim, beta1)         X(optim, beta2)              X(optim, eps)                             \
    X(optim, weight_decay)  X(optim, clip)               X(optim, ema)

/* Settings that were added later. The third argument is the default. A setting with its default
 * value is not written, and a missing setting has its default value. */
#define EACH_ADDED(X)                                                                              \
    X(objective, floor_weight, 0)      X(objective, kl_weight, 0)                                  \
    X(optim, conditioned, 0)           X(objective, sigreg, 0)                                     \
    X(objective, sigreg_slices, 256)   X(objective, vicreg_variance, 0)                            \
    X(objective, vicreg_covariance, 0) X(objective, vicreg_gamma, 1)                               \
    X(optim, muon, 0)                  X(optim, schedule_free, 0)
/* clang-format on */

#define KEY(group, field) #group "." #field,
#define VALUE(group, field) (double)t->group.field,
#define SIZE(group, field) +sizeof(((bj_trainer *)0)->group.field)
#define ADDED_KEY(group, field, usual) KEY(group, field)
#define ADDED_VALUE(group, field, usual) VALUE(group, field)
#define ADDED_SIZE(group, field, usual) SIZE(group, field)
#define ADDED_USUAL(group, field, usual) usual,
static const char *const setting_key[] = {EACH_SETTING(KEY) EACH_ADDED(ADDED_KEY)};
static const double usual[] = {EACH_ADDED(ADDED_USUAL)};
enum {
    SETTINGS = sizeof setting_key / sizeof *setting_key,
    FIRST_ADDED = SETTINGS - sizeof usual / sizeof *usual
};

/* Every field except the kind is a setting. The kind and the last integer of bj_optim are padded to
 * a double. */
_Static_assert((0 EACH_SETTING(SIZE) EACH_ADDED(ADDED_SIZE)) + offsetof(bj_objective, lambda_z) ==
                   sizeof(bj_objective) + sizeof(bj_optim) - sizeof(int),
               "a setting of bj_objective or bj_optim is not in the list");

static const char *precision_name(bj_precision p) {
    return p == BJ_PRECISION_BF16 ? "mixed" : "single";
}

/* Returns 1 if later steps depend on the seed of the trainer. */
static int uses_seed(const bj_trainer *t) {
    return t->model->arch.noise || t->objective.sigreg != 0;
}

typedef struct state_facts {
    bj_fact fact[SETTINGS + 8];
    int count;
    char number[SETTINGS][BJ_JSON_NUMBER];
    char step[24], seed[24], rng[4 * 17], highest_lr[BJ_JSON_NUMBER], weight_sum[BJ_JSON_NUMBER];
} state_facts;

/* Fills the metadata of a state file. The entries contain pointers into `out` and model_digest. */
static bj_status describe(state_facts *out, const bj_trainer *t, const bj_rng *rng,
                          const char *model_digest, bj_error *err) {
    const double value[] = {EACH_SETTING(VALUE) EACH_ADDED(ADDED_VALUE)};
    bj_fact *fact = out->fact;
    *fact++ = (bj_fact){BJ_STATE_MODEL_DIGEST, model_digest};
    snprintf(out->step, sizeof out->step, "%ld", t->step);
    *fact++ = (bj_fact){step_key, out->step};
    if (rng) {
        for (int i = 0; i < 4; i++)
            snprintf(out->rng + 17 * i, 18, "%016llx%s", (unsigned long long)rng->state[i],
                     i < 3 ? " " : "");
        *fact++ = (bj_fact){rng_key, out->rng};
    }
    if (uses_seed(t)) {
        snprintf(out->seed, sizeof out->seed, "%llu", (unsigned long long)t->seed);
        *fact++ = (bj_fact){seed_key, out->seed};
    }
    if (t->precision != BJ_PRECISION_FULL)
        *fact++ = (bj_fact){precision_key, precision_name(t->precision)};
    if (t->optim.schedule_free) {
        (void)bj_json_number_write(out->highest_lr, t->highest_lr);
        (void)bj_json_number_write(out->weight_sum, t->weight_sum);
        *fact++ = (bj_fact){highest_key, out->highest_lr};
        *fact++ = (bj_fact){weights_key, out->weight_sum};
    }
    *fact++ = (bj_fact){objective_key, bj_objective_name(t->objective.kind)};
    for (int i = 0; i < SETTINGS; i++) {
        if (i >= FIRST_ADDED && value[i] == usual[i - FIRST_ADDED]) continue;
        if (!bj_json_number_write(out->number[i], value[i]))
            return BJ_FAIL(err, BJ_EARG, "setting '%s' is %g, expected a finite number",
                           setting_key[i], value[i]);
        *fact++ = (bj_fact){setting_key[i], out->number[i]};
    }
    out->count = (int)(fact - out->fact);
    return BJ_OK;
}

/* Checks that the state was saved with the trainer's settings. */
static bj_status check_settings(const bj_safetensors *st, const bj_trainer *t, bj_error *err) {
    const double value[] = {EACH_SETTING(VALUE) EACH_ADDED(ADDED_VALUE)};
    const char *text, *kind = bj_objective_name(t->objective.kind);
    double found;
    text = bj_safetensors_metadata(st, precision_key);
    if (!text) text = precision_name(BJ_PRECISION_FULL);
    if (strcmp(text, precision_name(t->precision)))
        return bj_checkpoint_refuse(err, BJ_EMISMATCH, st, precision_key, text,
                                    precision_name(t->precision));
    BJ_TRY(bj_checkpoint_metadata(&text, st, objective_key, err));
    if (strcmp(text, kind))
        return bj_checkpoint_refuse(err, BJ_EMISMATCH, st, objective_key, text, kind);
    for (int i = 0; i < SETTINGS; i++) {
        char expected[BJ_JSON_NUMBER] = "", unwritten[BJ_JSON_NUMBER] = "";
        if (i >= FIRST_ADDED && !bj_safetensors_metadata(st, setting_key[i])) {
            found = usual[i - FIRST_ADDED];
            (void)bj_json_number_write(unwritten, found);
            text = unwritten;
        } else {
            BJ_TRY(bj_checkpoint_metadata(&text, st, setting_key[i], err));
            if (!bj_json_number_read(&found, text))
                return bj_checkpoint_refuse(err, BJ_EFORMAT, st, setting_key[i], text, "a number");
        }
        if (found == value[i]) continue;
        (void)bj_json_number_write(expected, value[i]);
        return bj_checkpoint_refuse(err, BJ_EMISMATCH, st, setting_key[i], text, expected);
    }
    if (uses_seed(t)) {
        char seed[24];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)t->seed);
        BJ_TRY(bj_checkpoint_metadata(&text, st, seed_key, err));
        if (strcmp(text, seed))
            return bj_checkpoint_refuse(err, BJ_EMISMATCH, st, seed_key, text, seed);
    }
    return BJ_OK;
}

static bj_status read_step(long *out, const bj_safetensors *st, bj_error *err) {
    const char *text;
    BJ_TRY(bj_checkpoint_metadata(&text, st, step_key, err));
    const size_t digits = strspn(text, "0123456789");
    if (!digits || digits > (LONG_MAX > INT_MAX ? 18 : 9) || text[digits])
        return bj_checkpoint_refuse(err, BJ_EFORMAT, st, step_key, text, "an integer");
    *out = strtol(text, NULL, 10);
    return BJ_OK;
}

/* Reads a number that is at least 0. */
static bj_status read_nonnegative(double *out, const bj_safetensors *st, const char *key,
                                  bj_error *err) {
    const char *text;
    BJ_TRY(bj_checkpoint_metadata(&text, st, key, err));
    if (bj_json_number_read(out, text) && *out >= 0) return BJ_OK;
    return bj_checkpoint_refuse(err, BJ_EFORMAT, st, key, text, "a number of at least 0");
}

static int is_seeded(const bj_rng *rng) {
    return (rng->state[0] | rng->state[1] | rng->state[2] | rng->state[3]) != 0;
}

static bj_status read_rng(bj_rng *out, const bj_safetensors *st, bj_error *err) {
    const char *text;
    BJ_TRY(bj_checkpoint_metadata(&text, st, rng_key, err));
    int good = strlen(text) == 4 * 17 - 1;
    for (int i = 0; i < 4 && good; i++) {
        const char *word = text + 17 * i;
        good = strspn(word, "0123456789abcdef") == 16 && word[16] == (i < 3 ? ' ' : '\0');
        out->state[i] = strtoull(word, NULL, 16);
    }
    if (good && is_seeded(out)) return BJ_OK;
    return bj_checkpoint_refuse(err, BJ_EFORMAT, st, rng_key, text,
                                "four words of 16 hexadecimal digits, not all zero");
}

/* -------------------------------------------------------------------------------------- tensors */

static bj_status check_variances(const char *path, const bj_state_tensors *s, bj_error *err) {
    for (int i = s->variances; i < 2 * s->variances; i++)
        for (size_t j = 0; j < s->list[i].size; j++)
            if (s->list[i].data[j] < 0)
                return BJ_FAIL(err, BJ_EFORMAT,
                               "%s: tensor '%s': value %zu is %g, expected at least 0", path,
                               s->list[i].name, j, (double)s->list[i].data[j]);
    return BJ_OK;
}

/* --------------------------------------------------------------------------------------- saving */

static bj_status join(char out[BJ_FOLDER_PATH], const char *folder, const char *file,
                      bj_error *err) {
    if (snprintf(out, BJ_FOLDER_PATH, "%s/%s", folder, file) < BJ_FOLDER_PATH) return BJ_OK;
    return BJ_FAIL(err, BJ_EIO, "%s: cannot create: the path is too long", folder);
}

static bj_status read_digest(char out[BJ_SHA256_HEX], const char *model_path, bj_error *err) {
    bj_safetensors *st;
    const char *text;
    BJ_TRY(bj_safetensors_open(&st, model_path, err));
    const bj_status status = bj_checkpoint_metadata(&text, st, BJ_CHECKPOINT_DIGEST, err);
    if (status == BJ_OK) snprintf(out, BJ_SHA256_HEX, "%s", text);
    bj_safetensors_close(st);
    return status;
}

static bj_status write_files(const char *folder, const bj_trainer *t, const bj_rng *rng,
                             const bj_state_tensors *tensors, const bj_fact *facts, int fact_count,
                             bj_error *err) {
    char path[BJ_FOLDER_PATH], model_digest[BJ_SHA256_HEX];
    state_facts state;
    BJ_TRY(join(path, folder, BJ_CHECKPOINT_MODEL, err));
    BJ_TRY(bj_model_save(t->model, path, facts, fact_count, err));
    BJ_TRY(read_digest(model_digest, path, err));
    BJ_TRY(describe(&state, t, rng, model_digest, err));
    BJ_TRY(join(path, folder, BJ_CHECKPOINT_STATE, err));
    return bj_checkpoint_write(path, BJ_STATE_FORMAT, tensors->list, tensors->count, state.fact,
                               state.count, err);
}

bj_status bj_trainer_save(const bj_trainer *t, const char *dir, const bj_rng *rng,
                          const bj_fact *facts, int fact_count, bj_error *err) {
    const bj_state_blocks blocks = {t->mean, t->variance, t->target_weights};
    bj_state_tensors tensors = {0};
    bj_folder_writer *writer = NULL;
    char path[BJ_FOLDER_PATH];
    bj_status status;
    if (rng && !is_seeded(rng))
        return BJ_FAIL(err, BJ_EARG, "%s: not saved: the generator was never seeded", dir);
    /* Check everything before writing, so that messages contain the final path. */
    BJ_TRY(join(path, dir, BJ_CHECKPOINT_MODEL, err));
    for (int i = 0; i < t->model->layout.count; i++) {
        const bj_tensor weights = bj_model_tensor(t->model, i);
        BJ_TRY(bj_checkpoint_check_finite(path, &weights, 1, err));
    }
    BJ_TRY(join(path, dir, BJ_CHECKPOINT_STATE, err));
    BJ_GOTO(status, done, bj_state_tensors_init(&tensors, &t->model->layout, blocks, err));
    BJ_GOTO(status, done, bj_checkpoint_check_finite(path, tensors.list, tensors.count, err));
    BJ_GOTO(status, done, check_variances(path, &tensors, err));
    BJ_GOTO(status, done, bj_folder_writer_open(&writer, dir, files, err));
    BJ_GOTO(status, done,
            write_files(bj_folder_writer_path(writer), t, rng, &tensors, facts, fact_count, err));
    status = bj_folder_writer_commit(&writer, err);
done:
    bj_folder_writer_abort(&writer);
    bj_state_tensors_reset(&tensors);
    return status;
}

/* -------------------------------------------------------------------------------------- loading */

/* Checks that two architectures are equal, except for the keys in `except`, a NULL-terminated
 * list. */
static bj_status check_arch(const char *path, const bj_arch *found, const bj_arch *expected,
                            const char *const *except, bj_error *err) {
    bj_arch_facts a, b;
    BJ_TRY(bj_arch_to_facts(&a, found, err));
    BJ_TRY(bj_arch_to_facts(&b, expected, err));
    if (found->encoder != expected->encoder)
        return BJ_FAIL(err, BJ_EMISMATCH,
                       "%s: architecture: encoder is %d, expected %d, as in the trainer's model",
                       path, (int)found->encoder, (int)expected->encoder);
    for (int i = 0; i < a.count; i++) {
        const char *const *skip = except;
        while (*skip && strcmp(*skip, a.fact[i].key)) skip++;
        if (!*skip && strcmp(a.fact[i].value, b.fact[i].value))
            return BJ_FAIL(err, BJ_EMISMATCH,
                           "%s: architecture: %s is %s, expected %s, as in the trainer's model",
                           path, a.fact[i].key, a.fact[i].value, b.fact[i].value);
    }
    return BJ_OK;
}

static bj_status check_state_tensors(const bj_safetensors *st, const bj_state_tensors *s,
                                     bj_error *err) {
    BJ_TRY(bj_checkpoint_check_tensors(st, s->list, s->count, err));
    for (int i = 0; i < s->count; i++) {
        const bj_tensor_view *view = bj_safetensors_find(st, s->list[i].name);
        if (view->dtype != BJ_DTYPE_REAL) /* rounding would change the run */
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: tensor '%s': dtype %s, expected %s, "
                           "because a run must continue in the precision it was started in",
                           bj_safetensors_path(st), view->name, bj_dtype_name(view->dtype),
                           bj_dtype_name(BJ_DTYPE_REAL));
    }
    return BJ_OK;
}

/* The contents of a checkpoint that has not passed all checks yet. */
typedef struct pending {
    bj_state_pair files;
    bj_model *model;
    bj_real *memory; /* storage of the blocks */
    bj_state_blocks blocks;
    bj_state_tensors tensors;
    long step;
    double highest_lr, weight_sum;
    bj_rng rng;
} pending;

static void pending_reset(pending *p) {
    bj_state_tensors_reset(&p->tensors);
    bj_free(p->memory);
    bj_model_free(p->model);
    bj_state_pair_close(&p->files);
}

static bj_status read_model(pending *p, const bj_trainer *t, bj_error *err) {
    static const char *const none[] = {NULL};
    BJ_TRY(bj_model_read(&p->model, p->files.model_file, err));
    BJ_TRY(check_arch(bj_safetensors_path(p->files.model_file), &p->model->arch, &t->model->arch,
                      none, err));
    return bj_state_pair_check(&p->files, err);
}

static bj_status read_state(pending *p, const bj_trainer *t, int want_rng, bj_error *err) {
    const bj_layout *layout = &t->model->layout;
    const bj_safetensors *st = p->files.state_file;
    BJ_TRY(check_settings(st, t, err));
    BJ_TRY(read_step(&p->step, st, err));
    if (t->optim.schedule_free) {
        BJ_TRY(read_nonnegative(&p->highest_lr, st, highest_key, err));
        BJ_TRY(read_nonnegative(&p->weight_sum, st, weights_key, err));
    }
    if (want_rng || bj_safetensors_metadata(st, rng_key)) BJ_TRY(read_rng(&p->rng, st, err));
    BJ_TRY(BJ_ALLOC(p->memory, 2 * layout->size + layout->encoder_size, err));
    p->blocks =
        (bj_state_blocks){p->memory, p->memory + layout->size, p->memory + 2 * layout->size};
    BJ_TRY(bj_state_tensors_init(&p->tensors, layout, p->blocks, err));
    BJ_TRY(check_state_tensors(st, &p->tensors, err));
    BJ_TRY(bj_checkpoint_read_tensors(st, p->tensors.list, p->tensors.count, err));
    BJ_TRY(check_variances(bj_safetensors_path(st), &p->tensors, err));
    return bj_checkpoint_check_digest(st, err);
}

static void adopt(bj_trainer *t, const pending *p) {
    const bj_layout *layout = &t->model->layout;
    const size_t all = layout->size * sizeof(bj_real);
    memcpy(t->model->weights, p->model->weights, all);
    memcpy(t->mean, p->blocks.mean, all);
    memcpy(t->variance, p->blocks.variance, all);
    memcpy(t->target_weights, p->blocks.target, layout->encoder_size * sizeof(bj_real));
    t->step = p->step;
    t->highest_lr = p->highest_lr;
    t->weight_sum = p->weight_sum;
    if (t->optim.schedule_free) bj_schedule_free_restore(t);
}

bj_status bj_trainer_load(bj_trainer *t, const char *dir, bj_rng *rng, bj_error *err) {
    pending p = {0};
    bj_status status;
    BJ_GOTO(status, done, bj_state_pair_open(&p.files, dir, err));
    BJ_GOTO(status, done, read_model(&p, t, err));
    BJ_GOTO(status, done, read_state(&p, t, rng != NULL, err));
    adopt(t, &p);
    if (rng) *rng = p.rng;
done:
    pending_reset(&p);
    return status;
}

long bj_trainer_updates(const bj_trainer *t) { return t->step; }

/* --------------------------------------------------------------------------------------- anchor */

bj_status bj_trainer_load_anchor(bj_trainer *t, const char *model_path, bj_error *err) {
    /* Sizes that do not affect the anchor. One anchor can be used with predictors of any width. */
    static const char *const free_sizes[] = {"atoms", "atom_hidden", "router_hidden",
                                             "trunk", "weighting",   NULL};
    const bj_layout *layout = &t->model->layout;
    bj_model *anchor;
    if (t->objective.kind != BJ_ANCHOR_B)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the trainer's objective is %s, expected anchor_b, "
                       "which is the only objective with a frozen anchor",
                       model_path, bj_objective_name(t->objective.kind));
    if (t->step)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the trainer has done %ld updates, expected none, "
                       "because an anchor cannot change during a run",
                       model_path, t->step);
    BJ_TRY(bj_model_load(&anchor, model_path, err));
    const bj_status status =
        check_arch(model_path, &anchor->arch, &t->model->arch, free_sizes, err);
    if (status == BJ_OK) {
        memcpy(t->target_weights, anchor->weights, layout->encoder_size * sizeof(bj_real));
        for (int id = BJ_P_DECODER_W1; id <= BJ_P_DECODER_B2; id++) {
            const bj_param *to = &layout->params[layout->first[id]];
            memcpy(t->model->weights + to->offset,
                   anchor->weights + bj_layout_offset(&anchor->layout, (bj_param_id)id, 0),
                   to->size * sizeof(bj_real));
        }
    }
    bj_model_free(anchor);
    return status;
}

bj_status bj_trainer_anchor_digest(const bj_trainer *t, char hex[65], bj_error *err) {
    const bj_layout *layout = &t->model->layout;
    bj_tensor *tensors;
    int count = 0;
    BJ_TRY(BJ_ALLOC(tensors, (size_t)layout->count, err));
    for (int i = 0; i < layout->count; i++) {
        const bj_param_part part = layout->params[i].part;
        if (part == BJ_PART_ENCODER) tensors[count++] = bj_trainer_target(t, i);
        if (part == BJ_PART_DECODER) tensors[count++] = bj_model_tensor(t->model, i);
    }
    const bj_status status = bj_checkpoint_digest(hex, tensors, count, err);
    bj_free(tensors);
    return status;
}
