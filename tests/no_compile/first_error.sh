#!/bin/sh
# Compiles CASE of layers.cpp for each USE: the first error, in the first lines of the compiler's
# output but for lines of source, has this sentence; without a sentence there is no error.
#   first_error.sh CASE "USES" "SENTENCE" COMPILER...
cd "$(dirname "$0")" || exit 1
number=$1 uses=$2 says=$3
shift 3
for use in $uses; do
  first=$("$@" "-DCASE=$number" "-DUSE=$use" layers.cpp 2>&1 | grep -v "^ *[0-9]* |" | head -n 12 | grep -m 1 error:)
  echo "CASE $number, USE $use: $first"
  case $first in
    "") [ -z "$says" ] || exit 1 ;;
    *"$says"*) [ -n "$says" ] || exit 1 ;;
    *) exit 1 ;;
  esac
done
