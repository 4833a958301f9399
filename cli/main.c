/* main.c - the table of verbs, and the choice among them. */
#include "cli.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

static const cli_verb verbs[] = {
    {"audit", "hold forecasts against the official drivable areas; no future is read", cmd_audit},
    {"baseline", "write forecasts of a fixed rule as a challenge submission", cmd_baseline},
    {"bench", "time a training step and prediction", cmd_bench},
    {"benchmark", "make the standard benchmark with a known answer, and score entries", cmd_benchmark},
    {"campaign", "train every arm of a file with every seed, and watch it", cmd_campaign},
    {"compare", "two arms of a campaign, paired by seed, with intervals", cmd_compare},
    {"config", "the arms, and the settings of a run with where each comes from", cmd_config},
    {"data", "prepare scenarios for training, and look at what came out", cmd_data},
    {"demo", "show the pretrained model, then train, evaluate and report three arms", cmd_demo},
    {"eval", "every metric of a checkpoint on a cache, in groups, with its speed", cmd_eval},
    {"export", "write the model of a run to one file, also with 16-bit weights", cmd_export},
    {"figures", "every plot of a campaign as SVG and PDF", cmd_figures},
    {"gallery", "cases chosen and drawn before any future is read, then with hindsight", cmd_gallery},
    {"info", "print a model file, or the architectures and their parameter counts", cmd_info},
    {"lock", "lock a finished campaign, evaluate it once, and verify the result", cmd_lock},
    {"maze", "the mazes of OGBench and what recorded walks show of them", cmd_maze},
    {"parity", "recompute golden files and compare everything they state", cmd_parity},
    {"predict", "all weighted futures of scenes, from raw files or a cache", cmd_predict},
    {"report", "show a campaign in a page of one file", cmd_report},
    {"score", "check a challenge submission and score it against what happened", cmd_score},
    {"simulate", "traffic with a known law of futures, as a cache or official files", cmd_simulate},
    {"submit", "predict a cache and write a challenge submission", cmd_submit},
    {"table", "mean and SD over seeds of every arm, or every seed", cmd_table},
    {"train", "train an arm with a seed", cmd_train},
    {"truth", "compare forecasts with the true distribution of a simulated world", cmd_truth},
    {"version", "print the version and the precision it computes in", cmd_version},
    {"view", "look at the forecasts of submissions in a page of one file", cmd_view},
    {"world", "look at simulated scenes and the law of their futures", cmd_world},
    {"help", "print this list, or the help of a verb", cmd_help},
    CLI_VERB_END,
};

/* Old names. They work but are not listed. */
static const cli_verb old_verbs[] = {
    {"evaluate", "old name of 'lock run' and 'lock verify'", cmd_evaluate},
    CLI_VERB_END,
};

static void print_overview(FILE *to) {
    fputs("bjepa - Branch-JEPA: K weighted latent futures of a scene\n\n"
          "Usage: bjepa VERB [OPTION...]\n\n"
          "Verbs:\n",
          to);
    cli_verbs_print(to, verbs);
    fputs("\n'bjepa VERB --help' prints examples and options.\n"
          "Exit codes: 0 done, 1 failed, 2 misuse, 3 bad input data, 4 a check said no, "
          "5 input/output or memory,\n130 interrupted.\n",
          to);
}

static const cli_verb *find_verb(const char *name) {
    const char *nearest;
    const cli_verb *verb = cli_verbs_find(old_verbs, name, &nearest);
    if (!verb) verb = cli_verbs_find(verbs, name, &nearest);
    if (verb) return verb;
    fprintf(stderr, "bjepa: unknown verb '%s'", name);
    if (nearest) fprintf(stderr, "; did you mean '%s'?", nearest);
    fputs("\nhint: 'bjepa help' lists the verbs\n", stderr);
    return NULL;
}

int cmd_help(int argc, char **argv) {
    static const cli_option options[] = {CLI_OPTION_END};
    static const cli_usage usage = {
        .verb = "help",
        .summary = "print the list of verbs, or the help of one",
        .operands = "[VERB]",
        .max_operands = 1,
        .examples = "bjepa help\n"
                    "bjepa help info\n",
        .options = options,
    };
    int operands;
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (operands == 0) {
        print_overview(stdout);
        return CLI_OK;
    }
    const cli_verb *found = find_verb(argv[1]);
    if (!found) return CLI_USAGE;
    char help[] = "--help";
    char *arguments[] = {argv[1], help, NULL};
    return found->run(2, arguments);
}

int cmd_version(int argc, char **argv) {
    int json = 0;
    const cli_option options[] = {CLI_OPTION_JSON(&json), CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "version",
        .summary = "print the version and the precision it computes in",
        .examples = "bjepa version\n"
                    "bjepa version --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    const char *real = sizeof(bj_real) == sizeof(double) ? "double" : "float";
    if (json)
        printf("{\"schema\": 1, \"type\": \"version\", \"version\": \"%s\", \"real\": \"%s\"}\n",
               bj_version(), real);
    else printf("bjepa %s (%s)\n", bj_version(), real);
    return CLI_OK;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_overview(stderr);
        return CLI_USAGE;
    }
    char *verb = argv[1];
    char help[] = "help", version[] = "version";
    if (!strcmp(verb, "--help") || !strcmp(verb, "-h")) verb = argv[1] = help;
    if (!strcmp(verb, "--version")) verb = argv[1] = version;
    const cli_verb *found = find_verb(verb);
    if (!found) return CLI_USAGE;
    int code = found->run(argc - 1, argv + 1);
    /* A result that did not reach the disk is no result. */
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "bjepa %s: cannot write the standard output\n", verb);
        if (code == CLI_OK) code = CLI_SYSTEM;
    }
    return code;
}
