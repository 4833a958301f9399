/* gallery_manifest.c - writes the manifest of a gallery; see gallery_manifest.h. */
#include "gallery_manifest.h"

#include <stdlib.h>
#include <string.h>

#include "json_out.h"

const char *gallery_model_name(int model) { return model == BJ_GALLERY_POINT ? "point" : "branch"; }

void gallery_manifest_free(gallery_manifest *m) {
    for (int i = 0; i < m->image_count; i++) free(m->images[i].panels);
    m->image_count = 0;
}

/* --------------------------------------------------------------------------------------- pieces */

static void put_text(FILE *to, const char *before, const char *key, const char *text) {
    fprintf(to, "%s\"%s\": ", before, key);
    cli_json_text(to, text);
}

static void put_number(FILE *to, const char *before, const char *key, double value) {
    fprintf(to, "%s\"%s\": ", before, key);
    cli_json_double(to, value);
}

static void put_count(FILE *to, const char *before, const char *key, int64_t value) {
    fprintf(to, "%s\"%s\": %lld", before, key, (long long)value);
}

static void put_hex(FILE *to, const char *before, const char *key, const uint8_t bytes[32]) {
    fprintf(to, "%s\"%s\": \"", before, key);
    for (int i = 0; i < 32; i++) fprintf(to, "%02x", bytes[i]);
    fputc('"', to);
}

/* ---------------------------------------------------------------------------------------- parts */

static void put_counts(FILE *to, const bj_gallery_counts *c, int wanted) {
    fputs("  \"counts\": {\n", to);
    put_count(to, "    ", "scenes", c->scenes);
    for (int m = 0; m < GALLERY_MODELS; m++) {
        fprintf(to, ",\n    \"%s\": {", gallery_model_name(m));
        put_count(to, "", "passes", c->passes[m]);
        put_number(to, ", ", "pass_rate", c->scenes ? (double)c->passes[m] / (double)c->scenes : 0);
        put_count(to, ", ", "no_point_outside", c->near[m]);
        fputc('}', to);
    }
    put_count(to, ",\n    ", "vehicle_or_bus", c->audited);
    put_count(to, ",\n    ", "strict", c->strict);
    put_count(to, ",\n    ", "strict_with_several_maneuvers", c->several);
    put_count(to, ",\n    ", "wanted", wanted);
    put_count(to, ",\n    ", "cases", c->cases);
    fputs("\n  },\n", to);
}

static void put_models(FILE *to, const gallery_model *models) {
    fputs("  \"models\": {", to);
    for (int m = 0; m < GALLERY_MODELS; m++) {
        fprintf(to, "%s\n    \"%s\": {", m ? "," : "", gallery_model_name(m));
        put_text(to, "", "path", models[m].path);
        put_text(to, ", ", "sha256", models[m].sha256);
        put_text(to, ", ", "arm", *models[m].arm ? models[m].arm : NULL);
        put_text(to, ", ", "seed", *models[m].seed ? models[m].seed : NULL);
        put_count(to, ", ", "K", models[m].K);
        fputc('}', to);
    }
    fputs("\n  },\n", to);
}

static void put_candidates(FILE *to, const bj_gallery_case *c, int m) {
    const bj_proxy *proxy = &c->proxy[m];
    const bj_audit_scene *audit = &c->audit[m];
    fprintf(to, ",\n      \"%s\": {", gallery_model_name(m));
    put_number(to, "", "weighted_outside", proxy->weighted_outside);
    put_number(to, ", ", "compliant_mass", proxy->compliant_mass);
    fputs(", \"candidates\": [", to);
    for (int k = 0; k < proxy->K; k++) {
        fputs(k ? ",\n        {" : "\n        {", to);
        put_number(to, "", "weight", c->weights[m][k]);
        put_number(to, ", ", "outside_3m", proxy->outside[k]);
        put_count(to, ", ", "points_drivable", audit->inside[k]);
        put_count(to, ", ", "points", audit->F);
        fputc('}', to);
    }
    fputs("]}", to);
}

static void put_maneuvers(FILE *to, unsigned maneuvers) {
    static const char *const names[] = {"stop", "straight", "left", "right"};
    int any = 0;
    fputs(",\n      \"maneuvers\": [", to);
    for (int i = 0; i < 4; i++)
        if (maneuvers >> i & 1) fprintf(to, "%s\"%s\"", any++ ? ", " : "", names[i]);
    fputc(']', to);
}

static void put_case(FILE *to, const bj_gallery *gallery, int place) {
    char letter[8];
    const bj_gallery_case *c = bj_gallery_at(gallery, place);
    const bj_scene_info info = bj_cache_info(bj_gallery_cache(gallery), c->scene);
    fprintf(to, "%s\n    {", place ? "," : "");
    put_count(to, "", "place", place + 1);
    put_text(to, ", ", "letter", gallery_letter(letter, place));
    put_text(to, ",\n      ", "scenario_id", info.scenario_id);
    put_text(to, ", ", "city", info.city);
    put_text(to, ", ", "focal_id", info.focal_id);
    put_text(to, ", ", "focal_type", info.focal_type);
    put_text(to, ",\n      ", "order_sha256", c->order);
    put_hex(to, ",\n      ", "map_sha256", info.map_sha256);
    put_text(to, ",\n      ", "areas_sha256", c->areas);
    put_text(to, ",\n      ", "observed_sha256", c->observed);
    put_maneuvers(to, c->maneuvers);
    for (int m = 0; m < GALLERY_MODELS; m++) put_candidates(to, c, m);
    fputs("\n    }", to);
}

static void put_image(FILE *to, const gallery_image *image, int first) {
    fprintf(to, "%s\n    {\"file\": \"%s.svg\"", first ? "" : ",", image->name);
    put_text(to, ", ", "sha256", image->sha256);
    put_number(to, ",\n      \"legend\": {", "x", image->legend.x);
    put_number(to, ", ", "y", image->legend.y);
    put_number(to, ", ", "unit", image->legend.unit);
    fputs("},\n      \"panels\": [", to);
    for (int i = 0; i < image->panel_count; i++) {
        const gallery_panel *p = &image->panels[i];
        put_count(to, i ? ",\n        {" : "\n        {", "place", p->place + 1);
        put_text(to, ", ", "model", gallery_model_name(p->model));
        put_number(to, ", ", "x", p->x);
        put_number(to, ", ", "y", p->y);
        put_count(to, ", ", "width", p->width);
        put_count(to, ", ", "height", p->height);
        put_number(to, ", ", "back", p->window.b.x0);
        put_number(to, ", ", "left", p->window.b.y1);
        put_number(to, ", ", "pixels_per_meter", p->window.scale);
        fputc('}', to);
    }
    fputs("]}", to);
}

/* --------------------------------------------------------------------------------------- whole */

void gallery_manifest_put(FILE *to, const gallery_manifest *m, const bj_gallery *gallery,
                          const bj_gallery_options *o) {
    const bj_gallery_counts counts = bj_gallery_count(gallery);
    put_text(to, "{\n  ", "schema", GALLERY_SCHEMA);
    put_text(to, ",\n  ", "version", m->version);
    put_text(to, ",\n  ", "isa", bj_gallery_isa(gallery));
    fprintf(to, ",\n  \"seed\": %llu", (unsigned long long)o->seed);
    put_text(to, ",\n  ", "rule", bj_gallery_rule());
    put_number(to, ",\n  \"screen\": {", "radius_m", BJ_PROXY_RADIUS);
    put_number(to, ", ", "outside", BJ_PROXY_OUTSIDE);
    put_number(to, ", ", "mass", BJ_PROXY_MASS);
    put_number(to, ", ", "drivable_tolerance_m", BJ_AUDIT_TOLERANCE);
    fputs("},\n", to);
    put_counts(to, &counts, o->cases);
    put_count(to, "  \"data\": {", "scenes", counts.scenes);
    put_text(to, ", ", "observed_sha256", bj_gallery_digest(gallery));
    fputs("},\n", to);
    put_models(to, m->model);
    fputs("  \"cases\": [", to);
    for (int i = 0; i < counts.cases; i++) put_case(to, gallery, i);
    fputs("],\n  \"images\": [", to);
    for (int i = 0; i < m->image_count; i++) put_image(to, &m->images[i], i == 0);
    fputs("]\n}\n", to);
}

bj_status gallery_manifest_write(const char *folder, gallery_manifest *manifest,
                                 const bj_gallery *gallery, const bj_gallery_options *options,
                                 bj_error *err) {
    char path[CLI_PATH_SIZE];
    cli_file file;
    bj_status status = cli_path(path, folder, GALLERY_MANIFEST, err);
    if (status == BJ_OK) status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    gallery_manifest_put(file.stream, manifest, gallery, options);
    status = cli_file_commit(&file, err);
    return status == BJ_OK ? bj_file_digest(manifest->sha256, path, err) : status;
}
