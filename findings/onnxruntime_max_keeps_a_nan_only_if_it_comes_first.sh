#!/bin/sh
# Packages: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6 (CPython 3.11, x86-64 Linux).
#
# One would expect that ReduceMax gives NaN for a row with a NaN, as NumPy and ONNX's own reference do, or that it never does.
# On the CPU it depends on the place: a NaN that begins the row, or the column, is the result, any other is lost.  ArgMax names the
# largest number of a row whose NaN comes later, and TopK puts the NaN before all numbers.
#
# A user meets it who exports a model that scales by its largest activation, or looks for a NaN in an exported model's outputs.
#
# Output on 2026-11-29:
#   of rows [nan, 1, 2], [0, nan, 2], [0, 1, nan]: [nan  2.  1.]
#   of their columns: [nan  1.  2.]
#   ArgMax of the second row: 2, TopK: nan
#
# Fails if this changes.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
"$work/venv/bin/python" - <<'PY'
import numpy as np
import onnxruntime
from onnx import TensorProto, helper

x = np.where(np.eye(3), np.nan, [0, 1, 2]).astype(np.float32)


def run(op, outputs, k=None, **options):
    given = [] if k is None else [helper.make_tensor("k", TensorProto.INT64, [1], [k])]
    node = helper.make_node(op, ["x"] + ["k"] * len(given), outputs, **options)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
                              [helper.make_empty_tensor_value_info(name) for name in outputs], given)
    for value in graph.output:
        kind = TensorProto.INT64 if value.name == "index" else TensorProto.FLOAT
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, None))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]


rows, columns = (run("ReduceMax", ["y"], k=axis, keepdims=0) for axis in (1, 0))
index, top = run("ArgMax", ["index"], axis=1, keepdims=0)[1], run("TopK", ["y", "index"], k=1)[1, 0]
print(f"of rows [nan, 1, 2], [0, nan, 2], [0, 1, nan]: {rows}\nof their columns: {columns}")
print(f"ArgMax of the second row: {index}, TopK: {top}")
assert np.isnan(x.max(0)).all() and np.isnan(rows[0]) and np.isnan(columns[0]) and np.isnan(top)
assert rows[1:].tolist() == [2, 1] and columns[1:].tolist() == [1, 2] and index == 2
PY
