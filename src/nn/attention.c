/* attention.c - see attention.h. */
#include "nn/attention.h"

#include <math.h>

#ifdef BJ_DOUBLE
#define EXP exp
#else
#define EXP expf
#endif

/* Column offsets of the hidden part and of the mass of one token kind in a row of a or h. */
typedef struct columns {
    int hidden[2], mass[2];
} columns;

static columns columns_of(const bj_tokens tokens[2]) {
    const int both = tokens[0].TH + tokens[1].TH;
    return (columns){{0, tokens[0].TH}, {both, both + 1}};
}

void bj_attention_forward(const bj_kernels *k, bj_real *h, const bj_real *a, size_t ldt,
                          const bj_tokens tokens[2], size_t ldr, int G) {
    const columns c = columns_of(tokens);
    for (int s = 0; s < 2; s++)
        k->scores(tokens[s].alpha, tokens[s].r, ldr, a + c.hidden[s], ldt, tokens[s].S, G,
                  tokens[s].TH);
    for (int g = 0; g < G; g++) {
        bj_real most = -INFINITY;
        for (int s = 0; s < 2; s++) {
            const bj_real constant = a[(size_t)g * ldt + c.mass[s]];
            for (int t = 0; t < tokens[s].S; t++) {
                bj_real *score = &tokens[s].alpha[t * G + g];
                *score += constant;
                if (!(*score <= most)) most = *score; /* keeps NaN */
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
            h[(size_t)g * ldt + c.mass[s]] = mass[s] * scale;
        }
    }
    for (int s = 0; s < 2; s++)
        k->pool(h + c.hidden[s], ldt, tokens[s].alpha, tokens[s].r, ldr, tokens[s].S, G,
                tokens[s].TH);
}

double bj_attention_entropy(const bj_tokens tokens[2], int g, int G) {
    double entropy = 0;
    for (int s = 0; s < 2; s++)
        for (int t = 0; t < tokens[s].S; t++) {
            const double alpha = (double)tokens[s].alpha[t * G + g];
            if (alpha > 0) entropy -= alpha * log(alpha);
        }
    return entropy;
}

void bj_attention_backward(const bj_kernels *k, bj_real *da, const bj_real *dh, const bj_real *a,
                           size_t ldt, const bj_tokens tokens[2], size_t ldr, int G) {
    const columns c = columns_of(tokens);
    /* forward: h = sum alpha r and sum alpha, so dalpha = dh . r + dh_mass */
    for (int s = 0; s < 2; s++)
        k->scores(tokens[s].dscore, tokens[s].r, ldr, dh + c.hidden[s], ldt, tokens[s].S, G,
                  tokens[s].TH);
    for (int g = 0; g < G; g++) {
        bj_real mean = 0;
        for (int s = 0; s < 2; s++) {
            const bj_real dmass = dh[(size_t)g * ldt + c.mass[s]];
            for (int t = 0; t < tokens[s].S; t++) {
                tokens[s].dscore[t * G + g] += dmass;
                mean += tokens[s].alpha[t * G + g] * tokens[s].dscore[t * G + g];
            }
        }
        for (int s = 0; s < 2; s++) {
            /* forward: alpha = softmax(score), score = a . r + c */
            bj_real sum = 0;
            for (int t = 0; t < tokens[s].S; t++) {
                bj_real *d = &tokens[s].dscore[t * G + g];
                *d = tokens[s].alpha[t * G + g] * (*d - mean);
                sum += *d;
            }
            da[(size_t)g * ldt + c.mass[s]] = sum;
        }
    }
    for (int s = 0; s < 2; s++) {
        k->pool(da + c.hidden[s], ldt, tokens[s].dscore, tokens[s].r, ldr, tokens[s].S, G,
                tokens[s].TH);
        k->pool_backward(tokens[s].dr, ldr, tokens[s].alpha, tokens[s].dscore, dh + c.hidden[s],
                         ldt, a + c.hidden[s], ldt, tokens[s].r, ldr, tokens[s].S, G,
                         tokens[s].TH);
    }
}
