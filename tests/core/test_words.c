/* test_words.c - edit distance, and which word was meant. */
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

    /* Words too long to compare are as far apart as the longer one is long. */
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
    CHECK(!strcmp(nearest("pxixy", arms), "(none)"));  /* two letters of five, not three */
    CHECK(!strcmp(nearest("mxy", arms), "(none)"));    /* one letter of three */
    CHECK(!strcmp(nearest("fllst", arms), "fullset")); /* two letters of seven */
    CHECK(!strcmp(nearest("flst", arms), "(none)"));
    CHECK(!strcmp(nearest("x", arms), "(none)")); /* not when every letter is wrong */
    CHECK(!strcmp(nearest("", arms), "(none)"));

    /* Of equally near ones the first. */
    static const char *const twins[] = {"abcd1", "abcd2", NULL};
    CHECK(!strcmp(nearest("abcd3", twins), "abcd1"));
    return test_report("core words");
}
