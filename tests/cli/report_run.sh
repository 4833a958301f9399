# bjepa report and figures of a single run: curves, health, settings and scenes without a campaign.
. "$BJ_ROOT/tests/support/cli.sh"

cat >tiny.yaml <<'END'
model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
        router_hidden: 8, decoder_hidden: 8, trunk: 8}
train: {batch: 32, epochs: 3, warmup: 1}
END
check "$BJEPA" simulate --cache t.bjc --scenes 160 --seed 3 -q --jobs 1 >/dev/null
check "$BJEPA" train --data t.bjc -c tiny.yaml --arm fullset --seed 4 --out runs/first -q -j 1 >out 2>err
digest=$("$BJEPA" data info t.bjc --json | sed -n 's/.*"digest": *"\([0-9a-f]*\)".*/\1/p' | head -1)

run 0 report runs/first/ --out run.html --threads 1
err_has "bjepa report: wrote run.html with "
check grep -q '<h1>first</h1>' run.html
check grep -q 'development scenes' run.html
check grep -q "training data <span class=\"hash\">$(printf %.16s "$digest")" run.html
for section in scenes results learning losses parameters provenance; do
    check grep -q "<section id=\"$section\"" run.html
done
check grep -q '<code>train.epochs</code></th><td><strong>3</strong>' run.html
check grep -q 'minADE6, m' run.html
check grep -q '<summary>1 run</summary>' run.html
es=$(sed -n 's/.*"best":true.*"dev":{"scenes":[0-9.]*,"traj_es":\([0-9.]*\),.*/\1/p' runs/first/metrics.jsonl |
    tail -1)
check grep -q ">$(printf %.3f "$es")<" run.html
run 0 report runs/first --out none.html --count 0
err_has "no scenes: No scenes were requested."

run 0 figures runs/first --out figs --format svg
for plot in summary learning losses; do check grep -q '</svg>' figs/$plot.svg; done
check grep -q 'first: training runs and their development scenes' figs/learning.svg

# A run that was moved away from its data has a page without scenes.
mv t.bjc moved.bjc
run 0 report runs/first --out run.html
err_has "no scenes: "
run 0 report runs/first --out run.html --scenes moved.bjc --count 3
err_has "wrote run.html with 3 scenes"

# Folders that are neither, and tables, which need a campaign.
mkdir empty
for verb in report figures; do
    run 5 $verb empty --out out.d
    err_has "empty: has neither campaign.json nor manifest.json, expected a campaign folder or a run folder"
done
run 5 table runs/first
err_has "hint: runs/first is a single run; use 'bjepa report runs/first' to show it"

finish
