/* export.c - copies model files with modified metadata or with BF16 weights.
 *
 * A copy keeps the architecture and the metadata of its source. Metadata entries given by the
 * caller replace entries with the same key. A BF16 file has 2 bytes per parameter, rounded to
 * nearest even like the weights of a BF16 predictor. bj_model_load converts them back. A
 * double-precision build rounds to float first.
 * Test: tests/model/test_export.c
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/bf16.h"
#include "model/checkpoint.h"
#include "model/model.h"

/* Returns the value of a key in the list, or NULL. */
static const char *value_of(const bj_fact *facts, int count, const char *key) {
    for (int i = 0; i < count; i++)
        if (facts[i].key && !strcmp(facts[i].key, key)) return facts[i].value;
    return NULL;
}

/* Fills `out` with the architecture, the metadata of the source and the metadata given by the
 * caller. Source entries that the writer adds itself, or that the caller replaces, are left out.
 * Returns the number of entries. */
static int merge_facts(bj_fact *out, const bj_arch_facts *arch, const bj_safetensors *st,
                       const bj_fact *facts, int count) {
    static const bj_fact own[] = {
        {"format", ""}, {"format_version", ""}, {BJ_CHECKPOINT_DIGEST, ""}};
    int kept = 0;
    for (int i = 0; i < arch->count; i++) out[kept++] = arch->fact[i];
    for (int i = 0; i < bj_safetensors_metadata_count(st); i++) {
        const bj_fact fact = bj_safetensors_metadata_at(st, i);
        if (!value_of(own, sizeof own / sizeof *own, fact.key) &&
            !value_of(arch->fact, arch->count, fact.key) && !value_of(facts, count, fact.key))
            out[kept++] = fact;
    }
    for (int i = 0; i < count; i++) out[kept++] = facts[i];
    return kept;
}

/* Rounds the tensors to BF16 in place, stores the BF16 values in `half`, and describes `half` in
 * `views`. */
static bj_status narrow(bj_tensor_view *views, uint16_t *half, const bj_tensor *tensors, int count,
                        const char *path, bj_error *err) {
    for (int i = 0; i < count; i++) {
        const bj_tensor *t = &tensors[i];
        for (size_t j = 0; j < t->size; j++) {
            half[j] = bj_bf16_round((float)t->data[j]);
            t->data[j] = (bj_real)bj_bf16_widen(half[j]);
            if (!isfinite(t->data[j]))
                return BJ_FAIL(err, BJ_ENONFINITE,
                               "%s: not saved: tensor '%s': value %zu is too large for BF16", path,
                               t->name, j);
        }
        views[i] = (bj_tensor_view){.name = t->name,
                                    .dtype = BJ_DTYPE_BF16,
                                    .rank = t->rank,
                                    .shape = {t->shape[0], t->shape[1]},
                                    .data = half};
        half += t->size;
    }
    return BJ_OK;
}

static bj_status write_narrow(const char *path, const bj_tensor *tensors, int count,
                              const bj_fact *facts, int facts_count, bj_error *err) {
    bj_tensor_view *views = NULL;
    uint16_t *half = NULL;
    size_t size = 0;
    bj_status status;
    for (int i = 0; i < count; i++) size += tensors[i].size;
    BJ_GOTO(status, done, BJ_ALLOC(views, (size_t)count, err));
    BJ_GOTO(status, done, BJ_ALLOC(half, size, err));
    BJ_GOTO(status, done, narrow(views, half, tensors, count, path, err));
    status =
        bj_checkpoint_write_views(path, BJ_MODEL_FORMAT, views, count, facts, facts_count, err);
done:
    bj_free(half);
    bj_free(views);
    return status;
}

static bj_status write_copy(const char *path, bj_precision precision, const bj_model *model,
                            const bj_safetensors *st, const bj_fact *facts, int count,
                            bj_error *err) {
    bj_arch_facts *arch = NULL;
    bj_fact *merged = NULL;
    bj_tensor *tensors = NULL;
    const int tensor_count = model->layout.count;
    const size_t most = (size_t)(BJ_ARCH_FACTS + bj_safetensors_metadata_count(st) + count);
    bj_status status;
    BJ_GOTO(status, done, BJ_ALLOC(arch, 1, err));
    BJ_GOTO(status, done, BJ_ALLOC(merged, most, err));
    BJ_GOTO(status, done, BJ_ALLOC(tensors, (size_t)tensor_count, err));
    BJ_GOTO(status, done, bj_arch_to_facts(arch, &model->arch, err));
    count = merge_facts(merged, arch, st, facts, count);
    for (int i = 0; i < tensor_count; i++) tensors[i] = bj_model_tensor(model, i);
    status =
        precision == BJ_PRECISION_BF16
            ? write_narrow(path, tensors, tensor_count, merged, count, err)
            : bj_checkpoint_write(path, BJ_MODEL_FORMAT, tensors, tensor_count, merged, count, err);
done:
    bj_free(tensors);
    bj_free(merged);
    bj_free(arch);
    return status;
}

bj_status bj_model_export(const char *from, const char *to, bj_precision precision,
                          const bj_fact *facts, int count, bj_error *err) {
    bj_safetensors *st = NULL;
    bj_model *model = NULL;
    bj_status status;
    if (!from || !to) return BJ_FAIL(err, BJ_EARG, "export: a path is missing");
    if (precision != BJ_PRECISION_FULL && precision != BJ_PRECISION_BF16)
        return BJ_FAIL(err, BJ_EARG, "export: precision is %d, expected full (0) or bf16 (1)",
                       (int)precision);
    BJ_TRY(bj_safetensors_open(&st, from, err));
    BJ_GOTO(status, done, bj_model_read(&model, st, err));
    status = write_copy(to, precision, model, st, facts, count, err);
done:
    bj_model_free(model);
    bj_safetensors_close(st);
    return status;
}
