/* limits.c - measures how many multiply-adds this machine does per second, in registers.
 *
 *   cc -O2 -pthread bench/limits.c -o limits && ./limits [THREADS]
 *
 * Prints JSON: GFLOP/s of all threads together for single-precision multiply-adds, with the faster
 * of 256-bit and 512-bit vectors, and for bfloat16 pairs (AVX512_BF16). A number is null if the
 * processor does not have the instructions. A multiply-add counts as two operations.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TWELVE(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
/* Twelve independent sums hide the latency of an instruction. */
#define LOOP(name, isa, vector, zero, code)                                                        \
    __attribute__((target(isa))) static void name(long rounds) {                                   \
        vector x = zero(), y = zero();                                                             \
        vector s0 = x, s1 = x, s2 = x, s3 = x, s4 = x, s5 = x, s6 = x, s7 = x, s8 = x, s9 = x;     \
        vector s10 = x, s11 = x;                                                                   \
        for (long i = 0; i < rounds; i++) { TWELVE(code) }                                         \
    }
#define FMA(i) __asm__ volatile("vfmadd231ps %1, %2, %0" : "+v"(s##i) : "v"(x), "v"(y));
#define DOT(i) __asm__ volatile("vdpbf16ps %1, %2, %0" : "+v"(s##i) : "v"(x), "v"(y));
LOOP(fma256, "avx2,fma", __m256, _mm256_setzero_ps, FMA)
LOOP(fma512, "avx512f", __m512, _mm512_setzero_ps, FMA)
LOOP(bf16, "avx512f,avx512bf16", __m512, _mm512_setzero_ps, DOT)

typedef struct job {
    void (*loop)(long rounds);
    double operations, rate; /* operations per round; GFLOP/s */
} job;

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Measures for about 0.1 s and keeps the best part, because other processes interrupt the loop. */
static void *run(void *argument) {
    enum { PARTS = 20, ROUNDS = 1000000 };
    job *j = argument;
    j->rate = 0;
    for (int i = 0; i < PARTS; i++) {
        const double start = seconds();
        j->loop(ROUNDS);
        const double rate = j->operations * ROUNDS / (seconds() - start) / 1e9;
        if (rate > j->rate) j->rate = rate;
    }
    return NULL;
}

static double measure(void (*loop)(long), double operations, int threads) {
    pthread_t thread[256];
    job jobs[256];
    double sum = 0;
    for (int i = 0; i < threads; i++) {
        jobs[i] = (job){loop, operations, 0};
        if (pthread_create(&thread[i], NULL, run, &jobs[i])) exit(1);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        sum += jobs[i].rate;
    }
    return sum;
}
#endif

static void print(const char *name, double rate) {
    if (rate > 0) printf("\"%s\": %.1f", name, rate);
    else printf("\"%s\": null", name);
}

int main(int argc, char **argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    double fma = 0, pairs = 0;
    if (threads < 1 || threads > 256) return 2;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("fma")) fma = measure(fma256, 12 * 8 * 2, threads);
    if (__builtin_cpu_supports("avx512f")) {
        const double wide = measure(fma512, 12 * 16 * 2, threads);
        if (wide > fma) fma = wide;
    }
    if (__builtin_cpu_supports("avx512bf16")) pairs = measure(bf16, 12 * 32 * 2, threads);
#endif
    printf("{\"threads\": %d, ", threads);
    print("fma_gflops", fma);
    printf(", ");
    print("bf16_gflops", pairs);
    printf("}\n");
    return 0;
}
