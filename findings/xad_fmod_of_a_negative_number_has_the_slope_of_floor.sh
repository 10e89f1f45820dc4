#!/bin/sh
# Package: xad 1.5.2 (CPython 3.11, x86-64 Linux).
#
# One would expect the derivative by the divisor of fmod(x, y) = x - y * trunc(x / y) to be -trunc(x / y), and of x % y, which
# Python rounds down, to be -floor(x / y), as PyTorch's fmod and remainder and Stan's fmod have them.
# Where x and y have opposite signs, both are one too large in size, in the tape's mode and in the forward mode: fmod takes the slope of
# floor, and x % y, which adds y to that result, has a slope that belongs to no rounding.  The values are right, so are the derivatives by
# x, and those of xad.math.remainder.
#
# A user meets it who learns a period or a quantisation step y: the phase of a negative time pulls the period with a wrong strength.
#
# Output on 2026-11-30:
#   fmod(7.5, 2.0) = 1.5: -3.0, both modes; by differences -3.0
#   fmod(-7.5, 2.0) = -1.5: 4.0, both modes; by differences 3.0
#   fmod(7.5, -2.0) = 1.5: 4.0, both modes; by differences 3.0
#   7.5 % 2.0 = 1.5: -3.0, both modes; by differences -3.0
#   -7.5 % 2.0 = 0.5: 5.0, both modes; by differences 4.0
#   7.5 % -2.0 = -0.5: 5.0, both modes; by differences 4.0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q xad==1.5.2
"$work/venv/bin/python" - <<'PY'
import math
import operator

import xad
import xad.math
from xad import adj_1st, fwd_1st

pairs = (7.5, 2.0), (-7.5, 2.0), (7.5, -2.0)
for name, plain, active in ("fmod({}, {})", math.fmod, xad.math.fmod), ("{} % {}", operator.mod, operator.mod):
    for x, y in pairs:
        with adj_1st.Tape() as tape:
            divisor = adj_1st.Real(y)
            tape.registerInput(divisor)
            tape.newRecording()
            result = active(adj_1st.Real(x), divisor)
            tape.registerOutput(result)
            result.setAdjoint(1.0)
            tape.computeAdjoints()
            reverse = xad.derivative(divisor)
        divisor = fwd_1st.Real(y)
        divisor.setDerivative(1.0)
        forward = xad.derivative(active(fwd_1st.Real(x), divisor))
        slope = round((plain(x, y + 2**-20) - plain(x, y - 2**-20)) * 2**19, 6)
        print(f"{name.format(x, y)} = {plain(x, y)}: {reverse}, both modes; by differences {slope}")
        assert xad.value(result) == plain(x, y) and forward == reverse == slope + (x * y < 0)
PY
