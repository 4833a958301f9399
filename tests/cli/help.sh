# Tests help, version, unknown verbs and invalid options: output stream, exit code, closest word.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 help
out_has "Usage: bjepa VERB"
err_empty
cp out overview
run 0 --help
check cmp out overview
run 2 # no verb at all: the same list, as an error
out_empty
check cmp err overview

# Every verb of the list has help with examples, by both spellings.
verbs=$(awk '/^Verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }' overview)
check test -n "$verbs"
for verb in $verbs; do
    run 0 "$verb" --help
    err_empty
    out_has "bjepa $verb - "
    out_has "Examples:"
    out_has "-h, --help"
    cp out by_option
    run 0 help "$verb"
    check cmp out by_option
    run 2 "$verb" --no-such-thing
    out_empty
    err_has "unknown option '--no-such-thing'"
done

version=$(sed -n 's/^#define BJ_VERSION "\(.*\)"/\1/p' "$BJ_ROOT/include/branchjepa/branchjepa.h")
run 0 version
out_has "bjepa $version ("
run 0 --version
out_has "bjepa $version ("
run 0 version --json
out_has "\"version\": \"$version\""

run 2 inof
out_empty
err_has "unknown verb 'inof'; did you mean 'info'?"
run 2 vers1on
err_has "did you mean 'version'?"
run 2 zzzzzz
err_has "unknown verb 'zzzzzz'"
check sh -c '! grep -q "did you mean" err'
run 2 help inof
err_has "did you mean 'info'?"

# A result that cannot be written is a failure.
if [ -w /dev/full ]; then
    code=0
    "$BJEPA" help >/dev/full 2>err || code=$?
    check test "$code" -eq 5
    err_has "cannot write"
fi

finish
