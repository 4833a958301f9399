/* maze_emit_run.c - see maze_emit_run.h. */
#include "maze_emit_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------- contexts */

static int successors(const bj_maze *m, int cell) {
    int n = 0;
    for (int v = 0; v < m->cells; v++) n += m->graph[(size_t)cell * (size_t)m->cells + (size_t)v];
    return n;
}

static int ascending(const void *a, const void *b) {
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

int maze_archive_cells(int32_t cells[MAZE_CONTEXTS], const bj_maze *m, int archive) {
    int32_t first[MAZE_ARCHIVE_A];
    int count = 0, others = 0, chosen = 0;
    for (int n = m->cells; n > 0; n--) /* most successors first, then by number */
        for (int u = 0; u < m->cells && count < MAZE_ARCHIVE_A; u++)
            if (successors(m, u) == n) first[count++] = u;
    qsort(first, (size_t)count, sizeof *first, ascending);
    if (!archive) {
        memcpy(cells, first, (size_t)count * sizeof *first);
        return count;
    }
    for (int pass = 0; pass < 2; pass++) { /* how many there are, then which */
        int at = 0;
        for (int u = 0; u < m->cells; u++) {
            if (!successors(m, u) ||
                bsearch(&(int32_t){u}, first, (size_t)count, sizeof *first, ascending))
                continue;
            if (pass && chosen < MAZE_ARCHIVE_B &&
                at == (2 * chosen + 1) * others / (2 * MAZE_ARCHIVE_B))
                cells[chosen++] = u;
            at++;
        }
        others = at;
    }
    return chosen;
}

static bj_status read_cells(int32_t cells[MAZE_CONTEXTS], int *count, const char *text,
                            const bj_maze *m, bj_error *err) {
    const char *at = text;
    *count = 0;
    for (;;) {
        char *end;
        errno = 0;
        const long cell = strtol(at, &end, 10);
        if (end == at || errno || (*end && *end != ','))
            return cli_error(err, BJ_EARG, "--cells: found '%s', expected cells such as 3,7,12", text);
        if (cell < 0 || cell >= m->cells)
            return cli_error(err, BJ_EARG, "no cell %ld; maze '%s' has %d cells", cell, m->name,
                             m->cells);
        if (*count == MAZE_CONTEXTS)
            return cli_error(err, BJ_EARG, "more than %d cells", (int)MAZE_CONTEXTS);
        cells[(*count)++] = (int32_t)cell;
        if (!*end) return BJ_OK;
        at = end + 1;
    }
}

/* -------------------------------------------------------------------------------------- writing */

/* Computes the outputs of a run at the centers of all cells. */
typedef struct said {
    bj_maze_run *run;
    bj_real *latents, *candidates, *masses; /* (C,D), (C,L,D), (C,L) */
    size_t L, D;
} said;

static void said_reset(said *s) {
    free(s->masses);
    free(s->candidates);
    free(s->latents);
    bj_maze_run_free(s->run);
}

static bj_status ask(said *s, const char *dir, const bj_maze_run_options *how, bj_error *err) {
    const bj_status status = bj_maze_run_open(&s->run, dir, how, err);
    if (status != BJ_OK) return status;
    const size_t C = (size_t)bj_maze_run_maze(s->run)->cells;
    s->L = (size_t)bj_maze_run_candidates(s->run);
    s->D = (size_t)bj_maze_run_arch(s->run)->latent;
    s->latents = malloc(C * s->D * sizeof *s->latents);
    s->candidates = malloc(C * s->L * s->D * sizeof *s->candidates);
    s->masses = malloc(C * s->L * sizeof *s->masses);
    if (!s->latents || !s->candidates || !s->masses)
        return cli_error(err, BJ_ENOMEM, "out of memory for %zu cells", C);
    return bj_maze_run_centers(s->run, s->latents, s->candidates, s->masses, err);
}

static bj_status check_point(const said *p, const said *s, const maze_emit_run *o, bj_error *err) {
    const bj_maze *a = bj_maze_run_maze(p->run), *b = bj_maze_run_maze(s->run);
    if (p->L != 1)
        return cli_error(err, BJ_EARG, "%s: the model has %zu outputs, expected one", o->point,
                         p->L);
    if (p->D != s->D)
        return cli_error(err, BJ_EARG, "%s: the latents have %zu dimensions, expected %zu as in %s",
                         o->point, p->D, s->D, o->run);
    if (a->cells != b->cells || strcmp(a->name, b->name))
        return cli_error(err, BJ_EARG, "%s: the run was trained in maze '%s', expected '%s'",
                         o->point, a->name, b->name);
    return BJ_OK;
}

static bj_status emit(char sha256[65], const said *s, const said *p, const maze_emit_run *o,
                      bj_error *err) {
    const bj_maze *m = bj_maze_run_maze(s->run);
    const bj_run *folder = bj_maze_run_folder(s->run);
    const bj_settings *settings = bj_run_settings(folder);
    const size_t row = s->L * s->D;
    int32_t cells[MAZE_CONTEXTS];
    int count;
    bj_status status = BJ_OK;
    if (o->cells) status = read_cells(cells, &count, o->cells, m, err);
    else count = maze_archive_cells(cells, m, o->archive);
    if (status != BJ_OK) return status;
    const size_t S = (size_t)count;
    bj_real *candidates = malloc(S * row * sizeof *candidates);
    bj_real *mass = malloc(S * s->L * sizeof *mass), *point = malloc(S * s->D * sizeof *point);
    if (!candidates || !mass || !point)
        status = cli_error(err, BJ_ENOMEM, "out of memory for %d contexts", count);
    for (size_t i = 0; status == BJ_OK && i < S; i++) {
        const size_t at = (size_t)cells[i];
        memcpy(candidates + i * row, s->candidates + at * row, row * sizeof *candidates);
        memcpy(mass + i * s->L, s->masses + at * s->L, s->L * sizeof *mass);
        if (p) memcpy(point + i * s->D, p->candidates + at * s->D, s->D * sizeof *point);
    }
    if (status == BJ_OK) {
        char seed[32];
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)settings->seed);
        const bj_fact facts[] = {
            {"archive", o->cells     ? "cells"
                        : o->archive ? "B"
                                     : "A"},
            {"arm", settings->arm},
            {"seed", seed},
            {"settings_sha256", bj_run_fact(folder, "settings.sha256")},
            {"trained_on_sha256", bj_run_fact(folder, "data.digest")},
            {"point_arm", p ? bj_run_settings(bj_maze_run_folder(p->run))->arm : NULL},
            {"point_settings_sha256",
             p ? bj_run_fact(bj_maze_run_folder(p->run), "settings.sha256") : NULL}};
        const bj_emissions e = {.maze = m,
                                .contexts = count,
                                .K = (int)s->L,
                                .D = (int)s->D,
                                .context_cells = cells,
                                .candidates = candidates,
                                .mass = mass,
                                .point = p ? point : NULL,
                                .latents = s->latents,
                                .point_latents = p ? p->latents : NULL,
                                .facts = facts,
                                .fact_count = p ? 7 : 5};
        status = bj_archive_emit(sha256, o->out, &e, err);
    }
    free(point);
    free(mass);
    free(candidates);
    return status;
}

bj_status maze_emit_run_write(char sha256[65], const maze_emit_run *o, bj_error *err) {
    said s = {.run = NULL}, p = {.run = NULL};
    bj_status status = ask(&s, o->run, &o->how, err);
    if (status == BJ_OK && o->point) status = ask(&p, o->point, &o->how, err);
    if (status == BJ_OK && o->point) status = check_point(&p, &s, o, err);
    if (status == BJ_OK) status = emit(sha256, &s, o->point ? &p : NULL, o, err);
    said_reset(&p);
    said_reset(&s);
    return status;
}
