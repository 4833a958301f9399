/* cmd_report.c - bjepa report: writes a campaign or a run as one page that opens from disk and
 * needs no network. */
#include "cli.h"
#include "output.h"
#include "report_maze.h"
#include "report_page.h"
#include "report_pretrained.h"
#include "report_sections.h"

#include <string.h>

static const char verb[] = "report";

/* 15 MB minus the space for plots, tables, style and script. */
enum { SCENE_BYTES = 12000000, SCENES = 1000 };

typedef struct report_options {
    const char *dir, *out, *scenes, *law, *pretrained;
    int count, threads;
} report_options;

static int parse(report_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "FILE.html", &o->out, 0, 0, "HTML page to write"},
        {"scenes", 0, CLI_TEXT, "CACHE", &o->scenes, 0, 0,
         "scenes to show (default: the held-out scenes if there is a locked evaluation, "
         "else the development scenes)"},
        {"law", 0, CLI_TEXT, "FILE", &o->law, 0, 0,
         "file with the true distribution, if it is not next to the cache"},
        {"count", 0, CLI_INT, "N", &o->count, 0, SCENES,
         "max number of scenes to show; they are chosen by a hash of their ids"},
        {"pretrained", 0, CLI_TEXT, "CHECKPOINT", &o->pretrained, 0, 0,
         "also show a model that was trained elsewhere, for example 'builtin'"},
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "write a report on a campaign or run as a single HTML page",
        .operands = "CAMPAIGN_DIR|RUN_DIR|SEEDS.csv",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa report demo-world --out report.html\n"
                    "bjepa report runs/fullset-0 --out run.html\n"
                    "bjepa report demo-world --scenes val.bjc --count 40\n"
                    "bjepa report demo-world --pretrained builtin --out report.html\n"
                    "bjepa report maze-planall --out mazes.html\n"
                    "bjepa report data/paper/av2_seeds.csv --out paper.html\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code == CLI_CONTINUE) o->dir = argv[1];
    return code;
}

/* ----------------------------------------------------------------------------------------- page */

typedef struct page {
    const report_data *data;
    const report_forecasts *forecasts;
    const report_pretrained *pretrained;
} page;

static bj_status fill_browser(FILE *to, const char *name, void *context, bj_error *err) {
    const page *p = context;
    (void)err;
    if (!strcmp(name, "about")) report_about_scenes(to, p->forecasts);
    if (!strcmp(name, "glance")) report_about_glance(to, p->pretrained->title);
    return BJ_OK;
}

static bj_status fill_sections(FILE *to, page *p, bj_error *err) {
    const int pretrained = p->pretrained->model != NULL;
    bj_status status = BJ_OK;
    report_head(to, p->data);
    if (pretrained) {
        report_pretrained_write(to, p->pretrained, p->data);
        status = report_template(to, "glance.html", fill_browser, p, err);
    } else {
        report_about(to, p->data, NULL);
    }
    if (status == BJ_OK) status = report_template(to, "browser.html", fill_browser, p, err);
    if (status != BJ_OK) return status;
    if (pretrained) report_about(to, p->data, "Comparison of the arms");
    report_results(to, p->data);
    report_figures(to, p->data);
    report_parameters(to, p->data);
    return report_provenance(to, p->data, err);
}

static bj_status fill(FILE *to, const char *name, void *context, bj_error *err) {
    page *p = context;
    if (!strcmp(name, "title")) report_textf(to, "%s: Branch-JEPA report", p->data->name);
    else if (!strcmp(name, "navigation"))
        report_navigation(to, p->data, p->pretrained->model != NULL);
    else if (!strcmp(name, "sections")) return fill_sections(to, p, err);
    else if (!strcmp(name, "footer"))
        fprintf(to, "<p>Written by bjepa %s. This file is self-contained and works offline.</p>",
                bj_version());
    else if (!strcmp(name, "scenes") && p->forecasts->scenes)
        return report_scenes_write(to, p->forecasts->scenes, err);
    else if (!strcmp(name, "scenes")) fputs("{\"scenes\":[]}", to);
    return BJ_OK;
}

static bj_status write_page(page *p, const char *out, bj_error *err) {
    cli_file file;
    bj_status status = cli_file_open(&file, out, err);
    if (status != BJ_OK) return status;
    status = report_page_write(file.stream, fill, p, err);
    if (status == BJ_OK) return cli_file_commit(&file, err);
    cli_file_abort(&file);
    return status;
}

static bj_status write_maze(const report_data *data, const report_options *o, bj_error *err) {
    report_maze maze;
    cli_file file;
    bj_status status = report_maze_make(&maze, data, o->threads, err);
    if (status == BJ_OK) status = cli_file_open(&file, o->out, err);
    if (status == BJ_OK) {
        status = report_maze_write(file.stream, &maze, err);
        if (status == BJ_OK) status = cli_file_commit(&file, err);
        else cli_file_abort(&file);
    }
    if (status == BJ_OK) {
        if (*maze.reason) fprintf(stderr, "bjepa %s: %s\n", verb, maze.reason);
        fprintf(stderr, "bjepa %s: wrote %s with %d graph%s; open it in a browser\n", verb, o->out,
                maze.graphs, maze.graphs == 1 ? "" : "s");
    }
    report_maze_free(&maze);
    return status;
}

int cmd_report(int argc, char **argv) {
    report_options o = {.out = "report.html", .count = 24};
    const int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    report_pretrained pretrained = {.model = NULL};
    const report_forecast_options how = {o.scenes,  o.law,       o.count,
                                         o.threads, SCENE_BYTES, &pretrained};
    report_data *data = NULL;
    report_forecasts forecasts = {.scenes = NULL};
    bj_error err;
    bj_status status = bj_file_writable(o.out, &err);
    if (status == BJ_OK) status = report_data_open(&data, o.dir, &err);
    if (status == BJ_OK && report_is_maze(data)) {
        status = o.scenes || o.law || o.pretrained
                     ? cli_error(&err, BJ_EARG, "%s: maze runs have no scenes; leave out --scenes, --law and --pretrained", o.dir)
                     : write_maze(data, &o, &err);
        report_data_free(data);
        return status == BJ_OK ? CLI_OK : cli_fail(verb, &err);
    }
    if (status == BJ_OK) status = report_pretrained_open(&pretrained, o.pretrained, &err);
    if (status == BJ_OK) status = report_forecasts_make(&forecasts, data, &how, &err);
    if (status == BJ_OK) {
        page p = {data, &forecasts, &pretrained};
        status = write_page(&p, o.out, &err);
    }
    const int scenes = forecasts.scenes ? report_scenes_count(forecasts.scenes) : 0;
    if (status == BJ_OK && !scenes)
        fprintf(stderr, "bjepa %s: no scenes: %s\n", verb, forecasts.reason);
    if (status == BJ_OK && forecasts.dropped)
        fprintf(stderr, "bjepa %s: left out %d scenes to keep the page below 15 MB\n", verb,
                forecasts.dropped);
    report_forecasts_free(&forecasts);
    report_pretrained_close(&pretrained);
    report_data_free(data);
    if (status != BJ_OK) return cli_fail(verb, &err);
    fprintf(stderr, "bjepa %s: wrote %s with %d scene%s; open it in a browser\n", verb, o.out,
            scenes, scenes == 1 ? "" : "s");
    return CLI_OK;
}
