# Tests that text from files cannot control the terminal or become a spreadsheet formula.
. "$BJ_ROOT/tests/support/cli.sh"

escape=$(printf '\033[31m')
no_escapes() { # nothing below a blank except newlines, no reversed text
    ! LC_ALL=C grep -qaP '[\x01-\x08\x0b-\x1f\x7f]|\xe2\x80\xae|\xc2\x9b' out err
    verdict $? "a control character was printed"
}

# yaml CODE TEXT: a campaign file with the text.
yaml() {
    printf '%b' "$2" >c.yaml
    run "$1" campaign c.yaml --data none.bjc --out c --dry-run
    check test -s err
    no_escapes
    run "$1" config check c.yaml
    no_escapes
}
yaml 2 'name: "x\\e[31m"\narms: [fullset]\nseeds: 1\n'
yaml 2 'name: x\narms: ["full\\e]0;t\\a"]\nseeds: 1\n'
yaml 2 '"k\\e[2Jey": 1\n'
yaml 2 'train: {"epo\\u202echs": 1}\n'
yaml 2 'train: {epochs: "\\e[31m3"}\n'

printf '{"schema": "x\\u001b[31m/1"}' >j.json
run 3 maze show j.json --out m.svg
no_escapes
mkdir -p camp run
cp j.json camp/campaign.json
cp j.json run/manifest.json
run 3 campaign status camp
no_escapes
for verb in "report run --out r.html" "table camp" "lock verify camp"; do
    "$BJEPA" $verb >out 2>err
    last=$verb
    check test -s err
    no_escapes
done

run 2 "tr${escape}ain"
no_escapes
run 2 config show --set "model.${escape}=1"
no_escapes
"$BJEPA" predict "no${escape}file" "no${escape}cache" >out 2>err
no_escapes

# Cells that a spreadsheet would evaluate get an apostrophe.
printf 'arm,seed,metric,value\n"=cmd|x!A0",0,traj_es,1\n"@sum",0,traj_es,2\n-1+2,0,traj_es,3\nplain,0,traj_es,4\n' \
    >formulas.csv
run 0 table formulas.csv -m traj_es --format csv
check test "$(grep -cE "^\"'(=cmd|@sum|-1\+2)" out)" -eq 3
check grep -q '^plain,' out
finish
