# Install into a scratch prefix, then use the result as somebody else's program would:
#   - the example of README.md, in C, found with pkg-config, shared and static
#   - the project in this folder, in C++, found with the CMake package
#   - the installed bjepa
# Finally everything is moved elsewhere: the packages must still find their files.
set -eu
here=$BJ_ROOT/tests/install
unset DESTDIR PKG_CONFIG_PATH CMAKE_PREFIX_PATH
prefix=$PWD/first

step() { echo "-- $*"; }

step "install"
cmake --install "$BJ_BUILD" --prefix "$prefix" >install.log

step "DESTDIR"
DESTDIR=$PWD/stage cmake --install "$BJ_BUILD" --prefix /usr/local >>install.log
test -x stage/usr/local/bin/bjepa
test -f stage/usr/local/include/branchjepa/branchjepa.h

awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$BJ_ROOT/README.md" >example.c
test -s example.c

use() { # use PREFIX
    libdir=$(dirname "$(dirname "$(find "$1" -name branchjepa.pc)")")
    export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
    warnings="-Wall -Wextra -Wpedantic -Werror"

    step "pkg-config, shared"
    $CC -std=c11 $warnings example.c $(pkg-config --cflags --libs branchjepa) -o example
    ldd example | grep -qF "$libdir/libbranchjepa.so"
    ./example >example.out
    cat example.out

    step "pkg-config, static"
    # --static lists what the archive needs; the archive itself is named, or the shared one wins.
    $CC -std=c11 $warnings example.c $(pkg-config --cflags branchjepa) "$libdir/libbranchjepa.a" \
        $(pkg-config --static --libs-only-l branchjepa | sed 's/-lbranchjepa//') -pthread \
        -o example_static
    if ldd example_static | grep -q libbranchjepa; then
        echo "the static example still needs the shared library" >&2
        return 1
    fi
    ./example_static | cmp - example.out

    step "CMake package"
    rm -rf consumer
    cmake -S "$here" -B consumer -DCMAKE_PREFIX_PATH="$1" >consumer.log
    cmake --build consumer >>consumer.log
    ./consumer/consumer_shared
    ./consumer/consumer_static

    step "man pages and completions"
    for page in man1/bjepa.1 man1/bjepa-lock-run.1 man5/bjepa-settings.5 man5/bjepa-cache.5; do
        test -s "$1/share/man/$page"
    done
    test -s "$1/share/bash-completion/completions/bjepa"
    test -s "$1/share/zsh/site-functions/_bjepa"
    test -s "$1/share/fish/vendor_completions.d/bjepa.fish"

    step "bjepa"
    env -u LD_LIBRARY_PATH "$1/bin/bjepa" version

    if [ -e "$BJ_ROOT"/models/*.safetensors ]; then
        step "pretrained model"
        env -u BJEPA_BUILTIN -u LD_LIBRARY_PATH "$1/bin/bjepa" info builtin >builtin.out
        grep -qF "file          $1/share/branchjepa/" builtin.out
        grep -qF "card          $1/share/branchjepa/" builtin.out
    fi
}

use "$prefix"
mv "$prefix" second
step "moved"
use "$PWD/second"
if grep -rIlF "$BJ_ROOT" second/lib*/pkgconfig second/lib*/cmake; then
    echo "an installed package file names the source tree" >&2
    exit 1
fi
