/* cmd_data_info.c - bjepa data info: describes the contents of a cache.
 *
 * It makes one pass over the index and the first rows of each record. Text and JSON output use the
 * same tables.
 */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "cli.h"
#include "data.h"
#include "data_scene.h"
#include "json_out.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* -------------------------------------------------------------------------------------- tallies */

/* Counts the values in each bin [edge[i], edge[i + 1]). */
enum { MAX_BINS = 12 };
typedef struct histogram {
    const char *key, *title;
    int bins;
    double edge[MAX_BINS + 1]; /* ascending; the last bin takes everything above */
    int whole;                 /* 1: values are integers, so a bin is labeled 1-4 instead of 1-5 */
    int64_t count[MAX_BINS];
    double sum, most;
    int64_t values;
} histogram;

static void tally(histogram *h, double value) {
    int bin = 0;
    while (bin + 1 < h->bins && value >= h->edge[bin + 1]) bin++;
    h->count[bin]++;
    h->sum += value;
    h->most = h->values ? fmax(h->most, value) : value;
    h->values++;
}

/* Distinct words with their counts, in the order of their first appearance. */
enum { MAX_WORDS = 64 };
typedef struct words {
    const char *key, *title;
    int distinct;
    const char *word[MAX_WORDS];
    int64_t count[MAX_WORDS], others;
} words;

static void note(words *w, const char *word) {
    for (int i = 0; i < w->distinct; i++)
        if (!strcmp(w->word[i], word)) {
            w->count[i]++;
            return;
        }
    if (w->distinct == MAX_WORDS) {
        w->others++;
        return;
    }
    w->word[w->distinct] = word;
    w->count[w->distinct++] = 1;
}

enum { SPEED, TURN, NEIGHBORS, POLYLINES, HISTOGRAMS };
enum { CITIES, TYPES, MANEUVERS, TABLES };

typedef struct summary {
    int64_t scenes, with_future, dev, maps, rings, complete_past, complete_future, bytes;
    words table[TABLES];
    histogram histogram[HISTOGRAMS];
} summary;

static const summary empty = {
    .table = {{.key = "cities", .title = "cities"},
              {.key = "focal_types", .title = "focal types"},
              {.key = "maneuvers", .title = "maneuvers of known futures"}},
    .histogram = {
        {.key = "speed",
         .title = "focal speed at the last observed step, m/s",
         .bins = 9,
         .edge = {0, 0.5, 2, 5, 8, 11, 14, 17, 20}},
        {.key = "turn",
         .title = "direction to the end point of the future, in degrees counterclockwise",
         .bins = 11,
         .edge = {-180, -120, -90, -60, -30, -10, 10, 30, 60, 90, 120}},
        {.key = "neighbors",
         .title = "neighbors used",
         .bins = 6,
         .whole = 1,
         .edge = {0, 1, 4, 8, 12, 16}},
        {.key = "polylines",
         .title = "polylines used",
         .bins = 5,
         .whole = 1,
         .edge = {0, 12, 24, 36, 48}},
    }};

static void add_scene(summary *s, const bj_cache *cache, const bj_arch *a, int64_t index) {
    const bj_scene_info info = bj_cache_info(cache, index);
    const bj_scene_floats at = bj_cache_floats(cache, index);
    const float *now = at.focal + (size_t)(a->obs - 1) * BJ_FOCAL_FEATURES;
    s->dev += bj_is_dev(info.scenario_id);
    if (info.map >= s->maps) s->maps = info.map + 1;
    s->complete_past += info.focal_valid == (UINT64_C(1) << a->obs) - 1;
    note(&s->table[CITIES], info.city);
    note(&s->table[TYPES], info.focal_type);
    tally(&s->histogram[SPEED], hypot((double)now[2], (double)now[3]));
    tally(&s->histogram[NEIGHBORS], info.neighbors);
    tally(&s->histogram[POLYLINES], info.polylines);
    if (!at.future) return;
    const double x = (double)at.future[2 * a->fut - 2], y = (double)at.future[2 * a->fut - 1];
    const data_maneuver maneuver = data_maneuver_of(x, y);
    s->with_future++;
    s->complete_future += info.future_valid == (UINT64_C(1) << a->fut) - 1;
    note(&s->table[MANEUVERS], data_maneuver_name(maneuver));
    /* where nothing moves there is no direction */
    if (maneuver != DATA_STOP) tally(&s->histogram[TURN], atan2(y, x) * 57.29577951308232);
}

static void summarize(summary *s, const bj_cache *cache, const char *path) {
    const bj_arch arch = bj_cache_arch(cache);
    struct stat file;
    *s = empty;
    s->scenes = bj_cache_count(cache);
    if (stat(path, &file) == 0) s->bytes = (int64_t)file.st_size;
    for (int64_t i = 0; i < s->scenes; i++) add_scene(s, cache, &arch, i);
    for (int64_t m = 0; m < s->maps; m++) s->rings += bj_cache_rings(cache, m);
}

/* ----------------------------------------------------------------------------------------- text */

static void print_row(const char *label, int64_t count, int64_t of) {
    char text[CLI_COUNT_SIZE];
    const double share = of ? (double)count / (double)of : 0;
    const int bar = (int)lround(40 * share);
    printf("  %-14s%10s  %5.1f %%%s%.*s\n", label, cli_count(text, (size_t)count), 100 * share,
           bar ? "  " : "", bar, "########################################");
}

static void print_words(const words *w, int64_t of) {
    if (!w->distinct) return;
    printf("\n%s\n", w->title);
    for (int i = 0; i < w->distinct; i++) print_row(w->word[i], w->count[i], of);
    if (w->others) print_row("others", w->others, of);
}

static void bin_name(char *name, size_t size, const histogram *h, int bin) {
    const double low = h->edge[bin];
    if (bin + 1 == h->bins) {
        snprintf(name, size, "%g and more", low);
        return;
    }
    const double high = h->edge[bin + 1] - h->whole;
    if (h->whole && high == low) snprintf(name, size, "%g", low);
    else snprintf(name, size, "%g to %g", low, high);
}

static void print_histogram(const histogram *h) {
    char name[32];
    if (!h->values) return;
    printf("\n%s (mean %.2f, max %.2f)\n", h->title, h->sum / (double)h->values, h->most);
    for (int i = 0; i < h->bins; i++) {
        bin_name(name, sizeof name, h, i);
        print_row(name, h->count[i], h->values);
    }
}

static void print_count(const char *title, int64_t count) {
    char text[CLI_COUNT_SIZE];
    printf("%-16s%14s\n", title, cli_count(text, (size_t)count));
}

static const char *const facts[] = {"features", "split", "version", "made_by"};
enum { FACTS = sizeof facts / sizeof facts[0] };

static void print_text(const summary *s, const bj_cache *cache, const char *path) {
    const bj_arch a = bj_cache_arch(cache);
    printf("%s\n\n", path);
    print_count("scenes", s->scenes);
    print_count("with a future", s->with_future);
    print_count("fit", s->scenes - s->dev);
    print_count("dev", s->dev);
    print_count("complete pasts", s->complete_past);
    if (s->with_future) print_count("and futures", s->complete_future);
    print_count("maps", s->maps);
    print_count("drivable areas", s->rings);
    print_count("bytes", s->bytes);
    print_count("bytes per scene", s->scenes ? s->bytes / s->scenes : 0);
    printf("\ndigest          %s\n", bj_cache_digest(cache));
    printf("sizes           %d + %d steps of %g s, %d neighbors, %d polylines of %d points\n",
           a.obs, a.fut, a.dt, a.neighbors, a.polylines, a.points);
    for (int i = 0; i < FACTS; i++)
        if (bj_cache_fact(cache, facts[i]))
            printf("%-16s%s\n", facts[i], bj_cache_fact(cache, facts[i]));
    for (int i = 0; i < TABLES; i++)
        print_words(&s->table[i], i == MANEUVERS ? s->with_future : s->scenes);
    for (int i = 0; i < HISTOGRAMS; i++) print_histogram(&s->histogram[i]);
}

/* ----------------------------------------------------------------------------------------- JSON */

static void json_words(const words *w) {
    printf(",\n  \"%s\": {", w->key);
    for (int i = 0; i < w->distinct; i++) {
        if (i) printf(", ");
        cli_json_text(stdout, w->word[i]);
        printf(": %lld", (long long)w->count[i]);
    }
    printf("}");
}

static void json_histogram(const histogram *h) {
    printf(",\n  \"%s\": {\"from\": [", h->key);
    for (int i = 0; i < h->bins; i++) printf("%s%g", i ? ", " : "", h->edge[i]);
    printf("], \"count\": [");
    for (int i = 0; i < h->bins; i++) printf("%s%lld", i ? ", " : "", (long long)h->count[i]);
    printf("], \"mean\": ");
    cli_json_double(stdout, h->values ? h->sum / (double)h->values : (double)NAN);
    printf(", \"max\": ");
    cli_json_double(stdout, h->values ? h->most : (double)NAN);
    printf("}");
}

static void print_json(const summary *s, const bj_cache *cache, const char *path) {
    const bj_arch a = bj_cache_arch(cache);
    const struct {
        const char *key;
        int64_t value;
    } counts[] = {{"scenes", s->scenes},
                  {"with_future", s->with_future},
                  {"fit", s->scenes - s->dev},
                  {"dev", s->dev},
                  {"complete_past", s->complete_past},
                  {"complete_future", s->complete_future},
                  {"maps", s->maps},
                  {"drivable_areas", s->rings},
                  {"bytes", s->bytes},
                  {"obs", a.obs},
                  {"fut", a.fut},
                  {"neighbors_most", a.neighbors},
                  {"polylines_most", a.polylines},
                  {"points", a.points}};
    printf("{\"schema\": 1, \"type\": \"data_info\", \"file\": ");
    cli_json_text(stdout, path);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        printf(",\n  \"%s\": %lld", counts[i].key, (long long)counts[i].value);
    printf(",\n  \"dt\": %.15g, \"digest\": \"%s\"", a.dt, bj_cache_digest(cache));
    for (int i = 0; i < FACTS; i++)
        if (bj_cache_fact(cache, facts[i])) {
            printf(",\n  \"%s\": ", facts[i]);
            cli_json_text(stdout, bj_cache_fact(cache, facts[i]));
        }
    for (int i = 0; i < TABLES; i++) json_words(&s->table[i]);
    for (int i = 0; i < HISTOGRAMS; i++) json_histogram(&s->histogram[i]);
    printf("}\n");
}

int cmd_data_info(int argc, char **argv) {
    int json = 0, operands;
    const cli_option options[] = {CLI_OPTION_JSON(&json), CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "data info",
        .summary = "print the content of a cache",
        .operands = "CACHE",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa data info train.bjc\n"
                    "bjepa data info train.bjc --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    bj_cache *cache = NULL;
    summary s;
    bj_error err;
    bj_status status = bj_cache_open(&cache, argv[1], 0, &err);
    if (status == BJ_OK) summarize(&s, cache, argv[1]);
    if (status == BJ_OK && json) print_json(&s, cache, argv[1]);
    if (status == BJ_OK && !json) print_text(&s, cache, argv[1]);
    bj_cache_free(cache);
    return status == BJ_OK ? CLI_OK : cli_fail("data info", &err);
}
