# Man pages and completions: every verb and option is in them, pages format, completion works in bash.
. "$BJ_ROOT/tests/support/cli.sh"

run 0 manual pages
out_empty
err_empty
cp "$BJ_ROOT"/man/*.5 pages

# Names of all verbs, also those below another one, from the help.
below() { # below VERB...: the verbs that its help lists
    "$BJEPA" "$@" --help | awk '/^Verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}
for verb in $("$BJEPA" help | awk '/^Verbs:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
    echo "$verb"
    below "$verb" | sed "s/^/$verb /"
done >verbs
check test "$(wc -l <verbs)" -gt 45
check test "$(ls pages/*.1 | wc -l)" -eq $(($(wc -l <verbs) + 1))

# The options of every verb, from the help, are in the page and in all three completions.
while read -r verb; do
    page=pages/bjepa-$(echo "$verb" | tr ' ' -).1
    "$BJEPA" $verb --help </dev/null | sed -n '/^Options:/,/^$/p' |
        grep -oE '^  (-[a-z], |    )--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+' >options
    check test -s options
    missing=
    while read -r option; do
        grep -qF -- "$(echo "$option" | sed 's/-/\\-/g')" "$page" || missing="$missing $page:$option"
        grep -F "'$verb') verbs=" pages/bjepa.bash | grep -qF -- "$option " || missing="$missing bash:$option"
        sed -n "/^    '$verb')\$/,/;;/p" pages/_bjepa | grep -qE -- "$option[[}]" || missing="$missing zsh:$option"
        grep -F "'__bjepa_verb \"$verb\"'" pages/bjepa.fish | grep -qF -- " -l ${option#--}" ||
            missing="$missing fish:$option"
    done <options
    [ -z "$missing" ]
    verdict $? "$verb:$missing"
done <verbs
check grep -q 'default: 24' pages/bjepa-report.1
for key in $("$BJEPA" config keys --format json | grep -oE '"key": "[a-z_.]+"' | cut -d'"' -f4); do
    grep -qF ".B $(echo "$key" | sed 's/-/\\-/g')" pages/bjepa-settings.5 || echo "$key"
done >missing
check test ! -s missing

if command -v groff >/dev/null; then
    for page in pages/*.[15]; do
        groff -man -Tascii -ww "$page" >/dev/null 2>>complaints
    done
    [ ! -s complaints ]
    verdict $? "groff: $(head -3 complaints)"
fi
for page in "$BJ_ROOT"/man/*.5; do check grep -q '^\.SH NAME$' "$page"; done
# What a page refers to exists.
grep -hoE '^\.BR bjepa[a-z\\-]* \([15]\)' pages/*.[15] | sed 's/\\-/-/g; s/^\.BR //; s/ (\([15]\)).*/.\1/' |
    sort -u | while read -r name; do [ -f "pages/$name" ] || echo "$name"; done >dangling
check test ! -s dangling

# ---------------------------------------------------------------------------------- a real bash

complete_line() { # complete_line WORD...: what bash offers for the last word
    bash --norc -c '
        . pages/bjepa.bash
        COMP_WORDS=(bjepa "$@") COMP_CWORD=$#
        _bjepa
        printf "%s\n" "${COMPREPLY[@]}"' bash "$@" 2>&1 | tr '\n' ' '
}
is() { [ "$1" = "$2" ]; verdict $? "found '$1', expected '$2'"; }
is "$(complete_line tra)" "train "
is "$(complete_line lo)" "lock "
is "$(complete_line lock '')" "run verify "
is "$(complete_line lock run --th)" "--threads "
is "$(complete_line data pr)" "prep "
is "$(complete_line data prep --dr)" "--dry-run "
is "$(complete_line train --re)" "--recipe --resume "
is "$(complete_line eval --part '')" "all fit dev "
is "$(complete_line table x.csv --format l)" "latex "
is "$(complete_line table -f m)" "markdown "
is "$(complete_line train --data '')" " " # file names, by the default completion
is "$(complete_line eval run --p)" "--part --precision "
bash --norc -ic '. pages/bjepa.bash; complete -p bjepa' >out 2>/dev/null
out_has "complete -F _bjepa bjepa"
if command -v zsh >/dev/null; then check zsh -n pages/_bjepa; fi
if command -v fish >/dev/null; then check fish --no-execute pages/bjepa.fish; fi

finish
