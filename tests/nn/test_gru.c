/* test_gru.c - compares the GRU with PyTorch's formulas in plain double loops, and backward through
 * time with finite differences, for every kernel table and with and without vector tails. */
#include "nn/gru.h"

#include "nn_case.h"

enum { PAD = 5 };

/* A GRU layer. The loss is sum(r * h_T). */
typedef struct layer {
    const bj_kernels *k;
    int M, T, I, E;
    size_t lds, ldg, ldx, lddh;
    bj_gru gru;
    bj_real *w_ih, *w_hh, *b_ih, *b_hh, *x, *r; /* inputs */
    bj_real *state, *gates, *dh;
    bj_real *dw_ih, *dw_hh, *db_ih, *db_hh; /* computed here from gates and state */
} layer;

static layer make(const bj_kernels *k, int M, int T, int I, int E) {
    bj_rng rng = bj_rng_seed((uint64_t)(1000 * M + 100 * T + 10 * I + E));
    const int lead = bj_gru_lead(I);
    layer l = {.k = k, .M = M, .T = T, .I = I, .E = E};
    l.lds = (size_t)(lead + E + PAD), l.ldg = (size_t)(4 * E + PAD);
    l.ldx = (size_t)(T * I + PAD), l.lddh = (size_t)(E + PAD);
    l.w_ih = nn_normal(&rng, 1, 3 * E * I, (size_t)(3 * E * I), 0.7);
    l.w_hh = nn_normal(&rng, 1, 3 * E * E, (size_t)(3 * E * E), 1.5 / sqrt(E));
    l.b_ih = nn_normal(&rng, 1, 3 * E, (size_t)(3 * E), 0.5);
    l.b_hh = nn_normal(&rng, 1, 3 * E, (size_t)(3 * E), 0.5);
    l.x = nn_normal(&rng, M, T * I, l.ldx, 1);
    l.r = nn_normal(&rng, M, E, l.lddh, 1);
    l.state = nn_array((size_t)((T + 1) * M) * l.lds, MARKER);
    for (int row = 0; row < (T + 1) * M; row++) /* fill with stale values, which must not be used */
        for (int i = 0; i < lead + E; i++) l.state[(size_t)row * l.lds + (size_t)i] = (bj_real)NAN;
    l.gates = nn_array((size_t)(T * M) * l.ldg, MARKER);
    l.dh = nn_array((size_t)M * l.lddh, MARKER);
    l.dw_ih = nn_array((size_t)(3 * E * I), 0), l.dw_hh = nn_array((size_t)(3 * E * E), 0);
    l.db_ih = nn_array((size_t)(3 * E), 0), l.db_hh = nn_array((size_t)(3 * E), 0);
    l.gru = (bj_gru){.w_ih = l.w_ih,
                     .w_hh = l.w_hh,
                     .b_ih = l.b_ih,
                     .b_hh = l.b_hh,
                     .I = I,
                     .E = E,
                     .lead = lead,
                     .packed = nn_array(k->gru_size(lead, E), MARKER),
                     .recurrent = nn_array(k->packed_size(E, 3 * E), MARKER)};
    return l;
}

static void release(layer *l) {
    bj_real *const all[] = {l->w_ih,       l->w_hh,   l->b_ih,         l->b_hh,   l->x,
                            l->r,          l->state,  l->gates,        l->dh,     l->dw_ih,
                            l->dw_hh,      l->db_ih,  l->db_hh,        l->gru.packed,
                            l->gru.recurrent};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) bj_free(all[i]);
}

static const bj_real *state_row(const layer *l, int t, int m) {
    return l->state + (size_t)(t * l->M + m) * l->lds;
}

static double loss(void *context) {
    layer *l = context;
    bj_gru_pack(l->k, &l->gru);
    bj_gru_forward(l->k, l->state, (size_t)l->M * l->lds, l->lds, l->gates, (size_t)l->M * l->ldg,
                   l->ldg, l->x, l->ldx, &l->gru, l->M, l->T);
    double sum = 0;
    for (int m = 0; m < l->M; m++)
        for (int e = 0; e < l->E; e++)
            sum += (double)l->r[(size_t)m * l->lddh + (size_t)e] *
                   (double)state_row(l, l->T, m)[l->gru.lead + e];
    return sum;
}

/* Computes the weight gradients from the rows of `state` and `gates` after backward, as defined in
 * gru.h. */
static void gradient(void *context) {
    layer *l = context;
    const int E = l->E, I = l->I;
    loss(l);
    for (int m = 0; m < l->M; m++)
        memcpy(l->dh + (size_t)m * l->lddh, l->r + (size_t)m * l->lddh, (size_t)E * sizeof *l->dh);
    bj_gru_backward(l->k, l->dh, l->lddh, l->gates, (size_t)l->M * l->ldg, l->ldg, l->state,
                    (size_t)l->M * l->lds, l->lds, &l->gru, l->M, l->T);
    memset(l->dw_ih, 0, (size_t)(3 * E * I) * sizeof *l->dw_ih);
    memset(l->dw_hh, 0, (size_t)(3 * E * E) * sizeof *l->dw_hh);
    memset(l->db_ih, 0, (size_t)(3 * E) * sizeof *l->db_ih);
    memset(l->db_hh, 0, (size_t)(3 * E) * sizeof *l->db_hh);
    for (int t = 0; t < l->T; t++)
        for (int m = 0; m < l->M; m++) {
            const bj_real *g = l->gates + (size_t)(t * l->M + m) * l->ldg;
            const bj_real *s = state_row(l, t, m), *h = s + l->gru.lead;
            for (int o = 0; o < 3 * E; o++) {
                const bj_real recurrent = g[o], input = o < 2 * E ? g[o] : g[o + E];
                for (int e = 0; e < E; e++) l->dw_hh[o * E + e] += recurrent * h[e];
                for (int i = 0; i < I; i++) l->dw_ih[o * I + i] += input * s[i];
                l->db_hh[o] += recurrent;
                l->db_ih[o] += input;
            }
        }
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

/* Computes the state of row m after every step, (T+1,E), with PyTorch's gate order r, z, n. */
static void plain(double *h, const layer *l, int m) {
    const int E = l->E, I = l->I;
    for (int e = 0; e < E; e++) h[e] = 0;
    for (int t = 0; t < l->T; t++, h += E)
        for (int e = 0; e < E; e++) {
            double in[3], rec[3];
            for (int g = 0; g < 3; g++) {
                const int o = g * E + e;
                in[g] = l->b_ih[o], rec[g] = l->b_hh[o];
                for (int i = 0; i < I; i++)
                    in[g] += (double)l->w_ih[o * I + i] *
                             (double)l->x[(size_t)m * l->ldx + (size_t)(t * I + i)];
                for (int i = 0; i < E; i++) rec[g] += (double)l->w_hh[o * E + i] * h[i];
            }
            const double r = sigmoid(in[0] + rec[0]), z = sigmoid(in[1] + rec[1]);
            const double n = tanh(in[2] + r * rec[2]);
            h[E + e] = (1 - z) * n + z * h[e];
        }
}

static void check_forward(layer *l) {
    const int E = l->E, lead = l->gru.lead;
    double *h = bj_alloc((size_t)((l->T + 1) * E), sizeof *h), worst = 0;
    loss(l);
    for (int m = 0; m < l->M; m++) {
        plain(h, l, m);
        for (int t = 0; t <= l->T; t++)
            worst = fmax(worst, nn_distance(state_row(l, t, m) + lead, 0, h + t * E, 0, 1, E));
    }
    CHECK_MSG(worst <= nn_tolerance(), "%s gru %dx%dx%d: state is off by %g", l->k->isa, l->M, l->T,
              E, worst);
    CHECK(nn_untouched(l->state, l->M, lead + E, l->lds));
    CHECK(nn_untouched(l->gates, l->T * l->M, 4 * E, l->ldg));
    bj_free(h);

    /* The result must be the same if gates are not kept, and if rows are computed separately. */
    const size_t turn = (size_t)l->M * l->lds;
    bj_real *state = nn_array(2 * turn, MARKER);
    for (int rows = l->M; rows > 0; rows -= l->M - 1 > 0 ? l->M - 1 : 1)
        for (int m = 0; m + rows <= l->M; m++) {
            const bj_real *last = bj_gru_forward(l->k, state, turn, l->lds, NULL, 0, 0,
                                                 l->x + (size_t)m * l->ldx, l->ldx, &l->gru, rows, l->T);
            for (int i = 0; i < rows; i++)
                CHECK(memcmp(last + (size_t)i * l->lds, state_row(l, l->T, m + i) + lead,
                             (size_t)E * sizeof *state) == 0);
        }
    CHECK(nn_untouched(state, 2 * l->M, lead + E, l->lds));
    bj_free(state);
}

static void test_layer(const bj_kernels *k, int M, int T, int I, int E) {
    layer l = make(k, M, T, I, E);
    check_forward(&l);
    gradient(&l);
    CHECK(nn_untouched(l.dh, M, E, l.lddh) && nn_untouched(l.gates, T * M, 4 * E, l.ldg));
    const int first = T == 1; /* after a single step, w_hh has no gradient because h_0 = 0 */
    const gradcheck_array arrays[] = {
        {.name = "w_ih", .x = l.w_ih, .dx = l.dw_ih, .rows = 3 * E, .cols = I},
        {.name = "w_hh", .x = l.w_hh, .dx = l.dw_hh, .rows = 3 * E, .cols = E, .zero = first},
        {.name = "b_ih", .x = l.b_ih, .dx = l.db_ih, .rows = 1, .cols = 3 * E},
        {.name = "b_hh", .x = l.b_hh, .dx = l.db_hh, .rows = 1, .cols = 3 * E}};
    char name[64];
    snprintf(name, sizeof name, "%s gru %dx%dx%d-%d", k->isa, M, T, I, E);
    const gradcheck_case c = {.name = name,
                              .loss = loss,
                              .gradient = gradient,
                              .context = &l,
                              .arrays = arrays,
                              .count = 4,
                              .tol = 1e-8,
                              .probes = 40};
    gradcheck(&c);
    release(&l);
}

/* Tests sums far outside the range of exp. Gates must saturate, states must stay in [-1,1], and
 * nothing may be NaN. */
static void test_saturation(const bj_kernels *k) {
    layer l = make(k, 3, 4, 7, 11);
    for (int i = 0; i < 3 * 11 * 7; i++) l.w_ih[i] *= 3000;
    loss(&l);
    gradient(&l);
    for (int m = 0; m < 3; m++)
        for (int e = 0; e < 11; e++) {
            const bj_real h = state_row(&l, 4, m)[l.gru.lead + e];
            CHECK(h >= -1 && h <= 1);
        }
    for (int i = 0; i < 3 * 11 * 11; i++) CHECK(isfinite(l.dw_hh[i]));
    release(&l);
}

int main(void) {
    CHECK(bj_gru_lead(7) == 8 && bj_gru_lead(8) == 16 && bj_gru_lead(1) == 8);
    for (int i = 0; bj_kernels_at(i); i++) {
        const bj_kernels *k = bj_kernels_at(i);
        test_layer(k, 1, 1, 7, 1);
        test_layer(k, 3, 1, 7, 5);
        test_layer(k, 2, 2, 7, 8);
        test_layer(k, 4, 9, 7, 13);
        test_layer(k, 17, 3, 7, 16);
        test_layer(k, 5, 6, 7, 37);
        test_layer(k, 3, 4, 3, 6);  /* a pad of several columns */
        test_layer(k, 2, 3, 8, 10); /* inputs that fill a complete vector */
        test_saturation(k);
    }
    return test_report("gru");
}
