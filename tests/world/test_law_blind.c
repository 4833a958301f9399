/* test_law_blind.c - tests laws that are mixed over hidden quantities: odds, mixtures and
 * failures. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "support/test.h"
#include "world/law_file.h"

enum { SCENES = 96, MEAN = 2 * BJ_LAW_STEPS };

static char folder[] = "/tmp/test_blind.XXXXXX";
static bj_error err;

static void open_law(bj_law **law, char path[128], int version) {
    bj_world_report report;
    char cache[96];
    const bj_world_options options = {.version = version, .seed = 6, .scenes = SCENES, .jobs = 1};
    snprintf(cache, sizeof cache, "%s/%d.bjc", folder, version);
    CHECK_OK(bj_world_to_cache(&report, cache, &options, &err), err);
    snprintf(path, 128, "%s.law.safetensors", cache);
    CHECK_OK(bj_law_open(law, path, &err), err);
    remove(cache);
}

/* Tests that the frequencies of the controls match their probabilities, in ten bins by the
 * probability of a signal. */
static void test_odds(void) {
    bj_town *town = calloc(1, sizeof *town);
    double said[10] = {0}, was[10] = {0}, spread[10] = {0}, stop = 0, vertical = 0, certain = 0;
    if (!town) exit(1);
    for (int i = 0; i < 1500; i++) {
        CHECK_OK(bj_town_make(town, 1, 5, "train", i, &err), err);
        for (int k = 0; k < town->node_count; k++) {
            const bj_node *node = &town->nodes[k];
            if (node->control == BJ_CONTROL_ROUNDABOUT) continue;
            const bj_control_odds o = bj_town_control_odds(town, k);
            const int bin = o.signal < 1 ? (int)(10 * o.signal) : 9;
            CHECK_NEAR(o.signal + o.stop + o.priority, 1, 1e-12);
            said[bin] += o.signal;
            was[bin] += node->control == BJ_CONTROL_SIGNAL;
            spread[bin] += o.signal * (1 - o.signal);
            stop += (node->control == BJ_CONTROL_STOP) - o.stop;
            if (node->control == BJ_CONTROL_PRIORITY) vertical += node->major - o.vertical;
            if (o.signal >= 1) CHECK(node->control == BJ_CONTROL_SIGNAL);
            certain += o.signal >= 1;
        }
    }
    for (int b = 0; b < 10; b++)
        CHECK_MSG(fabs(said[b] - was[b]) < 4 * sqrt(spread[b]) + 1e-6,
                  "bin %d: %g signals, %g said", b, was[b], said[b]);
    CHECK_MSG(fabs(stop) < 50 && fabs(vertical) < 60, "%g stop signs, %g vertical", stop, vertical);
    CHECK(certain > 500); /* junctions with a U-turn lane */
    free(town);
}

static int same_mode(const bj_law_scene *a, int m, const bj_law_scene *b, int n) {
    const size_t noise = (size_t)a->factors * MEAN;
    return !memcmp(a->means + m * MEAN, b->means + n * MEAN, MEAN * sizeof(float)) &&
           !memcmp(a->factor + (size_t)m * noise, b->factor + (size_t)n * noise,
                   noise * sizeof(float));
}

/* Tests that a mixture is a law that contains the true law, and that hiding more information makes
 * the mixture more different. */
static void test_mixtures(void) {
    bj_law *law = NULL;
    bj_law_blind *blind = NULL;
    char path[128];
    int equal = 0, wider = 0, controls = 0;
    open_law(&law, path, 1);
    CHECK_OK(bj_law_blind_create(&blind, law, &err), err);
    for (int64_t i = 0; i < SCENES; i++) {
        const bj_law_scene own = bj_law_at(law, i);
        for (int hidden = 0; hidden <= BJ_HIDDEN_ALL; hidden++) {
            bj_law_scene m;
            double sum = 0, moved = 0;
            CHECK_OK(bj_law_blind_at(&m, blind, i, hidden, &err), err);
            CHECK(!strcmp(m.scenario_id, own.scenario_id) && m.modes >= 1 && m.modes <= 192);
            for (int k = 0; k < m.modes; k++) {
                CHECK(m.weights[k] > 0 && m.intents[k] < BJ_INTENTS);
                sum += m.weights[k];
                for (int q = 0; q < k; q++) CHECK(!same_mode(&m, k, &m, q));
            }
            CHECK_NEAR(sum, 1, 1e-12);
            if (hidden & BJ_HIDDEN_LIMITS) {
                wider += hidden == BJ_HIDDEN_LIMITS && m.modes > own.modes;
                continue;
            }
            /* If the speed limits are not hidden, the mixture contains every true mode bit for
             * bit. */
            for (int q = 0; q < own.modes; q++) {
                int at = -1;
                for (int k = 0; k < m.modes; k++)
                    if (same_mode(&m, k, &own, q)) at = k;
                CHECK_MSG(at >= 0, "scene %d: mode %d is missing", (int)i, q);
                if (at >= 0) moved += fabs(m.weights[at] - own.weights[q]);
            }
            CHECK(hidden || (moved == 0 && m.modes == own.modes));
            if (hidden) equal += moved<1e-12, controls += moved> 0.01;
        }
    }
    /* The control is not hidden if there is no junction ahead, or if the junction visibly has a
     * signal. */
    CHECK_MSG(equal > 10 && controls > 20 && wider > SCENES / 2, "%d %d %d", equal, controls,
              wider);
    bj_law_blind_free(blind);
    bj_law_free(law);
    remove(path);
}

/* Tests that version 2 hides nothing. */
static void test_version_2(void) {
    bj_law *law = NULL;
    bj_law_blind *blind = NULL;
    char path[128];
    open_law(&law, path, 2);
    CHECK_OK(bj_law_blind_create(&blind, law, &err), err);
    for (int64_t i = 0; i < SCENES; i++) {
        bj_law_scene m;
        const bj_law_scene own = bj_law_at(law, i);
        CHECK_OK(bj_law_blind_at(&m, blind, i, BJ_HIDDEN_ALL, &err), err);
        CHECK(m.modes == own.modes && m.means == own.means && m.weights == own.weights);
    }
    bj_law_blind_free(blind);
    bj_law_free(law);
    remove(path);
}

/* Writes a law of one scene and opens it. */
static void write_law(bj_law **law, const char *path, const char *split, int64_t bump) {
    bj_law_writer *writer = NULL;
    bj_law_record record = {.count = 1, .weight = {1}, .origin = {(double)bump, 0}};
    int64_t bytes;
    bj_world_scene_id(record.id, 1, 6, "train", 0);
    CHECK_OK(bj_law_writer_open(&writer, path, &err), err);
    CHECK_OK(bj_law_writer_add(writer, &record, &err), err);
    CHECK_OK(bj_law_writer_finish(&writer, 1, 6, split, &bytes, &err), err);
    CHECK_OK(bj_law_open(law, path, &err), err);
}

/* Tests that scenes that were not generated from the stated seed are rejected. */
static void test_refusals(void) {
    bj_law *law = NULL;
    bj_law_blind *blind = NULL;
    bj_law_scene m;
    char path[128];
    snprintf(path, sizeof path, "%s/odd.safetensors", folder);
    write_law(&law, path, "train", 5);
    CHECK_OK(bj_law_blind_create(&blind, law, &err), err);
    CHECK(bj_law_blind_at(&m, blind, 0, BJ_HIDDEN_ALL, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "is not scene 0 of world version 1, seed 6, split train");
    const long live = bj_alloc_live();
    for (int n = 0; n < 5; n++) {
        bj_law_blind *none = NULL;
        bj_alloc_fail_after(n);
        const bj_status status = bj_law_blind_create(&none, law, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_ENOMEM && !none && bj_alloc_live() == live);
    }
    bj_law_blind_free(blind);
    bj_law_blind_free(NULL);
    bj_law_free(law);
    write_law(&law, path, "a-name-that-is-much-too-long-for-a-split", 5);
    CHECK(bj_law_blind_create(&blind, law, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "split");
    bj_law_free(law);
    remove(path);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    test_odds();
    test_mixtures();
    test_version_2();
    test_refusals();
    CHECK(rmdir(folder) == 0);
    return test_report("world.law_blind");
}
