/* test_options.c - tests the option parser with every type of value, and the mapping to exit
 * codes. */
#define _POSIX_C_SOURCE 200809L /* setenv, dup2 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"
#include "support/test.h"

typedef struct values {
    int flag, threads, choice;
    uint64_t seed;
    double rate;
    const char *out;
    cli_list list;
} values;

enum { MAX_ARGUMENTS = 16 };

static char message[4096]; /* what the last parse printed to stderr */
static char *arguments[MAX_ARGUMENTS];
static int operands;

/* Parses a line that is split at spaces, and captures the output. */
static int parse(values *v, const char *line, int max_operands) {
    static char text[512];
    int argc = 0;
    snprintf(text, sizeof text, "%s", line);
    for (char *word = strtok(text, " "); word && argc < MAX_ARGUMENTS - 1; word = strtok(NULL, " "))
        arguments[argc++] = word;
    arguments[argc] = NULL;
    const cli_option options[] = {
        {"flag", 'f', CLI_FLAG, NULL, &v->flag, 0, 0, "a flag"},
        {"choice", 0, CLI_CHOICE, "one|two|three", &v->choice, 0, 0, "a choice"},
        {"learning-rate", 'r', CLI_REAL, "X", &v->rate, 0, 1, "a number"},
        {"out", 'o', CLI_TEXT, "FILE", &v->out, 0, 0, "a text"},
        {"list", 'l', CLI_LIST, "NAME", &v->list, 0, 0, "several texts"},
        CLI_OPTION_THREADS(&v->threads),
        CLI_OPTION_SEED(&v->seed),
        CLI_OPTION_END,
    };
    const cli_usage usage = {.verb = "verb",
                             .summary = "test",
                             .operands = "FILE...",
                             .min_operands = max_operands > 0,
                             .max_operands = max_operands,
                             .examples = "bjepa verb\n",
                             .options = options};
    fflush(stderr);
    const int saved = dup(STDERR_FILENO);
    FILE *capture = tmpfile();
    if (saved < 0 || !capture || dup2(fileno(capture), STDERR_FILENO) < 0) exit(1);
    const int result = cli_parse(&usage, argc, arguments, &operands);
    fflush(stderr);
    rewind(capture);
    message[fread(message, 1, sizeof message - 1, capture)] = '\0';
    if (dup2(saved, STDERR_FILENO) < 0) exit(1);
    close(saved);
    fclose(capture);
    return result;
}

static void test_values(void) {
    values v = {.threads = 7, .choice = -1};
    CHECK(parse(&v, "verb", 0) == CLI_CONTINUE);
    CHECK(!v.flag && v.threads == 7 && v.choice == -1 && v.seed == 0 && v.rate == 0 && !v.out);
    CHECK(parse(&v,
                "verb --flag --threads 3 --choice two --seed=18446744073709551615 "
                "--learning-rate 2.5e-1 --out x=y",
                0) == CLI_CONTINUE);
    CHECK(v.flag == 1 && v.threads == 3 && v.choice == 1 && v.seed == UINT64_MAX);
    CHECK(v.rate == 0.25);
    CHECK(v.out && !strcmp(v.out, "x=y"));
    errno = ERANGE; /* left behind by somebody else */
    CHECK(parse(&v, "verb -j5 -r 0.5 -ofile --threads=9", 0) == CLI_CONTINUE);
    CHECK(v.threads == 9 && v.rate == 0.5 && !strcmp(v.out, "file"));
    CHECK(message[0] == '\0');
}

static void test_lists(void) {
    values v = {0};
    CHECK(parse(&v, "verb --list a -lb,c --out x --list=a", 0) == CLI_CONTINUE);
    CHECK(v.list.count == 3 && !strcmp(v.list.items[0], "a") && !strcmp(v.list.items[1], "b,c"));
    CHECK(!strcmp(v.list.items[2], "a") && !strcmp(v.out, "x"));
    setenv("BJEPA_LIST", "d", 1);
    v = (values){0};
    CHECK(parse(&v, "verb", 0) == CLI_CONTINUE);
    CHECK(v.list.count == 1 && !strcmp(v.list.items[0], "d"));
    v = (values){0};
    CHECK(parse(&v, "verb -l e", 0) == CLI_CONTINUE);
    CHECK(v.list.count == 1 && !strcmp(v.list.items[0], "e"));
    unsetenv("BJEPA_LIST");
    v.list.count = CLI_LIST_SIZE;
    CHECK(parse(&v, "verb -l f", 0) == CLI_USAGE);
    CHECK_CONTAINS(message, "-l is given more than 64 times");
}

static void test_operands(void) {
    values v = {0};
    CHECK(parse(&v, "verb a -f b --threads 2 - -- --flag", 4) == CLI_CONTINUE);
    CHECK(operands == 4 && v.flag == 1 && v.threads == 2);
    CHECK(!strcmp(arguments[1], "a") && !strcmp(arguments[2], "b"));
    CHECK(!strcmp(arguments[3], "-") && !strcmp(arguments[4], "--flag"));
    CHECK(parse(&v, "verb", 1) == CLI_USAGE);
    CHECK_CONTAINS(message, "found no argument, expected FILE...");
    CHECK(parse(&v, "verb a b", 1) == CLI_USAGE);
    CHECK_CONTAINS(message, "unexpected argument 'b'");
}

static void test_mistakes(void) {
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"verb --threads x", "--threads: found 'x', expected an integer from 0 to 1024"},
        {"verb --threads=", "--threads: found ''"},
        {"verb -j 1025", "-j: found '1025'"},
        {"verb -j -1", "-j: found '-1'"},
        {"verb -j 99999999999999999999", "expected an integer"},
        {"verb --seed -1", "--seed: found '-1', expected an integer from 0"},
        {"verb --seed 18446744073709551616", "--seed: found"},
        {"verb --learning-rate nan", "found 'nan', expected a number from 0 to 1"},
        {"verb --learning-rate 1.5", "found '1.5'"},
        {"verb --learning-rate 0.5s", "found '0.5s'"},
        {"verb --choice tow", "expected one|two|three; did you mean 'two'?"},
        {"verb --choice thre", "did you mean 'three'?"},
        {"verb --choice one|two", "found 'one|two', expected"},
        {"verb --flag=1", "--flag takes no value, found '1'"},
        {"verb -f1", "-f takes no value, found '1'"},
        {"verb --out", "--out needs a value: FILE"},
        {"verb --thread 1", "unknown option '--thread'; did you mean '--threads'?"},
        {"verb --lerning-rate=1",
         "unknown option '--lerning-rate'; did you mean '--learning-rate'?"},
        {"verb -x", "unknown option '-x'"},
        {"verb --hepl", "did you mean '--help'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        values v = {.threads = 4, .choice = 2, .seed = 1, .rate = 0.5};
        CHECK_MSG(parse(&v, cases[i].line, 0) == CLI_USAGE, "%s", cases[i].line);
        CHECK_CONTAINS(message, cases[i].says);
        CHECK_CONTAINS(message, "bjepa verb --help");
        CHECK(v.threads == 4 && v.choice == 2 && v.seed == 1 && v.rate == 0.5);
    }
}

static void test_environment(void) {
    values v = {0};
    setenv("BJEPA_LEARNING_RATE", "0.125", 1);
    setenv("BJEPA_FLAG", "1", 1); /* flags do not listen */
    CHECK(parse(&v, "verb", 0) == CLI_CONTINUE);
    CHECK(v.rate == 0.125 && v.flag == 0);
    CHECK(parse(&v, "verb --learning-rate 1", 0) == CLI_CONTINUE);
    CHECK(v.rate == 1);
    setenv("BJEPA_LEARNING_RATE", "fast", 1);
    CHECK(parse(&v, "verb", 0) == CLI_USAGE);
    CHECK_CONTAINS(message, "BJEPA_LEARNING_RATE: found 'fast'");
    unsetenv("BJEPA_LEARNING_RATE");
    unsetenv("BJEPA_FLAG");
}

static void test_counts(void) {
    char text[CLI_COUNT_SIZE];
    CHECK(!strcmp(cli_count(text, 0), "0"));
    CHECK(!strcmp(cli_count(text, 999), "999"));
    CHECK(!strcmp(cli_count(text, 1000), "1,000"));
    CHECK(!strcmp(cli_count(text, 5074558), "5,074,558"));
    CHECK(!strcmp(cli_count(text, SIZE_MAX), "18,446,744,073,709,551,615") ||
          SIZE_MAX < UINT64_MAX);
}

static void test_exit_codes(void) {
    static const struct {
        bj_status status;
        int code;
    } cases[] = {{BJ_OK, 0},        {BJ_EARG, 2},   {BJ_EIO, 5},        {BJ_EFORMAT, 3},
                 {BJ_EVERSION, 3},  {BJ_ENOMEM, 5}, {BJ_ENONFINITE, 3}, {BJ_ELOCKED, 4},
                 {BJ_EMISMATCH, 4}, {BJ_ECOMM, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_MSG(cli_exit_code(cases[i].status) == cases[i].code, "%s",
                  bj_status_name(cases[i].status));
}

int main(void) {
    test_values();
    test_lists();
    test_operands();
    test_mistakes();
    test_environment();
    test_counts();
    test_exit_codes();
    return test_report("options");
}
