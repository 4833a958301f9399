/* epoch_fields.h - every field of a bj_epoch: its names in files, where it lies, what it is.
 *
 * The one list behind metrics.jsonl, metrics.csv (history.c) and the event files (events.c), in the
 * order of the files; and, for mazes, behind result.json and the tables of a campaign. Fields are
 * added, never renamed. Fields of one group stand together.
 */
#ifndef BJ_RUN_EPOCH_FIELDS_H
#define BJ_RUN_EPOCH_FIELDS_H

#include <stddef.h>

#include <branchjepa/branchjepa.h>

typedef enum bj_epoch_type {
    BJ_EPOCH_STEP, /* int64_t, not negative */
    BJ_EPOCH_INT,  /* int, not negative */
    BJ_EPOCH_FLAG, /* int, 0 or 1 */
    BJ_EPOCH_REAL  /* double; NaN: not known */
} bj_epoch_type;

enum { BJ_EPOCH_ADDED = 2 };

typedef struct bj_epoch_field {
    const char *path; /* "lr", or "train.loss": member loss of the object train */
    const char *tag;  /* in event files; NULL: not there */
    bj_epoch_type type;
    size_t offset; /* in bj_epoch */
    int optional;  /* the optional fields of a group are not written if all of them are NaN in all
                      rows; BJ_EPOCH_ADDED: files of earlier versions lack this one */
    int spread;    /* of the latents, whatever is made of them: known of a collapsed run, too */
} bj_epoch_field;

extern const bj_epoch_field bj_epoch_fields[]; /* (bj_epoch_field_count) */
extern const int bj_epoch_field_count;

/* Of a field of type BJ_EPOCH_REAL. */
double bj_epoch_real(const bj_epoch *row, const bj_epoch_field *field);
/* Returns 1 if the field is a member of the object `group`. */
int bj_epoch_field_in(const bj_epoch_field *field, const char *group);
/* The last part of its path: "loss". */
const char *bj_epoch_field_name(const bj_epoch_field *field);

#endif
