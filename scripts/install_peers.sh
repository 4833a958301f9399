#!/usr/bin/env bash
# install_peers.sh - the Python peers the engine is compared with, in .venv (ignored by git).
#
# Nothing here is needed to build, run or embed the engine: the peers serve bench/ and the tests
# named peer_*.py, which are skipped without them.
#
# PyTorch comes in builds for the CPU and builds that pull gigabytes of CUDA libraries under the
# same name. The CPU build carries the local version "+cpu", so that one is asked for first; where
# the configured package index does not offer it, the plain version is taken. PIP_INDEX_URL or
# PIP_EXTRA_INDEX_URL select an index in the usual way.
set -euo pipefail
cd "$(dirname "$0")/.."

torch=2.13.0
packages=(
    numpy==2.4.6
    safetensors==0.8.0
    scipy==1.17.1
    onnx==1.23.2
    onnxscript==0.7.2 # torch.onnx.export writes through it
    onnxruntime==1.31.1
    openvino==2026.4.1
    pyarrow==26.0.1 # Parquet, with the next two as other writers
    polars==2.1.0
    duckdb==2.0.0
    pandas==3.1.1
    av2==0.3.6 # the official reader and metrics
    tensorboard==2.21.0 # reads the event files of runs
    shapely==2.2.0 # GEOS, for the map audit
    mujoco==4.0.0 # the simulator of the mazes
    gymnasium==1.4.0 # the frame around it, which wants the next two
    imageio==2.38.1
    packaging==26.3
)
# Without what it asks for: its mazes need no more than the above, its other domains 200 MB.
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
    echo "no CPU-only build of torch $torch in the package index: taking the plain one"
    pip install --quiet "torch==$torch"
fi
pip install --quiet "${packages[@]}"
pip install --quiet --no-deps "${alone[@]}"
printf '%s\n' "$wanted" >"$stamp" # last, so that an interrupted run starts over
