/* cmd_audit.c - bjepa audit: compares forecasts with the official drivable areas. */
#include "audit.h"

#include "checkpoint.h"
#include "progress.h"
#include "signals.h"

static const char verb[] = "audit";

static int parse(audit_options *o, int argc, char **argv) {
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "CACHE", &o->data, 0, 0,
         "cache with the scenes and maps for checkpoints and campaigns; futures are not read"},
        {"submission", 0, CLI_TEXT, "FILE.parquet", &o->submission, 0, 0,
         "audit a submission file in the official format instead of checkpoints"},
        {"av2", 0, CLI_TEXT, "DIR_OR_CACHE", &o->av2, 0, 0,
         "scenarios and maps for the submission: a folder of scenario files, or a cache"},
        {"a", 0, CLI_TEXT, "ARM", &o->a, 0, 0,
         "first arm or checkpoint to compare, named as on the command line"},
        {"b", 0, CLI_TEXT, "ARM", &o->b, 0, 0,
         "second arm or checkpoint to compare; differences are a minus b"},
        {"resamples", 0, CLI_INT, "N", &o->resamples, 1, 10000000,
         "number of bootstrap resamples for the intervals of a minus b"},
        {"rows", 0, CLI_TEXT, "FILE.csv", &o->rows, 0, 0,
         "write the values for each scene, averaged over the seeds of each arm"},
        {"limit", 0, CLI_INT, "N", &o->limit, 0, 2147483647,
         "use only the first N scenes of the cache; 0 means all"},
        {"list", 0, CLI_INT, "N", &o->list, 0, 1000000, "max number of failed scenarios to list"},
        {"csv", 0, CLI_FLAG, NULL, &o->csv, 0, 0, "print CSV: arm,seed,metric,value"},
        CLI_OPTION_SEED(&o->seed),
        CLI_OPTION_JSON(&o->json),
        CLI_OPTION_QUIET(&o->quiet),
        CLI_OPTION_THREADS(&o->threads),
        CLI_OPTION_END,
    };
    const cli_usage usage = {
        .verb = verb,
        .summary = "measure how much of a forecast is inside the official drivable area",
        .operands = "[CAMPAIGN|CHECKPOINT...]",
        .min_operands = 0,
        .max_operands = 1024,
        .examples = "bjepa audit runs/world --data val.bjc --a fullset --b point\n"
                    "bjepa audit run/ckpt/best other/model.safetensors --data val.bjc --json\n"
                    "bjepa audit --submission submission.parquet --av2 /data/av2/val\n"
                    "bjepa audit --submission submission.parquet --av2 val.bjc\n",
        .options = options,
    };
    const int code = cli_parse(&usage, argc, argv, &o->operand_count);
    if (code != CLI_CONTINUE) return code;
    o->operands = (const char *const *)argv + 1;
    if (o->json && o->csv) return cli_misuse(verb, "found --json and --csv, expected one of them");
    if (o->submission) {
        if (o->operand_count || o->data || o->a || o->b || o->limit)
            return cli_misuse(verb, "--submission takes --av2, but no checkpoints, --data, --a, "
                                    "--b or --limit");
        return o->av2 ? CLI_CONTINUE : cli_misuse(verb, "--av2 DIR_OR_CACHE is missing");
    }
    if (o->av2) return cli_misuse(verb, "--av2 needs --submission; checkpoints take --data");
    if (!o->operand_count)
        return cli_misuse(verb, "found no argument, expected a campaign, checkpoints or "
                                "--submission FILE.parquet");
    if (!o->data) return cli_misuse(verb, "--data CACHE is missing");
    if (!o->a != !o->b) return cli_misuse(verb, "--a and --b must be given together");
    return CLI_CONTINUE;
}

/* ------------------------------------------------------------------------------------- progress */

static void begin(cli_watch *w, const char *unit, const char *what) {
    w->note = what;
    w->progress = cli_progress_begin(unit, 0);
}

static void end(cli_watch *w, bj_status status) {
    if (!w->quiet && w->progress.last > w->progress.start) /* something was shown */
        cli_progress_end(&w->progress, status == BJ_OK ? w->progress.total : 0, w->note);
}

/* --------------------------------------------------------------------------------------- models */

static bj_status add_model(bj_audit *audit, cli_watch *w, const char *arm, int64_t seed,
                           const char *checkpoint, bj_error *err) {
    char path[CLI_PATH_SIZE];
    bj_model *model = NULL;
    bj_status status = cli_checkpoint_path(path, checkpoint, err);
    if (status == BJ_OK) status = bj_model_load(&model, path, err);
    if (status == BJ_OK) {
        begin(w, "scenes", checkpoint);
        status = bj_audit_add(audit, arm, seed, model, NULL, err);
        end(w, status);
    }
    bj_model_free(model);
    return status;
}

static bj_status add_all(bj_audit *audit, cli_watch *w, const audit_options *o, bj_error *err) {
    cli_checkpoints list = {NULL, 0};
    bj_status status = BJ_OK;
    for (int i = 0; status == BJ_OK && i < o->operand_count; i++)
        status = cli_checkpoints_add(&list, verb, o->operands[i], err);
    for (int i = 0; status == BJ_OK && i < list.count; i++) {
        const cli_checkpoint *c = &list.item[i];
        status = add_model(audit, w, *c->arm ? c->arm : c->path, c->seed, c->path, err);
    }
    cli_checkpoints_free(&list);
    return status;
}

static bj_status find_arm(int *out, const bj_audit *audit, const char *name, bj_error *err) {
    bj_nearest nearest = BJ_NEAREST(name);
    *out = bj_audit_find_arm(audit, name);
    if (*out >= 0) return BJ_OK;
    for (int i = 0; i < bj_audit_arms(audit); i++)
        bj_nearest_offer(&nearest, bj_audit_arm(audit, i));
    if (nearest.best)
        return cli_error(err, BJ_EARG, "no arm '%s'; did you mean '%s'?", name, nearest.best);
    return cli_error(err, BJ_EARG, "no arm '%s' among the %d audited arms", name, bj_audit_arms(audit));
}

static bj_status compare(audit_comparison *c, const bj_audit *audit, const audit_options *o,
                         bj_error *err) {
    bj_status status = find_arm(&c->a, audit, o->a, err);
    if (status == BJ_OK) status = find_arm(&c->b, audit, o->b, err);
    c->level = 0.95;
    if (status != BJ_OK) return status;
    return bj_audit_compare(c->metric, audit, c->a, c->b, o->resamples, o->seed, c->level, err);
}

/* ----------------------------------------------------------------------------------------- runs */

static int fail(const bj_error *err) {
    const int code = cli_fail(verb, err);
    return cli_stop ? CLI_SIGNALED + (int)cli_stop : code;
}

static bj_status write_model_rows(const bj_audit *audit, const char *path, bj_error *err) {
    cli_file file;
    bj_status status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    status = audit_print_rows(file.stream, audit, err);
    if (status == BJ_OK) return cli_file_commit(&file, err);
    cli_file_abort(&file);
    return status;
}

static int run_models(const audit_options *o) {
    bj_error err = {0};
    bj_audit *audit = NULL;
    cli_watch w = {.quiet = o->quiet};
    audit_comparison comparison;
    const audit_comparison *compared = o->a ? &comparison : NULL;
    const bj_audit_options options = {
        .threads = o->threads, .limit = o->limit, .progress = cli_watch_show, .context = &w};
    bj_status status = bj_audit_open(&audit, o->data, &options, &err);
    if (status == BJ_OK) status = add_all(audit, &w, o, &err);
    if (status == BJ_OK && o->a) status = compare(&comparison, audit, o, &err);
    if (status == BJ_OK && o->rows) status = write_model_rows(audit, o->rows, &err);
    int code = CLI_OK;
    if (status != BJ_OK) code = fail(&err);
    else if (o->json) audit_print_json(audit, compared, o);
    else if (o->csv) audit_print_csv(audit);
    else code = audit_print_text(audit, compared, o);
    bj_audit_free(audit);
    return code;
}

/* Reports on stderr why scenarios could not be audited. Returns the exit code. */
static int judge(const bj_submission_audit *audit, const audit_options *o) {
    const bj_submission_counts c = bj_submission_audit_count(audit);
    const int64_t bad = c.outcomes[BJ_AUDIT_MISSING] + c.outcomes[BJ_AUDIT_MALFORMED] +
                        c.outcomes[BJ_AUDIT_UNREADABLE];
    int64_t listed = 0;
    for (int64_t i = 0; i < c.total && listed < o->list; i++) {
        const bj_submission_scene s = bj_submission_audit_at(audit, i);
        if (s.outcome == BJ_AUDITED || s.outcome == BJ_AUDIT_OTHER_TYPE) continue;
        fprintf(stderr, "bjepa %s: scenario %s: %s%s%s\n", verb, s.scenario_id,
                bj_audit_outcome_name(s.outcome), s.message ? ": " : "",
                s.message ? s.message : "");
        listed++;
    }
    if (bad > listed)
        fprintf(stderr, "bjepa %s: %lld more scenarios could not be audited\n", verb,
                (long long)(bad - listed));
    if (c.unknown)
        fprintf(stderr, "bjepa %s: %lld scenario%s in the submission %s not in %s\n", verb,
                (long long)c.unknown, c.unknown == 1 ? "" : "s", c.unknown == 1 ? "is" : "are",
                o->av2);
    if (c.outcomes[BJ_AUDIT_MISSING] || c.outcomes[BJ_AUDIT_MALFORMED] || c.unknown)
        return CLI_REFUSED;
    if (c.outcomes[BJ_AUDIT_UNREADABLE]) return CLI_DATA;
    if (!c.outcomes[BJ_AUDITED]) {
        fprintf(stderr,
                "bjepa %s: nothing to audit: "
                "no scenario has a vehicle or bus as the focal road user\n",
                verb);
        return CLI_DATA;
    }
    return CLI_OK;
}

static bj_status write_submission_rows(const bj_submission_audit *audit, const char *path,
                                       bj_error *err) {
    cli_file file;
    const bj_status status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    audit_print_submission_rows(file.stream, audit);
    return cli_file_commit(&file, err);
}

static int run_submission(const audit_options *o) {
    bj_error err = {0};
    bj_submission *submission = NULL;
    bj_submission_audit *audit = NULL;
    cli_watch w = {.quiet = o->quiet};
    const bj_audit_options options = {
        .threads = o->threads, .progress = cli_watch_show, .context = &w};
    bj_status status = bj_submission_open(&submission, o->submission, &err);
    if (status == BJ_OK) {
        begin(&w, "scenarios", "maps and forecasts");
        status = bj_submission_audit_create(&audit, submission, o->av2, &options, &err);
        end(&w, status);
    }
    if (status == BJ_OK && o->rows) status = write_submission_rows(audit, o->rows, &err);
    int code;
    if (status != BJ_OK) {
        code = fail(&err);
    } else {
        if (o->json) audit_print_submission_json(audit, o);
        else if (o->csv) audit_print_submission_csv(audit);
        else audit_print_submission(audit, o);
        code = judge(audit, o);
    }
    bj_submission_audit_free(audit);
    bj_submission_free(submission);
    return code;
}

int cmd_audit(int argc, char **argv) {
    audit_options o = {.resamples = 10000, .list = 20};
    const int code = parse(&o, argc, argv);
    if (code != CLI_CONTINUE) return code;
    cli_catch_signals();
    return o.submission ? run_submission(&o) : run_models(&o);
}
