/* test_facts.c - tests that the metadata of a model file is read without its weights. */
#define _XOPEN_SOURCE 700
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <branchjepa/branchjepa.h>

#include "core/alloc.h"
#include "support/test.h"

static char folder[] = "/tmp/test_facts.XXXXXX";
static char path[64];

static void save(const bj_fact *facts, int count) {
    bj_error err = {0};
    bj_model *model = NULL;
    bj_arch arch = bj_arch_paper();
    arch.embed = 8;
    arch.heads = 2;
    arch.token_hidden = arch.latent = arch.proj_hidden = arch.atom_hidden = 6;
    arch.router_hidden = arch.decoder_hidden = 5;
    CHECK_OK(bj_model_create(&model, &arch, 1, &err), err);
    CHECK_OK(bj_model_save(model, path, facts, count, &err), err);
    bj_model_free(model);
}

static int says(const bj_facts *facts, const char *key, const char *value) {
    const char *found = bj_facts_get(facts, key);
    return found && !strcmp(found, value);
}

static void test_facts(void) {
    static const bj_fact given[] = {{"seed", "7"}, {"arm", "fullset"}, {"empty", ""}};
    bj_error err = {0};
    bj_facts *facts = NULL;
    save(given, 3);
    CHECK_OK(bj_facts_read(&facts, path, &err), err);
    if (!facts) return;
    CHECK(says(facts, "seed", "7") && says(facts, "arm", "fullset") && says(facts, "empty", ""));
    CHECK(says(facts, "format", "branchjepa-model") && says(facts, "format_version", "1"));
    CHECK(says(facts, "model", "branch") && says(facts, "weighting", "router"));
    CHECK(says(facts, "latent", "6") && says(facts, "fut", "60") && says(facts, "dt", "0.1"));
    CHECK(bj_facts_get(facts, "sha256") && strlen(bj_facts_get(facts, "sha256")) == 64);
    CHECK(!bj_facts_get(facts, "nothing") && !bj_facts_get(facts, "Seed"));
    CHECK(bj_facts_count(facts) == 19 + 3 + 3);
    for (int i = 0; i < bj_facts_count(facts); i++) {
        const bj_fact f = bj_facts_at(facts, i);
        CHECK(says(facts, f.key, f.value));
        if (i) CHECK(strcmp(bj_facts_at(facts, i - 1).key, f.key) < 0); /* sorted and unique */
    }
    /* The file is no longer needed. */
    CHECK(remove(path) == 0);
    CHECK(says(facts, "arm", "fullset"));
    bj_facts_free(facts);
    bj_facts_free(NULL);
}

/* Tests that damaged weights are accepted and a damaged header is rejected. */
static void test_refusals(void) {
    bj_error err = {0};
    bj_facts *facts = NULL;
    save(NULL, 0);
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && pwrite(fd, "?", 1, lseek(fd, 0, SEEK_END) - 1) == 1);
    CHECK_OK(bj_facts_read(&facts, path, &err), err);
    bj_facts_free(facts);

    char header[4096] = {0};
    CHECK(pread(fd, header, sizeof header - 1, 0) > 100);
    const char *heads = NULL; /* "heads":"2", after the 8 length bytes */
    for (int i = 8; i < 4000 && !heads; i++)
        if (!memcmp(header + i, "\"heads\":\"2\"", 11)) heads = header + i + 9;
    CHECK(heads != NULL);
    if (heads) CHECK(pwrite(fd, "x", 1, heads - header) == 1);
    CHECK(bj_facts_read(&facts, path, &err) == BJ_EFORMAT && !facts);
    CHECK_CONTAINS(err.message, "metadata 'heads' is 'x', expected an integer");
    CHECK_CONTAINS(err.message, path);
    CHECK(ftruncate(fd, 100) == 0);
    CHECK(bj_facts_read(&facts, path, &err) == BJ_EFORMAT && !facts);
    close(fd);
    CHECK(remove(path) == 0);
    CHECK(bj_facts_read(&facts, path, &err) == BJ_EIO && !facts);
    CHECK(bj_facts_read(&facts, "tests/golden/training_v1/state.safetensors", &err) == BJ_EFORMAT);
    CHECK_CONTAINS(err.message, "expected branchjepa-model");
    CHECK(bj_facts_read(&facts, NULL, NULL) == BJ_EARG);
}

static void test_memory(void) {
    bj_error err = {0};
    bj_facts *facts = NULL;
    int failures = 0;
    save(NULL, 0);
    const long live = bj_alloc_live();
    for (long n = 0;; n++) {
        bj_alloc_fail_after(n);
        const bj_status status = bj_facts_read(&facts, path, &err);
        bj_alloc_fail_after(-1);
        if (status == BJ_OK) break;
        CHECK(status == BJ_ENOMEM && !facts && bj_alloc_live() == live);
        failures++;
    }
    CHECK(failures >= 3);
    bj_facts_free(facts);
    CHECK(bj_alloc_live() == live);
    CHECK(remove(path) == 0);
}

int main(void) {
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    test_facts();
    test_refusals();
    test_memory();
    CHECK(rmdir(folder) == 0);
    return test_report("facts");
}
