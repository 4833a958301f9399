#!/usr/bin/env bash
# compare_builds.sh - compiles and runs compare_builds.c, which times builds of the library in turns.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"${CC:-cc}" -std=gnu11 -O2 -Wall -Wextra -I"$root/include" "$root/bench/compare_builds.c" -ldl \
    -o "$scratch/compare_builds"
"$scratch/compare_builds" "$@"
