# Tests bjepa campaign: the grid, its queue, kill -9 of parent and child, failures, shards, stages, status.
. "$BJ_ROOT/tests/support/cli.sh"

states() { # states DIR: "done 4 " and so on, of the states that occur
    "$BJEPA" campaign status "$1" --json 2>/dev/null |
        sed 's/.*"states":{\([^}]*\)}.*/\1/' | tr ',' '\n' | tr -d '"' |
        sed -n 's/^\(.*\):\([1-9][0-9]*\)$/\1 \2/p' | tr '\n' ' '
}
has_states() { # has_states DIR "done 4 "
    local found
    found=$(states "$1")
    [ "$found" = "$2" ]
    verdict $? "states of $1: found '$found', expected '$2'"
}
attempts() { # attempts DIR ARM SEED
    "$BJEPA" campaign status "$1" --json | tr '{' '\n' |
        sed -n "s/^\"arm\":\"$2\",\"seed\":$3,.*\"attempts\":\([0-9]*\),.*/\1/p"
}
same_weights() { # same_weights DIR: every checkpoint has the bytes of the one in ref
    local file code=0 n=0
    for file in $(cd ref && find runs -name '*.safetensors'); do
        cmp -s "ref/$file" "$1/$file" || { code=1; echo "differs: $1/$file" >&2; }
        n=$((n + 1))
    done
    [ "$code" -eq 0 ] && [ "$n" -ge 16 ]
    verdict $? "weights of $1 are those of ref ($n files)"
}
until_true() { # until_true COMMAND...: at most a minute
    local i
    for i in $(seq 1200); do
        "$@" && return 0
        sleep 0.05
    done
    false
    verdict $? "in time: $*"
    return 1
}
begun() { [ -n "$(find "$1/runs" -path '*ckpt/last/model.safetensors' 2>/dev/null)" ]; }

run 0 simulate --cache t.bjc --scenes 120 --seed 3 --quiet --jobs 1
model="embed: 8, heads: 2, token_hidden: 8, latent: 8, proj_hidden: 8, atom_hidden: 8,
  router_hidden: 8, decoder_hidden: 8, trunk: 8"
small_campaign() { # small_campaign NAME ARMS SEEDS EPOCHS
    printf 'name: %s\ndata: t.bjc\nrecipe: small\narms: [%s]\nseeds: %s\nset:\n' "$1" "$2" "$3"
    printf ' model: {%s}\n train: {epochs: %s, batch: 16, warmup: 0, save_minutes: 0.002}\n' "$model" "$4"
}
small_campaign two "fullset, point" 2 12 >two.yaml

# -------------------------------------------------------------------------------------------- misuse
run 2 campaign two.yaml
err_has "--out DIR is missing"
run 2 campaign --out d
err_has "expected FILE.yaml or --resume"
run 2 campaign two.yaml --out d --shard 2/2
err_has "--shard: found '2/2', expected I/N"
run 2 campaign two.yaml --out d --shard 1of2
err_has "--shard: found '1of2'"
run 2 campaign two.yaml --out d --set train.epoch=3
err_has "train.epochs"
run 2 campaign two.yaml --out d --set novalue
err_has "--set: found 'novalue', expected"
run 2 campaign statsu d
err_has "did you mean 'status'?"
run 5 campaign status nowhere
err_has "nowhere/campaign.json"
run 5 campaign --out nowhere --resume
sed 's/^arms/arm/' two.yaml >wrong.yaml
run 2 campaign wrong.yaml --out wrong
err_has "wrong.yaml:4: unknown key 'arm'; did you mean 'arms'?"
run 0 campaign --help
out_has "bjepa campaign status demo --watch"
run 0 campaign two.yaml --out d --dry-run
out_has "two: 4 runs"
check grep -qE '^ +3  point +1  small +12 +16 +0.0005  d/runs/point/seed-1$' out
check test ! -e d

# ------------------------------------------------------------------------------- a whole one, untouched
run 0 campaign two.yaml --out ref --jobs 2
out_has "two, 4 runs: 4 done"
check grep -qE '^fullset +[0-9.]+ +[0-9.]+$' out
err_has "point, seed 1: done"
has_states ref "done 4 "
check test "$(attempts ref fullset 0)" = 1
check test -s ref/runs/fullset/seed-0/log.txt
run 2 campaign two.yaml --out ref
err_has "--resume continues"
# Nothing is left to do: nothing is done.
run 0 campaign two.yaml --out ref --resume --quiet
err_empty
check test "$(attempts ref point 1)" = 1
run 4 campaign two.yaml --out ref --resume --set train.epochs=13
err_has "was created with train.epochs = 12, but two.yaml now has 13"
run 0 campaign status ref --watch
out_has "4 done"
# A lost registry: what is finished is adopted, not trained again.
mv ref/registry.sqlite lost.sqlite
run 0 campaign --out ref --resume
out_has "4 done"
check test "$(attempts ref fullset 1)" = 0
mv lost.sqlite ref/registry.sqlite

# ------------------------------------------------------------------------- kill -9 of the parent, twice
"$BJEPA" campaign two.yaml --out killed --jobs 2 >/dev/null 2>&1 &
parent=$!
until_true begun killed
"$BJEPA" campaign status killed >during
kill -9 $parent
wait $parent 2>/dev/null
check grep -q '2 running' during
check test "$(states killed | grep -c running)" = 0
"$BJEPA" campaign --out killed --resume --jobs 2 >/dev/null 2>&1 &
parent=$!
sleep 0.3
kill -9 $parent 2>/dev/null
wait $parent 2>/dev/null
run 0 campaign --out killed --resume --jobs 2
out_has "4 done"
same_weights killed

# --------------------------------------------------------------------------- SIGTERM: save and leave
"$BJEPA" campaign two.yaml --out asked --jobs 2 >out 2>err &
parent=$!
until_true begun asked
kill -TERM $parent
code=0
wait $parent || code=$?
last="campaign two.yaml --out asked"
check test "$code" = 143
err_has "hint: continue with 'bjepa campaign --out asked --resume"
out_has "stopped"
BJEPA_RECIPE=paper BJEPA_ARM=mdn run 0 campaign --out asked --resume --jobs 1 --threads 2
same_weights asked

# ------------------------------------------------------------------------------- kill -9 of a child
"$BJEPA" campaign two.yaml --out child --jobs 2 >out 2>err &
parent=$!
until_true begun child
pid=$("$BJEPA" campaign status child --json | tr '{' '\n' |
    sed -n 's/.*"state":"running".*"pid":\([0-9]*\),.*/\1/p' | head -1)
check kill -9 "$pid"
code=0
wait $parent || code=$?
last="campaign two.yaml --out child"
check test "$code" = 1
err_has "failed: ended by signal 9"
err_has "1 of 4 runs failed"
has_states child "done 3 failed 1 "
# It is not tried again unless somebody asks for it.
run 1 campaign --out child --resume
has_states child "done 3 failed 1 "
out_has "ended by signal 9"
run 0 campaign --out child --resume --retry-failed
same_weights child

# ---------------------------------------------------------------- runs that fail, and a second owner
mkdir -p fails/runs
echo "in the way" >fails/runs/point
run 1 campaign two.yaml --out fails --resume
has_states fails "done 2 failed 2 "
out_has "point, seed 1: fails/runs/point/seed-1: cannot create the folder"
rm fails/runs/point
run 1 campaign two.yaml --out fails --resume
has_states fails "done 2 failed 2 "
run 0 campaign two.yaml --out fails --resume --retry-failed
same_weights fails

# What only the training process notices: its last word is the message. And a folder with another run.
mkdir -p other/runs/fullset/seed-0 other/runs/fullset/seed-1
echo "in the way" >other/runs/fullset/seed-0/ckpt
run 0 train --data t.bjc --config ref/runs/fullset/seed-1/settings.json --set train.epochs=1 \
    --out other/runs/fullset/seed-1 --quiet
run 1 campaign two.yaml --out other --resume
has_states other "done 2 failed 2 "
said=$(sed -n 's/^fullset, seed 0: //p' out)
check test -n "$said" -a "bjepa train: $said" = "$(tail -1 other/runs/fullset/seed-0/log.txt)"
out_has "fullset, seed 1: other/runs/fullset/seed-1: contains a run with different settings"
check test "$(attempts other fullset 1)" = 0 # it was not even begun

"$BJEPA" campaign two.yaml --out owned --jobs 1 --set train.epochs=400 >/dev/null 2>&1 &
parent=$!
until_true begun owned
run 4 campaign --out owned --resume
err_has "shard 0/1 is being run by process $parent on "
run 4 campaign --out owned --resume --shard 0/2
err_has "wait for it to end before splitting the campaign into 2 shards"
run 0 campaign status owned --json
out_has '"states":{"waiting":3,"running":1,"stopped":0,"done":0,"failed":0,"no_pass":0,"collapsed":0}'
kill -TERM $parent
wait $parent

# --------------------------------------------------------------------------------------------- shards
"$BJEPA" campaign two.yaml --out cut --resume --shard 1/2 --jobs 1 --quiet >/dev/null 2>&1 &
parent=$!
run 0 campaign two.yaml --out cut --resume --shard 0/2 --jobs 1
check wait $parent
has_states cut "done 4 "
check test -e cut/registry-0-of-2.sqlite -a -e cut/registry-1-of-2.sqlite
same_weights cut
run 0 campaign --out cut --resume
check test "$(attempts cut fullset 1)" = 1
# A result that was removed is made again.
rm -r cut/runs/fullset/seed-1
run 0 campaign --out cut --resume
err_has "fullset, seed 1: the result was removed"
check test "$(attempts cut fullset 1)" = 2
same_weights cut

# ----------------------------------------------------------------------------------------- two stages
small_campaign stages "anchor-b, anchor-a, anchor-b-point" 1 2 >stages.yaml
run 1 campaign stages.yaml --out closed --set gate.ade=0
has_states closed "failed 2 no_pass 1 "
out_has "anchor-b, seed 0: needs anchor-a, seed 0, which passed no gate"
check test ! -e closed/runs/anchor-b
run 0 campaign stages.yaml --out open --set gate.ade=1e6 --set gate.fde=1e6 --set gate.std=0 \
    --set gate.low_std=1 --set gate.rank=0
has_states open "done 3 "
check grep -q "$PWD/open/runs/anchor-a/seed-0/ckpt/best" open/runs/anchor-b/seed-0/config.resolved.json

finish
