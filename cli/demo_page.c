/* demo_page.c - the demo's page: text, tables and style around the drawings of demo_picture.c.
 *
 * HTML written as well-formed XML, without scripts or anything fetched from elsewhere.
 */
#include "demo.h"

static const char style[] =
    ":root { color-scheme: light; --ink: #1c2530; --soft: #66717f; --line: #e3e6ea;\n"
    "  --branch: #2463c9; --point: #e0620d; }\n"
    "body { margin: 0; background: #f7f7f4; color: var(--ink);\n"
    "  font: 16px/1.55 system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", Arial,\n"
    "  sans-serif; }\n"
    "main { max-width: 1180px; margin: 0 auto; padding: 44px 28px 56px; }\n"
    "h1 { font-size: 32px; line-height: 1.2; letter-spacing: -.015em; margin: 0 0 14px; }\n"
    "h2 { font-size: 20px; letter-spacing: -.005em; margin: 44px 0 6px; }\n"
    "p { max-width: 780px; margin: 0 0 10px; }\n"
    "p.note, figcaption { color: var(--soft); font-size: 14px; }\n"
    "figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: 10px;\n"
    "  overflow: hidden; }\n"
    "figure svg { display: block; width: 100%; height: auto; }\n"
    "figcaption { padding: 7px 14px 9px; border-top: 1px solid var(--line); }\n"
    ".scenes, .charts { display: grid; gap: 18px; }\n"
    ".scenes { grid-template-columns: repeat(auto-fill, minmax(min(320px, 100%), 1fr)); }\n"
    ".charts { grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); }\n"
    ".legend { display: flex; flex-wrap: wrap; gap: 6px 24px; list-style: none; padding: 0;\n"
    "  margin: 14px 0; font-size: 14px; }\n"
    ".legend li { display: flex; align-items: center; gap: 8px; }\n"
    ".legend svg { width: 40px; height: 18px; flex: none; }\n"
    ".wide { overflow-x: auto; }\n"
    "table { border-collapse: collapse; background: #fff; border: 1px solid var(--line);\n"
    "  font-size: 15px; margin-top: 12px; }\n"
    "th, td { padding: 7px 16px; text-align: left; border-top: 1px solid var(--line);\n"
    "  vertical-align: baseline; }\n"
    "th { font-weight: 600; } thead th { border-top: 0; }\n"
    "td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }\n"
    "td.name { white-space: nowrap; }\n"
    "td.after { font-weight: 600; } td.meaning { color: var(--soft); font-size: 14px; }\n"
    "th.fullset { color: var(--branch); } th.point { color: var(--point); }\n"
    "table.facts th { font-weight: 400; color: var(--soft); }\n"
    "code { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }\n"
    ".ground { fill: #fcfcfb; }\n"
    "path { fill: none; stroke-linecap: round; stroke-linejoin: round; }\n"
    ".map { stroke: #dadde2; stroke-width: 2.2; }\n"
    ".crosswalk { stroke: #cfd4db; stroke-width: 4; stroke-dasharray: 2 4;\n"
    "  stroke-linecap: butt; }\n"
    ".track { stroke: #a9b2bd; stroke-width: 1.4; }\n"
    ".neighbor { fill: #c3cad3; stroke: #97a1ad; stroke-width: 1; }\n"
    ".focal { fill: var(--ink); stroke: #fff; stroke-width: 1; }\n"
    ".past { stroke: var(--ink); stroke-width: 2.6; }\n"
    ".branch { stroke: var(--branch); } .end { fill: var(--branch); }\n"
    ".point { stroke: var(--point); stroke-width: 2.2; }\n"
    ".future { stroke: var(--ink); stroke-width: 1.8; stroke-dasharray: 5 4;\n"
    "  stroke-linecap: butt; }\n"
    ".bar { stroke: var(--soft); stroke-width: 1.3; stroke-linecap: butt; }\n"
    ".grid { stroke: #eceef1; stroke-width: 1; }\n"
    ".curve { stroke-width: 2; } .range { stroke: none; opacity: .16; }\n"
    ".branch.range { fill: var(--branch); } .point.range { fill: var(--point); }\n"
    "text { font-size: 11px; paint-order: stroke; stroke: #fcfcfb; stroke-width: 3px; }\n"
    "text.small { fill: var(--soft); } text.weight { fill: #1b4a98; font-weight: 600; }\n"
    "@media print { body { background: #fff; } figure, tr { break-inside: avoid; } }\n";

static void write_legend_item(FILE *to, const char *drawing, const char *text) {
    fprintf(to, "<li><svg viewBox=\"0 0 40 18\" aria-hidden=\"true\">%s</svg>%s</li>\n", drawing,
            text);
}

static void write_legend(FILE *to) {
    fputs("<ul class=\"legend\">\n", to);
    write_legend_item(to,
                      "<path class=\"branch\" stroke-width=\"3.4\" opacity=\".9\" "
                      "d=\"M2 12L36 4\"/>"
                      "<path class=\"branch\" stroke-width=\"1.6\" opacity=\".4\" "
                      "d=\"M2 12L36 15\"/>",
                      "branches: wider and darker with more weight");
    write_legend_item(to, "<path class=\"point\" d=\"M2 9H38\"/>", "point control");
    write_legend_item(to, "<path class=\"future\" d=\"M2 9H38\"/>", "realized future");
    write_legend_item(to,
                      "<path class=\"past\" d=\"M2 9H28\"/><rect class=\"focal\" x=\"22\" "
                      "y=\"5.5\" width=\"16\" height=\"7\" rx=\"2\"/>",
                      "observed history");
    write_legend_item(to,
                      "<path class=\"track\" d=\"M2 9H28\"/><rect class=\"neighbor\" x=\"22\" "
                      "y=\"5.5\" width=\"16\" height=\"7\" rx=\"2\"/>",
                      "neighbors");
    write_legend_item(to, "<path class=\"map\" d=\"M2 9H38\"/>", "map");
    fputs("</ul>\n", to);
}

static void write_scenes(FILE *to, const demo *d) {
    fprintf(to,
            "<h2>Six held-out scenes</h2>\n"
            "<p class=\"note\">Chosen by observed speed alone, from slow to fast; every branch is "
            "drawn, with its weight at its end. %g s are observed, %g s predicted.</p>\n",
            d->run[0].arch.obs * d->run[0].arch.dt, d->run[0].arch.fut * d->run[0].arch.dt);
    write_legend(to);
    fputs("<div class=\"scenes\">\n", to);
    for (int i = 0; i < DEMO_SHOWN; i++) demo_draw_scene(to, d, d->shown[i]);
    fputs("</div>\n", to);
}

static void write_curves(FILE *to, const demo *d) {
    const double *const loss[DEMO_RUNS] = {d->run[0].loss, d->run[1].loss};
    const double *const decoded[DEMO_RUNS] = {d->run[0].decoded, d->run[1].decoded};
    fputs("<h2>Training</h2>\n<ul class=\"legend\">\n", to);
    write_legend_item(to, "<path class=\"branch curve\" d=\"M2 9H38\"/>", "full-set, K = 6");
    write_legend_item(to, "<path class=\"point curve\" d=\"M2 9H38\"/>", "point, K = 1");
    fputs("</ul>\n<div class=\"charts\">\n", to);
    demo_draw_curves(to, d, loss, "loss at each step: latent + decoded + reconstruction");
    demo_draw_curves(to, d, decoded, "its decoded part: Energy Score of the trajectories, m");
    fputs("</div>\n", to);
}

static void write_metrics(FILE *to, const demo *d) {
    fprintf(to,
            "<h2>Metrics on %d held-out scenes</h2>\n<div class=\"wide\">\n<table>\n<thead>\n"
            "<tr><th></th>"
            "<th class=\"fullset n\" colspan=\"2\">full-set, K = %d</th>"
            "<th class=\"point n\" colspan=\"2\">point, K = 1</th><th></th></tr>\n"
            "<tr><th></th><th class=\"n\">before</th><th class=\"n\">after</th>"
            "<th class=\"n\">before</th><th class=\"n\">after</th><th></th></tr>\n</thead>\n"
            "<tbody>\n",
            DEMO_HELD_OUT, d->run[DEMO_FULLSET].arch.atoms);
    for (int m = 0; m < demo_metric_count; m++) {
        const demo_metric *metric = &demo_metrics[m];
        fprintf(to, "<tr><td class=\"name\">%s%s%s</td>", metric->title, *metric->unit ? ", " : "",
                metric->unit);
        for (int r = 0; r < DEMO_RUNS; r++)
            fprintf(to, "<td class=\"n\">%.3f</td><td class=\"n after\">%.3f</td>",
                    metric->of(&d->run[r].before), metric->of(&d->run[r].after));
        fprintf(to, "<td class=\"meaning\">%s</td></tr>\n", metric->meaning);
    }
    fputs("</tbody>\n</table>\n</div>\n", to);
}

static void write_facts(FILE *to, const demo *d) {
    const bj_arch *a = &d->run[DEMO_FULLSET].arch;
    char set[CLI_COUNT_SIZE], point[CLI_COUNT_SIZE], scenes[CLI_COUNT_SIZE];
    cli_count(set, bj_arch_counts(a).total);
    cli_count(point, bj_arch_counts(&d->run[DEMO_POINT].arch).total);
    cli_count(scenes, (size_t)d->steps * DEMO_BATCH);
    fprintf(to,
            "<h2>How it was made</h2>\n<div class=\"wide\">\n<table class=\"facts\">\n<tbody>\n"
            "<tr><th>command</th><td><code>bjepa demo --seed %llu --steps %d</code></td></tr>\n"
            "<tr><th>version</th><td>libbranchjepa %s, %s precision, %s kernels</td></tr>\n"
            "<tr><th>parameters</th><td>%s (full-set), %s (point)</td></tr>\n"
            "<tr><th>sizes</th><td>GRU and tokens %d wide, %d heads; latents %d; atoms "
            "%d &#8211; %d &#8211; %d, point %d &#8211; %d &#8211; %d; decoder %d &#8211; %d "
            "&#8211; %d</td></tr>\n",
            (unsigned long long)d->seed, d->steps, bj_version(),
            sizeof(bj_real) == sizeof(double) ? "double" : "single", d->isa, set, point, a->embed,
            a->heads, a->latent, a->latent, a->atom_hidden, a->latent, a->latent,
            d->run[DEMO_POINT].arch.atom_hidden, a->latent, a->latent, a->decoder_hidden,
            2 * a->fut);
    fprintf(to,
            "<tr><th>scenes</th><td>up to %d neighbors and %d polylines of %d points; %d observed "
            "and %d future steps of %g s</td></tr>\n"
            "<tr><th>training</th><td>%d steps of %d fresh scenes (%s in all), the same for both "
            "models; AdamW, warm-up and cosine from %g, gradient norm %g</td></tr>\n"
            "<tr><th>repeatable</th><td>the same seed and steps give this page and the checkpoint "
            "again, byte for byte, with any number of threads on the same instruction set"
            "</td></tr>\n</tbody>\n</table>\n</div>\n",
            a->neighbors, a->polylines, a->points, a->obs, a->fut, a->dt, d->steps, DEMO_BATCH,
            scenes, DEMO_LEARNING_RATE, bj_optim_default().clip);
}

void demo_page_write(FILE *to, const demo *d) {
    const bj_metric_values *set = &d->run[DEMO_FULLSET].after, *point = &d->run[DEMO_POINT].after;
    fprintf(to,
            "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
            "<meta charset=\"utf-8\"/>\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
            "<title>Branch-JEPA demo</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n"
            "<h1>Six weighted futures instead of one</h1>\n"
            "<p>Two small networks of nearly the same size were trained on the same synthetic "
            "traffic scenes. The full-set model predicts %d futures, each with a weight; the point "
            "control predicts one.</p>\n"
            "<p>In these scenes a vehicle drives straight until now and then turns at a random "
            "rate that nothing in its history reveals. The right answer is therefore a fan of "
            "futures: a single trajectory can only pass through its middle.</p>\n"
            "<p>On scenes neither model has seen, the Energy Score of the trajectories is "
            "<strong>%.2f m</strong> for the weighted set and <strong>%.2f m</strong> for the "
            "point; lower is better.</p>\n",
            style, d->run[DEMO_FULLSET].arch.atoms, set->traj_es, point->traj_es);
    write_scenes(to, d);
    write_curves(to, d);
    write_metrics(to, d);
    write_facts(to, d);
    fputs("</main>\n</body>\n</html>\n", to);
}
