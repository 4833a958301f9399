# Tests bjepa maze data with valid and invalid datasets, and bjepa parity with golden files of mazes.
. "$BJ_ROOT/tests/support/cli.sh"
golden=$BJ_ROOT/tests/golden/maze

row() { # row LABEL COUNT: a line of the output that has both
    check grep -qE "^$1 +$2( |\$)" out
}

# Three episodes in a corner of the medium maze; tests/maze/test_dataset.c has their cells.
check "$TEST_DATASET" write walk-medium-v0.npz
run 0 maze data walk-medium-v0.npz
err_empty
row maze medium
row episodes 3
row steps 14
row "steps outside cells" 1
row "cells visited" 4
row crossings 5
row "unique edges" 5
row "true edges seen" 5
row "retreat edges" 0
row "branch factor" 1.250
row "withheld edges" 1
out_has "5  of 56; the rarest was crossed 1 times"
out_has "true edges that were never crossed"
out_has "  0 (1,1) -> 4 (2,1)"
out_has "  and 31 more"
check grep -qE '^cells, seen +22 +3 +1 +0$' out
check grep -qE '^cells, true +0 +1 +20 +5$' out
if command -v sha256sum >/dev/null; then
    out_has "sha256  $(sha256sum <walk-medium-v0.npz | cut -c1-64)"
fi

# The name of the file says which maze, unless told.
cp walk-medium-v0.npz walk.npz
run 2 maze data walk.npz
err_has "the file name 'walk.npz' contains none of the maze names medium, large, giant and teleport"
out_empty
run 0 maze data walk.npz --maze medium
row maze medium
run 0 maze data walk-medium-v0.npz --maze teleport
row maze teleport
row "steps outside cells" 3
run 2 maze data walk.npz --maze lage
err_has "unknown maze 'lage'; did you mean 'large'?"

run 0 maze data walk-medium-v0.npz --json
if command -v python3 >/dev/null; then
    check python3 - <<'END'
import json
s = json.load(open("out"))
assert (s["schema"], s["type"], s["maze"]) == (1, "maze_data", "medium")
assert s["file"] == "walk-medium-v0.npz"
assert (s["episodes"], s["steps"], s["stride"], s["steps_in_no_cell"]) == (3, 14, 1, 1)
assert (s["cells"], s["true_edges"], s["cells_visited"], s["sources"]) == (26, 56, 4, 4)
assert (s["unique_edges"], s["observed_true"], s["crossings"], s["withheld"]) == (5, 5, 5, 1)
assert (s["retreat"], s["diagonal"], s["other"], s["open_end"]) == (0, 0, 0, False)
assert s["branch_factor"] == 1.25 and s["shape"] == [2] and len(s["sha256"]) == 64
assert s["successors_seen"] == [22, 3, 1, 0] and s["successors_true"] == [0, 1, 20, 5]
edges = [(e["from"], e["to"], e["crossings"], e["kind"]) for e in s["edges"]]
assert edges == [(a, b, 1, "real") for a, b in ((0, 1), (1, 0), (1, 5), (4, 5), (5, 1))]
assert len(s["missing"]) == 51 and [0, 4] in s["missing"] and [0, 1] not in s["missing"]
END
fi

# Not a dataset.
run 5 maze data none-medium.npz
err_has none-medium.npz
head -c 200 walk.npz >half-medium.npz
run 3 maze data half-medium.npz
err_has "half-medium.npz: found no ZIP directory at the end of the 200 bytes"
run 3 maze data "$golden/threshold.npz" --maze medium
err_has "no array 'observations'; the file contains: candidates, cells"
out_empty
run 2 maze data
run 2 maze data a b
run 2 maze
run 2 maze dta
err_has "did you mean 'data'?"
run 0 maze --help
out_has "bjepa maze data pointmaze-large-navigate-v0.npz"

# Golden files: a folder, one line a file; exit 4 when a number differs, 3 when a file is damaged.
run 0 parity "$golden"
err_empty
check test "$(grep -c '^ok ' out)" -eq 6
out_has "6 passed, 0 failed, 0 rejected"
run 0 parity --json "$golden/wide_k8.npz"
out_has '"type":"parity","case":"wide_k8"'
out_has '"compared":16,"passed":true'
cp "$golden/small_k3.npz" damaged.npz
printf '\001' | dd of=damaged.npz bs=1 seek=400 conv=notrunc status=none
run 3 parity damaged.npz
err_has "damaged.npz: member 'candidates.npy': CRC-32 is"
run 3 parity walk.npz
err_has "walk.npz: not a golden file: it has none of the arrays 'candidates', 'xy' and 'frame_candidates'"
if [ -x "$BJ_ROOT/.venv/bin/python" ]; then
    for name in expected_plan_all expected_predicted expected_counts expected_cov_r; do
        file=$golden/small_k3.npz
        [ $name = expected_counts ] && file=$golden/walk.npz
        check "$BJ_ROOT/.venv/bin/python" - "$file" $name <<'END'
import sys
import numpy as np
arrays = dict(np.load(sys.argv[1]))
flat = arrays[sys.argv[2]].reshape(-1)
flat[0] = 1 - flat[0] if flat.dtype == np.uint8 else flat[0] + 1
np.savez("changed.npz", **arrays)
END
        run 4 parity changed.npz
        check grep -qE '^FAIL changed ' out
        out_has "$name[0] is"
    done
fi

finish
