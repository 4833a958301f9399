/* maze_audit_draw.h - draws two pictures of a rollout audit: its curves, and one context.
 *
 * Tests: tests/cli/maze_audit.sh
 */
#ifndef BJEPA_MAZE_AUDIT_DRAW_H
#define BJEPA_MAZE_AUDIT_DRAW_H

#include <stdio.h>

#include <branchjepa/maze_audit.h>

/* Draws four panels over the steps: distance of latents, hits, error of positions, mass in
 * walls. */
void maze_audit_curves(FILE *to, const bj_rollout_audit *audit);
/* Draws the maze once for each arm, with the true path of the context and its rollouts. */
void maze_audit_context(FILE *to, const bj_rollout_audit *audit);

#endif
