/* test_determinism.c - tests that training is bitwise reproducible for any number of threads.
 *
 * Runs are compared on the same instruction set and in the same precision. A hash covers weights,
 * target, both moments, losses and gradient norms of every step.
 */
#include "train_case.h"

static uint64_t hash_report(uint64_t hash, const bj_step_report *r) {
    hash = hash_bytes(hash, &r->loss, sizeof r->loss); /* doubles only, so no padding */
    return hash_bytes(hash, &r->grad_norm, sizeof r->grad_norm);
}

/* Runs training steps on two alternating batches, always from the same initial state. Returns a
 * hash of the state. */
static uint64_t run_optim(const bj_arch *arch, bj_objective objective, bj_optim optim,
                          const bj_batch *a, const bj_batch *b, int steps, int threads,
                          const char *isa) {
    const int most = a->B > b->B ? a->B : b->B;
    bj_trainer_options options = options_for(objective, most, threads, isa);
    options.optim = optim;
    train_case c = open_case_with(arch, &options, 7);
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < steps; i++) {
        bj_step_report r;
        bj_error err;
        const bj_status status = bj_trainer_step(c.trainer, i % 2 ? b : a, 1e-3, &r, &err);
        CHECK_MSG(status == BJ_OK, "%s", err.message);
        if (status == BJ_OK) hash = hash_report(hash, &r);
    }
    const uint64_t state = hash_state(&c);
    close_case(&c);
    return hash_bytes(hash, &state, sizeof state);
}

static uint64_t run(const bj_arch *arch, bj_objective objective, const bj_batch *a,
                    const bj_batch *b, int steps, int threads, const char *isa) {
    return run_optim(arch, objective, bj_optim_default(), a, b, steps, threads, isa);
}

static void check_threads(const char *name, const bj_arch *arch, bj_objective objective, int B,
                          int steps, const char *isa) {
    made_batch a = make_batch(arch, B, -1, -1, 1), b = make_batch(arch, (B + 1) / 2, -1, -1, 2);
    const uint64_t one = run(arch, objective, &a.batch, &b.batch, steps, 1, isa);
    static const int threads[] = {1, 2, 3, 8};
    for (int i = 0; i < 4; i++)
        for (int again = 0; again < (steps == 1 ? 2 : 1); again++) {
            const uint64_t found = run(arch, objective, &a.batch, &b.batch, steps, threads[i], isa);
            CHECK_MSG(found == one,
                      "%s, %s, %d scenes, %d steps: the bits differ with %d threads", name,
                      isa, B, steps, threads[i]);
        }
    /* A small change of one input must change the hash. In mixed precision, the change must be
     * larger to survive the rounding of operands. */
    a.future[0] += (bj_real)(case_precision == BJ_PRECISION_FULL ? 1e-3 : 0.5);
    CHECK(run(arch, objective, &a.batch, &b.batch, steps, 1, isa) != one);
    free_batch(&a);
    free_batch(&b);
}

static void test_isa(const char *isa, int fastest) {
    static const bj_objective_kind kinds[] = {BJ_FULLSET, BJ_SINKHORN, BJ_ANCHOR_A};
    static const int sizes[] = {1, 5, 37, 48}; /* 48: three scenes in each shard */
    bj_arch arch = small_arch();
    for (int k = 0; k < 3; k++)
        for (int s = 0; s < 4; s++) {
            const bj_objective o = bj_objective_default(kinds[k]);
            check_threads(bj_objective_name(kinds[k]), &arch, o, sizes[s], 1, isa);
            /* run 100 steps for all objectives on the fastest instruction set, and for one
             * objective on all others */
            if (sizes[s] == 37 && (k == 0 || fastest))
                check_threads(bj_objective_name(kinds[k]), &arch, o, sizes[s], 100, isa);
        }
    bj_objective usage = bj_objective_default(BJ_MDN);
    usage.usage_kl = 0.01;
    arch.scales = BJ_SCALES_COMPONENT;
    check_threads("mdn", &arch, usage, 37, 1, isa);
    arch = small_arch();
    for (int k = 0; k < 3; k++)
        check_threads("regularized", &arch, regularized(bj_objective_default(kinds[k])), 37,
                      fastest ? 20 : 1, isa);
    arch = small_arch_for(BJ_OUTPUTONLY);
    check_threads("outputonly", &arch, bj_objective_default(BJ_OUTPUTONLY), 37, 1, isa);
}

/* Tests one step of every scene objective in mixed precision, and that the operands are rounded. */
static void test_mixed(const char *isa) {
    for (int kind = BJ_FULLSET; kind <= BJ_ANCHOR_B; kind++) {
        bj_arch arch = small_arch_for((bj_objective_kind)kind);
        if (kind == BJ_UNIFORM) arch.weighting = BJ_WEIGHTS_UNIFORM;
        const bj_objective o = bj_objective_default((bj_objective_kind)kind);
        made_batch a = make_batch(&arch, 37, -1, -1, 1);
        case_precision = BJ_PRECISION_FULL;
        const uint64_t single = run(&arch, o, &a.batch, &a.batch, 1, 1, isa);
        case_precision = BJ_PRECISION_BF16;
        CHECK_MSG(run(&arch, o, &a.batch, &a.batch, 1, 1, isa) != single, "%s, %s: not rounded",
                  bj_objective_name(o.kind), isa);
        free_batch(&a);
        check_threads(bj_objective_name(o.kind), &arch, o, 37, 1, isa);
    }
    bj_arch arch = small_arch();
    bj_objective usage = bj_objective_default(BJ_MDN);
    usage.usage_kl = 0.01;
    for (int scales = BJ_SCALES_GLOBAL; scales <= BJ_SCALES_COMPONENT; scales++) {
        arch.scales = (bj_scales)scales;
        check_threads("mixed, learned scales", &arch, usage, 37, 1, isa);
    }
    arch = small_arch();
    arch.atoms = 1;
    check_threads("mixed, point", &arch, bj_objective_default(BJ_FULLSET), 37, 1, isa);
    check_threads("mixed, anchor-b-point", &arch, bj_objective_default(BJ_ANCHOR_B), 37, 1, isa);
    arch = small_arch();
    check_threads("mixed", &arch, bj_objective_default(BJ_FULLSET), 37, 100, isa);
    check_threads("mixed, one scene", &arch, bj_objective_default(BJ_FULLSET), 1, 1, isa);
    check_threads("mixed, regularized", &arch, regularized(bj_objective_default(BJ_FULLSET)), 37, 1,
                  isa);
}

/* Tests that a scene's forecast does not depend on the other scenes of its batch. */
static void test_company(const char *isa, int B, int factored) {
    const bj_arch arch = small_arch();
    made_batch all = make_batch(&arch, B, -1, -1, 9);
    const bj_trainer_options options = options_for(bj_objective_default(BJ_FULLSET), B, 2, isa);
    train_case c = open_case_with(&arch, &options, 7);
    bj_error err;
    CHECK(c.trainer->online.factored == factored);
    CHECK_OK(bj_trainer_gradients(c.trainer, &all.batch, NULL, &err), err);
    bj_outputs o = bj_trainer_outputs(c.trainer);
    const size_t line = o.decoded_stride * (size_t)o.K;
    bj_real *decoded = case_alloc((size_t)B * line, sizeof *decoded);
    memcpy(decoded, o.decoded, (size_t)B * line * sizeof *decoded);
    for (int b = 0; b < B; b++) {
        const bj_batch one = {.B = 1, .scenes = all.scenes + b};
        CHECK_OK(bj_trainer_gradients(c.trainer, &one, NULL, &err), err);
        o = bj_trainer_outputs(c.trainer);
        int same = 1;
        for (int k = 0; k < o.K; k++)
            same &= memcmp(o.decoded + (size_t)k * o.decoded_stride,
                           decoded + (size_t)b * line + (size_t)k * o.decoded_stride,
                           2 * (size_t)o.F * sizeof *decoded) == 0;
        CHECK_MSG(same, "%s: scene %d alone gives other trajectories", isa, b);
    }
    free(decoded);
    free_batch(&all);
    close_case(&c);
}

/* Tests one step at the paper's sizes, where large products are divided into many tiles. */
static void test_paper_sizes(void) {
    const bj_arch arch = bj_arch_paper();
    bj_scenes *scenes;
    bj_error err;
    if (bj_scenes_synthetic(&scenes, &arch, 32, 5, &err) != BJ_OK) {
        CHECK_MSG(0, "%s", err.message);
        return;
    }
    const bj_batch *batch = bj_scenes_batch(scenes);
    const bj_objective o = bj_objective_default(BJ_FULLSET);
    CHECK(run(&arch, o, batch, batch, 1, 1, NULL) == run(&arch, o, batch, batch, 1, 3, NULL));
    const bj_objective r = regularized(o);
    CHECK(run(&arch, r, batch, batch, 1, 1, NULL) == run(&arch, r, batch, batch, 1, 3, NULL));
    CHECK(run(&arch, r, batch, batch, 1, 1, NULL) != run(&arch, o, batch, batch, 1, 1, NULL));
    bj_optim optims[] = {bj_optim_default(), bj_optim_default()};
    optims[0].muon = 1;
    optims[1].schedule_free = 1;
    for (int i = 0; i < 2; i++) {
        CHECK(run_optim(&arch, o, optims[i], batch, batch, 2, 1, NULL) ==
              run_optim(&arch, o, optims[i], batch, batch, 2, 3, NULL));
        CHECK(run_optim(&arch, o, optims[i], batch, batch, 2, 1, NULL) !=
              run(&arch, o, batch, batch, 2, 1, NULL));
    }
    bj_scenes_free(scenes);
}

int main(void) {
    for (int i = 0; bj_kernels_at(i); i++) {
        test_isa(bj_kernels_at(i)->isa, bj_kernels_at(i + 1) == NULL);
        test_company(bj_kernels_at(i)->isa, 21, 0);
        test_company(bj_kernels_at(i)->isa, 6, 1);
        case_precision = BJ_PRECISION_BF16;
        test_mixed(bj_kernels_at(i)->isa);
        test_company(bj_kernels_at(i)->isa, 21, 0);
        test_company(bj_kernels_at(i)->isa, 6, 1);
        case_precision = BJ_PRECISION_FULL;
    }
    test_paper_sizes();
    case_precision = BJ_PRECISION_BF16;
    test_paper_sizes();
    return test_report("determinism");
}
