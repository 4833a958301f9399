/* facts.c - reads the metadata of a model file without its weights.
 *
 * Returns all metadata sorted by key: the architecture (one entry per field of bj_arch), the
 * entries given by the caller of bj_model_save, format, format_version and sha256. The header and
 * the architecture are checked. The checksum is not verified, because that requires reading the
 * weights.
 * Test: tests/model/test_facts.c
 */
#include <string.h>

#include "core/alloc.h"
#include "model/checkpoint.h"

struct bj_facts {
    int count;
    bj_fact *list; /* (count) pointers into text */
    char *text;
};

static bj_status copy_facts(bj_facts *facts, const bj_safetensors *st, bj_error *err) {
    const int count = bj_safetensors_metadata_count(st);
    size_t size = 0;
    for (int i = 0; i < count; i++) {
        const bj_fact f = bj_safetensors_metadata_at(st, i);
        size += strlen(f.key) + strlen(f.value) + 2;
    }
    BJ_TRY(BJ_ALLOC(facts->list, (size_t)count, err));
    BJ_TRY(BJ_ALLOC(facts->text, size, err));
    char *at = facts->text;
    for (int i = 0; i < count; i++) {
        const bj_fact f = bj_safetensors_metadata_at(st, i);
        const char *const parts[2] = {f.key, f.value};
        const char *copies[2];
        for (int j = 0; j < 2; j++) {
            const size_t length = strlen(parts[j]) + 1;
            copies[j] = memcpy(at, parts[j], length);
            at += length;
        }
        facts->list[i] = (bj_fact){copies[0], copies[1]};
    }
    facts->count = count;
    return BJ_OK;
}

bj_status bj_facts_read(bj_facts **out, const char *model_path, bj_error *err) {
    bj_safetensors *st = NULL;
    bj_facts *facts = NULL;
    bj_arch arch;
    bj_status status;
    if (!out || !model_path) return BJ_FAIL(err, BJ_EARG, "facts: output or path is missing");
    *out = NULL;
    BJ_TRY(bj_safetensors_open(&st, model_path, err));
    BJ_GOTO(status, done, bj_checkpoint_check_format(st, BJ_MODEL_FORMAT, err));
    BJ_GOTO(status, done, bj_arch_from_metadata(&arch, st, err));
    BJ_GOTO(status, done, BJ_ALLOC(facts, 1, err));
    BJ_GOTO(status, done, copy_facts(facts, st, err));
    *out = facts;
    facts = NULL;
done:
    bj_facts_free(facts);
    bj_safetensors_close(st);
    return status;
}

void bj_facts_free(bj_facts *facts) {
    if (!facts) return;
    bj_free(facts->list);
    bj_free(facts->text);
    bj_free(facts);
}

int bj_facts_count(const bj_facts *facts) { return facts->count; }
bj_fact bj_facts_at(const bj_facts *facts, int index) { return facts->list[index]; }

const char *bj_facts_get(const bj_facts *facts, const char *key) {
    for (int i = 0; i < facts->count; i++)
        if (!strcmp(facts->list[i].key, key)) return facts->list[i].value;
    return NULL;
}
