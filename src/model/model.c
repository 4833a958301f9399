/* model.c - creates models, and finds tensors by index or name. */
#include "model/model.h"

#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

const char *bj_version(void) { return BJ_VERSION; }

bj_status bj_model_create_empty(bj_model **out, const bj_arch *arch, bj_error *err) {
    *out = NULL;
    BJ_TRY(bj_arch_check(arch, err));
    bj_model *model;
    BJ_TRY(BJ_ALLOC(model, 1, err));
    model->arch = *arch;
    bj_status status;
    BJ_GOTO(status, fail, bj_layout_init(&model->layout, arch, err));
    BJ_GOTO(status, fail, BJ_ALLOC(model->weights, model->layout.size, err));
    *out = model;
    return BJ_OK;
fail:
    bj_model_free(model);
    return status;
}

bj_status bj_model_create(bj_model **out, const bj_arch *arch, uint64_t seed, bj_error *err) {
    BJ_TRY(bj_model_create_empty(out, arch, err));
    bj_layout_initialize(&(*out)->layout, (*out)->weights, seed, 0);
    return BJ_OK;
}

void bj_model_condition(bj_model *model, uint64_t seed) {
    bj_layout_initialize(&model->layout, model->weights, seed, 1);
}

void bj_model_free(bj_model *model) {
    if (!model) return;
    bj_layout_reset(&model->layout);
    bj_free(model->weights);
    bj_free(model);
}

const bj_arch *bj_model_arch(const bj_model *model) { return &model->arch; }
int bj_model_tensor_count(const bj_model *model) { return model->layout.count; }

bj_tensor bj_model_tensor(const bj_model *model, int index) {
    const bj_param *p = &model->layout.params[index];
    return (bj_tensor){p->name, p->rank, {p->shape[0], p->shape[1]}, p->size,
                       model->weights + p->offset};
}

bj_status bj_model_find(bj_tensor *out, const bj_model *model, const char *name, bj_error *err) {
    for (int i = 0; i < model->layout.count; i++) {
        if (strcmp(model->layout.params[i].name, name) == 0) {
            *out = bj_model_tensor(model, i);
            return BJ_OK;
        }
    }
    return BJ_FAIL(err, BJ_EARG, "the model has no tensor '%s'", name);
}
