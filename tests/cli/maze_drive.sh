# Tests bjepa maze drive and generate: official tasks with the true graph, graph files, generated mazes.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 maze drive --maze medium --episodes 2
err_empty
out_has "maze medium, graph true: 56 edges, 56 real"
check grep -qE '^ +1  \(1,1\) +\(6,6\) +10 +2/2 +100\.0 +1[0-9]{2}\.[0-9] +0$' out
check grep -qE '^all +10/10 +100\.0' out

# Teleporters are chance; around them all tasks succeed. The same seed, the same numbers.
run 0 maze drive --maze teleport --json
cp out first
run 0 maze drive --maze teleport --json
check cmp first out
run 0 maze drive --maze teleport --seed 1 --json
check test "$(cmp -s first out && echo same)" = ""
run 0 maze drive --maze teleport --graph walks --json
out_has '"edges": 90, "real_edges": 90'
out_has '"episodes": 100, "successes": 100, "success": 1,'
out_has '"success_radius": 1, "tasks": ['
out_has '"step_limit": 1000'

# A graph file: one false edge, and no way on behind it.
cat >wrong.json <<'END'
{"schema": "branchjepa.graph/1", "maze": "medium", "cells": 26, "edges": [[0, 25]],
 "provenance": {"predictor": "by hand"}}
END
run 0 maze drive --graph wrong.json --episodes 1
out_has "maze medium, graph wrong.json: 1 edges, 0 real"
check grep -qE '^ +2  .* no path +0/1 +0\.0 +- ' out
run 0 maze drive --graph wrong.json --maze medium --episodes 1 --patience 5 --json
out_has '"edges_given_up": 1'
out_has '"mean_steps": null'
run 2 maze drive --graph wrong.json --maze large
err_has "wrong.json: the graph belongs to maze 'medium', expected 'large'"
sed -i 's/26/27/' wrong.json
run 3 maze drive --graph wrong.json
err_has "wrong.json: 'cells' is 27, expected 26, as in the maze"
run 5 maze drive --graph none.json
run 2 maze drive
err_has "found no maze, expected --maze NAME"
run 2 maze drive --maze larg
err_has "did you mean 'large'?"

# A generated maze with its walks; the same seed, the same bytes.
run 0 maze generate --branches 5 --seed 7 --episodes 40 --steps 500 -o five
out_has "branch5-4x5-seed7: "
out_has "4 designated cells with 5 successors each:"
out_has "five.npz: 40 episodes, 20000 steps"
mv five.npz first.npz
run 0 maze generate --branches 5 --seed 7 --episodes 40 --steps 500 -o five --json
check cmp five.npz first.npz
out_has '"branches": 5'
run 0 maze data five.npz --maze five.json
check grep -qE '^maze +branch5-4x5-seed7 ' out
check grep -qE '^episodes +40$' out
check grep -qE '^cells visited +4[0-9] ' out
check grep -qE '^cells, true +0 +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ +[4-9]' out
run 0 maze drive --maze five.json --graph walks
check grep -qE '^all +100/100 +100\.0' out
if [ -x "$BJ_ROOT/.venv/bin/python" ]; then
    check "$BJ_ROOT/.venv/bin/python" - <<'END'
import numpy as np
a = np.load("five.npz")
assert sorted(a) == ["actions", "observations", "qpos", "terminals"]
assert a["observations"].shape == (20000, 2) and a["observations"].dtype == np.float32
assert a["terminals"].dtype == bool and a["terminals"].sum() == 40 and a["terminals"][499]
assert abs(a["actions"]).max() <= 1
moved = (a["observations"] != a["qpos"]).any(1)
assert 0 < moved.sum() < 2000
END
fi
run 2 maze generate --branches 9 -o nine
run 2 maze generate --branches 3
err_has "--out is missing"
run 2 maze generate --branches 8 --rows 2 --cols 2 -o small
err_has "use more than 2 by 2 rooms"

finish
