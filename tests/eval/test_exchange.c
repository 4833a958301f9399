/* test_exchange.c - tests exchanged scenes and the encoder statistics.
 *
 * The exchange is compared with scenes that are rebuilt with copies of their partner's arrays and
 * evaluated like any other scenes. The scores must be bit-identical for every kind of model, any
 * number of threads and any batch size.
 *
 * Attention and context are tested with models whose weights give a known result.
 * tests/eval/peer_eval.py compares models with other weights with PyTorch.
 *
 * The rule about map-blind models is tested with two models. One is trained on scenes whose map
 * determines the future, the other on scenes whose map does not.
 */
#include "core/alloc.h"
#include "eval/exchange.h"
#include "train/train_case.h"

enum { SCENES = 61 };

static void require(bj_status status, const bj_error *err) {
    if (status == BJ_OK) return;
    fprintf(stderr, "cannot continue: %s\n", err->message);
    exit(1);
}

/* ------------------------------------------------------------------------------------- partners */

/* Tests that the partners form one cycle through all scenes. */
static void test_cycle(void) {
    enum { MOST = 300 };
    int partners[MOST];
    for (int n = 2; n <= MOST; n += n < 20 ? 1 : 31) {
        bj_exchange_partners(partners, n, (uint64_t)n % 5);
        int at = 0, length = 0, in_range = 1;
        for (int i = 0; i < n; i++) in_range &= partners[i] >= 0 && partners[i] < n;
        CHECK_MSG(in_range, "n = %d", n);
        if (!in_range) continue;
        for (; length <= n; at = partners[at]) {
            CHECK_MSG(partners[at] != at, "n = %d: scene %d is its own partner", n, at);
            length++;
            if (partners[at] == 0) break;
        }
        CHECK_MSG(length == n, "n = %d: a cycle of %d", n, length);
    }
    partners[0] = 7;
    bj_exchange_partners(partners, 1, 1);
    CHECK(partners[0] == 0);
}

/* Tests the partners against values from a Python implementation that follows docs/EVALUATE.md. */
static void test_partners(void) {
    static const int one[8] = {2, 0, 3, 5, 7, 4, 1, 6}, two[8] = {7, 3, 5, 4, 6, 1, 0, 2};
    int found[8];
    CHECK(BJ_EXCHANGE_SEED == 1);
    bj_exchange_partners(found, 8, 1);
    CHECK(!memcmp(found, one, sizeof found));
    bj_exchange_partners(found, 8, 2);
    CHECK(!memcmp(found, two, sizeof found));
}

/* ------------------------------------------------------------------------------------ exchanges */

/* Scales up the tokens' contribution to the context and the decoder's output, so that every part of
 * a scene has an effect larger than rounding. */
static void stretch(bj_model *model) {
    static const char *const names[] = {"encoder.attn.out_proj.weight", "router.2.weight",
                                        "decoder.2.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        bj_error err;
        bj_tensor t;
        if (bj_model_find(&t, model, names[i], &err) != BJ_OK) continue;
        for (size_t j = 0; j < t.size; j++) t.data[j] *= 20;
    }
}

static bj_tensor tensor_of(const bj_model *model, const char *name) {
    bj_error err;
    bj_tensor t;
    require(bj_model_find(&t, model, name, &err), &err);
    return t;
}

static void fill(const bj_model *model, const char *name, double value) {
    const bj_tensor t = tensor_of(model, name);
    for (size_t j = 0; j < t.size; j++) t.data[j] = (bj_real)value;
}

static bj_model *make_model(const bj_arch *arch) {
    bj_error err;
    bj_model *model;
    require(bj_model_create(&model, arch, 5, &err), &err);
    stretch(model);
    return model;
}

static bj_real *copy(const bj_real *from, size_t n) {
    bj_real *to = case_alloc(n, sizeof *to);
    if (n) memcpy(to, from, n * sizeof *to);
    return to;
}

/* Returns the score of scenes with copied arrays, in which `part` comes from the partner and
 * everything else from the scene itself. */
static double rebuilt_score(const bj_model *model, const made_batch *made, const int *partners,
                            bj_exchange_part part) {
    const bj_arch *a = bj_model_arch(model);
    const bj_evaluator_options how = {.max_batch = SCENES, .threads = 1};
    const size_t track = (size_t)a->obs * BJ_FOCAL_FEATURES;
    const size_t line = (size_t)a->points * BJ_POLYLINE_FEATURES;
    bj_scene scenes[SCENES];
    bj_real *memory[SCENES][3];
    bj_evaluator *e;
    bj_error err;
    for (int i = 0; i < SCENES; i++) {
        const bj_scene *own = &made->scenes[i], *other = &made->scenes[partners[i]];
        const bj_scene *focal = part == BJ_EXCHANGE_FOCAL ? other : own;
        const bj_scene *neighbors = part == BJ_EXCHANGE_NEIGHBORS ? other : own;
        const bj_scene *map = part == BJ_EXCHANGE_MAP ? other : own;
        memory[i][0] = copy(focal->focal, track);
        memory[i][1] = copy(neighbors->neighbors, (size_t)neighbors->neighbor_count * track);
        memory[i][2] = copy(map->polylines, (size_t)map->polyline_count * line);
        scenes[i] = (bj_scene){.focal = memory[i][0],
                               .neighbors = memory[i][1],
                               .polylines = memory[i][2],
                               .future = own->future,
                               .neighbor_count = neighbors->neighbor_count,
                               .polyline_count = map->polyline_count};
    }
    const bj_batch batch = {.B = SCENES, .scenes = scenes};
    require(bj_evaluator_create(&e, model, NULL, &how, &err), &err);
    require(bj_evaluator_add(e, &batch, NULL, &err), &err);
    const double score = bj_evaluator_values(e).traj_es;
    bj_evaluator_free(e);
    for (int i = 0; i < SCENES; i++)
        for (int j = 0; j < 3; j++) free(memory[i][j]);
    return score;
}

static bj_exchange_values exchange_of(const bj_model *model, const bj_scene *scenes, int count,
                                      const bj_exchange_options *options) {
    bj_exchange_values x = {0};
    bj_error err = {0};
    CHECK_OK(bj_exchange_measure(&x, model, scenes, count, options, &err), err);
    return x;
}

/* Tests the scores against rebuilt scenes, for several thread counts and batch sizes. */
static void test_rebuilt(bj_arch arch) {
    bj_model *model = make_model(&arch);
    made_batch made = make_batch(&arch, SCENES, -1, -1, 33);
    int partners[SCENES];
    double score[BJ_EXCHANGE_PARTS];
    bj_exchange_partners(partners, SCENES, BJ_EXCHANGE_SEED);
    for (int i = 0; i < BJ_EXCHANGE_PARTS; i++)
        score[i] = rebuilt_score(model, &made, partners, (bj_exchange_part)i);
    for (int i = 1; i < BJ_EXCHANGE_PARTS; i++) CHECK(fabs(score[i] - score[0]) > 1e-4);
    for (int threads = 1; threads <= 3; threads++)
        for (int batch = 1; batch <= 2 * SCENES; batch = 3 * batch + 1) {
            const bj_exchange_options how = {.max_batch = batch, .threads = threads};
            const bj_exchange_options known = {
                .max_batch = batch, .threads = threads, .plain = &score[0]};
            const bj_exchange_values x = exchange_of(model, made.scenes, SCENES, &how);
            const bj_exchange_values y = exchange_of(model, made.scenes, SCENES, &known);
            CHECK(x.scenes == SCENES && x.plain == score[BJ_EXCHANGE_NONE]);
            CHECK(x.map == score[BJ_EXCHANGE_MAP] - score[0]);
            CHECK(x.neighbors == score[BJ_EXCHANGE_NEIGHBORS] - score[0]);
            CHECK(x.focal == score[BJ_EXCHANGE_FOCAL] - score[0]);
            CHECK(!memcmp(&x, &y, sizeof x));
        }
    free_batch(&made);
    bj_model_free(model);
}

/* Tests a model that does not use its tokens. Exchanging the map or the
 * neighbors must not change a bit. */
static void test_focal_only(void) {
    const bj_arch arch = small_arch();
    const bj_exchange_options how = {.max_batch = 32, .threads = 2};
    bj_model *model = make_model(&arch);
    made_batch made = make_batch(&arch, SCENES, -1, -1, 34);
    fill(model, "encoder.attn.out_proj.weight", 0);
    const bj_exchange_values x = exchange_of(model, made.scenes, SCENES, &how);
    CHECK(x.map == 0 && x.neighbors == 0 && fabs(x.focal) > 1e-4);
    free_batch(&made);
    bj_model_free(model);
}

static int calls, stop_at;
static int64_t last_done, last_total;

static int stop(void *context, int64_t done, int64_t total) {
    (void)context;
    last_done = done;
    last_total = total;
    return ++calls == stop_at;
}

/* Tests scenes without a part, a single scene, stopping and errors. */
static void test_edges(void) {
    const bj_arch arch = small_arch();
    bj_exchange_options how = {.max_batch = 20, .threads = 1, .progress = stop};
    bj_model *model = make_model(&arch);
    made_batch none = make_batch(&arch, SCENES, 2, 0, 35), some = make_batch(&arch, 3, 0, 2, 36);
    bj_exchange_values x = exchange_of(model, none.scenes, SCENES, &how);
    CHECK(isnan(x.map) && isfinite(x.neighbors) && isfinite(x.focal));
    CHECK(calls == 3 * 4 && last_done == 3 * SCENES && last_total == 3 * SCENES);
    x = exchange_of(model, some.scenes, 3, &how);
    CHECK(isfinite(x.map) && isnan(x.neighbors) && isfinite(x.focal));
    x = exchange_of(model, some.scenes, 1, &how);
    CHECK(x.scenes == 1 && isfinite(x.plain) && isnan(x.map) && isnan(x.neighbors) &&
          isnan(x.focal));
    for (stop_at = 1; stop_at <= 12; stop_at++) {
        calls = 0;
        x = exchange_of(model, none.scenes, SCENES, &how);
        CHECK(isnan(x.scenes) && isnan(x.plain) && isnan(x.map) && isnan(x.focal));
        CHECK(calls == stop_at);
    }
    bj_error err = {0};
    how.progress = NULL;
    CHECK(bj_exchange_measure(&x, model, none.scenes, 0, &how, &err) == BJ_EARG);
    CHECK(strstr(err.message, "found 0 scenes"));
    none.scenes[40].future = NULL;
    CHECK(bj_exchange_measure(&x, model, none.scenes, SCENES, &how, &err) == BJ_EARG);
    none.scenes[40].future = none.future;
    for (int n = 0;; n++) { /* let the n-th allocation fail, until the call succeeds */
        bj_alloc_fail_after(n);
        const bj_status status = bj_exchange_measure(&x, model, some.scenes, 3, &how, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && isnan(x.plain));
        if (n > 1000) exit(1);
    }
    free_batch(&none);
    free_batch(&some);
    bj_model_free(model);
}

/* -------------------------------------------------------------------------------------- encoder */

static bj_encoder_values encoder_of(const bj_model *model, const made_batch *made, int threads,
                                    int size) {
    const bj_evaluator_options how = {.max_batch = size, .threads = threads};
    bj_evaluator *e;
    bj_error err;
    require(bj_evaluator_create(&e, model, NULL, &how, &err), &err);
    CHECK(isnan(bj_evaluator_encoder(e).attention_tokens));
    for (int round = 0; round < 2; round++) { /* the second round runs after bj_evaluator_clear */
        CHECK_OK(bj_evaluator_clear(e, &err), err);
        CHECK(bj_evaluator_values(e).scenes == 0);
        for (int first = 0; first < SCENES; first += size) {
            const int left = SCENES - first;
            const bj_batch part = {.B = left < size ? left : size, .scenes = made->scenes + first};
            require(bj_evaluator_add(e, &part, NULL, &err), &err);
        }
    }
    const bj_encoder_values values = bj_evaluator_encoder(e);
    bj_evaluator_free(e);
    return values;
}

/* Tests models with known attention and context: equal attention on all tokens, including the zero
 * neighbor, and a context that equals a bias. */
static void test_encoder(void) {
    const bj_arch arch = small_arch();
    bj_model *model = make_model(&arch);
    made_batch made = make_batch(&arch, SCENES, -1, -1, 37);
    const bj_encoder_values plain = encoder_of(model, &made, 1, SCENES);
    for (int threads = 1; threads <= 3; threads++)
        for (int size = 1; size <= SCENES; size = 2 * size + 1) { /* scenes one by one and in
                                                                     blocks */
            const bj_encoder_values v = encoder_of(model, &made, threads, size);
            CHECK(!memcmp(&v, &plain, sizeof v));
        }
    double entropy = 0, most = 0;
    for (int i = 0; i < SCENES; i++) {
        const bj_scene *s = &made.scenes[i];
        const double tokens = (s->neighbor_count ? s->neighbor_count : 1) + s->polyline_count;
        entropy += log(tokens) / SCENES;
        most = fmax(most, tokens);
    }
    CHECK(plain.attention_tokens > 1 && plain.attention_tokens < exp(entropy) - 1e-3);
    CHECK(most == arch.neighbors + arch.polylines);
    fill(model, "encoder.attn.in_proj_weight", 0);
    fill(model, "encoder.proj.2.weight", 0);
    fill(model, "encoder.proj.2.bias", -2);
    const bj_encoder_values known = encoder_of(model, &made, 2, 16);
    CHECK_NEAR(known.attention_tokens, exp(entropy), 1e-5);
    CHECK_NEAR(known.context_norm, 2 * sqrt((double)arch.latent), 1e-12);
    free_batch(&made);
    bj_model_free(model);
}

/* ------------------------------------------------------------------------------- blind or not */

/* Fills scenes in which the focal speed determines the length of the future, and the map determines
 * its direction. */
static void set_scenes(const made_batch *made, const bj_arch *a, uint64_t seed) {
    bj_rng rng = bj_rng_seed(seed);
    for (int i = 0; i < made->batch.B; i++) {
        const size_t track = (size_t)a->obs * BJ_FOCAL_FEATURES;
        const size_t line = (size_t)a->points * BJ_POLYLINE_FEATURES;
        const double speed = 3 * bj_rng_uniform(&rng), angle = 2 * bj_rng_uniform(&rng) - 1;
        bj_real *focal = made->focal + (size_t)i * track;
        bj_real *map = made->polylines + (size_t)made->polyline_start[i] * line;
        bj_real *future = made->future + (size_t)i * (size_t)a->fut * 2;
        for (size_t j = 0; j < track; j++) focal[j] = (bj_real)speed;
        for (size_t j = 0; j < line; j++) map[j] = (bj_real)(2 * (j % 2 ? sin(angle) : cos(angle)));
        for (int f = 0; f < a->fut; f++) {
            future[2 * f] = (bj_real)(speed * cos(angle) * (f + 1) / a->fut);
            future[2 * f + 1] = (bj_real)(speed * sin(angle) * (f + 1) / a->fut);
        }
    }
}

/* Trains a model on such scenes and returns the row of its last epoch. If `shuffled` is set, every
 * update uses the maps of other scenes. */
static bj_epoch train(int shuffled) {
    enum { BATCH = 64, UPDATES = 400 };
    const bj_arch arch = small_arch();
    train_case c = open_case(&arch, bj_objective_default(BJ_FULLSET), BATCH);
    made_batch fit = make_batch(&arch, BATCH, 0, 1, 38), dev = make_batch(&arch, SCENES, 0, 1, 39);
    bj_scene shown[BATCH];
    int partners[BATCH];
    bj_error err;
    for (int u = 0; u < UPDATES; u++) {
        set_scenes(&fit, &arch, (uint64_t)(100 + u));
        bj_exchange_partners(partners, BATCH, (uint64_t)u);
        for (int i = 0; i < BATCH; i++)
            shown[i] = bj_exchange_scene(&fit.scenes[i], &fit.scenes[partners[i]],
                                         shuffled ? BJ_EXCHANGE_MAP : BJ_EXCHANGE_NONE);
        const bj_batch batch = {.B = BATCH, .scenes = shown};
        bj_step_report report;
        require(bj_trainer_step(c.trainer, &batch, 1e-2, &report, &err), &err);
    }
    set_scenes(&dev, &arch, 99);
    const bj_exchange_options how = {.max_batch = SCENES, .threads = 1};
    const bj_epoch row = {
        .epoch = 6, .step = UPDATES, .exchange = exchange_of(c.model, dev.scenes, SCENES, &how)};
    free_batch(&fit);
    free_batch(&dev);
    close_case(&c);
    return row;
}

/* Tests that the rule distinguishes a model that uses the map from a model that uses only the focal
 * track. */
static void test_blind(void) {
    const bj_settings s = {.epochs = 6};
    const bj_epoch reads = train(0), blind = train(1);
    printf("model that reads the map: %.3f, map %+.3f, focal %+.3f; "
           "blind model: %.3f, map %+.3f, focal %+.3f\n",
           reads.exchange.plain, reads.exchange.map, reads.exchange.focal, blind.exchange.plain,
           blind.exchange.map, blind.exchange.focal);
    CHECK(reads.exchange.plain < blind.exchange.plain);
    CHECK(!bj_epoch_blind(&s, &reads));
    CHECK(bj_epoch_blind(&s, &blind));
}

int main(void) {
    bj_arch point = small_arch(), uniform = small_arch();
    point.atoms = 1;
    uniform.weighting = BJ_WEIGHTS_UNIFORM;
    test_cycle();
    test_partners();
    test_rebuilt(small_arch());
    test_rebuilt(point);
    test_rebuilt(uniform);
    test_rebuilt(small_arch_for(BJ_OUTPUTONLY));
    test_focal_only();
    test_edges();
    test_encoder();
    test_blind();
    return test_report("exchange");
}
