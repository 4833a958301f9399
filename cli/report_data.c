/* report_data.c - collects arms, seeds, runs and their numbers. report_locked.c, report_audit.c and
 * report_truth.c add the contents of JSON files. */
#define _POSIX_C_SOURCE 200809L /* lstat */
#include "report_data.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plot.h"
#include "report_json.h"

enum { MOST_SEEDS = 4096 };

static bj_status no_memory(bj_error *err) { return cli_error(err, BJ_ENOMEM, "out of memory"); }

/* -------------------------------------------------------------------------------- arms and seeds
 */

int report_find_arm(const report_data *data, const char *name) {
    for (int i = 0; i < data->arms; i++)
        if (!strcmp(data->arm[i].name, name)) return i;
    return -1;
}

static int find_seed(const report_data *data, int64_t seed) {
    for (int i = 0; i < data->seeds; i++)
        if (data->seed[i] == seed) return i;
    return -1;
}

/* Appends an arm. There must be room. set_name is NULL if there is only one dataset. */
static report_arm *add_arm(report_data *data, const char *name, int set, const char *set_name) {
    report_arm *arm = &data->arm[data->arms];
    snprintf(arm->name, sizeof arm->name, "%s", name);
    const char *bare = arm->name + (set_name ? strlen(set_name) + 1 : 0);
    const int known = bj_arm_find(bare);
    snprintf(arm->title, sizeof arm->title, "%s%s%s", set_name ? set_name : "",
             set_name ? ": " : "", known >= 0 ? bj_arm_at(known).title : bare);
    int before = 0; /* in its dataset */
    for (int a = 0; a < data->arms; a++) before += data->arm[a].set == set;
    arm->set = set;
    arm->label = plot_label(bare);
    arm->style = plot_style(bare, before);
    arm->forecasts = 1;
    data->arms++;
    return arm;
}

static int by_value(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int all_there(const report_data *data) {
    return data->arm && data->seed && (data->run || !data->runs);
}

/* Copies the values of the arms and seeds in `data` from the table. */
static bj_status take_values(report_data *data, const bj_seeds *seeds, bj_error *err) {
    const int metrics = bj_metric_count();
    const size_t count = (size_t)data->arms * (size_t)metrics * (size_t)data->seeds;
    data->value = malloc((count ? count : 1) * sizeof *data->value);
    if (!data->value) return no_memory(err);
    for (size_t i = 0; i < count; i++) data->value[i] = NAN;
    if (!seeds) return BJ_OK;
    for (int a = 0; a < bj_seeds_arm_count(seeds); a++)
        for (int m = 0; m < bj_seeds_metric_count(seeds); m++)
            for (int s = 0; s < bj_seeds_count(seeds); s++) {
                const int arm = report_find_arm(data, bj_seeds_arm(seeds, a));
                const int metric = bj_metric_find(bj_seeds_metric(seeds, m).name);
                const int seed = find_seed(data, bj_seeds_seed(seeds, s));
                if (arm >= 0 && metric >= 0 && seed >= 0)
                    data->value[((size_t)arm * (size_t)metrics + (size_t)metric) *
                                    (size_t)data->seeds +
                                (size_t)seed] = bj_seeds_value(seeds, a, m, s);
            }
    return BJ_OK;
}

/* ------------------------------------------------------------------------------------ seed table
 */

static bj_status open_table(report_data *data, const char *path, bj_error *err) {
    bj_seeds *seeds = NULL;
    bj_status status = bj_seeds_read(&seeds, path, err);
    if (status != BJ_OK) return status;
    const int arms = bj_seeds_arm_count(seeds), count = bj_seeds_count(seeds);
    const char *slash = strrchr(path, '/');
    snprintf(data->name, sizeof data->name, "%s", slash ? slash + 1 : path);
    data->arm = calloc((size_t)arms + 1, sizeof *data->arm);
    data->seed = calloc((size_t)count + 1, sizeof *data->seed);
    if (!all_there(data)) status = no_memory(err);
    for (int a = 0; a < arms && status == BJ_OK; a++) {
        const char *name = bj_seeds_arm(seeds, a);
        report_arm *arm = add_arm(data, name, 0, NULL);
        if (!strcmp(name, "point") || !strcmp(name, "anchor-b-point")) arm->atoms = 1;
    }
    for (int s = 0; s < count && status == BJ_OK; s++)
        data->seed[data->seeds++] = bj_seeds_seed(seeds, s);
    if (status == BJ_OK) status = take_values(data, seeds, err);
    bj_seeds_free(seeds);
    return status;
}

/* -------------------------------------------------------------------------------------- campaign
 */

static int is_there(const char *folder, const char *name) {
    char path[CLI_PATH_SIZE];
    bj_error ignored;
    return cli_path(path, folder, name, &ignored) == BJ_OK && cli_exists(path);
}

static int64_t seed_of(const bj_settings *settings) {
    return (int64_t)(settings->seed & INT64_MAX);
}

/* Fills the grid: arms in the order of their first runs, seeds sorted, runs in campaign order. */
static bj_status take_grid(report_data *data, bj_error *err) {
    const int runs = bj_campaign_runs(data->campaign);
    data->arm = calloc((size_t)runs + 1, sizeof *data->arm);
    data->seed = calloc((size_t)runs + 1, sizeof *data->seed);
    data->run = calloc((size_t)runs + 1, sizeof *data->run);
    data->runs = runs;
    if (!all_there(data)) return no_memory(err);
    for (int i = 0; i < runs; i++) {
        const bj_campaign_run at = bj_campaign_run_at(data->campaign, i);
        const bj_settings *settings = at.settings;
        if (report_find_arm(data, at.name) < 0) {
            report_arm *arm =
                add_arm(data, at.name, at.set, bj_campaign_data_name(data->campaign, at.set));
            arm->atoms = settings->arch.atoms;
            arm->forecasts = settings->objective.kind != BJ_ANCHOR_A;
            arm->maze = settings->arch.encoder != BJ_ENCODER_SCENE;
            arm->counts = bj_arch_counts(&settings->arch);
        }
        if (find_seed(data, seed_of(settings)) < 0) data->seed[data->seeds++] = seed_of(settings);
    }
    if (data->seeds > MOST_SEEDS)
        return cli_error(err, BJ_EARG, "%s: has %d seeds, expected at most %d", data->source,
                         data->seeds, MOST_SEEDS);
    qsort(data->seed, (size_t)data->seeds, sizeof *data->seed, by_value);
    return BJ_OK;
}

static bj_status take_runs(report_data *data, bj_error *err) {
    for (int i = 0; i < data->runs; i++) {
        const bj_campaign_run at = bj_campaign_run_at(data->campaign, i);
        report_run *run = &data->run[i];
        *run = (report_run){report_find_arm(data, at.name),
                            find_seed(data, seed_of(at.settings)),
                            at.dir,
                            NULL,
                            0,
                            0,
                            -1};
        if (!is_there(at.dir, "manifest.json") || !is_there(at.dir, "metrics.jsonl")) continue;
        const bj_status status = bj_run_open(&run->run, at.dir, err);
        if (status != BJ_OK) return status;
        run->finished = bj_run_finished(run->run);
        run->epochs = bj_run_epochs(run->run);
        run->best = bj_run_best(run->run);
    }
    return BJ_OK;
}

static bj_status take_numbers(report_data *data, const char *dir, bj_error *err) {
    bj_seeds *seeds = NULL;
    bj_status status = data->locked
                           ? bj_locked_seeds(&seeds, data->evaluation, err)
                           : bj_campaign_seeds(&seeds, dir, BJ_SEEDS_DEVELOPMENT, err);
    if (status == BJ_ELOCKED && !data->locked) status = BJ_OK; /* no run is done yet */
    if (status == BJ_OK) status = take_values(data, seeds, err);
    bj_seeds_free(seeds);
    for (int i = 0; i < data->runs && !data->locked; i++) {
        const report_run *run = &data->run[i];
        if (!run->run || run->best < 0 || !data->arm[run->arm].forecasts) continue;
        data->scenes = (int64_t)bj_run_epoch(run->run, run->best).dev.scenes;
        break;
    }
    return status;
}

/* Verifies the locked evaluation. Without one, or if one of its files is missing, the numbers are
 * of the development scenes. */
static bj_status open_evaluation(report_data *data, const char *dir, bj_error *err) {
    bj_locked_report report;
    if (!is_there(dir, BJ_LOCKED_DIR)) return BJ_OK;
    const bj_status status = bj_locked_open(&data->evaluation, &report, dir, err);
    if (status == BJ_ELOCKED) {
        cli_warn("%s; the page shows development scenes, not the locked evaluation", err->message);
        return BJ_OK;
    }
    if (status != BJ_OK) return status;
    data->locked = 1;
    data->verified = !report.missing;
    if (report.missing) cli_warn_missing(dir, &report);
    return BJ_OK;
}

static bj_status open_campaign(report_data *data, const char *dir, bj_error *err) {
    bj_status status = bj_campaign_open(&data->campaign, dir, err);
    if (status != BJ_OK) return status;
    snprintf(data->name, sizeof data->name, "%s", bj_campaign_name(data->campaign));
    status = take_grid(data, err);
    if (status == BJ_OK && bj_campaign_data_count(data->campaign) > 1 && !report_is_maze(data))
        status = cli_error(err, BJ_EARG, "%s: has %d datasets, expected one for a report of scenes",
                           dir, bj_campaign_data_count(data->campaign));
    if (status == BJ_OK) status = open_evaluation(data, dir, err);
    if (status == BJ_OK) status = take_runs(data, err);
    if (status == BJ_OK) status = take_numbers(data, dir, err);
    if (status == BJ_OK) status = report_read_locked(data, err);
    if (status == BJ_OK) status = report_read_audit(data, dir, err);
    if (status == BJ_OK) status = report_read_truth(data, dir, err);
    return status;
}

/* ------------------------------------------------------------------------------------------- run
 */

/* Copies the numbers of a run's chosen epoch. */
static void take_row(report_data *data, const bj_epoch *row) {
    static const struct {
        const char *metric;
        size_t offset;
    } others[] = {{"decoder_ade", offsetof(bj_epoch, decoder_ade)},
                  {"decoder_fde", offsetof(bj_epoch, decoder_fde)},
                  {"mean_std", offsetof(bj_epoch, health.mean_std)},
                  {"low_std_fraction", offsetof(bj_epoch, health.low_std_fraction)},
                  {"entropy_rank", offsetof(bj_epoch, health.entropy_rank)},
                  {"participation", offsetof(bj_epoch, health.participation)},
                  {"plan_all", offsetof(bj_epoch, maze.plan_all)},
                  {"verified_route", offsetof(bj_epoch, maze.verified_route)},
                  {"macro_precision", offsetof(bj_epoch, maze.macro_precision)},
                  {"macro_precision_self", offsetof(bj_epoch, maze.macro_precision_self)},
                  {"held_recall", offsetof(bj_epoch, maze.held_recall)},
                  {"cov_r", offsetof(bj_epoch, maze.cov_r)},
                  {"cov_three", offsetof(bj_epoch, maze.cov_three)},
                  {"heads_three", offsetof(bj_epoch, maze.heads_three)},
                  {"predicted_edges", offsetof(bj_epoch, maze.predicted_edges)},
                  {"separated", offsetof(bj_epoch, maze.separated)},
                  {"closest", offsetof(bj_epoch, maze.closest)}};
    for (int m = 0; m < bj_metric_count(); m++) data->value[m] = bj_metric_value(&row->dev, m);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        memcpy(&data->value[bj_metric_find(others[i].metric)],
               (const char *)row + others[i].offset, sizeof(double));
}

/* Opens a folder with a single run, which has one arm and one seed. */
static bj_status open_run(report_data *data, const char *dir, bj_error *err) {
    const size_t length = strlen(dir);
    size_t end = length, begin;
    while (end > 1 && dir[end - 1] == '/') end--;
    for (begin = end; begin > 0 && dir[begin - 1] != '/';) begin--;
    snprintf(data->name, sizeof data->name, "%.*s", (int)(end - begin), dir + begin);
    data->arm = calloc(2, sizeof *data->arm);
    data->seed = calloc(2, sizeof *data->seed);
    data->run = calloc(2, sizeof *data->run);
    if (!data->arm || !data->seed || !data->run) return no_memory(err);
    report_run *run = data->run;
    *run = (report_run){.dir = data->source, .best = -1};
    data->runs = data->seeds = 1;
    bj_status status = bj_run_open(&run->run, dir, err);
    if (status != BJ_OK) return status;
    const bj_settings *settings = bj_run_settings(run->run);
    data->seed[0] = seed_of(settings);
    report_arm *arm = add_arm(data, settings->arm, 0, NULL);
    arm->atoms = settings->arch.atoms;
    arm->forecasts = settings->objective.kind != BJ_ANCHOR_A;
    arm->maze = settings->arch.encoder != BJ_ENCODER_SCENE;
    arm->counts = bj_arch_counts(&settings->arch);
    run->finished = bj_run_finished(run->run);
    run->epochs = bj_run_epochs(run->run);
    run->best = bj_run_best(run->run);
    status = take_values(data, NULL, err);
    if (status != BJ_OK || run->best < 0) return status;
    const bj_epoch row = bj_run_epoch(run->run, run->best);
    take_row(data, &row);
    if (arm->forecasts && row.dev.scenes > 0) data->scenes = (int64_t)row.dev.scenes;
    return BJ_OK;
}

static bj_status open_folder(report_data *data, const char *path, bj_error *err) {
    if (is_there(path, "campaign.json")) return open_campaign(data, path, err);
    if (is_there(path, "manifest.json")) return open_run(data, path, err);
    return cli_error(err, BJ_EIO,
                     "%s: has neither campaign.json nor manifest.json, "
                     "expected a campaign folder or a run folder\n"
                     "hint: 'bjepa campaign' and 'bjepa train' create such folders",
                     path);
}

/* ------------------------------------------------------------------------------------- interface
 */

bj_status report_data_open(report_data **out, const char *path, bj_error *err) {
    struct stat info;
    report_data *data = *out = calloc(1, sizeof *data);
    if (!data) return no_memory(err);
    snprintf(data->source, sizeof data->source, "%s", path);
    const int folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    const bj_status status = folder ? open_folder(data, path, err) : open_table(data, path, err);
    if (status != BJ_OK) {
        report_data_free(data);
        *out = NULL;
        return status;
    }
    data->specialization = report_find_arm(data, "specialization");
    data->fullset = report_find_arm(data, "fullset");
    return BJ_OK;
}

void report_data_free(report_data *data) {
    if (!data) return;
    for (int i = 0; i < data->runs && data->run; i++) bj_run_free(data->run[i].run);
    for (int i = 0; i < data->arms; i++) free(data->arm[i].usage);
    bj_campaign_free(data->campaign);
    bj_locked_free(data->evaluation);
    report_audit_free(data->audit);
    report_truth_free(data->truth);
    free(data->arm);
    free(data->seed);
    free(data->run);
    free(data->value);
    free(data);
}

const char *report_numbers(char text[REPORT_SOURCE_SIZE], const report_data *data) {
    char count[CLI_COUNT_SIZE], scenes[CLI_COUNT_SIZE + 40] = "";
    if (report_is_maze(data)) {
        snprintf(text, REPORT_SOURCE_SIZE, "last epoch of every run, compared with the true graph");
        return text;
    }
    if (data->scenes > 0)
        snprintf(scenes, sizeof scenes, ", %s %s", cli_count(count, (size_t)data->scenes),
                 data->locked ? "held-out scenes" : "scenes");
    if (!data->runs) snprintf(text, REPORT_SOURCE_SIZE, "seed table %.120s", data->name);
    else if (data->verified) snprintf(text, REPORT_SOURCE_SIZE, "locked evaluation%s", scenes);
    else if (data->locked)
        snprintf(text, REPORT_SOURCE_SIZE, "evaluation%s, not verified: locked files are missing",
                 scenes);
    else
        snprintf(text, REPORT_SOURCE_SIZE, "development scenes%s, not the locked evaluation",
                 scenes);
    return text;
}

int report_set_count(const report_data *data) {
    return data->campaign ? bj_campaign_data_count(data->campaign) : 1;
}

const char *report_set_name(const report_data *data, int set) {
    return data->campaign ? bj_campaign_data_name(data->campaign, set) : NULL;
}

const char *report_training_digest(const report_data *data) {
    if (data->campaign) return bj_campaign_data_digest(data->campaign);
    const char *digest = data->runs ? bj_run_fact(data->run[0].run, "data.digest") : NULL;
    return digest ? digest : "";
}

double report_value(const report_data *data, int arm, int metric, int seed) {
    return data
        ->value[((size_t)arm * (size_t)bj_metric_count() + (size_t)metric) * (size_t)data->seeds +
                (size_t)seed];
}

bj_summary report_summary(const report_data *data, int arm, int metric) {
    double values[MOST_SEEDS];
    int n = 0;
    for (int s = 0; s < data->seeds; s++) {
        const double value = report_value(data, arm, metric, s);
        if (isfinite(value)) values[n++] = value;
    }
    return bj_summarize(values, n);
}

int report_compare(bj_comparison *out, const report_data *data, int a, int b, int metric) {
    double left[MOST_SEEDS], right[MOST_SEEDS];
    int n = 0;
    for (int s = 0; s < data->seeds; s++) {
        const double x = report_value(data, a, metric, s), y = report_value(data, b, metric, s);
        if (!isfinite(x) || !isfinite(y)) continue;
        left[n] = x;
        right[n++] = y;
    }
    return n >= 2 &&
           bj_compare_paired(out, left, right, n, bj_metric_at(metric).better, .95, NULL) == BJ_OK;
}

int report_reference(const report_data *data) {
    if (data->specialization >= 0) return data->specialization;
    if (data->fullset >= 0) return data->fullset;
    for (int a = 0; a < data->arms; a++)
        if (data->arm[a].forecasts && data->arm[a].atoms == 1) return a;
    return -1;
}

int report_is_maze(const report_data *data) {
    for (int a = 0; a < data->arms; a++)
        if (!data->arm[a].maze) return 0;
    return data->runs > 0 && data->arms > 0;
}
