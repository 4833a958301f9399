/* maze_archive.c - bjepa maze emit, reveal and verify: target-blind archives. */
#define _POSIX_C_SOURCE 200809L /* stat */
#include "cli.h"
#include "json_out.h"
#include "maze.h"
#include "maze_emit_run.h"

#include <branchjepa/maze_drive.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ----------------------------------------------------------------------------------------- emit */

static int is_folder(const char *path) {
    struct stat info;
    return !stat(path, &info) && S_ISDIR(info.st_mode);
}

/* Writes emissions from a file of latents or from a finished run. */
static bj_status emit(char digest[65], const char *name, const maze_emit_run *o, bj_error *err) {
    bj_maze *maze;
    if (is_folder(o->run)) return maze_emit_run_write(digest, o, err);
    bj_status status = bj_maze_open(&maze, name, err);
    if (status != BJ_OK) return status;
    status = bj_archive_emit_file(digest, o->out, o->run, maze, err);
    bj_maze_free(maze);
    return status;
}

int cmd_maze_emit(int argc, char **argv) {
    maze_emit_run o = {.run = NULL};
    char digest[65];
    int json = 0, operands;
    const cli_option table[] = {
        {"maze", 0, CLI_TEXT, "NAME", &o.how.maze, 0, 0,
         "medium, large, giant, teleport, or a maze file (default: the maze of the run)"},
        {"out", 'o', CLI_TEXT, "FILE", &o.out, 0, 0, "emissions file to write (safetensors)"},
        {"archive", 0, CLI_CHOICE, "a|b", &o.archive, 0, 0,
         "cells of a run to use as contexts: 'a' takes the five cells with the most successors, "
         "'b' takes four other cells, evenly spaced"},
        {"cells", 0, CLI_TEXT, "3,7,12", &o.cells, 0, 0,
         "use these cells of a run as contexts instead"},
        {"point", 0, CLI_TEXT, "RUN", &o.point, 0, 0, "add the single output of another run"},
        CLI_OPTION_THREADS(&o.how.threads),
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze emit",
        .summary =
            "write the outputs of a predictor and their SHA-256 without reading any successors",
        .operands = "LATENTS|RUN",
        .min_operands = 1,
        .max_operands = 1,
        .examples =
            "bjepa maze emit latents.safetensors --maze teleport -o emissions.safetensors\n"
            "bjepa maze emit runs/branch --point runs/standard --archive b -o b.safetensors\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    o.run = argv[1];
    if (!o.how.maze && !is_folder(o.run))
        return cli_misuse("maze emit", "--maze NAME is missing");
    if (!is_folder(o.run) && (o.cells || o.point))
        return cli_misuse("maze emit", "--cells and --point need a run folder, but %s is a file",
                          o.run);
    if (!o.out) return cli_misuse("maze emit", "--out is missing");
    const char *out = o.out;
    bj_error err;
    if (emit(digest, o.how.maze, &o, &err) != BJ_OK) return cli_fail("maze emit", &err);
    if (json) {
        printf("{\"schema\": 1, \"type\": \"maze_emit\", \"file\": ");
        cli_json_text(stdout, out);
        printf(", \"sha256\": \"%s\"}\n", digest);
    } else {
        printf("%s  %s\n", digest, out);
    }
    return CLI_OK;
}

/* --------------------------------------------------------------------------------------- reveal */

static void print_text(const bj_archive_report *r, const char *out) {
    printf("context  successors  hit  coverage  mass on successors%s\n",
           r->has_point ? "  hit by the point" : "");
    for (int s = 0; s < r->contexts; s++) {
        const bj_archive_context *c = &r->context[s];
        printf("%7d  %10d  %3d  %7.1f%%  %17.1f%%", (int)c->cell, c->successors, c->hit,
               100 * c->coverage, 100 * c->mass_on_support);
        if (r->has_point) printf("  %16d", c->point_hit);
        putchar('\n');
    }
    printf("\ncoverage   %.1f%%", 100 * r->coverage);
    if (r->has_point) printf(", by the point %.1f%%", 100 * r->point_coverage);
    printf("\nemissions  %s\ndata       %s\n%s  %s\n", r->emissions_sha256, r->data_sha256,
           r->sha256, out);
}

static void print_json(const bj_archive_report *r, const char *out) {
    printf("{\"schema\": 1, \"type\": \"maze_reveal\", \"file\": ");
    cli_json_text(stdout, out);
    printf(",\n  \"sha256\": \"%s\",\n  \"emissions_sha256\": \"%s\",\n  \"data_sha256\": \"%s\",\n"
           "  \"coverage\": ",
           r->sha256, r->emissions_sha256, r->data_sha256);
    cli_json_double(stdout, r->coverage);
    printf(", \"point_coverage\": ");
    cli_json_double(stdout, r->point_coverage);
    printf(", \"contexts\": [");
    for (int s = 0; s < r->contexts; s++) {
        const bj_archive_context *c = &r->context[s];
        printf("%s\n    {\"cell\": %d, \"successors\": %d, \"hit\": %d, \"point_hit\": %d, "
               "\"mass_on_support\": ",
               s ? "," : "", (int)c->cell, c->successors, c->hit, c->point_hit);
        cli_json_double(stdout, c->mass_on_support);
        printf("}");
    }
    printf("]}\n");
}

int cmd_maze_reveal(int argc, char **argv) {
    const char *name = NULL, *out = NULL, *expected = NULL;
    int json = 0, operands;
    const cli_option table[] = {
        {"maze", 0, CLI_TEXT, "NAME", &name, 0, 0,
         "medium, large, giant, teleport, or a maze file (default: taken from the data file name)"},
        {"out", 'o', CLI_TEXT, "FILE", &out, 0, 0, "successors file to write (JSON)"},
        {"sha256", 0, CLI_TEXT, "HEX", &expected, 0, 0,
         "expected SHA-256 of the emissions; the command fails if it differs"},
        CLI_OPTION_JSON(&json),
        CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze reveal",
        .summary = "add the successors of a dataset to emissions",
        .operands = "EMISSIONS DATA",
        .min_operands = 2,
        .max_operands = 2,
        .examples = "bjepa maze reveal emissions.safetensors pointmaze-teleport-navigate-v0.npz -o "
                    "a.json\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    if (!name) name = bj_maze_guess(argv[2]);
    if (!name) return cli_misuse("maze reveal", "--maze NAME is missing");
    if (!out) return cli_misuse("maze reveal", "--out is missing");
    bj_error err;
    bj_maze *maze = NULL;
    bj_archive_report report = {.contexts = 0};
    bj_status status = bj_maze_open(&maze, name, &err);
    if (status == BJ_OK)
        status = bj_archive_reveal(&report, out, argv[1], expected, maze, argv[2], &err);
    if (status == BJ_OK && json) print_json(&report, out);
    if (status == BJ_OK && !json) print_text(&report, out);
    bj_archive_report_reset(&report);
    bj_maze_free(maze);
    if (status == BJ_EMISMATCH) {
        cli_fail("maze reveal", &err);
        return CLI_REFUSED;
    }
    return status == BJ_OK ? CLI_OK : cli_fail("maze reveal", &err);
}

/* --------------------------------------------------------------------------------------- verify */

int cmd_maze_verify(int argc, char **argv) {
    int operands;
    const cli_option table[] = {CLI_OPTION_END};
    const cli_usage usage = {
        .verb = "maze verify",
        .summary = "check that a successors file was made from these emissions",
        .operands = "SUCCESSORS EMISSIONS",
        .min_operands = 2,
        .max_operands = 2,
        .examples = "bjepa maze verify a.json emissions.safetensors\n",
        .options = table,
    };
    const int result = cli_parse(&usage, argc, argv, &operands);
    if (result != CLI_CONTINUE) return result;
    bj_error err;
    const bj_status status = bj_archive_check(argv[1], argv[2], &err);
    if (status == BJ_OK) {
        printf("%s: its digest matches %s\n", argv[2], argv[1]);
        return CLI_OK;
    }
    const int code = cli_fail("maze verify", &err);
    return status == BJ_EMISMATCH ? CLI_REFUSED : code;
}
