/* test_campaign.c - tests campaign files, their grid, and valid and invalid campaign.json files. */
#define _XOPEN_SOURCE 700
#include "campaign_case.h"

#include <limits.h>

#include "core/alloc.h"

static const char plain[] = "name: tiny\n"
                            "data: a.bjc\n"
                            "recipe: small\n"
                            "arms: [fullset, point]\n"
                            "seeds: [3, 1]\n"
                            "set:\n"
                            "  train.epochs: 4\n"
                            "  optim: {lr: 2e-3}\n";

static bj_error err;

static int exists(const char *name) {
    char path[CASE_PATH];
    struct stat info;
    return stat(case_path(path, name), &info) == 0;
}

/* ----------------------------------------------------------------------------------------- grid */

static void test_grid(void) {
    bj_campaign *c = NULL;
    char path[CASE_PATH], full[PATH_MAX];
    CHECK_OK(case_create(&c, plain, "grid", NULL, &err), err);
    if (!c) return;
    CHECK(!strcmp(bj_campaign_name(c), "tiny"));
    CHECK(!strcmp(bj_campaign_dir(c), case_path(path, "grid")));
    CHECK(!strcmp(bj_campaign_data(c), realpath(case_path(path, "a.bjc"), full)));
    CHECK(strlen(bj_campaign_data_digest(c)) == 64);
    CHECK(bj_campaign_dev(c) == NULL);
    CHECK(bj_campaign_runs(c) == 4);
    static const char *const arms[] = {"fullset", "point", "fullset", "point"};
    static const int seeds[] = {3, 3, 1, 1};
    for (int i = 0; i < 4; i++) {
        const bj_campaign_run run = bj_campaign_run_at(c, i);
        char name[64];
        snprintf(name, sizeof name, "grid/runs/%s/seed-%d", arms[i], seeds[i]);
        CHECK(!strcmp(run.settings->arm, arms[i]));
        CHECK(run.settings->seed == (uint64_t)seeds[i]);
        CHECK(!strcmp(run.settings->recipe, "small"));
        CHECK(run.settings->epochs == 4 && run.settings->lr == 2e-3);
        CHECK(!strcmp(run.dir, case_path(path, name)));
        CHECK(run.needs == -1);
    }
    char *yaml = case_read("grid/campaign.yaml"), *json = case_read("grid/campaign.json");
    CHECK(!strcmp(yaml, plain));
    CHECK_CONTAINS(json, "\"schema\": \"branchjepa.campaign/1\"");
    CHECK_CONTAINS(json, bj_campaign_data_digest(c));
    CHECK_CONTAINS(json, "\"optim.lr\": 0.002");
    free(yaml);
    free(json);
    bj_campaign_free(c);
}

/* Tests that options override the file, and that a seed count starts at seed 0. */
static void test_options(void) {
    bj_campaign *c = NULL;
    char a[CASE_PATH], b[CASE_PATH];
    const bj_assignment set[] = {{"train.epochs", "9", "--set"}, {"recipe", "paper", "--set"}};
    const bj_campaign_options options = {
        .data = case_path(b, "b.bjc"), .dev = case_path(a, "a.bjc"), .set = set, .set_count = 2};
    CHECK_OK(case_create(&c,
                         "name: x\ndata: missing.bjc\nrecipe: small\narms: [uniform]\nseeds: 2\n"
                         "set: {train: {epochs: 4}}\n",
                         "options", &options, &err),
             err);
    if (!c) return;
    CHECK_CONTAINS(bj_campaign_data(c), "/b.bjc");
    CHECK_CONTAINS(bj_campaign_dev(c), "/a.bjc");
    CHECK(bj_campaign_runs(c) == 2);
    CHECK(bj_campaign_run_at(c, 1).settings->seed == 1);
    CHECK(bj_campaign_run_at(c, 1).settings->epochs == 9);
    CHECK(!strcmp(bj_campaign_run_at(c, 1).settings->recipe, "paper"));
    bj_campaign_free(c);
    c = NULL;
    CHECK_OK(bj_campaign_open(&c, case_path(a, "options"), &err), err);
    if (c) CHECK_CONTAINS(bj_campaign_dev(c), "/a.bjc");
    bj_campaign_free(c);
}

/* Tests that stage B needs the stage A run of its seed, for any order of the list. */
static void test_stages(void) {
    bj_campaign *c = NULL;
    char path[CASE_PATH], full[PATH_MAX], anchor[PATH_MAX + 64];
    CHECK_OK(case_create(&c,
                         "name: anchors\ndata: a.bjc\narms: [anchor-b, fullset, anchor-a, "
                         "anchor-b-point]\nseeds: [0, 5]\n",
                         "stages", NULL, &err),
             err);
    if (!c) return;
    static const int needs[] = {2, -1, -1, 2, 6, -1, -1, 6};
    for (int i = 0; i < 8; i++) CHECK(bj_campaign_run_at(c, i).needs == needs[i]);
    snprintf(anchor, sizeof anchor, "%s/runs/anchor-a/seed-5/ckpt/best",
             realpath(case_path(path, "stages"), full));
    CHECK(!strcmp(bj_campaign_run_at(c, 4).settings->anchor, anchor));
    CHECK(!strcmp(bj_campaign_run_at(c, 7).settings->anchor, anchor));
    CHECK(!*bj_campaign_run_at(c, 5).settings->anchor);
    bj_campaign_free(c);
    c = NULL;
    CHECK_OK(bj_campaign_open(&c, case_path(path, "stages"), &err), err);
    for (int i = 0; c && i < 8; i++) CHECK(bj_campaign_run_at(c, i).needs == needs[i]);
    bj_campaign_free(c);
    /* The anchor of another seed. */
    char *json = case_read("stages/campaign.json"), *at = strstr(json, "\"needs\": 6");
    if (!at) exit(1);
    at[9] = '2';
    case_write("stages/campaign.json", json);
    free(json);
    CHECK_REFUSED(bj_campaign_open(&c, case_path(path, "stages"), &err), BJ_EFORMAT,
                  "stage A run with the same seed");
}

/* Tests several datasets. Runs are ordered by seed, dataset and arm, and each run has its own
 * dataset. */
static void test_several(void) {
    static const char text[] = "name: both\ndata: {one: a.bjc, other: b.bjc}\n"
                               "arms: [anchor-b, anchor-a]\nseeds: [4, 2]\n";
    static const char *const names[] = {"one/anchor-b", "one/anchor-a", "other/anchor-b",
                                        "other/anchor-a"};
    bj_campaign *c = NULL;
    char path[CASE_PATH], folder[CASE_PATH];
    for (int again = 0; again < 2; again++) { /* as created, as opened */
        if (again) CHECK_OK(bj_campaign_open(&c, case_path(path, "several"), &err), err);
        else CHECK_OK(case_create(&c, text, "several", NULL, &err), err);
        if (!c) return;
        CHECK(bj_campaign_runs(c) == 8 && bj_campaign_data_count(c) == 2);
        CHECK(!strcmp(bj_campaign_data_name(c, 1), "other"));
        for (int i = 0; i < 8; i++) {
            const bj_campaign_run run = bj_campaign_run_at(c, i);
            char dir[64];
            snprintf(dir, sizeof dir, "/several/runs/%s/seed-%d", names[i % 4], i < 4 ? 4 : 2);
            CHECK(!strcmp(run.name, names[i % 4]) && run.set == i % 4 / 2);
            CHECK_CONTAINS(run.data, run.set ? "/b.bjc" : "/a.bjc");
            CHECK(run.set == !!strcmp(run.data_digest, bj_campaign_data_digest(c)));
            CHECK_CONTAINS(run.dir, dir);
            CHECK(run.needs == (i % 2 ? -1 : i + 1));
            snprintf(dir, sizeof dir, "/%s/seed-%d/ckpt/best", names[i % 4 + 1 - i % 2],
                     i < 4 ? 4 : 2);
            if (i % 2 == 0) CHECK_CONTAINS(run.settings->anchor, dir);
        }
        bj_campaign_free(c);
        c = NULL;
    }
    /* the data was moved to another folder; it is found if this folder is given, or else at the
     * original path */
    CHECK(mkdir(case_path(folder, "sets"), 0777) == 0);
    for (int i = 0; i < 2; i++) {
        char from[CASE_PATH];
        CHECK(link(case_path(from, i ? "b.bjc" : "a.bjc"),
                   case_path(path, i ? "sets/b.bjc" : "sets/a.bjc")) == 0);
    }
    const bj_campaign_options moved = {.data = folder};
    CHECK_OK(case_create(&c, text, "several", &moved, &err), err);
    if (c) CHECK_CONTAINS(bj_campaign_run_at(c, 2).data, "/sets/b.bjc");
    bj_campaign_free(c);
    CHECK_OK(case_create(&c, text, "elsewhere", &moved, &err), err);
    bj_campaign_free(c);
    CHECK_OK(case_create(&c, text, "elsewhere", NULL, &err), err);
    if (c) CHECK_CONTAINS(bj_campaign_run_at(c, 2).data, "/sets/b.bjc");
    bj_campaign_free(c);
    /* a single file replaces the datasets, which makes it a campaign with one dataset */
    const bj_campaign_options only = {.data = case_path(path, "b.bjc")};
    CHECK_OK(case_create(&c, text, "only", &only, &err), err);
    if (c) {
        CHECK(bj_campaign_runs(c) == 4 && bj_campaign_data_count(c) == 1);
        CHECK(!bj_campaign_data_name(c, 0) && !strcmp(bj_campaign_run_at(c, 0).name, "anchor-b"));
    }
    bj_campaign_free(c);
    char *json = case_read("only/campaign.json");
    CHECK_CONTAINS(json, "\"data\": {");
    free(json);
    static const struct {
        const char *text, *said;
    } others[] = {
        {"name: both\ndata: {one: b.bjc, other: b.bjc}\narms: [anchor-b, anchor-a]\nseeds: [4, "
         "2]\n",
         "data that has the digest"},
        {"name: both\ndata: {one: a.bjc, two: b.bjc}\narms: [anchor-b, anchor-a]\nseeds: [4, 2]\n",
         "was created with the dataset 'other'"},
        {"name: both\ndata: a.bjc\narms: [anchor-b, anchor-a]\nseeds: [4, 2]\n",
         "was created with 2 datasets"},
    };
    const bj_campaign_options here = {.data = case_folder};
    for (size_t i = 0; i < 3; i++)
        CHECK_REFUSED(case_create(&c, others[i].text, "several", i < 2 ? &here : NULL, &err),
                      BJ_EMISMATCH, others[i].said);
    json = case_read("several/campaign.json");
    char *at = strstr(json, "\"data\": 1");
    if (!at) exit(1);
    at[8] = '2';
    case_write("several/campaign.json", json);
    CHECK_REFUSED(bj_campaign_open(&c, case_path(path, "several"), &err), BJ_EFORMAT,
                  "a dataset number for every run");
    at[8] = '0'; /* a run that is there already */
    case_write("several/campaign.json", json);
    CHECK(bj_campaign_open(&c, case_path(path, "several"), &err) == BJ_EFORMAT && !c);
    at[8] = '1';
    at = strstr(json, "\"needs\": 3"); /* the anchor of the other dataset */
    if (!at) exit(1);
    at[9] = '1';
    case_write("several/campaign.json", json);
    CHECK_REFUSED(bj_campaign_open(&c, case_path(path, "several"), &err), BJ_EFORMAT,
                  "with the same seed and data");
    free(json);
}

/* ---------------------------------------------------------------------------------------- files */

static void test_refused_files(void) {
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"data: a.bjc\narms: [fullset]\nseeds: 1\n", "no 'name'"},
        {"name: a/b\narms: [fullset]\nseeds: 1\n", "name is 'a/b'"},
        {"name: x\nseeds: 1\n", "no 'arms'"},
        {"name: x\narms: [fullset]\n", "no 'seeds'"},
        {"name: x\narms: fullset\nseeds: 1\n", "not valid for 'arms', expected a list"},
        {"name: x\narms: [fullset]\nseeds: 0\n", "seeds is '0'"},
        {"name: x\narms: [fullset]\nseeds: 2x\n", "seeds is '2x'"},
        {"name: x\narms: [fullset]\nseeds: 1001\n", "1 to 1000"},
        {"name: x\narms: [fullset, fullset]\nseeds: 1\n", "arm 'fullset' is listed twice"},
        {"name: x\narms: [fullset]\nseeds: [1, 2, 1]\n", "seed 1 is listed twice"},
        {"name: x\narms: [fulset]\nseeds: 1\n", "fullset"},
        {"name: x\narm: [fullset]\nseeds: 1\n", "c.yaml:2: unknown key 'arm'; did you mean 'arms'"},
        {"name: x\nbanana: 1\narms: [fullset]\nseeds: 1\n", "unknown key 'banana', expected name"},
        {"name: x\narms: [fullset]\nseeds: 1\ntrain.epochs: 2\n", "belongs under 'set'"},
        {"name: x\narms: [fullset]\nseeds: 1\nset: {seed: 2}\n", "'seed' cannot be set"},
        {"name: x\narms: [fullset]\nseeds: 1\nset: {arm: mdn}\n", "'arm' cannot be set"},
        {"name: x\narms: [fullset]\nseeds: 1\nset: {anchor: /x}\n", "'anchor' cannot be set"},
        {"name: x\narms: [fullset]\nseeds: 1\nset: {train.epoch: 2}\n", "train.epochs"},
        {"name: x\narms: [fullset]\nseeds: 1\nrecipe: smal\n", "smal"},
        {"name: x\narms: [anchor-b]\nseeds: 1\n", "needs arm 'anchor-a' in the same campaign"},
        {"name: x\narms: [fullset]\nseeds: 1\n", "'data' is missing"},
        {"name: x\ndata: ''\narms: [fullset]\nseeds: 1\n", "'data' is empty"},
        {"name: x\ndata: [a.bjc, b.bjc]\narms: [fullset]\nseeds: 1\n", "data: {name: file}"},
        {"name: x\ndata: {a/b: a.bjc}\narms: [fullset]\nseeds: 1\n",
         "'a/b' is not a valid dataset name"},
        {"name: x\ndata: {a.b: a.bjc}\narms: [fullset]\nseeds: 1\n",
         "'a.b' is not a valid dataset name"},
        {"name: x\ndata: {sixteen-letters-: a.bjc}\narms: [fullset]\nseeds: 1\n", "1 to 15"},
        {"name: x\ndata: {a: a.bjc, b: b.bjc}\ndev: a.bjc\narms: [fullset]\nseeds: 1\n",
         "with 2 datasets, development data is not allowed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_campaign *c = NULL;
        CHECK_REFUSED(case_create(&c, cases[i].text, "refused", NULL, &err), BJ_EARG,
                      cases[i].said);
        CHECK(c == NULL);
    }
    bj_campaign *c = NULL;
    CHECK_REFUSED(case_create(&c, "name: x\ndata: no.bjc\narms: [fullset]\nseeds: 1\n", "refused",
                              NULL, &err),
                  BJ_EIO, "no.bjc");
    CHECK(!exists("refused"));
    char path[CASE_PATH];
    CHECK(mkdir(case_path(path, "refused"), 0777) == 0);
    case_write("refused/campaign.yaml", "mine\n");
    CHECK_REFUSED(case_create(&c, plain, "refused", NULL, &err), BJ_EARG,
                  "exists, but there is no campaign.json");
    char *kept = case_read("refused/campaign.yaml");
    CHECK(!strcmp(kept, "mine\n"));
    free(kept);
}

static void test_look(void) {
    const bj_campaign_options look = {.look = 1};
    bj_campaign *c = NULL;
    bj_registry *r = NULL;
    CHECK_OK(case_create(&c, plain, "look/deep", &look, &err), err);
    CHECK(!exists("look"));
    if (!c) return;
    CHECK(bj_campaign_runs(c) == 4);
    CHECK_REFUSED(bj_registry_open(&r, c, 0, 1, &err), BJ_EARG, "has not been created");
    bj_campaign_free(c);
}

/* ---------------------------------------------------------------------------------------- again */

/* Tests that creating the same campaign again changes nothing, and that another campaign is
 * rejected with a message that contains the difference. */
static void test_again(void) {
    bj_campaign *c = NULL;
    char path[CASE_PATH];
    CHECK_OK(case_create(&c, plain, "again", NULL, &err), err);
    bj_campaign_free(c);
    char *before = case_read("again/campaign.json");
    CHECK_OK(case_create(&c, plain, "again", NULL, &err), err);
    bj_campaign_free(c);
    /* Tests that missing data is taken from the existing campaign, and that another file with the
     * same content is accepted. */
    CHECK_OK(case_create(&c,
                         "name: tiny\nrecipe: small\narms: [fullset, point]\nseeds: [3, 1]\nset:\n"
                         "  train.epochs: 4\n  optim.lr: 0.002\n",
                         "again", NULL, &err),
             err);
    if (c) CHECK_CONTAINS(bj_campaign_data(c), "/a.bjc");
    bj_campaign_free(c);
    char copy[CASE_PATH];
    CHECK(link(case_path(path, "a.bjc"), case_path(copy, "moved.bjc")) == 0);
    const bj_campaign_options moved = {.data = copy};
    CHECK_OK(case_create(&c, plain, "again", &moved, &err), err);
    if (c) CHECK_CONTAINS(bj_campaign_data(c), "/moved.bjc");
    bj_campaign_free(c);

    static const struct {
        const char *text, *said;
    } others[] = {
        {"name: other\ndata: a.bjc\nrecipe: small\narms: [fullset, point]\nseeds: [3, 1]\n",
         "contains the campaign 'tiny'"},
        {"name: tiny\ndata: b.bjc\nrecipe: small\narms: [fullset, point]\nseeds: [3, 1]\nset:\n"
         "  train.epochs: 4\n  optim.lr: 0.002\n",
         "data that has the digest"},
        {"name: tiny\ndata: a.bjc\ndev: b.bjc\nrecipe: small\narms: [fullset, point]\n"
         "seeds: [3, 1]\nset:\n  train.epochs: 4\n  optim.lr: 0.002\n",
         "development data (none)"},
        {"name: tiny\ndata: a.bjc\nrecipe: small\narms: [fullset, point]\nseeds: [3, 1]\nset:\n"
         "  train.epochs: 5\n  optim.lr: 0.002\n",
         "run 0 ('fullset' seed 3) was created with train.epochs = 4"},
        {"name: tiny\ndata: a.bjc\nrecipe: small\narms: [fullset, mdn]\nseeds: [3, 1]\nset:\n"
         "  train.epochs: 4\n  optim.lr: 0.002\n",
         "run 1 was created as 'point'"},
        {"name: tiny\ndata: a.bjc\nrecipe: small\narms: [fullset, point]\nseeds: [3, 1, 2]\nset:\n"
         "  train.epochs: 4\n  optim.lr: 0.002\n",
         "was created with 4 runs"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_REFUSED(case_create(&c, others[i].text, "again", NULL, &err), BJ_EMISMATCH,
                      others[i].said);
    char *after = case_read("again/campaign.json");
    CHECK(!strcmp(before, after));
    free(before);
    free(after);
}

/* One thing changed in campaign.json: from, to. */
static void test_changed_json(void) {
    bj_campaign *c = NULL;
    char path[CASE_PATH];
    CHECK_OK(case_create(&c, plain, "json", NULL, &err), err);
    bj_campaign_free(c);
    char *good = case_read("json/campaign.json");
    static const struct {
        const char *from, *to, *said;
        bj_status code;
    } cases[] = {
        {"\"train.epochs\": 4", "\"train.epochs\": 5", "the digest of the settings is",
         BJ_EMISMATCH},
        {"\"train.epochs\": 4", "\"train.epochs\": true", "train.epochs", BJ_EFORMAT},
        {"\"train.epochs\": 4", "\"train.epoch\": 4", "train.epoch", BJ_EARG},
        {"campaign/1", "campaign/2", "schema is", BJ_EVERSION},
        {"\"schema\"", "\"scheme\"", "schema is 'missing'", BJ_EFORMAT},
        {"\"name\": \"tiny\"", "\"name\": 3", "name is missing or invalid", BJ_EFORMAT},
        {"\"path\"", "\"pfad\"", "path is missing", BJ_EFORMAT},
        {"\"digest\": \"", "\"digest\": \"x", "64 hexadecimal digits", BJ_EFORMAT},
        {"\"needs\": null", "\"needs\": 1", "stage A run with the same seed", BJ_EFORMAT},
        {"\"needs\": null", "\"needs\": 99", "null or a run number", BJ_EFORMAT},
        {"\"runs\"", "\"rums\"", "runs is missing", BJ_EFORMAT},
        {"\"settings\"", "\"setting\"", "settings is missing", BJ_EFORMAT},
        {"{\n", "{{\n", "not JSON", BJ_EFORMAT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *at = strstr(good, cases[i].from);
        char *changed = calloc(1, strlen(good) + 64);
        if (!at || !changed) exit(1);
        sprintf(changed, "%.*s%s%s", (int)(at - good), good, cases[i].to,
                at + strlen(cases[i].from));
        case_write("json/campaign.json", changed);
        free(changed);
        CHECK_REFUSED(bj_campaign_open(&c, case_path(path, "json"), &err), cases[i].code,
                      cases[i].said);
        CHECK(c == NULL);
    }
    case_write("json/campaign.json", good);
    CHECK_OK(bj_campaign_open(&c, case_path(path, "json"), &err), err);
    bj_campaign_free(c);
    free(good);
    CHECK_REFUSED(bj_campaign_open(&c, case_path(path, "nowhere"), &err), BJ_EIO, "campaign.json");
}

/* ----------------------------------------------------------------------------- ready-made files */

static void test_ready_made(void) {
    static const struct {
        const char *name;
        int runs, needy;
    } files[] = {{"paper-av2", 40, 0},    {"mdn-matrix", 60, 0},  {"ablations", 35, 0},
                 {"frozen-anchor", 9, 6}, {"demo-world", 24, 0},  {"maze-planall", 90, 0},
                 {"world", 40, 0},        {"maze-valid2", 45, 0}, {"maze-ant", 12, 0},
                 {"maze-rgb", 12, 0},     {"maze-heads", 15, 0},  {"maze-branching", 60, 0}};
    static const char *const sets[] = {"pointmaze-medium-navigate-v0",
                                       "pointmaze-teleport-navigate-v0",
                                       "pointmaze-large-navigate-v0",
                                       "antmaze-teleport-navigate-stride25",
                                       "visual-antmaze-teleport-stride25",
                                       "branch2",
                                       "branch3",
                                       "branch4",
                                       "branch5"};
    char data[CASE_PATH], dir[CASE_PATH], mazes[CASE_PATH];
    CHECK(mkdir(case_path(mazes, "ogbench"), 0777) == 0);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) { /* only their digests are asked for */
        char name[64];
        snprintf(name, sizeof name, "ogbench/%s.npz", sets[i]);
        case_write(name, sets[i]);
    }
    case_path(data, "a.bjc");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char file[64];
        bj_campaign *c = NULL;
        const bj_campaign_options look = {.data = strncmp(files[i].name, "maze-", 5) ? data : mazes,
                                          .look = 1};
        snprintf(file, sizeof file, "campaigns/%s.yaml", files[i].name);
        CHECK_OK(bj_campaign_create(&c, file, case_path(dir, "ready"), &look, &err), err);
        if (!c) continue;
        int needy = 0;
        for (int r = 0; r < bj_campaign_runs(c); r++) needy += bj_campaign_run_at(c, r).needs >= 0;
        CHECK(!strcmp(bj_campaign_name(c), files[i].name));
        CHECK_MSG(bj_campaign_runs(c) == files[i].runs, "%s: %d", file, bj_campaign_runs(c));
        CHECK(needy == files[i].needy);
        bj_campaign_free(c);
    }
}

/* Tests that every failed allocation is reported, leaks nothing and leaves nothing incomplete. */
static void test_memory(void) {
    char path[CASE_PATH], file[CASE_PATH];
    const long live = bj_alloc_live();
    long n = 0;
    case_write("c.yaml", plain);
    case_path(file, "c.yaml");
    for (bj_status status = BJ_ENOMEM; status != BJ_OK && n < 5000; n++) {
        bj_campaign *c = NULL;
        char name[32];
        snprintf(name, sizeof name, "memory%ld", n % 2);
        bj_alloc_fail_after(n);
        status = bj_campaign_create(&c, file, case_path(path, name), NULL, &err);
        bj_alloc_fail_after(-1);
        CHECK_MSG(status == BJ_OK || status == BJ_ENOMEM, "%ld: %s", n, err.message);
        CHECK((c != NULL) == (status == BJ_OK));
        bj_campaign_free(c);
        CHECK_MSG(bj_alloc_live() == live, "allocation %ld leaks", n);
    }
    CHECK(n > 50 && n < 5000);
}

int main(void) {
    case_begin();
    test_grid();
    test_options();
    test_stages();
    test_several();
    test_refused_files();
    test_look();
    test_again();
    test_changed_json();
    test_ready_made();
    test_memory();
    case_end();
    return test_report("campaign");
}
