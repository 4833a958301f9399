# Tests bjepa maze show: the picture and the page of a graph, as files.
. "$BJ_ROOT/tests/support/cli.sh"
check "$TEST_MAZE_FILE" sample graph.json

run 0 maze show graph.json -o maze.svg
err_empty
out_empty
lines() { grep -cF -e "$1" "$2"; }
check test "$(lines 'class="m-edge m-real"' maze.svg)" -eq 82
check test "$(lines 'class="m-edge m-false"' maze.svg)" -eq 9
check test "$(lines 'class="m-edge m-missing"' maze.svg)" -eq 14
check test "$(lines 'class="m-dot"' maze.svg)" -eq 45
check test "$(lines 'class="m-port"' maze.svg)" -eq 5
check test "$(lines 'class="m-candidate"' maze.svg)" -eq 4
check grep -qF 'candidates of cell 10;' maze.svg # the one with most edges
run 0 maze show graph.json --source 3 -o maze.svg
check grep -qF 'candidates of cell 3;' maze.svg
if command -v python3 >/dev/null; then
    check python3 -c 'import xml.dom.minidom as d; d.parse("maze.svg")'
fi

# The page: one file, no address of anything outside, texts of others escaped.
run 0 maze show graph.json
check test -s maze.html
check grep -qF '<td>3 &quot;&lt;&amp;</td>' maze.html
check test "$(lines 'class="m-cell"' maze.html)" -eq 45
check test "$(grep -oE '(src|href)="[^#"]' maze.html | wc -l)" -eq 0
check test "$(grep -oE 'https?://[^"]*' maze.html | sort -u)" = http://www.w3.org/2000/svg
check test "$(lines '{{' maze.html)" -eq 0
cp maze.html first.html
run 0 maze show graph.json
check cmp maze.html first.html
run 0 maze show graph.json --seed 1
check test "$(cmp -s maze.html first.html && echo same)" = ""
if command -v python3 >/dev/null; then
    check python3 - <<'END'
import json, re
text = open("first.html").read()
d = json.loads(re.search(r'id="scene-data">(.*?)</script>', text, re.S).group(1))
assert len(d["cells"]) == 45 and len(d["edges"]) == 91 and sum(e[2] for e in d["edges"]) == 82
assert len(d["sources"]) == 45 and all(len(c) == 4 for c in d["sources"].values())
assert d["seen"] is False and [v for v, n in d["successors"][24]] == [5, 32, 36]
assert d["source"] == 10 and len(d["drives"]) == 5
for drive in d["drives"]:
    points = len(drive["path"]) // 2
    assert points == -(-drive["steps"] // drive["every"]) + 1, (points, drive["steps"])
    assert drive["steps"] == 1000 or drive["reached"]
END
fi

# Successors of a dataset instead of the true ones.
run 0 maze generate --branches 3 --seed 1 --episodes 5 --steps 200 -o three --json
cells=$(sed -n 's/.*"cells": \([0-9]*\),.*/\1/p' out)
printf '{"schema":"branchjepa.graph/1","maze":%s,"cells":%s,"edges":[]}' \
    "$(sed 's/"schema":"branchjepa.maze\/1",//' three.json)" "$cells" >empty.json
run 0 maze show empty.json --data three.npz -o three.html
check grep -qF '"seen":true' three.html

run 2 maze show graph.json -o maze.png
err_has "'maze.png', expected a name that ends in .svg or .html"
run 2 maze show graph.json --source 45
err_has "no cell 45; maze 'teleport' has 45 cells"
run 5 maze show none.json
run 3 maze show three.json
err_has "schema is 'branchjepa.maze/1', expected 'branchjepa.graph/1'"
run 2 maze show

finish
