# Tests bjepa simulate and bjepa world show: both outputs, their law, resuming, rejected input.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 simulate --cache a.bjc --scenes 40 --seed 5 --jobs 1 --quiet
err_empty
out_has "scenes: 40, towns: 2,"
out_has "a.bjc.law.safetensors"
check test -s a.bjc -a -s a.bjc.law.safetensors
check test ! -e a.bjc.partial

# The same bytes with other workers, and through the official files.
run 0 simulate --cache b.bjc -n 40 --seed 5 --jobs 3 -q --json
out_has '"type":"simulate"'
out_has '"world":2'
out_has '"complete":true,"scenes":40'
check cmp a.bjc b.bjc
check cmp a.bjc.law.safetensors b.bjc.law.safetensors
run 0 simulate --out world/train --scenes 40 --seed 5 -q --jobs 1
check test -s world/train/law.safetensors
check test "$(ls -d world/train/*/ | wc -l)" -eq 40
run 0 data prep --av2 world --split train --out c.bjc -q
check cmp a.bjc c.bjc
check cmp a.bjc.law.safetensors world/train/law.safetensors

# Version 1 keeps its bytes; its law file does not state a version.
run 0 simulate --cache one.bjc --scenes 40 --seed 5 -q --world 1 --json
out_has '"world":1'
out_has '"digest":"4ca0f715d059df7927094359f601ba706d658f2aa7320ddfd5e28c5b307c8846"'
check sh -c '! grep -aq "\"world\":" one.bjc.law.safetensors'
check sh -c 'grep -aq "\"world\":\"2\"" a.bjc.law.safetensors'
run 3 world show a.bjc --law one.bjc.law.safetensors
err_has "contains no true distribution for scene"
run 2 simulate --cache x.bjc --world 3
err_has "world"

# Another seed or split is another world; nothing is replaced without --force.
run 0 simulate --cache d.bjc --scenes 40 --seed 6 -q
check sh -c '! cmp -s a.bjc d.bjc'
run 0 simulate --cache d.bjc --scenes 40 --seed 5 --split val -q --force
check sh -c '! cmp -s a.bjc d.bjc'
run 0 data info d.bjc
out_has "val"
run 2 simulate --cache a.bjc --scenes 3 -q
err_has "--force"
run 2 simulate --scenes 3
err_has "expected exactly one of --out DIR and --cache FILE"
run 2 simulate --cache x.bjc --out y --scenes 3
err_has "found --out and --cache"
run 2 simulate --cache x.bjc --scenes 0
run 2 simulate --cache x.bjc --split a/b -q
err_has "split"
run 5 simulate --cache no/such/x.bjc --scenes 3 -q
check test ! -e x.bjc

# Interrupted: a resumable state, then the same bytes.
"$BJEPA" simulate --cache e.bjc --scenes 100000 --seed 5 -q --jobs 1 >out 2>err &
child=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    sleep 0.2
    [ -d e.bjc.partial ] && break
done
sleep 0.3
kill -TERM $child
code=0
wait $child || code=$?
check test $code -eq 143
err_has "run the same command again to continue"
check test ! -e e.bjc -a ! -e e.bjc.law.safetensors
check test -d e.bjc.partial
run 2 simulate --cache e.bjc --scenes 3 --seed 6 -q
run 0 simulate --cache e.bjc --scenes 40 --seed 5 -q --restart
check cmp a.bjc e.bjc
check test "$(ls -A | grep -c '\.tmp$')" -eq 0

# Looking at a scene.
run 0 world show a.bjc
out_has "scene         00000000-"
out_has "<- drawn as the true future"
run 0 world show a.bjc --scene '#7' --json
out_has '"type":"world_show","scenario_id":"00000007-'
run 0 world show a.bjc --scene '#7' --out s.svg
check grep -q '</svg>' s.svg
check grep -q 'true distribution of the future' s.svg
run 0 world show world/train --scene 00000007
out_has "scene         00000007-"
run 0 world show a.bjc --law world/train/law.safetensors
run 3 world show a.bjc --law d.bjc.law.safetensors
err_has "contains no true distribution for scene"
run 2 world show a.bjc --scene '#40'
run 2 world show a.bjc --out s.gif
err_has ".svg"
run 5 world show c.bjc
err_has "c.bjc.law.safetensors"
run 2 world
run 2 world shwo
err_has "did you mean 'show'"
run 0 world --help
finish
