/* test_linear.c - compares y = x W^T + b with plain loops and its gradients with finite
 * differences, for every kernel table. */
#include "nn/linear.h"

#include "nn_case.h"

enum { PAD = 3 };

/* x --in--> relu --out--> y, with the loss sum(r * y). */
typedef struct network {
    const bj_kernels *k;
    int M, I, H, O;
    size_t ldx, ldh, ldy;
    bj_real *x, *w1, *b1, *w2, *b2, *r; /* inputs */
    bj_real *hidden, *y;                /* (M,H) (M,O) */
    bj_real *dx, *dhidden;              /* from bj_linear_backward */
    bj_real *dw1, *db1, *dw2, *db2;     /* from the kernels that the trainer uses */
    bj_linear in, out;
    bj_real *scratch;
} network;

static void forward(network *n) {
    bj_linear_pack_forward(n->k, &n->in);
    bj_linear_pack_forward(n->k, &n->out);
    bj_linear_forward(n->k, n->hidden, n->ldh, n->x, n->ldx, &n->in, n->M, BJ_GEMM_RELU);
    bj_linear_forward(n->k, n->y, n->ldy, n->hidden, n->ldh, &n->out, n->M, 0);
}

static double loss(void *context) {
    network *n = context;
    forward(n);
    double sum = 0;
    for (int m = 0; m < n->M; m++)
        for (int o = 0; o < n->O; o++)
            sum += (double)n->r[(size_t)m * n->ldy + (size_t)o] *
                   (double)n->y[(size_t)m * n->ldy + (size_t)o];
    return sum;
}

static void weight_gradient(network *n, bj_real *dw, bj_real *db, const bj_real *dy, size_t lddy,
                            int out, const bj_real *x, size_t ldx, int in) {
    nn_rows plan;
    const bj_rows rows = nn_all_rows(&plan, n->M);
    n->k->gradient(dw, (size_t)in, dy, lddy, x, ldx, &rows, out, in, n->scratch);
    for (int o = 0; o < out; o += n->k->panel)
        n->k->column_sum(db + o, dy + o, lddy, &rows,
                         out - o < n->k->panel ? out - o : n->k->panel);
}

static void gradient(void *context) {
    network *n = context;
    bj_linear_pack_backward(n->k, &n->in);
    bj_linear_pack_backward(n->k, &n->out);
    forward(n);
    bj_linear_backward(n->k, n->dhidden, n->ldh, n->r, n->ldy, n->hidden, n->ldh, &n->out, n->M, 0);
    bj_linear_backward(n->k, n->dx, n->ldx, n->dhidden, n->ldh, NULL, 0, &n->in, n->M, 0);
    weight_gradient(n, n->dw2, n->db2, n->r, n->ldy, n->O, n->hidden, n->ldh, n->H);
    weight_gradient(n, n->dw1, n->db1, n->dhidden, n->ldh, n->H, n->x, n->ldx, n->I);
}

static bj_linear make(const bj_kernels *k, const bj_real *w, const bj_real *b, int in, int out) {
    const size_t packed = bj_linear_packed_size(k, in, out);
    return (bj_linear){w, b, in, out, nn_array(packed, MARKER), nn_array(packed, MARKER)};
}

/* Computes the hidden sums in double. If a sum is near the kink of the ReLU, the caller moves it
 * away by changing the bias. */
static void plain_hidden(double *sum, const network *n) {
    for (int m = 0; m < n->M; m++)
        for (int h = 0; h < n->H; h++) {
            double s = n->b1[h];
            for (int i = 0; i < n->I; i++)
                s += (double)n->x[(size_t)m * n->ldx + (size_t)i] *
                     (double)n->w1[(size_t)h * (size_t)n->I + (size_t)i];
            sum[m * n->H + h] = s;
        }
}

static int near_kink(const double *sum, const network *n, int h) {
    for (int m = 0; m < n->M; m++)
        if (fabs(sum[m * n->H + h]) < 1e-3) return 1;
    return 0;
}

static void test_network(const bj_kernels *k, int M, int I, int H, int O) {
    bj_rng rng = bj_rng_seed((uint64_t)(M * 1000 + I));
    network n = {.k = k, .M = M, .I = I, .H = H, .O = O};
    n.ldx = (size_t)I + PAD, n.ldh = (size_t)H + PAD, n.ldy = (size_t)O + PAD;
    n.x = nn_normal(&rng, M, I, n.ldx, 1);
    n.w1 = nn_normal(&rng, 1, H * I, (size_t)(H * I), 1 / sqrt(I));
    n.b1 = nn_normal(&rng, 1, H, (size_t)H, 0.5);
    n.w2 = nn_normal(&rng, 1, O * H, (size_t)(O * H), 1 / sqrt(H));
    n.b2 = nn_normal(&rng, 1, O, (size_t)O, 0.5);
    n.r = nn_normal(&rng, M, O, n.ldy, 1);
    n.hidden = nn_array((size_t)M * n.ldh, MARKER);
    n.y = nn_array((size_t)M * n.ldy, MARKER);
    n.dx = nn_array((size_t)M * n.ldx, MARKER);
    n.dhidden = nn_array((size_t)M * n.ldh, MARKER);
    n.dw1 = nn_array((size_t)(H * I), MARKER), n.db1 = nn_array((size_t)H, MARKER);
    n.dw2 = nn_array((size_t)(O * H), MARKER), n.db2 = nn_array((size_t)O, MARKER);
    n.scratch = nn_array(BJ_GRADIENT_SCRATCH, 0);
    n.in = make(k, n.w1, n.b1, I, H), n.out = make(k, n.w2, n.b2, H, O);

    double *hidden = bj_alloc((size_t)(M * H), sizeof *hidden);
    double *y = bj_alloc((size_t)(M * O), sizeof *y);
    plain_hidden(hidden, &n);
    for (int h = 0; h < H; h++)
        while (near_kink(hidden, &n, h)) {
            n.b1[h] += (bj_real)0.01;
            plain_hidden(hidden, &n);
        }

    /* Compare forward with plain loops. */
    forward(&n);
    int positive = 0;
    for (int i = 0; i < M * H; i++) positive += hidden[i] > 0, hidden[i] = fmax(hidden[i], 0);
    for (int m = 0; m < M; m++)
        for (int o = 0; o < O; o++) {
            y[m * O + o] = n.b2[o];
            for (int h = 0; h < H; h++) y[m * O + o] += hidden[m * H + h] * (double)n.w2[o * H + h];
        }
    CHECK(nn_distance(n.hidden, n.ldh, hidden, (size_t)H, M, H) <= nn_tolerance());
    CHECK(nn_distance(n.y, n.ldy, y, (size_t)O, M, O) <= nn_tolerance());
    CHECK(M * H < 20 || (positive > 0 && positive < M * H)); /* both sides of the kink occur */

    /* Compare backward with finite differences. */
    const gradcheck_array arrays[] = {
        {.name = "x", .x = n.x, .dx = n.dx, .rows = M, .cols = I, .stride = n.ldx},
        {.name = "w1", .x = n.w1, .dx = n.dw1, .rows = H, .cols = I},
        {.name = "b1", .x = n.b1, .dx = n.db1, .rows = 1, .cols = H},
        {.name = "w2", .x = n.w2, .dx = n.dw2, .rows = O, .cols = H},
        {.name = "b2", .x = n.b2, .dx = n.db2, .rows = 1, .cols = O}};
    char name[64];
    snprintf(name, sizeof name, "%s linear %dx%d-%d-%d", k->isa, M, I, H, O);
    const gradcheck_case c = {.name = name,
                              .loss = loss,
                              .gradient = gradient,
                              .context = &n,
                              .arrays = arrays,
                              .count = positive ? 5 : 0,
                              .step = 1e-5,
                              .tol = 1e-8,
                              .probes = 60};
    gradcheck(&c);
    CHECK(nn_untouched(n.hidden, M, H, n.ldh) && nn_untouched(n.y, M, O, n.ldy));
    CHECK(nn_untouched(n.dx, M, I, n.ldx) && nn_untouched(n.dhidden, M, H, n.ldh));

    /* Test BJ_GEMM_ADD in the forward pass without a bias and in the backward pass. */
    gradient(&n);
    bj_real *sum = nn_array((size_t)M * n.ldx, 2), *added = nn_array((size_t)M * n.ldy, 2);
    bj_linear bare = n.out;
    bare.b = NULL;
    bj_linear_backward(k, sum, n.ldx, n.dhidden, n.ldh, NULL, 0, &n.in, M, BJ_GEMM_ADD);
    bj_linear_forward(k, added, n.ldy, n.hidden, n.ldh, &bare, M, BJ_GEMM_ADD);
    for (int m = 0; m < M; m++) {
        for (int i = 0; i < I; i++)
            CHECK_NEAR(sum[(size_t)m * n.ldx + (size_t)i],
                       2 + (double)n.dx[(size_t)m * n.ldx + (size_t)i], 10 * nn_tolerance());
        for (int o = 0; o < O; o++)
            CHECK_NEAR(added[(size_t)m * n.ldy + (size_t)o], 2 + y[m * O + o] - (double)n.b2[o],
                       10 * nn_tolerance());
    }
    bj_real *const all[] = {
        n.x, n.w1,  n.b1,      n.w2,         n.b2,          n.r,           n.hidden,
        n.y, n.dx,  n.dhidden, n.dw1,        n.db1,         n.dw2,         n.db2,
        sum, added, n.scratch, n.in.forward, n.in.backward, n.out.forward, n.out.backward};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) bj_free(all[i]);
    bj_free(hidden);
    bj_free(y);
}

int main(void) {
    for (int i = 0; bj_kernels_at(i); i++) {
        const bj_kernels *k = bj_kernels_at(i);
        test_network(k, 1, 1, 3, 1);
        test_network(k, 3, 5, 7, 2);
        test_network(k, 4, 16, 24, 8); /* complete vectors and panels */
        test_network(k, 17, 33, 50, 25);
        test_network(k, 37, 7, 101, 9);
    }
    return test_report("linear");
}
