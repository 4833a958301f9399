/* report_choose.c - see report_choose.h. */
#include "report_choose.h"

#include <stdlib.h>

typedef struct ticket {
    uint64_t hash;
    int64_t index;
} ticket;

static int by_hash(const void *a, const void *b) {
    const ticket *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* FNV-1a with a final mixing step, because ids often differ only in their last characters. */
static uint64_t hash_of(const char *id) {
    uint64_t h = 14695981039346656037u;
    for (; *id; id++) h = (h ^ (unsigned char)*id) * 1099511628211u;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
}

bj_status report_choose(int64_t *chosen, int *result, int wanted, int64_t count,
                        const char *(*id)(const void *context, int64_t index), const void *context,
                        bj_error *err) {
    ticket *list = malloc(((size_t)count + 1) * sizeof *list);
    int64_t n = 0;
    *result = 0;
    if (!list) return cli_error(err, BJ_ENOMEM, "out of memory");
    for (int64_t i = 0; i < count; i++) {
        const char *name = id(context, i);
        if (name) list[n++] = (ticket){hash_of(name), i};
    }
    if (n) qsort(list, (size_t)n, sizeof *list, by_hash);
    for (; *result < wanted && *result < n; ++*result) chosen[*result] = list[*result].index;
    free(list);
    return BJ_OK;
}
