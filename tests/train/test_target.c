/* test_target.c - tests that the target is loaded from a checkpoint and that damaged checkpoints
 * are rejected. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>

#include "state_case.h"

#include "core/alloc.h"
#include "core/file.h"
#include "model/future_encoder.h"

static int same_target(const bj_target *a, const bj_target *b) {
    return a->size == b->size && !memcmp(a->weights, b->weights, a->size * sizeof *a->weights);
}

static void test_load(bj_objective_kind kind) {
    bj_error err = {0};
    const bj_arch arch =
        small_arch(kind == BJ_OUTPUTONLY ? BJ_MODEL_OUTPUT_ONLY : BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_trainer_options options = options_of(kind, 1);
    run r = run_create(&arch, &options, 7);
    bj_target *now = NULL, *later = NULL, *loaded = NULL, *own = NULL;
    advance(&r, 3);
    save(&r, in_folder("run"));
    CHECK_OK(bj_target_from_trainer(&now, r.trainer, &err), err);
    CHECK_OK(bj_target_from_model(&own, r.model, &err), err);
    CHECK(!same_target(now, own)); /* the two encoders differ, because the target is a moving
                                      average */
    advance(&r, 1);
    CHECK_OK(bj_target_from_trainer(&later, r.trainer, &err), err);
    CHECK_OK(bj_target_load(&loaded, in_folder("run"), &err), err);
    CHECK(loaded && same_target(loaded, now));
    if (kind != BJ_ANCHOR_A) CHECK(!same_target(loaded, later));
    bj_target_free(now);
    bj_target_free(later);
    bj_target_free(loaded);
    bj_target_free(own);
    run_free(&r);
    remove_tree(in_folder("run"));
}

static void refused(const char *dir, bj_status code, const char *message) {
    bj_error err = {0};
    bj_target *target = (bj_target *)&err; /* must be overwritten */
    const long live = bj_alloc_live();
    const bj_status status = bj_target_load(&target, dir, &err);
    CHECK_MSG(status == code && err.code == code, "%s instead of %s: %s", bj_status_name(status),
              bj_status_name(code), err.message);
    CHECK(!target && bj_alloc_live() == live);
    CHECK_CONTAINS(err.message, message);
}

static void copy_file(const char *to, const char *from) {
    bj_error err = {0};
    char *data = NULL;
    size_t size = 0;
    CHECK_OK(bj_file_read(&data, &size, from, 1 << 24, &err), err);
    CHECK_OK(bj_file_write(to, data, size, &err), err);
    bj_free(data);
}

/* Flips one bit of the byte that is `back` bytes before the end. */
static void damage(const char *path, int back) {
    char byte = 0;
    const int fd = open(path, O_RDWR);
    const off_t at = lseek(fd, 0, SEEK_END) - back;
    CHECK(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

static void test_refusals(void) {
    const bj_arch arch = small_arch(BJ_MODEL_BRANCH, BJ_SCALES_FIXED);
    const bj_trainer_options options = options_of(BJ_FULLSET, 1);
    run r = run_create(&arch, &options, 7);
    save(&r, in_folder("before"));
    advance(&r, 2);
    save(&r, in_folder("run"));
    const char *const model = in_folder("run/model.safetensors");
    const char *const state = in_folder("run/state.safetensors");

    copy_file(state, in_folder("before/state.safetensors"));
    refused(in_folder("run"), BJ_EFORMAT, "belongs to another model.safetensors");
    save(&r, in_folder("run"));
    damage(state, 8); /* a weight of the target */
    refused(in_folder("run"), BJ_EFORMAT, "checksum of the content is ");
    save(&r, in_folder("run"));
    damage(model, 8);
    refused(in_folder("run"), BJ_EFORMAT, "checksum of the content is ");
    save(&r, in_folder("run"));
    copy_file(state, model);
    refused(in_folder("run"), BJ_EFORMAT, "expected branchjepa-state");
    CHECK(remove(state) == 0);
    refused(in_folder("run"), BJ_EIO, "state.safetensors");
    refused(in_folder("nowhere"), BJ_EIO, "nowhere");
    CHECK(bj_target_load(NULL, "x", NULL) == BJ_EARG);

    bj_error err = {0};
    bj_target *target = NULL;
    int failures = 0;
    const long live = bj_alloc_live();
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_target_load(&target, in_folder("before"), &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && !target && bj_alloc_live() == live);
        failures++;
    }
    CHECK(failures > 10);
    bj_target_free(target);
    run_free(&r);
    remove_tree(in_folder("run"));
    remove_tree(in_folder("before"));
}

/* Tests that an old checkpoint in single precision can be loaded in any build. */
static void test_golden(void) {
    bj_error err = {0};
    bj_target *target = NULL;
    CHECK_OK(bj_target_load(&target, "tests/golden/training_v1", &err), err);
    bj_target_free(target);
}

int main(void) {
    case_begin("/dev/shm", "/tmp");
    test_load(BJ_FULLSET);
    test_load(BJ_OUTPUTONLY);
    test_load(BJ_ANCHOR_A);
    test_refusals();
    test_golden();
    case_end();
    return test_report("target");
}
