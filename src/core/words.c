/* words.c - finds the closest word for "did you mean" hints. Test: tests/core/test_words.c */
#include <string.h>

#include "core/status.h"

enum { LONGEST_WORD = 64 }; /* longer words are not compared */

static int least(int a, int b) { return a < b ? a : b; }

int bj_edit_distance(const char *a, const char *b) {
    const size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > LONGEST_WORD || b_size > LONGEST_WORD)
        return (int)(a_size > b_size ? a_size : b_size);
    const int n = (int)a_size, m = (int)b_size;
    int cost[LONGEST_WORD + 1][LONGEST_WORD + 1]; /* [i][j]: distance between a[0..i) and b[0..j) */
    for (int i = 0; i <= n; i++) cost[i][0] = i;
    for (int j = 0; j <= m; j++) cost[0][j] = j;
    for (int i = 1; i <= n; i++)
        for (int j = 1; j <= m; j++) {
            int best = cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            best = least(best, cost[i - 1][j] + 1);
            best = least(best, cost[i][j - 1] + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, cost[i - 2][j - 2] + 1);
            cost[i][j] = best;
        }
    return cost[n][m];
}

void bj_nearest_offer(bj_nearest *nearest, const char *candidate) {
    const int distance = bj_edit_distance(nearest->word, candidate);
    const int length = (int)strlen(candidate);
    /* Allow 1 error in words of up to 3 letters, 2 in words of 4 or 5, and a third of the letters
     * in longer words. The distance must also be less than the word length. */
    const int allowed = length < 6 ? 1 + (length > 3) : length / 3;
    if (distance > allowed || distance >= length) return;
    if (nearest->best && distance >= nearest->distance) return;
    nearest->best = candidate;
    nearest->distance = distance;
}
