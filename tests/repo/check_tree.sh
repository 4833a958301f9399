# Tests that no committed file is too large, contains marks of unfinished work or has trailing blanks.
set -eu
cd "$BJ_ROOT"
limit=2000000
model_limit=10300000 # for a pretrained model in models/
scratch=$OLDPWD

list() { # lists the files that git would commit, or without git all files except build products
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . \( -name .git -o -path ./build -o -path ./.venv -o -path ./.browser \) -prune -o -type f -print |
            sed 's|^\./||'
    fi
}

# Written in two parts, so that the check does not find itself.
marks='(^|[^[:alnum:]_])(TO''DO|FIX''ME|XX''X)([^[:alnum:]_]|$)'

inspect() { # reads file names from stdin and prints what is wrong, with few processes for any number of files
    grep -v '^third_party/' >"$scratch/listed" || true
    tr '\n' '\0' <"$scratch/listed" | xargs -0r stat -c '%s %n' >"$scratch/found" 2>/dev/null || true
    awk -v general=$limit -v models=$model_limit '{ size = $1; sub(/^[0-9]+ /, "")
        limit = $0 ~ /^models\/[^\/]*\.safetensors$/ ? models : general
        if (size > limit) print $0 ": " size " bytes, expected at most " limit }' "$scratch/found"
    sed 's/^[0-9]* //' "$scratch/found" |
        grep -E '\.(c|h|py|sh|md|cmake|txt|cpp|js|mjs|css|yaml)$|(^|/)Makefile$|^\.ci/run$' |
        tr '\n' '\0' >"$scratch/texts" || true
    xargs -0r grep -nHE "$marks" <"$scratch/texts" | sed 's/^[^:]*:/& unfinished: /' || true
    xargs -0r grep -nHE '[[:blank:]]+$' <"$scratch/texts" | sed 's/^[^:]*:/& trailing blank: /' || true
}

# Tests that the check finds planted violations.
printf 'int x; /* TO''DO */\nint y; \n' >"$scratch/planted.c"
head -c $((limit + 1)) /dev/zero >"$scratch/planted.bin"
planted=$(printf '%s\n' "$scratch/planted.c" "$scratch/planted.bin" | inspect)
rm "$scratch/planted.bin"
if [ "$(printf '%s\n' "$planted" | wc -l)" -ne 3 ]; then
    echo "the check is wrong, it found: $planted" >&2
    exit 1
fi

found=$(list | inspect)
if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    exit 1
fi
echo "tree: $(list | wc -l) files in order"
