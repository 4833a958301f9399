/* graph_candidates.c - derives the edges and nearest cells of a graph file from candidates.
 *
 * Test: tests/maze/test_maze_file.c
 */
#include <math.h>

#include "core/alloc.h"
#include "maze/drive.h"

bj_status bj_graph_edges(bj_edge **out, int *count, const uint8_t *graph, int cells,
                         bj_error *err) {
    int n = 0;
    *out = NULL;
    *count = 0;
    if (cells < 1 || cells > BJ_MAZE_MAX_CELLS)
        return BJ_FAIL(err, BJ_EARG, "graph: %d cells, expected 1 to %d", cells,
                       (int)BJ_MAZE_MAX_CELLS);
    for (int u = 0; u < cells; u++)
        for (int v = 0; v < cells; v++) n += u != v && graph[(size_t)u * (size_t)cells + (size_t)v];
    BJ_TRY(BJ_ALLOC(*out, (size_t)n, err));
    for (int32_t u = 0; u < cells; u++)
        for (int32_t v = 0; v < cells; v++)
            if (u != v && graph[(size_t)u * (size_t)cells + (size_t)v])
                (*out)[(*count)++] = (bj_edge){u, v};
    return BJ_OK;
}

bj_status bj_graph_candidates(bj_graph_candidate *out, const bj_graph_case *input,
                              const bj_real *mass, bj_error *err) {
    const size_t D = (size_t)input->D, rows = (size_t)input->sources * (size_t)input->K;
    double *cells = NULL, *x = NULL;
    bj_status status;
    if (input->cells < 1 || input->sources < 0 || input->K < 1 || input->D < 1)
        return BJ_FAIL(err, BJ_EARG,
                       "candidates: a size is out of range: %d cells, %d sources, K = %d, D = %d",
                       input->cells, input->sources, input->K, input->D);
    BJ_GOTO(status, done, BJ_ALLOC(cells, (size_t)input->cells * D, err));
    BJ_GOTO(status, done, BJ_ALLOC(x, D, err));
    for (int c = 0; c < input->cells; c++)
        BJ_GOTO(status, done,
                bj_maze_unit(cells + (size_t)c * D, input->latents + (size_t)c * D, input->D,
                             "the latent of cell", c, err));
    for (size_t k = 0; k < rows; k++) {
        BJ_GOTO(status, done,
                bj_maze_unit(x, input->candidates + k * D, input->D, "candidate", (int)k, err));
        bj_graph_candidate best = {-1, 0, mass ? (double)mass[k] : (double)NAN};
        const int zero = bj_maze_dot(x, x, input->D) == 0;
        for (int c = 0; c < input->cells && !zero; c++) {
            const double cosine = bj_maze_dot(x, cells + (size_t)c * D, input->D);
            if (best.cell >= 0 && cosine <= best.cosine) continue;
            best.cell = c;
            best.cosine = cosine;
        }
        out[k] = best;
    }
done:
    bj_free(cells);
    bj_free(x);
    return status;
}
