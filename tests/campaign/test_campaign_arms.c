/* test_campaign_arms.c - tests custom arms and sweeps in campaign files. */
#define _XOPEN_SOURCE 700
#include "campaign_case.h"

#include "core/alloc.h"

static bj_error err;

/* Tests that the settings of a custom arm override those of the file, and that campaign.json
 * preserves names and settings. */
static void test_named(void) {
    static const char text[] = "name: x\ndata: a.bjc\nrecipe: small\nseeds: [5]\n"
                               "arms:\n"
                               "  - fullset\n"
                               "  - {name: hot, arm: fullset, set: {optim.lr: 3e-3}}\n"
                               "  - arm: point\n"
                               "    set: {train: {epochs: 9}}\n"
                               "    name: long-point\n"
                               "set: {optim.lr: 1e-3, train.epochs: 4}\n";
    static const char *const names[] = {"fullset", "hot", "long-point"};
    static const char *const arms[] = {"fullset", "fullset", "point"};
    static const double rates[] = {1e-3, 3e-3, 1e-3};
    static const int epochs[] = {4, 4, 9};
    bj_campaign *c = NULL;
    char path[CASE_PATH];
    CHECK_OK(case_create(&c, text, "named", NULL, &err), err);
    for (int pass = 0; pass < 2 && c; pass++) {
        CHECK(bj_campaign_runs(c) == 3);
        for (int i = 0; i < 3; i++) {
            const bj_campaign_run run = bj_campaign_run_at(c, i);
            char dir[64];
            snprintf(dir, sizeof dir, "named/runs/%s/seed-5", names[i]);
            CHECK(!strcmp(run.name, names[i]) && !strcmp(run.settings->arm, arms[i]));
            CHECK(run.settings->lr == rates[i] && run.settings->epochs == epochs[i]);
            CHECK(!strcmp(run.dir, case_path(path, dir)));
        }
        bj_campaign_free(c);
        c = NULL;
        CHECK_OK(bj_campaign_open(&c, case_path(path, "named"), &err), err);
    }
    bj_campaign_free(c);
    /* The command line overrides all of them. The result is a different campaign. */
    const bj_assignment set = {"optim.lr", "5e-4", "--set"};
    const bj_campaign_options options = {.set = &set, .set_count = 1};
    CHECK_REFUSED(case_create(&c, text, "named", &options, &err), BJ_EMISMATCH,
                  "('fullset' seed 5) was created with optim.lr = 0.001");
    CHECK_OK(case_create(&c, text, "overruled", &options, &err), err);
    for (int i = 0; c && i < 3; i++) CHECK(bj_campaign_run_at(c, i).settings->lr == 5e-4);
    bj_campaign_free(c);
    /* A name in campaign.json cannot refer to a path outside the folder. */
    char *json = case_read("named/campaign.json");
    char *at = strstr(json, "\"hot\"");
    CHECK(at != NULL);
    if (at) memcpy(at, "\"../\"", 5);
    case_write("named/campaign.json", json);
    CHECK_REFUSED(bj_campaign_open(&c, case_path(path, "named"), &err), BJ_EFORMAT,
                  "expected an arm name");
    free(json);
}

/* Tests that every combination of swept values exists, in order, and that stage B starts from the
 * stage A run with the same values. */
static void test_sweep(void) {
    static const char text[] =
        "name: x\ndata: a.bjc\nrecipe: small\nseeds: 2\n"
        "arms: [anchor-b, {name: mine, arm: fullset, set: {train.epochs: 3}}, "
        "anchor-a]\n"
        "sweep: {optim.lr: [1e-3, 3e-4], train.batch: [8, 16, 32]}\n";
    bj_campaign *c = NULL;
    CHECK_OK(case_create(&c, text, "sweep", NULL, &err), err);
    if (!c) return;
    CHECK(bj_campaign_runs(c) == 2 * 3 * 6);
    static const double rates[] = {1e-3, 3e-4};
    static const int batches[] = {8, 16, 32};
    static const char *const listed[] = {"anchor-b", "mine", "anchor-a"};
    static const char *const texts[] = {"1e-3", "3e-4"};
    for (int i = 0; i < bj_campaign_runs(c); i++) {
        const bj_campaign_run run = bj_campaign_run_at(c, i);
        const int arm = i / 6 % 3, rate = i / 3 % 2, batch = i % 3;
        char name[64];
        snprintf(name, sizeof name, "%s+lr=%s+batch=%d", listed[arm], texts[rate], batches[batch]);
        CHECK_MSG(!strcmp(run.name, name), "%s, expected %s", run.name, name);
        CHECK(run.settings->lr == rates[rate] && run.settings->batch == batches[batch]);
        CHECK(run.settings->seed == (uint64_t)(i / 18));
        CHECK(run.needs == (arm == 0 ? i + 12 : -1));
        if (arm == 0) {
            snprintf(name, sizeof name, "/anchor-a+lr=%s+batch=%d/", texts[rate], batches[batch]);
            CHECK_CONTAINS(run.settings->anchor, name);
        }
    }
    bj_campaign_free(c);
    /* Swept keys with the same last part appear with their full names. */
    CHECK_OK(case_create(&c,
                         "name: x\ndata: a.bjc\narms: [fullset]\nseeds: 1\n"
                         "sweep: {loss.latent: [1], loss.rec: [0, 1]}\n",
                         "short", NULL, &err),
             err);
    if (c) CHECK(!strcmp(bj_campaign_run_at(c, 1).name, "fullset+latent=1+rec=1"));
    bj_campaign_free(c);
}

static void test_refused(void) {
#define REST "\nseeds: 1\ndata: a.bjc\n"
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"name: x\narms: [{name: hot}]" REST, "arms.0 has no 'arm'"},
        {"name: x\narms: [{arm: fullset}]" REST, "arms.0 has no 'name'"},
        {"name: x\narms: [{name: a/b, arm: fullset}]" REST, "the arm name is 'a/b'"},
        {"name: x\narms: [{name: a+b, arm: fullset}]" REST, "the arm name is 'a+b'"},
        {"name: x\narms: [{name: .., arm: fullset}]" REST, "the arm name is '..'"},
        {"name: x\narms: [{name: mdn, arm: fullset}]" REST, "'mdn' is the name of a built-in arm"},
        {
        "name: x\narms: [{name: mdn, arm: mdn, set: {optim.lr: "
        "1}}]" REST, "is the name of a built-in arm"},
        {"name: x\narms: [{name: a, arm: fulset}]" REST, "fullset"},
        {"name: x\narms: [{name: a, arm: mdn}, {name: a, arm: mdn}]" REST,
         "arm 'a' is listed twice"},
        {"name: x\narms: [{name: a, arm: mdn, lr: 3}]" REST, "'arms.0.lr' is not part of an arm"},
        {"name: x\narms: [{name: a, arm: mdn, set: {seed: 3}}]" REST, "'seed' cannot be set here"},
        {"name: x\narms: [{name: a, arm: mdn, set: {optim.l: 3}}]" REST, "optim.lr"},
        {"name: x\narms: [mdn]\nsweep: {optim.lr: 3}" REST, "a single value, expected a list"},
        {"name: x\narms: [mdn]\nsweep: [optim.lr]" REST, "a single value, expected a list"},
        {"name: x\narms: [mdn]\nsweep: {optim.l: [1, 2]}" REST, "optim.lr"},
        {"name: x\narms: [mdn]\nsweep: {optim.lr: [1, 1]}" REST,
         "'1' of 'optim.lr' is listed twice"},
        {"name: x\narms: [mdn]\nsweep: {seed: [1, 2]}" REST, "'seed' cannot be set here"},
        {"name: x\narms: [mdn]\nsweep: {init: [a/b, c]}" REST, "the sweep creates the arm name"},
        {"name: x\narms: [mdn]\nsweeps: {optim.lr: [1, 2]}" REST, "did you mean 'sweep'"},
    };
#undef REST
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_campaign *c = NULL;
        CHECK_REFUSED(case_create(&c, cases[i].text, "refused", NULL, &err), BJ_EARG,
                      cases[i].said);
        CHECK(c == NULL);
    }
    bj_campaign *c = NULL;
    const bj_assignment set = {"optim.lr", "1e-3", "--set"};
    const bj_campaign_options options = {.set = &set, .set_count = 1};
    CHECK_REFUSED(case_create(&c,
                              "name: x\narms: [mdn]\nseeds: 1\ndata: a.bjc\n"
                              "sweep: {optim.lr: [1e-3, 3e-4]}\n",
                              "refused", &options, &err),
                  BJ_EARG, "'optim.lr' is swept in");
}

int main(void) {
    case_begin();
    test_named();
    test_sweep();
    test_refused();
    case_end();
    CHECK(bj_alloc_live() == 0);
    return test_report("campaign_arms");
}
