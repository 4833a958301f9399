/* submission_write.c - writes a challenge submission; see submission.h.
 *
 * Rows are buffered and written in row groups of about ROWS rows, so memory use does not grow with
 * the file. A row takes 1 kB.
 * Tests: tests/eval/test_score.c, tests/eval/peer_score.py
 */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "data/submission.h"
#include "parquet/writer.h"

enum { ROWS = 8192, F = BJ_SUBMISSION_STEPS, COLUMNS = 5, NAME = 256 };

static const bj_parquet_field fields[COLUMNS] = {
    {"scenario_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"track_id", BJ_PARQUET_BYTE_ARRAY, 0, 1},
    {"probability", BJ_PARQUET_DOUBLE, 0, 0},
    {"predicted_trajectory_x", BJ_PARQUET_DOUBLE, 1, 0},
    {"predicted_trajectory_y", BJ_PARQUET_DOUBLE, 1, 0},
};

struct bj_submission_writer {
    bj_parquet_writer *file;
    char *path;
    int64_t rows; /* buffered rows */
    bj_text scenario[ROWS], track[ROWS];
    double probability[ROWS];
    double x[ROWS * F], y[ROWS * F];
    int64_t start[ROWS + 1];
    char names[ROWS][2][NAME]; /* ids of the rows that start a track */
};

static void writer_free(bj_submission_writer *w) {
    if (!w) return;
    bj_parquet_writer_free(w->file);
    bj_free(w->path);
    bj_free(w);
}

bj_status bj_submission_writer_create(bj_submission_writer **out, const char *path, bj_error *err) {
    bj_submission_writer *w;
    bj_status status;
    if (!out || !path) return BJ_FAIL(err, BJ_EARG, "submission: output or path is missing");
    *out = NULL;
    BJ_TRY(BJ_ALLOC(w, 1, err));
    for (int64_t r = 0; r <= ROWS; r++) w->start[r] = r * F;
    w->path = bj_strdup(path);
    if (!w->path) {
        status = BJ_FAIL(err, BJ_ENOMEM, "%s: out of memory", path);
        goto failed;
    }
    BJ_GOTO(status, failed,
            bj_parquet_writer_create(&w->file, fields, COLUMNS, BJ_PARQUET_SNAPPY, err));
    BJ_GOTO(status, failed, bj_parquet_writer_open(w->file, path, err));
    *out = w;
    return BJ_OK;
failed:
    writer_free(w);
    return status;
}

static bj_status flush(bj_submission_writer *w, bj_error *err) {
    const bj_parquet_data data[COLUMNS] = {{.texts = w->scenario},
                                           {.texts = w->track},
                                           {.doubles = w->probability},
                                           {.doubles = w->x},
                                           {.doubles = w->y}};
    const int64_t *const starts[COLUMNS] = {[3] = w->start, [4] = w->start};
    const int64_t rows = w->rows;
    w->rows = 0;
    return bj_parquet_writer_rows(w->file, rows, data, starts, err);
}

static bj_status check_track(const bj_submission_writer *w, const char *scenario, const char *track,
                             int modes, const double *p, const double *y, bj_error *err) {
    double sum = 0;
    if (!scenario || !*scenario || !track || !*track)
        return BJ_FAIL(err, BJ_EARG, "%s: a track has no scenario id or no track id", w->path);
    if (strlen(scenario) >= NAME || strlen(track) >= NAME)
        return BJ_FAIL(err, BJ_EARG, "%s: scenario %.40s: an id has more than %d bytes", w->path,
                       scenario, NAME - 1);
    if (modes < 1 || modes > BJ_MAX_ATOMS)
        return BJ_FAIL(err, BJ_EARG, "%s: scenario %s: found %d modes, expected 1 to %d", w->path,
                       scenario, modes, BJ_MAX_ATOMS);
    for (int k = 0; k < modes; k++) {
        sum += p[k];
        if (!(p[k] >= 0 && p[k] <= 1))
            return BJ_FAIL(err, isfinite(p[k]) ? BJ_EARG : BJ_ENONFINITE,
                           "%s: scenario %s: probability %d is %g, expected 0 to 1", w->path,
                           scenario, k, p[k]);
        for (int i = 0; i < 2 * F; i++)
            if (!isfinite(y[(size_t)k * 2 * F + (size_t)i]))
                return BJ_FAIL(err, BJ_ENONFINITE,
                               "%s: scenario %s: mode %d: the point at step %d is not finite",
                               w->path, scenario, k, i / 2);
    }
    if (!bj_sums_to_one(sum))
        return BJ_FAIL(err, BJ_EARG, "%s: scenario %s: probabilities sum to %.9g, expected 1",
                       w->path, scenario, sum);
    return BJ_OK;
}

bj_status bj_submission_writer_add(bj_submission_writer *w, const char *scenario_id,
                                   const char *track_id, int modes, const double *probabilities,
                                   const double *trajectories, bj_error *err) {
    BJ_TRY(check_track(w, scenario_id, track_id, modes, probabilities, trajectories, err));
    if (w->rows + modes > ROWS) BJ_TRY(flush(w, err));
    char(*const name)[NAME] = w->names[w->rows];
    const bj_text scenario = {name[0], strlen(scenario_id)}, track = {name[1], strlen(track_id)};
    memcpy(name[0], scenario_id, scenario.size);
    memcpy(name[1], track_id, track.size);
    for (int k = 0; k < modes; k++, w->rows++) {
        const double *y = trajectories + (size_t)k * 2 * F;
        w->scenario[w->rows] = scenario;
        w->track[w->rows] = track;
        w->probability[w->rows] = probabilities[k];
        for (int t = 0; t < F; t++) {
            w->x[w->rows * F + t] = y[2 * t];
            w->y[w->rows * F + t] = y[2 * t + 1];
        }
    }
    return BJ_OK;
}

bj_status bj_submission_writer_commit(bj_submission_writer **writer, bj_error *err) {
    bj_submission_writer *w = *writer;
    bj_status status = flush(w, err);
    if (status == BJ_OK) status = bj_parquet_writer_commit(w->file, err);
    bj_submission_writer_abort(writer);
    return status;
}

void bj_submission_writer_abort(bj_submission_writer **writer) {
    writer_free(*writer);
    *writer = NULL;
}
