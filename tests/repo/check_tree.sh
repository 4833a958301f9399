# No huge files, no marks of unfinished work, no trailing blanks in what is or may be committed.
set -eu
cd "$BJ_ROOT"
limit=2000000

list() { # everything git would commit; without git, everything but build products
    if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
        git ls-files --cached --others --exclude-standard
    else
        find . \( -name .git -o -path ./build -o -path ./.venv -o -path ./.browser \) -prune -o -type f -print |
            sed 's|^\./||'
    fi
}

# Spelled in two halves, so that this file does not find itself.
marks='(^|[^[:alnum:]_])(TO''DO|FIX''ME|XX''X)([^[:alnum:]_]|$)'

inspect() { # inspect FILE: prints what is wrong with it
    case $1 in third_party/*) return ;; esac
    size=$(wc -c <"$1")
    [ "$size" -le "$limit" ] || echo "$1: $size bytes, at most $limit are wanted"
    case $1 in
    *.c | *.h | *.py | *.sh | *.md | *.cmake | *.txt | *.cpp | Makefile | .ci/run)
        grep -nE "$marks" "$1" | sed "s|^|$1: unfinished: |" || true
        grep -nE '[[:blank:]]+$' "$1" | sed "s|^|$1: trailing blank: |" || true
        ;;
    esac
}

# The check must see what it is for.
scratch=$OLDPWD
printf 'int x; /* TO''DO */\nint y; \n' >"$scratch/planted.c"
head -c $((limit + 1)) /dev/zero >"$scratch/planted.bin"
planted=$(inspect "$scratch/planted.c"; inspect "$scratch/planted.bin")
rm "$scratch/planted.bin"
if [ "$(printf '%s\n' "$planted" | wc -l)" -ne 3 ]; then
    echo "the check itself is wrong, it found: $planted" >&2
    exit 1
fi

found=$(list | while IFS= read -r file; do if [ -f "$file" ]; then inspect "$file"; fi; done)
if [ -n "$found" ]; then
    printf '%s\n' "$found" >&2
    exit 1
fi
echo "tree: $(list | wc -l) files in order"
