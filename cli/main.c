/* main.c - the table of verbs, and the selection of a verb. */
#include "cli.h"
#include "signals.h"
#include "verbs.h"

#include <stdio.h>
#include <string.h>

const cli_verb cli_main_verbs[] = {
    {"audit", "measure how much of a forecast is inside the official drivable area", cmd_audit},
    {"baseline", "predict with a simple rule and write a challenge submission", cmd_baseline},
    {"bench", "benchmark a training step and prediction", cmd_bench},
    {"benchmark", "create the standard benchmark of simulated scenes and score submissions",
     cmd_benchmark},
    {"campaign", "train each arm of a campaign file with each seed, and show the progress",
     cmd_campaign},
    {"compare", "compare two arms of a campaign, paired by seed, with confidence intervals",
     cmd_compare},
    {"config", "list the arms and settings, and print, check or compare the settings of runs",
     cmd_config},
    {"data", "create and inspect caches of Argoverse 2 scenes", cmd_data},
    {"demo", "show the pretrained model, then train and evaluate three arms and write a report",
     cmd_demo},
    {"eval", "print all metrics of a checkpoint on a cache, overall and per group, and the speed",
     cmd_eval},
    {"export", "write the model of a run to one file, optionally with 16-bit parameters",
     cmd_export},
    {"figures", "write the plots of a campaign or run as SVG and PDF files", cmd_figures},
    {"gallery", "select and draw cases without reading any future, then add the actual outcomes",
     cmd_gallery},
    {"info", "describe a model file, or list the architectures and their parameter counts",
     cmd_info},
    {"lock", "lock a finished campaign, evaluate it once, and verify the result", cmd_lock},
    {"maze", "inspect OGBench maze datasets, and evaluate and draw predicted graphs", cmd_maze},
    {"parity", "recompute golden files and compare the results with them", cmd_parity},
    {"predict", "predict weighted futures for the scenes in scenario files or a cache",
     cmd_predict},
    {"report", "write a report on a campaign or run as a single HTML page", cmd_report},
    {"score", "check a challenge submission and score it against the ground truth", cmd_score},
    {"simulate", "simulate traffic scenes with a known distribution of futures", cmd_simulate},
    {"submit", "predict a cache and write a challenge submission", cmd_submit},
    {"table", "print the mean and SD of each arm over its seeds, or the value for each seed",
     cmd_table},
    {"train", "train one arm with one seed", cmd_train},
    {"truth", "compare forecasts with the true distribution of a simulated world", cmd_truth},
    {"version", "print the version, the floating-point precision and the instruction set",
     cmd_version},
    {"view", "show the forecasts of submissions and models on a single HTML page", cmd_view},
    {"world", "print or draw simulated scenes with the true distributions of their futures",
     cmd_world},
    {"help", "print this list, or the help of a verb", cmd_help},
    CLI_VERB_END,
};

/* Verbs that the help does not list: old names, and a verb used by the build. */
static const cli_verb hidden_verbs[] = {
    {"evaluate", "old name of 'lock run' and 'lock verify'", cmd_evaluate},
    {"manual", "write the man pages and shell completions", cmd_manual},
    CLI_VERB_END,
};

static void print_overview(FILE *to) {
    fputs("bjepa - Branch-JEPA predicts K weighted latent futures of a scene\n\n"
          "Usage: bjepa VERB [OPTION...]\n\n"
          "Verbs:\n",
          to);
    cli_verbs_print(to, cli_main_verbs);
    fputs("\n'bjepa VERB --help' prints examples and options.\n"
          "Exit codes: 0 success, 1 other failure, 2 usage error, 3 invalid input file, "
          "4 failed check, gate or lock,\n5 I/O error or out of memory, 130 interrupted.\n",
          to);
}

static const cli_verb *find_verb(const char *name) {
    const char *nearest;
    const cli_verb *verb = cli_verbs_find(hidden_verbs, name, &nearest);
    if (!verb) verb = cli_verbs_find(cli_main_verbs, name, &nearest);
    if (verb) return verb;
    char shown[64];
    snprintf(shown, sizeof shown, "%s", name);
    bj_clean_text(shown);
    fprintf(stderr, "bjepa: unknown verb '%s'", shown);
    if (nearest) fprintf(stderr, "; did you mean '%s'?", nearest);
    fputs("\nhint: 'bjepa help' lists the verbs\n", stderr);
    return NULL;
}

int cmd_help(int argc, char **argv) {
    static const cli_option options[] = {CLI_OPTION_END};
    static const cli_usage usage = {
        .verb = "help",
        .summary = "print the list of verbs, or the help of a verb",
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
        .summary = "print the version, the floating-point precision and the instruction set",
        .examples = "bjepa version\n"
                    "bjepa version --json\n",
        .options = options,
    };
    const int result = cli_parse(&usage, argc, argv, NULL);
    if (result != CLI_CONTINUE) return result;
    const char *real = sizeof(bj_real) == sizeof(double) ? "double" : "float";
    const char *isa = bj_isa(BJ_PRECISION_FULL), *mixed = bj_isa(BJ_PRECISION_BF16);
    if (!isa) isa = mixed = "none"; /* BJ_ISA names one that is not available */
    if (json)
        printf("{\"schema\": 1, \"type\": \"version\", \"version\": \"%s\", \"real\": \"%s\", "
               "\"isa\": \"%s\", \"mixed_isa\": \"%s\"}\n",
               bj_version(), real, isa, mixed);
    else
        printf("bjepa %s (%s)\n"
               "instruction set: %s; in mixed precision: %s\n",
               bj_version(), real, isa, mixed);
    return CLI_OK;
}

int main(int argc, char **argv) {
    cli_handle_signals();
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
    if (cli_out_of_memory() && code == CLI_OK) {
        fprintf(stderr, "bjepa %s: out of memory\n", verb);
        code = CLI_SYSTEM;
    }
    /* Output that did not reach the disk is a failure. */
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "bjepa %s: cannot write the standard output\n", verb);
        if (code == CLI_OK) code = CLI_SYSTEM;
    }
    return code;
}
