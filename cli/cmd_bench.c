/* cmd_bench.c - bjepa bench: measures a training step and predictions on synthetic scenes.
 *
 * Times alone mean little, so bench/compare_torch.py alternates between this program and other
 * implementations and prints ratios.
 */
#define _GNU_SOURCE /* sched_setaffinity */
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "progress.h"

enum { PAPER_BATCH = 256, INFER_BATCH = 64, SCENES = 64, MOST = 10000 };

typedef struct numbers {
    double train_ms, busy_ms; /* busy: while another process keeps one core busy; 0: not measured */
    double mixed_ms, speedup; /* a step in mixed precision, and the median ratio; 0: not measured */
    double infer1_ms, infer64_ms, infer1_bf16_ms, infer64_bf16_ms;
    double bf16_error, bf16_weight_error; /* largest difference over largest value; absolute */
    int batch; /* scenes of a training step */
    bj_profile profile;                   /* seconds of one step */
    const char *isa, *mixed_isa;
} numbers;

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n) {
    qsort(values, (size_t)n, sizeof *values, ascending);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* Starts a process that keeps the last of our cores busy until it is killed. Returns -1 if that is
 * not possible. */
static pid_t start_neighbor(void) {
    const pid_t child = fork();
    if (child != 0) return child;
    cpu_set_t all, last;
    CPU_ZERO(&last);
    if (sched_getaffinity(0, sizeof all, &all) == 0) {
        int core = CPU_SETSIZE - 1;
        while (core > 0 && !CPU_ISSET(core, &all)) core--;
        CPU_SET(core, &last);
        (void)sched_setaffinity(0, sizeof last, &last);
    }
    alarm(600); /* never outlives a killed parent for long */
    for (volatile unsigned long spin = 0;; spin++) {
    }
}

static bj_status time_step(double *ms, bj_trainer *trainer, const bj_scenes *scenes,
                           bj_error *err) {
    const double start = cli_seconds();
    const bj_status status = bj_trainer_step(trainer, bj_scenes_batch(scenes), 3e-4, NULL, err);
    *ms = 1e3 * (cli_seconds() - start);
    return status;
}

static bj_status time_steps(double *result, bj_trainer *trainer, const bj_scenes *scenes,
                            int rounds, bj_error *err) {
    static double ms[MOST];
    for (int i = 0; i < rounds; i++) {
        const bj_status status = time_step(&ms[i], trainer, scenes, err);
        if (status != BJ_OK) return status;
    }
    *result = median(ms, rounds);
    return BJ_OK;
}

/* Times steps in single and mixed precision in turns, because the speed of a shared machine
 * changes. Fills train_ms, mixed_ms and speedup. */
static bj_status bench_mixed(numbers *out, const bj_arch *arch, bj_trainer_options options,
                             int rounds, bj_error *err) {
    static double ms[2][MOST], ratio[MOST];
    bj_scenes *scenes = NULL;
    bj_model *model[2] = {NULL, NULL};
    bj_trainer *trainer[2] = {NULL, NULL};
    bj_status status = bj_scenes_synthetic(&scenes, arch, options.max_batch, 0, err);
    for (int i = 0; i < 2 && status == BJ_OK; i++) {
        options.precision = i ? BJ_PRECISION_BF16 : BJ_PRECISION_FULL;
        status = bj_model_create(&model[i], arch, 0, err);
        if (status == BJ_OK) status = bj_trainer_create(&trainer[i], model[i], &options, err);
        if (status == BJ_OK) *(i ? &out->mixed_isa : &out->isa) = bj_trainer_isa(trainer[i]);
    }
    for (int round = -1; round < rounds && status == BJ_OK; round++) {
        const int at = round < 0 ? 0 : round; /* the first round warms up */
        for (int i = 0; i < 2 && status == BJ_OK; i++)
            status = time_step(&ms[i][at], trainer[i], scenes, err);
        ratio[at] = ms[0][at] / ms[1][at];
    }
    if (status == BJ_OK) {
        out->train_ms = median(ms[0], rounds);
        out->mixed_ms = median(ms[1], rounds);
        out->speedup = median(ratio, rounds);
    }
    for (int i = 0; i < 2; i++) {
        bj_trainer_free(trainer[i]);
        bj_model_free(model[i]);
    }
    bj_scenes_free(scenes);
    return status;
}

static bj_status bench_train(numbers *out, bj_model *model, const bj_trainer_options *options,
                             int rounds, int busy, bj_error *err) {
    bj_scenes *scenes;
    bj_trainer *trainer = NULL;
    bj_status status = bj_scenes_synthetic(&scenes, bj_model_arch(model), options->max_batch, 0, err);
    if (status == BJ_OK) status = bj_trainer_create(&trainer, model, options, err);
    bj_profile before = {0};
    double warm_up;
    if (status == BJ_OK) status = time_steps(&warm_up, trainer, scenes, 2, err);
    if (status == BJ_OK) {
        before = bj_trainer_profile(trainer);
        status = time_steps(&out->train_ms, trainer, scenes, rounds, err);
    }
    if (status == BJ_OK) {
        const bj_profile p = bj_trainer_profile(trainer);
        out->profile =
            (bj_profile){(p.prepare - before.prepare) / rounds, (p.scenes - before.scenes) / rounds,
                         (p.gradients - before.gradients) / rounds,
                         (p.unfold - before.unfold) / rounds, (p.update - before.update) / rounds};
        out->isa = bj_trainer_isa(trainer);
    }
    if (status == BJ_OK && busy) {
        const pid_t neighbor = start_neighbor();
        status = time_steps(&out->busy_ms, trainer, scenes, rounds, err);
        if (neighbor > 0) {
            kill(neighbor, SIGKILL);
            waitpid(neighbor, NULL, 0);
        }
    }
    bj_trainer_free(trainer);
    bj_scenes_free(scenes);
    return status;
}

/* Returns the median milliseconds of a call, over `count` sets of scenes in turn. The results of
 * the last pass remain in weights and trajectories, set after set. */
static bj_status time_predictor(double *result, bj_predictor *predictor, bj_scenes **sets,
                                int count, int rounds, bj_real *weights, bj_real *trajectories,
                                const bj_arch *arch, bj_error *err) {
    static double ms[MOST];
    int n = 0;
    for (int round = -1; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            const bj_batch *batch = bj_scenes_batch(sets[i]);
            const size_t at = (size_t)i * (size_t)batch->B * (size_t)arch->atoms;
            const double start = cli_seconds();
            const bj_status status =
                bj_predict(predictor, batch, weights + at,
                           trajectories + at * 2 * (size_t)arch->fut, NULL, err);
            if (status != BJ_OK) return status;
            if (round >= 0 && n < MOST) ms[n++] = 1e3 * (cli_seconds() - start);
        }
    }
    *result = median(ms, n);
    return BJ_OK;
}

static double largest_difference(const bj_real *a, const bj_real *b, size_t n, double *largest) {
    double worst = 0;
    *largest = 0;
    for (size_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        *largest = fmax(*largest, fabs((double)a[i]));
    }
    return worst;
}

typedef struct results {
    bj_real *weights, *trajectories;
} results;

static bj_status bench_infer(numbers *out, const bj_model *model, int threads, const char *isa,
                             int rounds, bj_scenes **one, bj_scenes *many, results r[2],
                             bj_error *err) {
    const bj_arch *arch = bj_model_arch(model);
    const size_t K = (size_t)arch->atoms, line = 2 * (size_t)arch->fut;
    double *ms[2][2] = {{&out->infer1_ms, &out->infer64_ms},
                        {&out->infer1_bf16_ms, &out->infer64_bf16_ms}};
    for (int precision = 0; precision < 2; precision++) {
        bj_predictor *predictor;
        const bj_predictor_options options = {INFER_BATCH, threads, (bj_precision)precision, isa};
        bj_status status = bj_predictor_create(&predictor, model, &options, err);
        if (status != BJ_OK) return status;
        out->isa = bj_predictor_isa(predictor);
        status = time_predictor(ms[precision][1], predictor, &many, 1, 3 * rounds,
                                r[precision].weights, r[precision].trajectories, arch, err);
        if (status == BJ_OK)
            status = time_predictor(ms[precision][0], predictor, one, SCENES, rounds,
                                    r[precision].weights, r[precision].trajectories, arch, err);
        bj_predictor_free(predictor);
        if (status != BJ_OK) return status;
    }
    double largest;
    const double off =
        largest_difference(r[0].trajectories, r[1].trajectories, SCENES * K * line, &largest);
    out->bf16_error = off / largest;
    out->bf16_weight_error = largest_difference(r[0].weights, r[1].weights, SCENES * K, &largest);
    return BJ_OK;
}

static void print_json(const numbers *x, int train, int infer, int threads) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"schema\": 1, \"type\": \"bench\", \"threads\": %d, \"isa\": \"%s\"", threads,
           x->isa);
    if (train && x->mixed_ms > 0) printf(", \"train%d_ms\": %.3f", x->batch, x->train_ms);
    else if (train)
        printf(", \"train%d_ms\": %.3f, \"prepare_ms\": %.3f, \"scenes_ms\": %.3f, "
               "\"gradients_ms\": %.3f, \"unfold_ms\": %.3f, \"update_ms\": %.3f",
               x->batch, x->train_ms, 1e3 * x->profile.prepare, 1e3 * x->profile.scenes,
               1e3 * x->profile.gradients, 1e3 * x->profile.unfold, 1e3 * x->profile.update);
    if (x->mixed_ms > 0)
        printf(", \"train%d_mixed_ms\": %.3f, \"mixed_isa\": \"%s\", \"mixed_speedup\": %.3f",
               x->batch, x->mixed_ms, x->mixed_isa, x->speedup);
    if (x->busy_ms > 0)
        printf(", \"train%d_busy_ms\": %.3f, \"busy_share\": %.3f", x->batch, x->busy_ms,
               x->train_ms / x->busy_ms);
    if (infer)
        printf(", \"infer1_ms\": %.4f, \"infer64_ms\": %.3f, \"infer1_bf16_ms\": %.4f, "
               "\"infer64_bf16_ms\": %.3f, \"bf16_max_rel_err\": %.2e, \"bf16_weight_err\": %.2e",
               x->infer1_ms, x->infer64_ms, x->infer1_bf16_ms, x->infer64_bf16_ms, x->bf16_error,
               x->bf16_weight_error);
    printf(", \"peak_rss_mib\": %.1f}\n", (double)usage.ru_maxrss / 1024);
}

static void print_table(const numbers *x, int train, int infer, int threads) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("medians; threads: %d; instruction set: %s\n", threads, x->isa);
    if (train) {
        const double total = x->profile.prepare + x->profile.scenes + x->profile.gradients +
                             x->profile.unfold + x->profile.update;
        printf("training step, batch %-3d %9.2f ms  %8.0f scenes/s\n", x->batch, x->train_ms,
               1e3 * x->batch / x->train_ms);
        if (x->mixed_ms > 0)
            printf("  in mixed precision     %9.2f ms  %8.2f times as fast (%s)\n", x->mixed_ms,
                   x->speedup, x->mixed_isa);
        else
            printf("  prepare %.1f %%, scenes %.1f %%, gradients %.1f %%, "
                   "unfold %.1f %%, update %.1f %%\n",
                   100 * x->profile.prepare / total, 100 * x->profile.scenes / total,
                   100 * x->profile.gradients / total, 100 * x->profile.unfold / total,
                   100 * x->profile.update / total);
    }
    if (x->busy_ms > 0)
        printf("  with one core busy     %9.2f ms  %8.0f %% of the undisturbed throughput\n", x->busy_ms,
               100 * x->train_ms / x->busy_ms);
    if (infer) {
        printf("prediction, batch %d     %9.2f ms  %8.0f scenes/s\n", INFER_BATCH, x->infer64_ms,
               1e3 * INFER_BATCH / x->infer64_ms);
        printf("  in mixed precision     %9.2f ms  %8.2f times as fast\n", x->infer64_bf16_ms,
               x->infer64_ms / x->infer64_bf16_ms);
        printf("prediction, one scene    %9.3f ms\n", x->infer1_ms);
        printf("  in mixed precision     %9.3f ms  "
               "max error: %.1e of the largest coordinate, "
               "%.1e in a weight\n",
               x->infer1_bf16_ms, x->bf16_error, x->bf16_weight_error);
    }
    printf("peak memory              %9.0f MiB\n", (double)usage.ru_maxrss / 1024);
}

int cmd_bench(int argc, char **argv) {
    int json = 0, threads = 0, only = 0, rounds = 8, busy = 0, precision = 0;
    uint64_t seed = 0;
    const char *isa = NULL;
    numbers x = {.isa = "", .batch = PAPER_BATCH};
    const cli_option options[] = {
        CLI_OPTION_JSON(&json),
        CLI_OPTION_THREADS(&threads),
        CLI_OPTION_SEED(&seed),
        {"only", 0, CLI_CHOICE, "all|train|infer", &only, 0, 0, "which part to time"},
        {"batch", 0, CLI_INT, "N", &x.batch, 1, 65536, "scenes per training step"},
        {"rounds", 0, CLI_INT, "N", &rounds, 1, 150, "repetitions per median"},
        {"busy", 0, CLI_FLAG, NULL, &busy, 0, 0,
         "also time training while another process keeps one core busy"},
        {"precision", 0, CLI_CHOICE, "single|mixed|both", &precision, 0, 0,
         "precision of the training step; "
         "'both' alternates between single and mixed (default: single)"},
        {"isa", 0, CLI_TEXT, "NAME", &isa, 0, 0,
         "instruction set: c, avx2, avx512 or avx512bf16 (default: depends on the processor)"},
        CLI_OPTION_END};
    const cli_usage usage = {"bench",
                             "benchmark a training step and prediction at the paper's model size",
                             NULL,
                             0,
                             0,
                             "bjepa bench --threads 2\n"
                             "bjepa bench --only train --json\n",
                             options,
                             NULL};
    const int code = cli_parse(&usage, argc, argv, NULL);
    if (code != CLI_CONTINUE) return code;
    threads = cli_threads(threads); /* what is printed is what runs */

    const bj_arch arch = bj_arch_paper();
    const int train = only != 2, infer = only != 1;
    bj_error err;
    bj_model *model = NULL;
    bj_scenes *one[SCENES] = {NULL}, *many = NULL;
    results r[2] = {{NULL, NULL}, {NULL, NULL}};
    const size_t values = (size_t)SCENES * (size_t)arch.atoms;
    bj_status status = bj_model_create(&model, &arch, seed, &err);
    if (status == BJ_OK) status = bj_scenes_synthetic(&many, &arch, INFER_BATCH, 1, &err);
    for (int i = 0; i < SCENES && status == BJ_OK; i++)
        status = bj_scenes_synthetic(&one[i], &arch, 1, 100 + (uint64_t)i, &err);
    for (int i = 0; i < 2; i++) {
        r[i].weights = malloc(values * sizeof(bj_real));
        r[i].trajectories = malloc(values * 2 * (size_t)arch.fut * sizeof(bj_real));
        if (status == BJ_OK && (!r[i].weights || !r[i].trajectories))
            status = cli_error(&err, BJ_ENOMEM, "out of memory for %d predictions", SCENES);
    }
    if (status == BJ_OK && infer)
        status = bench_infer(&x, model, threads, isa, rounds, one, many, r, &err);
    if (status == BJ_OK && train) {
        const bj_trainer_options how = {.objective = bj_objective_default(BJ_FULLSET),
                                        .optim = bj_optim_default(),
                                        .max_batch = x.batch,
                                        .threads = threads,
                                        .isa = isa,
                                        .precision = precision == 1 ? BJ_PRECISION_BF16
                                                                    : BJ_PRECISION_FULL};
        if (precision == 2) status = bench_mixed(&x, &arch, how, rounds, &err);
        else status = bench_train(&x, model, &how, rounds, busy, &err);
    }
    for (int i = 0; i < 2; i++) {
        free(r[i].weights);
        free(r[i].trajectories);
    }
    for (int i = 0; i < SCENES; i++) bj_scenes_free(one[i]);
    bj_scenes_free(many);
    bj_model_free(model);
    if (status != BJ_OK) return cli_fail("bench", &err);
    if (json) print_json(&x, train, infer, threads);
    else print_table(&x, train, infer, threads);
    return CLI_OK;
}
