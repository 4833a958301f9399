/* cmd_score.c - bjepa score: checks and scores forecasts from any model in the official format. */
#include "score.h"

#include <string.h>

#include "output.h"
#include "progress.h"

/* -------------------------------------------------------------------------------------- running */

static int show(void *context, int64_t done, int64_t total) {
    cli_progress *progress = context;
    progress->total = (long)total;
    cli_progress_show(progress, (long)done, "reading the ground truth");
    return 0;
}

static bj_status open_truth(bj_truth **truth, const score_options *o, bj_error *err) {
    cli_progress progress = cli_progress_begin("scenarios", 0);
    const double start = progress.last;
    const bj_truth_options options = {o->threads, show, &progress};
    const bj_status status = bj_truth_open(truth, o->truth, &options, err);
    if (status == BJ_OK && progress.last > start) /* something was shown */
        cli_progress_end(&progress, progress.total, "");
    return status;
}

static bj_status write_rows(const bj_score *score, const score_options *o, bj_error *err) {
    cli_file file;
    const bj_status status = cli_file_open(&file, o->rows, err);
    if (status != BJ_OK) return status;
    score_print_rows(file.stream, score);
    return cli_file_commit(&file, err);
}

/* Lists the scenarios of the ground truth that could not be read on stderr. */
static void report_failures(const char *verb, const bj_truth *truth, int list) {
    const int64_t failures = bj_truth_failures(truth);
    for (int64_t i = 0; i < failures && i < list; i++)
        fprintf(stderr, "bjepa %s: %s\n", verb, bj_truth_failure(truth, i));
    if (failures > list)
        fprintf(stderr, "bjepa %s: %lld more scenarios cannot be read\n", verb,
                (long long)(failures - list));
}

static int verdict(const char *verb, const bj_score *score, const bj_truth *truth, int list) {
    const bj_score_counts c = bj_score_count(score);
    if (truth) report_failures(verb, truth, list);
    if (c.violations_total) return CLI_REFUSED;
    if (c.unreadable) return CLI_DATA;
    if (truth && !c.scored) {
        fprintf(stderr,
                "bjepa %s: nothing to score: no scenario in the ground truth has a future\n", verb);
        return CLI_DATA;
    }
    return CLI_OK;
}

int score_run(const char *verb, const score_options *o) {
    bj_error err = {0};
    bj_submission *submission = NULL;
    bj_truth *truth = NULL;
    bj_score *score = NULL;
    int code = CLI_OK;
    const bj_score_options how = {o->max_modes, o->list};
    bj_status status = bj_submission_open(&submission, o->file, &err);
    if (status == BJ_OK && o->truth) status = open_truth(&truth, o, &err);
    if (status == BJ_OK) status = bj_score_create(&score, submission, truth, &how, &err);
    const int silent = status == BJ_OK && o->strict && bj_score_count(score).violations_total;
    if (status == BJ_OK && o->rows && !silent) status = write_rows(score, o, &err);
    if (status == BJ_OK) {
        if (o->json) score_print_json(score, o);
        else score_print_text(score, o);
        code = verdict(verb, score, truth, o->list);
    } else {
        code = cli_fail(verb, &err);
    }
    bj_score_free(score);
    bj_truth_free(truth);
    bj_submission_free(submission);
    return code;
}

/* ------------------------------------------------------------------------------------- the verb */

int cmd_score(int argc, char **argv) {
    score_options o = {.max_modes = BJ_SUBMISSION_MODES, .list = 20};
    int check = 0, operands;
    const cli_option options[] = {
        {"av2", 0, CLI_TEXT, "DIR_OR_CACHE", &o.truth, 0, 0,
         "ground truth: a cache, or a folder of scenario files"},
        {"check", 0, CLI_FLAG, NULL, &check, 0, 0, "only check the file; needs no ground truth"},
        {"max-modes", 0, CLI_INT, "N", &o.max_modes, 1, BJ_MAX_ATOMS,
         "max number of modes per track"},
        {"strict", 0, CLI_FLAG, NULL, &o.strict, 0, 0, "print no scores if there is a violation"},
        {"list", 0, CLI_INT, "N", &o.list, 0, 1000000, "max number of violations to list"},
        {"rows", 0, CLI_TEXT, "FILE.csv", &o.rows, 0, 0, "write the scores of every scene"},
        CLI_OPTION_JSON(&o.json),
        CLI_OPTION_THREADS(&o.threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = "score",
        .summary = "check a challenge submission and score it against the ground truth",
        .operands = "SUBMISSION.parquet",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa score submission.parquet --av2 /data/av2/val\n"
                    "bjepa score submission.parquet --av2 val.bjc --json --rows scenes.csv\n"
                    "bjepa score --check submission.parquet\n",
        .options = options,
    };
    const int code = cli_parse(&usage, argc, argv, &operands);
    if (code != CLI_CONTINUE) return code;
    if (check && (o.truth || o.rows))
        return cli_misuse("score", "--check reads only the submission; leave out --av2 and --rows");
    if (!check && !o.truth)
        return cli_misuse("score", "--av2 DIR_OR_CACHE is missing; "
                                   "scoring needs the ground truth, but --check does not");
    o.file = argv[1];
    return score_run("score", &o);
}
