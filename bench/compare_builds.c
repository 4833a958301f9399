/* compare_builds.c - times two or more builds of the library in turns, in one process.
 *
 *   bench/compare_builds.sh [-n ROUNDS] [-t THREADS] [-b BATCH] [-w train|predict64|predict1]
 *                           [-p single|mixed] OLD.so NEW.so...
 *
 * On a shared machine the speed of a core changes by tens of percent within seconds, but a change of the
 * code may be worth only a few percent. Only builds that ran in turns can therefore be compared. A round
 * times one step, or a few predictions, of every build. The result of a build is the median over the rounds
 * of its time divided by the time of the first build. The sizes are the paper's, and the objective is
 * full-set. -b sets the number of scenes of a training step (default 256).
 */
#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "branchjepa/branchjepa.h"

enum { MOST_ROUNDS = 10000, MOST_BUILDS = 16, SINGLE = 64, NUMBERS = 64 * BJ_MAX_ATOMS * 256 };

typedef enum work { TRAIN, PREDICT64, PREDICT1 } work;

typedef struct build {
    const char *path;
    bj_trainer *trainer;
    bj_predictor *predictor;
    const bj_batch *train, *many, *one[SINGLE];
    __typeof__(&bj_trainer_step) step;
    __typeof__(&bj_predict) predict;
    double ms[MOST_ROUNDS];
} build;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *path, const char *why) {
    fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

static void *find(const build *b, void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) stop(b->path, dlerror());
    return symbol;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q) { return sorted[(int)(q * (n - 1) + 0.5)]; }

static void open_build(build *b, const char *path, int threads, int batch, bj_precision precision) {
    b->path = path;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) stop(path, dlerror());
#define FIND(name) __typeof__(&name) name##_of; *(void **)&name##_of = find(b, library, #name)
    FIND(bj_arch_paper);
    FIND(bj_model_create);
    FIND(bj_scenes_synthetic);
    FIND(bj_scenes_batch);
    FIND(bj_objective_default);
    FIND(bj_optim_default);
    FIND(bj_trainer_create);
    FIND(bj_trainer_step);
    FIND(bj_predictor_create);
    FIND(bj_predict);
#undef FIND
    bj_error err = {0};
    bj_model *model;
    bj_scenes *scenes;
    const bj_arch arch = bj_arch_paper_of();
    const bj_trainer_options training = {.objective = bj_objective_default_of(BJ_FULLSET),
                                         .optim = bj_optim_default_of(),
                                         .max_batch = batch,
                                         .threads = threads,
                                         .precision = precision};
    const bj_predictor_options prediction = {
        .max_batch = 64, .threads = threads, .precision = precision};
    if (bj_model_create_of(&model, &arch, 0, &err) != BJ_OK ||
        bj_predictor_create_of(&b->predictor, model, &prediction, &err) != BJ_OK ||
        bj_trainer_create_of(&b->trainer, model, &training, &err) != BJ_OK)
        stop(path, err.message);
    for (int i = -2; i < SINGLE; i++) {
        const int count = i == -2 ? batch : i == -1 ? 64 : 1;
        if (bj_scenes_synthetic_of(&scenes, &arch, count, (uint64_t)(i + 2), &err) != BJ_OK)
            stop(path, err.message);
        *(i == -2 ? &b->train : i == -1 ? &b->many : &b->one[i]) = bj_scenes_batch_of(scenes);
    }
    b->step = bj_trainer_step_of;
    b->predict = bj_predict_of;
}

/* Returns the milliseconds of one task, or the median of several runs if the task is short. */
static double run(build *b, work what) {
    static double room[2][NUMBERS]; /* large enough for float and double */
    enum { FEW = 7, MANY = 3 * SINGLE };
    const int count = what == TRAIN ? 1 : what == PREDICT64 ? FEW : MANY;
    double ms[MANY];
    for (int i = 0; i < count; i++) {
        bj_error err = {0};
        const double start = seconds();
        const bj_status status =
            what == TRAIN ? b->step(b->trainer, b->train, 3e-4, NULL, &err)
                          : b->predict(b->predictor, what == PREDICT64 ? b->many : b->one[i % SINGLE],
                                       (bj_real *)room[0], (bj_real *)room[1], NULL, &err);
        ms[i] = 1e3 * (seconds() - start);
        if (status != BJ_OK) stop(b->path, err.message);
    }
    qsort(ms, (size_t)count, sizeof *ms, ascending);
    return ms[count / 2];
}

static void report(const build *b, const build *first, int rounds) {
    static double ms[MOST_ROUNDS], ratio[MOST_ROUNDS];
    for (int r = 0; r < rounds; r++) {
        ms[r] = b->ms[r];
        ratio[r] = b->ms[r] / first->ms[r];
    }
    qsort(ms, (size_t)rounds, sizeof *ms, ascending);
    qsort(ratio, (size_t)rounds, sizeof *ratio, ascending);
    printf("%8.3f %8.3f   %.3f (%.3f to %.3f)   %s\n", ms[0], quantile(ms, rounds, 0.5),
           quantile(ratio, rounds, 0.5), quantile(ratio, rounds, 0.25),
           quantile(ratio, rounds, 0.75), b->path);
}

int main(int argc, char **argv) {
    static build builds[MOST_BUILDS];
    int rounds = 40, threads = 0, batch = 256, option;
    work what = TRAIN;
    bj_precision precision = BJ_PRECISION_FULL;
    while ((option = getopt(argc, argv, "n:t:b:w:p:")) != -1) {
        if (option == 'n') rounds = atoi(optarg);
        else if (option == 't') threads = atoi(optarg);
        else if (option == 'b') batch = atoi(optarg);
        else if (option == 'w' && !strcmp(optarg, "train")) what = TRAIN;
        else if (option == 'w' && !strcmp(optarg, "predict64")) what = PREDICT64;
        else if (option == 'w' && !strcmp(optarg, "predict1")) what = PREDICT1;
        else if (option == 'p' && !strcmp(optarg, "single")) precision = BJ_PRECISION_FULL;
        else if (option == 'p' && !strcmp(optarg, "mixed")) precision = BJ_PRECISION_BF16;
        else rounds = 0;
    }
    const int n = argc - optind;
    if (rounds < 1 || batch < 1 || rounds > MOST_ROUNDS || n < 1 || n > MOST_BUILDS) {
        fprintf(stderr, "usage: %s [-n ROUNDS] [-t THREADS] [-b BATCH] "
                        "[-w train|predict64|predict1] [-p single|mixed] OLD.so NEW.so...\n", argv[0]);
        return 2;
    }
    for (int i = 0; i < n; i++) open_build(&builds[i], argv[optind + i], threads, batch, precision);
    for (int r = -2; r < rounds; r++) /* two rounds are a warm-up; each round starts with another build */
        for (int i = 0; i < n; i++) {
            build *b = &builds[(i + r + 2) % n];
            const double ms = run(b, what);
            if (r >= 0) b->ms[r] = ms;
        }
    printf("least ms   median   time over that of the first: median (quartiles)\n");
    for (int i = 0; i < n; i++) report(&builds[i], &builds[0], rounds);
    return 0;
}
