"""Samples of network ops."""

from table import *  # noqa: F403

table = Table(globals())
op, bad = table.op, table.bad

op("softmax", "x.softmax({dim})", "softmax(x, {dim})",
   S("dim 0", randn(3, 4), dim=0), S("dim -1", randn(2, 3, 4), dim=-1), S("middle", randn(2, 3, 4), dim=1),
   S("0-d", randn(), dim=0), S("size 1", randn(3, 1), dim=1), S("no rows", randn(0, 3), dim=1),
   S("nothing", randn(3, 0), dim=1),
   S("long rows", randn(9, 2500), dim=-1, large=True))
bad("softmax(zeros({2, 3}), 2)", "ValueError", "softmax", "2")
