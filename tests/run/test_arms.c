/* test_arms.c - tests that every arm can be trained: the files in its folder, properties shared by
 * all arms of a seed, and the two stages of the frozen anchor.
 */
#define _XOPEN_SOURCE 700
#include <dirent.h>

#include "core/json.h"
#include "core/safetensors.h"
#include "run_case.h"

static const char open_gates[] =
    "gate.ade=1000 gate.fde=1000 gate.std=0 gate.low_std=1 gate.rank=0 ";

/* ---------------------------------------------------------------------------------------- files */

static void check_schema(const char *run, const char *file, const char *schema) {
    size_t size;
    char *text = case_read(&size, run, file), *end = text + size;
    yyjson_doc *doc = NULL;
    bj_error err = {0};
    const int lines = strstr(file, ".jsonl") != NULL;
    for (char *at = text, *next; at < end; at = next) {
        char *stop = lines ? memchr(at, '\n', (size_t)(end - at)) : end;
        if (!stop) stop = end;
        next = lines ? stop + 1 : end;
        CHECK_OK(bj_json_parse(&doc, at, (size_t)(stop - at), file, &err), err);
        if (!doc) break;
        const char *found = yyjson_get_str(yyjson_obj_get(yyjson_doc_get_root(doc), "schema"));
        CHECK_MSG(found && !strcmp(found, schema), "%s/%s: %s", run, file, found ? found : "none");
        yyjson_doc_free(doc);
    }
    bj_free(text);
}

/* Checks that the folder contains only files that are listed in docs/RUNS.md. Sets *files to their
 * number. */
static void check_names(int *files, const char *run, const char *below) {
    static const char *const names[] = {
        ".lock",       "manifest.json", "config.resolved.json", "metrics.jsonl",
        "metrics.csv", "status.json",   "result.json",          "ckpt",
        "last",        "best",          BJ_CHECKPOINT_MODEL,    BJ_CHECKPOINT_STATE};
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    snprintf(path, sizeof path, "%s/%s", case_path(dir, run), below);
    DIR *list = opendir(path);
    if (!list) return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..")) continue;
        int known = !strncmp(name, "events.out.tfevents.", 20);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) known |= !strcmp(name, names[i]);
        CHECK_MSG(known, "%s/%s", path, name);
        ++*files;
    }
    closedir(list);
}

static void check_folder(const char *run, int epochs, int passed) {
    int files = 0;
    check_names(&files, run, "");
    CHECK_MSG(files == 9, "%s: %d files", run, files);
    files = 0;
    check_names(&files, run, "ckpt");
    CHECK(files == (passed ? 2 : 1));
    check_names(&files, run, "ckpt/last");
    check_names(&files, run, "ckpt/best");
    CHECK(files == (passed ? 6 : 3));
    check_schema(run, "manifest.json", "branchjepa.run/1");
    check_schema(run, "status.json", "branchjepa.status/1");
    check_schema(run, "result.json", "branchjepa.result/1");
    check_schema(run, "metrics.jsonl", "branchjepa.epoch/1");
    bj_run *open = case_open(run);
    CHECK(bj_run_epochs(open) == epochs + 1 && bj_run_finished(open));
    CHECK((bj_run_best(open) >= 1) == passed);
    bj_run_free(open);
}

/* Returns a member "a.b" of a JSON file, which the caller frees with free(). */
static char *member(const char *run, const char *file, const char *key) {
    char dir[CASE_PATH], path[BJ_RUN_FILE], *copy = NULL;
    bj_config *config;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/%s", case_path(dir, run), file);
    const bj_status status = bj_config_read(&config, path, &err);
    CHECK_OK(status, err);
    if (status != BJ_OK) exit(test_report("member"));
    const char *found = bj_config_get(config, key);
    if (found && (copy = malloc(strlen(found) + 1))) strcpy(copy, found);
    bj_config_free(config);
    return copy;
}

/* ----------------------------------------------------------------------------------------- arms */

static int same_fact(const bj_run *a, const bj_run *b, const char *key) {
    const char *x = bj_run_fact(a, key), *y = bj_run_fact(b, key);
    return x && y && !strcmp(x, y);
}

/* Tests that all arms of a seed have the same data, split and order, and that all arms with six
 * branches have the same weights. */
static void check_shared(const bj_run *first, const bj_run *run, const bj_settings *s) {
    static const char *const all[] = {"data.digest",      "split.fit",    "split.dev",
                                      "split.dev_sha256", "order.sha256", "initial.encoder"};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK_MSG(same_fact(first, run, all[i]), "%s: %s", s->arm, all[i]);
    if (s->arch.kind != BJ_MODEL_BRANCH || s->arch.atoms != 6) return;
    CHECK_MSG(same_fact(first, run, "initial.branches"), "%s", s->arm);
    CHECK_MSG(same_fact(first, run, "initial.router"), "%s", s->arm);
    if (s->objective.kind != BJ_ANCHOR_B) { /* whose decoder is that of the anchor */
        CHECK_MSG(same_fact(first, run, "initial.decoder"), "%s", s->arm);
        CHECK_MSG(same_fact(first, run, "initial.sha256") == (s->arch.scales == BJ_SCALES_FIXED),
                  "%s", s->arm);
    }
}

static bj_settings arm_settings(const char *arm, const char *more) {
    char text[1024], anchor[CASE_PATH] = "";
    if (!strncmp(arm, "anchor-b", 8)) case_path(anchor, "anchor-a/ckpt/best");
    snprintf(text, sizeof text, "%s%s%s %s", open_gates, *anchor ? "anchor=" : "", anchor, more);
    return case_settings(arm, text);
}

static void test_arms(void) {
    bj_run *first = NULL;
    int six = 0;
    for (int i = 0; i < bj_arm_count(); i++) {
        const char *arm = bj_arm_at(i).name;
        if (!strcmp(bj_arm_at(i).family, "maze")) continue; /* test_maze_train.c */
        const bj_settings s = arm_settings(arm, "");
        const bj_run_report report = case_run(&s, arm);
        CHECK_MSG(report.outcome == BJ_RUN_DONE && report.epochs == 2 && report.step == 8, "%s",
                  arm);
        if (report.outcome != BJ_RUN_DONE) continue;
        check_folder(arm, 2, 1);
        bj_run *run = case_open(arm);
        if (!first) first = run;
        check_shared(first, run, &s);
        six += s.arch.kind == BJ_MODEL_BRANCH && s.arch.atoms == 6;
        CHECK(!strcmp(bj_run_fact(run, "arm"), arm));
        if (run != first) bj_run_free(run);
        if (strncmp(arm, "anchor", 6)) case_remove(arm);
    }
    CHECK_MSG(bj_arm_count() == 38 && six == 29, "%d arms, %d of six branches", bj_arm_count(),
              six);

    /* Tests that another seed gives another order and other weights, but the same split. */
    const bj_settings s = arm_settings("fullset", "seed=1");
    case_run(&s, "seed");
    bj_run *other = case_open("seed");
    CHECK(same_fact(first, other, "split.dev_sha256") && same_fact(first, other, "data.digest"));
    static const char *const differs[] = {
        "order.sha256",   "initial.sha256",  "initial.encoder", "initial.branches",
        "initial.router", "initial.decoder", "settings.sha256", "seed"};
    for (size_t i = 0; i < sizeof differs / sizeof *differs; i++)
        CHECK_MSG(!same_fact(first, other, differs[i]), "%s", differs[i]);
    bj_run_free(other);
    bj_run_free(first);
    case_remove("seed");
}

/* Tests that everything that affects a run is on disk before its first step. */
static void test_manifest_first(void) {
    const bj_settings s = arm_settings("softwta", "");
    bj_run_report report;
    bj_error err = {0};
    case_stop stop = {.at = 1};
    CHECK_OK(case_train(&report, &s, "early", 0, 1, &stop, &err), err);
    CHECK(report.step == 0 && report.epochs == -1);
    check_schema("early", "manifest.json", "branchjepa.run/1");
    bj_run *run = case_open("early");
    CHECK(!bj_run_finished(run) && bj_run_epochs(run) == 0 && bj_run_best(run) == -1);
    CHECK(!strcmp(bj_run_settings(run)->arm, "softwta"));
    static const char *const keys[] = {"version",
                                       "arm",
                                       "recipe",
                                       "seed",
                                       "settings.sha256",
                                       "data.path",
                                       "data.digest",
                                       "order.sha256",
                                       "host",
                                       "isa",
                                       "threads",
                                       "real",
                                       "build",
                                       "created",
                                       "steps_per_epoch",
                                       "parameters.total"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        CHECK_MSG(bj_run_fact(run, keys[i]) != NULL, "%s", keys[i]);
    bj_run_free(run);
    char *phase = member("early", "config.resolved.json", "loss.tau");
    CHECK(phase && !strcmp(phase, "0.25"));
    free(phase);
    case_remove("early");
}

/* --------------------------------------------------------------------------------------- anchor */

static bj_safetensors *open_tensors(const char *run, const char *file) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    bj_safetensors *st = NULL;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/%s", case_path(dir, run), file);
    CHECK_OK(bj_safetensors_open(&st, path, &err), err);
    if (!st) exit(test_report("open_tensors"));
    return st;
}

/* Returns the number of tensors with prefix `pa` in a that are bitwise equal to those with prefix
 * `pb` in b. Returns -1 if any of them differs. */
static int same_tensors(const bj_safetensors *a, const char *pa, const bj_safetensors *b,
                        const char *pb) {
    int same = 0;
    for (int i = 0; i < bj_safetensors_count(a); i++) {
        const bj_tensor_view *x = bj_safetensors_at(a, i);
        char name[128];
        if (strncmp(x->name, pa, strlen(pa))) continue;
        snprintf(name, sizeof name, "%s%s", pb, x->name + strlen(pa));
        const bj_tensor_view *y = bj_safetensors_find(b, name);
        if (!y || x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes)) return -1;
        same++;
    }
    return same;
}

static void test_stage_b(const char *arm) {
    bj_safetensors *anchor = open_tensors("anchor-a", "ckpt/best/model.safetensors");
    bj_safetensors *model = open_tensors(arm, "ckpt/last/model.safetensors");
    bj_safetensors *state = open_tensors(arm, "ckpt/last/state.safetensors");
    CHECK(same_tensors(anchor, "decoder.", model, "decoder.") == 4);
    CHECK(same_tensors(anchor, "encoder.", state, "target.") > 10);
    CHECK(same_tensors(anchor, "encoder.", model, "encoder.") == -1); /* that one learns */
    bj_safetensors_close(anchor);
    bj_safetensors_close(model);
    bj_safetensors_close(state);
    char *began = member(arm, "manifest.json", "anchor.sha256");
    char *before = member(arm, "result.json", "anchor.sha256_before");
    char *after = member(arm, "result.json", "anchor.sha256_after");
    CHECK(began && strlen(began) == 64 && before && after);
    if (began && before && after) CHECK(!strcmp(began, before) && !strcmp(before, after));
    free(began);
    free(before);
    free(after);
}

/* Changes one weight of the decoder in ckpt/last of a run, with valid checksums. */
static void plant_drift(const char *run, const bj_settings *s) {
    char dir[CASE_PATH], folder[BJ_RUN_FILE], path[BJ_RUN_FILE + 32];
    bj_model *model = NULL;
    bj_trainer *trainer = NULL;
    bj_facts *all = NULL;
    bj_fact facts[64];
    int count = 0;
    bj_tensor t;
    bj_error err = {0};
    const bj_trainer_options options = {
        .objective = s->objective, .optim = s->optim, .max_batch = s->batch, .threads = 1};
    snprintf(folder, sizeof folder, "%s/ckpt/last", case_path(dir, run));
    snprintf(path, sizeof path, "%s/%s", folder, BJ_CHECKPOINT_MODEL);
    CHECK_OK(bj_model_load(&model, path, &err), err);
    CHECK_OK(bj_trainer_create(&trainer, model, &options, &err), err);
    CHECK_OK(bj_trainer_load(trainer, folder, NULL, &err), err);
    CHECK_OK(bj_facts_read(&all, path, &err), err);
    CHECK_OK(bj_model_find(&t, model, "decoder.2.bias", &err), err);
    if (test_failed) exit(test_report("plant_drift"));
    for (int i = 0; i < bj_facts_count(all); i++)
        if (!strncmp(bj_facts_at(all, i).key, "run.", 4)) facts[count++] = bj_facts_at(all, i);
    t.data[3] += (bj_real)1e-6;
    CHECK_OK(bj_trainer_save(trainer, folder, NULL, facts, count, &err), err);
    bj_facts_free(all);
    bj_trainer_free(trainer);
    bj_model_free(model);
}

static void test_drift(void) {
    const bj_settings s = arm_settings("anchor-b", "train.epochs=3");
    bj_run_report report;
    bj_error err = {0};
    case_stop stop = {.at = 10}; /* in epoch 2 */
    CHECK_OK(case_train(&report, &s, "drift", 0, 1, &stop, &err), err);
    plant_drift("drift", &s);
    CHECK(case_train(&report, &s, "drift", 1, 1, NULL, &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "the frozen anchor changed");
    CHECK(!case_exists("drift", "result.json"));
    case_remove("drift");

    /* Tests an anchor that was replaced while the run was stopped. */
    stop = (case_stop){.at = 10};
    const bj_settings a = arm_settings("anchor-a", "seed=8");
    case_run(&a, "another");
    CHECK_OK(case_train(&report, &s, "drift", 0, 1, &stop, &err), err);
    char from[CASE_PATH], to[CASE_PATH], kept[CASE_PATH];
    case_path(from, "another"), case_path(to, "anchor-a"), case_path(kept, "kept");
    CHECK(!rename(to, kept) && !rename(from, to));
    CHECK(case_train(&report, &s, "drift", 1, 1, NULL, &err) == BJ_EMISMATCH);
    CHECK_CONTAINS(err.message, "anchor.sha256 was");
    CHECK(!rename(to, from) && !rename(kept, to));
    CHECK_OK(case_train(&report, &s, "drift", 1, 1, NULL, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && report.resumed_at == 2);
    case_remove("drift");
    case_remove("another");

    /* Nothing there at all. */
    bj_settings none = s;
    snprintf(none.anchor, sizeof none.anchor, "%s/nowhere", case_folder);
    CHECK(case_train(&report, &none, "drift", 0, 1, NULL, &err) == BJ_EIO);
    CHECK_CONTAINS(err.message, "nowhere/" BJ_CHECKPOINT_MODEL);
    CHECK(!case_exists("drift", "."));
}

/* ---------------------------------------------------------------------------------------- gates */

/* Tests that each gate alone can reject every epoch, and that the epoch with the lowest decoder ADE
 * is chosen without gates. */
static void test_gates(void) {
    static const char *const closed[] = {"gate.ade=0.001", "gate.fde=0.001", "gate.std=0.99",
                                         "gate.rank=1000"};
    char *outcome;
    for (size_t i = 0; i < sizeof closed / sizeof *closed; i++) {
        const bj_settings s = arm_settings("anchor-a", closed[i]);
        const bj_run_report report = case_run(&s, "gated");
        CHECK_MSG(report.outcome == BJ_RUN_NO_PASS && report.epochs == 2, "%s", closed[i]);
        check_folder("gated", 2, 0);
        outcome = member("gated", "result.json", "outcome");
        CHECK(outcome && !strcmp(outcome, "no_pass"));
        free(outcome);
        outcome = member("gated", "result.json", "best_epoch");
        CHECK(outcome == NULL);
        free(outcome);
        bj_run *run = case_open("gated");
        for (int e = 0; e < bj_run_epochs(run); e++) {
            const bj_epoch row = bj_run_epoch(run, e);
            CHECK(!row.eligible && !row.best && row.decoder_ade > 0 && row.decoder_fde > 0);
            CHECK(isnan(row.dev.traj_es) && row.dev.scenes == CASE_SCENES - CASE_FIT);
        }
        bj_run_free(run);
        /* Tests that resuming gives the same outcome. */
        bj_run_report again;
        bj_error err = {0};
        CHECK_OK(case_train(&again, &s, "gated", 1, 1, NULL, &err), err);
        CHECK(again.outcome == BJ_RUN_NO_PASS && again.epochs == 2);
        case_remove("gated");
    }
    bj_run *run = case_open("anchor-a");
    const int best = bj_run_best(run);
    CHECK(best >= 1);
    for (int e = 1; e < bj_run_epochs(run); e++)
        CHECK(bj_run_epoch(run, e).decoder_ade >= bj_run_epoch(run, best).decoder_ade);
    char limit[64];
    snprintf(limit, sizeof limit, "gate.ade=%.17g", bj_run_epoch(run, best).decoder_ade);
    bj_run_free(run);
    /* Tests that a value exactly at the gate passes. */
    const bj_settings s = arm_settings("anchor-a", limit);
    const bj_run_report report = case_run(&s, "gated");
    CHECK(report.outcome == BJ_RUN_DONE && report.best.epoch == best);
    case_remove("gated");
}

/* Computes the displacement errors of stage A using only the checkpoint. */
static void test_decoder(void) {
    const bj_loader_options dev = {.part = BJ_PART_DEV, .batch = CASE_SCENES, .needs_future = 1};
    const bj_predictor_options how = {.max_batch = CASE_SCENES, .threads = 1};
    char path[CASE_PATH];
    bj_cache *cache = NULL;
    bj_loader *loader = NULL;
    bj_model *model = NULL;
    bj_target *target = NULL;
    bj_future_encoder *encoder = NULL;
    const bj_batch *batch;
    bj_error err = {0};
    CHECK_OK(bj_cache_open(&cache, case_path(path, "data.bjc"), 0, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &dev, &err), err);
    CHECK_OK(bj_model_load(&model, case_path(path, "anchor-a/ckpt/last/model.safetensors"), &err),
             err);
    CHECK_OK(bj_target_from_model(&target, model, &err), err);
    CHECK_OK(bj_future_encoder_create(&encoder, model, target, &how, &err), err);
    CHECK_OK(bj_loader_batch(&batch, NULL, loader, 0, 0, &err), err);
    if (test_failed) exit(test_report("test_decoder"));
    const int F = bj_model_arch(model)->fut, D = bj_model_arch(model)->latent, B = batch->B;
    bj_real *latents = calloc((size_t)(B * D), sizeof *latents);
    bj_real *found = calloc((size_t)(B * F * 2), sizeof *found);
    if (!latents || !found) exit(1);
    CHECK_OK(bj_future_encode(encoder, batch, latents, found, &err), err);
    double ade = 0, fde = 0;
    for (int b = 0; b < B; b++)
        for (int f = 0; f < F; f++) {
            const bj_real *at = &found[2 * (b * F + f)], *future = &batch->scenes[b].future[2 * f];
            const double d = hypot((double)(at[0] - future[0]), (double)(at[1] - future[1]));
            ade += d / (F * B);
            if (f == F - 1) fde += d / B;
        }
    bj_run *run = case_open("anchor-a");
    const bj_epoch row = bj_run_epoch(run, bj_run_epochs(run) - 1);
    CHECK_NEAR(row.decoder_ade, ade, 1e-5);
    CHECK_NEAR(row.decoder_fde, fde, 1e-5);
    bj_latent_health health;
    CHECK_OK(bj_latent_health_measure(&health, latents, (size_t)D, B, D, &err), err);
    CHECK(!memcmp(&health, &row.health, sizeof health));
    bj_run_free(run);
    free(latents);
    free(found);
    bj_future_encoder_free(encoder);
    bj_target_free(target);
    bj_model_free(model);
    bj_loader_free(loader);
    bj_cache_free(cache);
}

/* Returns the epoch after which a checkpoint was written. */
static int saved_epoch(const char *run, const char *name) {
    char dir[CASE_PATH], path[BJ_RUN_FILE];
    bj_facts *facts = NULL;
    bj_error err = {0};
    snprintf(path, sizeof path, "%s/ckpt/%s/%s", case_path(dir, run), name, BJ_CHECKPOINT_MODEL);
    CHECK_OK(bj_facts_read(&facts, path, &err), err);
    const char *text = facts ? bj_facts_get(facts, "run.evaluated") : NULL;
    const int epoch = text ? atoi(text) : -2;
    bj_facts_free(facts);
    return epoch;
}

static void test_patience(void) {
    const bj_settings s =
        arm_settings("anchor-b", "train.epochs=40 train.patience=3 optim.lr=0.05 train.warmup=0");
    const bj_run_report report = case_run(&s, "patience");
    CHECK_MSG(report.outcome == BJ_RUN_DONE && report.epochs == report.best.epoch + 3 &&
                  report.epochs < 40,
              "%d epochs, best %d", report.epochs, report.best.epoch);
    check_folder("patience", report.epochs, 1);
    /* Checks that ckpt/best comes from that epoch and ckpt/last from the last one. */
    CHECK(saved_epoch("patience", "best") == report.best.epoch);
    CHECK(saved_epoch("patience", "last") == report.epochs);
    /* Tests the checkpoints of a run whose first process ends after the best epoch, if the next
     * process finds no better epoch. */
    case_stop stop = {.at = 2 + 6 * report.best.epoch};
    bj_run_report again;
    bj_error err = {0};
    CHECK_OK(case_train(&again, &s, "twice", 0, 1, &stop, &err), err);
    CHECK(!strcmp(stop.phase, "save") && again.epochs == report.best.epoch);
    CHECK_OK(case_train(&again, &s, "twice", 1, 1, NULL, &err), err);
    CHECK(case_same_run("patience", "twice") && again.best.epoch == report.best.epoch);
    case_remove("twice");
    case_remove("patience");
}

int main(void) {
    case_begin();
    test_manifest_first();
    /* stage B needs stage A, which comes before it in the list */
    CHECK(bj_arm_find("anchor-a") < bj_arm_find("anchor-b"));
    test_arms();
    test_stage_b("anchor-b");
    test_stage_b("anchor-b-point");
    test_drift();
    test_gates();
    test_decoder();
    test_patience();
    return test_report("arms");
}
