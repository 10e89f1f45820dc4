"""Samples of reduce ops."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

op("prod", "x.prod({dim})", "prod(x, {dim})", S("dim 0", randn(3, 2), dim=0))
bad("prod(zeros(2), 1)", "ValueError", "prod", "1")
