/* extend.c - adds epochs to a finished run.
 *
 * A run is a sequence of segments: the epochs of train.epochs, then one segment for each extension.
 * The learning rate is evaluated within a segment (bj_lr_at with updates counted from its first
 * one), so an extension warms up again and decays over its own epochs. Weights, optimizer state,
 * target encoder, rows and the order of epochs continue.
 *
 * manifest.json lists the extensions, oldest first:
 *   "extensions": [{"epochs": 5, "step": 120}]     step: updates done at its start
 *
 * The manifest is replaced before result.json is removed. A process that is killed in between
 * leaves a result.json of the earlier end, which the next process removes.
 * Test: tests/run/test_extend.c, tests/cli/train_extend.sh
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/file.h"
#include "run/run.h"

enum { MOST_EPOCHS = 10000000 /* max epochs of a run, including extensions */ };

/* Returns a count from the manifest, 0 if the key is missing, or -1 if the value is not a count. */
static long long read_count(const bj_config *manifest, const char *key) {
    const char *text = bj_config_get(manifest, key);
    if (!text) return 0;
    const size_t digits = strspn(text, "0123456789");
    return digits && digits < 18 && !text[digits] ? strtoll(text, NULL, 10) : -1;
}

bj_plan bj_plan_of(const bj_settings *settings) {
    return (bj_plan){.segment = {{.begin = 0, .epochs = settings->epochs}}, .count = 1};
}

bj_segment bj_plan_at(const bj_plan *plan, int64_t step, int64_t steps_per_epoch) {
    int at = plan->count - 1;
    while (at > 0 && step < plan->segment[at].begin * steps_per_epoch) at--;
    return plan->segment[at];
}

bj_schedule bj_segment_schedule(bj_segment segment, const bj_settings *s, int64_t steps_per_epoch) {
    const long steps = (long)steps_per_epoch;
    return (bj_schedule){.kind = (bj_schedule_kind)bj_schedule_find(s->schedule),
                         .base = s->lr,
                         .decay = s->decay,
                         .updates = steps * segment.epochs,
                         .warmup = s->warmup_updates ? s->warmup_updates : steps * s->warmup};
}

int bj_plan_end(const bj_plan *plan) {
    const bj_segment last = plan->segment[plan->count - 1];
    return last.begin + last.epochs;
}

bj_status bj_plan_read(bj_plan *out, const bj_config *manifest, const bj_settings *settings,
                       const char *path, bj_error *err) {
    const long long steps = read_count(manifest, "steps_per_epoch");
    *out = bj_plan_of(settings);
    for (int i = 0;; i++) {
        const bj_segment last = out->segment[out->count - 1];
        char epochs_key[48], step_key[48];
        snprintf(epochs_key, sizeof epochs_key, "extensions.%d.epochs", i);
        snprintf(step_key, sizeof step_key, "extensions.%d.step", i);
        if (!bj_config_get(manifest, epochs_key)) return BJ_OK;
        const long long epochs = read_count(manifest, epochs_key);
        const long long step = read_count(manifest, step_key);
        const long long begin = steps > 0 ? step / steps : -1;
        if (out->count == BJ_PLAN_SIZE || epochs < 1 || begin <= last.begin ||
            begin > last.begin + last.epochs || step % steps || begin + epochs > MOST_EPOCHS)
            return BJ_FAIL(err, BJ_EFORMAT,
                           "%s: extensions.%d adds %lld epochs after update %lld, "
                           "expected at least one epoch, starting at the end of an epoch",
                           path, i, epochs, step);
        out->segment[out->count++] = (bj_segment){.begin = (int)begin, .epochs = (int)epochs};
    }
}

bj_status bj_run_read_plan(bj_train_run *r, bj_error *err) {
    char path[BJ_RUN_FILE];
    bj_config *manifest;
    BJ_TRY(bj_run_path(path, r->options->dir, "manifest.json", err));
    BJ_TRY(bj_config_read(&manifest, path, err));
    const bj_status status = bj_plan_read(&r->plan, manifest, &r->settings, path, err);
    bj_config_free(manifest);
    return status;
}

/* Adds an extension to manifest.json. */
static bj_status record(const bj_train_run *r, int epochs, bj_error *err) {
    char path[BJ_RUN_FILE], *text;
    size_t size;
    yyjson_doc *old = NULL;
    BJ_TRY(bj_run_path(path, r->options->dir, "manifest.json", err));
    BJ_TRY(bj_file_read(&text, &size, path, 1 << 20, err));
    const bj_status status = bj_json_parse(&old, text, size, path, err);
    bj_free(text);
    if (status != BJ_OK) return status;
    bj_doc doc = {.json = yyjson_doc_mut_copy(old, &bj_json_alc)};
    yyjson_doc_free(old);
    doc.ok = doc.json != NULL;
    doc.root = yyjson_mut_doc_get_root(doc.json);
    yyjson_mut_val *list = yyjson_mut_obj_get(doc.root, "extensions");
    if (!list) list = bj_doc_list(&doc, doc.root, "extensions");
    yyjson_mut_val *item = bj_doc_item(&doc, list);
    bj_doc_add_integer(&doc, item, "epochs", epochs);
    bj_doc_add_integer(&doc, item, "step", bj_trainer_updates(r->trainer));
    return bj_run_write_doc(&doc, r->options->dir, "manifest.json", err);
}

static bj_status begin(bj_train_run *r, bj_error *err) {
    const int epochs = r->options->extend;
    const bj_segment added = {.begin = r->evaluated, .epochs = epochs};
    const bj_schedule schedule = bj_segment_schedule(added, &r->settings, r->steps);
    if (schedule.updates <= schedule.warmup)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: an extension by %d epochs has %ld updates, "
                       "expected more than the %ld updates of the warm-up",
                       r->options->dir, epochs, schedule.updates, schedule.warmup);
    const int64_t scenes = (r->evaluated + (int64_t)epochs) * r->steps * r->settings.batch;
    if (r->scenes && r->scenes->scenes && scenes > r->scenes->scenes)
        return BJ_FAIL(err, BJ_EARG,
                       "%s: %s has %lld scenes, but the extension needs %lld\n"
                       "hint: a run can be extended if train.updates is set, "
                       "and if its data is not limited to a number of scenes",
                       r->options->dir, r->options->data, (long long)r->scenes->scenes,
                       (long long)scenes);
    if (r->plan.count == BJ_PLAN_SIZE || epochs > MOST_EPOCHS - r->evaluated)
        return BJ_FAIL(
            err, BJ_EARG, "%s: %d epochs and %d extensions in total, expected at most %d and %d",
            r->options->dir, r->evaluated + epochs, r->plan.count, MOST_EPOCHS, BJ_PLAN_SIZE - 1);
    BJ_TRY(record(r, epochs, err));
    r->plan.segment[r->plan.count++] = added;
    char line[160];
    snprintf(line, sizeof line,
             "extend: %d epochs after epoch %d (update %ld), with a new learning rate cycle",
             epochs, r->evaluated, bj_trainer_updates(r->trainer));
    if (r->options->note) r->options->note(r->options->context, line);
    return BJ_OK;
}

bj_status bj_run_extend(bj_train_run *r, bj_error *err) {
    char result[BJ_RUN_FILE];
    const char *dir = r->options->dir;
    const int count = r->evaluated + 1, epochs = r->options->extend;
    BJ_TRY(bj_run_path(result, dir, "result.json", err));
    const bj_segment last = r->plan.segment[r->plan.count - 1];
    const int over = bj_run_over(&r->settings, &r->plan, r->rows, count);
    if (epochs && over && bj_file_exists(result)) BJ_TRY(begin(r, err));
    else if (epochs && (r->plan.count == 1 || last.epochs != epochs))
        return BJ_FAIL(err, BJ_EARG,
                       "%s: the run is not finished (epoch %d of %d), "
                       "and only a finished run can be extended\n"
                       "hint: finish it with --resume first",
                       dir, r->evaluated < 0 ? 0 : r->evaluated, bj_plan_end(&r->plan));
    if (!bj_run_over(&r->settings, &r->plan, r->rows, count) && unlink(result) && errno != ENOENT)
        return BJ_FAIL(err, BJ_EIO, "%s: cannot remove: %s", result, strerror(errno));
    return BJ_OK;
}
