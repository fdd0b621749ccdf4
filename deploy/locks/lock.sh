#!/usr/bin/env bash
# Writes the lock files anew: every package that is installed, with the hashes of its files, for all
# processors and versions of Python. Versions are those of constraints.txt, those that a lock has
# already, and then the newest. Needs uv (pip install uv); `lock.sh --upgrade` takes newer ones.
set -euo pipefail
cd "$(dirname "$0")/../.."

lock() { # NAME INPUT...
  local name=$1
  shift
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
    --custom-compile-command deploy/locks/lock.sh --constraint deploy/locks/constraints.txt \
    "${upgrade[@]}" --output-file "deploy/locks/$name.txt" "$@"
}

upgrade=("$@")
lock build deploy/locks/build.in
lock device deploy/device/pyproject.toml --extra metrics
lock driver pyproject.toml --extra cluster
lock dev deploy/locks/build.in pyproject.toml --extra dev
