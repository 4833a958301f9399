/* bf16.h - bfloat16 numbers, which are the upper halves of floats. */
#ifndef BJ_CORE_BF16_H
#define BJ_CORE_BF16_H

#include <stdint.h>
#include <string.h>

/* Rounds to nearest even. NaN stays NaN. */
static inline uint16_t bj_bf16_round(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float bj_bf16_widen(uint16_t half) {
    const uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
