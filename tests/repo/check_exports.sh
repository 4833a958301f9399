# Tests that the shared library exports exactly the symbols that the headers declare with BJ_API.
set -eu
library=$BJ_BUILD/libbranchjepa.so

# Collects every name before a parenthesis on a preprocessed line with BJ_API.
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
