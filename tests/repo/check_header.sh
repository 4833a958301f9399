# Tests that each public header compiles alone, as strict C and C++, in float and in double.
set -eu
flags="-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I$BJ_ROOT/include"
cxx=${CXX:-c++}

try() { # try COMPILER LANGUAGE STANDARD
    for header in "$BJ_ROOT"/include/branchjepa/*.h; do
        for define in -UBJ_DOUBLE -DBJ_DOUBLE; do
            # Includes the header twice to test the guard. The definition keeps the unit from being empty.
            printf '#include <branchjepa/%s>\n#include <branchjepa/%s>\nint unit;\n' \
                "${header##*/}" "${header##*/}" |
                $1 -x "$2" -std="$3" $flags "$define" -
        done
    done
}

try "$CC" c c99
try "$CC" c c11
if ! command -v "$cxx" >/dev/null 2>&1; then
    echo "skipped: there is no C++ compiler ($cxx)"
    exit 77
fi
try "$cxx" c++ c++11
try "$cxx" c++ c++20

# Tests that the check rejects a header that is not valid C++.
if printf 'struct broken { int class; };\n' | $cxx -x c++ $flags - 2>/dev/null; then
    echo "the check itself is wrong: C++ accepted a member named class" >&2
    exit 1
fi
