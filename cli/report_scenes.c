/* report_scenes.c - see report_scenes.h.
 *
 *   {"schema":1,"dt":s,"obs":T,"fut":F,"models":[{"arm","title","seed"}],"scenes":[SCENE]}
 *   SCENE  {"id","city","type","speed","area":[LINE],"lane":[[KIND,LINE]],"past":TRACK,
 *           "others":[[SMALL,TRACK]],"forecast":[null|{"w":[],"p":[LINE]}],
 *           "future":null|{"p":LINE,"seen":[0|1]},"law":null|{"w":[],"n":[],"p":[LINE]}}
 *   LINE   [x,y,dx,dy,...] cm
 *   TRACK  [[step,LINE,[heading]],...] stretches without gaps; degrees
 *   KIND   0 lane, 1 lane in an intersection, 2 crosswalk
 *
 * Rings of drivable areas are clipped to a square around the scene, because maps of whole districts
 * would make the page too large.
 */
#define _POSIX_C_SOURCE 200809L /* open_memstream */
#include "report_scenes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STATE = BJ_FOCAL_FEATURES };

typedef struct text {
    char *bytes;
    size_t size;
} text;

typedef struct entry {
    text facts, future, law;
    text *forecasts; /* (models) */
    double spread;   /* sum over models of sum_kl w_k w_l |end_k - end_l| */
} entry;

struct report_scenes {
    const report_model *models;
    int model_count;
    bj_arch sizes;
    entry *entries;
    int count, room;
};

static bj_status no_memory(bj_error *err) { return cli_error(err, BJ_ENOMEM, "out of memory"); }

/* ----------------------------------------------------------------------------------------- text */

static bj_status text_open(FILE **to, text *t, bj_error *err) {
    free(t->bytes);
    *t = (text){NULL, 0};
    *to = open_memstream(&t->bytes, &t->size);
    return *to ? BJ_OK : no_memory(err);
}

static bj_status text_close(FILE *to, bj_error *err) {
    const int failed = ferror(to);
    return fclose(to) || failed ? no_memory(err) : BJ_OK;
}

/* Writes a JSON string that cannot end a script element, because ids come from files of other
 * people. */
static void put_text(FILE *to, const char *s) {
    if (!s) s = "";
    fputc('"', to);
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\') fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else fputc(c, to);
    }
    fputc('"', to);
}

/* ---------------------------------------------------------------------------------------- lines */

/* Writes points one after the other as differences of rounded positions, so that rounding errors do
 * not add up. */
typedef struct line {
    FILE *to;
    long x, y;
    int points;
} line;

static line line_begin(FILE *to) {
    fputc('[', to);
    return (line){to, 0, 0, 0};
}

static long centimeters(double meters) {
    const double most = 1e8; /* 1000 km: a forecast may be anything finite */
    return lround(100 * fmax(-most / 100, fmin(most / 100, meters)));
}

static void line_point(line *l, double x, double y) {
    const long cx = centimeters(x), cy = centimeters(y);
    fprintf(l->to, l->points ? ",%ld,%ld" : "%ld,%ld", cx - l->x, cy - l->y);
    l->x = cx;
    l->y = cy;
    l->points++;
}

static void line_end(const line *l) { fputc(']', l->to); }

static int has_row(const float *state) { return state[4] != 0 || state[5] != 0; }

/* Writes the stretches of a track. There is no line where the track was not observed. */
static void put_track(FILE *to, const float *track, int T) {
    int stretches = 0;
    fputc('[', to);
    for (int t = 0; t < T;) {
        if (!has_row(track + (size_t)t * STATE)) {
            t++;
            continue;
        }
        int end = t;
        fprintf(to, "%s[%d,", stretches++ ? "," : "", t);
        line l = line_begin(to);
        for (; end < T && has_row(track + (size_t)end * STATE); end++)
            line_point(&l, (double)track[end * STATE], (double)track[end * STATE + 1]);
        line_end(&l);
        for (int i = t; i < end; i++)
            fprintf(to, "%s%ld", i > t ? "," : ",[",
                    lround(atan2((double)track[i * STATE + 5], (double)track[i * STATE + 4]) *
                           57.29577951308232));
        fputs("]]", to);
        t = end;
    }
    fputc(']', to);
}

/* ---------------------------------------------------------------------------------------- areas */

/* Keeps the part of a ring for which sign * coordinate <= limit. Returns the new number of
 * points. */
static int cut(double *out, const double *in, int count, int axis, double sign, double limit) {
    int kept = 0;
    for (int i = 0; i < count; i++) {
        const double *a = in + 2 * i, *b = in + 2 * ((i + 1) % count);
        const double pa = sign * a[axis] - limit, pb = sign * b[axis] - limit;
        if (pa <= 0) {
            out[2 * kept] = a[0];
            out[2 * kept++ + 1] = a[1];
        }
        if ((pa < 0 && pb > 0) || (pa > 0 && pb < 0)) {
            const double s = pa / (pa - pb);
            out[2 * kept] = a[0] + s * (b[0] - a[0]);
            out[2 * kept++ + 1] = a[1] + s * (b[1] - a[1]);
        }
    }
    return kept;
}

static int ring_count(const report_scene *s) {
    if (s->cache && s->info.map >= 0) return bj_cache_rings(s->cache, s->info.map);
    return s->scenario ? bj_scenario_rings(s->scenario) : 0;
}

static int ring_size(const report_scene *s, int ring) {
    return s->cache ? bj_cache_ring_size(s->cache, s->info.map, ring)
                    : bj_scenario_ring_size(s->scenario, ring);
}

/* Writes rings in the frame of the scene, clipped to `reach` meters on every side. */
static bj_status put_areas(FILE *to, const report_scene *s, double reach, bj_error *err) {
    int written = 0;
    fputs(",\"area\":[", to);
    for (int r = 0; r < ring_count(s); r++) {
        int size = ring_size(s, r);
        /* Each of the four cuts at most doubles the number of points. */
        const size_t most = 2 * (size_t)(size > 0 ? size : 1) * 16;
        double *a = malloc(most * sizeof *a), *b = malloc(most * sizeof *b);
        if (!a || !b) {
            free(a);
            free(b);
            return no_memory(err);
        }
        if (s->cache) bj_cache_ring(a, s->cache, s->info.map, r);
        else bj_scenario_ring(a, s->scenario, r);
        bj_from_city(a, a, size, s->info.origin, s->info.heading);
        size = cut(b, a, size, 0, 1, reach);
        size = cut(a, b, size, 0, -1, reach);
        size = cut(b, a, size, 1, 1, reach);
        size = cut(a, b, size, 1, -1, reach);
        if (size > 2) {
            if (written++) fputc(',', to);
            line l = line_begin(to);
            for (int i = 0; i < size; i++) line_point(&l, a[2 * i], a[2 * i + 1]);
            line_end(&l);
        }
        free(a);
        free(b);
    }
    fputc(']', to);
    return BJ_OK;
}

static void put_lanes(FILE *to, const report_scene *s) {
    const int Q = s->sizes.points;
    fputs(",\"lane\":[", to);
    for (int p = 0; p < s->info.polylines; p++) {
        const float *at = s->at.polylines + (size_t)p * (size_t)Q * BJ_POLYLINE_FEATURES;
        fprintf(to, "%s[%d,", p ? "," : "", at[5] > 0 ? 2 : at[4] > 0);
        line l = line_begin(to);
        for (int q = 0; q < Q; q++)
            line_point(&l, (double)at[q * BJ_POLYLINE_FEATURES],
                       (double)at[q * BJ_POLYLINE_FEATURES + 1]);
        line_end(&l);
        fputc(']', to);
    }
    fputc(']', to);
}

/* --------------------------------------------------------------------------------------- scenes */

bj_status report_scenes_create(report_scenes **out, const report_model *models, int count,
                               bj_error *err) {
    report_scenes *s = calloc(1, sizeof *s);
    *out = s;
    if (!s) return no_memory(err);
    s->models = models;
    s->model_count = count;
    return BJ_OK;
}

static void entry_free(entry *e, int models) {
    for (int m = 0; e->forecasts && m < models; m++) free(e->forecasts[m].bytes);
    free(e->forecasts);
    free(e->facts.bytes);
    free(e->future.bytes);
    free(e->law.bytes);
}

void report_scenes_free(report_scenes *s) {
    if (!s) return;
    for (int i = 0; i < s->count; i++) entry_free(&s->entries[i], s->model_count);
    free(s->entries);
    free(s);
}

int report_scenes_count(const report_scenes *s) { return s->count; }

static bj_status make_room(report_scenes *s, bj_error *err) {
    if (s->count < s->room) return BJ_OK;
    const int room = s->room ? 2 * s->room : 32;
    entry *entries = realloc(s->entries, (size_t)room * sizeof *entries);
    if (!entries) return no_memory(err);
    s->entries = entries;
    s->room = room;
    return BJ_OK;
}

static bj_status put_scene(FILE *to, const report_scene *scene, bj_error *err) {
    const int T = scene->sizes.obs;
    const float *now = scene->at.focal + (size_t)(T - 1) * STATE;
    const double speed = hypot((double)now[2], (double)now[3]);
    fputs("{\"id\":", to);
    put_text(to, scene->info.scenario_id);
    fputs(",\"city\":", to);
    put_text(to, scene->info.city);
    fputs(",\"type\":", to);
    put_text(to, scene->info.focal_type);
    fprintf(to, ",\"speed\":%.1f", speed);
    const bj_status status =
        put_areas(to, scene, 90 + 1.5 * scene->sizes.fut * scene->sizes.dt * fmin(speed, 50), err);
    put_lanes(to, scene);
    fputs(",\"past\":", to);
    put_track(to, scene->at.focal, T);
    fputs(",\"others\":[", to);
    for (int n = 0; n < scene->info.neighbors; n++) {
        const float *track = scene->at.neighbors + (size_t)n * (size_t)T * STATE;
        fprintf(to, "%s[%d,", n ? "," : "", track[(size_t)(T - 1) * STATE + 6] > 0);
        put_track(to, track, T);
        fputc(']', to);
    }
    fputc(']', to);
    return status;
}

bj_status report_scenes_add(report_scenes *s, const report_scene *scene, bj_error *err) {
    FILE *to;
    entry e = {.spread = 0};
    bj_status status = make_room(s, err);
    if (status != BJ_OK) return status;
    e.forecasts = calloc((size_t)s->model_count + 1, sizeof *e.forecasts);
    status = e.forecasts ? text_open(&to, &e.facts, err) : no_memory(err);
    if (status == BJ_OK) {
        bj_error ignored;
        status = put_scene(to, scene, err);
        const bj_status closed = text_close(to, status == BJ_OK ? err : &ignored);
        if (status == BJ_OK) status = closed;
    }
    if (status != BJ_OK) {
        entry_free(&e, s->model_count);
        return status;
    }
    s->sizes = scene->sizes;
    s->entries[s->count++] = e;
    return BJ_OK;
}

/* -------------------------------------------------------------------------------------- futures */

static void put_weights(FILE *to, const double *weights, int count) {
    fputs("{\"w\":[", to);
    for (int k = 0; k < count; k++) fprintf(to, "%s%.4f", k ? "," : "", weights[k]);
    fputc(']', to);
}

static double spread_of(const double *weights, const double *paths, int K, int F) {
    double sum = 0;
    for (int k = 0; k < K; k++)
        for (int l = 0; l < k; l++) {
            const double *a = paths + 2 * ((size_t)(k + 1) * (size_t)F - 1);
            const double *b = paths + 2 * ((size_t)(l + 1) * (size_t)F - 1);
            sum += 2 * weights[k] * weights[l] * hypot(a[0] - b[0], a[1] - b[1]);
        }
    return sum;
}

bj_status report_scenes_forecast(report_scenes *s, int scene, int model, int K,
                                 const double *weights, const double *trajectories, bj_error *err) {
    entry *e = &s->entries[scene];
    const int F = s->sizes.fut;
    FILE *to;
    const bj_status status = text_open(&to, &e->forecasts[model], err);
    if (status != BJ_OK) return status;
    put_weights(to, weights, K);
    fputs(",\"p\":[", to);
    for (int k = 0; k < K; k++) {
        const double *path = trajectories + 2 * (size_t)k * (size_t)F;
        if (k) fputc(',', to);
        line l = line_begin(to);
        for (int t = 0; t < F; t++) line_point(&l, path[2 * t], path[2 * t + 1]);
        line_end(&l);
    }
    fputs("]}", to);
    e->spread += spread_of(weights, trajectories, K, F);
    return text_close(to, err);
}

bj_status report_scenes_future(report_scenes *s, int scene, const float *future, uint64_t valid,
                               bj_error *err) {
    FILE *to;
    const bj_status status = text_open(&to, &s->entries[scene].future, err);
    if (status != BJ_OK) return status;
    fputs("{\"p\":", to);
    line l = line_begin(to);
    for (int t = 0; t < s->sizes.fut; t++)
        line_point(&l, (double)future[2 * t], (double)future[2 * t + 1]);
    line_end(&l);
    fputs(",\"seen\":[", to);
    for (int t = 0; t < s->sizes.fut; t++)
        fprintf(to, "%s%d", t ? "," : "", t < 64 ? (int)(valid >> t & 1) : 1);
    fputs("]}", to);
    return text_close(to, err);
}

/* Writes draws from the law, with every third step of each. They depend only on the scene. */
static void put_draws(FILE *to, const bj_law_scene *stated) {
    enum { DRAWS = 40, STEPS = 60, EVERY = 3 };
    double future[STEPS * 2];
    uint64_t seed = 14695981039346656037u; /* FNV-1a of the id */
    for (const char *c = stated->scenario_id; *c; c++)
        seed = (seed ^ (unsigned char)*c) * 1099511628211u;
    bj_rng rng = bj_rng_seed(seed);
    fputs(",\"d\":[", to);
    for (int i = 0; i < DRAWS; i++) {
        bj_law_sample(future, stated, &rng);
        if (i) fputc(',', to);
        line l = line_begin(to);
        for (int t = EVERY - 1; t < STEPS; t += EVERY)
            line_point(&l, future[2 * t], future[2 * t + 1]);
        line_end(&l);
    }
    fputc(']', to);
}

static void put_law(FILE *to, const bj_law *law, const bj_law_scene *stated, int F) {
    put_weights(to, stated->weights, stated->modes);
    fputs(",\"n\":[", to);
    for (int m = 0; m < stated->modes; m++) {
        if (m) fputc(',', to);
        put_text(to, bj_law_intent(law, stated->intents[m]));
    }
    fputs("],\"p\":[", to);
    for (int m = 0; m < stated->modes; m++) {
        const float *path = stated->means + 2 * (size_t)m * (size_t)F;
        if (m) fputc(',', to);
        line l = line_begin(to);
        for (int t = 0; t < F; t++) line_point(&l, (double)path[2 * t], (double)path[2 * t + 1]);
        line_end(&l);
    }
    fputc(']', to);
    put_draws(to, stated);
    fputc('}', to);
}

bj_status report_scenes_law(report_scenes *s, int scene, const bj_law *law,
                            const bj_scene_info *info, int *found, bj_error *err) {
    FILE *to;
    const int64_t index = bj_law_find(law, info->scenario_id);
    *found = index >= 0;
    if (!*found) return BJ_OK;
    const bj_law_scene stated = bj_law_at(law, index);
    const double apart = fabs(stated.origin[0] - info->origin[0]) +
                         fabs(stated.origin[1] - info->origin[1]) +
                         fabs(stated.heading - info->heading);
    if (!(apart < 1e-9))
        return cli_error(err, BJ_EFORMAT,
                         "the distribution of scene %s has a different coordinate frame, "
                         "so it belongs to other data",
                         info->scenario_id);
    const bj_status status = text_open(&to, &s->entries[scene].law, err);
    if (status != BJ_OK) return status;
    put_law(to, law, &stated, s->sizes.fut);
    return text_close(to, err);
}

/* -------------------------------------------------------------------------------------- writing */

static int by_spread(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->spread != y->spread) return x->spread < y->spread ? 1 : -1;
    return strcmp(x->facts.bytes, y->facts.bytes);
}

static const char *or_null(const text *t) { return t->bytes ? t->bytes : "null"; }

static size_t entry_size(const entry *e, int models) {
    size_t size = e->facts.size + e->future.size + e->law.size + 64;
    for (int m = 0; m < models; m++) size += e->forecasts[m].size + 5;
    return size;
}

static void put_models(FILE *to, const report_scenes *s) {
    fprintf(to, "{\"schema\":1,\"dt\":%g,\"obs\":%d,\"fut\":%d,\"models\":[", s->sizes.dt,
            s->sizes.obs, s->sizes.fut);
    for (int m = 0; m < s->model_count; m++) {
        fputs(m ? ",{\"arm\":" : "{\"arm\":", to);
        put_text(to, s->models[m].arm);
        fputs(",\"title\":", to);
        put_text(to, s->models[m].title);
        if (s->models[m].seed >= 0) fprintf(to, ",\"seed\":%lld}", (long long)s->models[m].seed);
        else fputs(",\"seed\":null}", to);
    }
    fputs("],\"scenes\":[\n", to);
}

int report_scenes_fit(report_scenes *s, size_t most) {
    size_t size = 4096 + 160 * (size_t)s->model_count;
    int kept = 0;
    if (s->count) qsort(s->entries, (size_t)s->count, sizeof *s->entries, by_spread);
    while (kept < s->count && (size += entry_size(&s->entries[kept], s->model_count)) <= most)
        kept++;
    const int dropped = s->count - kept;
    for (int i = kept; i < s->count; i++) entry_free(&s->entries[i], s->model_count);
    s->count = kept;
    return dropped;
}

bj_status report_scenes_write(FILE *to, const report_scenes *s, bj_error *err) {
    put_models(to, s);
    for (int i = 0; i < s->count; i++) {
        const entry *e = &s->entries[i];
        fprintf(to, "%s%s,\"forecast\":[", i ? ",\n" : "", e->facts.bytes);
        for (int m = 0; m < s->model_count; m++)
            fprintf(to, "%s%s", m ? "," : "", or_null(&e->forecasts[m]));
        fprintf(to, "],\"future\":%s,\"law\":%s}", or_null(&e->future), or_null(&e->law));
    }
    fputs("\n]}", to);
    return ferror(to) ? cli_error(err, BJ_EIO, "the scenes could not be written") : BJ_OK;
}
