/* cmd_data_show.c - bjepa data show: prints or draws one scene as text, safetensors, JSON or a
 * picture. */
#include "cli.h"
#include "data.h"
#include "data_scene.h"
#include "json_out.h"
#include "output.h"
#include "picture.h"
#include "scene_svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STATE = BJ_FOCAL_FEATURES };

/* One scene with everything needed to print it. */
typedef struct shown {
    const bj_cache *cache;
    int64_t index;
    bj_arch sizes;
    bj_scene_info info;
    bj_scene_floats at;
} shown;

/* ----------------------------------------------------------------------------------------- text */

static int count_bits(uint64_t bits) {
    int n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

static void print_summary(const shown *s) {
    const bj_scene_info *i = &s->info;
    const float *now = s->at.focal + (size_t)(s->sizes.obs - 1) * STATE;
    const int dev = bj_is_dev(i->scenario_id);
    printf("scene         %s (#%lld of %lld)\n", i->scenario_id, (long long)s->index,
           (long long)bj_cache_count(s->cache));
    printf("city          %s\n", i->city);
    printf("focal         %s %s, %.2f m/s, observed at %d of %d steps\n", i->focal_type,
           i->focal_id, hypot((double)now[2], (double)now[3]), count_bits(i->focal_valid),
           s->sizes.obs);
    printf("frame         origin (%.3f, %.3f) m, heading %.6f rad\n", i->origin[0], i->origin[1],
           i->heading);
    printf("neighbors     %d of %d", i->neighbors, i->neighbors_available);
    if (i->neighbors) {
        const float *first = s->at.neighbors + (size_t)(s->sizes.obs - 1) * STATE;
        const float *last = first + (size_t)(i->neighbors - 1) * (size_t)s->sizes.obs * STATE;
        printf(", %.1f to %.1f m away", hypot((double)first[0], (double)first[1]),
               hypot((double)last[0], (double)last[1]));
    }
    int crosswalks = 0, intersections = 0;
    for (int p = 0; p < i->polylines; p++) {
        const float *line =
            s->at.polylines + (size_t)p * (size_t)s->sizes.points * BJ_POLYLINE_FEATURES;
        intersections += line[4] > 0;
        crosswalks += line[5] > 0;
    }
    printf("\npolylines     %d of %d, %d in intersections, %d crosswalks\n", i->polylines,
           i->polylines_available, intersections, crosswalks);
    printf("map           #%lld, %d drivable areas\n", (long long)i->map,
           bj_cache_rings(s->cache, i->map));
    if (s->at.future) {
        const float *end = s->at.future + 2 * (size_t)s->sizes.fut - 2;
        printf("future        ends at (%.2f, %.2f) m, %s; observed at %d of %d steps\n",
               (double)end[0], (double)end[1],
               data_maneuver_name(data_maneuver_of((double)end[0], (double)end[1])),
               count_bits(i->future_valid), s->sizes.fut);
    } else {
        puts("future        unknown");
    }
    printf("part          %s\n", dev == 1 ? "dev" : dev == 0 ? "fit" : "?");
}

/* ----------------------------------------------------------------------------------------- JSON */

/* Nested lists of a (rows,columns) block. */
static void json_matrix(FILE *to, const float *x, int rows, int columns) {
    fputc('[', to);
    for (int r = 0; r < rows; r++) {
        fputs(r ? ",[" : "[", to);
        for (int c = 0; c < columns; c++) {
            if (c) fputc(',', to);
            cli_json_float(to, x[(size_t)r * (size_t)columns + (size_t)c]);
        }
        fputc(']', to);
    }
    fputc(']', to);
}

static void json_blocks(FILE *to, const char *key, const float *x, int blocks, int rows,
                        int columns) {
    fprintf(to, ",\n\"%s\":[", key);
    for (int b = 0; b < blocks; b++) {
        fputs(b ? ",\n" : "\n", to);
        json_matrix(to, x + (size_t)b * (size_t)(rows * columns), rows, columns);
    }
    fputc(']', to);
}

static void json_bits(FILE *to, const char *key, uint64_t bits, int count) {
    fprintf(to, ",\n\"%s\":[", key);
    for (int i = 0; i < count; i++) fprintf(to, "%s%d", i ? "," : "", (int)(bits >> i & 1));
    fputc(']', to);
}

static void json_field(FILE *to, const char *key, const char *text) {
    fprintf(to, ",\"%s\":", key);
    cli_json_text(to, text);
}

/* Written without padding: a list has as many entries as there are neighbors or polylines. */
static void write_json(FILE *to, const shown *s) {
    const bj_scene_info *i = &s->info;
    fputs("{\"schema\":1,\"type\":\"scene\"", to);
    json_field(to, "scenario_id", i->scenario_id);
    json_field(to, "city", i->city);
    json_field(to, "focal_id", i->focal_id);
    json_field(to, "focal_type", i->focal_type);
    fprintf(to, ",\"number\":%lld,\"map\":%lld,\"has_future\":%s", (long long)s->index,
            (long long)i->map, s->at.future ? "true" : "false");
    fprintf(to, ",\"neighbors_available\":%d,\"polylines_available\":%d,\n\"origin\":[",
            i->neighbors_available, i->polylines_available);
    cli_json_double(to, i->origin[0]);
    fputc(',', to);
    cli_json_double(to, i->origin[1]);
    fputs("],\"heading\":", to);
    cli_json_double(to, i->heading);
    fputs(",\n\"focal\":", to);
    json_matrix(to, s->at.focal, s->sizes.obs, STATE);
    json_bits(to, "focal_valid", i->focal_valid, s->sizes.obs);
    json_blocks(to, "neighbors", s->at.neighbors, i->neighbors, s->sizes.obs, STATE);
    json_blocks(to, "polylines", s->at.polylines, i->polylines, s->sizes.points,
                BJ_POLYLINE_FEATURES);
    fputs(",\n\"future\":", to);
    if (s->at.future) json_matrix(to, s->at.future, s->sizes.fut, 2);
    else fputs("null", to);
    json_bits(to, "future_valid", s->at.future ? i->future_valid : 0, s->sizes.fut);
    fputs("}\n", to);
}

/* --------------------------------------------------------------------------------------- output */

static bj_status write_file(const shown *s, const char *path, bj_error *err) {
    cli_file file;
    bj_status status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    if (cli_ends_in(path, ".json")) {
        write_json(file.stream, s);
    } else {
        const scene_picture picture = {
            .sizes = s->sizes, .info = s->info, .at = s->at, .cache = s->cache};
        status = scene_svg_write(file.stream, &picture, err);
        if (status != BJ_OK) { /* half a picture is not worth a name */
            cli_file_abort(&file);
            return status;
        }
        return cli_picture_commit(&file, err);
    }
    return cli_file_commit(&file, err);
}

static bj_status show(const char *path, const char *name, const char *out, int json,
                      bj_error *err) {
    bj_cache *cache = NULL;
    shown s;
    bj_status status = bj_cache_open(&cache, path, 0, err);
    if (status != BJ_OK) return status;
    status = data_find_scene(&s.index, cache, path, name, err);
    /* Verify the scene first, so that a damaged scene is not shown as if it were valid. */
    if (status == BJ_OK) status = bj_cache_verify(cache, s.index, err);
    if (status == BJ_OK) {
        s.cache = cache;
        s.sizes = bj_cache_arch(cache);
        s.info = bj_cache_info(cache, s.index);
        s.at = bj_cache_floats(cache, s.index);
        if (out && cli_ends_in(out, ".safetensors"))
            status = bj_cache_export(cache, s.index, out, err);
        else if (out) status = write_file(&s, out, err);
        else if (json) write_json(stdout, &s);
        else print_summary(&s);
    }
    bj_cache_free(cache);
    return status;
}

int cmd_data_show(int argc, char **argv) {
    const char *out = NULL;
    int json = 0, operands;
    const cli_option options[] = {
        {"out", 'o', CLI_TEXT, "FILE", &out, 0, 0,
         "write the scene to a file; "
         "the suffix (.safetensors, .json, .svg, .png or .pdf) selects the format"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "data show",
        .summary = "print, draw or extract one scene",
        .operands = "CACHE SCENE",
        .min_operands = 2,
        .max_operands = 2,
        .examples = "bjepa data show train.bjc 0a1e6f0a-1817-4a98-b02e-db8c9327d151\n"
                    "bjepa data show train.bjc 0a1e6f --out scene.svg\n"
                    "bjepa data show train.bjc '#12' --out scene.safetensors\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (out && !cli_ends_in(out, ".safetensors") && !cli_ends_in(out, ".json") &&
        !cli_picture_name(out))
        return cli_misuse("data show",
                          "--out: found '%s', expected a name that ends in "
                          ".safetensors, .json, " CLI_PICTURE_NAMES,
                          out);
    bj_error err;
    if (show(argv[1], argv[2], out, json, &err) != BJ_OK) return cli_fail("data show", &err);
    if (out) fprintf(stderr, "bjepa data show: wrote %s\n", out);
    return CLI_OK;
}
