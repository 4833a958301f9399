/* kernels_avx2.c - kernels_body.h for AVX2 and FMA. */
#if defined(__x86_64__)
#if !defined(__AVX2__) || !defined(__FMA__)
#error "kernels_avx2.c must be compiled with -mavx2 -mfma"
#endif
#define BJ_BODY_TABLE bj_kernels_avx2
#define BJ_BODY_MIXED bj_mixed_avx2
#define BJ_BODY_ISA "avx2"
#define BJ_BODY_BYTES 32
#define BJ_BODY_ROWS 4
#define BJ_BODY_MAX(a, b) ((vec)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define BJ_BODY_MIN(a, b) ((vec)_mm256_min_ps((__m256)(a), (__m256)(b)))
#include <immintrin.h>

#include "kernels/kernels_body.h"
#else
typedef int bj_kernels_avx2_is_for_x86_64;
#endif
