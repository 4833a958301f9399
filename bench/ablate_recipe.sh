#!/usr/bin/env bash
# ablate_recipe.sh TRAIN.bjc DEV.bjc OUT [SEEDS] - removes one ingredient of recipe fast at a time.
#
# Ingredients of the parametrization are removed from a copy of the sources, which is then built.
# Ingredients of the optimizer are settings. Each variant trains full-set for one pass over TRAIN.bjc with
# every seed and is scored on DEV.bjc. The script prints a Markdown table and does not repeat finished runs.
# OPTIONS contains settings of all runs, for example OPTIONS=train.precision=mixed.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,7s/^# \?//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
train=$(realpath "$1") dev=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3") seeds=${4:-"0 1"} threads=${THREADS:-2}

# variant NAME TITLE FILE SED: builds bjepa with one change to a source file.
variant() {
    local dir=$out/src-$1
    titles[$1]=$2 names+=("$1")
    [ ! -x "$dir/build/release/bjepa" ] || return 0
    mkdir -p "$dir"
    git -C "$root" archive HEAD | tar -x -C "$dir"
    if [ -n "${3:-}" ]; then
        sed -i -E "$4" "$dir/$3"
        ! git diff --no-index --quiet "$root/$3" "$dir/$3" || { echo "$1: nothing to remove" >&2; exit 1; }
    fi
    (cd "$dir" && cmake --preset release >/dev/null &&
        cmake --build --preset release --parallel --target bjepa >/dev/null)
}

# setting NAME TITLE KEY=VALUE...: uses the whole recipe with other settings.
setting() {
    titles[$1]=$2 names+=("$1") sets[$1]="${*:3}"
}

declare -A titles sets
names=()
def=src/model/params.def
variant all "recipe fast"
variant inputs "inputs in meters and m/s" src/model/params.c \
    's/meters = 20, meters_per_second = 5/meters = 1, meters_per_second = 1/; s/return meters_per_second \* a->dt/return 5 * a->dt/'
variant gain "PyTorch's initial size, no He gain" src/model/params.c 's/HE = sqrt\(6\)/HE = 1/'
variant gates "GRU inputs without sqrt(3 E / 7)" $def 's/GATES, 1,/TRACK, 1,/'
variant latent "decoder input without sqrt(D)" $def 's/LATENT, HE,/ONE, HE,/'
variant steps "decoder learns positions" $def 's/STEPS, SMALL,/ONE, SMALL,/'
variant start "last decoder layer starts at full size" src/model/params.c 's/SMALL = 0\.1/SMALL = 1/'
setting beta2 "beta2 .999" optim.beta2=0.999
setting ema "momentum of the target .996" optim.ema=0.996
setting clip "gradient norm clipped at 5" optim.clip=5
setting decay "weight decay .01" optim.weight_decay=0.01
setting rate "rate .0003" optim.lr=0.0003
setting cosine "AdamW with a cosine schedule, rate .0014" optim.schedule_free=0 train.schedule=cosine optim.lr=0.0014
setting muon "Muon with a cosine schedule, batch 128" optim.schedule_free=0 train.schedule=cosine optim.muon=1 train.batch=128

printf '| removed | %s trajectory ES, m |\n|---|---|\n' "$(for s in $seeds; do printf 'seed %s, ' "$s"; done)"
for name in "${names[@]}"; do
    bjepa=$out/src-$name/build/release/bjepa
    [ -x "$bjepa" ] || bjepa=$out/src-all/build/release/bjepa
    row="| ${titles[$name]} |"
    for seed in $seeds; do
        run=$out/$name-$seed
        options=()
        for value in ${OPTIONS:-} ${sets[$name]:-}; do options+=(--set "$value"); done
        [ -e "$run/result.json" ] || "$bjepa" train --data "$train" --dev "$dev" --arm fullset \
            --recipe fast --seed "$seed" --set train.epochs=1 ${options[@]+"${options[@]}"} \
            --out "$run" --threads "$threads" -q >"$run.log" 2>&1 || { tail -1 "$run.log" >&2; row="$row failed"; continue; }
        row="$row $(python3 -c 'import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
print("%.3f" % rows[-1]["dev"]["traj_es"])' "$run/metrics.jsonl")"
    done
    echo "$row |"
done
