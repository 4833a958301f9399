/* fuzz_safetensors.c - fuzz target of the safetensors reader.
 *
 * For any input, the reader must fail with a message, or return views that are inside the file,
 * contiguous and found by name. Violations abort.
 * Corpus: tests/fuzz/corpus/safetensors
 */
#include <string.h>

#include "core/alloc.h"
#include "core/safetensors.h"
#include "fuzz.h"

static void examine(const bj_safetensors *st, const uint8_t *file, size_t size) {
    bj_error err;
    const uint8_t *next = NULL;
    const int count = bj_safetensors_count(st);
    unsigned sum = 0;
    for (int i = 0; i < count; i++) {
        const bj_tensor_view *view = bj_safetensors_at(st, i);
        const uint8_t *begin = view->data;
        size_t product = bj_dtype_size(view->dtype);
        demand(view->rank >= 0 && view->rank <= BJ_SAFETENSORS_MAX_RANK);
        for (int d = 0; d < view->rank; d++) product *= (size_t)view->shape[d];
        demand(product == view->bytes);
        demand(begin >= file + 8 && begin <= file + size);
        demand(view->bytes <= (size_t)(file + size - begin));
        demand(!next || begin == next);
        next = begin + view->bytes;
        for (size_t b = 0; b < view->bytes; b++) sum += begin[b];
        demand(bj_safetensors_find(st, view->name) == view);

        bj_real *value = bj_alloc(view->count, sizeof *value);
        demand(value != NULL);
        const bj_status status =
            bj_safetensors_read_real(value, st, view->name, view->rank, view->shape, &err);
        demand(status == BJ_OK || ((status == BJ_EFORMAT || status == BJ_ENONFINITE) &&
                                   strstr(err.message, "tensor '")));
        bj_free(value);
    }
    demand(!count || next == file + size);
    for (int i = 0; i < bj_safetensors_metadata_count(st); i++) {
        const bj_fact fact = bj_safetensors_metadata_at(st, i);
        demand(bj_safetensors_metadata(st, fact.key) == fact.value);
        sum += (unsigned)strlen(fact.value);
    }
    static volatile unsigned sink; /* prevents removal of the reads */
    sink = sum;
    (void)sink;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const long live = bj_alloc_live();
    bj_safetensors *st = NULL;
    bj_error err = {0};
    const bj_status status = bj_safetensors_open_memory(&st, data, size, "fuzz", &err);
    fuzz_accepted = status == BJ_OK;
    if (status == BJ_OK) {
        examine(st, data, size);
        bj_safetensors_close(st);
    } else {
        demand(st == NULL && status == BJ_EFORMAT && err.code == status);
        demand(!strncmp(err.message, "fuzz: ", 6));
    }
    demand(bj_alloc_live() == live);
    return 0;
}
