#!/usr/bin/env bash
# install_deps.sh [GROUP...] - installs the Debian packages that are missing.
#
#   build     compilers, CMake, headers of snappy, zstd, zlib, libyaml and SQLite, which are
#             all that building and testing needs (the default)
#   peers     Python with venv, for scripts/install_peers.sh
#   coverage  gcovr
#   format    clang-format
#   fuzz      clang, whose libFuzzer runs tests/fuzz
#   pictures  librsvg and a font, which bjepa needs to write PNG and PDF in addition to SVG
#   browser   Chromium and Node.js, for scripts/install_browser.sh
#
# The script checks for the commands and headers themselves, so tools from other sources count. If
# nothing is missing, it runs no package manager and asks no questions.
set -euo pipefail

missing=()

need_command() { # need_command COMMAND PACKAGE...
    command -v "$1" >/dev/null 2>&1 || missing+=("${@:2}")
}

need_header() { # need_header HEADER PACKAGE...
    local root
    for root in /usr/include /usr/include/"$(uname -m)"-linux-gnu /usr/local/include; do
        if [ -e "$root/$1" ]; then return; fi
    done
    missing+=("${@:2}")
}

for group in "${@:-build}"; do
    case $group in
    build)
        need_command cc gcc
        need_command c++ g++
        need_command cmake cmake
        need_command make make
        need_command pkg-config pkg-config
        need_header stdio.h libc6-dev
        need_header snappy-c.h libsnappy-dev
        need_header zstd.h libzstd-dev
        need_header zlib.h zlib1g-dev
        need_header yaml.h libyaml-dev
        need_header sqlite3.h libsqlite3-dev
        ;;
    peers)
        need_command python3 python3
        python3 -c 'import ensurepip' >/dev/null 2>&1 || missing+=(python3-venv)
        ;;
    coverage) need_command gcovr gcovr ;;
    format) need_command clang-format clang-format ;;
    fuzz) need_command clang clang ;;
    pictures)
        # Not piped into grep -q, which would close the pipe too early.
        case $(/sbin/ldconfig -p) in
        *librsvg-2.so.2*) ;;
        *) missing+=(librsvg2-2 fonts-dejavu-core) ;;
        esac
        ;;
    browser)
        command -v chromium >/dev/null 2>&1 || missing+=(chromium fonts-dejavu-core)
        need_command node nodejs
        need_command npm npm
        ;;
    *)
        echo "install_deps.sh: unknown group '$group', expected build, peers, coverage," \
            "format, fuzz, pictures or browser" >&2
        exit 2
        ;;
    esac
done

[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
    echo "install_deps.sh: missing ${missing[*]} (Debian names), and apt-get is not available to" \
        "install them" >&2
    exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "install_deps.sh: missing ${missing[*]}; run as root: apt-get install" \
            "${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

echo "installing: ${missing[*]}"
apt() { ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get -qq "$@"; }
apt update
apt install -y --no-install-recommends "${missing[@]}" >/dev/null
