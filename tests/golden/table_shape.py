"""Samples of shape ops."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

op("roll", "x.roll({n}, {dim})", "roll(x, {n}, {dim})", S("dim 1", randn(2, 5), n=2, dim=1))
bad("roll(zeros(2), 1, 1)", "ValueError", "roll", "1")
