/* dispatch.c - selects the kernel table for this machine. */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "kernels/kernels.h"

const bj_kernels *bj_kernels_at(int i) {
    const bj_kernels *available[3] = {&bj_kernels_c, NULL, NULL};
#if defined(__x86_64__)
    int n = 1;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        available[n++] = &bj_kernels_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        available[n++] = &bj_kernels_avx512;
#endif
    return i >= 0 && i < 3 ? available[i] : NULL;
}

bj_status bj_kernels_find(const bj_kernels **out, const char *isa, bj_error *err) {
    if (!isa) isa = getenv("BJ_ISA");
    char names[64] = "";
    *out = NULL;
    for (int i = 0; bj_kernels_at(i); i++) {
        const bj_kernels *k = bj_kernels_at(i);
        if (!isa || !*isa || strcmp(isa, k->isa) == 0) *out = k;
        strcat(strcat(names, i ? ", " : ""), k->isa);
    }
    if (*out) return BJ_OK;
    return BJ_FAIL(err, BJ_EARG, "instruction set '%s' is not available, expected one of: %s", isa,
                   names);
}
