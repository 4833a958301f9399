/* cmd_train.c - bjepa train: trains one run, which is an arm with a seed. */
#define _POSIX_C_SOURCE 200809L /* access */
#include "cli.h"
#include "json_out.h"
#include "output.h"
#include "progress.h"
#include "settings.h"
#include "signals.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Latents count as collapsed if their rank or standard deviation is below these limits. */
static const double collapsed_std = 1e-3, collapsed_rank = 1.5;
/* Min number of development scenes for the rank and for the choice of a checkpoint. The centered
 * latents of n scenes have a rank of at most n - 1, so two scenes always look collapsed. */
enum { RANK_SCENES = 8, FEW_SCENES = 32 };

typedef struct view {
    cli_progress bar;
    int quiet, begun, epoch;
    int few; /* 1: too few development scenes, and a warning was printed */
    int stage_a, maze;
    const bj_settings *settings;
} view;

/* What the run is judged by; NaN: collapsed. */
static double criterion(const view *v, const bj_epoch *row) {
    if (v->maze && !row->eligible) return NAN;
    return v->maze ? row->maze.cov_r : v->stage_a ? row->decoder_ade : row->dev.traj_es;
}

enum { NOTE = 120 };

static void note_of(char note[NOTE], const view *v, const bj_run_progress *p) {
    const bj_loss *l = &p->loss;
    int at = snprintf(note, NOTE, "%d/%d loss %.2f", p->epoch, p->epochs, l->total);
    if (v->maze)
        at += snprintf(note + at, NOTE - (size_t)at, " (z %.3f floors %.3f %.2f rank %.1f)",
                       l->latent, l->variance, l->rank, l->participation);
    else if (v->stage_a)
        at += snprintf(note + at, NOTE - (size_t)at, " (rec %.2f rank %.1f)", l->rec,
                       l->participation);
    else
        at += snprintf(note + at, NOTE - (size_t)at, " (z %.2f y %.2f rec %.2f)", l->latent,
                       l->decoded, l->rec);
    if (at < NOTE && l->sigreg != 0)
        at += snprintf(note + at, NOTE - (size_t)at, " sigreg %.2f", l->sigreg);
    if (at < NOTE && (l->vicreg_variance != 0 || l->vicreg_covariance != 0))
        at += snprintf(note + at, NOTE - (size_t)at, " vicreg %.2f %.2f", l->vicreg_variance,
                       l->vicreg_covariance);
    if (at < NOTE && p->last && p->last->epoch > 0 && !isnan(criterion(v, p->last)))
        snprintf(note + at, NOTE - (size_t)at, " dev %.3f", criterion(v, p->last));
}

/* Prints by how much an exchange worsens the plain score, in percent, unless it is unknown. */
static void print_exchange(const char *part, double loss, const bj_epoch *row) {
    if (!isnan(loss)) fprintf(stderr, "%s %+.1f %%", part, 100 * loss / row->exchange.plain);
}

static void print_epoch(const view *v, const bj_epoch *row, const bj_epoch *best) {
    const int chosen = best && best->epoch == row->epoch;
    if (v->maze) {
        const bj_maze_values *m = &row->maze;
        fprintf(stderr, "epoch %d: ", row->epoch);
        if (!isnan(m->plan_all)) /* frames have no graph */
            fprintf(stderr,
                    "planAll %.3f, verified route %.3f, precision %.3f, "
                    "withheld %.3f, edges %.0f, ",
                    m->plan_all, m->verified_route, m->macro_precision, m->held_recall,
                    m->predicted_edges);
        fprintf(stderr,
                "COV-R %.3f; cell latents: SD %.4f, "
                "entropy rank %.1f (participation %.1f), "
                "separated %.3f, closest %.2f: %s\n",
                m->cov_r, row->health.mean_std, row->health.entropy_rank, row->health.participation,
                m->separated, m->closest, row->eligible ? "separated" : "collapsed");
    } else if (v->stage_a)
        fprintf(stderr,
                "epoch %d: decoder ADE %.4f m, FDE %.4f m, "
                "latent SD %.4f, entropy rank %.1f: "
                "gates %s%s\n",
                row->epoch, row->decoder_ade, row->decoder_fde, row->health.mean_std,
                row->health.entropy_rank, row->eligible ? "passed" : "not passed",
                chosen ? ", best so far" : "");
    else {
        fprintf(stderr,
                "epoch %d: dev ES %.4f m, top-1 ADE %.4f m, "
                "Brier %.4f, distinct ends %.2f, "
                "latent SD %.4f, entropy rank %.1f, "
                "attention %.1f tokens, context norm %.1f",
                row->epoch, row->dev.traj_es, row->dev.top1_ade, row->dev.brier,
                row->dev.dedup_support, row->health.mean_std, row->health.entropy_rank,
                row->encoder.attention_tokens, row->encoder.context_norm);
        print_exchange(", exchanged map", row->exchange.map, row);
        print_exchange(", neighbors", row->exchange.neighbors, row);
        print_exchange(", focal", row->exchange.focal, row);
        fprintf(stderr, "%s\n", chosen ? ", best so far" : "");
    }
}

static void warn(view *v, const bj_epoch *row) {
    const int few = !v->maze && !v->stage_a && row->dev.scenes < FEW_SCENES;
    if (few && !v->few)
        cli_warn("%.0f development scene%s: the checkpoint choice is mostly noise; "
                 "expected at least %d scenes",
                 row->dev.scenes, row->dev.scenes == 1 ? "" : "s", FEW_SCENES);
    v->few |= few;
    if (bj_epoch_blind(v->settings, row))
        cli_warn("epoch %d: the model is blind to the map: "
                 "exchanging maps between scenes changes the Energy Score by %+.1f %%",
                 row->epoch, 100 * row->exchange.map / row->exchange.plain);
    if (row->epoch > 0 && !(few && row->dev.scenes < RANK_SCENES) &&
        (row->health.mean_std < collapsed_std || row->health.entropy_rank < collapsed_rank))
        cli_warn("epoch %d: the target latents have collapsed "
                 "(standard deviation %.2g, entropy rank %.2f)",
                 row->epoch, row->health.mean_std, row->health.entropy_rank);
}

static bj_run_answer on_progress(void *context, const bj_run_progress *p) {
    view *v = context;
    char note[NOTE];
    if (!v->begun) {
        v->bar = cli_progress_begin_at("steps", (long)p->steps, (long)p->step);
        v->epoch = p->last ? p->last->epoch : -1; /* of an earlier process, which told it */
        v->begun = 1;
    }
    if (p->last && p->last->epoch > v->epoch) {
        if (!v->quiet) {
            cli_progress_clear(&v->bar);
            print_epoch(v, p->last, p->best);
        }
        warn(v, p->last);
        v->epoch = p->last->epoch;
    }
    if (!v->quiet) {
        note_of(note, v, p);
        cli_progress_show_rate(&v->bar, (long)p->step, p->scenes_per_s, "scenes", p->eta_s, note);
    }
    if (cli_stop) return BJ_RUN_STOP;
    if (cli_save) {
        cli_save = 0;
        return BJ_RUN_SAVE;
    }
    return BJ_RUN_GO_ON;
}

static void on_note(void *context, const char *line) {
    const view *v = context;
    if (!v->quiet || !strncmp(line, "warning:", 8)) fprintf(stderr, "%s\n", line);
}

/* --------------------------------------------------------------------------------------- report */

static void print_json(const bj_run_report *r, const char *dir, const bj_settings *s) {
    static const char *const outcomes[] = {"done", "stopped", "no_pass", "collapsed"};
    printf("{\"schema\":\"branchjepa.train/1\",\"outcome\":\"%s\",\"run\":", outcomes[r->outcome]);
    cli_json_text(stdout, dir);
    printf(",\"arm\":\"%s\",\"seed\":%llu,\"epochs\":%d,\"step\":%lld,\"best_epoch\":", s->arm,
           (unsigned long long)s->seed, r->epochs, (long long)r->step);
    if (r->outcome == BJ_RUN_DONE && s->arch.encoder != BJ_ENCODER_SCENE) {
        const bj_maze_values *m = &r->best.maze;
        const struct {
            const char *name;
            double value;
        } values[] = {{"plan_all", m->plan_all},
                      {"verified_route", m->verified_route},
                      {"macro_precision", m->macro_precision},
                      {"held_recall", m->held_recall},
                      {"cov_r", m->cov_r},
                      {"separated", m->separated}};
        printf("%d", r->best.epoch);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            printf(",\"%s\":", values[i].name);
            cli_json_double(stdout, values[i].value);
        }
    } else if (r->outcome == BJ_RUN_DONE) {
        printf("%d,\"dev_traj_es\":", r->best.epoch);
        cli_json_double(stdout, r->best.dev.traj_es);
        printf(",\"decoder_ade\":");
        cli_json_double(stdout, r->best.decoder_ade);
    } else {
        printf("null");
    }
    printf("}\n");
}

/* The value that came closest to passing a gate, over all epochs. */
static void print_gate(const bj_run *run, const char *name, size_t offset, const char *relation,
                       double limit) {
    const int at_least = relation[0] == '>';
    double nearest = NAN;
    int epoch = 0;
    for (int i = 0; i < bj_run_epochs(run); i++) {
        const bj_epoch row = bj_run_epoch(run, i);
        double value;
        memcpy(&value, (const char *)&row + offset, sizeof value);
        if (row.epoch > 0 && (isnan(nearest) || (at_least ? value > nearest : value < nearest))) {
            nearest = value;
            epoch = row.epoch;
        }
    }
    fprintf(stderr, "  %-30s expected %s %-6g  best %.4g in epoch %d\n", name, relation, limit,
            nearest, epoch);
}

static int no_pass(const bj_run_report *r, const char *dir, const bj_settings *s) {
    bj_run *run;
    bj_error err;
    fprintf(stderr,
            "bjepa train: none of the %d epochs passed every gate, so the run has no anchor; "
            "%s/metrics.csv contains all values\n",
            r->epochs, dir);
    if (bj_run_open(&run, dir, &err) != BJ_OK) return CLI_REFUSED;
    print_gate(run, "decoder ADE (m)", offsetof(bj_epoch, decoder_ade), "<=", s->gate_ade);
    print_gate(run, "decoder FDE (m)", offsetof(bj_epoch, decoder_fde), "<=", s->gate_fde);
    print_gate(run, "mean SD of the latents", offsetof(bj_epoch, health.mean_std), ">=", s->gate_std);
    print_gate(run, "share of flat dimensions", offsetof(bj_epoch, health.low_std_fraction),
               "<=", s->gate_low_std);
    print_gate(run, "entropy rank of the latents", offsetof(bj_epoch, health.entropy_rank),
               ">=", s->gate_rank);
    bj_run_free(run);
    return CLI_REFUSED;
}

static int finish_maze(const bj_run_report *r, const char *dir, const bj_settings *s) {
    const bj_maze_values *m = &r->best.maze;
    printf("%s, seed %llu: %lld updates over %lld transitions\n", s->arm,
           (unsigned long long)s->seed, (long long)r->step, (long long)r->fit);
    if (!isnan(m->plan_all))
        printf("planAll %.1f %%, verified route %.1f %%, precision %.1f %%, "
               "withheld edges found %.1f %%\n",
               100 * m->plan_all, 100 * m->verified_route, 100 * m->macro_precision,
               100 * m->held_recall);
    printf("raw COV-R %.1f %%\n", 100 * m->cov_r);
    printf("checkpoint  %s/ckpt/best\n", dir);
    return CLI_OK;
}

static int finish(const bj_run_report *r, const char *dir, const bj_settings *s, int json) {
    const int stage_a = s->objective.kind == BJ_ANCHOR_A;
    if (json) print_json(r, dir, s);
    if (r->outcome == BJ_RUN_STOPPED) {
        fprintf(stderr,
                "stopped in epoch %d after %lld updates; all progress is saved\n"
                "hint: continue with 'bjepa train --out %s --resume'\n",
                r->epochs + 1, (long long)r->step, dir);
        return CLI_SIGNALED + (int)cli_stop;
    }
    if (r->outcome == BJ_RUN_NO_PASS) return no_pass(r, dir, s);
    if (r->outcome == BJ_RUN_COLLAPSED) {
        fprintf(stderr,
                "bjepa train: the latents have collapsed, so the run has no score; "
                "%s/metrics.csv contains all values\n",
                dir);
        return CLI_REFUSED;
    }
    if (json) return CLI_OK;
    if (s->arch.encoder != BJ_ENCODER_SCENE) return finish_maze(r, dir, s);
    printf("%s, seed %llu: %d epochs, %lld updates over %lld scenes\n", s->arm,
           (unsigned long long)s->seed, r->epochs, (long long)r->step, (long long)r->fit);
    printf("best epoch %d: development %s %.4f m (scenes: %lld)\n", r->best.epoch,
           stage_a ? "decoder ADE" : "trajectory ES",
           stage_a ? r->best.decoder_ade : r->best.dev.traj_es, (long long)r->dev);
    printf("checkpoint  %s/ckpt/best\n", dir);
    return CLI_OK;
}

/* -------------------------------------------------------------------------------------- command */

/* Data and settings that may be omitted when a run is resumed. */
typedef struct recalled {
    bj_run *run;
    char config[CLI_PATH_SIZE];
} recalled;

/* Fills in data and settings that are not given from the run in the folder. */
static bj_status recall(recalled *r, bj_run_options *o, cli_settings_options *q, bj_error *err) {
    char manifest[CLI_PATH_SIZE];
    const int settings = q->arm || q->recipe || q->seed || q->config || q->init || q->set.count;
    if (o->data && settings) return BJ_OK;
    bj_status status = cli_path(manifest, o->dir, "manifest.json", err);
    if (status != BJ_OK) return status;
    if (access(manifest, F_OK))
        return cli_error(err, BJ_EARG,
                         "%s: contains no run to resume\nhint: a new run needs --data and --arm",
                         o->dir);
    status = bj_run_open(&r->run, o->dir, err);
    if (status != BJ_OK) return status;
    if (!o->data) {
        o->data = bj_run_fact(r->run, "data.path");
        if (!o->dev) o->dev = bj_run_fact(r->run, "dev_data.path");
        if (!o->maze && !bj_run_fact(r->run, "maze.sha256"))
            o->maze = bj_run_fact(r->run, "maze.name");
    }
    if (settings) return BJ_OK;
    status = cli_path(r->config, o->dir, "config.resolved.json", err);
    q->config = r->config;
    return status;
}

/* Prints the share of this process's time that was spent on simulating training scenes. */
static void print_simulated(const bj_fresh *fresh, double seconds) {
    const double spent = bj_fresh_seconds(fresh);
    fprintf(stderr, "simulating scenes took %.1f s of %.1f s (%.1f %%)\n", spent, seconds,
            100 * spent / seconds);
}

/* Opens the simulator if --data names a world instead of a file. */
static bj_status open_fresh(bj_fresh **out, bj_run_options *o, bj_error *err) {
    bj_fresh_spec spec;
    if (!bj_fresh_is_spec(o->data)) return BJ_OK;
    bj_status status = bj_fresh_parse(&spec, o->data, err);
    if (status == BJ_OK) status = bj_fresh_create(out, &spec, o->threads, err);
    if (status != BJ_OK) return status;
    o->scenes = bj_fresh_fit(*out);
    o->dev_scenes = bj_fresh_dev(*out);
    return BJ_OK;
}

int cmd_train(int argc, char **argv) {
    cli_settings_options q = {0};
    bj_run_options o = {0};
    view v = {0};
    int json = 0;
    const cli_option options[] = {
        {"data", 0, CLI_TEXT, "FILE", &o.data, 0, 0,
         "cache of scenes, or a dataset (.npz) for maze arms; "
         "world:SEED[:SCENES] simulates new scenes during training"},
        {"dev", 0, CLI_TEXT, "CACHE", &o.dev, 0, 0,
         "cache of development scenes; the model is then trained on all scenes of --data"},
        {"maze", 0, CLI_TEXT, "NAME", &o.maze, 0, 0,
         "name of the maze, if the file name of the dataset does not contain it"},
        CLI_SETTINGS_OPTIONS(&q),
        {"out", 'o', CLI_TEXT, "DIR", &o.dir, 0, 0, "run folder"},
        {"resume", 0, CLI_FLAG, NULL, &o.resume, 0, 0,
         "resume the run in the output folder; data and settings default to those of that run"},
        {"extend", 0, CLI_INT, "EPOCHS", &o.extend, 1, 100000,
         "with --resume: train a finished run for this many more epochs"},
        CLI_OPTION_THREADS(&o.threads),
        CLI_OPTION_QUIET(&v.quiet),
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END};
    const cli_usage usage = {
        "train",
        "train one arm with one seed",
        NULL,
        0,
        0,
        "bjepa train --data train.bjc --arm fullset --seed 0 --out runs/fullset-0\n"
        "bjepa train --data train.bjc --arm fullset --out runs/try "
        "--recipe small --set train.epochs=5\n"
        "bjepa train --data train.bjc --arm fullset --seed 0 --out runs/fullset-0 --resume\n"
        "bjepa train --data nuscenes.bjc --arm fullset --init runs/fullset-0 --out runs/tuned\n"
        "bjepa train --out runs/fullset-0 --resume --extend 10\n"
        "bjepa train --data world:7:2000000 --arm fullset --out runs/fresh --recipe small\n"
        "bjepa train --data pointmaze-medium-navigate-v0.npz --arm maze-branch --out runs/medium\n",
        options,
        NULL};
    const int parsed = cli_parse(&usage, argc, argv, NULL);
    if (parsed != CLI_CONTINUE) return parsed;
    if (o.extend && !o.resume)
        return cli_misuse(usage.verb, "--extend needs --resume, because it continues a finished run");
    if (!o.data && !o.resume) return cli_misuse(usage.verb, "--data FILE is missing");
    if (!o.dir) return cli_misuse(usage.verb, "--out DIR is missing");
    cli_settings settings = {0};
    recalled from = {0};
    bj_run_report report;
    bj_error err;
    if ((o.resume && recall(&from, &o, &q, &err) != BJ_OK) ||
        cli_settings_open(&settings, &q, NULL, &err) != BJ_OK) {
        bj_run_free(from.run);
        return cli_fail(usage.verb, &err);
    }
    v.maze = settings.value.arch.encoder != BJ_ENCODER_SCENE;
    v.settings = &settings.value;
    v.stage_a = settings.value.objective.kind == BJ_ANCHOR_A;
    o.config = q.config;
    o.threads = cli_threads(o.threads);
    o.progress = on_progress;
    o.note = on_note;
    o.context = &v;
    cli_catch_signals();
    cli_catch_save();
    bj_fresh *fresh = NULL;
    const double start = cli_seconds();
    bj_status status = open_fresh(&fresh, &o, &err);
    if (status == BJ_OK) status = bj_run_train(&report, &settings.value, &o, &err);
    if (v.begun && !v.quiet) cli_progress_clear(&v.bar);
    const int code = status == BJ_OK ? finish(&report, o.dir, &settings.value, json)
                                     : cli_fail(usage.verb, &err);
    if (fresh && v.begun && !v.quiet) print_simulated(fresh, cli_seconds() - start);
    bj_fresh_free(fresh);
    cli_settings_close(&settings);
    bj_run_free(from.run);
    return code;
}
