/* params.c - builds layouts, parameter counts and initial weights from params.def. */
#include "model/params.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/rng.h"

enum { UNIFORM, XAVIER, ZERO, ONE, LOG };
enum { GAP = 16 };

/* Units in which inputs and outputs are of order 1; see params.h. */
static const double meters = 20, meters_per_second = 5;

typedef struct row {
    bj_param_id id;
    const char *name;
    int repeat, rows, cols, init;
    double fan;
    bj_param_part part;
    int present;
    bj_param_scale scale;
    double gain;
    int muon;
} row;

static void table(row out[BJ_P_COUNT], const bj_arch *a) {
    const int OUTPUT_ONLY = a->kind == BJ_MODEL_OUTPUT_ONLY;
    const int CODEBOOK = a->kind == BJ_MODEL_CODEBOOK, SINGLE = OUTPUT_ONLY || CODEBOOK;
    const int VARIATIONAL = a->kind == BJ_MODEL_VARIATIONAL, BRANCH = !SINGLE && !VARIATIONAL;
    const int DECODED = BRANCH && a->fut > 0;
    const int ROUTED = OUTPUT_ONLY || (BRANCH && a->atoms > 1);
    const int SCALED = a->scales != BJ_SCALES_FIXED;
    const int SCENE = a->encoder == BJ_ENCODER_SCENE, OBSERVATION = !SCENE;
    const int IMAGE = a->encoder == BJ_ENCODER_IMAGE, INPUTS = IMAGE ? a->channels : a->state;
    const int JOINT = SCENE ? 2 * a->embed : a->embed, CONTEXT = a->latent + a->action;
    const int FEATURES = IMAGE ? a->height / 16 * (a->width / 16) * a->patch_out
                               : a->state + 2 * a->waves * a->octaves;
    const int SCALE_ROWS = a->scales == BJ_SCALES_COMPONENT ? a->atoms : 1;
#define SCALE_COLS(n) (a->scales == BJ_SCALES_COMPONENT ? (n) : 1)
    /* Ratio between the bound sqrt(6/fan), which preserves the activation scale, and
     * 1/sqrt(fan). */
    const double HE = sqrt(6);
    const double SMALL = 0.1; /* makes the initial trajectories smooth and short */
#define PARAM(id, name, repeat, rows, cols, init, fan, part, when, scale, gain, muon)                    \
    out[BJ_P_##id] =                                                                               \
        (row){BJ_P_##id,      name, repeat,           rows, cols, init, (double)(fan),             \
              BJ_PART_##part, when, BJ_SCALE_##scale, gain, muon};
#include "model/params.def"
#undef PARAM
#undef SCALE_COLS
}

bj_counts bj_arch_counts(const bj_arch *arch) {
    row rows[BJ_P_COUNT];
    size_t count[BJ_PARTS] = {0};
    table(rows, arch);
    for (int i = 0; i < BJ_P_COUNT; i++) {
        const row *r = &rows[i];
        if (r->present)
            count[r->part] += (size_t)r->repeat * (size_t)r->rows * (size_t)(r->cols ? r->cols : 1);
    }
    bj_counts c = {.encoder = count[BJ_PART_ENCODER],
                   .atoms = count[BJ_PART_ATOMS],
                   .router = count[BJ_PART_ROUTER],
                   .decoder = count[BJ_PART_DECODER] + count[BJ_PART_RESIDUAL],
                   .scales = count[BJ_PART_SCALE_Z] + count[BJ_PART_SCALE_Y]};
    c.downstream = c.atoms + c.router + c.decoder;
    c.total = c.encoder + c.downstream;
    return c;
}

static double base_sigma(bj_param_scale scale, const bj_arch *a) {
    switch (scale) {
    case BJ_SCALE_GATES: return sqrt(3.0 * a->embed / BJ_FOCAL_FEATURES);
    case BJ_SCALE_LATENT: return sqrt(a->latent);
    case BJ_SCALE_STEPS: return meters_per_second * a->dt;
    default: return 1;
    }
}

double bj_param_sigma(const bj_param *p, int column) {
    const int feature =
        column % (p->scale == BJ_SCALE_MAP ? BJ_POLYLINE_FEATURES : BJ_FOCAL_FEATURES);
    if (p->scale == BJ_SCALE_MAP) return feature < 2 ? 1 / meters : 1;
    if (p->scale != BJ_SCALE_TRACK && p->scale != BJ_SCALE_GATES) return p->sigma;
    return p->sigma * (feature < 2 ? 1 / meters : feature < 4 ? 1 / meters_per_second : 1);
}

bj_status bj_layout_init(bj_layout *layout, const bj_arch *arch, bj_error *err) {
    row rows[BJ_P_COUNT];
    table(rows, arch);
    *layout = (bj_layout){0};
    for (int i = 0; i < BJ_P_COUNT; i++)
        if (rows[i].present) layout->count += rows[i].repeat;
    BJ_TRY(BJ_ALLOC(layout->params, (size_t)layout->count, err));
    bj_param *p = layout->params;
    for (int i = 0; i < BJ_P_COUNT; i++) {
        const row *r = &rows[i];
        layout->first[i] = r->present ? (int)(p - layout->params) : -1;
        for (int k = 0; r->present && k < r->repeat; k++, p++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* names come only from params.def */
#pragma GCC diagnostic ignored "-Wformat-extra-args"
            snprintf(p->name, sizeof p->name, r->name, k);
#pragma GCC diagnostic pop
            p->rank = r->cols ? 2 : 1;
            p->shape[0] = r->rows;
            p->shape[1] = r->cols ? r->cols : 1;
            p->size = (size_t)p->shape[0] * (size_t)p->shape[1];
            p->offset = layout->size;
            p->part = r->part;
            p->init = r->init;
            p->fan = r->fan;
            p->scale = r->scale;
            p->sigma = base_sigma(r->scale, arch);
            p->gain = r->gain;
            p->muon = r->muon;
            layout->size += (p->size + GAP - 1) / GAP * GAP;
            if (p->part == BJ_PART_ENCODER) layout->encoder_size = layout->size;
        }
    }
    return BJ_OK;
}

void bj_layout_reset(bj_layout *layout) {
    bj_free(layout->params);
    *layout = (bj_layout){0};
}

size_t bj_layout_offset(const bj_layout *layout, bj_param_id id, int index) {
    assert(layout->first[id] >= 0);
    return layout->params[layout->first[id] + index].offset;
}

/* Computes w = sigma gain theta in place. On entry w contains theta. */
static void condition(bj_real *w, const bj_param *p) {
    const size_t columns = (size_t)p->shape[1], row_pair = 2 * columns;
    for (size_t j = 0; j < p->size; j++) {
        const double scaled = p->gain * bj_param_sigma(p, (int)(j % columns)) * (double)w[j];
        const double before =
            p->scale == BJ_SCALE_STEPS && j >= row_pair ? (double)w[j - row_pair] : 0;
        w[j] = (bj_real)(float)(before + scaled);
    }
}

void bj_layout_initialize(const bj_layout *layout, bj_real *weights, uint64_t seed,
                          int conditioned) {
    for (int i = 0; i < layout->count; i++) {
        const bj_param *p = &layout->params[i];
        bj_real *w = weights + p->offset;
        bj_rng rng = bj_rng_named(seed, p->name);
        const double bound = p->init == XAVIER ? sqrt(6.0 / p->fan) : 1.0 / sqrt(p->fan);
        for (size_t j = 0; j < p->size; j++) {
            switch (p->init) {
            case UNIFORM:
            case XAVIER: w[j] = (bj_real)(float)(bound * (2.0 * bj_rng_uniform(&rng) - 1.0)); break;
            case ZERO: w[j] = 0; break;
            case ONE: w[j] = 1; break;
            case LOG: w[j] = (bj_real)(float)log(p->fan); break;
            default: assert(0);
            }
        }
        if (conditioned) condition(w, p);
    }
}
