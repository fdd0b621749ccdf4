#!/bin/sh
# One night: tunes the zoo, compares it with the last accepted night.
#
#   nightly.sh FOLDER [option of `tilefarm tune`...]
#
# FOLDER keeps a folder for each night; the same night continues where it was cut off. The first
# one is accepted as it is. Accept another: rm FOLDER/accepted; ln -s NIGHT FOLDER/accepted.
# NETWORKS and TRIALS say what is tuned, and how long. The exit code is 1 if something got slower.
set -eu
folder=$1
shift
night=$(date -u +%Y-%m-%d)

for network in ${NETWORKS:-digits squeezenet mobilenet_v1 resnet18}; do
  tilefarm tune "zoo:$network" --trials "${TRIALS:-1000}" --out "$folder/$night/$network" "$@"
done
[ -e "$folder/accepted" ] || ln -s "$night" "$folder/accepted"
tilefarm bench compare "$folder/accepted" "$folder/$night"
