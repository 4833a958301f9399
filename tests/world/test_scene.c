/* test_scene.c - tests that scenes are reproducible on all platforms, and that their content is
 * valid.
 *
 * The digests below hold for every compiler, option and instruction set. Update them only if the
 * content of scenes is changed on purpose.
 */
#include "core/sha256.h"
#include "world_case.h"

enum { LAST = BJ_WORLD_OBSERVED - 1 };

/* ----------------------------------------------------------------------------------- the bits */

static void digest(char hex[BJ_SHA256_HEX], const bj_world_scene *s) {
    bj_sha256 hash;
    const size_t rows = (size_t)s->scenario.rows;
    bj_sha256_init(&hash);
    bj_sha256_update(&hash, s->id, strlen(s->id));
    const void *columns[] = {s->x, s->y, s->vx, s->vy, s->heading, s->step};
    for (int i = 0; i < 6; i++) bj_sha256_update(&hash, columns[i], rows * 8);
    for (int i = 0; i < s->scenario.tracks; i++)
        bj_sha256_update(&hash, s->track_id[i].data, s->track_id[i].size);
    for (int m = 0; m < s->law.count; m++) {
        const bj_mode *mode = &s->law.modes[m];
        bj_sha256_update(&hash, &mode->weight, sizeof mode->weight);
        bj_sha256_update(&hash, mode->mean, sizeof mode->mean);
        bj_sha256_update(&hash, mode->factor, sizeof mode->factor);
    }
    bj_sha256_final(&hash, hex);
}

static void test_digests(void) {
    static const struct {
        int version;
        uint64_t seed;
        int64_t index;
        const char *hex; /* first 16 digits */
    } known[] = {{1, 1, 0, "cb236ba4e8a7a054"},      {1, 1, 77, "ee336ad9e7f0c350"},
                 {1, 99, 12345, "a8410bc98a75bd85"}, {1, 7, 4000000000, "03e02632be8adf70"},
                 {2, 1, 0, "c17b9cbef38c5665"},      {2, 1, 77, "2ea4bb8d8b0414ad"},
                 {2, 99, 12345, "2ae2d41d01f59777"}, {2, 7, 4000000000, "c902cbd966a71ae1"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        char hex[BJ_SHA256_HEX];
        version = known[i].version;
        make(scene, known[i].seed, known[i].index, 0);
        digest(hex, scene);
        CHECK_MSG(!strncmp(hex, known[i].hex, 16),
                  "version %d: scene %lld of seed %llu "
                  "has the digest %.16s",
                  version, (long long)known[i].index, (unsigned long long)known[i].seed, hex);
    }
    version = BJ_WORLD_VERSION;
}

/* Tests one digest over three towns and all their scenes. */
static void test_digest_of_many(int number, const char *known) {
    enum { SCENES = 3 * BJ_WORLD_TOWN_SCENES };
    static char all[SCENES][BJ_SHA256_HEX];
    char hex[BJ_SHA256_HEX];
    version = number;
    for (int i = 0; i < SCENES; i++) {
        if (i % BJ_WORLD_TOWN_SCENES == 0) make(scene, 2, i, 0);
        else bj_world_scene_make(scene, town, 2, "train", i, 0);
        digest(all[i], scene);
    }
    bj_sha256_memory(hex, all, sizeof all);
    CHECK_MSG(!strncmp(hex, known, 16), "version %d: the scenes have digest %.16s", number, hex);
    version = BJ_WORLD_VERSION;
}

/* Tests that ids differ between the versions of the world. */
static void test_ids(void) {
    char one[BJ_SCENARIO_NAME], two[BJ_SCENARIO_NAME];
    for (int64_t i = 0; i < 200; i++) {
        bj_world_scene_id(one, 1, 5, "train", i);
        bj_world_scene_id(two, 2, 5, "train", i);
        CHECK(one[14] == '5' && two[14] == '8' && !memcmp(one, two, 8));
    }
}

/* Tests that a scene does not depend on the previous content of its memory. */
static void test_independence(void) {
    char alone[BJ_SHA256_HEX], after[BJ_SHA256_HEX];
    make(scene, 5, 40, 0);
    digest(alone, scene);
    for (int i = 32; i < 40; i++) bj_world_scene_make(scene, town, 5, "train", i, 3);
    memset(other, 0x5a, sizeof *other);
    bj_world_scene_make(other, town, 5, "train", 40, 0);
    digest(after, other);
    CHECK(!strcmp(alone, after));
    bj_world_scene_make(scene, town, 5, "train", 40, 0);
    digest(after, scene);
    CHECK(!strcmp(alone, after));
    bj_world_scene_make(scene, town, 5, "val", 40, 0);
    digest(after, scene);
    CHECK(strcmp(alone, after));
}

/* --------------------------------------------------------------------------------- the prefix */

/* Tests that steps 0 to 49 and the law are the same for every draw, and that the future differs. */
static void test_prefix(void) {
    for (int64_t i = 0; i < 64; i += 3) {
        make(scene, 9, i, 0);
        int changed = 0;
        for (uint64_t draw = 1; draw < 6; draw++) {
            bj_world_scene_make(other, town, 9, "train", i, draw);
            CHECK(other->traffic.count == scene->traffic.count);
            for (int a = 0; a < scene->traffic.count; a++) {
                CHECK(!memcmp(scene->seen[a], other->seen[a], BJ_WORLD_OBSERVED));
                for (int t = 0; t < BJ_WORLD_OBSERVED; t++)
                    if (scene->seen[a][t])
                        CHECK(!memcmp(&scene->rows[a][t], &other->rows[a][t], sizeof(bj_row)));
                CHECK(!strcmp(scene->names[a], other->names[a]));
            }
            CHECK(scene->law.count == other->law.count);
            for (int m = 0; m < scene->law.count; m++) {
                CHECK(scene->law.modes[m].weight == other->law.modes[m].weight);
                CHECK(!memcmp(scene->law.modes[m].mean, other->law.modes[m].mean,
                              sizeof scene->law.modes[m].mean));
            }
            changed += memcmp(&scene->rows[0][109], &other->rows[0][109], sizeof(bj_row)) != 0;
        }
        CHECK(changed == 5); /* they differ at least by the jitter */
    }
}

/* -------------------------------------------------------------------------------- the content */

static void check_rows(const bj_world_scene *s) {
    const bj_scenario *sc = &s->scenario;
    CHECK(sc->tracks >= 2 && sc->rows >= 220 && sc->rows <= BJ_WORLD_ROWS);
    CHECK(!memcmp(sc->track_id[sc->tracks - 1].data, "AV", 3));
    int focal = 0;
    for (int64_t r = 0; r < sc->rows; r++) {
        focal += sc->track[r] == sc->focal;
        CHECK(isfinite(sc->x[r] + sc->y[r] + sc->vx[r] + sc->vy[r]));
        CHECK(sc->heading[r] > -BJ_PI && sc->heading[r] <= BJ_PI);
        if (r == 0) continue;
        CHECK(sc->track[r] == sc->track[r - 1] ? sc->step[r] > sc->step[r - 1]
                                               : sc->track[r] == sc->track[r - 1] + 1);
    }
    CHECK(focal == BJ_WORLD_STEPS);
    for (int k = 1; k < sc->tracks; k++)
        CHECK(strcmp(sc->track_id[k - 1].data, sc->track_id[k].data) < 0);
    CHECK(s->category[0] == 3 && s->category[1] == 1);
}

/* Checks that the focal speed changes smoothly, including at the end of the observation. */
static void check_focal(const bj_world_scene *s, int *rough) {
    const bj_row *r = s->rows[0];
    double worst = 0;
    for (int t = 2; t < BJ_WORLD_STEPS; t++) {
        const double ax = (r[t].x - 2 * r[t - 1].x + r[t - 2].x) * 100;
        const double ay = (r[t].y - 2 * r[t - 1].y + r[t - 2].y) * 100;
        worst = fmax(worst, hypot(ax, ay));
        const double vx = (r[t].x - r[t - 1].x) * 10, vy = (r[t].y - r[t - 1].y) * 10;
        CHECK_NEAR(hypot(r[t].vx - vx, r[t].vy - vy), 0, 2.5);
    }
    /* Jitter of 4 mm alone causes apparent accelerations of 1 to 3 m/s^2. */
    *rough += worst > 12;
}

static void test_content(void) {
    int rough = 0;
    double tracks = 0, fragments = 0, moving = 0;
    char last[BJ_SCENARIO_NAME] = "";
    for (int64_t i = 0; i < 160; i++) {
        if (i % BJ_WORLD_TOWN_SCENES == 0) make(scene, 21, i, 0);
        else bj_world_scene_make(scene, town, 21, "train", i, 0);
        check_rows(scene);
        check_focal(scene, &rough);
        CHECK(strlen(scene->id) == 36 && strcmp(last, scene->id) < 0);
        memcpy(last, scene->id, sizeof last);
        tracks += scene->scenario.tracks;
        for (int a = 0; a < scene->traffic.count; a++) fragments += scene->category[a] == 0;
        moving += scene->law.observed.v > 0.5;
        double x = scene->rows[0][LAST].x, y = scene->rows[0][LAST].y;
        bj_world_scene_local(&x, &y, scene);
        CHECK(x == 0 && y == 0);
    }
    CHECK_MSG(rough < 4, "%d focal vehicles have an acceleration of more than 12 m/s^2", rough);
    CHECK(tracks / 160 > 20 && tracks / 160 < 36);
    CHECK(fragments / 160 > 2 && moving / 160 > 0.7);
}

int main(void) {
    case_open();
    test_digests();
    test_digest_of_many(1, "74ae75db2d4fee89");
    test_digest_of_many(2, "42f04220e67148cb");
    test_ids();
    test_independence();
    test_prefix();
    test_content();
    case_close();
    return test_report("world.scene");
}
