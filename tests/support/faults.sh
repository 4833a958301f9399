# faults.sh - builds tests/faults/faults.c for the scripts in tests/cli. Source this file after
# cli.sh. The variable `faults` is empty in sanitizer builds, because their runtime must be loaded
# first.
#
#   calls OPS ARGUMENT...           prints the number of calls of OPS that bjepa makes
#   fault ACTION OPS N ARGUMENT...  runs bjepa with a fault at the N-th call; sets `code`
#
# The variable `fault_path` limits the calls to files whose path contains its value.

faults=
if [ -z "${BJ_SANITIZE:-}" ]; then
    mkdir faults.d
    faults=$PWD/faults.d/faults.so
    "${CC:-cc}" -O1 -shared -fPIC -o "$faults" "$BJ_ROOT/tests/faults/faults.c" -ldl || exit 1
fi
fault_path=

calls() {
    local ops=$1
    shift
    env LD_PRELOAD="$faults" FAULT_OPS="$ops" ${fault_path:+FAULT_PATH="$fault_path"} \
        FAULT_COUNT="$faults.count" "$BJEPA" "$@" >/dev/null 2>&1
    cat "$faults.count"
}

fault() {
    local action=$1 ops=$2 n=$3
    shift 3
    last="$* (call $n of $ops)"
    code=0
    { # the shell reports killed processes
        env LD_PRELOAD="$faults" FAULT_OPS="$ops" ${fault_path:+FAULT_PATH="$fault_path"} \
            FAULT_N="$n" FAULT_ACTION="$action" "$BJEPA" "$@" >out 2>err || code=$?
    } 2>/dev/null
}
