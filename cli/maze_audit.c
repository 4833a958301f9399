/* maze_audit.c - bjepa maze audit: computes rollouts of trained models on held-out episodes.
 *
 * DIR/audit.json contains every number, DIR/curves.svg shows the means over contexts, and
 * DIR/context.svg shows the first context in the fixed order. docs/MAZES.md has the definitions.
 */
#include "cli.h"
#include "json_out.h"
#include "maze.h"
#include "maze_audit_draw.h"
#include "output.h"
#include "progress.h"
#include "signals.h"

#include <branchjepa/maze_audit.h>
#include <branchjepa/maze_drive.h>

#include <stdio.h>

typedef struct options {
    const char *runs[BJ_ROLLOUT_ARMS], *out, *data, *maze;
    int count, horizon, threads, quiet, json;
} options;

/* ----------------------------------------------------------------------------------------- json */

static void print_pair(FILE *to, const double xy[2]) {
    fputc('[', to);
    cli_json_double(to, xy[0]);
    fputc(',', to);
    cli_json_double(to, xy[1]);
    fputc(']', to);
}

static void print_member(FILE *to, const char *key, double value) {
    fprintf(to, ",\"%s\":", key);
    cli_json_double(to, value);
}

static void print_arm(FILE *to, const bj_rollout_audit *a, const bj_rollout_arm *arm) {
    fputs("{\"arm\":", to);
    cli_json_text(to, arm->arm);
    fprintf(to,
            ",\"seed\":%llu,\"settings_sha256\":\"%s\",\"weights_sha256\":\"%s\",\"rollouts\":%d",
            (unsigned long long)arm->seed, arm->settings_sha256, arm->weights_sha256, arm->L);
    print_member(to, "context_length", arm->length);
    print_member(to, "probe_error", arm->probe_error);
    print_member(to, "probe_wall", arm->probe_wall);
    fputs(",\n  \"curves\":{", to);
    for (int i = 0; bj_rollout_name(i); i++) {
        fprintf(to, "%s\n   \"%s\":[", i ? "," : "", bj_rollout_name(i));
        for (int h = 0; h < a->horizon; h++) {
            if (h) fputc(',', to);
            cli_json_double(to, bj_rollout_value(&arm->steps[h], i));
        }
        fputc(']', to);
    }
    fputs("},\n  \"drawn\":{\"mass\":[", to);
    for (int l = 0; l < arm->L; l++) {
        if (l) fputc(',', to);
        cli_json_double(to, arm->mass[l]);
    }
    fputs("],\"paths\":[", to);
    for (int l = 0; l < arm->L; l++) {
        fputs(l ? ",\n   [" : "\n   [", to);
        for (int h = 0; h < a->horizon; h++) {
            if (h) fputc(',', to);
            print_pair(to, arm->paths + 2 * ((size_t)h * (size_t)arm->L + (size_t)l));
        }
        fputc(']', to);
    }
    fputs("]}}", to);
}

static void print_json(FILE *to, const bj_rollout_audit *a) {
    fputs("{\"schema\":\"branchjepa.maze_audit/1\",\"maze\":", to);
    cli_json_text(to, a->maze->name);
    fprintf(to,
            ",\"data_sha256\":\"%s\",\n \"split\":{\"episodes\":%lld,\"held_out\":%lld,"
            "\"seed\":%llu",
            a->data_sha256, (long long)a->episodes, (long long)a->held_episodes,
            (unsigned long long)a->split_seed);
    print_member(to, "share", a->held_out);
    fprintf(to,
            "},\n \"stride\":%d,\"horizon\":%d,\n \"contexts\":{\"count\":%lld,"
            "\"order_sha256\":\"%s\"},\n \"probe\":{\"fit_frames\":%lld,\"held_frames\":%lld",
            a->stride, a->horizon, (long long)a->contexts, a->order_sha256,
            (long long)a->fit_frames, (long long)a->held_frames);
    print_member(to, "ridge", BJ_PROBE_RIDGE);
    fprintf(to, "},\n \"drawn\":{\"context\":0,\"episode\":%lld,\"row\":%lld,\"truth\":[",
            (long long)a->first_episode, (long long)a->first_row);
    for (int h = 0; h <= a->horizon; h++) {
        if (h) fputc(',', to);
        print_pair(to, a->truth + 2 * h);
    }
    fputs("]},\n \"arms\":[", to);
    for (int i = 0; i < a->arms; i++) {
        fputs(i ? ",\n " : "\n ", to);
        print_arm(to, a, &a->arm[i]);
    }
    fputs("]}\n", to);
}

/* ----------------------------------------------------------------------------------------- text */

static void print_text(const bj_rollout_audit *a, const char *folder) {
    char count[CLI_COUNT_SIZE];
    printf("maze %s: %s eligible contexts in %lld held-out episodes (of %lld), "
           "%d steps between frames\n",
           a->maze->name, cli_count(count, (size_t)a->contexts), (long long)a->held_episodes,
           (long long)a->episodes, a->stride);
    for (int i = 0; i < a->arms; i++) {
        const bj_rollout_arm *arm = &a->arm[i];
        printf("\n"
               "%s, seed %llu, %d rollout%s per context; "
               "error of the probe on held-out frames: %.3f m\n",
               arm->arm, (unsigned long long)arm->seed, arm->L, arm->L == 1 ? "" : "s",
               arm->probe_error);
        printf("frame  distance  nearest    hit  of mass  error  nearest  in walls  staying\n");
        for (int h = 0; h < a->horizon; h++) {
            const bj_rollout_step *s = &arm->steps[h];
            printf("%5d  %8.4f  %7.4f  %4.1f%%  %6.1f%%  %5.2f  %7.2f  %7.1f%%  %7.2f\n", h + 1,
                   s->distance, s->best_distance, 100 * s->hit, 100 * s->hit_mass, s->error,
                   s->best_error, 100 * s->wall_mass, s->stay_error);
        }
    }
    printf("\n%s/audit.json, curves.svg, context.svg\n", folder);
}

/* ------------------------------------------------------------------------------------------ run */

static bj_status write_one(const char *folder, const char *name, const bj_rollout_audit *a,
                           void (*print)(FILE *to, const bj_rollout_audit *a), bj_error *err) {
    char path[CLI_PATH_SIZE];
    cli_file file;
    bj_status status = cli_path(path, folder, name, err);
    if (status == BJ_OK) status = cli_file_open(&file, path, err);
    if (status != BJ_OK) return status;
    print(file.stream, a);
    return cli_file_commit(&file, err);
}

static bj_status run(bj_rollout_audit *audit, const options *o, bj_error *err) {
    cli_watch w = {cli_progress_begin("contexts", 0), "rollouts", o->quiet};
    const bj_rollout_options library = {.data = o->data,
                                        .maze = o->maze,
                                        .horizon = o->horizon,
                                        .threads = o->threads,
                                        .progress = cli_watch_show,
                                        .context = &w};
    int created;
    bj_status status = cli_folder(&created, o->out, err);
    if (status != BJ_OK) return status;
    status = bj_rollout_audit_runs(audit, o->runs, o->count, &library, err);
    if (!o->quiet && w.progress.last > w.progress.start) /* something was shown */
        cli_progress_end(&w.progress, status == BJ_OK ? w.progress.total : 0, w.note);
    if (status == BJ_OK) status = write_one(o->out, "curves.svg", audit, maze_audit_curves, err);
    if (status == BJ_OK) status = write_one(o->out, "context.svg", audit, maze_audit_context, err);
    if (status == BJ_OK) status = write_one(o->out, "audit.json", audit, print_json, err);
    return status;
}

int cmd_maze_audit(int argc, char **argv) {
    options o = {.out = "maze-audit", .horizon = BJ_MAZE_HORIZON, .count = 1};
    const char *standard = NULL;
    int operands;
    const cli_option table[] = {
        {"out", 'o', CLI_TEXT, "DIR", &o.out, 0, 0,
         "output folder for audit.json and the pictures"},
        {"standard", 0, CLI_TEXT, "RUN", &standard, 0, 0,
         "second run with the same data and split, to be drawn next to the first run"},
        {"horizon", 0, CLI_INT, "H", &o.horizon, 1, BJ_ROLLOUT_MAX_HORIZON,
         "number of frames after a context"},
        {"data", 0, CLI_TEXT, "FILE", &o.data, 0, 0, "path of the dataset, if it was moved"},
        {"maze", 0, CLI_TEXT, "NAME", &o.maze, 0, 0,
         "name of the maze, if the file name does not contain it"},
        CLI_OPTION_THREADS(&o.threads),
        CLI_OPTION_QUIET(&o.quiet),
        CLI_OPTION_JSON(&o.json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze audit",
        .summary = "roll out trained models on episodes that were not used for training",
        .operands = "RUN",
        .min_operands = 1,
        .max_operands = 1,
        .examples = "bjepa train --data antmaze-teleport-navigate-stride25.npz --arm maze-branch "
                    "--set maze.horizon=1 --set maze.held_out=0.3 --out branch\n"
                    "bjepa maze audit branch --standard standard -o audit\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    o.runs[0] = argv[1];
    if (standard) o.runs[o.count++] = standard;
    o.threads = cli_threads(o.threads);
    cli_catch_signals();
    bj_rollout_audit audit = {0};
    bj_error err = {0};
    if (run(&audit, &o, &err) != BJ_OK) {
        bj_rollout_audit_reset(&audit);
        const int code = cli_fail("maze audit", &err);
        return cli_stop ? CLI_SIGNALED + (int)cli_stop : code;
    }
    if (o.json) print_json(stdout, &audit);
    else print_text(&audit, o.out);
    bj_rollout_audit_reset(&audit);
    return CLI_OK;
}
