/* test_tamper.c - changes bytes of a locked campaign and checks that every change is rejected.
 *
 * JSON files: one byte at a time is replaced by a random other byte. Binary files: one bit at a time
 * is flipped. By default a sample of positions is tested, which depends on the seed. BJ_TAMPER=all
 * tests every byte of every JSON file and 200 bits of every binary file.
 */
#define _XOPEN_SOURCE 700
#include "campaign/lock_case.h"

#include "campaign/locked_file.h"

enum { FEW_BYTES = 40, FEW_RUN_BYTES = 6, FEW_BITS = 4, ALL_BITS = 200 };

static bj_error err;
static char self[GRID_PATH];
static int all;
static long tried, accepted;
static uint64_t state = 20260101;

static uint64_t draw(uint64_t n) { /* xorshift: the sample depends only on the seed */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % n;
}

/* Verifies as `bjepa lock verify` does, and as every reader of the evaluation does. */
static bj_status verify(int reader) {
    const bj_locked_options options = {.evaluator = self};
    bj_locked_report report;
    bj_locked *locked = NULL;
    err = (bj_error){0};
    if (!reader) return bj_campaign_verify(&report, grid_dir, &options, &err);
    const bj_status status = bj_locked_open(&locked, &report, grid_dir, &err);
    bj_locked_free(locked);
    return status;
}

static void expect_rejected(const char *path, size_t at, int reader) {
    const char *slash = strrchr(path, '/');
    const bj_status status = verify(reader);
    tried++;
    accepted += status == BJ_OK;
    CHECK_MSG(status != BJ_OK, "%s: byte %zu: accepted by %s", path, at,
              reader ? "a reader" : "verify");
    CHECK_MSG(status == BJ_OK || strstr(err.message, slash + 1), "%s: byte %zu: not named: %s",
              path, at, err.message);
}

static void put_byte(const char *path, size_t at, char byte) {
    FILE *file = fopen(path, "r+b");
    CHECK(file && !fseek(file, (long)at, SEEK_SET) && fputc(byte, file) != EOF && !fclose(file));
}

/* Changes `count` bytes, or all of them. With `bits`, flips single bits. */
static void tamper(const char *path, size_t count, int bits, int evaluated) {
    grid_kept kept = grid_keep(path);
    const int every = all && !bits;
    for (size_t i = 0; i < (every ? kept.size : count); i++) {
        const size_t at = every ? i : (size_t)draw(kept.size);
        const int change = bits ? 1 << draw(8) : 1 + (int)draw(255);
        put_byte(path, at, (char)(kept.bytes[at] ^ change));
        expect_rejected(path, at, evaluated && i % 4 != 0);
        put_byte(path, at, kept.bytes[at]);
    }
    bj_free(kept.bytes);
}

static void test_records(int evaluated) {
    static const char *const files[] = {"run/lock.json", "run/campaign.json",
                                        "run/locked/completion.json", "run/locked/seed_table.json",
                                        "run/locked/run_summary.json"};
    for (int f = 0; f < (evaluated ? 5 : 2); f++) {
        char path[GRID_PATH];
        snprintf(path, sizeof path, "%s", grid_at(files[f]));
        tamper(path, FEW_BYTES, 0, evaluated);
    }
    CHECK_OK(verify(evaluated), err);
}

static void test_runs(void) {
    bj_campaign *campaign = NULL;
    CHECK_OK(bj_campaign_open(&campaign, grid_dir, &err), err);
    for (int run = 0; campaign && run < bj_campaign_runs(campaign); run++)
        for (int f = 0; f < BJ_LOCK_RUN_FILES; f++) {
            char path[BJ_FOLDER_PATH];
            const int bits = f == BJ_LOCK_MODEL || f == BJ_LOCK_STATE;
            snprintf(path, sizeof path, "%s/%s", bj_campaign_run_at(campaign, run).dir,
                     bj_lock_run_files[f]);
            tamper(path, bits ? all ? ALL_BITS : FEW_BITS : FEW_RUN_BYTES, bits, 1);
        }
    tamper(grid_val, all ? ALL_BITS : 4 * FEW_BITS, 1, 1);
    bj_campaign_free(campaign);
    CHECK_OK(verify(0), err);
}

/* Tests that a reader reports missing files, and that a missing result is no evaluation. */
static void test_missing(void) {
    static const char *const results[] = {"run/lock.json", "run/locked/completion.json",
                                          "run/locked/seed_table.json",
                                          "run/locked/run_summary.json"};
    static const char *const bound[] = {"run/runs/point/seed-3/metrics.jsonl",
                                        "run/runs/uniform/seed-4/ckpt/best/model.safetensors",
                                        "val.bjc"};
    for (int i = 0; i < 4; i++) {
        grid_kept kept = grid_keep(grid_at(results[i]));
        CHECK(unlink(kept.path) == 0);
        CHECK(verify(1) == BJ_ELOCKED);
        CHECK_CONTAINS(err.message, strrchr(results[i], '/') + 1);
        grid_restore(&kept);
    }
    for (int i = 0; i < 3; i++) {
        bj_locked_report report;
        bj_locked *locked = NULL;
        grid_kept kept = grid_keep(grid_at(bound[i]));
        CHECK(unlink(kept.path) == 0);
        CHECK_OK(bj_locked_open(&locked, &report, grid_dir, &err), err);
        CHECK(report.missing == 1 && report.files == 63);
        CHECK_CONTAINS(report.first, bound[i]);
        bj_locked_free(locked);
        CHECK(verify(0) == BJ_EMISMATCH);
        CHECK_CONTAINS(err.message, "is missing");
        grid_restore(&kept);
    }
    CHECK_OK(verify(0), err);
}

int main(void) {
    const char *tier = getenv("BJ_TAMPER");
    bj_lock_report locked;
    bj_locked_report report;
    all = tier && !strcmp(tier, "all");
    bj_campaign_free(grid_begin(0));
    snprintf(self, sizeof self, "%s", grid_at("evaluator"));
    grid_text(self, "stands for the program\n");
    const bj_lock_options lock_options = {.data = grid_val, .evaluator = self};
    const bj_locked_options options = {.evaluator = self, .threads = 2};
    CHECK_OK(bj_campaign_lock(&locked, grid_dir, &lock_options, &err), err);
    test_records(0);
    CHECK_OK(bj_campaign_evaluate(&report, grid_dir, &options, &err), err);
    test_records(1);
    test_runs();
    test_missing();
    printf("%ld changes, %ld accepted\n", tried, accepted);
    grid_remove(grid_folder);
    return test_report("tamper");
}
