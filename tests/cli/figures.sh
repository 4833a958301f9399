# Tests bjepa figures: every plot that has data, and labels of development and locked numbers.
. "$BJ_ROOT/tests/support/cli.sh"
. "$BJ_ROOT/tests/support/small_campaign.sh"

starts_with() { # starts_with FILE TEXT
    [ "$(head -c ${#2} "$1")" = "$2" ]
}
drawn() { ls "$1" | tr '\n' ' '; }

# ------------------------------------------------------------------------------------- seed table

run 0 figures "$BJ_ROOT/data/paper/av2_seeds.csv" --out paper --format svg
check test "$(drawn paper)" = "summary.svg support.svg "
out_has "paper/summary.svg"
check grep -qF '(e) Maneuver Brier score' paper/summary.svg
check grep -qF 'seed table av2_seeds.csv' paper/summary.svg
# -.1435 [-.1574, -.1295], as the paper prints it
check grep -qF 'full-set minus specialization: −0.1435 [−0.1574, −0.1295], lower in 5 of 5 seeds' \
    paper/summary.svg
cp paper/summary.svg before.svg
run 0 figures "$BJ_ROOT/data/paper/av2_seeds.csv" --out paper --only summary -f svg
check cmp before.svg paper/summary.svg

run 0 figures "$BJ_ROOT/data/paper/av2_seeds.csv" --out single --only summary -f svg --panels
check test "$(drawn single | wc -w)" -eq 5
check grep -qF '>Endpoint Energy Score' single/summary-2.svg
check grep -qF 'panel 2 of 5' single/summary-2.svg

# ------------------------------------------------------------------------------------------ misuse

run 2 figures paper
err_has "--out FOLDER is missing"
run 2 figures paper --out figs --only sumary
err_has "no plot 'sumary'; did you mean 'summary'?"
run 2 figures paper --out figs --format svg,gif
err_has "no format 'gif'"
printf 'arm,seed,metric,value\nfullset,0,nobody_knows,1\n' >odd.csv
run 3 figures odd.csv --out figs
err_has "odd.csv: nothing to draw yet"
run 3 figures odd.csv --out figs --only learning
err_has "has no data for the plot 'learning' yet"
echo x >file
run 5 figures "$BJ_ROOT/data/paper/av2_seeds.csv" --out file
run 5 figures nowhere --out figs
err_has "nowhere"
check mkdir -p empty
"$BJEPA" figures empty --out figs >out 2>err
check test $? -ne 0
check grep -q campaign err

# ---------------------------------------------------------------------------------------- campaign

check small_campaign camp fullset specialization point
run 0 figures camp --out dev --format svg
check test "$(drawn dev)" = \
    "exchange-curves.svg exchange.svg learning.svg losses.svg summary.svg support.svg "
check grep -qF 'development scenes' dev/summary.svg
check grep -qF 'not the locked evaluation' dev/summary.svg
check grep -qF ', chosen' dev/learning.svg
check grep -qF 'training runs and their development scenes' dev/learning.svg
check grep -qF '(c) point, K = 1' dev/losses.svg
# epochs are integers: the campaign has two
check test "$(grep -c '>[012]</text>' dev/learning.svg)" -ge 12
check sh -c '! grep -q ">0\.5</text>" dev/losses.svg'
# what the models look at: a mark for each seed, a line for each run, and the numbers of metrics.csv
for title in "(a) Exchanged map, increase in %" "(b) Exchanged neighbors" "(c) Exchanged focal track"; do
    check grep -qF "$title" dev/exchange.svg
    check grep -qF "$title" dev/exchange-curves.svg
done
check grep -qF '(d) Effective number of attended tokens' dev/exchange-curves.svg
check grep -qF '(e) Norm of the context' dev/exchange-curves.svg
for seed in 0 1; do
    norm=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $at["best"] == 1 { printf "%.1f at epoch %d", $at["encoder.context_norm"], $at["epoch"] }' \
        camp/runs/fullset/seed-$seed/metrics.csv)
    check grep -qF "full-set, seed $seed: $norm, chosen" dev/exchange-curves.svg
    focal=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
        $at["best"] == 1 { printf "%.1f", 100 * $at["exchange.focal"] / $at["exchange.plain"] }' \
        camp/runs/fullset/seed-$seed/metrics.csv)
    check grep -qE "full-set, seed $seed: .?$(echo "$focal" | tr -d -)<" dev/exchange.svg
done
# a line for each run
check test "$(grep -o '<title>[^<]*, seed [01]</title>' dev/losses.svg | sort -u | wc -l)" -eq 6

check "$BJEPA" lock camp --data val.bjc -q >/dev/null
check "$BJEPA" lock run camp --threads 1 -q >/dev/null
run 0 figures camp --out locked --format svg
check test "$(drawn locked)" = \
    "calibration.svg exchange-curves.svg exchange.svg learning.svg losses.svg summary.svg support.svg usage.svg "
check grep -qF 'locked evaluation, 80 held-out scenes' locked/summary.svg
check sh -c '! grep -qF "development scenes" locked/summary.svg'
check sh -c '! grep -qF "locked evaluation" locked/learning.svg'
check test "$(grep -c 'full-set, seed 1: ' locked/usage.svg)" -eq 6
# the mark of a seed is the number of the table
value=$("$BJEPA" table camp --per-seed --format csv -m traj_es | sed -n 's/^fullset,1,traj_es,//p')
check grep -qF "full-set, seed 1: $(printf %.4f "$value")<" locked/summary.svg

"$BJEPA" audit camp --data val.bjc --a fullset --b point --resamples 100 --json -q >camp/audit.json
"$BJEPA" truth --baseline --limit 20 --samples 16 --best-scenes 0 --json -q \
    camp/runs/fullset/seed-[01]/ckpt/best val.bjc val.bjc.law.safetensors >camp/truth.json
run 0 figures camp --out all --format svg
check test "$(drawn all | wc -w)" -eq 10
check grep -qF '(g) Feasible endpoint diversity' all/audit.svg
check grep -qF 'full-set minus point K=1' all/audit.svg
check grep -qF '80 scenes (vehicles and buses)' all/audit.svg
check grep -qF 'true-modes' all/truth.svg
check grep -qF 'full-set, seed 1: ' all/truth.svg
check grep -qF '20 simulated scenes, ' all/truth.svg
check test -z "$(grep -l -e nan -e inf all/*.svg)"
run 0 figures camp --out again --format svg
check diff -r all again

# ---------------------------------------------------------------------------------------- gallery

mkdir -p camp/gallery/inner camp/gallery/.hidden
cp all/usage.svg camp/gallery/atlas.svg
cp all/truth.svg camp/gallery/inner/case-1.svg
cp all/truth.svg camp/gallery/.hidden/no.svg
echo '{}' >camp/gallery/manifest.json
run 0 figures camp --out gal --only gallery --format svg
check test "$(drawn gal)" = "gallery-atlas.svg gallery-inner-case-1.svg "
check cmp gal/gallery-inner-case-1.svg all/truth.svg
run 0 figures camp --out gal2 --format svg
check test "$(drawn gal2 | wc -w)" -eq 12
run 0 figures "$BJ_ROOT/data/paper/av2_seeds.csv" --out gal3 --gallery camp/gallery -f svg \
    --only gallery
check diff -r gal gal3
run 3 figures camp --out gal4 --gallery paper/nothing --format svg
err_has "paper/nothing: has no pictures"
rm -r camp/gallery

# ----------------------------------------------------------------------------------- broken files

for name in audit truth; do
    cp camp/$name.json kept
    echo '{"arms": ' >camp/$name.json
    run 3 figures camp --out figs
    err_has "camp/$name.json: byte"
    echo '{"arms": {}}' >camp/$name.json
    run 3 figures camp --out figs
    err_has "$name.json: 'arms' is object, expected a list"
    cp kept camp/$name.json
done

# -------------------------------------------------------------------------------------- PDF and PNG

# Where librsvg cannot be loaded, SVG is all there is, unless the other was asked for by name.
mkdir -p broken
echo "no library" >broken/librsvg-2.so.2
LD_LIBRARY_PATH=$PWD/broken run 0 figures camp --out without --only summary,support
err_has "writing SVG only: PNG and PDF output needs librsvg"
check test "$(grep -c "needs librsvg" err)" -eq 1
check test "$(drawn without)" = "summary.svg support.svg "
LD_LIBRARY_PATH=$PWD/broken run 2 figures camp --out without --only summary --format pdf
err_has "librsvg2-2"
check test -z "$(ls -A without | grep -e tmp -e pdf)"

case $(/sbin/ldconfig -p) in
*librsvg-2.so.2*) ;;
*)
    echo "skipped: PNG and PDF; scripts/install_deps.sh pictures installs librsvg"
    finish
    ;;
esac
if [ "${BJ_SANITIZE:-}" = thread ]; then
    echo "skipped: PNG and PDF; the libraries that draw them are not built for the thread sanitizer"
    finish
fi
run 0 figures camp --out pdf --only summary,truth
check test "$(drawn pdf)" = "summary.pdf summary.svg truth.pdf truth.svg "
check starts_with pdf/summary.pdf '%PDF-'
check test "$(stat -c %s pdf/summary.pdf)" -gt 8000
run 0 figures camp --out pdf --only summary --format png
check test "$(stat -c %s pdf/summary.png)" -gt 30000
check test -z "$(ls -A pdf | grep tmp)"

finish
