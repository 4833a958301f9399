/* metric_directory.c - name, title, direction of improvement, decimals and unit of every metric.
 *
 * Dispersion has no direction of improvement. The Energy Score
 * subtracts it, and more dispersion is better only if the observations are spread out.
 * Test: tests/stats/test_paired.c
 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include <branchjepa/branchjepa.h>

enum { LOWER = -1, NEITHER, HIGHER };
enum { ELSEWHERE = -1 }; /* not a field of bj_metric_values */

typedef struct entry {
    bj_metric_info info;
    long offset;
} entry;

#define FIELD(name, title, unit, better, digits)                                                   \
    { {#name, title, better, digits, unit}, (long)offsetof(bj_metric_values, name) }
#define OTHER(name, title, unit, better, digits)                                                   \
    { {#name, title, better, digits, unit}, ELSEWHERE }

static const entry directory[] = {
    FIELD(traj_es, "traj. ES", "m", LOWER, 4),
    FIELD(traj_obs, "traj. obs.", "m", LOWER, 4),
    FIELD(traj_disp, "traj. disp.", "m", NEITHER, 4),
    FIELD(end_es, "end. ES", "m", LOWER, 4),
    FIELD(latent_es, "latent ES", "", LOWER, 5),
    FIELD(exp_ade, "exp. ADE", "m", LOWER, 4),
    FIELD(exp_fde, "exp. FDE", "m", LOWER, 4),
    FIELD(top1_ade, "top-1 ADE", "m", LOWER, 4),
    FIELD(top1_fde, "top-1 FDE", "m", LOWER, 4),
    FIELD(top1_mr, "top-1 MR", "", LOWER, 4),
    FIELD(min_ade, "min ADE", "m", LOWER, 4),
    FIELD(min_fde, "min FDE", "m", LOWER, 4),
    FIELD(min_mr, "min MR", "", LOWER, 4),
    FIELD(min_ade_6, "minADE6", "m", LOWER, 4),
    FIELD(min_fde_6, "minFDE6", "m", LOWER, 4),
    FIELD(mr_6, "MR6", "", LOWER, 4),
    FIELD(brier_min_fde_1, "b-minFDE1", "m", LOWER, 4),
    FIELD(brier_min_fde_6, "b-minFDE6", "m", LOWER, 4),
    FIELD(brier, "Brier", "", LOWER, 5),
    FIELD(ece, "ECE", "", LOWER, 5),
    FIELD(exp_entropy, "eff. support", "branches", HIGHER, 3),
    FIELD(active_heads, "active", "branches", HIGHER, 1),
    FIELD(neff_collision, "distinct latents", "branches", HIGHER, 3),
    FIELD(dedup_support, "distinct ends", "branches", HIGHER, 3),
    /* gates of the frozen anchor */
    OTHER(decoder_ade, "decoder ADE", "m", LOWER, 4),
    OTHER(decoder_fde, "decoder FDE", "m", LOWER, 4),
    OTHER(mean_std, "mean std", "", HIGHER, 5),
    OTHER(low_std_fraction, "low-std frac.", "", LOWER, 3),
    OTHER(entropy_rank, "eff. rank", "", HIGHER, 3),
    OTHER(participation, "part. ratio", "", HIGHER, 2),
    /* mazes: the predicted graph and the cell latents */
    OTHER(plan_all, "planAll", "", HIGHER, 4),
    OTHER(verified_route, "verified", "", HIGHER, 4),
    OTHER(macro_precision, "precision", "", HIGHER, 4),
    OTHER(macro_precision_self, "prec. self", "", HIGHER, 4),
    OTHER(held_recall, "withheld", "", HIGHER, 4),
    OTHER(cov_r, "COV-R", "", HIGHER, 4),
    OTHER(cov_three, "COV-R of 3", "", HIGHER, 4),
    OTHER(heads_three, "heads of 3", "heads", HIGHER, 2),
    OTHER(predicted_edges, "edges", "edges", NEITHER, 1),
    OTHER(separated, "separated", "", HIGHER, 4),
    OTHER(closest, "closest", "", LOWER, 3),
};
enum { METRICS = sizeof directory / sizeof *directory };

int bj_metric_count(void) { return METRICS; }

bj_metric_info bj_metric_at(int index) { return directory[index].info; }

int bj_metric_find(const char *name) {
    for (int i = 0; i < METRICS; i++)
        if (!strcmp(directory[i].info.name, name)) return i;
    return -1;
}

double bj_metric_value(const bj_metric_values *values, int index) {
    double value = NAN;
    if (directory[index].offset != ELSEWHERE)
        memcpy(&value, (const char *)values + directory[index].offset, sizeof value);
    return value;
}

int bj_metric_set(bj_metric_values *values, int index, double value) {
    if (directory[index].offset == ELSEWHERE) return 0;
    memcpy((char *)values + directory[index].offset, &value, sizeof value);
    return 1;
}
