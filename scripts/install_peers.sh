#!/usr/bin/env bash
# install_peers.sh - installs the Python packages that tests and benchmarks compare with, in .venv.
#
# No package is needed to build, run or embed the library. The tests named peer_*.py and the programs
# in bench/ use them, and these tests are skipped if a package is missing.
#
# PyTorch has builds for the CPU and builds that install gigabytes of CUDA libraries, under the same
# name. The version of the CPU build ends in "+cpu", so the script tries that version first. If the
# package index does not have it, the script installs the plain version. PIP_INDEX_URL and
# PIP_EXTRA_INDEX_URL select the package index as usual.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=2.13.0
packages=(
    numpy==2.4.6
    safetensors==0.8.0
    scipy==1.17.1
    onnx==1.23.2
    onnxscript==0.7.2 # used by torch.onnx.export
    onnxruntime==1.31.1
    openvino==2026.4.1
    pyarrow==26.0.1 # Parquet; the next two packages also write Parquet files
    polars==2.1.0
    duckdb==2.0.0
    pandas==3.1.1
    av2==0.3.6 # the official reader and metrics
    tensorboard==2.21.0 # reads the event files of runs
    schedulefree==1.4.1 # the authors' schedule-free AdamW
    mkdocs==1.6.1 # builds docs/ as a web site
    shapely==2.2.0 # GEOS, for the map audit
    mujoco==4.0.0 # the simulator of the mazes
    gymnasium==1.4.0 # environment interface of the mazes; requires the next two packages
    imageio==2.38.1
    packaging==26.3
)
# Installed without dependencies, because its mazes need only the packages above. The dependencies of
# its other domains take 200 MB.
alone=(ogbench==1.2.2)

wanted=$(printf '%s\n' "torch==$torch" "${packages[@]}" "${alone[@]}")
stamp=.venv/peers.txt
if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

scripts/install_deps.sh peers
[ -x .venv/bin/python ] || python3 -m venv .venv

pip() { .venv/bin/python -m pip --disable-pip-version-check --no-input "$@"; }
echo "installing into .venv:" $wanted
if ! pip install --quiet "torch==$torch+cpu" 2>/dev/null; then
    echo "the package index has no CPU build of torch $torch; installing the plain build"
    pip install --quiet "torch==$torch"
fi
pip install --quiet "${packages[@]}"
pip install --quiet --no-deps "${alone[@]}"
printf '%s\n' "$wanted" >"$stamp" # written last, so an interrupted installation starts over
