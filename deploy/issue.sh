#!/bin/sh
# Certificates, tokens and the signing key of a whole farm, a folder for each party:
#
#   issue.sh FOLDER TRACKER_HOST[,HOST...] DEVICE=HOST[,HOST...]... -- [ROLE:]USER...
#   issue.sh farm-keys 10.0.0.1 board1=10.0.0.2 board2=10.0.0.3 -- ann admin:eva
#
# FOLDER gets authority/ (stays here), tracker/, a folder for every device and user, each with its
# token, and tokens.json for the hosts of tracker and devices. artifacts.key is the signing key for
# who submits, and its public half for devices. Users submit, if no other role is given. When it is
# called again, who is there already keeps the token and gets a new certificate.
set -eu

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }

hosts() { printf '%s' "$1" | tr ',' '\n' | sed 's/^/--host /' | tr '\n' ' '; }

party() { # ROLE NAME [HOSTS]
  folder=$keys/$2
  # shellcheck disable=SC2046  # --host HOST, several times
  tilefarm pki issue "$keys/authority" --role "$1" --name "$2" $(hosts "${3:-}") --out "$folder"
  [ "$1" = tracker ] && return
  [ -e "$folder/token" ] \
    || tilefarm pki token --tokens "$keys/tokens.json" --role "$1" --user "$2" --out "$folder/token"
  case $1 in
    device) half=artifacts.key.pub ;; # tells what was signed, and signs nothing
    submit) half=artifacts.key ;;
    *) return ;;
  esac
  [ -e "$folder/artifacts.key" ] || cp -p "$keys/$half" "$folder/artifacts.key"
}

[ $# -ge 2 ] || usage
keys=$1 tracker=$2
shift 2

umask 077
[ -e "$keys/authority" ] || tilefarm pki init "$keys/authority"
[ -e "$keys/artifacts.key" ] || tilefarm pki key --out "$keys/artifacts.key"
party tracker tracker "$tracker"
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
    *=*) party device "${1%%=*}" "${1#*=}" ;;
    *) usage ;;
  esac
  shift
done
[ $# -gt 0 ] && shift
for user; do
  case $user in
    *:*) party "${user%%:*}" "${user#*:}" ;;
    *) party submit "$user" ;;
  esac
done
