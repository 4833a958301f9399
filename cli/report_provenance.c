/* report_provenance.c - writes the sizes of the models and the origin of the numbers; see
 * report_sections.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"
#include "report_json.h"
#include "report_page.h"
#include "report_sections.h"

/* ---------------------------------------------------------------------------------- parameters */

static void put_count(FILE *to, size_t count) {
    char text[CLI_COUNT_SIZE];
    fprintf(to, "<td class=\"n\">%s</td>", count ? cli_count(text, count) : "\xe2\x80\x93");
}

void report_parameters(FILE *to, const report_data *d) {
    int known = 0;
    for (int a = 0; a < d->arms; a++) known += d->arm[a].counts.total > 0;
    fprintf(to, "<section id=\"parameters\">\n<h2>Model size</h2>\n<p class=\"note\">");
    if (d->arms > 1) fputs("Arms can be compared fairly if their models are equally large. ", to);
    if (d->arms > 1 && report_same_size(d) && report_is_maze(d))
        fputs("The single wide branch of the standard model "
              "and the variational network are as large as eight branches and their router. ",
              to);
    else if (d->arms > 1 && report_same_size(d))
        fputs("The single wide branch of the point control "
              "and the six residual heads of the output-only control "
              "are as large as six branches and their router. ",
              to);
    else if (d->arms > 1 && known)
        fputs("<strong>These models have different sizes:</strong> "
              "they differ by more than 1 %, "
              "so differences between the arms are not due to training alone. ",
              to);
    fputs("The target encoder, a copy of the encoder, is not counted.</p>\n", to);
    if (!known) {
        fputs("<p>A seed table contains no model sizes.</p>\n</section>\n", to);
        return;
    }
    fputs("<div class=\"scroll\"><table>\n"
          "<thead><tr><th scope=\"col\">arm</th><th scope=\"col\" class=\"n\">branches</th><th "
          "scope=\"col\" class=\"n\">encoder</th><th scope=\"col\" class=\"n\">atoms</th><th "
          "scope=\"col\" class=\"n\">router</th><th scope=\"col\" class=\"n\">decoder</th><th "
          "scope=\"col\" class=\"n\">without the encoder</th><th scope=\"col\" "
          "class=\"n\">total</th></tr></thead>\n"
          "<tbody>\n",
          to);
    for (int a = 0; a < d->arms; a++) {
        const report_arm *arm = &d->arm[a];
        if (!arm->counts.total) continue;
        fputs("<tr><th scope=\"row\">", to);
        report_text(to, arm->title);
        fprintf(to, "</th><td class=\"n\">%d</td>", arm->atoms);
        put_count(to, arm->counts.encoder);
        put_count(to, arm->counts.atoms);
        put_count(to, arm->counts.router);
        put_count(to, arm->counts.decoder);
        put_count(to, arm->counts.downstream);
        put_count(to, arm->counts.total);
        fputs("</tr>\n", to);
    }
    fputs("</tbody></table></div>\n</section>\n", to);
}

/* ----------------------------------------------------------------------------------- the facts */

static void put_fact(FILE *to, const char *name, const char *value, int hash) {
    if (!value || !*value) return;
    fprintf(to, "<tr><th scope=\"row\">%s</th><td%s>", name, hash ? " class=\"hash\"" : "");
    report_text(to, value);
    fputs("</td></tr>\n", to);
}

static const char *fact_of(const report_run *run, const char *key) {
    return run->run ? bj_run_fact(run->run, key) : NULL;
}

/* The value all runs agree on, or NULL. */
static const char *common_fact(const report_data *d, const char *key) {
    const char *value = NULL;
    for (int r = 0; r < d->runs; r++) {
        const char *here = fact_of(&d->run[r], key);
        if (!here) continue;
        if (value && strcmp(value, here)) return NULL;
        value = here;
    }
    return value;
}

/* Each dataset of the campaign by its digest. */
static void put_datasets(FILE *to, const report_data *d) {
    const int sets = d->runs ? report_set_count(d) : 0;
    if (sets == 1) put_fact(to, "training data", report_training_digest(d), 1);
    for (int set = 0; sets > 1 && set < sets; set++)
        for (int r = 0; r < bj_campaign_runs(d->campaign); r++) {
            const bj_campaign_run run = bj_campaign_run_at(d->campaign, r);
            if (run.set != set) continue;
            char name[96];
            snprintf(name, sizeof name, "training data, %s",
                     bj_campaign_data_name(d->campaign, set));
            put_fact(to, name, run.data_digest, 1);
            break;
        }
}

static void put_facts(FILE *to, const report_data *d) {
    const report_protocol *p = &d->protocol;
    char numbers[REPORT_SOURCE_SIZE], scenes[96] = "";
    const char *fit = common_fact(d, "split.fit"), *dev = common_fact(d, "split.dev");
    const int maze = report_is_maze(d);
    if (fit && maze) snprintf(scenes, sizeof scenes, "%s transitions", fit);
    else if (fit && dev) snprintf(scenes, sizeof scenes, "%s fit scenes, %s development scenes", fit, dev);
    fputs("<div class=\"scroll\"><table class=\"facts\"><tbody>\n", to);
    put_fact(to, "numbers", report_numbers(numbers, d), 0);
    put_fact(to, "recipe", common_fact(d, "recipe"), 0);
    put_fact(to, maze ? "fitted" : "training scenes", scenes, 0);
    put_datasets(to, d);
    put_fact(to, "held-out data", p->data_digest, 1);
    put_fact(to, "held-out file, SHA-256", p->data_sha256, 1);
    put_fact(to, "lock, SHA-256", p->lock_sha256, 1);
    put_fact(to, "run summary, SHA-256", p->summary_sha256, 1);
    put_fact(to, "seed table, SHA-256", p->seeds_sha256, 1);
    put_fact(to, "evaluator, SHA-256", p->evaluator_sha256, 1);
    put_fact(to, "evaluator", p->evaluator_version, 0);
    put_fact(to, "evaluated", p->finished, 0);
    put_fact(to, "trained with", common_fact(d, "version"), 0);
    put_fact(to, "instruction set", common_fact(d, "isa"), 0);
    put_fact(to, "precision", common_fact(d, "real"), 0);
    fprintf(to, "<tr><th scope=\"row\">this page</th><td>bjepa %s</td></tr>\n", bj_version());
    fputs("</tbody></table></div>\n", to);
}

/* ---------------------------------------------------------------------------------------- runs */

/* Writes the beginning of a hash, with the whole hash as a tooltip. */
static void put_short_hash(FILE *to, const char *hash) {
    fputs("<td class=\"hash\" title=\"", to);
    report_text(to, hash);
    fprintf(to, "\">%.10s</td>", hash && *hash ? hash : "\xe2\x80\x93");
}

static bj_status put_run(FILE *to, const report_data *d, const report_run *run, bj_error *err) {
    char number[CLI_FIXED_SIZE], checkpoint[65] = "";
    yyjson_doc *result = NULL;
    if (run->finished) {
        const bj_status status = report_json_open(&result, run->dir, "result.json", err);
        if (status != BJ_OK) return status;
        report_json_text(checkpoint, sizeof checkpoint,
                         yyjson_obj_get(yyjson_doc_get_root(result), "checkpoint"),
                         BJ_CHECKPOINT_MODEL);
        yyjson_doc_free(result);
    }
    const int collapsed = run->run && bj_run_collapsed(run->run);
    const bj_epoch best =
        run->best >= 0 ? bj_run_epoch(run->run, run->best) : (bj_epoch){.epoch = 0};
    fputs("<tr><th scope=\"row\">", to);
    report_text(to, d->arm[run->arm].title);
    fprintf(to, "</th><td class=\"n\">%lld</td><td>%s</td><td class=\"n\">%d</td>",
            (long long)d->seed[run->seed],
            collapsed       ? "collapsed"
            : run->finished ? "finished"
            : run->run    ? "started"
                          : "waiting",
            run->epochs > 0 ? run->epochs - 1 : 0);
    if (run->best >= 0)
        fprintf(
            to, "<td class=\"n\">%d</td><td class=\"n\">%s</td>", best.epoch,
            cli_fixed(number,
                      isfinite(best.dev.traj_es)   ? best.dev.traj_es
                      : isfinite(best.decoder_ade) ? best.decoder_ade
                                                   : best.maze.cov_r,
                      4));
    else fputs("<td class=\"n\">\xe2\x80\x93</td><td class=\"n\">\xe2\x80\x93</td>", to);
    put_short_hash(to, checkpoint);
    put_short_hash(to, fact_of(run, "settings.sha256"));
    put_short_hash(to, fact_of(run, "initial.sha256"));
    put_short_hash(to, fact_of(run, "order.sha256"));
    fputs("</tr>\n", to);
    return BJ_OK;
}

static bj_status put_runs(FILE *to, const report_data *d, bj_error *err) {
    bj_status status = BJ_OK;
    fprintf(to,
            "<details><summary>%d run%s</summary><div class=\"scroll\"><table>\n<thead><tr>"
            "<th scope=\"col\">arm</th><th scope=\"col\" class=\"n\">seed</th>"
            "<th scope=\"col\">state</th><th scope=\"col\" class=\"n\">epochs</th>"
            "<th scope=\"col\" class=\"n\">chosen</th><th scope=\"col\" class=\"n\">%s</th>"
            "<th scope=\"col\">checkpoint</th><th scope=\"col\">settings</th>"
            "<th scope=\"col\">first weights</th><th scope=\"col\">data order</th></tr></thead>\n"
            "<tbody>\n",
            d->runs, d->runs == 1 ? "" : "s", report_is_maze(d) ? "COV-R" : "dev. ES");
    for (int r = 0; r < d->runs && status == BJ_OK; r++) status = put_run(to, d, &d->run[r], err);
    fputs("</tbody></table></div><p class=\"note\">"
          "The table shows the first digits of SHA-256 digests; the tooltips show all digits. "
          "Within a seed, all arms have the same data order and, "
          "if their models have the same shape, the same initial weights.</p></details>\n",
          to);
    return status;
}

/* ------------------------------------------------------------------------------------ settings */

/* Returns the first run of an arm that has settings, or NULL. */
static const bj_settings *settings_of(const report_data *d, int arm) {
    for (int r = 0; r < d->runs; r++)
        if (d->run[r].arm == arm && d->run[r].run) return bj_run_settings(d->run[r].run);
    return NULL;
}

/* Writes one value, or every value with the arms that have it. `texts` has room for every arm. */
static void put_setting(FILE *to, const report_data *d, int index,
                        char (*texts)[BJ_SETTING_TEXT_SIZE]) {
    int differ = 0, first = -1;
    for (int a = 0; a < d->arms; a++) {
        const bj_settings *s = settings_of(d, a);
        if (!s) continue;
        bj_setting_text(texts[a], s, index);
        if (first < 0) first = a;
        else differ |= strcmp(texts[a], texts[first]) != 0;
    }
    if (first >= 0) {
        fprintf(to, "<tr><th scope=\"row\"><code>%s</code></th><td>", bj_setting_at(index).key);
        for (int a = first, written = 0; a < d->arms; a++) {
            int seen = !settings_of(d, a) || (!differ && a > first);
            for (int b = first; b < a && !seen; b++)
                seen = settings_of(d, b) && !strcmp(texts[b], texts[a]);
            if (seen) continue;
            if (written++) fputs("; ", to);
            fputs("<strong>", to);
            report_text(to, texts[a]);
            fputs("</strong>", to);
            for (int b = a, named = 0; b < d->arms && differ; b++)
                if (settings_of(d, b) && !strcmp(texts[b], texts[a])) {
                    fputs(named++ ? ", " : " ", to);
                    report_text(to, d->arm[b].label);
                }
        }
        fputs("</td></tr>\n", to);
    }
}

static bj_status put_settings(FILE *to, const report_data *d, bj_error *err) {
    char(*texts)[BJ_SETTING_TEXT_SIZE] = calloc((size_t)d->arms + 1, sizeof *texts);
    if (!texts) return cli_error(err, BJ_ENOMEM, "out of memory");
    fputs("<details><summary>All settings</summary><div class=\"scroll\"><table class=\"facts\">"
          "<tbody>\n",
          to);
    for (int i = 0; i < bj_setting_count(); i++) {
        const char *key = bj_setting_at(i).key;
        if (strcmp(key, "arm") && strcmp(key, "seed") && strcmp(key, "anchor"))
            put_setting(to, d, i, texts);
    }
    fputs("</tbody></table></div></details>\n", to);
    free(texts);
    return BJ_OK;
}

bj_status report_provenance(FILE *to, const report_data *d, bj_error *err) {
    fputs("<section id=\"provenance\">\n<h2>Provenance</h2>\n", to);
    put_facts(to, d);
    bj_status status = BJ_OK;
    if (d->runs) {
        status = put_runs(to, d, err);
        if (status == BJ_OK) status = put_settings(to, d, err);
    }
    fputs("</section>\n", to);
    return status;
}
