# The shared library exports what the header declares with BJ_API, all of it and nothing else.
set -eu
library=$BJ_BUILD/libbranchjepa.so

# Declared: every name in front of a parenthesis on a line with BJ_API, in preprocessed form.
cat "$BJ_ROOT"/include/branchjepa/*.h | grep -v '^#' | tr '\n' ' ' |
    grep -oE 'BJ_API[^;(]*\(' | grep -oE 'bj_[a-z0-9_]+\($' | tr -d '(' | sort -u >declared
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sort -u >exported

test -s declared
if ! diff declared exported >difference; then
    sed -n 's/^</declared but not exported:/p; s/^>/exported but not declared:/p' difference >&2
    exit 1
fi

soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
version=$(sed -n 's/^#define BJ_VERSION "\([0-9]*\.[0-9]*\).*/\1/p' \
    "$BJ_ROOT/include/branchjepa/branchjepa.h")
if [ "$soname" != "libbranchjepa.so.$version" ]; then
    echo "SONAME is '$soname', expected libbranchjepa.so.$version" >&2
    exit 1
fi
echo "exports: $(wc -l <exported) functions, $soname"
