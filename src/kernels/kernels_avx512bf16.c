/* kernels_avx512bf16.c - compiles kernels_body.h for AVX-512 (F, BW, DQ, VL) with AVX512_BF16. */
#if defined(__x86_64__)
#if !defined(__AVX512F__) || !defined(__AVX512BF16__)
#error "kernels_avx512bf16.c must be compiled with its -mavx512 flags"
#endif
#define BJ_BODY_TABLE bj_kernels_avx512bf16
#define BJ_BODY_MIXED bj_mixed_avx512bf16
#define BJ_BODY_ISA "avx512bf16"
#define BJ_BODY_BF16
#define BJ_BODY_BYTES 64
#define BJ_BODY_ROWS 8
#define BJ_BODY_MAX(a, b) ((vec)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define BJ_BODY_MIN(a, b) ((vec)_mm512_min_ps((__m512)(a), (__m512)(b)))
#include <immintrin.h>

#include "kernels/kernels_body.h"
#else
typedef int bj_kernels_avx512bf16_is_for_x86_64;
#endif
