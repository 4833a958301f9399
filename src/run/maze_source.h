/* maze_source.h - transitions of a maze's dataset as batches, and what its graph is judged by.
 *
 * The file is read once: observations of all steps stay in memory, numbers as bj_reals, images as
 * bytes; batches point into them. Withheld edges and both sets of queries follow the seed of the
 * run; episodes that are held out follow a seed of their own. Batch `step` of epoch `epoch` is
 * drawn with replacement from a generator of seed, epoch and step alone, hence the same for every arm.
 * Test: tests/run/test_maze_train.c
 */
#ifndef BJ_RUN_MAZE_SOURCE_H
#define BJ_RUN_MAZE_SOURCE_H

#include "core/sha256.h"
#include "core/status.h"

typedef struct bj_maze_source {
    bj_maze *maze;
    bj_maze_data *data;
    bj_maze_data_info info;
    bj_transitions *transitions;
    uint8_t *fitted;  /* (episodes) 0: held out; NULL: all are fitted */
    int64_t held_out; /* episodes */
    uint8_t *held;    /* (edges) */
    bj_edge *withheld, *plan, *verified;
    int withheld_count, plan_count, verified_count;
    size_t numbers;   /* of an observation */
    bj_real *states;  /* (steps,numbers), or NULL */
    uint8_t *images;  /* (steps,numbers), or NULL */
    bj_real *mean, *scale; /* (inputs) of the observations that are fitted: input.mean, input.scale */
    int inputs;
    int64_t *order;   /* transitions sorted by their pair of cells, NULL unless balanced */
    int64_t *begin;   /* (pairs + 1) */
    int pairs;
    int middle;       /* successors are seen half-way through a visit */
    int batch;        /* transitions of a batch */
    uint64_t seed;
    bj_pair *table;   /* (batch) */
    int64_t *rows;    /* (batch) first rows of the transitions */
    char digest[BJ_SHA256_HEX];
    char maze_digest[BJ_SHA256_HEX]; /* of its file; empty: an official maze */
} bj_maze_source;

/* `maze`, a name or a file, may be NULL: the name of the dataset has it, or a file beside it. */
BJ_CHECK bj_status bj_maze_source_open(bj_maze_source **out, const char *path, const char *maze,
                                       const bj_settings *settings, bj_error *err);
void bj_maze_source_free(bj_maze_source *s);
/* Whether there is the file of a maze beside a dataset, NAME.json beside NAME.npz: its path. */
int bj_maze_beside(char *path, size_t room, const char *data);
/* The sizes of observations in `arch`. */
void bj_maze_source_fit(bj_arch *arch, const bj_maze_source *s);
/* input.mean and input.scale of a fresh model. */
BJ_CHECK bj_status bj_maze_source_standardize(bj_model *model, const bj_maze_source *s,
                                              bj_error *err);
/* A batch until the next call; *rows (B): the steps it starts from. */
bj_batch bj_maze_source_batch(const int64_t **rows, bj_maze_source *s, int64_t epoch, int64_t step);
/* Transition `index` as a pair. */
bj_pair bj_maze_source_pair(const bj_maze_source *s, int64_t index);
/* Up to `most` evenly spaced rows, of episodes that are held out if there are any; for bj_free. */
BJ_CHECK bj_status bj_maze_source_frames(int64_t **rows, int *count, const bj_maze_source *s,
                                         int most, bj_error *err);
/* The observation of a row, as both observations of a pair. */
bj_pair bj_maze_source_row(const bj_maze_source *s, int64_t row);

#endif
