/* cmd_figures.c - bjepa figures: writes every plot of a campaign, and its gallery, as files for a
 * paper.
 *
 * Each plot that has data becomes one sheet, NAME.svg and NAME.pdf. Pictures of the gallery become
 * gallery-NAME.svg and .pdf. Test: tests/cli/figures.sh
 */
#include <string.h>

#include "figures_gallery.h"
#include "picture.h"
#include "plot_list.h"

static const char verb[] = "figures";
static const char gallery[] = "gallery"; /* name for --only, and name of the folder in a campaign */

enum { NAME_SIZE = 32 };

typedef struct figures_options {
    const char *path, *out, *gallery;
    cli_list only, formats;
    int panels;
} figures_options;

static int parse(figures_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "FOLDER", &o->out, 0, 0,
         "output folder, created if it does not exist"},
        {"only", 0, CLI_LIST, "NAME", &o->only, 0, 0,
         "plots to draw, separated by commas, or 'gallery'; may be repeated"},
        {"gallery", 0, CLI_TEXT, "FOLDER", &o->gallery, 0, 0,
         "folder written by 'bjepa gallery' (default: 'gallery' in the campaign folder)"},
        {"panels", 0, CLI_FLAG, NULL, &o->panels, 0, 0,
         "write one file per panel: summary-1.svg, ..."},
        {"format", 'f', CLI_LIST, "NAME", &o->formats, 0, 0,
         "svg, pdf or png; several are separated by commas (default: svg,pdf)"},
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "write the plots of a campaign or run as SVG and PDF files",
        .operands = "CAMPAIGN|RUN|SEEDS.csv",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa figures campaign --out figs\n"
                    "bjepa figures runs/fullset-0 --out figs\n"
                    "bjepa figures campaign --out figs --only summary,learning --format pdf\n"
                    "bjepa figures data/paper/av2_seeds.csv --out figs\n",
        .options = options,
    };
    int operands;
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (!o->out) return cli_misuse(verb, "--out FOLDER is missing");
    o->path = argv[1];
    return CLI_CONTINUE;
}

/* Returns 1 if the word is among the items of the lists. An item may contain several words
 * separated by commas. */
static int listed(const cli_list *list, const char *word) {
    const size_t length = strlen(word);
    for (int i = 0; i < list->count; i++)
        for (const char *item = list->items[i];; item++) {
            const size_t n = strcspn(item, ",");
            if (n == length && !strncmp(item, word, n)) return 1;
            item += n;
            if (!*item) break;
        }
    return 0;
}

/* Prints the nearest valid name, if there is one. Returns the exit code. */
static int check_words(const cli_list *list, const char *what, const char *const *known) {
    for (int i = 0; i < list->count; i++)
        for (const char *item = list->items[i];; item++) {
            char word[NAME_SIZE];
            int there = 0;
            const size_t n = strcspn(item, ",");
            snprintf(word, sizeof word, "%.*s", (int)n, item);
            bj_nearest nearest = BJ_NEAREST(word);
            for (int k = 0; known[k]; k++) {
                there |= !strcmp(known[k], word);
                bj_nearest_offer(&nearest, known[k]);
            }
            if (!there)
                return nearest.best ? cli_misuse(verb, "no %s '%s'; did you mean '%s'?", what, word,
                                                 nearest.best)
                                    : cli_misuse(verb, "no %s '%s'", what, word);
            item += n;
            if (!*item) break;
        }
    return CLI_CONTINUE;
}

static const char *const formats[] = {"svg", "pdf", "png", NULL};

static int check_names(const figures_options *o) {
    const char *names[32];
    int count = 0;
    for (const report_plot *kind = report_plots; kind->name && count < 30; kind++)
        names[count++] = kind->name;
    names[count++] = gallery;
    names[count] = NULL;
    const int code = check_words(&o->only, "plot", names);
    return code == CLI_CONTINUE ? check_words(&o->formats, "format", formats) : code;
}

/* A figure is a plot of the data, or an existing picture. */
typedef struct figure {
    const char *name;
    const report_plot *plot;
    const report_data *data;
    int panel;           /* -1: all of them */
    const char *picture; /* when plot is NULL */
} figure;

static bj_status write_figure(const figures_options *o, const figure *f, const char *format,
                              bj_error *err) {
    char path[CLI_PATH_SIZE], name[300];
    cli_file file;
    snprintf(name, sizeof name, "%s.%s", f->name, format);
    bj_status status = cli_path(path, o->out, name, err);
    if (status == BJ_OK) status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    if (f->plot) {
        fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", file.stream);
        if (f->panel < 0) report_plot_sheet(file.stream, f->plot, f->data);
        else report_plot_panel(file.stream, f->plot, f->data, f->panel);
    } else status = gallery_picture_copy(file.stream, f->picture, err);
    if (status != BJ_OK) {
        cli_file_abort(&file);
        return status;
    }
    status = cli_picture_commit(&file, err);
    if (status == BJ_OK) puts(path);
    return status;
}

/* Without librsvg, only the SVG is written. This is reported once. */
static bj_status write_formats(const figures_options *o, const figure *f, int *without,
                               bj_error *err) {
    for (int i = 0; formats[i]; i++) {
        const int svg = !strcmp(formats[i], "svg"), asked = listed(&o->formats, formats[i]);
        const int wanted = o->formats.count ? asked : strcmp(formats[i], "png") != 0;
        if (!wanted || (!svg && *without)) continue;
        const bj_status status = write_figure(o, f, formats[i], err);
        if (status == BJ_EARG && !svg && !asked) {
            fprintf(stderr, "bjepa %s: writing SVG only: %s\n", verb, err->message);
            *without = 1;
        } else if (status != BJ_OK) return status;
    }
    return BJ_OK;
}

static bj_status write_plot(const figures_options *o, const report_plot *kind,
                            const report_data *data, int *without, bj_error *err) {
    const figure sheet = {kind->name, kind, data, -1, NULL};
    bj_status status = BJ_OK;
    if (!o->panels) return write_formats(o, &sheet, without, err);
    for (int i = 0; i < kind->panels(data) && status == BJ_OK; i++) {
        char name[NAME_SIZE + 16];
        const figure panel = {name, kind, data, i, NULL};
        snprintf(name, sizeof name, "%s-%d", kind->name, i + 1);
        status = write_formats(o, &panel, without, err);
    }
    return status;
}

static bj_status write_gallery(const figures_options *o, const report_data *data, int *drawn,
                               int *without, bj_error *err) {
    char folder[CLI_PATH_SIZE];
    gallery_pictures pictures = {0};
    bj_status status = BJ_OK;
    if (!o->gallery && !data->campaign) return BJ_OK;
    if (!o->gallery) status = cli_path(folder, o->path, gallery, err);
    if (status == BJ_OK)
        status = gallery_pictures_find(&pictures, o->gallery ? o->gallery : folder, err);
    if (status == BJ_OK && o->gallery && !pictures.count)
        status = cli_error(err, BJ_EFORMAT, "%s: has no pictures, expected a gallery", o->gallery);
    for (int i = 0; i < pictures.count && status == BJ_OK; i++) {
        const figure f = {pictures.name[i], NULL, NULL, -1, pictures.path[i]};
        status = write_formats(o, &f, without, err);
        ++*drawn;
    }
    gallery_pictures_free(&pictures);
    return status;
}

static int write_all(const figures_options *o, const report_data *data) {
    bj_error err;
    int created, without = 0, drawn = 0;
    bj_status status = cli_folder(&created, o->out, &err);
    for (const report_plot *kind = report_plots; kind->name && status == BJ_OK; kind++) {
        if (o->only.count && !listed(&o->only, kind->name)) continue;
        if (kind->panels(data)) {
            status = write_plot(o, kind, data, &without, &err);
            drawn++;
        } else if (o->only.count)
            fprintf(stderr, "bjepa %s: %s: has no data for the plot '%s' yet\n", verb, o->path,
                    kind->name);
    }
    if (status == BJ_OK && (!o->only.count || listed(&o->only, gallery)))
        status = write_gallery(o, data, &drawn, &without, &err);
    if (status != BJ_OK) return cli_fail(verb, &err);
    if (drawn) return CLI_OK;
    fprintf(stderr, "bjepa %s: %s: nothing to draw yet\n", verb, o->path);
    return CLI_DATA;
}

int cmd_figures(int argc, char **argv) {
    figures_options o = {0};
    report_data *data;
    bj_error err;
    int code = parse(&o, argc, argv);
    if (code == CLI_CONTINUE) code = check_names(&o);
    if (code != CLI_CONTINUE) return code;
    if (report_data_open(&data, o.path, &err) != BJ_OK) return cli_fail(verb, &err);
    code = write_all(&o, data);
    report_data_free(data);
    return code;
}
