# cli.sh - checks for the scripts in tests/cli. Source this file and call `finish` at the end.
#
#   run CODE ARGUMENT...   runs bjepa, which must exit with CODE; output goes to files out and err
#   out_has TEXT           stdout must contain TEXT
#   out_lacks TEXT         stdout must not contain TEXT
#   err_has TEXT           stderr must contain TEXT
#   out_empty, err_empty   stdout or stderr must be empty
#   check COMMAND...       runs any other command, which must succeed

passed=0 failed=0

verdict() { # verdict STATUS MESSAGE
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
        return
    fi
    failed=$((failed + 1))
    {
        echo "FAILED: $2"
        echo "  command: bjepa ${last:-}"
        sed 's/^/  stdout: /' out | head -20
        sed 's/^/  stderr: /' err | head -20
    } >&2
}

run() {
    local want=$1 code=0
    shift
    last=$*
    "$BJEPA" "$@" >out 2>err || code=$?
    [ "$code" -eq "$want" ]
    verdict $? "exit code $code, expected $want"
}

out_has() { grep -qF -e "$1" out; verdict $? "stdout does not contain '$1'"; }
err_has() { grep -qF -e "$1" err; verdict $? "stderr does not contain '$1'"; }
out_lacks() { ! grep -qF -e "$1" out; verdict $? "stdout contains '$1'"; }
out_empty() { [ ! -s out ]; verdict $? "stdout is not empty"; }
err_empty() { [ ! -s err ]; verdict $? "stderr is not empty"; }
check() { "$@"; verdict $? "$*"; }

finish() {
    echo "$(basename "$0"): $passed passed, $failed failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
}
