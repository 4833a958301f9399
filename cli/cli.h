/* cli.h - declarations shared by all commands: verbs, exit codes, error messages, option tables.
 *
 * Results go to stdout. Progress, errors and hints go to stderr. Only this folder prints or exits,
 * and it uses the engine only through <branchjepa/branchjepa.h>.
 *
 * A new verb needs a file cmd_<verb>.c, a declaration below and a row in the table of main.c.
 */
#ifndef BJEPA_CLI_H
#define BJEPA_CLI_H

#include <branchjepa/branchjepa.h>

#if defined(__GNUC__)
#define CLI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CLI_PRINTF(fmt, args)
#endif

/* ------------------------------------------------------------------------------------ commands */

/* Runs a verb. argv[0] is the verb, and the result is the exit code of the process. */
int cmd_help(int argc, char **argv);
int cmd_audit(int argc, char **argv);
int cmd_baseline(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_benchmark(int argc, char **argv);
int cmd_campaign(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_evaluate(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_figures(int argc, char **argv);
int cmd_gallery(int argc, char **argv);
int cmd_info(int argc, char **argv);
int cmd_lock(int argc, char **argv);
int cmd_lock_run(int argc, char **argv);
int cmd_lock_verify(int argc, char **argv);
int cmd_manual(int argc, char **argv);
int cmd_maze(int argc, char **argv);
int cmd_parity(int argc, char **argv);
int cmd_predict(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_score(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_submit(int argc, char **argv);
int cmd_table(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_truth(int argc, char **argv);
int cmd_version(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_world(int argc, char **argv);

/* ---------------------------------------------------------------------------------- exit codes */

enum {
    CLI_OK = 0,
    CLI_FAILED = 1,    /* anything without a better code */
    CLI_USAGE = 2,     /* a wrong verb, option or setting */
    CLI_DATA = 3,      /* input that is not what it should be */
    CLI_REFUSED = 4,   /* a check, gate or lock said no */
    CLI_SYSTEM = 5,    /* input/output, memory */
    CLI_SIGNALED = 128 /* plus the number of the signal that stopped the process: 130 for SIGINT */
};

int cli_exit_code(bj_status status);

/* Prints "bjepa VERB: message" and returns the exit code of err->code. */
int cli_fail(const char *verb, const bj_error *err);

/* Fills err for errors detected in this folder, and returns `code`. */
bj_status cli_error(bj_error *err, bj_status code, const char *fmt, ...) CLI_PRINTF(3, 4);

/* Returns zeroed memory, which the caller frees. If there is none, returns NULL and remembers it, so
 * that no file is published (cli_file_commit) and the exit code is 5. Code that draws into a stream
 * can therefore leave out what it cannot draw. */
void *cli_alloc(size_t count, size_t size);
int cli_out_of_memory(void); /* 1 if cli_alloc returned NULL */

/* Prints "warning: message" to stderr, in yellow on a terminal unless NO_COLOR is set. */
void cli_warn(const char *fmt, ...) CLI_PRINTF(1, 2);
/* Warns about locked files that are missing, so that only part of an evaluation was verified. */
void cli_warn_missing(const char *campaign, const bj_locked_report *report);

/* Prints "bjepa VERB: message" and a reference to the help. Returns CLI_USAGE. */
int cli_misuse(const char *verb, const char *fmt, ...) CLI_PRINTF(2, 3);

/* ------------------------------------------------------------------------------------- options */

typedef enum cli_type {
    CLI_FLAG,  /* int: set to 1 */
    CLI_INT,   /* int within [min, max] */
    CLI_SEED,  /* uint64_t */
    CLI_REAL,  /* double within [min, max] */
    CLI_TEXT,  /* const char *, points into argv or the environment */
    CLI_LIST,  /* cli_list: the values of all occurrences, in order */
    CLI_CHOICE /* int: index into `arg`, which lists the words as "one|two|three" */
} cli_type;

enum { CLI_LIST_SIZE = 64 };
typedef struct cli_list {
    const char *items[CLI_LIST_SIZE];
    int count;
} cli_list;

typedef struct cli_option {
    const char *name; /* long name without dashes */
    char letter;      /* short name, or 0 */
    cli_type type;
    const char *arg; /* name of the value in the help, or the words of a choice */
    void *value;     /* pointer to the value; contains the default before parsing, which the help
                        shows */
    double min, max; /* CLI_INT and CLI_REAL */
    const char *help;
} cli_option;

/* Options that mean the same for every verb. */
#define CLI_OPTION_JSON(value)                                                                     \
    { "json", 0, CLI_FLAG, NULL, (value), 0, 0, "print JSON" }
#define CLI_OPTION_THREADS(value)                                                                  \
    { "threads", 'j', CLI_INT, "N", (value), 0, 1024, "worker threads; 0 means one per available core" }
#define CLI_OPTION_SEED(value)                                                                     \
    { "seed", 0, CLI_SEED, "N", (value), 0, 0, "seed of the random number generator" }
#define CLI_OPTION_QUIET(value)                                                                    \
    { "quiet", 'q', CLI_FLAG, NULL, (value), 0, 0, "print no progress" }
#define CLI_OPTION_END                                                                             \
    { NULL, 0, CLI_FLAG, NULL, NULL, 0, 0, NULL }

typedef struct cli_usage {
    const char *verb;
    const char *summary;
    const char *operands; /* as in the help, "FILE..."; NULL: none */
    int min_operands, max_operands;
    const char *examples;         /* one a line, each ending in a newline */
    const cli_option *options;    /* up to CLI_OPTION_END; --help is always there */
    const struct cli_verb *verbs; /* verbs below this one, see verbs.h; NULL: none */
} cli_usage;

/* Writes the default of an option, "" if it has none. Call it before parsing. */
enum { CLI_DEFAULT_SIZE = 64 };
void cli_default(char text[CLI_DEFAULT_SIZE], const cli_option *option);
extern const cli_option cli_help_option; /* --help, which every verb has */

/* If set, cli_parse calls this function instead of parsing and returns CLI_OK. The man pages and
 * completions are written this way. */
extern void (*cli_usage_hook)(const cli_usage *usage);

enum { CLI_CONTINUE = -1 };

/* Fills the values of the option table from the arguments. An option with a value that is not given
 * is taken from the environment: --threads from BJEPA_THREADS. Operands are moved to argv[1 ..
 * *operands]. Returns CLI_CONTINUE, or the exit code: CLI_OK after --help, CLI_USAGE after a
 * message. operands may be NULL if the verb takes none. */
int cli_parse(const cli_usage *usage, int argc, char **argv, int *operands);

/* Returns the path of this program, even if its file was renamed after it started. */
#define CLI_SELF "/proc/self/exe"

/* Returns the number of workers for --threads N: N, or one per core available to this process. */
int cli_threads(int asked);

/* --------------------------------------------------------------------------------------- counts */

/* 5074558 as "5,074,558"; the result lives in `buffer`. */
enum { CLI_COUNT_SIZE = 32 };
const char *cli_count(char buffer[CLI_COUNT_SIZE], size_t count);

#endif
