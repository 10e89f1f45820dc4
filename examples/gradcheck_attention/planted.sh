#!/bin/sh
# Runs the exercises as they are and prints a line for each: the mistake, and what the tool said of it.
# usage: planted.sh BUILD_DIR     (build/release, say, after cmake --build)
set -eu
[ $# = 1 ] || { echo "usage: planted.sh BUILD_DIR" >&2; exit 2; }
here=$(dirname "$0")
for solution in "$here"/solutions/*.diff; do
  number=$(basename "$solution" | cut -c 1-2)
  program=$1/examples/exercise_$number
  [ -x "$program" ] || { echo "planted.sh: $program is not built: cmake --build --preset release" >&2; exit 1; }
  mistake=$(sed -n '1s|^Solution [0-9]*: \(.*\)\.$|\1|p' "$solution")
  if said=$("$program"); then
    echo "planted.sh: exercise $number is right" >&2
    exit 1
  fi
  # compare()'s message has several lines: the second names the place, the last one says how they differ
  said=$(printf '%s\n' "$said" | awk '{ sub(/^ */, "") } NR == 2 { sub(/: \(.*/, ""); place = $0 "; " } END { print place $0 }')
  printf '%s  %s  ->  %s\n' "$number" "$mistake" "$said"
done
