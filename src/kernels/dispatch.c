/* dispatch.c - selects the kernel table for this machine.
 *
 * The choice depends only on the processor and on BJ_ISA, so all handles of a process use the same
 * table. The entries of `measured` are based on the measurements in docs/PERFORMANCE.md.
 */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "kernels/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Processors on which the AVX-512 kernels were at least as fast as the AVX2 kernels. All other
 * processors use AVX2 in single precision, because wider vectors can lower the clock rate or run in
 * two halves. */
static const struct {
    const char vendor[13];
    unsigned family, model[2]; /* first and last model */
} measured[] = {{"AuthenticAMD", 25, {0x10, 0x1f}}}; /* Zen 4 servers */

static int prefers_avx512(void) {
    unsigned a, b, c, d;
    char vendor[13] = "";
    if (!__get_cpuid(0, &a, &b, &c, &d)) return 0;
    memcpy(vendor, &b, 4), memcpy(vendor + 4, &d, 4), memcpy(vendor + 8, &c, 4);
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    const unsigned base = a >> 8 & 15, family = base == 15 ? base + (a >> 20 & 255) : base;
    const unsigned model = (a >> 4 & 15) | (a >> 12 & 0xf0);
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++)
        if (!strcmp(vendor, measured[i].vendor) && family == measured[i].family &&
            model >= measured[i].model[0] && model <= measured[i].model[1])
            return 1;
    return 0;
}
#endif

const bj_kernels *bj_kernels_at(int i) {
    const bj_kernels *available[4] = {&bj_kernels_c, NULL, NULL, NULL};
#if defined(__x86_64__)
    int n = 1;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        available[n++] = &bj_kernels_avx2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        available[n++] = &bj_kernels_avx512;
        if (__builtin_cpu_supports("avx512bf16")) available[n++] = &bj_kernels_avx512bf16;
    }
#endif
    return i >= 0 && i < 4 ? available[i] : NULL;
}

static const bj_kernels *find(const char *isa) {
    for (int i = 0; bj_kernels_at(i); i++)
        if (!strcmp(isa, bj_kernels_at(i)->isa)) return bj_kernels_at(i);
    return NULL;
}

/* Mixed precision uses the bfloat16 instructions wherever they exist, because one of them replaces
 * two multiply-adds. */
static const bj_kernels *choose(bj_precision precision) {
    const bj_kernels *best = find("avx2");
#if defined(__x86_64__)
    if (precision == BJ_PRECISION_BF16 && find("avx512bf16")) return find("avx512bf16");
    if (find("avx512") && prefers_avx512()) best = find("avx512");
#endif
    (void)precision;
    return best ? best : &bj_kernels_c;
}

bj_status bj_kernels_find(const bj_kernels **out, const char *isa, bj_precision precision,
                          bj_error *err) {
    if (!isa) isa = getenv("BJ_ISA");
    const bj_kernels *k = isa && *isa ? find(isa) : choose(precision);
    *out = k && precision == BJ_PRECISION_BF16 ? k->mixed : k;
    if (k) return BJ_OK;
    char names[64] = "";
    for (int i = 0; bj_kernels_at(i); i++)
        strcat(strcat(names, i ? ", " : ""), bj_kernels_at(i)->isa);
    return BJ_FAIL(err, BJ_EARG, "instruction set '%s' is not available, expected one of: %s", isa,
                   names);
}

const char *bj_isa(bj_precision precision) {
    const bj_kernels *k;
    return bj_kernels_find(&k, NULL, precision, NULL) == BJ_OK ? k->isa : NULL;
}
