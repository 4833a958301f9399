#!/usr/bin/env bash
# run_script.sh SCRIPT SCRATCH - runs a test script in an empty scratch folder.
#
# A .py script runs with the Python of .venv and is skipped (exit code 77) if that does not exist.
set -euo pipefail
script=$1 scratch=$2

rm -rf -- "$scratch"
mkdir -p -- "$scratch"
cd -- "$scratch"

case $script in
*.py)
    python=$BJ_ROOT/.venv/bin/python
    if [ ! -x "$python" ]; then
        echo "skipped: the Python peers are not installed; scripts/install_peers.sh installs them"
        exit 77
    fi
    exec "$python" "$script"
    ;;
*) exec bash "$script" ;;
esac
