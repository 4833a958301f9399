/* predict_print.c - predictions as text, JSON lines, submissions and pictures; see predict.h.
 *
 * Branches keep their order, so branch k comes from the same head in every scene.
 */
#include "predict.h"

#include "data_scene.h"
#include "json_out.h"
#include "scene_svg.h"

#include <math.h>
#include <stdlib.h>

void predict_print_text(FILE *to, const predict_result *r) {
    const bj_scene_info *info = &r->scene->info;
    const int K = r->arch->atoms, F = r->arch->fut;
    const float *now = r->scene->at.focal + (size_t)(r->arch->obs - 1) * BJ_FOCAL_FEATURES;
    int heaviest = 0;
    for (int k = 1; k < K; k++)
        if (r->weights[k] > r->weights[heaviest]) heaviest = k;
    fprintf(to, "%s  %s, %s %s, %.1f m/s\n", info->scenario_id, info->city, info->focal_type,
            info->focal_id, hypot((double)now[2], (double)now[3]));
    fprintf(to, "  branch  weight   end, scene frame (m)  end, city frame (m)      maneuver\n");
    for (int k = 0; k < K; k++) {
        const bj_real *last = r->trajectories + ((size_t)k * (size_t)F + (size_t)F - 1) * 2;
        const double end[2] = {(double)last[0], (double)last[1]};
        double city[2];
        bj_to_city(city, end, 1, info->origin, info->heading);
        fprintf(to, "  %c %2d   %7.4f   (%8.2f, %8.2f)   (%10.2f, %10.2f)   %s\n",
                k == heaviest ? '*' : ' ', k + 1, (double)r->weights[k], end[0], end[1], city[0],
                city[1], data_maneuver_name(data_maneuver_of(end[0], end[1])));
    }
    fputc('\n', to);
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_real(FILE *to, bj_real value) {
    if (sizeof value == sizeof(float)) cli_json_float(to, (float)value);
    else cli_json_double(to, (double)value);
}

static void json_reals(FILE *to, const bj_real *x, int count) {
    fputc('[', to);
    for (int i = 0; i < count; i++) {
        if (i) fputc(',', to);
        json_real(to, x[i]);
    }
    fputc(']', to);
}

static void json_rows(FILE *to, const char *key, const bj_real *x, int rows, int columns) {
    fprintf(to, ",\"%s\":[", key);
    for (int r = 0; r < rows; r++) {
        if (r) fputc(',', to);
        json_reals(to, x + (size_t)r * (size_t)columns, columns);
    }
    fputc(']', to);
}

static void json_paths(FILE *to, const predict_result *r) {
    const int K = r->arch->atoms, F = r->arch->fut;
    fputs(",\"trajectories\":[", to);
    for (int k = 0; k < K; k++) {
        fputs(k ? ",[" : "[", to);
        for (int t = 0; t < F; t++) {
            if (t) fputc(',', to);
            json_reals(to, r->trajectories + ((size_t)k * (size_t)F + (size_t)t) * 2, 2);
        }
        fputc(']', to);
    }
    fputc(']', to);
}

/* Numbers have micrometer precision, which is finer than a float in the frame of the scene. */
static void json_city_paths(FILE *to, const predict_result *r) {
    const int K = r->arch->atoms, F = r->arch->fut;
    fputs(",\"trajectories_city\":[", to);
    for (int k = 0; k < K; k++) {
        fputs(k ? ",[" : "[", to);
        for (int t = 0; t < F; t++) {
            const bj_real *p = r->trajectories + ((size_t)k * (size_t)F + (size_t)t) * 2;
            double point[2] = {(double)p[0], (double)p[1]};
            bj_to_city(point, point, 1, r->scene->info.origin, r->scene->info.heading);
            fprintf(to, "%s[%.6f,%.6f]", t ? "," : "", point[0], point[1]);
        }
        fputc(']', to);
    }
    fputc(']', to);
}

void predict_print_json(FILE *to, const predict_result *r) {
    const bj_scene_info *info = &r->scene->info;
    fputs("{\"schema\":1,\"type\":\"prediction\",\"scenario_id\":", to);
    cli_json_text(to, info->scenario_id);
    fputs(",\"track_id\":", to);
    cli_json_text(to, info->focal_id);
    fputs(",\"city\":", to);
    cli_json_text(to, info->city);
    fputs(",\"origin\":[", to);
    cli_json_double(to, info->origin[0]);
    fputc(',', to);
    cli_json_double(to, info->origin[1]);
    fputs("],\"heading\":", to);
    cli_json_double(to, info->heading);
    fprintf(to, ",\"dt\":%.15g,\"weights\":", r->arch->dt);
    json_reals(to, r->weights, r->arch->atoms);
    json_paths(to, r);
    json_city_paths(to, r);
    if (r->latents) json_rows(to, "latents", r->latents, r->latent_count, r->arch->latent);
    fputs("}\n", to);
}

/* ---------------------------------------------------------------------------- rows and pictures */

/* Points of all branches, (K,F,2), the caller frees. */
static bj_status copy_paths(double **out, const predict_result *r, bj_error *err) {
    const size_t count = (size_t)r->arch->atoms * 2 * (size_t)r->arch->fut;
    double *paths = *out = malloc(count * sizeof *paths);
    if (!paths) return cli_error(err, BJ_ENOMEM, "out of memory for %zu numbers", count);
    for (size_t i = 0; i < count; i++) paths[i] = (double)r->trajectories[i];
    return BJ_OK;
}

bj_status predict_submit(bj_submission_writer *to, const predict_result *r, bj_error *err) {
    const int K = r->arch->atoms;
    double weights[BJ_MAX_ATOMS], sum = 0, *paths = NULL;
    bj_status status = copy_paths(&paths, r, err);
    if (status != BJ_OK) return status;
    for (int k = 0; k < K; k++) sum += (double)r->weights[k];
    for (int k = 0; k < K; k++) weights[k] = (double)r->weights[k] / sum;
    bj_to_city(paths, paths, K * r->arch->fut, r->scene->info.origin, r->scene->info.heading);
    status = bj_submission_writer_add(to, r->scene->info.scenario_id, r->scene->info.focal_id, K,
                                      weights, paths, err);
    free(paths);
    return status;
}

bj_status predict_draw(FILE *to, const predict_result *r, const bj_cache *cache, bj_error *err) {
    const int K = r->arch->atoms;
    double weights[BJ_MAX_ATOMS], *paths = NULL;
    bj_status status = copy_paths(&paths, r, err);
    if (status != BJ_OK) return status;
    for (int k = 0; k < K; k++) weights[k] = (double)r->weights[k];
    const scene_picture picture = {.sizes = *r->arch,
                                   .info = r->scene->info,
                                   .at = r->scene->at,
                                   .cache = cache,
                                   .modes = K,
                                   .weights = weights,
                                   .paths = paths,
                                   .modes_title = "predicted futures"};
    status = scene_svg_write(to, &picture, err);
    free(paths);
    return status;
}
