# Tests bjepa demo: both stages, their files, interruption, threads, the browser, errors.
. "$BJ_ROOT/tests/support/cli.sh"

# A small demo: few scenes, and models that are tiny because the plan is already there.
size="--scenes 6400 --held-out 24 --epochs 2"
demo() { # demo CODE FOLDER [OPTION...]
    run "$1" demo --out "$2" $size "${@:3}"
}
commands() { grep -c '^\$ bjepa' err; }
plan() { # plan FOLDER
    mkdir "$1"
    cat >"$1/demo.yaml" <<'END'
name: demo
recipe: fast
dev: ../dev.bjc
arms: [fullset, specialization, point]
seeds: 1
set:
  model: {embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
    router_hidden: 8, decoder_hidden: 8, trunk: 8}
END
}

run 0 simulate --cache dev.bjc --scenes 40 --seed 11 --split dev --quiet --jobs 1
run 0 train --data world:3:64 --dev dev.bjc --arm fullset --out run --threads 1 --quiet \
    --set train.epochs=1 --set train.warmup=0 --set train.batch=32 --set model.embed=8 \
    --set model.heads=2 --set model.latent=8 --set model.token_hidden=8 --set model.proj_hidden=8 \
    --set model.atom_hidden=8 --set model.router_hidden=8 --set model.decoder_hidden=8
run 0 export run --bf16 --name tiny --license Apache-2.0 --out tiny.safetensors
export BJEPA_BUILTIN=$PWD/tiny.safetensors
unset DISPLAY WAYLAND_DISPLAY

# ------------------------------------------------------------------------------------ interrupted

plan one
set -m # else background commands ignore SIGINT
"$BJEPA" demo --out one $size --threads 2 >out 2>err &
for _ in $(seq 600); do
    [ -e one/campaign/runs/fullset/seed-0/status.json ] && break
    sleep 0.1
done
kill -INT $!
code=0
wait $! || code=$?
set +m
check test "$code" -eq 130
err_has "bjepa demo: interrupted; run the same command again to continue"
check test ! -e one/campaign/lock.json
# The first stage is done by then.
check test -s one/pretrained.html
check grep -qF "<title>Forecasts of tiny</title>" one/pretrained.html
check grep -qF 'of 24 scenes, which were selected without reading any future' one/pretrained.html
out_has "one/pretrained.html: the forecasts of the pretrained model for unseen scenes"

# ------------------------------------------------------------------------------------- continued

demo 0 one --threads 2
err_has "$ bjepa campaign --resume --out one/campaign --jobs 1 --threads 2"
out_has "Locked evaluation on 24 simulated scenes that no model was trained on:"
out_has "trajectory Energy Score (m, lower is better): full-set"
out_has "one/report.html"
out_has "one/pretrained.html"
for file in fresh.bjc val.bjc demo.yaml campaign/campaign.json campaign/lock.json \
    campaign/locked/completion.json campaign/audit.json campaign/truth.json \
    gallery/manifest.json pretrained.html report.html; do
    check test -s one/"$file"
done
run 0 lock verify one/campaign
# Arms are trained on new scenes, and the pretrained model is next to them.
check grep -qF '"world:7:6400"' one/campaign/campaign.json
check grep -qF '<section id="pretrained">' one/report.html
check grep -qF 'tiny<br><span class="soft">pretrained</span></th><td class="n">64</td>' one/report.html
check grep -qE '^<tr><th scope="row">full-set</th><td class="n">(3,200|6,400)</td><td class="n">[0-9.]+</td>' one/report.html
check test "$(grep -o '"name":"builtin"' one/campaign/truth.json | wc -l)" -eq 1
check test "$(grep -o '"arm":"builtin"' one/campaign/audit.json | wc -l)" -eq 1

# Tests that readme_numbers.sh writes the record and the table from the demo's files alone.
if command -v python3 >/dev/null; then
    record="$BJ_ROOT/scripts/demo_record.py"
    printf 'before\n<!-- demo table -->\nold\n<!-- /demo table -->\nafter\n' >README.md
    export BJ_COMMIT=abc
    README=$PWD/README.md RECORD=$PWD/record.json "$BJ_ROOT/scripts/readme_numbers.sh" one >out 2>err
    verdict $? "readme_numbers.sh failed"
    check grep -qE '^\| pretrained model \| 64 \| [0-9.]+ \| [0-9.]+ \| [0-9]+ % \| [0-9.]+ % \|$' README.md
    check grep -qE '^\| point, K = 1 \| (3,200|6,400) \| [0-9.]+ \| [0-9.]+ \| [0-9]+ % \| [0-9.]+ % \|$' README.md
    check grep -qE '^Training the three arms took 0 min [0-9]+ s with 2 threads' README.md
    check sh -c '! grep -q old README.md && test "$(sed -n 1p README.md)" = before && tail -1 README.md | grep -qx after'
    check grep -qF '"commit": "abc"' record.json
    check python3 "$record" check record.json README.md
    check python3 "$record" compare record.json one
    # Tests that a number that differs is found, in the README and in the demo.
    sed 's/\(| point, K = 1 | [0-9,]* | \)[0-9.]*/\199.99/' README.md >changed.md
    python3 "$record" check record.json changed.md >out 2>err
    check test $? -eq 1
    out_has "found     | point, K = 1 |"
    sed 's/"discrepancy": [0-9.]*/"discrepancy": 77.7/' record.json >changed.json
    python3 "$record" compare changed.json one >out 2>err
    check test $? -eq 1
    out_has "| 77.70 |"
fi

# Nothing is left to do.
demo 0 one --threads 2
cp out summary
check test "$(commands)" -eq 0
check grep -qF "trajectory Energy Score" out

# ------------------------------------------------------------------------------ one thread, no model

# --threads 1 reaches every step that can use several. The bytes are those of two threads.
unset BJEPA_BUILTIN
mkdir -p apart/bin
cp "$BJEPA" apart/bin/ # a program without a pretrained model around it
with=$BJEPA
BJEPA=$PWD/apart/bin/bjepa
plan two
demo 0 two --threads 1
check test "$(commands)" -eq 9
err_has "bjepa demo: builtin: the pretrained model branchjepa-world2-v1.safetensors is not installed; its page is left out"
check test ! -e two/pretrained.html
out_lacks "pretrained"
check sh -c '! grep -q "section id=\"pretrained\"" two/report.html'
grep '^\$ bjepa' err | grep -vE '(--threads|--jobs) 1( |$)' | cut -d' ' -f3-4 >others
printf 'lock two/campaign\ngallery draw\n' >expected
check cmp others expected
grep '^\$ bjepa' err | sed -n 's/.*--\(threads\|jobs\) \([0-9]*\).*/\2/p' | sort -u >counts
check test "$(cat counts)" = 1
BJEPA=$with
grep -v pretrained summary | sed 's|one/|two/|' >expected
tail -n "$(wc -l <expected)" out >found
check cmp found expected
for arm in fullset specialization point; do
    check cmp one/campaign/runs/$arm/seed-0/ckpt/best/model.safetensors \
        two/campaign/runs/$arm/seed-0/ckpt/best/model.safetensors
done
for demo in one two; do # bound files differ by times; values do not
    run 0 table "$demo/campaign" --per-seed --format csv
    grep -v ",latency_64," out >"$demo.csv" # a measured time
done
check cmp one.csv two.csv

# --------------------------------------------------------------------------------------- browser

# A page opens in the background, but only for somebody at a terminal with a display.
mkdir bin
cat >bin/xdg-open <<END
#!/bin/sh
printf '%s\n' "\$1" >>'$PWD/opened'
sleep 5
END
chmod +x bin/xdg-open
export BJEPA_BUILTIN=$PWD/tiny.safetensors
again() { # again COMMAND: the pages of the finished demo are made once more
    rm -f opened one/pretrained.html one/report.html
    PATH=$PWD/bin:$PATH sh -c "$1" >out 2>err </dev/null
    for _ in $(seq 50); do
        [ "$(cat opened 2>/dev/null | wc -l)" -ge 2 ] && break
        sleep 0.1
    done
}
if command -v script >/dev/null; then
    again "DISPLAY=:9 script -qec '$BJEPA demo --out one $size --threads 2' log"
    check test "$(tr '\n' ' ' <opened)" = "one/pretrained.html one/report.html "
    again "script -qec '$BJEPA demo --out one $size --threads 2' log"
    check test ! -e opened
fi
again "DISPLAY=:9 WAYLAND_DISPLAY=w $BJEPA demo --out one $size --threads 2"
check test ! -e opened
out_has "one/pretrained.html"

# ------------------------------------------------------------------------------ the plan it writes

# Full-size models of the recipe `fast`; stopped before they are trained.
set -m
"$BJEPA" demo --out full --scenes 128 --held-out 24 --epochs 1 --threads 1 >out 2>err &
for _ in $(seq 600); do
    [ -e full/campaign/campaign.json ] && break
    sleep 0.1
done
kill -INT $!
wait $!
set +m
for line in "recipe: fast" "arms: [fullset, specialization, point]" "seeds: 1"; do
    check grep -qxF "$line" full/demo.yaml
done
run 0 campaign full/demo.yaml --data world:7:61440 --out dry --dry-run
check test "$(grep -c " fast  *6 " out)" -eq 3

# --------------------------------------------------------------------------------------- errors

run 2 demo --scenes 1
err_has "--scenes: found '1', expected an integer from 64"
run 2 demo extra
err_has "unexpected argument 'extra'"
echo mine >file
run 5 demo --out file
err_has "file: is a file, expected a folder"
check grep -qx mine file
# A step that fails ends the demo, with its exit code and its message.
mkdir broken
echo nonsense >broken/fresh.bjc
demo 3 broken --threads 1
err_has "broken/fresh.bjc"
check test ! -e broken/report.html

finish
