#!/bin/sh
# Package: pkgconf 3.0.7.post0 (CPython 3.11, x86-64 Linux).
#
# One would expect that two packages' flags are joined as each wrote them, or that equal ones are dropped with sense.
# Each of two static libraries registers things when it starts, and asks to be linked as a whole: --whole-archive, its library,
# --no-whole-archive.  For each alone the flags are right.  For both, equal flags are merged to their last place: the first library
# stands before --whole-archive, and the linker leaves out what nobody calls.  --push-state and --pop-state do not help.
#
# A user meets it who links two libraries of operators or plug-ins statically: the first one's are unknown when the program runs.
#
# Output on 2026-11-29:
#   ops: -Wl,--whole-archive -lops -Wl,--no-whole-archive
#   plugins: -Wl,--whole-archive -lplugins -Wl,--no-whole-archive
#   ops plugins: -lops -Wl,--whole-archive -lplugins -Wl,--no-whole-archive
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pkgconf==3.0.7.post0
for name in ops plugins; do
  {
    printf 'Name: %s\nDescription: a static library\nVersion: 1\n' $name
    echo "Libs: -Wl,--whole-archive -l$name -Wl,--no-whole-archive"
  } >"$work/$name.pc"
done
export PKG_CONFIG_LIBDIR="$work"
for names in ops plugins "ops plugins"; do
  flags=$("$work/venv/bin/pkgconf" --static --libs $names)
  echo "$names: $flags"
done
[ "$flags" = "-lops -Wl,--whole-archive -lplugins -Wl,--no-whole-archive" ]
