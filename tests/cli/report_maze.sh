# Tests bjepa report with a maze campaign: graphs, table, curves, and the page in Chromium if installed.
. "$BJ_ROOT/tests/support/cli.sh"

"$TEST_DATASET" write walk-medium-v0.npz
cat >mazes.yaml <<'END'
name: little-mazes
arms: [maze-branch, maze-standard, maze-codebook]
seeds: [0, 1]
set:
  model.embed: 16
  model.latent: 24
  model.proj_hidden: 16
  model.atom_hidden: 16
  model.router_hidden: 8
  loss.variance_floor: 0.18
  loss.rank_floor: 12
  train.batch: 16
  train.updates: 60
  train.epochs: 3
  gate.std: 0
  gate.low_std: 1
  gate.rank: 0
  gate.separated: 0
END
run 0 campaign mazes.yaml --data walk-medium-v0.npz --out mazes -q
run 0 report mazes --out report.html
err_has "wrote report.html with 3 graphs"
check grep -qF '<h1>little-mazes</h1>' report.html
check test "$(grep -c '<template id="graph-' report.html)" -eq 3
check grep -qF 'id="maze-curves"' report.html
check test "$(grep -c 'id="learning"' report.html)" -eq 0
check test "$(grep -c 'id="scenes"' report.html)" -eq 0

# The table has the means of the runs.
want=$(cat mazes/runs/maze-branch/seed-*/result.json |
    awk -F'[:,]' '/"separated":/ { sum += $2; n++ } END { printf "%.1f", 100 * sum / n }')
check grep -qF "<td class=\"n\">$want <span class=\"soft\">" report.html

run 2 report mazes --scenes walk-medium-v0.npz --out other.html
err_has "maze runs have no scenes"
run 0 figures mazes --out figures --format svg
check test -s figures/maze-curves.svg

# Several datasets: mazes of their own, one of them generated, each arm once for each.
run 0 maze generate --branches 3 --seed 1 --episodes 20 --steps 200 -o three
sed -e 's/little-mazes/two-mazes/' -e 's/seeds: .*/seeds: 1/' \
    -e 's/arms: .*/arms: [maze-branch, maze-standard]/' mazes.yaml >both.yaml
printf 'data: {medium: walk-medium-v0.npz, three: three.npz}\n' >>both.yaml
run 0 campaign both.yaml --out both -q
run 0 report both --out both.html
err_has "wrote both.html with 4 graphs"
check grep -qF '>three: ' both.html
check grep -qF 'training data, three' both.html
run 0 maze drive both --episodes 1
out_has "maze medium: 5 tasks"
out_has "maze branch3-"
check grep -qE '^true graph without teleporters +100\.0 ' out

# Without the data there are numbers, but no graphs; a collapsed run is named.
mv walk-medium-v0.npz gone.npz
run 0 report mazes --out bare.html
err_has "the dataset of the run"
check grep -qF 'There are no graphs on this page.' bare.html
check grep -qF '<table>' bare.html
mv gone.npz walk-medium-v0.npz
sed -e 's/gate.rank: 0/gate.rank: 23/' -e 's/little-mazes/flat-mazes/' mazes.yaml >flat.yaml
"$BJEPA" campaign flat.yaml --data walk-medium-v0.npz --out flat -q >out 2>err
run 0 report flat --out flat.html
check grep -qF 'collapsed: seed 0, 1' flat.html
check grep -qF 'no finished run has a score' flat.html

if [ -z "${BJ_SANITIZE:-}" ] && command -v chromium >/dev/null && command -v node >/dev/null &&
    [ -e "$BJ_ROOT/.browser/version.txt" ]; then
    CHROMIUM=$(command -v chromium) node "$BJ_ROOT/tests/report/report_maze.mjs" report.html bare.html \
        both.html
    verdict $? "the pages in Chromium"
fi
finish
