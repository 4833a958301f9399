/* test_progress.c - tests progress output without a terminal, which is one line about every five
 * seconds.
 *
 * The tests do not wait, but move the time of the last line back. Bars are tested on a real
 * terminal by tests/cli/train.sh.
 */
#define _POSIX_C_SOURCE 200809L
#include "progress.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/test.h"

static FILE *caught;
static int before;

static void catch_stderr(void) {
    caught = tmpfile();
    before = dup(STDERR_FILENO);
    if (!caught || before < 0) exit(1);
    fflush(stderr);
    dup2(fileno(caught), STDERR_FILENO);
}

/* What was printed since. */
static const char *release_stderr(void) {
    static char text[2048];
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(caught);
    text[fread(text, 1, sizeof text - 1, caught)] = '\0';
    fclose(caught);
    return text;
}

static void test_plain(void) {
    catch_stderr();
    cli_progress p = cli_progress_begin("scenes", 200);
    const int terminal = p.terminal;
    cli_progress_show(&p, 10, "too early");
    p.start -= 10;
    p.last -= 4.5;
    cli_progress_show(&p, 10, "still too early");
    p.last -= 1;
    cli_progress_show(&p, 100, "a note");
    p.start -= 6; /* and the same rate */
    p.last -= 6;
    p.eta.at -= 6;
    p.eta.end -= 6;
    cli_progress_show(&p, 160, "later");
    cli_progress_show(&p, 101, "too early again");
    cli_progress_clear(&p);
    const char *text = release_stderr();
    CHECK(!terminal);
    CHECK_MSG(!strcmp(text, "100 of 200 scenes, 10/s, a note\n"
                            "160 of 200 scenes, 10/s, 4 s left, later\n"), "%s", text);
}

static void test_rate(void) {
    catch_stderr();
    cli_progress p = cli_progress_begin_at("steps", 400, 100);
    p.last -= 6;
    cli_progress_show_rate(&p, 100, 9, "scenes", 9, "nothing was done yet");
    cli_progress_show_rate(&p, 300, 1234.4, "scenes", 59.6, "2/4 loss 1.00");
    cli_progress_show_rate(&p, 301, 9, "scenes", 9, "too early");
    const char *text = release_stderr();
    CHECK_MSG(!strcmp(text, "300 of 400 steps, 1234 scenes/s, 2/4 loss 1.00\n"), "%s",
              text);
}

/* The work of an earlier process must not affect the estimated speed of this process. */
static void test_before(void) {
    catch_stderr();
    cli_progress p = cli_progress_begin_at("scenes", 400, 300);
    p.start -= 10;
    p.last -= 6;
    cli_progress_show(&p, 350, "");
    cli_progress_end(&p, 400, "done");
    const char *text = release_stderr();
    CHECK_MSG(!strncmp(text, "350 of 400 scenes, 5/s, \n", 25), "%s", text);
    CHECK_CONTAINS(text, "\n400 of 400 scenes in 10.0 s, done\n");
}

/* Tests that an estimate is shown only after two estimates agree, and always after that. */
static void test_eta(void) {
    cli_eta eta = {0};
    CHECK(!cli_eta_add(&eta, 100, 4000));
    CHECK(!cli_eta_add(&eta, 102, 1300)); /* too soon to be compared */
    CHECK(!cli_eta_add(&eta, 105, 1300)); /* disagrees with the first */
    CHECK(!cli_eta_add(&eta, 109, 1290));
    CHECK(cli_eta_add(&eta, 111, 1100));
    CHECK(cli_eta_add(&eta, 112, 4000));
    CHECK(!cli_eta_add(&eta, 113, NAN));
    cli_eta other = {0};
    CHECK(!cli_eta_add(&other, 100, 60) && !cli_eta_add(&other, 110, 30));
    CHECK(cli_eta_add(&other, 116, 24));
}

int main(void) {
    test_eta();
    test_plain();
    test_rate();
    test_before();
    return test_report("progress");
}
