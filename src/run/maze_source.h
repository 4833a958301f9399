/* maze_source.h - batches of transitions of a maze dataset, and the reference for its graph.
 *
 * The file is read once. The observations of all steps stay in memory, numbers as bj_real and
 * images as bytes, and batches point to them. Withheld edges and both sets of queries depend on the
 * seed of the run. Held-out episodes depend on their own seed. Batch `step` of epoch `epoch` is
 * drawn with replacement from a generator that depends only on seed, epoch and step, so it is the
 * same for every arm.
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
    uint8_t *fitted;  /* (episodes) 0 if held out; NULL if all are training episodes */
    int64_t held_out; /* episodes */
    uint8_t *held;    /* (edges) */
    bj_edge *withheld, *plan, *verified;
    int withheld_count, plan_count, verified_count;
    size_t numbers;   /* numbers of an observation */
    bj_real *states;  /* (steps,numbers), or NULL */
    uint8_t *images;  /* (steps,numbers), or NULL */
    bj_real *mean, *scale; /* (inputs) standardization of the training observations: input.mean,
                              input.scale */
    int inputs;
    int64_t *order;   /* transitions sorted by their pair of cells; NULL unless balanced */
    int64_t *begin;   /* (pairs + 1) */
    int pairs;
    int middle;       /* 1 if the successor is the middle row of a visit */
    int batch;        /* transitions per batch */
    uint64_t seed;
    bj_pair *table;   /* (batch) */
    int64_t *rows;    /* (batch) first rows of the transitions */
    char digest[BJ_SHA256_HEX];
    char maze_digest[BJ_SHA256_HEX]; /* SHA-256 of the maze file; empty for an official maze */
} bj_maze_source;

/* Opens a dataset. `maze` is a name or a file. If it is NULL, the name of the dataset or a file
 * next to it determines the maze. */
BJ_CHECK bj_status bj_maze_source_open(bj_maze_source **out, const char *path, const char *maze,
                                       const bj_settings *settings, bj_error *err);
void bj_maze_source_free(bj_maze_source *s);
/* Returns 1 if there is a maze file next to a dataset (NAME.json next to NAME.npz), and sets `path`
 * to it. */
int bj_maze_beside(char *path, size_t room, const char *data);
/* Sets the sizes of observations in `arch`. */
void bj_maze_source_fit(bj_arch *arch, const bj_maze_source *s);
/* Sets input.mean and input.scale of a new model. */
BJ_CHECK bj_status bj_maze_source_standardize(bj_model *model, const bj_maze_source *s,
                                              bj_error *err);
/* Returns a batch that is valid until the next call. *rows (B) are the rows at which its
 * transitions start. */
bj_batch bj_maze_source_batch(const int64_t **rows, bj_maze_source *s, int64_t epoch, int64_t step);
/* Returns transition `index` as a pair. */
bj_pair bj_maze_source_pair(const bj_maze_source *s, int64_t index);
/* Returns up to `most` evenly spaced rows, from held-out episodes if there are any. The caller
 * frees them with bj_free. */
BJ_CHECK bj_status bj_maze_source_frames(int64_t **rows, int *count, const bj_maze_source *s,
                                         int most, bj_error *err);
/* Returns a pair in which both observations come from the same row. */
bj_pair bj_maze_source_row(const bj_maze_source *s, int64_t row);

#endif
