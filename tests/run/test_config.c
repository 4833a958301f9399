/* test_config.c - tests which YAML and JSON files are accepted, and how they are flattened to
 * assignments. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "run/config.h"
#include "support/test.h"

static bj_error err;

static bj_status parse_bytes(bj_config **out, const char *text, size_t size) {
    err.message[0] = '\0';
    return bj_config_parse(out, text, size, "f", &err);
}

/* "key=value@line key=value@line" */
static void flatten(char *out, size_t size, const bj_config *config) {
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < bj_config_count(config) && at < size; i++) {
        const bj_assignment a = bj_config_at(config, i);
        const char *line = strrchr(a.origin, ':');
        CHECK(line && !strncmp(a.origin, "f:", 2));
        at += (size_t)snprintf(out + at, size - at, "%s%s=%s@%s", i ? " " : "", a.key, a.value,
                               line ? line + 1 : "?");
    }
}

static void test_read(void) {
    static const struct {
        const char *text, *flat;
    } cases[] = {
        {"arm: fullset\noptim:\n  lr: 3e-4\n  clip: 5\n",
         "arm=fullset@1 optim.lr=3e-4@3 optim.clip=5@4"},
        {"{\"arm\": \"fullset\", \"optim\": {\"lr\": 3e-4,\n\"clip\": 5}}",
         "arm=fullset@1 optim.lr=3e-4@1 optim.clip=5@2"},
        {"{\"a\":{\"b\":1,\"c\":[true,\"x\"]}}", "a.b=1@1 a.c.0=true@1 a.c.1=x@1"},
        {"{\n\t\"a\":\t1,\n\t\"b\":\t2\n}\n", "a=1@2 b=2@3"}, /* JSON with tabs */
        {"optim.lr: 1\noptim: {clip: 2}\n", "optim.lr=1@1 optim.clip=2@2"},
        {"seeds: [0, 1]\narms:\n  - a\n  - b: 1\n    c: 2\n",
         "seeds.0=0@1 seeds.1=1@1 arms.0=a@3 arms.1.b=1@4 arms.1.c=2@5"},
        {"# nothing\n\n", ""},
        {"", ""},
        {"{}", ""},
        {"a: {}\nb: []\nc: 1\n", "c=1@3"},
        /* no guesses about types */
        {"a: 010\nb: yes\nc: 1_000\nd: 1.50\ne: 0x1f\nf: 12:30\n",
         "a=010@1 b=yes@2 c=1_000@3 d=1.50@4 e=0x1f@5 f=12:30@6"},
        {"a: ''\nb: \"\"\nc: 'null'\nd: \"~\"\n", "a=@1 b=@2 c=null@3 d=~@4"},
        {"a: 'it''s'\nb: \"x\\ty\\u00e9\\/\"\n", "a=it's@1 b=x\ty\xc3\xa9/@2"},
        {"a: two words # and a remark\n", "a=two words@1"},
        {"a: |\n  x\n  y\n", "a=x\ny\n@1"},
        {"\xef\xbb\xbf"
         "a: 1\r\nb: 2\r\n",
         "a=1@1 b=2@2"},
        {"---\na: 1\n...\n", "a=1@2"},
        {"%YAML 1.1\n---\na: 1\n", "a=1@3"},
        {"? a\n: 1\n", "a=1@2"},
        {"a: nullify\nb: ~x\n", "a=nullify@1 b=~x@2"},
        {"null: 1\n", "null=1@1"},
        {"a.b: 1\na.c: 2\n", "a.b=1@1 a.c=2@2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_config *config = NULL;
        char flat[512];
        const bj_status status = parse_bytes(&config, cases[i].text, strlen(cases[i].text));
        CHECK_MSG(status == BJ_OK, "case %zu: %s", i, err.message);
        flatten(flat, sizeof flat, config);
        CHECK_MSG(!strcmp(flat, cases[i].flat), "case %zu: %s, expected %s", i, flat,
                  cases[i].flat);
        bj_config_free(config);
    }
}

static void test_refused(void) {
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"a: 1\nb: &x 2\n", "f:2: the anchor '&x' is not allowed"},
        {"a: &x {b: 1}\n", "f:1: the anchor '&x' is not allowed"},
        {"a: &x [1]\n", "f:1: the anchor '&x' is not allowed"},
        {"&x a: 1\n", "f:1: the anchor '&x' is not allowed"},
        {"b: 1\na: *x\n", "f:2: the alias '*x' is not allowed"},
        {"*x : 1\n", "the alias '*x' is not allowed"},
        {"a: !!int 1\n", "f:1: the tag 'tag:yaml.org,2002:int' is not allowed"},
        {"a: !mine {b: 1}\n", "the tag '!mine' is not allowed"},
        {"a: !mine [1]\n", "the tag '!mine' is not allowed"},
        {"a: ! x\n", "the tag '!' is not allowed"},
        {"a: 1\nb: 2\na: 3\n", "f:3: 'a' occurs twice, first in line 1"},
        {"a: {b: 1}\na: {c: 2}\n", "f:2: 'a' occurs twice, first in line 1"},
        {"a:\n  b: 1\n  b: 2\n", "f:3: 'a.b' occurs twice, first in line 2"},
        {"a.b: 1\na: {b: 2}\n", "f:2: 'a.b' occurs twice, first in line 1"},
        {"a: {b: 2}\na.b: 1\n", "'a.b' occurs twice"},
        {"a: [1]\na.0: 1\n", "'a.0' occurs twice"},
        {"{\"a\": 1, \"a\": 1}", "f:1: 'a' occurs twice"},
        {"a: 1\n---\nb: 2\n", "f:2: found a second document"},
        {"a: 1\n...\n---\n", "found a second document"},
        {"a:\n", "f:1: 'a' has no value"},
        {"a: ~\n", "'a' has no value"},
        {"b: 1\na: null\n", "f:2: 'a' has no value"},
        {"{\"a\": null}", "'a' has no value"},
        {"a: Null\n", "'a' has no value"},
        {"a: NULL\n", "'a' has no value"},
        {"a: [1, null]\n", "'a.1' has no value"},
        {"- a\n- b\n", "f:1: expected a mapping"},
        {"word\n", "f:1: expected a mapping"},
        {"[]", "f:1: expected a mapping"},
        {"---\n", "expected a mapping"},
        {"{a: 1}: 2\n", "f:1: a key is a mapping or sequence"},
        {"? [a]\n: 2\n", "f:1: a key is a mapping or sequence"},
        {"'': 1\n", "the key '' is empty"},
        {"a: x\xc2\x85y\n", "f:1: the line separator U+0085"},
        {"a: 1\n\"b\": \"x\xe2\x80\xa8y\"\n", "f:2: the line separator U+2028"},
        {"# x\xe2\x80\xa9\n", "f:1: the line separator U+2029"},
        {"\xff\xfe"
         "a\0:\0",
         "f: not YAML or JSON at byte 0"},
        {".a: 1\n", "the key '.a' is empty or has an empty part"},
        {"a.: 1\n", "the key 'a.' is empty"},
        {"a..b: 1\n", "the key 'a..b' is empty"},
        {"a: \"x\\0y\"\n", "f:1: a string contains a zero byte"},
        {"\"x\\0y\": 1\n", "f:1: a string contains a zero byte"},
        {"a: [1\n", "not YAML or JSON: "},
        {"a: 1\n b: 2\n", "f:2: not YAML or JSON: "},
        {"a: {b: 1\n", "from line 1"},
        {"a: 'x\n", "not YAML or JSON: "},
        {"a:\n\t- b\n", "f:2: not YAML or JSON: "},
        {"a: \xff\n", "f: not YAML or JSON at byte 3: "},
        {"a: \x01\n", "f: not YAML or JSON at byte 3: "},
    };
    const long live = bj_alloc_live();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bj_config *config = (bj_config *)&live; /* must be cleared */
        const bj_status status = parse_bytes(&config, cases[i].text, strlen(cases[i].text));
        CHECK_MSG(status == BJ_EARG && !config, "case %zu is accepted: %s", i, cases[i].text);
        CHECK_CONTAINS(err.message, cases[i].message);
        if (status == BJ_OK) bj_config_free(config);
    }
    CHECK(bj_alloc_live() == live);
}

/* --------------------------------------------------------------------------------------- limits */

static void check_size(const char *text, const char *message) {
    bj_config *config = NULL;
    const bj_status status = parse_bytes(&config, text, strlen(text));
    CHECK_MSG(status == (message ? BJ_EARG : BJ_OK), "%s", err.message);
    if (message) CHECK_CONTAINS(err.message, message);
    bj_config_free(config);
}

/* Returns {a: {a: ... 1}} with the given number of braces. */
static void check_depth(int depth, const char *message) {
    char text[1024];
    size_t at = 0;
    for (int i = 0; i < depth; i++) at += (size_t)snprintf(text + at, sizeof text - at, "{a: ");
    text[at++] = '1';
    memset(text + at, '}', (size_t)depth);
    text[at + (size_t)depth] = '\0';
    check_size(text, message);
}

static void test_limits(void) {
    check_depth(BJ_CONFIG_DEPTH, NULL);
    check_depth(BJ_CONFIG_DEPTH + 1, "is nested deeper than 16");
    check_depth(100, "is nested deeper than 16");
    char deep[256] = "a: ";
    memset(deep + 3, '[', 100);
    check_size(deep, "is nested deeper than 16");

    enum { SIZE = BJ_CONFIG_BYTES + 64 };
    char *text = bj_alloc(SIZE, 1);
    CHECK(text != NULL);
    if (!text) return;
    size_t at = 0;
    for (int i = 0; i < BJ_CONFIG_NODES; i++)
        at += (size_t)snprintf(text + at, SIZE - at, "k%d: %d\n", i, i);
    check_size(text, NULL);
    snprintf(text + at, SIZE - at, "more: 1\n");
    check_size(text, "f:4097: more than 4096 values");

    /* keys: 255 bytes are allowed, dots included */
    memset(text, 'k', BJ_CONFIG_KEY_SIZE);
    strcpy(text + BJ_CONFIG_KEY_SIZE - 1, ": 1\n");
    check_size(text, NULL);
    memset(text, 'k', BJ_CONFIG_KEY_SIZE);
    strcpy(text + BJ_CONFIG_KEY_SIZE, ": 1\n");
    check_size(text, "has more than 255 bytes");
    memset(text, 'k', BJ_CONFIG_KEY_SIZE);
    strcpy(text + BJ_CONFIG_KEY_SIZE - 3, ": {k: 1}\n");
    check_size(text, NULL);
    memset(text, 'k', BJ_CONFIG_KEY_SIZE);
    strcpy(text + BJ_CONFIG_KEY_SIZE - 2, ": {k: 1}\n");
    check_size(text, "has more than 255 bytes");

    memset(text, '#', BJ_CONFIG_BYTES + 1);
    bj_config *config = NULL;
    CHECK_OK(parse_bytes(&config, text, BJ_CONFIG_BYTES), err);
    bj_config_free(config);
    CHECK(parse_bytes(&config, text, BJ_CONFIG_BYTES + 1) == BJ_EARG);
    CHECK_CONTAINS(err.message, "f: has 1048577 bytes, expected at most 1048576");
    bj_free(text);
}

/* ---------------------------------------------------------------------------------------- files */

static void test_file(void) {
    char path[] = "/tmp/test_config.XXXXXX", origin[64];
    const int file = mkstemp(path);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    CHECK(stream != NULL);
    if (!stream) return;
    fputs("a: 1\nb:\n  c: [2, 3]\n", stream);
    CHECK(!fclose(stream));
    bj_config *config = NULL;
    CHECK_OK(bj_config_read(&config, path, &err), err);
    CHECK(bj_config_count(config) == 3);
    const bj_assignment last = bj_config_at(config, 2);
    snprintf(origin, sizeof origin, "%s:3", path);
    CHECK(last.key && !strcmp(last.key, "b.c.1") && !strcmp(last.value, "3"));
    CHECK(last.origin && !strcmp(last.origin, origin));
    CHECK(bj_config_at(config, 3).key == NULL && bj_config_at(config, -1).key == NULL);
    const char *found = bj_config_get(config, "b.c.0");
    CHECK(found && !strcmp(found, "2"));
    CHECK(!bj_config_get(config, "b") && !bj_config_get(config, "b.c"));
    CHECK(!bj_config_get(config, NULL) && !bj_config_get(NULL, "a") && !bj_config_count(NULL));
    bj_config_free(config);
    bj_config_free(NULL);

    const long live = bj_alloc_live();
    for (long n = 0; n < 100; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_config_read(&config, path, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) {
            CHECK(n >= 6); /* allocations: the text, the config and five nodes, some of which may
                              share a block */
            bj_config_free(config);
            CHECK(bj_alloc_live() == live);
            break;
        }
        CHECK_MSG(status == BJ_ENOMEM && !config, "%s", err.message);
        CHECK(bj_alloc_live() == live);
    }
    unlink(path);
    CHECK(bj_config_read(&config, path, &err) == BJ_EIO && !config);
    CHECK_CONTAINS(err.message, path);
    CHECK(bj_config_read(NULL, path, &err) == BJ_EARG);
    CHECK(bj_config_read(&config, NULL, &err) == BJ_EARG);
    CHECK(bj_config_read(&config, "/tmp", &err) != BJ_OK && !config);
}

int main(void) {
    test_read();
    test_refused();
    test_limits();
    test_file();
    return test_report("run config");
}
