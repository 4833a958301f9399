# Tests that every link in the repository's Markdown files has a target, without network access.
set -eu
if ! command -v python3 >/dev/null; then
    echo "skipped: python3 is not installed"
    exit 77
fi
check() { python3 "$BJ_ROOT/tests/support/check_links.py" "$@"; }

# Tests that the check finds every kind of link that does not work, and only those.
mkdir -p planted/docs
cat >planted/docs/page.md <<'END'
# First heading: `code`, twice

[works](page.md), [anchor](#first-heading-code-twice), [image](../picture.svg), [site](https://example.org/x)
`[code](missing-in-code.md)`

    [indented](missing-in-block.md)

```
[fenced](missing-in-fence.md)
```

[no file](missing.md) [no anchor](page.md#second) ![no image](picture.svg) [outside](../../README.md)

[reference]: missing-reference.md
END
touch planted/picture.svg
touch README.md
if check planted >found; then
    echo "the check is wrong: it accepts links that do not work" >&2
    exit 1
fi
cat >expected <<'END'
docs/page.md:12: missing.md: the target does not exist
docs/page.md:12: page.md#second: the target has no heading with this anchor
docs/page.md:12: picture.svg: the target does not exist
docs/page.md:12: ../../README.md: the target is outside of the folder
docs/page.md:14: missing-reference.md: the target does not exist
1 Markdown files, 5 links that do not work
END
diff expected found

cd "$BJ_ROOT"
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    files=$(git ls-files --cached --others --exclude-standard '*.md' | grep -v '^third_party/')
else
    files=$(find . \( -name .git -o -path ./build -o -path ./.venv -o -path ./.browser -o -path ./third_party \) \
        -prune -o -name '*.md' -print | sed 's|^\./||')
fi
check . $files
