/* epoch_fields.h - the table of all fields of a bj_epoch, with their names in files, offsets and
 * types.
 *
 * metrics.jsonl, metrics.csv (history.c) and the event files (events.c) use this table and its
 * order. For mazes, result.json and the tables of a campaign use it, too. Fields may be added but
 * never renamed. Fields of one group are adjacent.
 */
#ifndef BJ_RUN_EPOCH_FIELDS_H
#define BJ_RUN_EPOCH_FIELDS_H

#include <stddef.h>

#include <branchjepa/branchjepa.h>

typedef enum bj_epoch_type {
    BJ_EPOCH_STEP, /* int64_t, not negative */
    BJ_EPOCH_INT,  /* int, not negative */
    BJ_EPOCH_FLAG, /* int, 0 or 1 */
    BJ_EPOCH_REAL  /* double; NaN if unknown */
} bj_epoch_type;

enum { BJ_EPOCH_ADDED = 2 };

typedef struct bj_epoch_field {
    const char *path; /* "lr", or "train.loss" for the member "loss" of the object "train" */
    const char *tag;  /* name in event files; NULL if the field is not in event files */
    bj_epoch_type type;
    size_t offset; /* offset in bj_epoch */
    int optional;  /* 1: if all optional fields of a group are NaN in all rows, they are not
                      written; BJ_EPOCH_ADDED: also, files of earlier versions do not have this
                      field */
    int spread;    /* 1 for statistics of the latents, which are also reported for collapsed runs */
} bj_epoch_field;

extern const bj_epoch_field bj_epoch_fields[]; /* (bj_epoch_field_count) */
extern const int bj_epoch_field_count;

/* Returns the value of a field of type BJ_EPOCH_REAL. */
double bj_epoch_real(const bj_epoch *row, const bj_epoch_field *field);
/* Returns 1 if the field is a member of the object `group`. */
int bj_epoch_field_in(const bj_epoch_field *field, const char *group);
/* Returns the last part of a field's path, such as "loss". */
const char *bj_epoch_field_name(const bj_epoch_field *field);

#endif
