"""Samples of elementwise ops."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

op("tanh", "x.tanh()", "tanh(x)", S("3-d", randn(2, 3, 4)))
bad("logaddexp(zeros(2), zeros(3))", "ShapeError", "logaddexp", "(2,)")
