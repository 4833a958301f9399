# cli.sh - checks for the scripts in tests/cli; source it, call `finish` at the end.
#
#   run CODE ARGUMENT...   bjepa with these arguments must exit with CODE; output in out, err
#   out_has TEXT           stdout contains TEXT; out_lacks: it does not
#   err_has TEXT           the same for stderr
#   out_empty, err_empty   nothing at all was printed there
#   check COMMAND...       any other command that must succeed

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
