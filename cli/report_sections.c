/* report_sections.c - see report_sections.h. */
#include "report_sections.h"

#include <math.h>
#include <string.h>

#include "grid.h"
#include "plot_list.h"
#include "report_page.h"

/* Metrics that the tables explain. The first MAIN of them form the main table. */
typedef struct meaning {
    const char *metric, *title, *text;
} meaning;

enum { MAIN = 6 };

static const meaning meanings[] = {
    {"traj_es", "Energy Score, m",
     "Energy Score of whole trajectories: "
     "the weighted distance between the branches and the true future, "
     "minus half the weighted distance between the branches. "
     "Its expectation is lowest for the true distribution."},
    {"traj_obs", "observation, m",
     "first term of the Energy Score: "
     "the weighted distance between the branches and the true future"},
    {"exp_ade", "expected ADE, m",
     "average displacement error of a branch that is drawn according to the weights"},
    {"top1_ade", "top-1 ADE, m",
     "average displacement error of the branch with the largest weight"},
    {"brier", "Brier",
     "squared error of the probabilities of the four maneuvers (stop, straight, left, right)"},
    {"dedup_support", "distinct ends",
     "effective number of branches after merging branches that end within 1 m of each other"},
    {"end_es", "endpoint ES, m", "Energy Score of the last points"},
    {"ece", "ECE", "expected calibration error of the most likely maneuver"},
    {"traj_disp", "dispersion, m",
     "second term of the Energy Score: "
     "half the weighted distance between the branches"},
    {"latent_es", "latent ES", "Energy Score of the latents"},
    {"exp_fde", "expected FDE, m",
     "final displacement error of a branch that is drawn according to the weights"},
    {"top1_fde", "top-1 FDE, m", "final displacement error of the branch with the largest weight"},
    {"top1_mr", "top-1 miss rate",
     "share of scenes in which the most probable branch ends over 2 m from the true future"},
    {"min_ade_6", "minADE6, m",
     "Argoverse 2 leaderboard metric: "
     "average displacement error of the best of the six most probable branches. "
     "A diagnostic, because the best branch is chosen with hindsight."},
    {"min_fde_6", "minFDE6, m",
     "Argoverse 2 leaderboard metric: "
     "final displacement error of the best of the six most probable branches. A diagnostic."},
    {"mr_6", "miss rate 6",
     "Argoverse 2 leaderboard metric: "
     "share of scenes in which none of the six most probable branches ends within 2 m. "
     "A diagnostic."},
    {"brier_min_fde_6", "brier-minFDE6, m",
     "Argoverse 2 leaderboard metric: "
     "minFDE6 plus (1 - p)\xc2\xb2, where p is the probability of the best branch. A diagnostic."},
    {"brier_min_fde_1", "brier-minFDE1, m",
     "Argoverse 2 leaderboard metric: "
     "top-1 FDE plus (1 - p)\xc2\xb2, where p is the probability of that branch. "
     "minADE1, minFDE1 and miss rate 1 are the top-1 metrics above."},
    {"min_ade", "best-of-K ADE, m",
     "average displacement error of the best of all K branches. "
     "A diagnostic, because the best branch is chosen with hindsight."},
    {"min_fde", "best-of-K FDE, m", "final displacement error of the best of all K branches"},
    {"point_mass", "map points",
     "official maps, vehicles and buses: weighted share of the predicted points on the drivable area"},
    {"trajectory_mass", "map trajectories",
     "official maps: weight of the trajectories with at least 95 % of their points on the drivable "
     "area"},
    {"mass_weighted_support", "map support",
     "official maps: effective number of distinct trajectories on the drivable area, times their "
     "weight"},
    {"latency_64", "latency, ms",
     "median time of predicting a batch of 64 scenes; all checkpoints alternate on the same machine"},
    {"min_mr", "best-of-K miss rate", "share of scenes in which no branch ends within 2 m"},
    {"exp_entropy", "effective branches", "exp of the entropy of the weights"},
    {"active_heads", "active branches", "number of branches with at least 1 % of the total weight"},
    {"neff_collision", "distinct latents",
     "effective number of branches after merging latents within 0.10 of each other"},
};
enum { MEANINGS = sizeof meanings / sizeof *meanings };

/* ------------------------------------------------------------------------------------ numbers */

static void put_number(FILE *to, double value, int digits, int sign) {
    char text[CLI_FIXED_SIZE];
    cli_fixed(text, value, digits);
    if (text[0] == '-' && text[1]) fprintf(to, "\xe2\x88\x92%s", text + 1);
    else fprintf(to, "%s%s", sign && value > 0 ? "+" : "", text);
}

static int most_atoms(const report_data *d) {
    int most = 0;
    for (int a = 0; a < d->arms; a++)
        if (d->arm[a].atoms > most) most = d->arm[a].atoms;
    return most;
}

/* Returns the arm with the best mean, or -1. Only arms with the same number of branches are
 * compared, because the distance of a single trajectory cannot be compared with that of a
 * distribution. */
static int best_arm(const report_data *d, int metric) {
    const int better = bj_metric_at(metric).better, atoms = most_atoms(d);
    int best = -1;
    double mean = 0;
    for (int a = 0; a < d->arms && better; a++) {
        const bj_summary s = report_summary(d, a, metric);
        if (!s.n || !isfinite(s.mean) || d->arm[a].atoms != atoms) continue;
        if (best < 0 || better * s.mean > better * mean) {
            best = a;
            mean = s.mean;
        }
    }
    return best;
}

static int measured(const report_data *d, int metric) {
    for (int a = 0; a < d->arms; a++)
        if (report_summary(d, a, metric).n) return 1;
    return 0;
}

/* ---------------------------------------------------------------------------------- navigation */

static const char *short_title(const char *plot) {
    static const char *const names[][2] = {
        {"summary", "Seeds"},           {"support", "Support"}, {"usage", "Branches"},
        {"calibration", "Calibration"}, {"exchange", "Inputs"}, {"learning", "Learning"},
        {"losses", "Losses"},           {"audit", "Maps"},      {"truth", "Truth"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(names[i][0], plot)) return names[i][1];
    return plot;
}

void report_navigation(FILE *to, const report_data *d, int pretrained) {
    if (pretrained) fputs("<a href=\"#pretrained\">Pretrained</a>", to);
    fputs("<a href=\"#scenes\">Scenes</a><a href=\"#results\">Results</a>", to);
    for (const report_plot *plot = report_plots; plot->name; plot++)
        if (plot->panels(d) && strcmp(plot->name, "losses") && strcmp(plot->name, "usage") &&
            strcmp(plot->name, "exchange-curves"))
            fprintf(to, "<a href=\"#%s\">%s</a>", plot->name, short_title(plot->name));
    fputs("<a href=\"#parameters\">Size</a><a href=\"#provenance\">Provenance</a>", to);
}

/* --------------------------------------------------------------------------------------- about */

static void put_card(FILE *to, const char *what) {
    fprintf(to, "<div><div class=\"what\">%s</div><div class=\"big\">", what);
}

static void put_best_card(FILE *to, const report_data *d) {
    const int metric = bj_metric_find("traj_es"), best = best_arm(d, metric);
    if (best < 0) return;
    const bj_summary s = report_summary(d, best, metric);
    put_card(to, "Lowest trajectory Energy Score");
    put_number(to, s.mean, 3, 0);
    fputs(" m</div><div class=\"what\">", to);
    report_text(to, d->arm[best].title);
    if (isfinite(s.sd)) {
        fputs(", \xc2\xb1 ", to);
        put_number(to, s.sd, 3, 0);
        fprintf(to, " over %d seeds", s.n);
    }
    fputs("</div></div>\n", to);
}

static void put_difference_card(FILE *to, const report_data *d, int a, int b) {
    bj_comparison c;
    const int metric = bj_metric_find("traj_es");
    if (a < 0 || b < 0 || a == b || !report_compare(&c, d, a, b, metric)) return;
    fputs("<div><div class=\"what\">", to);
    report_textf(to, "%s minus %s", d->arm[a].title, d->arm[b].title);
    fputs("</div><div class=\"big\">", to);
    put_number(to, c.difference.mean, 3, 1);
    fputs(" m</div><div class=\"what\">95 % interval [", to);
    put_number(to, c.low, 3, 1);
    fputs(", ", to);
    put_number(to, c.high, 3, 1);
    fprintf(to, "], lower in %d of %d seeds</div></div>\n", c.lower, c.difference.n);
}

static void put_cards(FILE *to, const report_data *d) {
    int finished = 0;
    char count[CLI_COUNT_SIZE];
    for (int r = 0; r < d->runs; r++) finished += d->run[r].finished;
    fputs("<div class=\"cards\">\n", to);
    put_best_card(to, d);
    put_difference_card(to, d, d->fullset, d->specialization);
    put_difference_card(to, d, d->fullset, report_find_arm(d, "point"));
    put_card(to, "Arms and seeds");
    fprintf(to, "%d \xc3\x97 %d</div><div class=\"what\">", d->arms, d->seeds);
    if (d->runs) fprintf(to, "%d of %d runs finished", finished, d->runs);
    else fputs("from a seed table", to);
    fputs("</div></div>\n", to);
    if (d->scenes) {
        put_card(to, "Evaluated on");
        fprintf(to, "%s</div><div class=\"what\">%s scenes</div></div>\n",
                cli_count(count, (size_t)d->scenes), d->locked ? "held-out" : "development");
    }
    fputs("</div>\n", to);
}

static void put_arms(FILE *to, const report_data *d) {
    fputs("<details><summary>The arms</summary><div class=\"scroll\"><table><tbody>\n", to);
    for (int a = 0; a < d->arms; a++) {
        const int known = bj_arm_find(d->arm[a].name);
        fputs("<tr><th scope=\"row\">", to);
        report_text(to, d->arm[a].title);
        fputs("</th><td>", to);
        report_text(to, known >= 0 ? bj_arm_at(known).summary : "");
        fputs("</td></tr>\n", to);
    }
    fputs("</tbody></table></div></details>\n", to);
}

/* Returns 1 if the fact is known for all runs and is the same for all runs of a seed that have this
 * number of branches (0: any number). */
static int shared_within_seed(const report_data *d, const char *fact, int atoms) {
    int known = 0;
    for (int seed = 0; seed < d->seeds; seed++) {
        const char *value = NULL;
        for (int r = 0; r < d->runs; r++) {
            const report_run *run = &d->run[r];
            if (run->seed != seed || (atoms && d->arm[run->arm].atoms != atoms)) continue;
            const char *here = run->run ? bj_run_fact(run->run, fact) : NULL;
            if (!here || (value && strcmp(value, here))) return 0;
            value = here;
            known = 1;
        }
    }
    return known;
}

int report_same_size(const report_data *d) {
    size_t least = 0, most = 0;
    for (int a = 0; a < d->arms; a++) {
        const size_t total = d->arm[a].counts.total;
        if (!total) return 0;
        if (!least || total < least) least = total;
        if (total > most) most = total;
    }
    return most > 0 && most - least <= most / 100;
}

/* Only what was checked is claimed. */
static void put_matching(FILE *to, const report_data *d) {
    const char *parts[3];
    int count = 0;
    if (shared_within_seed(d, "order.sha256", 0))
        parts[count++] = "see the same scenes in the same order";
    if (shared_within_seed(d, "initial.sha256", 0)) parts[count++] = "start from the same weights";
    if (report_same_size(d)) parts[count++] = "have the same size within 1 %";
    fputs("<p>An <em>arm</em> is an objective with its model", to);
    for (int i = 0; i < count; i++)
        fprintf(to, "%s%s",
                !i              ? "; within a seed, all arms here "
                : i + 1 < count ? ", "
                                : " and ",
                parts[i]);
    fputs(". They differ in the training objective. ", to);
}

static void put_digest(FILE *to, const report_data *d) {
    const char *hash = d->protocol.lock_sha256;
    if (*hash)
        fprintf(to, " <span class=\"soft\">lock <span class=\"hash\">%.16s</span></span>", hash);
    if (d->runs)
        fprintf(to, " <span class=\"soft\">training data <span class=\"hash\">%.16s</span></span>",
                report_training_digest(d));
}

void report_head(FILE *to, const report_data *d) {
    char numbers[REPORT_SOURCE_SIZE];
    fputs("<h1>", to);
    report_text(to, d->name);
    fprintf(to, "</h1>\n<p class=\"tags\"><span class=\"tag %s\">", d->verified ? "locked" : "dev");
    report_text(to, report_numbers(numbers, d));
    fputs("</span>", to);
    put_digest(to, d);
    fputs("</p>\n"
          "<p class=\"lead\">"
          "The models on this page predict where a road user will be in the next six seconds. "
          "The future is often ambiguous, so a model predicts several possible futures "
          "with a probability for each.</p>\n",
          to);
}

void report_about(FILE *to, const report_data *d, const char *title) {
    fputs("<section id=\"about\">\n", to);
    if (title) fprintf(to, "<h2>%s</h2>\n", title);
    put_matching(to, d);
    if (d->locked && !d->verified)
        fputs("The numbers are from an evaluation on held-out scenes. Its files agree with each "
              "other, but locked files are missing, so the evaluation is only partly "
              "verified.</p>\n",
              to);
    else if (d->locked)
        fputs("The numbers are from the locked evaluation: checkpoints were chosen on development "
              "scenes and locked by their digests, and then all of them were evaluated once on "
              "the held-out scenes.</p>\n",
              to);
    else if (d->runs)
        fputs("The numbers are from the development scenes, "
              "which were also used to choose checkpoints. "
              "They are therefore optimistic; use a locked evaluation for publication.</p>\n",
              to);
    else fputs("The numbers are from a seed table.</p>\n", to);
    put_cards(to, d);
    put_arms(to, d);
    fputs("</section>\n", to);
}

void report_about_scenes(FILE *to, const report_forecasts *f) {
    static const char *const origins[] = {"scenes of the given file",
                                          "held-out scenes, shown after their evaluation",
                                          "development scenes, which are never trained on"};
    char count[CLI_COUNT_SIZE];
    if (!f->scenes) {
        fputs("<p class=\"notice shown\">There are no scenes on this page. ", to);
        report_text(to, f->reason);
        fputs("</p>\n", to);
        return;
    }
    fprintf(to,
            "<p>A model sees five seconds of traffic and a map. "
            "The numbered lines are its predicted futures; wide, opaque lines are likely. "
            "Two models are shown side by side. "
            "Point at a line to see its probability and maneuver, "
            "press Play, and reveal the true future%s.</p>\n",
            f->laws ? "; the true distribution of these simulated scenes can also be shown" : "");
    fprintf(to,
            "<p class=\"note\">This page shows %d of %s %s, "
            "selected by a hash of their ids without reading any future. "
            "Scenes whose predicted futures end far apart come first.",
            report_scenes_count(f->scenes), cli_count(count, (size_t)f->available),
            origins[f->origin]);
    if (f->dropped)
        fprintf(to, " %d more scenes were omitted to keep this page below 15 MB.", f->dropped);
    fputs("</p>\n", to);
}

/* ------------------------------------------------------------------------------------- results */

static void put_paper(FILE *to, const report_data *d, int arm, const char *metric) {
    report_paper p;
    if (!report_paper_find(&p, d->arm[arm].name, metric, !d->locked)) return;
    fputs("<span class=\"paper\">paper ", to);
    put_number(to, p.mean, p.digits, 0);
    fputs(p.dev ? ", dev</span>" : "</span>", to);
}

static void put_cell(FILE *to, const report_data *d, int arm, int metric, int full) {
    const bj_metric_info info = bj_metric_at(metric);
    const int digits = info.digits > 3 ? info.digits - 1 : info.digits;
    const bj_summary s = report_summary(d, arm, metric);
    const int reference = report_reference(d);
    bj_comparison c;
    fprintf(to, "<td class=\"n%s\">", best_arm(d, metric) == arm ? " best" : "");
    if (!s.n || !isfinite(s.mean)) fputs("\xe2\x80\x93", to);
    else {
        put_number(to, s.mean, digits, 0);
        if (isfinite(s.sd)) {
            fputs(" <span class=\"soft\">\xc2\xb1 ", to);
            put_number(to, s.sd, digits, 0);
            fputs("</span>", to);
        }
    }
    if (full && reference >= 0 && arm != reference &&
        report_compare(&c, d, arm, reference, metric)) {
        fputs("<span class=\"ci\">", to);
        put_number(to, c.difference.mean, digits, 1);
        fputs(" [", to);
        put_number(to, c.low, digits, 1);
        fputs(", ", to);
        put_number(to, c.high, digits, 1);
        fputs("]</span>", to);
    }
    if (full) put_paper(to, d, arm, info.name);
    fputs("</td>", to);
}

static const char *arrow(int metric) {
    const int better = bj_metric_at(metric).better;
    return better < 0 ? " " CLI_ARROW_DOWN : better > 0 ? " " CLI_ARROW_UP : "";
}

static void put_main_table(FILE *to, const report_data *d) {
    fputs("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Main metrics\">"
          "<table>\n<thead><tr><th scope=\"col\">arm</th>",
          to);
    for (int m = 0; m < MAIN; m++) {
        const int metric = bj_metric_find(meanings[m].metric);
        if (!measured(d, metric)) continue;
        fputs("<th scope=\"col\" class=\"n\" title=\"", to);
        report_text(to, meanings[m].text);
        fprintf(to, "\">%s%s</th>", meanings[m].title, arrow(metric));
    }
    fputs("</tr></thead>\n<tbody>\n", to);
    for (int a = 0; a < d->arms; a++) {
        if (!d->arm[a].forecasts) continue;
        fputs("<tr><th scope=\"row\">", to);
        report_text(to, d->arm[a].title);
        if (a == report_reference(d)) fputs("<br><span class=\"soft\">reference</span>", to);
        fputs("</th>", to);
        for (int m = 0; m < MAIN; m++) {
            const int metric = bj_metric_find(meanings[m].metric);
            if (measured(d, metric)) put_cell(to, d, a, metric, 1);
        }
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n", to);
}

/* Metrics are rows in this table, because there are more metrics than arms. */
static void put_all_metrics(FILE *to, const report_data *d) {
    fputs("<details><summary>All metrics and their definitions</summary><div "
          "class=\"scroll\"><table>\n"
          "<thead><tr><th scope=\"col\">metric</th>",
          to);
    for (int a = 0; a < d->arms; a++) {
        fputs("<th scope=\"col\" class=\"n\">", to);
        report_text(to, d->arm[a].label);
        fputs("</th>", to);
    }
    fputs("<th scope=\"col\">definition</th></tr></thead>\n<tbody>\n", to);
    for (int m = 0; m < MEANINGS; m++) {
        const int metric = bj_metric_find(meanings[m].metric);
        if (!measured(d, metric)) continue;
        fprintf(to, "<tr><th scope=\"row\">%s%s</th>", meanings[m].title, arrow(metric));
        for (int a = 0; a < d->arms; a++) put_cell(to, d, a, metric, 0);
        fprintf(to, "<td class=\"note\">%s</td></tr>\n", meanings[m].text);
    }
    fputs("</tbody></table></div></details>\n", to);
}

void report_results(FILE *to, const report_data *d) {
    const int reference = report_reference(d);
    int metrics = 0;
    for (int m = 0; m < MEANINGS; m++) metrics += measured(d, bj_metric_find(meanings[m].metric));
    if (!metrics) {
        fputs("<section id=\"results\">\n"
              "<h2>Results</h2>\n"
              "<p>There are no results yet, because no run has chosen a checkpoint.</p>\n"
              "</section>\n",
              to);
        return;
    }
    fputs("<section id=\"results\">\n<h2>Results</h2>\n<p class=\"note\">", to);
    fputs(d->seeds > 1
              ? "Mean \xc2\xb1 sample SD over seeds; the best mean of each column is shaded"
              : "There is only one seed, so the spread between seeds is unknown; "
                "the best value of each column is shaded",
          to);
    if (most_atoms(d) > 1) fprintf(to, ", among sets of %d branches", most_atoms(d));
    fputs(".", to);
    if (reference >= 0 && d->seeds > 1) {
        fputs(" Second line: difference from ", to);
        report_text(to, d->arm[reference].title);
        fputs(" for the same seeds, with its paired-t 95 % interval.", to);
    }
    fputs(" Last line: value in the paper (five seeds of the full-size model on Argoverse 2). "
          "Other data and recipes give different values, "
          "so compare only the order of the arms.</p>\n",
          to);
    put_main_table(to, d);
    put_all_metrics(to, d);
    fputs("</section>\n", to);
}

/* ------------------------------------------------------------------------------------- figures */

void report_figures(FILE *to, const report_data *d) {
    for (const report_plot *plot = report_plots; plot->name; plot++) {
        const int panels = plot->panels(d);
        if (!panels) continue;
        fprintf(to, "<section id=\"%s\">\n<h2>", plot->name);
        report_text(to, plot->title);
        fprintf(to, "</h2>\n<figure><figcaption>");
        report_text(to, plot->caption);
        fprintf(to, "</figcaption>\n<div class=\"plots\" style=\"--panel:%dpx\">\n", plot->width);
        for (int i = 0; i < panels; i++) {
            fputs("<div>", to);
            report_plot_panel(to, plot, d, i);
            fputs("</div>\n", to);
        }
        fputs("</div></figure>\n</section>\n", to);
    }
}
