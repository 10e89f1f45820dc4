#!/bin/sh
# Packages: numpy 1.26.4 (the last 1.x; OpenBLAS 0.3.23.dev) and 2.0.2 (OpenBLAS 0.3.27), threadpoolctl 3.6.0 (CPython 3.11, x86-64 Linux),
# Debian's qemu-user 7.2, which shows a program the processor that it is told.
#
# One would expect a processor with AVX2 to get OpenBLAS's kernels for AVX2, known by its number or not: for an unknown number, OpenBLAS asks
# which instructions there are.
# Before 0.3.25 that holds for unknown Intel models below 176 alone.  Models 176 to 255, among them Raptor Lake (183) and Emerald Rapids (207),
# are taken for a Pentium 4, family 15.  Products then use SSE3 alone, without a word.
#
# A user meets it on a desktop of 2023 with numpy below 2, or with Debian 12's libopenblas0 (0.3.21) or Ubuntu 22.04's (0.3.20), and whatever
# multiplies by them.  On an Emerald Rapids a float32 product of 512 x 576 x 1536 took 33 to 42 ms on one thread, with
# OPENBLAS_CORETYPE=Haswell, the way around it, 13 to 16, and with SkylakeX 8.  OpenBLAS's issue 4267.
#
# Output on 2026-11-30:
#   numpy 1.26.4, OpenBLAS 0.3.23.dev: Alder Lake Haswell, Raptor Lake Prescott, Emerald Rapids Prescott
#   numpy 2.0.2, OpenBLAS 0.3.27: Alder Lake Haswell, Raptor Lake Haswell, Emerald Rapids Haswell
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 755 .
apt-get download -q qemu-user >/dev/null
dpkg -x qemu-user_*.deb qemu
python3 -m venv venv
cat >show.py <<'PY'
import numpy
import threadpoolctl

(blas,) = [library for library in threadpoolctl.threadpool_info() if library["internal_api"] == "openblas"]
assert numpy.allclose(numpy.ones((64, 64), numpy.float32) @ numpy.ones((64, 64), numpy.float32), 64)
print(numpy.__version__, blas["version"], blas["architecture"])
PY
on() {  # on MODEL: the kernels on an Intel processor of this model
  env -u OPENBLAS_CORETYPE qemu/usr/bin/qemu-x86_64 -cpu max,vendor=GenuineIntel,family=6,model="$1",stepping=1 venv/bin/python show.py
}
venv/bin/pip install -q threadpoolctl==3.6.0
for numpy in 1.26.4 2.0.2; do
  venv/bin/pip install -q numpy=="$numpy"
  alder=$(on 151) raptor=$(on 183) emerald=$(on 207)
  echo "numpy $numpy, OpenBLAS $(echo "$alder" | cut -d ' ' -f 2): Alder Lake ${alder##* }, Raptor Lake ${raptor##* }, Emerald Rapids ${emerald##* }"
  case $numpy in
    1.26.4) [ "${alder##* } ${raptor##* } ${emerald##* }" = "Haswell Prescott Prescott" ] ;;
    *) [ "${alder##* } ${raptor##* } ${emerald##* }" = "Haswell Haswell Haswell" ] ;;
  esac
done
