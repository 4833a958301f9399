/* gradients.c - computes all weight gradients of a step as a list of jobs divided into tiles.
 *
 * A job is c = sum over rows of dy^T x. Sums over the batch follow the
 * order in core/shards.h, so they do not depend on which worker computes a
 * tile. There is no job for tensors that do not affect the loss.
 */
#include <string.h>

#include "core/clock.h"
#include "train/trainer.h"

enum { PLANS = 9, KV_ROWS = 64 /* rows per unfold item */ };

/* Returns the max number of separate row ranges that one latent can win in a shard. It equals the
 * number of scenes in the largest shard. The shards of a smaller batch are not larger. */
static size_t winner_segments(int B) {
    int most = 0;
    for (int s = 0; s < BJ_SHARDS; s++) {
        const int n = bj_shard_begin(B, s + 1) - bj_shard_begin(B, s);
        most = n > most ? n : most;
    }
    return (size_t)most;
}

size_t bj_plans_size(const bj_trainer *t) {
    /* Each plan has two arrays, with at most two segments per shard, or
     * one per step for the GRU. */
    const size_t fixed = 2 * (PLANS - 1) + (size_t)t->steps + BJ_OBSERVER_LAYERS;
    const size_t winners = bj_objective_is_hard(&t->objective) ? winner_segments(t->max_batch) : 0;
    return 2 * (size_t)BJ_SHARDS *
           (fixed + winners * (size_t)t->network.L + (winners ? winners + 1 : 0));
}

int bj_jobs_most(const bj_trainer *t) {
    return 48 + 4 * t->model->arch.heads + 6 * t->model->arch.atoms;
}

typedef struct planner {
    int *memory;
} planner;

static bj_rows new_plan(planner *p, int segments, int **begin, int **count) {
    *begin = p->memory;
    *count = p->memory + BJ_SHARDS * segments;
    p->memory += 2 * BJ_SHARDS * segments;
    return (bj_rows){segments, *begin, *count};
}

static void plan_observer(bj_trainer *t, planner *p) {
    const bj_observer *o = &t->online.observer;
    const int B = t->batch.B;
    int *begin, *count;
    t->plans.scenes = new_plan(p, 1, &begin, &count);
    for (int s = 0; s < BJ_SHARDS; s++) {
        begin[s] = bj_shard_begin(B, s);
        count[s] = bj_shard_begin(B, s + 1) - begin[s];
    }
    for (int i = 0; i < o->layers; i++) {
        t->plans.observer[i] = new_plan(p, 1, &begin, &count);
        for (int s = 0; s < BJ_SHARDS; s++) {
            begin[s] = o->rows[i] * bj_shard_begin(B, s);
            count[s] = o->rows[i] * bj_shard_begin(B, s + 1) - begin[s];
        }
    }
}

/* Lists the rows that have a gradient under a winner-takes-all objective. All other rows are zero,
 * so they are left out of the sums. */
static void plan_winners(bj_trainer *t) {
    const int B = t->batch.B, L = t->network.L, segments = (int)winner_segments(B);
    const int *winner = t->io.winner;
    planner p = {t->winner_memory};
    int *begin, *count;
    for (int i = 0; i < L; i++) {
        t->plans.winner[i] = new_plan(&p, segments, &begin, &count);
        for (int s = 0; s < BJ_SHARDS; s++) {
            int run = s * segments, last = -2;
            for (int b = bj_shard_begin(B, s); b < bj_shard_begin(B, s + 1); b++) {
                if (winner[b] != i) continue;
                if (last == b - 1) {
                    count[run - 1]++;
                } else {
                    begin[run] = b;
                    count[run++] = 1;
                }
                last = b;
            }
            for (; run < (s + 1) * segments; run++) begin[run] = count[run] = 0;
        }
    }
    if (!(t->reach & BJ_REACH_DECODER)) return;
    const bj_rows all = t->plans.decoder; /* latents, then targets */
    t->plans.decoder = new_plan(&p, segments + 1, &begin, &count);
    for (int s = 0; s < BJ_SHARDS; s++) {
        int run = s * (segments + 1);
        const int end = run + segments, decoded = all.count[2 * s] > 0;
        for (int b = bj_shard_begin(B, s); decoded && b < bj_shard_begin(B, s + 1); b++) {
            begin[run] = b * L + winner[b];
            count[run++] = 1;
        }
        for (; run < end; run++) begin[run] = count[run] = 0;
        begin[end] = all.begin[2 * s + 1];
        count[end] = all.count[2 * s + 1];
    }
}

void bj_plans_build(bj_trainer *t) {
    if (bj_trainer_observes(t)) {
        planner p = {t->plan_memory};
        plan_observer(t, &p);
        t->winner_memory = p.memory;
        return;
    }
    const bj_gathered *batch = &t->batch;
    const int B = batch->B, L = t->network.L, T = t->steps;
    const int anchor = t->objective.kind == BJ_ANCHOR_A;
    const int decoded = (t->reach & BJ_REACH_DECODER) && !anchor && t->objective.lambda_y != 0;
    const int rec = (t->reach & BJ_REACH_DECODER) && (anchor || t->objective.lambda_rec != 0);
    const int kv = 2 * t->model->arch.embed, G = t->model->arch.heads;
    const int none[2] = {0, 0};
    planner p = {t->plan_memory};
    bj_row_plans *plans = &t->plans;
    int *begin[PLANS], *count[PLANS];
    plans->scenes = new_plan(&p, 1, &begin[0], &count[0]);
    plans->decoder = new_plan(&p, 2, &begin[1], &count[1]);
    plans->decoder_scene = new_plan(&p, 1, &begin[2], &count[2]);
    plans->neighbors = new_plan(&p, 1, &begin[3], &count[3]);
    plans->polylines = new_plan(&p, 1, &begin[4], &count[4]);
    plans->neighbor_bias = new_plan(&p, 2, &begin[5], &count[5]);
    plans->keys_values = new_plan(&p, 1, &begin[6], &count[6]);
    plans->time = new_plan(&p, T, &begin[7], &count[7]);
    plans->heads = new_plan(&p, 2, &begin[8], &count[8]);
    for (int s = 0; s < BJ_SHARDS; s++) {
        const int b0 = bj_shard_begin(B, s), b1 = bj_shard_begin(B, s + 1), n = b1 - b0;
        const int *ns = anchor ? none : batch->neighbor_start;
        const int n0 = anchor ? 0 : ns[b0], n1 = anchor ? 0 : ns[b1], all = anchor ? 0 : ns[B];
#define SET(plan, index, b, c) (begin[plan][index] = (b), count[plan][index] = (c))
        SET(0, s, b0, n);
        SET(1, 2 * s, b0 * L, decoded ? n * L : 0);
        SET(1, 2 * s + 1, B * L + b0, rec ? n : 0);
        SET(2, s, b0, decoded ? n : 0);
        SET(3, s, n0, n1 - n0);
        SET(4, s, batch->polyline_start[b0],
            batch->polyline_start[b1] - batch->polyline_start[b0]);
        SET(5, 2 * s, n0, n1 - n0);
        SET(5, 2 * s + 1, all + b0, n);
        SET(6, s, bj_shard_begin(kv, s), bj_shard_begin(kv, s + 1) - bj_shard_begin(kv, s));
        for (int i = 0; i < T; i++) SET(7, s * T + i, i * B + b0, n);
        for (int i = 0; i < 2; i++) SET(8, 2 * s + i, (i * t->max_batch + b0) * G, n * G);
#undef SET
    }
    t->winner_memory = p.memory;
}

/* ---------------------------------------------------------------------------------------- jobs */

static int tiles(int n, int size) { return (n + size - 1) / size; }

static void begin_round(bj_trainer *t) { t->job_count = 0; }

static void add_job(bj_trainer *t, bj_real *c, size_t ldc, const bj_real *dy, size_t lddy, int M,
                    const bj_real *x, size_t ldx, int N, const bj_rows *rows) {
    const int items =
        x ? tiles(N, BJ_GRADIENT_COLUMNS) * tiles(M, BJ_GRADIENT_ROWS) : tiles(N, t->k->panel);
    t->jobs[t->job_count++] = (bj_gradient_job){c, ldc, dy, x, lddy, ldx, rows, M, N, items};
}

/* Adds the jobs for the weight and the bias of a linear layer. */
static void add_linear(bj_trainer *t, bj_param_id w, bj_param_id b, int index, const bj_real *dy,
                       size_t lddy, const bj_real *x, size_t ldx, const bj_rows *rows) {
    const bj_layout *layout = &t->model->layout;
    const bj_param *p = &layout->params[layout->first[w] + index];
    const int out = p->shape[0], in = p->shape[1];
    add_job(t, t->gradients + p->offset, (size_t)in, dy, lddy, out, x, ldx, in, rows);
    add_job(t, t->gradients + bj_layout_offset(layout, b, index), 0, dy, lddy, 0, NULL, 0, out,
            rows);
}

static void add_observer(bj_trainer *t) {
    const bj_observer *o = &t->online.observer;
    const bj_observer_block *b = &t->encoder.observer;
    const bj_real *dy = t->head.dcontext;
    size_t lddy = t->head.ldc;
    for (int i = o->layers - 1; i >= 0; i--) {
        add_linear(t, o->weight[i], o->bias[i], 0, dy, lddy, b->x[i], b->ldx[i],
                   &t->plans.observer[i]);
        dy = b->dx[i];
        if (i > 0) lddy = b->ldx[i] / (size_t)o->group[i - 1];
    }
}

static void add_variational(bj_trainer *t) {
    const bj_network_block *b = &t->head;
    const size_t V2 = 2 * (size_t)t->model->arch.noise;
    const bj_rows *rows = &t->plans.scenes;
#define ADD(id, layer, dy, lddy, x, ldx)                                                           \
    add_linear(t, BJ_P_##id##_W##layer, BJ_P_##id##_B##layer, 0, dy, lddy, x, ldx, rows)
    ADD(PRIOR, 1, b->dprior_hidden, b->ldn, t->encoder.context, b->ldc);
    ADD(PRIOR, 2, b->dprior, V2, b->prior_hidden, b->ldn);
    ADD(POSTERIOR, 1, b->dposterior_hidden, b->ldn, b->posterior_x, b->ldp);
    ADD(POSTERIOR, 2, b->dposterior, V2, b->posterior_hidden, b->ldn);
    ADD(GENERATOR, 1, b->datom_hidden, b->lda, b->generator_x, b->ldg);
    ADD(GENERATOR, 2, b->du, b->ldu, b->atom_hidden, b->lda);
#undef ADD
}

/* Adds the jobs for the second token layers, which multiply rows of dy (width E) with rows of x
 * (folded width). */
static void add_token_layers(bj_trainer *t, const bj_real *dy, size_t lddy, const bj_real *x,
                             const bj_rows *rows) {
    static const bj_param_id weight[2] = {BJ_P_NEIGHBOR_W2, BJ_P_POLYLINE_W2};
    static const bj_param_id bias[2] = {BJ_P_NEIGHBOR_B2, BJ_P_POLYLINE_B2};
    const int E = t->model->arch.embed, TH = t->model->arch.token_hidden;
    const bj_layout *layout = &t->model->layout;
    const size_t ldt = t->online.ldt;
    for (int s = 0; s < 2; s++) {
        add_job(t, t->gradients + bj_layout_offset(layout, weight[s], 0), (size_t)TH, dy, lddy, E,
                x + s * TH, ldt, TH, rows);
        add_job(t, t->gradients + bj_layout_offset(layout, bias[s], 0), 1, dy, lddy, E,
                x + 2 * TH + s, ldt, 1, rows);
    }
}

/* Adds the jobs for the token layers, keys and values of a factored encoder. The gradients of bk
 * are written to the columns in which unfold expects them. */
static void add_factors(bj_trainer *t) {
    const bj_encoder_block *b = &t->encoder;
    const int E = t->model->arch.embed, G = t->model->arch.heads, d = E / G, W = t->online.W;
    const size_t ldt = t->online.ldt, lde = b->lde, heads = (size_t)G;
    const bj_rows *scenes = &t->plans.scenes;
    bj_real *dkv = t->gradients + bj_layout_offset(&t->model->layout, BJ_P_ATTN_W_IN, 0) +
                   (size_t)E * (size_t)E;
    add_token_layers(t, b->ds, lde, b->h, &t->plans.heads);
    for (size_t g = 0; g < heads; g++) {
        const size_t row = g * (size_t)d;
        add_job(t, dkv + row * (size_t)E, (size_t)E, b->q + row, lde, d, b->dp + g * lde,
                heads * lde, E, scenes);
        add_job(t, dkv + ((size_t)E + row) * (size_t)E, (size_t)E, b->dpooled + row, lde, d,
                b->s + g * lde, heads * lde, E, scenes);
        add_job(t, t->dfolded + row * ldt + (size_t)(W - 2), ldt, b->q + row, lde, d,
                b->da + g * ldt + (size_t)(W - 2), heads * ldt, 2, scenes);
    }
}

static void add_encoder(bj_trainer *t) {
    const bj_arch *a = &t->model->arch;
    const bj_encoder_block *b = &t->encoder;
    const bj_layout *layout = &t->model->layout;
    const bj_row_plans *rows = &t->plans;
    const int E = a->embed, G = a->heads, d = E / G, W = t->online.W;
    const int lead = t->online.gru.lead, anchor = t->objective.kind == BJ_ANCHOR_A;
    const size_t ldt = t->online.ldt, ldg = (size_t)G * ldt;
    const bj_real *dcontext = anchor ? t->head.du + (size_t)t->batch.B * t->io.L * t->head.ldu
                                     : t->head.dcontext;
#define OF(id) (t->gradients + bj_layout_offset(layout, BJ_P_##id, 0))
    /* dr, dz and dhn are multiplied with the whole state row [x | 1 | h]. din is multiplied only
     * with [x | 1]. This product comes first because it is narrow. */
    add_job(t, t->dgates, b->lds, b->gates, b->ldg, 3 * E, b->state, b->lds, lead + E,
            &rows->time);
    add_job(t, t->dinput, bj_stride(E), b->state, b->lds, BJ_FOCAL_FEATURES + 1, b->gates + 3 * E,
            b->ldg, E, &rows->time);
    if (!anchor) {
        const int in = a->obs * BJ_FOCAL_FEATURES;
        add_job(t, OF(NEIGHBOR_W1), (size_t)in, b->dr[0], b->ldr, a->token_hidden,
                t->batch.neighbors, (size_t)in, in, &rows->neighbors);
    } else {
        memset(OF(NEIGHBOR_W1), 0,
               layout->params[layout->first[BJ_P_NEIGHBOR_W1]].size * sizeof(bj_real));
    }
    add_job(t, OF(NEIGHBOR_B1), 0, b->dr[0], b->ldr, 0, NULL, 0, a->token_hidden,
            &rows->neighbor_bias);
    add_linear(t, BJ_P_POLYLINE_W1, BJ_P_POLYLINE_B1, 0, b->dr[1], b->ldr, t->batch.polylines,
               (size_t)a->points * BJ_POLYLINE_FEATURES, &rows->polylines);
    /* The query is the first third of the input projection. */
    add_job(t, OF(ATTN_W_IN), (size_t)E, b->dq, b->lde, E, b->joint, b->ldj, E, &rows->scenes);
    add_job(t, OF(ATTN_B_IN), 0, b->dq, b->lde, 0, NULL, 0, E, &rows->scenes);
    add_job(t, OF(ATTN_B_IN) + 2 * E, 0, b->dpooled, b->lde, 0, NULL, 0, E, &rows->scenes);
    if (t->online.factored) add_factors(t);
    for (int g = 0; g < G && !t->online.factored; g++) {
        add_job(t, t->dfolded + (size_t)(g * d) * ldt, ldt, b->q + g * d, b->lde, d,
                b->da + (size_t)g * ldt, ldg, W, &rows->scenes);
        add_job(t, t->dfolded + (size_t)(E + g * d) * ldt, ldt, b->dpooled + g * d, b->lde, d,
                b->h + (size_t)g * ldt, ldg, W, &rows->scenes);
    }
#undef OF
    add_linear(t, BJ_P_ATTN_W_OUT, BJ_P_ATTN_B_OUT, 0, b->djoint + E, b->ldj, b->pooled, b->lde,
               &rows->scenes);
    add_linear(t, BJ_P_PROJ_W1, BJ_P_PROJ_B1, 0, b->dhidden, b->ldp, b->joint, b->ldj,
               &rows->scenes);
    add_linear(t, BJ_P_PROJ_W2, BJ_P_PROJ_B2, 0, dcontext, b->ldc, b->hidden, b->ldp,
               &rows->scenes);
}

static void add_network(bj_trainer *t) {
    const bj_network_block *b = &t->head;
    const bj_row_plans *rows = &t->plans;
    const int one = t->model->layout.first[BJ_P_ONE_W1] >= 0, branch = !one, K = t->network.K;
    const size_t L = (size_t)t->network.L;
    if (t->network.prior_in.out) {
        if (t->reach & BJ_REACH_ATOMS) add_variational(t);
        return;
    }
    for (size_t i = 0; i < L && (t->reach & BJ_REACH_ATOMS); i++) {
        const bj_rows *scenes = t->io.winner ? &rows->winner[i] : &rows->scenes;
        add_linear(t, branch ? BJ_P_ATOM_W1 : BJ_P_ONE_W1, branch ? BJ_P_ATOM_B1 : BJ_P_ONE_B1,
                   (int)i, b->datom_hidden + i * b->lda, L * b->lda, t->encoder.context, b->ldc,
                   scenes);
        add_linear(t, branch ? BJ_P_ATOM_W2 : BJ_P_ONE_W2, branch ? BJ_P_ATOM_B2 : BJ_P_ONE_B2,
                   (int)i, b->du + i * b->ldu, L * b->ldu, b->atom_hidden + i * b->lda, L * b->lda,
                   scenes);
    }
    if (t->reach & BJ_REACH_ROUTER) {
        add_linear(t, BJ_P_ROUTER_W1, BJ_P_ROUTER_B1, 0, b->drouter_hidden, b->ldr,
                   t->encoder.context, b->ldc, &rows->scenes);
        add_linear(t, BJ_P_ROUTER_W2, BJ_P_ROUTER_B2, 0, b->dlogits, (size_t)K, b->router_hidden,
                   b->ldr, &rows->scenes);
    }
    if (t->reach & BJ_REACH_DECODER) {
        add_linear(t, branch ? BJ_P_DECODER_W1 : BJ_P_TRUNK_W,
                   branch ? BJ_P_DECODER_B1 : BJ_P_TRUNK_B, 0, b->ddecoder_hidden, b->ldd, b->u,
                   b->ldu, &rows->decoder);
        add_linear(t, branch ? BJ_P_DECODER_W2 : BJ_P_BASE_W,
                   branch ? BJ_P_DECODER_B2 : BJ_P_BASE_B, 0, branch ? b->dy : b->dbase, b->ldy,
                   b->decoder_hidden, b->ldd, &rows->decoder);
    }
    if (t->reach & BJ_REACH_RESIDUAL) {
        for (int i = 0; i < K; i++)
            add_linear(t, BJ_P_RESIDUAL_W, BJ_P_RESIDUAL_B, i, b->dresidual + (size_t)i * b->ldy,
                       (size_t)K * b->ldy, b->decoder_hidden, b->ldd, &rows->decoder_scene);
        add_job(t, t->dresidual_scale, 0, b->dscale, b->lds, 0, NULL, 0, K * t->model->arch.fut,
                &rows->decoder_scene);
    }
}

/* Divides the tiles of every job among the workers. A worker gets the same rows of a tensor in
 * every step and in the update (update.c), because it is slow to read a cache line that another
 * worker wrote. */
static void share_jobs(bj_trainer *t) {
    const int threads = bj_pool_threads(t->pool);
    t->share[0] = 0;
    for (int w = 0; w < threads; w++) {
        t->share[w + 1] = t->share[w];
        for (int j = 0; j < t->job_count; j++)
            t->share[w + 1] += bj_share_begin(t->jobs[j].tiles, w + 1, threads) -
                               bj_share_begin(t->jobs[j].tiles, w, threads);
    }
}

static void run_tile(void *context, int item, int worker) {
    const bj_trainer *t = context;
    const int threads = bj_pool_threads(t->pool);
    int w = 0, j = 0, tile;
    while (t->share[w + 1] <= item) w++;
    for (int left = item - t->share[w];; j++) {
        const int first = bj_share_begin(t->jobs[j].tiles, w, threads);
        const int count = bj_share_begin(t->jobs[j].tiles, w + 1, threads) - first;
        tile = first + left;
        if (left < count) break;
        left -= count;
    }
    const bj_gradient_job *job = &t->jobs[j];
    const int width = job->x ? BJ_GRADIENT_COLUMNS : t->k->panel, columns = tiles(job->N, width);
    const int n = tile % columns * width;
    const int m = tile / columns * BJ_GRADIENT_ROWS;
    const int N = job->N - n < width ? job->N - n : width;
    if (!job->x) {
        t->k->column_sum(job->c + n, job->dy + n, job->lddy, job->rows, N);
        return;
    }
    const int M = job->M - m < BJ_GRADIENT_ROWS ? job->M - m : BJ_GRADIENT_ROWS;
    t->k->gradient(job->c + (size_t)m * job->ldc + n, job->ldc, job->dy + m, job->lddy, job->x + n,
                   job->ldx, job->rows, M, N, t->scratch[worker].gradient);
}

/* -------------------------------------------------------------------------------------- unfold */

/* Splits the gate gradients, whose columns are the state rows [x | 1 | h], into gradients of the
 * weights and both biases. */
static void split_gates(bj_trainer *t) {
    const int E = t->model->arch.embed, I = BJ_FOCAL_FEATURES, lead = t->online.gru.lead;
    const size_t ld = t->encoder.lds;
    const bj_layout *layout = &t->model->layout;
    bj_real *w_ih = t->gradients + bj_layout_offset(layout, BJ_P_GRU_W_IH, 0);
    bj_real *w_hh = t->gradients + bj_layout_offset(layout, BJ_P_GRU_W_HH, 0);
    bj_real *b_ih = t->gradients + bj_layout_offset(layout, BJ_P_GRU_B_IH, 0);
    bj_real *b_hh = t->gradients + bj_layout_offset(layout, BJ_P_GRU_B_HH, 0);
    for (int o = 0; o < 3 * E; o++) {
        /* Rows of dgates are dr, dz, dhn. The third group uses dhn for h and the recurrent bias,
         * and din for x. */
        const bj_real *row = t->dgates + (size_t)o * ld;
        const bj_real *input = o < 2 * E ? row : t->dinput + (o - 2 * E);
        const size_t step = o < 2 * E ? 1 : bj_stride(E);
        memcpy(w_hh + (size_t)o * E, row + lead, (size_t)E * sizeof *w_hh);
        for (int i = 0; i < I; i++) w_ih[o * I + i] = input[(size_t)i * step];
        b_ih[o] = input[(size_t)I * step];
        b_hh[o] = row[I];
    }
}

/* Splits the gradient of scale[k,t] = step[k,t] * segment[k,t/10]. */
static void split_residual_scale(bj_trainer *t) {
    const int K = t->model->arch.atoms, F = t->model->arch.fut, S = F / BJ_SEGMENT_STEPS;
    const bj_layout *layout = &t->model->layout;
    bj_real *dstep = t->gradients + bj_layout_offset(layout, BJ_P_STEP_SCALE, 0);
    bj_real *dsegment = t->gradients + bj_layout_offset(layout, BJ_P_SEGMENT_SCALE, 0);
    for (int k = 0; k < K; k++) {
        for (int s = 0; s < S; s++) dsegment[k * S + s] = 0;
        for (int f = 0; f < F; f++) {
            const bj_real ds = t->dresidual_scale[k * F + f];
            dstep[k * F + f] = ds * t->network.segment_scale[k * S + f / BJ_SEGMENT_STEPS];
            dsegment[k * S + f / BJ_SEGMENT_STEPS] += ds * t->network.step_scale[k * F + f];
        }
    }
}

/* Unfolds the gradient of [M; N] = [Wk; Wv] U. bk is added to the last two columns of M. */
static void unfold_item(void *context, int item, int worker) {
    bj_trainer *t = context;
    const bj_arch *a = &t->model->arch;
    const int E = a->embed, W = t->online.W;
    const int tiles = t->share[bj_pool_threads(t->pool)];
    if (item < tiles) {
        run_tile(context, item, worker);
        return;
    }
    const int row = (item - tiles) * KV_ROWS;
    const int rows = 2 * E - row < KV_ROWS ? 2 * E - row : KV_ROWS;
    bj_real *dkv = t->gradients + bj_layout_offset(&t->model->layout, BJ_P_ATTN_W_IN, 0) +
                   (size_t)(E + row) * E;
    t->k->gemm(dkv, (size_t)E, t->dfolded + (size_t)row * t->online.ldt, t->online.ldt,
               t->online.joined_nk, NULL, NULL, 0, rows, E, W, 0);
}

static void unfold(bj_trainer *t) {
    const bj_arch *a = &t->model->arch;
    const int E = a->embed, TH = a->token_hidden;
    const size_t ldt = t->online.ldt;
    bj_real *dbk = t->gradients + bj_layout_offset(&t->model->layout, BJ_P_ATTN_B_IN, 0) + E;
    for (int i = 0; i < E; i++)
        dbk[i] = t->dfolded[(size_t)i * ldt + 2 * TH] + t->dfolded[(size_t)i * ldt + 2 * TH + 1];
    if (t->online.factored) return;
    begin_round(t);
    /* dU = [Wk; Wv]^T [dM; dN] */
    add_token_layers(t, t->online.kv_w, (size_t)E, t->dfolded, &t->plans.keys_values);
    share_jobs(t);
    bj_pool_run(t->pool, unfold_item, t,
                t->share[bj_pool_threads(t->pool)] + tiles(2 * E, KV_ROWS));
}

void bj_gradients_run(bj_trainer *t) {
    double start = bj_seconds();
    const int scenes = !bj_trainer_observes(t) && (t->reach & BJ_REACH_ENCODER);
    begin_round(t);
    if (t->io.winner) plan_winners(t);
    if (scenes) add_encoder(t);
    else if (t->reach & BJ_REACH_ENCODER) add_observer(t);
    add_network(t);
    share_jobs(t);
    bj_pool_run_shares(t->pool, run_tile, t, t->share);
    t->profile.gradients += bj_seconds() - start;
    start = bj_seconds();
    if (scenes) {
        split_gates(t);
        unfold(t);
    }
    if (t->reach & BJ_REACH_RESIDUAL) split_residual_scale(t);
    t->profile.unfold += bj_seconds() - start;
}
