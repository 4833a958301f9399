/* test_seeds.c - tests the table of arms, seeds and metrics: values, rejected input and
 * messages. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "core/file.h"
#include "stats/csv.h"
#include "support/test.h"

static char folder[] = "/tmp/test_seeds.XXXXXX";
static char path[64];
static bj_error err;

static bj_status read_bytes(bj_seeds **out, const char *text, size_t size) {
    FILE *file = fopen(path, "wb"); /* not synced, because there are many files */
    CHECK(file && fwrite(text, 1, size, file) == size && !fclose(file));
    err.message[0] = '\0';
    return bj_seeds_read(out, path, &err);
}

static bj_status read_text(bj_seeds **out, const char *text) {
    return read_bytes(out, text, strlen(text));
}

/* -------------------------------------------------------------------------------------- reading */

static void test_order(void) {
    static const char text[] = "\xef\xbb\xbfvalue,note,metric,arm,seed\r\n"
                               "1.5,x,mystery,\"b, \"\"2\"\"\",10\r\n"
                               "\r\n"
                               "-2e-3,\"two\r\nlines\",brier,a,2\r\n"
                               ".25,,traj_es,a,10\n"
                               "\"+4\",,traj_es,\"b, \"\"2\"\"\",2"; /* no newline */
    bj_seeds *s = NULL;
    CHECK_OK(read_text(&s, text), err);
    if (!s) return;
    CHECK(bj_seeds_arm_count(s) == 2 && bj_seeds_metric_count(s) == 3 && bj_seeds_count(s) == 2);
    CHECK(!strcmp(bj_seeds_arm(s, 0), "b, \"2\"") && !strcmp(bj_seeds_arm(s, 1), "a"));
    CHECK(bj_seeds_seed(s, 0) == 2 && bj_seeds_seed(s, 1) == 10);
    /* Metrics in directory order, unknown metrics last. */
    CHECK(!strcmp(bj_seeds_metric(s, 0).name, "traj_es") && bj_seeds_metric(s, 0).better == -1);
    CHECK(!strcmp(bj_seeds_metric(s, 1).name, "brier") && bj_seeds_metric(s, 1).digits == 5);
    CHECK(!strcmp(bj_seeds_metric(s, 2).name, "mystery") && bj_seeds_metric(s, 2).better == 0);
    CHECK(!strcmp(bj_seeds_metric(s, 2).title, "mystery"));
    CHECK(bj_seeds_value(s, 0, 2, 1) == 1.5);
    CHECK(bj_seeds_value(s, 1, 1, 0) == -0.002);
    CHECK(bj_seeds_value(s, 1, 0, 1) == 0.25);
    CHECK(bj_seeds_value(s, 0, 0, 0) == 4);
    CHECK(isnan(bj_seeds_value(s, 0, 0, 1)) && isnan(bj_seeds_value(s, 1, 2, 0)));
    CHECK(bj_seeds_find_arm(s, "a") == 1 && bj_seeds_find_arm(s, "A") == -1);
    CHECK(bj_seeds_find_metric(s, "brier") == 1 && bj_seeds_find_metric(s, "ece") == -1);
    bj_seeds_free(s);
}

static void test_folder(void) {
    bj_seeds *s = NULL;
    char file[96];
    bj_error e = {0};
    snprintf(file, sizeof file, "%s/seeds.csv", folder);
    CHECK(bj_seeds_read(&s, folder, &e) == BJ_EIO);
    CHECK_CONTAINS(e.message, file);
    CHECK_OK(bj_file_write(file, "arm,seed,metric,value\nx,0,ece,1\n", 32, &e), e);
    CHECK_OK(bj_seeds_read(&s, folder, &e), e);
    CHECK(s && bj_seeds_value(s, 0, 0, 0) == 1);
    bj_seeds_free(s);
    CHECK(unlink(file) == 0);
    CHECK(bj_seeds_read(&s, "/nonexistent/x.csv", &e) == BJ_EIO && !s);
    CHECK_CONTAINS(e.message, "/nonexistent/x.csv");
    bj_seeds_free(NULL);
}

/* ------------------------------------------------------------------------------- rejected input */

#define HEAD "arm,seed,metric,value\n"

static void test_refusals(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "is empty, expected the columns arm, seed, metric, value"},
        {"\n\n", "is empty"},
        {HEAD, "no line after the header"},
        {"arm,seed,value\nx,0,1\n", "line 1: no column 'metric'"},
        {"\n\narm,seed,metric,value,seed\n", "line 3: column 'seed' occurs twice"},
        {HEAD "x,0,brier\n", "line 2: found 3 fields, expected 4"},
        {HEAD "x,0,brier,1,2\n", "line 2: found 5 fields, expected 4"},
        {HEAD "x,0,brier,1\n,0,brier,1\n", "line 3: arm is empty"},
        {HEAD "x,0,,1\n", "line 2: metric is empty"},
        {HEAD "x\ty,0,brier,1\n", "line 2: arm has the control character 0x09"},
        {HEAD "x,-1,brier,1\n", "line 2: seed is '-1', expected an integer"},
        {HEAD "x,,brier,1\n", "line 2: seed is ''"},
        {HEAD "x,1.0,brier,1\n", "line 2: seed is '1.0'"},
        {HEAD "x,1000000000000000000,brier,1\n", "line 2: seed is '1000000000000000000'"},
        {HEAD "x,0,brier,nan\n", "line 2: value is 'nan', expected a finite number"},
        {HEAD "x,0,brier,1e999\n", "line 2: value is '1e999'"},
        {HEAD "x,0,brier,\n", "line 2: value is ''"},
        {HEAD "x,0,brier,.\n", "line 2: value is '.'"},
        {HEAD "x,0,brier,+-1\n", "line 2: value is '+-1'"},
        {HEAD "x,0,brier,1 \n", "line 2: value is '1 '"},
        {HEAD "x,0,brier,0x1p3\n", "line 2: value is '0x1p3'"},
        {HEAD "x,0,brier,true\n", "line 2: value is 'true'"},
        {HEAD "x,0,brier,\"1,5\"\n", "line 2: value is '1,5'"},
        {HEAD "x,0,brier,1\nx,1,brier,1\n\nx,0,brier,1\n",
         "line 5: duplicate value for arm 'x', seed 0, metric 'brier'; the first is in line 2"},
        {HEAD "\"x\ny\",0,brier,1\n", "line 2: arm has the control character 0x0a"},
        {HEAD "x,0,brier,1\n\"x,0,brier,1\n\n", "line 3: the quote that starts here is not closed"},
        {"arm,seed,metric,value\r\nx,0,brier,1\r\n\r\nx,1,brier,?\r\n", "line 4: value is '?'"},
        {HEAD "\"x\"y,0,brier,1\n", "line 2: found text after a closing quote"},
        {HEAD "x\"y\",0,brier,1\n", "line 2: found a quote inside a field without quotes"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_seeds *s = NULL;
        CHECK_MSG(read_text(&s, cases[i].text) == BJ_EFORMAT && !s, "case %zu", i);
        CHECK_CONTAINS(err.message, cases[i].message);
        CHECK_CONTAINS(err.message, path);
        bj_seeds_free(s);
    }
    bj_seeds *s = NULL;
    CHECK(read_bytes(&s, HEAD "x,0,br\0er,1\n", sizeof HEAD + 11) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "line 2: found a zero byte");
    /* The line number must be correct after a field that contains newlines. */
    CHECK(read_text(&s, "arm,seed,metric,value,n\nx,0,ece,1,\"a\nb\nc\"\nx,0,ece,?,n\n") ==
          BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "line 5: value is '?'");
    char name[200];
    memset(name, 'n', sizeof name);
    snprintf(name, sizeof name, HEAD "%.64s,0,brier,1\n",
             "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn");
    CHECK(read_text(&s, name) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "has 64 bytes, expected at most 63");
}

/* Tests that sizes beyond the limits are rejected before anything of that size is allocated. */
static void test_limits(void) {
    enum { ROWS = 5000, LINE = 32 };
    static char text[ROWS * LINE + 64];
    bj_seeds *s = NULL;
    int used = snprintf(text, sizeof text, HEAD);
    for (int i = 0; i < ROWS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "arm%d,0,ece,1\n", i);
    CHECK(read_text(&s, text) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "line 1026: 'arm1024' is the 1025th arm, expected at most 1024");
    used = snprintf(text, sizeof text, HEAD);
    for (int i = 0; i < ROWS; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "a,%d,ece,1\n", i);
    CHECK(read_text(&s, text) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "has 5000 different seeds, expected at most 4096");
    used = snprintf(text, sizeof text, HEAD);
    for (int i = 0; i < 1000; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "a%d,%d,m%d,1\n", i, i, i);
    CHECK(read_text(&s, text) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "1000 arms x 1000 metrics x 1000 seeds");
    CHECK(!s);
}

/* ----------------------------------------------------------------------------------- statistics */

static void test_missing(void) {
    static const char text[] = HEAD "a,0,ece,1\na,1,ece,2\na,3,ece,6\n"
                                    "b,0,ece,2\nb,1,ece,4\nb,2,ece,0\n"
                                    "c,0,brier,1\nd,7,ece,1\n";
    bj_seeds *s = NULL;
    bj_comparison c;
    bj_error e = {0};
    CHECK_OK(read_text(&s, text), err);
    if (!s) return;
    const int ece = bj_seeds_find_metric(s, "ece"), brier = bj_seeds_find_metric(s, "brier");
    const int all[] = {0, 1, 2, 3};
    CHECK(bj_seeds_check(s, all, 2, ece, &e) == BJ_EFORMAT);
    CHECK_CONTAINS(e.message, "metric 'ece' has no value for the (arm, seed) pairs (a, 2), (b, 3)");
    CHECK(bj_seeds_check(s, all, 3, brier, &e) == BJ_OK); /* a and b have no brier values */
    CHECK(bj_seeds_check(s, all, 1, ece, &e) == BJ_OK);
    CHECK(bj_seeds_check(s, all, 4, ece, &e) == BJ_EFORMAT);
    CHECK_CONTAINS(e.message, "(d, 0), (d, 1), (a, 2), (d, 2), (b, 3), (d, 3), (a, 7), (b, 7)");
    CHECK(!strstr(e.message, "more"));

    CHECK(bj_seeds_compare(&c, s, 0, 1, ece, 0.95, 0, &e) == BJ_EFORMAT);
    CHECK_CONTAINS(e.message, "(a, 2), (b, 3)");
    CHECK_OK(bj_seeds_compare(&c, s, 0, 1, ece, 0.95, 1, &e), e); /* seeds 0 and 1 */
    CHECK(c.a.n == 2 && c.difference.mean == -1.5 && c.lower == 2 && c.improvement == 0.5);
    CHECK_NEAR(c.high, -1.5 + 12.706204736174698 * 0.5, 1e-9);
    CHECK(bj_seeds_compare(&c, s, 0, 2, ece, 0.95, 1, &e) == BJ_EFORMAT);
    CHECK_CONTAINS(e.message, "arm 'c' has no value for metric 'ece'");
    CHECK(bj_seeds_compare(&c, s, 0, 3, ece, 0.95, 1, &e) == BJ_EFORMAT);
    CHECK_CONTAINS(e.message, "arms 'a' and 'd' have no seed in common for metric 'ece'");
    const bj_summary sum = bj_seeds_summary(s, 0, ece);
    CHECK(sum.n == 3 && sum.mean == 3 && sum.highest == 6);
    CHECK(bj_seeds_summary(s, 2, ece).n == 0);
    bj_seeds_free(s);

    CHECK_OK(read_text(&s, HEAD "a,0,ece,1\na,1,ece,1\na,2,ece,1\na,3,ece,1\na,4,ece,1\na,5,ece,1\n"
                                "a,6,ece,1\na,7,ece,1\na,8,ece,1\na,9,ece,1\nb,0,ece,1\n"),
             err);
    CHECK(bj_seeds_check(s, all, 2, 0, &e) == BJ_EFORMAT);
    CHECK_CONTAINS(e.message, "(b, 8) and 1 more");
    bj_seeds_free(s);
}

/* ----------------------------------------------------------------------------------- robustness */

static const char sample[] = "arm,seed,metric,value\r\n\"a\",0,brier,1.5\r\na,1,brier,-2e3\r\n"
                             "\"b \"\"x\"\"\",0,ece,.5\n\nb,12,brier,7";

static void test_allocations(void) {
    const long before = bj_alloc_live();
    int refused = 0;
    CHECK_OK(bj_file_write(path, sample, sizeof sample - 1, &err), err);
    for (int n = 0; n < 40; n++) {
        bj_seeds *s = NULL;
        bj_alloc_fail_after(n);
        const bj_status status = bj_seeds_read(&s, path, &err);
        bj_alloc_fail_after(-1);
        bj_seeds_free(s);
        CHECK(bj_alloc_live() == before);
        CHECK(status == BJ_ENOMEM || status == BJ_OK);
        if (status == BJ_OK) break;
        refused++;
    }
    CHECK_MSG(refused >= 6, "%d", refused);
}

/* Tests that files with bytes changed, removed or doubled at random are either read or rejected
 * with a message. */
static void test_mutations(void) {
    static const char alphabet[] = "\",\n\r\0 .-e0a9\xff";
    bj_rng rng = bj_rng_seed(9);
    int accepted = 0;
    for (int round = 0; round < 20000; round++) {
        char text[2 * sizeof sample + 1];
        size_t size = sizeof sample - 1;
        memcpy(text, sample, size);
        for (int k = (int)(bj_rng_next(&rng) % 4); k >= 0; k--) {
            const size_t at = bj_rng_next(&rng) % size;
            switch (bj_rng_next(&rng) % 4) {
            case 0: text[at] = alphabet[bj_rng_next(&rng) % (sizeof alphabet - 1)]; break;
            case 1: text[at] = (char)bj_rng_next(&rng); break;
            case 2:
                memmove(text + at, text + at + 1, size - at - 1);
                size -= size > 1;
                break;
            default:
                if (size < sizeof text - 2) memmove(text + at + 1, text + at, size++ - at);
            }
        }
        bj_csv csv;
        int found;
        char *copy =
            malloc(size + 1); /* exact size, so that a sanitizer detects a read past the end */
        memcpy(copy, text, size);
        bj_csv_begin(&csv, copy, size, "mutation");
        do {
            err.message[0] = '\0';
            if (bj_csv_next(&csv, &found, &err)) {
                CHECK_CONTAINS(err.message, "mutation: line ");
                break;
            }
            for (int i = 0; i < csv.count; i++)
                CHECK(csv.fields[i] >= copy &&
                      csv.fields[i] + strlen(csv.fields[i]) <= copy + size);
        } while (found);
        free(copy);
        if (round % 100) continue; /* reading files is slow */
        bj_seeds *s = NULL;
        if (read_bytes(&s, text, size)) CHECK_CONTAINS(err.message, path);
        else accepted++;
        bj_seeds_free(s);
    }
    CHECK_MSG(accepted > 10 && accepted < 190, "%d accepted", accepted);
}

/* ----------------------------------------------------------------------------------------- list */

static void test_list(void) {
    bj_seed_value list[] = {{"b", "mystery", 10, 1.5},
                            {"a", "brier", 2, -0.002},
                            {"a", "traj_es", 10, 0.25},
                            {"b", "traj_es", 2, 4}};
    enum { LISTED = sizeof list / sizeof *list };
    bj_seeds *s = NULL;
    CHECK_OK(bj_seeds_create(&s, "somewhere", list, LISTED, &err), err);
    if (!s) return;
    CHECK(bj_seeds_arm_count(s) == 2 && bj_seeds_metric_count(s) == 3 && bj_seeds_count(s) == 2);
    CHECK(!strcmp(bj_seeds_arm(s, 0), "b") && bj_seeds_seed(s, 0) == 2);
    CHECK(!strcmp(bj_seeds_metric(s, 0).name, "traj_es"));
    CHECK(!strcmp(bj_seeds_metric(s, 2).name, "mystery"));
    CHECK(bj_seeds_value(s, 0, 2, 1) == 1.5 && bj_seeds_value(s, 1, 1, 0) == -0.002);
    CHECK(bj_seeds_value(s, 1, 0, 1) == 0.25 && bj_seeds_value(s, 0, 0, 0) == 4);
    CHECK(isnan(bj_seeds_value(s, 0, 0, 1)));
    bj_seeds_free(s);

    const bj_seed_value good = list[3];
    const struct {
        bj_seed_value value;
        const char *named;
    } flaws[] = {
        {{"", "ece", 0, 1}, "entry 3: arm is empty"},
        {{"b", "e\ne", 0, 1}, "entry 3: metric has the control character 0x0a"},
        {{"b", "ece", -1, 1}, "entry 3: seed is -1"},
        {{"b", "ece", 0, INFINITY}, "entry 3: seed is 0 and value is inf"},
        {{"a", "brier", 2, 1},
         "entry 3: duplicate value for arm 'a', seed 2, metric 'brier'; the first is in entry 1"}};
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        list[3] = flaws[i].value;
        CHECK(bj_seeds_create(&s, "somewhere", list, LISTED, &err) == BJ_EFORMAT && !s);
        CHECK_CONTAINS(err.message, flaws[i].named);
        CHECK_CONTAINS(err.message, "somewhere: ");
    }
    list[3] = good;
    CHECK(bj_seeds_create(&s, "somewhere", list, 0, &err) == BJ_EFORMAT && !s);
    bj_status status = BJ_ENOMEM;
    for (long n = 0; status != BJ_OK; n++) {
        bj_alloc_fail_after(n);
        status = bj_seeds_create(&s, "somewhere", list, LISTED, &err);
        bj_alloc_fail_after(-1);
        CHECK(status == (s ? BJ_OK : BJ_ENOMEM));
    }
    bj_seeds_free(s);
}

int main(void) {
    if (!mkdtemp(folder)) return 1;
    snprintf(path, sizeof path, "%s/in.csv", folder);
    test_order();
    test_folder();
    test_refusals();
    test_limits();
    test_missing();
    test_allocations();
    test_mutations();
    test_list();
    CHECK(bj_alloc_live() == 0);
    unlink(path);
    rmdir(folder);
    return test_report("seeds");
}
