# Installs into a scratch prefix and uses the installed files:
#   - the C program of docs/EMBED.md, with pkg-config, shared and static
#   - the C++ project in this folder, with the CMake package
#   - the installed bjepa
#   - the links of the installed documentation
# Then moves the prefix and repeats all steps, because the packages must not depend on the prefix.
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

awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$BJ_ROOT/docs/EMBED.md" >example.c
test -s example.c

step "a scenario and a small model"
sizes="embed=8 heads=2 latent=8 token_hidden=8 proj_hidden=8 atom_hidden=8 router_hidden=8 decoder_hidden=8"
"$BJEPA" simulate --out world --scenes 2 --seed 5 --jobs 1 --quiet
"$BJEPA" simulate --cache dev.bjc --scenes 40 --seed 6 --split dev --jobs 1 --quiet
"$BJEPA" train --data world:7:64 --dev dev.bjc --arm fullset --out run --threads 1 --quiet \
    --set train.epochs=1 --set train.warmup=0 --set train.batch=32 $(printf -- '--set model.%s ' $sizes) \
    >train.out
scenario=$(dirname "$(find "$PWD/world" -name 'scenario_*.parquet' | sort | head -n 1)")
model=$PWD/run/ckpt/best/model.safetensors

use() { # use PREFIX
    libdir=$(dirname "$(dirname "$(find "$1" -name branchjepa.pc)")")
    export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
    warnings="-Wall -Wextra -Wpedantic -Werror"

    step "pkg-config, shared"
    $CC -std=c11 $warnings example.c $(pkg-config --cflags --libs branchjepa) -o example
    ldd example | grep -qF "$libdir/libbranchjepa.so"
    ./example "$model" "$scenario" >example.out
    cat example.out
    test "$(grep -c '^branch [0-5]: probability 0\.[0-9]*, after 6 s at ' example.out)" -eq 6
    if ./example "$model" "$PWD/missing" >missing.out 2>missing.err; then
        echo "the example accepts a scenario folder that does not exist" >&2
        return 1
    fi
    grep -qF "$PWD/missing" missing.err

    step "pkg-config, static"
    # --static lists the libraries that the archive needs. The archive is named explicitly, because
    # -lbranchjepa would select the shared library.
    $CC -std=c11 $warnings example.c $(pkg-config --cflags branchjepa) "$libdir/libbranchjepa.a" \
        $(pkg-config --static --libs-only-l branchjepa | sed 's/-lbranchjepa//') -pthread \
        -o example_static
    if ldd example_static | grep -q libbranchjepa; then
        echo "the static example still needs the shared library" >&2
        return 1
    fi
    ./example_static "$model" "$scenario" | cmp - example.out

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

    step "links of the documentation"
    doc=$(dirname "$(find "$1" -name README.md -path '*/doc/*')")
    test -f "$doc/docs/ARCHITECTURE.md"
    if command -v python3 >/dev/null; then
        python3 "$BJ_ROOT/tests/support/check_links.py" "$doc"
    fi

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
