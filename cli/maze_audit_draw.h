/* maze_audit_draw.h - an audit of rollouts as two pictures: its curves, and the context that is
 * drawn.
 *
 * Tests: tests/cli/maze_audit.sh
 */
#ifndef BJEPA_MAZE_AUDIT_DRAW_H
#define BJEPA_MAZE_AUDIT_DRAW_H

#include <stdio.h>

#include <branchjepa/maze_audit.h>

/* Four panels over the steps: distance of latents, hits, error of positions, mass in walls. */
void maze_audit_curves(FILE *to, const bj_rollout_audit *audit);
/* The maze once for each arm, with where the context went and where its rollouts went. */
void maze_audit_context(FILE *to, const bj_rollout_audit *audit);

#endif
