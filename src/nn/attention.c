/* attention.c - see attention.h. */
#include "nn/attention.h"

#include <math.h>

#ifdef BJ_DOUBLE
#define EXP exp
#else
#define EXP expf
#endif

void bj_attention_forward(const bj_kernels *k, bj_real *h, const bj_real *a, size_t ldt,
                          const bj_tokens tokens[2], size_t ldr, int G, int TH) {
    for (int s = 0; s < 2; s++)
        k->scores(tokens[s].alpha, tokens[s].r, ldr, a + s * TH, ldt, tokens[s].S, G, TH);
    for (int g = 0; g < G; g++) {
        bj_real most = -INFINITY;
        for (int s = 0; s < 2; s++) {
            const bj_real c = a[(size_t)g * ldt + 2 * TH + s];
            for (int t = 0; t < tokens[s].S; t++) {
                bj_real *score = &tokens[s].alpha[t * G + g];
                *score += c;
                if (!(*score <= most)) most = *score; /* NaN stays */
            }
        }
        bj_real mass[2] = {0, 0};
        for (int s = 0; s < 2; s++) {
            for (int t = 0; t < tokens[s].S; t++) {
                bj_real *score = &tokens[s].alpha[t * G + g];
                *score = EXP(*score - most);
                mass[s] += *score;
            }
        }
        const bj_real scale = 1 / (mass[0] + mass[1]);
        for (int s = 0; s < 2; s++) {
            for (int t = 0; t < tokens[s].S; t++) tokens[s].alpha[t * G + g] *= scale;
            h[(size_t)g * ldt + 2 * TH + s] = mass[s] * scale;
        }
    }
    for (int s = 0; s < 2; s++)
        k->pool(h + s * TH, ldt, tokens[s].alpha, tokens[s].r, ldr, tokens[s].S, G, TH);
}

void bj_attention_backward(const bj_kernels *k, bj_real *da, const bj_real *dh, const bj_real *a,
                           size_t ldt, const bj_tokens tokens[2], size_t ldr, int G, int TH) {
    /* forward: h = sum alpha r and sum alpha, hence dalpha = dh . r + dh_mass */
    for (int s = 0; s < 2; s++)
        k->scores(tokens[s].dscore, tokens[s].r, ldr, dh + s * TH, ldt, tokens[s].S, G, TH);
    for (int g = 0; g < G; g++) {
        bj_real mean = 0;
        for (int s = 0; s < 2; s++) {
            const bj_real dmass = dh[(size_t)g * ldt + 2 * TH + s];
            for (int t = 0; t < tokens[s].S; t++) {
                tokens[s].dscore[t * G + g] += dmass;
                mean += tokens[s].alpha[t * G + g] * tokens[s].dscore[t * G + g];
            }
        }
        for (int s = 0; s < 2; s++) {
            /* forward: alpha = softmax(score); score = a . r + c */
            bj_real sum = 0;
            for (int t = 0; t < tokens[s].S; t++) {
                bj_real *d = &tokens[s].dscore[t * G + g];
                *d = tokens[s].alpha[t * G + g] * (*d - mean);
                sum += *d;
            }
            da[(size_t)g * ldt + 2 * TH + s] = sum;
        }
    }
    for (int s = 0; s < 2; s++) {
        k->pool(da + s * TH, ldt, tokens[s].dscore, tokens[s].r, ldr, tokens[s].S, G, TH);
        k->pool_backward(tokens[s].dr, ldr, tokens[s].alpha, tokens[s].dscore, dh + s * TH, ldt,
                         a + s * TH, ldt, tokens[s].r, ldr, tokens[s].S, G, TH);
    }
}
