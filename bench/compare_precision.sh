#!/usr/bin/env bash
# compare_precision.sh DATA OUT [OPTION...] - compare runs in single and in mixed precision.
#
# Trains full-set and specialization with recipe fast and three seeds in both precisions, on the same
# scenes in the same order. DATA and OPTIONs are those of 'bjepa train', for example world:2:102400 and
# --set train.epochs=4. Prints the development trajectory Energy Score of every run, the paired
# differences and the training times. Finished runs in OUT are not repeated, and stopped runs are
# resumed. Exit code: 0 if the mean difference of every arm is at most 0.02 m in size, 1 if not.
#
# SEEDS="0 1 2", ARMS="fullset specialization", THREADS=2 and BJEPA=build/release/bjepa can be set in
# the environment.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,11s/^# \?//p' "$0" >&2; exit 2; }
root=$(cd "$(dirname "$0")/.." && pwd)
bjepa=${BJEPA:-$root/build/release/bjepa} threads=${THREADS:-2}
seeds=${SEEDS:-"0 1 2"} arms=${ARMS:-"fullset specialization"}
data=$1 out=$2
shift 2
mkdir -p "$out"
for seed in $seeds; do
    for arm in $arms; do
        for precision in single mixed; do # a pair runs under similar load
            run=$out/$arm-$precision-$seed
            [ ! -e "$run/result.json" ] || continue
            resume=()
            [ ! -e "$run/manifest.json" ] || resume=(--resume)
            "$bjepa" train --data "$data" --arm "$arm" --recipe fast --seed "$seed" "$@" \
                --set "train.precision=$precision" --out "$run" --threads "$threads" -q \
                "${resume[@]}" >"$run.log" 2>&1 || { tail -2 "$run.log" >&2; exit 5; }
        done
    done
done
python3 - "$out" "$arms" "$seeds" <<'END'
import json
import statistics
import sys

out, arms, seeds = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()


def result(arm: str, precision: str, seed: str) -> dict:
    with open(f"{out}/{arm}-{precision}-{seed}/result.json") as file:
        return json.load(file)


print("| arm | seed | single, m | mixed, m | difference, m | single, s | mixed, s |")
print("|---|---|---|---|---|---|---|")
worst = 0.0
for arm in arms:
    differences = []
    for seed in seeds:
        single, mixed = (result(arm, precision, seed) for precision in ("single", "mixed"))
        differences.append(mixed["best"] - single["best"])
        print(f"| {arm} | {seed} | {single['best']:.4f} | {mixed['best']:.4f} | "
              f"{differences[-1]:+.4f} | {single['wall_s']:.0f} | {mixed['wall_s']:.0f} |")
    mean = statistics.fmean(differences)
    worst = max(worst, abs(mean))
    print(f"| {arm} | mean | | | {mean:+.4f} | | |")
sys.exit(0 if worst <= 0.02 else 1)
END
