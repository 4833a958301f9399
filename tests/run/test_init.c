/* test_init.c - tests runs that start from the weights of a checkpoint: loaded tensors, accepted
 * files, rejected input, and resuming.
 *
 * The reference is a training loop without checkpoints and logging, started from the same files.
 */
#define _XOPEN_SOURCE 700
#include "core/safetensors.h"
#include "model/checkpoint.h"
#include "run_case.h"

static const char open_gates[] =
    "gate.ade=1000 gate.fde=1000 gate.std=0 gate.low_std=1 gate.rank=0 ";

/* -------------------------------------------------------------------------------------- helpers */

/* Returns the settings of a run that starts from `source`, a name in the scratch folder. */
static bj_settings init_settings(const char *arm, const char *source, const char *more) {
    char text[1024], path[CASE_PATH];
    snprintf(text, sizeof text, "init=%s %s", case_path(path, source), more);
    return case_settings(arm, text);
}

static bj_model *load_model(const char *name) {
    char path[CASE_PATH];
    bj_model *model = NULL;
    bj_error err = {0};
    CHECK_OK(bj_model_load(&model, case_path(path, name), &err), err);
    if (!model) exit(test_report("load_model"));
    return model;
}

static bj_safetensors *open_tensors(const char *name) {
    char path[CASE_PATH];
    bj_safetensors *st = NULL;
    bj_error err = {0};
    CHECK_OK(bj_safetensors_open(&st, case_path(path, name), &err), err);
    if (!st) exit(test_report("open_tensors"));
    return st;
}

/* Counts the tensors of `a` whose names start with `prefix` and that equal the tensor of `b` whose
 * name starts with `other` instead. Returns -1 if any of them differs. */
static int same_tensors(const char *a, const char *prefix, const char *b, const char *other) {
    bj_safetensors *x = open_tensors(a), *y = open_tensors(b);
    int same = 0;
    for (int i = 0; i < bj_safetensors_count(x) && same >= 0; i++) {
        const bj_tensor_view *from = bj_safetensors_at(x, i);
        char name[128];
        if (strncmp(from->name, prefix, strlen(prefix))) continue;
        snprintf(name, sizeof name, "%s%s", other, from->name + strlen(prefix));
        const bj_tensor_view *to = bj_safetensors_find(y, name);
        same = to && to->bytes == from->bytes && !memcmp(from->data, to->data, to->bytes) ? same + 1
                                                                                          : -1;
    }
    bj_safetensors_close(x);
    bj_safetensors_close(y);
    return same;
}

/* Checks a fact of manifest.json. */
static void check_fact(const char *name, const char *key, const char *expected) {
    bj_run *run = case_open(name);
    const char *found = bj_run_fact(run, key);
    CHECK_MSG(found && strstr(found, expected), "%s: %s is %s, expected %s", name, key,
              found ? found : "missing", expected);
    bj_run_free(run);
}

static int same_fact(const char *a, const char *b, const char *key) {
    bj_run *x = case_open(a), *y = case_open(b);
    const char *p = bj_run_fact(x, key), *q = bj_run_fact(y, key);
    const int same = p && q && !strcmp(p, q);
    bj_run_free(x);
    bj_run_free(y);
    return same;
}

/* Trains until the development scenes have been evaluated once. */
static void run_to_epoch_0(const bj_settings *s, const char *name) {
    bj_run_report report;
    bj_error err = {0};
    case_stop stop = {.at = 2}; /* "save" of epoch 0 */
    CHECK_OK(case_train(&report, s, name, 0, 1, &stop, &err), err);
    CHECK(!strcmp(stop.phase, "save") && report.step == 0);
}

static void expect(const bj_settings *s, const char *name, int resume, bj_status code,
                   const char *part) {
    bj_run_report report;
    bj_error err = {0};
    const bj_status status = case_train(&report, s, name, resume, 1, NULL, &err);
    CHECK_MSG(status == code, "%d, expected %d: %s", (int)status, (int)code, err.message);
    CHECK_CONTAINS(err.message, part);
}

static void copy_file(const char *from, const char *to) {
    char path[CASE_PATH], *bytes = NULL;
    size_t size;
    bj_error err = {0};
    CHECK_OK(bj_file_read(&bytes, &size, case_path(path, from), 1 << 26, &err), err);
    CHECK_OK(bj_file_write(case_path(path, to), bytes, size, &err), err);
    bj_free(bytes);
}

static void move(const char *from, const char *to) {
    char a[CASE_PATH], b[CASE_PATH];
    CHECK_MSG(rename(case_path(a, from), case_path(b, to)) == 0, "%s to %s", a, b);
}

/* -------------------------------------------------------------------------------------- weights */

/* Tests that the first evaluation of the new run gives the metrics of the source's chosen epoch,
 * that weights and target come from the source, and that the optimizer state is zero. */
static void test_weights(void) {
    const bj_settings s = init_settings("fullset", "pre", "");
    run_to_epoch_0(&s, "new");
    bj_run *pre = case_open("pre"), *new = case_open("new");
    const bj_epoch a = bj_run_epoch(pre, bj_run_best(pre)), b = bj_run_epoch(new, 0);
    CHECK(!memcmp(&a.dev, &b.dev, sizeof a.dev));
    CHECK(!memcmp(&a.health, &b.health, sizeof a.health));
    CHECK(a.usage_least == b.usage_least && a.usage_most == b.usage_most);
    const bj_epoch plain = bj_run_epoch(pre, 0);
    CHECK(memcmp(&plain.dev, &b.dev, sizeof a.dev)); /* the comparison can fail */
    bj_run_free(pre);
    bj_run_free(new);
    CHECK(same_tensors("pre/ckpt/best/model.safetensors", "", "new/ckpt/last/model.safetensors",
                       "") == 52);
    CHECK(same_tensors("pre/ckpt/best/state.safetensors", "target.",
                       "new/ckpt/last/state.safetensors", "target.") == 20);
    CHECK(same_tensors("new/ckpt/last/model.safetensors", "encoder.",
                       "new/ckpt/last/state.safetensors", "target.") == -1); /* the target lags */
    bj_safetensors *state = open_tensors("new/ckpt/last/state.safetensors");
    int moments = 0;
    for (int i = 0; i < bj_safetensors_count(state); i++) {
        const bj_tensor_view *view = bj_safetensors_at(state, i);
        if (!strncmp(view->name, "target.", 7)) continue;
        const unsigned char *bytes = view->data;
        size_t zeros = 0;
        while (zeros < view->bytes && !bytes[zeros]) zeros++;
        CHECK_MSG(zeros == view->bytes, "%s", view->name);
        moments++;
    }
    CHECK(moments == 104);
    bj_safetensors_close(state);
    check_fact("new", "init.loaded", "52");
    check_fact("new", "init.target", "checkpoint");
    check_fact("new", "init.file", "pre/ckpt/best/model.safetensors");
    char hex[BJ_SHA256_HEX], path[CASE_PATH];
    bj_error err = {0};
    CHECK_OK(bj_sha256_file(hex, case_path(path, "pre/ckpt/best/model.safetensors"), &err), err);
    check_fact("new", "init.sha256", hex);
    case_remove("new");
}

/* Compares a whole run with the loop without checkpoints and logging. */
static void test_reference(void) {
    const bj_settings s = init_settings("fullset", "pre/ckpt/best", "seed=4");
    const bj_trainer_options how = {
        .objective = s.objective, .optim = s.optim, .max_batch = s.batch, .threads = 1};
    const bj_loader_options order = {
        .part = BJ_PART_FIT, .batch = s.batch, .shuffle = 1, .seed = s.seed, .needs_future = 1};
    char path[CASE_PATH];
    bj_model *model = load_model("pre/ckpt/best/model.safetensors");
    bj_trainer *trainer = NULL;
    bj_loader *loader = NULL;
    bj_cache *cache = NULL;
    bj_error err = {0};
    case_run(&s, "new");
    CHECK_OK(bj_trainer_create(&trainer, model, &how, &err), err);
    CHECK_OK(bj_cache_open(&cache, case_path(path, "data.bjc"), 0, &err), err);
    CHECK_OK(bj_loader_create(&loader, cache, &order, &err), err);
    bj_safetensors *state = open_tensors("pre/ckpt/best/state.safetensors");
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor t = bj_trainer_target(trainer, i);
        char name[128];
        if (!t.data) continue;
        snprintf(name, sizeof name, "target.%s", t.name + strlen("encoder."));
        memcpy(t.data, bj_safetensors_find(state, name)->data, t.size * sizeof *t.data);
    }
    const int64_t steps = bj_loader_steps(loader);
    for (int64_t i = 0; i < steps * s.epochs; i++) {
        const bj_batch *batch;
        bj_step_report report;
        const bj_schedule schedule = {
            .base = s.lr, .updates = (long)steps * s.epochs, .warmup = (long)steps * s.warmup};
        const double lr = bj_lr_at(&schedule, (long)i);
        CHECK_OK(bj_loader_batch(&batch, NULL, loader, i / steps, i % steps, &err), err);
        CHECK_OK(bj_trainer_step(trainer, batch, lr, &report, &err), err);
    }
    bj_model *saved = load_model("new/ckpt/last/model.safetensors");
    for (int i = 0; i < bj_model_tensor_count(model); i++) {
        const bj_tensor a = bj_model_tensor(model, i), b = bj_model_tensor(saved, i);
        CHECK_MSG(!memcmp(a.data, b.data, a.size * sizeof *a.data), "%s", a.name);
    }
    bj_model_free(saved);
    bj_safetensors_close(state);
    bj_loader_free(loader);
    bj_cache_free(cache);
    bj_trainer_free(trainer);
    bj_model_free(model);
    case_remove("new");
}

/* Tests the ways to name a checkpoint (run, folder, file) and the target encoder that results from
 * each. */
static void test_names(void) {
    static const struct {
        const char *name, *file, *target;
    } cases[] = {
        {"pre", "pre/ckpt/best/model.safetensors", "checkpoint"},
        {"pre/ckpt/last", "pre/ckpt/last/model.safetensors", "checkpoint"},
        {"pre/ckpt/best/model.safetensors", "pre/ckpt/best/model.safetensors", "online encoder"},
        {"stopped", "stopped/ckpt/last/model.safetensors", "checkpoint"},
        {"stage_a", "stage_a/ckpt/best/model.safetensors", "online encoder"},
    };
    const bj_settings stage_a = case_settings("anchor-a", open_gates);
    const bj_settings plain = case_settings("fullset", "");
    case_run(&stage_a, "stage_a");
    run_to_epoch_0(&plain, "stopped");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bj_settings s = init_settings("fullset", cases[i].name, "");
        run_to_epoch_0(&s, "new");
        check_fact("new", "init.file", cases[i].file);
        check_fact("new", "init.target", cases[i].target);
        const int copied = same_tensors("new/ckpt/last/model.safetensors", "encoder.",
                                        "new/ckpt/last/state.safetensors", "target.") == 20;
        /* the target encoder of an untrained run is a copy, too */
        CHECK_MSG(copied == (i >= 2), "%s: %d", cases[i].name, copied);
        case_remove("new");
    }
    const bj_settings none = init_settings("fullset", ".", "");
    expect(&none, "new", 0, BJ_EIO, "no model.safetensors in it, nor in its ckpt/best");
    CHECK(!case_exists("new", "."));
    case_remove("stage_a");
    case_remove("stopped");
}

/* Writes the weights of a checkpoint to a file of 16-bit numbers. */
static void write_bf16(const char *from, const char *to) {
    enum { MOST = 64 };
    static uint16_t numbers[1 << 16];
    bj_safetensors *st = open_tensors(from);
    bj_tensor_view views[MOST];
    bj_fact facts[MOST];
    char path[CASE_PATH], digest[65] = "";
    size_t used = 0;
    bj_error err = {0};
    bj_model *model = NULL;
    const int count = bj_safetensors_count(st), fact_count = bj_safetensors_metadata_count(st);
    for (int i = 0; i < count && i < MOST; i++) {
        views[i] = *bj_safetensors_at(st, i);
        const bj_real *values = views[i].data;
        for (size_t j = 0; j < views[i].count; j++) {
            const float value = (float)values[j];
            uint32_t bits;
            memcpy(&bits, &value, sizeof bits);
            numbers[used + j] = (uint16_t)(bits >> 16);
        }
        views[i].data = numbers + used;
        views[i].dtype = BJ_DTYPE_BF16;
        used += views[i].count;
    }
    /* The digest of the first file is wrong. The message from the reader contains the correct
     * digest. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < fact_count && i < MOST; i++) {
            facts[i] = bj_safetensors_metadata_at(st, i);
            if (!strcmp(facts[i].key, BJ_CHECKPOINT_DIGEST)) facts[i].value = pass ? digest : "x";
        }
        CHECK_OK(bj_safetensors_write(case_path(path, to), views, count, facts, fact_count, &err),
                 err);
        if (pass) break;
        CHECK(bj_model_load(&model, path, &err) == BJ_EFORMAT);
        const char *at = strstr(err.message, "content is ");
        if (at) snprintf(digest, sizeof digest, "%s", at + strlen("content is "));
    }
    bj_safetensors_close(st);
}

/* Tests that a file of 16-bit numbers is loaded without changing its values. */
static void test_bf16(void) {
    write_bf16("pre/ckpt/best/model.safetensors", "half.safetensors");
    const bj_settings s = init_settings("fullset", "half.safetensors", "");
    run_to_epoch_0(&s, "new");
    check_fact("new", "init.loaded", "52");
    bj_model *half = load_model("half.safetensors");
    bj_model *new = load_model("new/ckpt/last/model.safetensors");
    for (int i = 0; i < bj_model_tensor_count(half); i++) {
        const bj_tensor a = bj_model_tensor(half, i), b = bj_model_tensor(new, i);
        CHECK_MSG(!memcmp(a.data, b.data, a.size * sizeof *a.data), "%s", a.name);
    }
    bj_model_free(half);
    bj_model_free(new);
    CHECK(same_tensors("pre/ckpt/best/model.safetensors", "", "new/ckpt/last/model.safetensors",
                       "") == -1);
    case_remove("new");
}

/* ---------------------------------------------------------------------------------------- parts */

/* Tests which parts another arm takes from the checkpoint, and that all other parts have the
 * initial weights of the seed. */
static void test_parts(void) {
    static const struct {
        const char *arm, *source, *more, *loaded;
        const char *kept, *taken; /* parts, as in manifest.json; NULL: none is checked */
        const char *tensor, *reason, *unused;
    } cases[] = {
        {"mdn", "pre", "", "52", NULL, "router", NULL, NULL, NULL},
        {"point", "pre", "model.atom_hidden=12", "24", "branches", "decoder", "atoms.0.0.weight",
         "the checkpoint has shape [8, 8], expected [12, 8]", "atoms.1.0.weight"},
        {"fullset", "pre_point", "", "24", "router", "decoder", "atoms.0.0.weight",
         "the checkpoint has shape [12, 8], expected [8, 8]", NULL},
        {"mdn-component", "pre", "", "52", "scale_z", "branches", "log_sz",
         "log_sz: the checkpoint has no such tensor", NULL},
        {"fullset", "pre_component", "", "52", NULL, "branches", NULL, NULL, "log_sz"},
        {"fullset", "pre", "model.atoms=8 init_parts=encoder,decoder", "24", "branches", "encoder",
         "atoms.0.0.weight", "not among init_parts", NULL},
        {"fullset", "pre", "model.embed=4 init_parts=branches", "24", "encoder", "branches",
         "encoder.gru.weight_ih_l0", "not among init_parts", NULL},
        {"outputonly", "pre", "init_parts=encoder", "20", "residual", "encoder", "atom.0.weight",
         "not among init_parts", "atoms.0.0.weight"},
    };
    const bj_settings point = case_settings("point", "model.atom_hidden=12");
    const bj_settings component = case_settings("mdn-component", "");
    case_run(&point, "pre_point");
    case_run(&component, "pre_component");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bj_settings s = init_settings(cases[i].arm, cases[i].source, cases[i].more);
        bj_settings p = s;
        p.init[0] = p.init_parts[0] = '\0';
        run_to_epoch_0(&s, "new");
        run_to_epoch_0(&p, "plain");
        char key[64];
        check_fact("new", "init.loaded", cases[i].loaded);
        if (cases[i].kept) {
            snprintf(key, sizeof key, "initial.%s", cases[i].kept);
            CHECK_MSG(same_fact("new", "plain", key), "%zu: %s", i, key);
            check_fact("new", "init.not_loaded.0.tensor", cases[i].tensor);
            check_fact("new", "init.not_loaded.0.reason", cases[i].reason);
        }
        snprintf(key, sizeof key, "initial.%s", cases[i].taken);
        CHECK_MSG(!same_fact("new", "plain", key), "%zu: %s", i, key);
        if (cases[i].unused) check_fact("new", "init.unused.0.tensor", cases[i].unused);
        CHECK_MSG(!same_fact("new", "plain", "settings.sha256"), "%zu", i);
        case_remove("new");
        case_remove("plain");
    }
}

static void test_rejections(void) {
    static const struct {
        const char *arm, *source, *more;
        bj_status code;
        const char *part, *hint;
    } cases[] = {
        {"fullset", "pre", "model.embed=16", BJ_EMISMATCH,
         "pre/ckpt/best/model.safetensors: tensor 'encoder.gru.weight_ih_l0': "
         "the checkpoint has shape [24, 7], expected [48, 7]",
         "\nhint: use the sizes of the checkpoint with --set model.embed=8"},
        {"fullset", "pre", "model.atoms=4", BJ_EMISMATCH,
         "tensor 'router.2.weight': the checkpoint has shape [6, 8], expected [4, 8]",
         "--set model.atoms=6, "
         "or load only the matching parts with --set init_parts=encoder,branches,decoder"},
        {"fullset", "pre", "model.atoms=8", BJ_EMISMATCH,
         "tensor 'atoms.6.0.weight': the checkpoint has no such tensor", "model.atoms=6"},
        {"fullset", "pre", "model.decoder_hidden=4", BJ_EMISMATCH, "tensor 'decoder.0.weight'",
         "init_parts=encoder,branches,router"},
        {"fullset", "pre", "model.heads=4", BJ_EMISMATCH,
         "model.heads: the checkpoint has 2, expected 4", "--set model.heads=2"},
        {"outputonly", "pre", "", BJ_EMISMATCH, "tensor 'trunk.weight'", "init_parts=encoder"},
        {"point", "pre", "model.atom_hidden=12 init_parts=encoder,branches", BJ_EMISMATCH,
         "tensor 'atoms.0.0.weight'", "init_parts=encoder"},
        {"fullset", "data.bjc", "", BJ_EFORMAT, "data.bjc: metadata 'format'", ""},
        {"fullset", "nowhere", "", BJ_EIO, "nowhere: cannot open", ""},
        {"fullset", "pre",
         "init_sha256=0000000000000000000000000000000000000000000000000000000000000000",
         BJ_EMISMATCH, "expected 0000000000", "\nhint: the file was replaced"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bj_settings s = init_settings(cases[i].arm, cases[i].source, cases[i].more);
        expect(&s, "new", 0, cases[i].code, cases[i].part);
        expect(&s, "new", 0, cases[i].code, cases[i].hint);
        CHECK_MSG(!case_exists("new", "."), "%zu", i);
    }
}

/* --------------------------------------------------------------------------------------- resume */

/* Tests that a run that is stopped at any time ends with the same bytes, even if its source no
 * longer exists. */
static void test_resume(void) {
    const bj_settings s = init_settings("fullset", "pre", "seed=2");
    bj_run_report report;
    bj_error err = {0};
    case_run(&s, "ref");
    CHECK_OK(case_train(&report, &s, "threads", 0, 3, NULL, &err), err);
    CHECK(case_same_run("ref", "threads"));
    case_remove("threads");
    for (int at = 1, more = 1; more && test_failed < 20; at++) {
        case_stop stop = {.at = at};
        CHECK_OK(case_train(&report, &s, "stop", 0, 1, &stop, &err), err);
        more = stop.calls == at;
        move("pre", "moved");
        if (more) CHECK_OK(case_train(&report, &s, "stop", 1, 1, NULL, &err), err);
        CHECK(report.outcome == BJ_RUN_DONE);
        CHECK_MSG(case_same_run("ref", "stop"), "stopped at call %d", at);
        CHECK(same_fact("ref", "stop", "settings.sha256"));
        move("moved", "pre");
        case_remove("stop");
    }

    /* Tests that a run that has no checkpoint yet needs its source again. */
    CHECK_OK(case_train(&report, &s, "stop", 0, 1, &(case_stop){.at = 1}, &err), err);
    case_remove("stop/ckpt/last");
    copy_file("pre/ckpt/best/model.safetensors", "kept.safetensors");
    copy_file("pre_point/ckpt/best/model.safetensors", "pre/ckpt/best/model.safetensors");
    expect(&s, "stop", 1, BJ_EMISMATCH, "pre/ckpt/best/model.safetensors: the SHA-256 is ");
    copy_file("kept.safetensors", "pre/ckpt/best/model.safetensors");
    move("pre/ckpt/best/state.safetensors", "state.safetensors");
    expect(&s, "stop", 1, BJ_EMISMATCH, "the run was started with another target encoder");
    move("state.safetensors", "pre/ckpt/best/state.safetensors");
    CHECK_OK(case_train(&report, &s, "stop", 1, 1, NULL, &err), err);
    CHECK(report.outcome == BJ_RUN_DONE && case_same_run("ref", "stop"));

    /* Other settings about the source. */
    const bj_settings none = case_settings("fullset", "seed=2");
    expect(&none, "stop", 1, BJ_EMISMATCH, "/pre' and is now ''");
    const bj_settings other = init_settings("fullset", "pre/ckpt/last", "seed=2");
    expect(&other, "stop", 1, BJ_EMISMATCH, "init was '");
    const bj_settings pinned = init_settings(
        "fullset", "pre",
        "seed=2 init_sha256=0000000000000000000000000000000000000000000000000000000000000000");
    expect(&pinned, "stop", 1, BJ_EMISMATCH, "init_sha256 was '");
    case_remove("stop");
}

/* Tests that the settings stored by a run reproduce it, and that they identify the file by its
 * content. */
static void test_again(void) {
    char path[CASE_PATH];
    bj_run *ref = case_open("ref");
    bj_settings s = *bj_run_settings(ref);
    bj_run_free(ref);
    CHECK(strlen(s.init_sha256) == 64);
    case_run(&s, "again");
    CHECK(case_same_run("ref", "again"));
    case_remove("again");
    /* The path is part of the settings, so the checkpoints differ and only the weights are the
     * same. */
    copy_file("pre/ckpt/best/model.safetensors", "copy.safetensors");
    snprintf(s.init, sizeof s.init, "%s", case_path(path, "copy.safetensors"));
    run_to_epoch_0(&s, "again");
    CHECK(same_fact("ref", "again", "initial.sha256"));
    CHECK(!same_fact("ref", "again", "settings.sha256"));
    CHECK(!same_fact("ref", "again", "init.target_sha256"));
    case_remove("again");
}

/* Tests that every failing allocation is reported and leaks nothing. */
static void test_allocations(void) {
    const bj_settings s = init_settings("fullset", "pre", "train.epochs=1");
    bj_run_report report;
    bj_error err = {0};
    const long before = bj_alloc_count();
    run_to_epoch_0(&s, "full");
    const long needed = bj_alloc_count() - before, live = bj_alloc_live();
    case_remove("full");
    int failed = 0;
    for (long n = 0; n < needed && test_failed < 20; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = case_train(&report, &s, "full", 0, 1, &(case_stop){.at = 2}, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_ENOMEM || status == BJ_OK, "allocation %ld: %s", n, err.message);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld: %ld blocks", n, bj_alloc_live() - live);
        failed += status == BJ_ENOMEM;
        case_remove("full");
    }
    CHECK_MSG(failed > 100, "%d of %ld", failed, needed);
}

int main(void) {
    case_begin();
    const bj_settings s = case_settings("fullset", "");
    case_run(&s, "pre");
    test_weights();
    test_reference();
    test_names();
    test_bf16();
    test_parts();
    test_rejections();
    test_resume();
    test_again();
    test_allocations();
    return test_report("init");
}
