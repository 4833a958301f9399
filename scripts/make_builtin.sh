#!/usr/bin/env bash
# make_builtin.sh - makes the pretrained model `builtin` and its model card from a finished run.
#
#   scripts/make_builtin.sh RUN [NAME=CACHE...]
#
# RUN is a folder of `bjepa train --data world:SEED:SCENES`. The script exports its chosen checkpoint
# with 16-bit weights to models/, measures that file on new simulated towns (metrics, distance to the
# true distribution, drivable areas) and on every CACHE of recorded traffic, and writes the numbers and
# the origin of the weights into the model card. NAME is the title of a CACHE in the card, such as
# 'Argoverse 2, 34 scenes=av2.bjc'.
#
# Environment variables: BJEPA is the program, MODELS the output folder, SCENES the number of new scenes, and
# KEEP a folder in which the printed JSON files are kept. If RUN started from a checkpoint of another run
# (--init), BASE is that run and BASE_EPOCH the epoch of the checkpoint. The card needs python3.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
bjepa=${BJEPA:-$root/build/release/bjepa}
models=${MODELS:-$root/models}
scenes=${SCENES:-2000}
name=branchjepa-world2-v1
license=Apache-2.0
seed=900201 # seed of the towns in the card; no training run uses it
most=10300000

if [ $# -lt 1 ] || [ ! -d "$1" ]; then
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0" | sed '$d' >&2
    exit 2
fi
run=$1
shift
for cache in "$@"; do
    case $cache in
    ?*=?*) [ -e "${cache#*=}" ] || { echo "make_builtin.sh: ${cache#*=}: no such file" >&2; exit 2; } ;;
    *) echo "make_builtin.sh: found '$cache', expected NAME=CACHE" >&2; exit 2 ;;
    esac
done

work=${KEEP:-$(mktemp -d)}
mkdir -p "$work" "$models"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$work"' EXIT
model=$models/$name.safetensors
card=$models/CARD-$name.md

step() { # step OUTPUT ARGUMENT...: prints and runs a command
    local output=$1
    shift
    echo "\$ bjepa $*" >&2
    "$bjepa" "$@" >"$work/$output"
}

fact() { # fact KEY: prints a text of the run's manifest
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' \
        "$run/manifest.json" "$1"
}

before=0
if [ -n "${BASE:-}" ]; then
    before=$(python3 - "$BASE" "$BASE_EPOCH" <<'END'
import json, sys
run, epoch = sys.argv[1], int(sys.argv[2])
steps = json.load(open(run + "/manifest.json"))["steps_per_epoch"]
print(epoch * steps * json.load(open(run + "/config.resolved.json"))["train"]["batch"])
END
    )
fi
step export.txt export "$run" --bf16 --name "$name" --license "$license" --scenes-before "$before" \
    --out "$work/$name.safetensors"
size=$(stat -c %s "$work/$name.safetensors")
if [ "$size" -gt $most ]; then
    echo "make_builtin.sh: the model has $size bytes, expected at most $most" >&2
    exit 1
fi
world=$work/towns.bjc
step simulate.txt simulate --cache "$world" --scenes "$scenes" --seed $seed --split test --force --quiet
step info.json info "$work/$name.safetensors" --json
step config.json config show --arm "$(fact arm)" --recipe "$(fact recipe)" --json
step eval.json eval "$work/$name.safetensors" --data "$world" --json --quiet
step full.json eval "$run" --data "$world" --json --quiet
step truth.json truth --baseline "$work/$name.safetensors" "$world" "$world.law.safetensors" --json --quiet
step audit.json audit "$work/$name.safetensors" --data "$world" --json --quiet
i=0
: >"$work/recorded.txt"
for cache in "$@"; do
    i=$((i + 1))
    step recorded$i.json eval "$work/$name.safetensors" --data "${cache#*=}" --json --quiet
    printf '%s\n' "${cache%%=*}" >>"$work/recorded.txt"
done

python3 "$root/scripts/model_card.py" "$run" "$work" "$seed" ${BASE:+"$BASE" "$BASE_EPOCH"} >"$work/card.md"
mv "$work/$name.safetensors" "$model"
mv "$work/card.md" "$card"
echo "wrote $model ($size bytes) and $card"
