#!/usr/bin/env bash
# run_all.sh SECONDS - runs every fuzz target for SECONDS seconds, one after the other.
#
# Prints one line per target: executions, covered edges, inputs found, and the second of the last new
# coverage. Exit code 0 means that no error was found. The log of a target is build/fuzz/TARGET.log.
set -euo pipefail
cd "$(dirname "$0")/../.."
[ $# -eq 1 ] || { echo "usage: tests/fuzz/run_all.sh SECONDS" >&2; exit 2; }
mkdir -p build/fuzz
code=0
printf '%-12s %12s %8s %8s %s\n' target executions edges inputs result
for target in $(cd tests/fuzz && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//'); do
    log=build/fuzz/$target.log result=clean
    tests/fuzz/run.sh "$target" "$1" >"$log" 2>&1 || { result="FAILED, see $log"; code=1; }
    printf '%-12s %12s %8s %8s %s\n' "$target" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)" \
        "$(find "build/fuzz/found_$target" -type f | wc -l)" "$result"
done
exit $code
