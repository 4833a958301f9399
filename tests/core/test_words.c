/* test_words.c - tests the edit distance and the choice of the nearest word. */
#include <branchjepa/branchjepa.h>

#include "test.h"

static const char *nearest(const char *word, const char *const *candidates) {
    bj_nearest near = BJ_NEAREST(word);
    for (; *candidates; candidates++) bj_nearest_offer(&near, *candidates);
    return near.best ? near.best : "(none)";
}

int main(void) {
    CHECK(bj_edit_distance("info", "info") == 0);
    CHECK(bj_edit_distance("inof", "info") == 1); /* a swap */
    CHECK(bj_edit_distance("", "abc") == 3);
    CHECK(bj_edit_distance("abc", "") == 3);
    CHECK(bj_edit_distance("kitten", "sitting") == 3);
    CHECK(bj_edit_distance("flaw", "lawn") == 2);

    /* If a word is too long to compare, the length of the longer word is returned as the
     * distance. */
    char word[200];
    memset(word, 'a', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    CHECK(bj_edit_distance(word, "a") == 199);
    CHECK(bj_edit_distance("a", word) == 199);
    word[64] = '\0';
    CHECK(bj_edit_distance(word, "a") == 63);

    static const char *const arms[] = {"fullset", "mdn", "mdn-global", "point", "a", NULL};
    CHECK(!strcmp(nearest("fulset", arms), "fullset"));
    CHECK(!strcmp(nearest("mdn-globl", arms), "mdn-global"));
    CHECK(!strcmp(nearest("mnd", arms), "mdn"));
    CHECK(!strcmp(nearest("ponit", arms), "point"));
    CHECK(!strcmp(nearest("pxixy", arms), "(none)"));  /* 2 of 5 letters may differ, not 3 */
    CHECK(!strcmp(nearest("mxy", arms), "(none)"));    /* 1 of 3 letters may differ */
    CHECK(!strcmp(nearest("fllst", arms), "fullset")); /* 2 of 7 letters may differ */
    CHECK(!strcmp(nearest("flst", arms), "(none)"));
    CHECK(!strcmp(nearest("x", arms), "(none)")); /* at least one letter must match */
    CHECK(!strcmp(nearest("", arms), "(none)"));

    /* The first of several equally near words is chosen. */
    static const char *const twins[] = {"abcd1", "abcd2", NULL};
    CHECK(!strcmp(nearest("abcd3", twins), "abcd1"));
    return test_report("core words");
}
