/* report_pretrained.c - see report_pretrained.h. */
#include "report_pretrained.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint.h"
#include "grid.h"
#include "report_page.h"

bj_status report_pretrained_open(report_pretrained *out, const char *model, bj_error *err) {
    bj_model *loaded = NULL;
    *out = (report_pretrained){.model = model};
    if (!model) return BJ_OK;
    bj_status status = cli_checkpoint_path(out->path, model, err);
    if (status == BJ_OK) status = bj_facts_read(&out->facts, out->path, err);
    if (status == BJ_OK) status = bj_file_digest(out->sha256, out->path, err);
    if (status == BJ_OK) status = bj_model_load(&loaded, out->path, err);
    if (status != BJ_OK) return status;
    out->parameters = bj_arch_counts(bj_model_arch(loaded)).total;
    bj_model_free(loaded);
    const char *name = bj_facts_get(out->facts, "name");
    snprintf(out->title, sizeof out->title, "%.70s", name ? name : model);
    return BJ_OK;
}

void report_pretrained_close(report_pretrained *p) { bj_facts_free(p->facts); }

/* ---------------------------------------------------------------------------------------- table */

enum { COLUMNS = 6 };

/* One row of the table. Unknown numbers are NaN. */
typedef struct row {
    double value[COLUMNS];
} row;

static const struct {
    const char *title, *help;
    int digits;
    double factor;
} columns[COLUMNS] = {
    {"scenes seen",
     "number of scenes seen in training up to the checkpoint, including repeated ones", 0, 1},
    {"Energy Score, m", "trajectory Energy Score on these scenes; lower is better", 3, 1},
    {"discrepancy, m", "distance to the true distribution; lower is better", 3, 1},
    {"true modes found, %", "total true probability of the modes that have a branch within 2 m", 1,
     100},
    {"Brier excess", "Brier score of the maneuvers minus the score of the true probabilities", 4,
     1},
    {"on the drivable area, %", "weight of trajectories on the drivable area", 1, 100},
};

static void empty(row *r) {
    for (int i = 0; i < COLUMNS; i++) r->value[i] = NAN;
}

/* Averages over the truth entries of an arm, or takes the single entry of that name. */
static void add_truth(row *r, const report_data *d, int arm, const char *name) {
    double sum[COLUMNS] = {0};
    int n = 0;
    for (int i = 0; d->truth && i < d->truth->entries; i++) {
        const report_truth_entry *e = &d->truth->entry[i];
        if (arm >= 0 ? e->arm != arm : e->arm >= 0 || strcmp(e->name, name)) continue;
        sum[1] += e->report.realized_es.mean;
        sum[2] += e->report.discrepancy.mean;
        sum[3] += e->report.recall_mass;
        sum[4] += e->report.brier_excess;
        n++;
    }
    for (int i = 1; i < 5 && n; i++) r->value[i] = sum[i] / n;
}

static void add_audit(row *r, const report_data *d, const char *name) {
    static const char metric[] = "trajectory_mass";
    for (int a = 0; d->audit && a < d->audit->arms; a++)
        for (int m = 0; m < BJ_AUDIT_METRICS; m++)
            if (!strcmp(d->audit->arm[a].name, name) && !strcmp(bj_audit_metric_at(m).name, metric))
                r->value[5] = d->audit->arm[a].mean[m];
}

/* Averages over the finished runs of an arm. */
static void add_scenes(row *r, const report_data *d, int arm) {
    double sum = 0;
    int n = 0;
    for (int i = 0; i < d->runs; i++) {
        const report_run *run = &d->run[i];
        if (run->arm != arm || !run->run || run->best < 0) continue;
        const bj_epoch epoch = bj_run_epoch(run->run, run->best);
        sum += (double)cli_scenes_seen(run->run, &epoch);
        n++;
    }
    if (n) r->value[0] = sum / n;
}

static void put_cell(FILE *to, int column, double value) {
    char text[CLI_FIXED_SIZE], count[CLI_COUNT_SIZE];
    fputs("<td class=\"n\">", to);
    if (!isfinite(value)) fputs("\xe2\x80\x93", to);
    else if (!column) fputs(cli_count(count, (size_t)llround(value)), to);
    else {
        cli_fixed(text, columns[column].factor * value, columns[column].digits);
        fputs(text, to);
    }
    fputs("</td>", to);
}

static void put_row(FILE *to, const char *title, const char *note, const row *r) {
    fputs("<tr><th scope=\"row\">", to);
    report_text(to, title);
    if (note) fprintf(to, "<br><span class=\"soft\">%s</span>", note);
    fputs("</th>", to);
    for (int i = 0; i < COLUMNS; i++) put_cell(to, i, r->value[i]);
    fputs("</tr>\n", to);
}

static void put_table(FILE *to, const report_pretrained *p, const report_data *d) {
    static const struct {
        bj_baseline which;
        const char *title, *note;
    } limits[] = {{BJ_BASELINE_MODES, "true modes", "six, known only to the simulator"},
                  {BJ_BASELINE_VELOCITY, "constant velocity", "one straight future"}};
    row r;
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Pretrained model and "
          "arms\"><table>\n<thead><tr><th scope=\"col\">model</th>",
          to);
    for (int i = 0; i < COLUMNS; i++)
        fprintf(to, "<th scope=\"col\" class=\"n\" title=\"%s\">%s</th>", columns[i].help,
                columns[i].title);
    fputs("</tr></thead>\n<tbody>\n", to);
    empty(&r);
    const char *scenes = bj_facts_get(p->facts, "scenes");
    if (scenes) r.value[0] = strtod(scenes, NULL);
    add_truth(&r, d, -1, p->model);
    add_audit(&r, d, p->model);
    put_row(to, p->title, "pretrained", &r);
    for (int a = 0; a < d->arms; a++) {
        if (!d->arm[a].forecasts) continue;
        empty(&r);
        add_scenes(&r, d, a);
        add_truth(&r, d, a, "");
        add_audit(&r, d, d->arm[a].name);
        put_row(to, d->arm[a].title, NULL, &r);
    }
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        empty(&r);
        add_truth(&r, d, -1, bj_baseline_name(limits[i].which));
        if (isfinite(r.value[1])) put_row(to, limits[i].title, limits[i].note, &r);
    }
    fputs("</tbody></table></div>\n", to);
}

/* -------------------------------------------------------------------------------------- section */

static void put_fact(FILE *to, const char *title, const char *value) {
    if (!value) return;
    fprintf(to, "<span class=\"soft\">%s <span class=\"hash\">", title);
    report_text(to, value);
    fputs("</span></span> ", to);
}

void report_pretrained_write(FILE *to, const report_pretrained *p, const report_data *d) {
    char count[CLI_COUNT_SIZE];
    fputs("<section id=\"pretrained\">\n<h2>The pretrained model</h2>\n<p class=\"tags\">", to);
    put_fact(to, "name", p->title);
    put_fact(to, "parameters", cli_count(count, p->parameters));
    put_fact(to, "data", bj_facts_get(p->facts, "data"));
    put_fact(to, "recipe", bj_facts_get(p->facts, "recipe"));
    put_fact(to, "license", bj_facts_get(p->facts, "license"));
    char digest[20];
    snprintf(digest, sizeof digest, "%.16s", p->sha256);
    put_fact(to, "SHA-256", digest);
    fputs("</p>\n"
          "<p>This model and the arms of this campaign were trained on different scenes, "
          "so the model is not part of their comparison. "
          "Its row shows the effect of more training. ",
          to);
    if (d->truth || d->audit)
        fputs("All rows are computed on the same scenes. No model was trained on them.</p>\n", to);
    else
        fputs("Its metrics are shown here if truth.json and audit.json contain this model.</p>\n",
              to);
    put_table(to, p, d);
    fputs("</section>\n", to);
}
