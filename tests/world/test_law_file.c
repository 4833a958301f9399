/* test_law_file.c - tests that a law file returns the laws that were written, and that damage is
 * detected. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "world/law_file.h"
#include "world_case.h"

enum { SCENES = 9 };

static char folder[] = "/tmp/test_law_file.XXXXXX", path[64];
static bj_law_record records[SCENES];

static bj_status write_all(bj_error *err) {
    bj_law_writer *writer = NULL;
    int64_t bytes;
    BJ_TRY(bj_law_writer_open(&writer, path, err));
    for (int i = 0; i < SCENES; i++) {
        const bj_status status = bj_law_writer_add(writer, &records[i], err);
        if (status != BJ_OK) {
            bj_law_writer_abort(&writer);
            return status;
        }
    }
    return bj_law_writer_finish(&writer, BJ_WORLD_VERSION, 17, "train", &bytes, err);
}

static void test_round_trip(void) {
    bj_error err = {0};
    bj_law *law = NULL;
    CHECK_OK(write_all(&err), err);
    CHECK_OK(bj_law_open(&law, path, &err), err);
    CHECK(bj_law_count(law) == SCENES);
    CHECK(!strcmp(bj_law_fact(law, "seed"), "17") && !strcmp(bj_law_fact(law, "split"), "train"));
    for (int i = 0; i < SCENES; i++) {
        const bj_law_record *r = &records[i];
        const bj_law_scene s = bj_law_at(law, i);
        const size_t n = (size_t)r->count;
        CHECK(bj_law_find(law, r->id) == i && !strcmp(s.scenario_id, r->id));
        CHECK(s.modes == r->count && s.factors == BJ_LAW_FACTORS && s.realized == r->realized);
        CHECK(s.jitter == BJ_LAW_JITTER && s.origin[0] == r->origin[0] && s.heading == r->heading);
        CHECK(!memcmp(s.weights, r->weight, n * sizeof r->weight[0]));
        CHECK(!memcmp(s.intents, r->intent, n));
        CHECK(!memcmp(s.means, r->mean, n * sizeof r->mean[0]));
        CHECK(!memcmp(s.factor, r->factor, n * sizeof r->factor[0]));
        CHECK(!strcmp(bj_law_intent(law, s.intents[0]), bj_intent_name((bj_intent)r->intent[0])));
        CHECK_OK(bj_law_verify(law, i, &err), err);
    }
    CHECK(bj_law_find(law, "0") == -1 && bj_law_find(law, "zz") == -1);
    CHECK(bj_law_intent(law, BJ_INTENTS) == NULL && bj_law_intent(law, -1) == NULL);
    /* The mean of many draws from a mode must be close to the mode's mean. */
    const bj_law_scene s = bj_law_at(law, 0);
    bj_rng rng = bj_rng_seed(3);
    double sum[2] = {0}, n = 0, future[2 * BJ_LAW_STEPS];
    for (int d = 0; d < 4000; d++)
        if (bj_law_sample(future, &s, &rng) == 0) sum[0] += future[118], sum[1] += future[119], n++;
    double spread = 0;
    for (int f = 0; f < s.factors; f++)
        spread += pow((double)s.factor[f * 120 + 118], 2) + pow((double)s.factor[f * 120 + 119], 2);
    CHECK_NEAR(n / 4000, s.weights[0], 0.035);
    CHECK_NEAR(sum[0] / n, (double)s.means[118], 4.5 * sqrt(spread / n) + 1e-3);
    CHECK_NEAR(sum[1] / n, (double)s.means[119], 4.5 * sqrt(spread / n) + 1e-3);
    bj_law_free(law);
}

/* ------------------------------------------------------------------------------------- damage */

/* Writes the file again and replaces `size` bytes of a tensor. */
static void patch(const char *tensor, size_t offset, const void *bytes, size_t size) {
    bj_error err = {0};
    bj_safetensors *file = NULL;
    char *text = NULL;
    size_t length = 0;
    CHECK_OK(write_all(&err), err);
    CHECK_OK(bj_file_read(&text, &length, path, 1 << 30, &err), err);
    CHECK_OK(bj_safetensors_open_memory(&file, text, length, "patched", &err), err);
    const bj_tensor_view *view = bj_safetensors_find(file, tensor);
    CHECK(view != NULL);
    const size_t at = (size_t)((const char *)view->data - text) + offset;
    bj_safetensors_close(file);
    memcpy(text + at, bytes, size);
    CHECK_OK(bj_file_write(path, text, length, &err), err);
    bj_free(text);
}

static void refused(const char *what) {
    bj_error err = {0};
    bj_law *law = NULL;
    CHECK(bj_law_open(&law, path, &err) == BJ_EFORMAT);
    CHECK(law == NULL);
    CHECK_CONTAINS(err.message, what);
}

static void test_damage(void) {
    const int64_t start = 1, late = 1000;
    const double weight = 0.9, negative = -0.1, nan_value = NAN;
    const int32_t mode = 8;
    const uint8_t intent = 200, letter = 'z';
    patch("mode_start", 0, &start, sizeof start);
    refused("does not begin with 0");
    patch("mode_start", 8 * 3, &late, sizeof late);
    refused("does not ascend");
    patch("weight", 0, &weight, sizeof weight);
    refused("weights");
    patch("weight", 0, &negative, sizeof negative);
    refused("not positive");
    patch("weight", 0, &nan_value, sizeof nan_value);
    refused("not positive");
    patch("heading", 8, &nan_value, sizeof nan_value);
    refused("not finite");
    patch("realized", 4, &mode, sizeof mode);
    refused("realized");
    patch("intent", 0, &intent, 1);
    refused("intent");
    patch("scenario_id", 0, &letter, 1);
    refused("ascend");
    const float moved = 1234;
    bj_error err = {0};
    bj_law *law = NULL;
    patch("mean", 4 * 7, &moved, sizeof moved);
    CHECK_OK(bj_law_open(&law, path, &err), err);
    CHECK(bj_law_verify(law, 0, &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, records[0].id);
    CHECK_OK(bj_law_verify(law, 1, &err), err);
    bj_law_free(law);
    /* Any other safetensors file is rejected. */
    const float x = 1;
    const bj_tensor_view view = {
        .name = "x", .dtype = BJ_DTYPE_F32, .rank = 1, .shape = {1}, .data = &x};
    CHECK_OK(bj_safetensors_write(path, &view, 1, NULL, 0, &err), err);
    refused("expected 'branchjepa-law'");
}

static void test_order(void) {
    bj_error err = {0};
    bj_law_writer *writer = NULL;
    CHECK_OK(bj_law_writer_open(&writer, path, &err), err);
    CHECK_OK(bj_law_writer_add(writer, &records[1], &err), err);
    CHECK(bj_law_writer_add(writer, &records[0], &err) == BJ_EARG);
    CHECK_CONTAINS(err.message, "ids must be in ascending order");
    bj_law_writer_abort(&writer);
    CHECK(writer == NULL);
}

static void test_memory(void) {
    bj_error err = {0};
    const long live = bj_alloc_live();
    bj_status status = BJ_ENOMEM;
    int n = 0;
    for (; status != BJ_OK && n < 200; n++) {
        bj_law *law = NULL;
        bj_alloc_fail_after(n);
        status = write_all(&err);
        if (status == BJ_OK) status = bj_law_open(&law, path, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == BJ_OK || status == BJ_ENOMEM);
        bj_law_free(law);
        CHECK(bj_alloc_live() == live);
    }
    CHECK(status == BJ_OK && n > 5);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/law.safetensors", folder);
    case_open();
    for (int i = 0; i < SCENES; i++) {
        make(scene, 51, i, 0);
        bj_law_record_fill(&records[i], scene);
    }
    test_round_trip();
    test_damage();
    test_order();
    test_memory();
    case_close();
    unlink(path);
    CHECK(rmdir(folder) == 0); /* no temporary file is left */
    return test_report("world.law_file");
}
