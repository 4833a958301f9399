/* test_golden.c - compares the features of real scenarios with the arrays of a float64 reference.
 *
 * Real scenarios and data derived from them cannot be part of this repository (CC BY-NC-SA 4.0):
 *   BJ_AV2_DATA     folder that contains av2/<id>/scenario_<id>.parquet, ...
 *   BJ_AV2_GOLDEN   folder with <id>.npz
 * The test is skipped without them. With arguments, for bench/compare_av2.py:
 *   time ROUNDS FOLDER...   best and mean CPU milliseconds from files to features, as JSON
 *   dump OUT FOLDER...      OUT/<id>.bin: the concatenated arrays as float64
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <float.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "data/features.h"
#include "support/npz.h"
#include "support/test.h"

typedef struct reader {
    bj_scenario_reader *scenarios;
    bj_map_reader *maps;
    bj_features_maker *maker;
} reader;

typedef struct scene {
    bj_scenario scenario;
    bj_map map;
    bj_features features;
} scene;

static int open_reader(reader *r) {
    bj_error err = {0};
    CHECK_OK(bj_scenario_reader_create(&r->scenarios, &err), err);
    CHECK_OK(bj_map_reader_create(&r->maps, &err), err);
    CHECK_OK(bj_features_maker_create(&r->maker, &err), err);
    return r->scenarios && r->maps && r->maker;
}

static void close_reader(reader *r) {
    bj_scenario_reader_free(r->scenarios);
    bj_map_reader_free(r->maps);
    bj_features_maker_free(r->maker);
}

/* Reads the scenario in folder/<id>. The steps are separate so that they can be timed
 * separately. */
static bj_status read_scenario(scene *out, reader *r, const char *folder, bj_error *err) {
    const char *id = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    char path[4096];
    snprintf(path, sizeof path, "%s/scenario_%s.parquet", folder, id);
    return bj_scenario_read(&out->scenario, r->scenarios, path, err);
}

static bj_status read_map(scene *out, reader *r, const char *folder, bj_error *err) {
    const char *id = strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder;
    char path[4096];
    snprintf(path, sizeof path, "%s/log_map_archive_%s.json", folder, id);
    return bj_map_read(&out->map, r->maps, path, err);
}

static bj_status make(scene *out, reader *r, const char *folder, bj_error *err) {
    return bj_features_make(&out->features, r->maker, &out->scenario, &out->map, folder, err);
}

static bj_status read_scene(scene *out, reader *r, const char *folder, bj_error *err) {
    bj_status status = read_scenario(out, r, folder, err);
    if (status == BJ_OK) status = read_map(out, r, folder, err);
    return status == BJ_OK ? make(out, r, folder, err) : status;
}

/* ------------------------------------------------------------------------------------- goldens */

static const char *current; /* current scenario, for messages */

static const npz_array *need(const npz *archive, const char *name, long count) {
    const npz_array *a = npz_find(archive, name);
    CHECK_MSG(a && a->count == count,
              "%s: %s is missing or does not have %ld elements", current, name,
              count);
    return a && a->count == count ? a : NULL;
}

static void compare_floats(const npz *archive, const char *name, const float *ours, long count) {
    const npz_array *a = need(archive, name, count);
    long wrong = 0, where = 0;
    for (long i = 0; a && i < count; i++) {
        const double want = npz_number(a, i);
        if (!(fabs(ours[i] - want) <= 1e-5 * fmax(1, fabs(want))) && !wrong++) where = i;
    }
    CHECK_MSG(!wrong,
              "%s: %s: %ld of %ld values differ; the first is [%ld]: %.9g, expected %.9g",
              current, name, wrong, count, where, (double)ours[where], npz_number(a, where));
}

static void compare_doubles(const npz *archive, const char *name, const double *ours, long count) {
    const npz_array *a = need(archive, name, count);
    for (long i = 0; a && i < count; i++)
        CHECK_MSG(ours[i] == npz_number(a, i), "%s: %s[%ld] is %.17g, expected %.17g", current,
                  name, i, ours[i], npz_number(a, i));
}

static void compare_integer(const npz *archive, const char *name, long long ours) {
    const npz_array *a = need(archive, name, 1);
    CHECK_MSG(a && (double)ours == npz_number(a, 0), "%s: %s is %lld, expected %g", current, name,
              ours, a ? npz_number(a, 0) : NAN);
}

static void compare_bits(const npz *archive, const char *name, const uint64_t *ours, long rows,
                         long columns) {
    const npz_array *a = need(archive, name, rows * columns);
    for (long i = 0; a && i < rows * columns; i++)
        CHECK_MSG((double)(ours[i / columns] >> i % columns & 1) == npz_number(a, i),
                  "%s: %s[%ld] is wrong", current, name, i);
    for (long r = 0; r < rows; r++) CHECK(columns == 64 || ours[r] >> columns == 0);
}

static void compare_mask(const npz *archive, const char *name, int used, long count) {
    const npz_array *a = need(archive, name, count);
    for (long i = 0; a && i < count; i++)
        CHECK_MSG((i < used) == (int)npz_number(a, i), "%s: %s[%ld] is wrong, %d used", current,
                  name, i, used);
}

/* Compares element i of a text array, which NumPy pads with zeros. */
static void compare_text(const npz *archive, const char *name, long i, bj_text ours) {
    const npz_array *a = npz_find(archive, name);
    CHECK_MSG(a && i < a->count && a->dtype[1] == 'S', "%s: no text %s[%ld]", current, name, i);
    if (!a || i >= a->count) return;
    const char *text = (const char *)a->data + (size_t)i * a->size;
    size_t size = a->size;
    while (size && !text[size - 1]) size--;
    CHECK_MSG(ours.size == size && !memcmp(ours.data, text, size),
              "%s: %s[%ld] is '%.*s', expected '%.*s'", current, name, i, (int)ours.size, ours.data,
              (int)size, text);
}

static void compare_scene(const scene *ours, const npz *golden) {
    const bj_features *f = &ours->features;
    const bj_scenario *s = &ours->scenario;
    compare_text(golden, "scenario_id", 0, s->id);
    compare_text(golden, "city", 0, s->city);
    compare_text(golden, "focal_track_id", 0, s->track_id[s->focal]);
    compare_text(golden, "focal_type", 0, s->type[s->focal]);
    compare_doubles(golden, "origin", f->origin, 2);
    compare_doubles(golden, "heading", &f->heading, 1);
    compare_floats(golden, "focal", f->focal, BJ_AV2_TRACK);
    compare_bits(golden, "focal_valid", &f->focal_valid, 1, BJ_AV2_OBS);
    compare_floats(golden, "future", f->future, BJ_AV2_FUTURE);
    compare_bits(golden, "future_mask", &f->future_valid, 1, BJ_AV2_FUT);
    compare_integer(golden, "has_future", f->future_valid != 0);

    compare_floats(golden, "neighbors", f->neighbor[0], BJ_AV2_NEIGHBORS * BJ_AV2_TRACK);
    compare_bits(golden, "neighbor_valid", f->neighbor_valid, BJ_AV2_NEIGHBORS, BJ_AV2_OBS);
    compare_mask(golden, "nmask", f->neighbors, BJ_AV2_NEIGHBORS);
    compare_integer(golden, "neighbors_available", f->neighbors_available);
    for (int i = 0; i < BJ_AV2_NEIGHBORS; i++) {
        const int k = f->neighbor_track[i];
        const bj_text none = {"", 0};
        CHECK((i < f->neighbors) == (k >= 0));
        compare_text(golden, "neighbor_ids", i, k < 0 ? none : s->track_id[k]);
        compare_text(golden, "neighbor_types", i, k < 0 ? none : s->type[k]);
    }

    compare_floats(golden, "polylines", f->polyline[0], BJ_AV2_POLYLINES * BJ_AV2_LINE);
    compare_mask(golden, "pmask", f->polylines, BJ_AV2_POLYLINES);
    compare_integer(golden, "polylines_available", f->polylines_available);
    const npz_array *ids = need(golden, "polyline_ids", BJ_AV2_POLYLINES);
    for (int i = 0; ids && i < BJ_AV2_POLYLINES; i++) {
        int64_t id;
        memcpy(&id, (const char *)ids->data + 8 * i, 8);
        CHECK_MSG(f->polyline_id[i] == id, "%s: polyline %d is %lld, expected %lld", current, i,
                  (long long)f->polyline_id[i], (long long)id);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Compares all scenarios of a folder. The second read of a scenario may still allocate memory, but
 * the third must not. */
static int test_folder(reader *r, const char *data, const char *name, const char *goldens) {
    static scene ours, again;
    char folder[4096], path[8192];
    struct dirent **entries;
    int scenes = 0;
    snprintf(folder, sizeof folder, "%s/%s", data, name);
    const int count = scandir(folder, &entries, NULL, by_name);
    CHECK_MSG(count > 0, "%s: no such folder", folder);
    for (int i = 0; i < count; free(entries[i++])) {
        bj_error err = {0};
        npz golden;
        current = entries[i]->d_name;
        if (current[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s.npz", goldens, current);
        const int found = npz_open(&golden, path);
        CHECK_MSG(found, "%s: no golden", current);
        if (!found) continue;
        snprintf(path, sizeof path, "%s/%s", folder, current);
        const bj_status status = read_scene(&ours, r, path, &err);
        CHECK_OK(status, err);
        if (status == BJ_OK) {
            compare_scene(&ours, &golden);
            CHECK_OK(read_scene(&again, r, path, &err), err);
            const long before = bj_alloc_count();
            CHECK_OK(read_scene(&again, r, path, &err), err);
            CHECK_MSG(bj_alloc_count() == before, "%s: %ld allocations in a third reading", current,
                      bj_alloc_count() - before);
            CHECK(!memcmp(&ours.features, &again.features, sizeof ours.features));
            scenes++;
        }
        npz_close(&golden);
    }
    if (count >= 0) free(entries);
    return scenes;
}

static int run_tests(void) {
    static const char *const folders[] = {"av2", "av2_from_sensor", "av2_edge"};
    const char *data = getenv("BJ_AV2_DATA"), *goldens = getenv("BJ_AV2_GOLDEN");
    if (!data || !goldens || !*data || !*goldens) {
        printf("skipped: set BJ_AV2_DATA to the parent of av2, av2_from_sensor and av2_edge, "
               "and BJ_AV2_GOLDEN to the folder of their .npz files\n");
        return 77;
    }
    reader r = {0};
    const long live = bj_alloc_live();
    int scenes = 0;
    if (open_reader(&r))
        for (int i = 0; i < 3; i++) scenes += test_folder(&r, data, folders[i], goldens);
    close_reader(&r);
    CHECK(bj_alloc_live() == live);
    printf("%d scenes compared\n", scenes);
    CHECK(scenes > 0);
    return test_report("golden");
}

/* -------------------------------------------------------------------------------------- helpers */

static double milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now); /* excludes the time of other processes */
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

enum { SCENARIO, MAP, FEATURES, TOTAL, PARTS };

/* Measures the time. Every round reads all folders, as in a long run. `best` is the best time per
 * folder, averaged over the folders. */
static int run_time(int rounds, int count, char **folders) {
    static const char *const names[PARTS] = {"scenario", "map", "features", "total"};
    static scene s;
    bj_error err = {0};
    reader r = {0};
    double sum[PARTS] = {0}, best_sum[PARTS] = {0};
    double(*best)[PARTS] = calloc((size_t)count, sizeof *best);
    if (!best || !open_reader(&r)) return 1;
    for (int round = -1; round < rounds; round++) /* round -1 is a warm-up */
        for (int i = 0; i < count; i++) {
            const double t0 = milliseconds();
            bj_status status = read_scenario(&s, &r, folders[i], &err);
            const double t1 = milliseconds();
            if (status == BJ_OK) status = read_map(&s, &r, folders[i], &err);
            const double t2 = milliseconds();
            if (status == BJ_OK) status = make(&s, &r, folders[i], &err);
            const double t3 = milliseconds();
            if (status != BJ_OK) {
                fprintf(stderr, "%s\n", err.message);
                return 3;
            }
            const double parts[PARTS] = {t1 - t0, t2 - t1, t3 - t2, t3 - t0};
            for (int p = 0; p < PARTS && round >= 0; p++) {
                sum[p] += parts[p];
                if (round == 0 || parts[p] < best[i][p]) best[i][p] = parts[p];
            }
        }
    for (int i = 0; i < count; i++)
        for (int p = 0; p < PARTS; p++) best_sum[p] += best[i][p];
    printf("{\"scenes\": %d, \"rounds\": %d", count, rounds);
    for (int p = 0; p < PARTS; p++)
        printf(", \"%s_ms\": {\"mean\": %.6f, \"best\": %.6f}", names[p],
               sum[p] / ((double)rounds * count), best_sum[p] / count);
    printf("}\n");
    close_reader(&r);
    free(best);
    return 0;
}

static void put(FILE *file, const float *values, int count) {
    for (int i = 0; i < count; i++) {
        const double value = values[i];
        fwrite(&value, sizeof value, 1, file);
    }
}

/* Writes origin, heading, counts, focal, future, neighbors, polylines and ids as float64. */
static int run_dump(const char *out, int count, char **folders) {
    static scene s;
    bj_error err = {0};
    reader r = {0};
    int result = open_reader(&r) ? 0 : 1;
    for (int i = 0; i < count && !result; i++) {
        char path[4096];
        if (read_scene(&s, &r, folders[i], &err) != BJ_OK) {
            fprintf(stderr, "%s\n", err.message);
            result = 3;
            break;
        }
        const bj_features *f = &s.features;
        snprintf(path, sizeof path, "%s/%.*s.bin", out, (int)s.scenario.id.size,
                 s.scenario.id.data);
        FILE *file = fopen(path, "wb");
        if (!file) {
            perror(path);
            result = 5;
            break;
        }
        const double facts[7] = {f->origin[0],          f->origin[1], f->heading,
                                 f->neighbors,          f->polylines, f->neighbors_available,
                                 f->polylines_available};
        fwrite(facts, sizeof *facts, 7, file);
        put(file, f->focal, BJ_AV2_TRACK);
        put(file, f->future, BJ_AV2_FUTURE);
        put(file, f->neighbor[0], BJ_AV2_NEIGHBORS * BJ_AV2_TRACK);
        put(file, f->polyline[0], BJ_AV2_POLYLINES * BJ_AV2_LINE);
        for (int k = 0; k < BJ_AV2_POLYLINES; k++) {
            const double id = (double)f->polyline_id[k];
            fwrite(&id, sizeof id, 1, file);
        }
        if (fclose(file)) result = 5;
    }
    close_reader(&r);
    return result;
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "time")) return run_time(atoi(argv[2]), argc - 3, argv + 3);
    if (argc > 3 && !strcmp(argv[1], "dump")) return run_dump(argv[2], argc - 3, argv + 3);
    return run_tests();
}
