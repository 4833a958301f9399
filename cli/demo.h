/* demo.h - what the parts of bjepa demo share: two models trained side by side, and their page.
 *
 *   cmd_demo.c      options, table, files
 *   demo_train.c    training, metrics and predictions
 *   demo_page.c     the HTML page
 *   demo_picture.c  its drawings: a scene with its futures, loss curves
 *
 * Everything but the number of threads follows from the seed and the number of steps; no clock
 * enters the results.
 */
#ifndef BJEPA_DEMO_H
#define BJEPA_DEMO_H

#include "cli.h"
#include "progress.h"

#include <signal.h>
#include <stdio.h>

enum { DEMO_FULLSET, DEMO_POINT, DEMO_RUNS };

enum {
    DEMO_BATCH = 64,
    DEMO_SETS = 8, /* of DEMO_BATCH held-out scenes each */
    DEMO_HELD_OUT = DEMO_SETS * DEMO_BATCH,
    DEMO_SHOWN = 6 /* scenes on the page */
};

typedef struct demo_run {
    const char *title;
    bj_arch arch;
    bj_model *model;
    bj_trainer *trainer;
    double *loss, *decoded;         /* (steps) training loss, and its Energy Score in meters */
    bj_metric_values before, after; /* on the held-out scenes */
    bj_real *weights, *paths;       /* (DEMO_HELD_OUT,K) (DEMO_HELD_OUT,K,F,2) */
} demo_run;

typedef struct demo {
    uint64_t seed;
    int steps, done;
    const char *isa;
    demo_run run[DEMO_RUNS];
    bj_scenes *held_out[DEMO_SETS];
    int shown[DEMO_SHOWN]; /* held-out scenes, chosen by observed speed alone */
    bj_rng rng;            /* of the seeds of everything random */
} demo;

#define DEMO_LEARNING_RATE 3e-3

BJ_CHECK bj_status demo_create(demo *out, uint64_t seed, int steps, int threads, bj_error *err);
void demo_free(demo *d);
/* Both models on the same fresh scenes, step by step, until done or *stop is set; measures before
 * and after. d->done < d->steps: it was stopped, and there is no result. */
BJ_CHECK bj_status demo_train(demo *d, const volatile sig_atomic_t *stop, bj_error *err);
/* A held-out scene by its number. */
const bj_scene *demo_scene_at(const demo *d, int index);
double demo_speed(const demo *d, int index); /* m/s at the last observed step */

/* The rows of the metric table. */
typedef struct demo_metric {
    const char *key, *title, *unit, *meaning;
    double (*of)(const bj_metric_values *values);
} demo_metric;

extern const demo_metric demo_metrics[];
extern const int demo_metric_count;

/* One self-contained file, HTML and well-formed XML at once. */
void demo_page_write(FILE *to, const demo *d);

void demo_draw_scene(FILE *to, const demo *d, int index);
/* Curves of one value of both runs over the steps, on a logarithmic axis. */
void demo_draw_curves(FILE *to, const demo *d, const double *const curve[DEMO_RUNS],
                      const char *title);

#endif
