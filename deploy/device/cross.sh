#!/bin/sh
# The distribution tilefarm-device for a board's processor, built on another machine:
#
#   cross.sh aarch64|armv7l [FOLDER]
#
# FOLDER (default: dist) gets the wheel. It needs Debian's g++-aarch64-linux-gnu or
# g++-arm-linux-gnueabihf, whose libc must not be newer than the board's.
set -eu
case ${1:-} in
  aarch64) compiler=aarch64-linux-gnu-g++ ;;
  armv7l) compiler=arm-linux-gnueabihf-g++ ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
command -v "$compiler" > /dev/null || { echo "$0: no $compiler here" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)

_PYTHON_HOST_PLATFORM=linux-$1 "${PYTHON:-python3}" -m pip wheel --no-deps --wheel-dir "${2:-dist}" "$here" \
  --config-settings="cmake.define.CMAKE_SYSTEM_NAME=Linux" \
  --config-settings="cmake.define.CMAKE_SYSTEM_PROCESSOR=$1" \
  --config-settings="cmake.define.CMAKE_CXX_COMPILER=$compiler"
