#!/usr/bin/env bash
# run.sh TARGET SECONDS - runs tests/fuzz/fuzz_TARGET.c with libFuzzer for SECONDS seconds.
#
# Builds with clang, AddressSanitizer and UndefinedBehaviorSanitizer in build/fuzz. The committed
# corpus is not changed. Inputs that reach new code are stored in build/fuzz/found_TARGET, and the
# input of a crash in build/fuzz. Exit code 0 means that no error was found.
set -euo pipefail
cd "$(dirname "$0")/../.."

targets=$(cd tests/fuzz && ls fuzz_*.c | sed 's/^fuzz_//; s/\.c$//' | tr '\n' ' ')
if [ $# -ne 2 ] || [ ! -f "tests/fuzz/fuzz_$1.c" ]; then
    echo "usage: tests/fuzz/run.sh TARGET SECONDS, with TARGET one of: $targets" >&2
    exit 2
fi
target=$1 seconds=$2 out=build/fuzz
scripts/install_deps.sh build fuzz

# Define gcc's macro for AddressSanitizer, because the allocator checks it.
flags=(-std=c11 -O1 -g -fno-omit-frame-pointer -ffp-contract=off -D__SANITIZE_ADDRESS__=1
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
    -Iinclude -Isrc -isystem third_party/yyjson)
compile() { # compile SOURCE FLAG...
    local name=${1//\//_} # file names may repeat between folders
    clang "${flags[@]}" "${@:2}" -c "$1" -o "$out/objects/${name%.c}.o"
}

# Build an archive of the parsers and their dependencies. The linker takes only what it needs.
mkdir -p "$out/objects" "$out/found_$target"
archive=$out/libparsers.a
if [ -z "$(find "$archive" 2>/dev/null)" ] ||
    [ -n "$(find src include third_party tests/fuzz/run.sh -newer "$archive" -print -quit)" ]; then
    echo "building $archive"
    rm -f "$archive" "$out"/objects/*
    for source in src/core/*.c src/npz/*.c src/maze/*.c src/parquet/*.c src/data/*.c src/model/arch.c \
        src/objective/*.c src/nn/normalize.c src/train/schedule.c src/run/{config,settings,arms}.c \
        src/stats/*.c src/world/*.c src/campaign/locked_{file,json}.c; do
        compile "$source"
    done
    compile third_party/yyjson/yyjson.c -w -fno-sanitize=undefined # takes minutes otherwise
    ar rcs "$archive" "$out"/objects/*.o
fi
clang "${flags[@]}" -fsanitize=fuzzer "tests/fuzz/fuzz_$target.c" "$archive" -o "$out/fuzz_$target" \
    $(pkg-config --libs snappy libzstd zlib yaml-0.1) -lm -pthread

exec "$out/fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
    -max_len=16384 -print_final_stats=1 -verbosity="${VERBOSITY:-1}" \
    -artifact_prefix="$out/${target}_" "$out/found_$target" "tests/fuzz/corpus/$target"
