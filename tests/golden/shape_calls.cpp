// The calls of tests/golden/cases_shape.py.

#include "golden/ops.hpp"

namespace xgrad::testing {
namespace {

using In = GoldenInputs;

void add_shapes(GoldenCalls& calls) {
  using Reshape = Tensor(const Tensor&, const Dims&);
  const auto add_reshapes = [&](const std::string& op, Reshape* f) {
    calls.add(op, {"flat"}, [f](const In& in) { return f(in[0], {6}); });
    calls.add(op, {"-1"}, [f](const In& in) { return f(in[0], {4, -1}); });
    calls.add(op, {"0-d"}, [f](const In& in) { return f(in[0], {1, 1}); });
    calls.add(op, {"to 0-d"}, [f](const In& in) { return f(in[0], {}); });
    calls.add(op, {"zero-size"}, [f](const In& in) { return f(in[0], {3, 0, 2}); });
  };
  add_reshapes("reshape", reshape);
  add_reshapes("view", view);
  calls.add("flatten", {"all", "0-d", "zero-size"}, [](const In& in) { return flatten(in[0]); });
  calls.add("flatten", {"from 1"}, [](const In& in) { return flatten(in[0], 1); });
  calls.add("flatten", {"-3 to -2"}, [](const In& in) { return flatten(in[0], -3, -2); });
  calls.add("permute", {"3-d"}, [](const In& in) { return permute(in[0], {2, 0, 1}); });
  calls.add("permute", {"negative"}, [](const In& in) { return permute(in[0], {-1, 0, -2, 1}); });
  calls.add("permute", {"0-d"}, [](const In& in) { return permute(in[0], {}); });
  calls.add("permute", {"zero-size"}, [](const In& in) { return permute(in[0], {1, 0}); });
  calls.add("transpose", {"2-d", "zero-size"}, [](const In& in) { return transpose(in[0], 0, 1); });
  calls.add("transpose", {"negative"}, [](const In& in) { return transpose(in[0], -1, 0); });
  calls.add("squeeze", {"all", "to 0-d", "zero-size"}, [](const In& in) { return squeeze(in[0]); });
  calls.add("squeeze", {"dim -2"}, [](const In& in) { return squeeze(in[0], -2); });
  calls.add("squeeze", {"not of size 1"}, [](const In& in) { return squeeze(in[0], 0); });
  calls.add("squeeze", {"dims 0 and -1"}, [](const In& in) { return squeeze(in[0], {0, -1}); });
  calls.add("squeeze", {"dims 3, 0 and 1, one not of size 1"}, [](const In& in) {
    return squeeze(in[0], {3, 0, 1});
  });
  calls.add("unsqueeze", {"0", "0-d"}, [](const In& in) { return unsqueeze(in[0], 0); });
  calls.add("unsqueeze", {"-1"}, [](const In& in) { return unsqueeze(in[0], -1); });
  calls.add("unsqueeze", {"zero-size"}, [](const In& in) { return unsqueeze(in[0], 1); });
  calls.add("expand", {"sizes of 1"}, [](const In& in) { return expand(in[0], {2, 3, 4}); });
  calls.add("expand", {"new dimensions, -1"}, [](const In& in) {
    return expand(in[0], {2, 3, -1});
  });
  calls.add("expand", {"0-d"}, [](const In& in) { return expand(in[0], {2, 2}); });
  calls.add("expand", {"zero-size"}, [](const In& in) { return expand(in[0], {0, 3}); });

  calls.add("repeat", {"both", "zero-size"}, [](const In& in) {
    return in[0].numel() == 0 ? repeat(in[0], {2, 2}) : repeat(in[0], {3, 2});
  });
  calls.add("repeat", {"new dimension"}, [](const In& in) { return repeat(in[0], {2, 1, 2}); });
  calls.add("repeat", {"0-d"}, [](const In& in) { return repeat(in[0], 3); });
  calls.add("repeat_interleave", {"flattened"},
            [](const In& in) { return repeat_interleave(in[0], 2); });
  calls.add("repeat_interleave", {"dim 0"},
            [](const In& in) { return repeat_interleave(in[0], 3, 0); });
  calls.add("repeat_interleave", {"dim -1"},
            [](const In& in) { return repeat_interleave(in[0], 2, -1); });
  calls.add("repeat_interleave", {"a list, dim 1", "a list of one, dim 1"},
            [](const In& in) { return repeat_interleave(in[0], in.ids[0], 1); });

  using Triangle = Tensor(const Tensor&, std::int64_t);
  const auto add_triangles = [&](const std::string& op, Triangle* f, std::int64_t everything) {
    calls.add(op, {"square", "zero-size"}, [f](const In& in) { return f(in[0], 0); });
    calls.add(op, {"diagonal 1"}, [f](const In& in) { return f(in[0], 1); });
    calls.add(op, {"diagonal -1"}, [f](const In& in) { return f(in[0], -1); });
    calls.add(op, {"tall, all of it"}, [=](const In& in) { return f(in[0], everything); });
  };
  add_triangles("tril", tril, 7);
  add_triangles("triu", triu, -7);
  calls.add("tril", {"mask"}, [](const In& in) { return tril(in.masks[0]); });
  calls.add("tril", {"mask, diagonal 1"}, [](const In& in) { return tril(in.masks[0], 1); });
}

void add_arrangements(GoldenCalls& calls) {
  calls.add("swapaxes", {"3-d"}, [](const In& in) { return swapaxes(in[0], 0, -1); });
  calls.add("movedim", {"one"}, [](const In& in) { return movedim(in[0], 0, -1); });
  calls.add("movedim", {"two"}, [](const In& in) { return movedim(in[0], {0, -1}, {1, 0}); });
  calls.add("broadcast_to", {"new dimension"}, [](const In& in) {
    return broadcast_to(in[0], {2, 3, 4});
  });
  calls.add("expand_as", {"a row"}, [](const In& in) {
    return expand_as(in[0], zeros({2, 3, 4}));
  });
  calls.add("contiguous", {"itself"}, [](const In& in) { return contiguous(in[0]); });
  calls.add("unbind", {"dim 0"}, [](const In& in) { return unbind(in[0]); });
  calls.add("unbind", {"dim -1"}, [](const In& in) { return unbind(in[0], -1); });
  calls.add("roll", {"dim 1"}, [](const In& in) { return roll(in[0], 2, 1); });
  calls.add("roll", {"two"}, [](const In& in) { return roll(in[0], {-1, 4}, {0, 1}); });
  calls.add("roll", {"flattened"}, [](const In& in) { return roll(in[0], -1); });
  calls.add("roll", {"zero-size"}, [](const In& in) { return roll(in[0], 1, 0); });
  for (const std::string sample : {"of a matrix", "a matrix"})
    calls.add("diag", {sample}, [](const In& in) { return diag(in[0]); });
  calls.add("diag", {"of a matrix, 1"}, [](const In& in) { return diag(in[0], 1); });
  calls.add("diag", {"of a matrix, -2"}, [](const In& in) { return diag(in[0], -2); });
  calls.add("diag", {"a matrix, 2"}, [](const In& in) { return diag(in[0], 2); });
  calls.add("diag", {"a matrix, -1"}, [](const In& in) { return diag(in[0], -1); });
  for (const auto& [sample, sizes] :
       std::vector<std::pair<std::string, Dims>>{{"last", {1, 2}},
                                                 {"both", {1, 0, 2, 1}},
                                                 {"cut", {-1, 2, 0, -2}},
                                                 {"zero-size", {1, 1, 1, 0}}}) {
    calls.add("pad", {sample}, [sizes = sizes](const In& in) { return pad(in[0], sizes); });
    calls.add("pad", {sample + ", value"},
              [sizes = sizes](const In& in) { return pad(in[0], sizes, -1.5); });
  }
  calls.add("meshgrid", {"ij", "ij, three"}, [](const In& in) { return meshgrid(in.tensors); });
  calls.add("meshgrid", {"xy", "xy, three"},
            [](const In& in) { return meshgrid(in.tensors, Meshgrid::xy); });
}

void add_parts(GoldenCalls& calls) {
  calls.add("cat", {"dim 0", "one", "zero-size"}, [](const In& in) { return cat(in.tensors); });
  calls.add("cat", {"dim -1, three"}, [](const In& in) { return cat(in.tensors, -1); });
  calls.add("cat", {"middle"}, [](const In& in) { return cat(in.tensors, 1); });
  calls.add("cat", {"of itself"}, [](const In& in) { return cat({in[0], in[0]}, 1); });
  calls.add("stack", {"dim 0", "0-d"}, [](const In& in) { return stack(in.tensors); });
  calls.add("stack", {"dim -1"}, [](const In& in) { return stack(in.tensors, -1); });
  calls.add("stack", {"zero-size"}, [](const In& in) { return stack(in.tensors, 1); });
  calls.add("split", {"size 2 of 5", "zero-size"}, [](const In& in) { return split(in[0], 2); });
  calls.add("split", {"dim -1"}, [](const In& in) { return split(in[0], 3, -1); });
  calls.add("split", {"larger than x"}, [](const In& in) { return split(in[0], 4); });
  calls.add("split", {"sizes, one zero"}, [](const In& in) { return split(in[0], {1, 0, 3}, 1); });
  calls.add("chunk", {"even", "zero-size"}, [](const In& in) { return chunk(in[0], 2, 1); });
  calls.add("chunk", {"3 of 7"}, [](const In& in) { return chunk(in[0], 3); });
  calls.add("chunk", {"fewer than asked"}, [](const In& in) { return chunk(in[0], 4, -1); });
  calls.add("slice", {"range"}, [](const In& in) { return slice(in[0], 0, 1, 3); });
  calls.add("slice", {"dim -1, step 2"}, [](const In& in) { return slice(in[0], -1, 1, {}, 2); });
  calls.add("slice", {"negative ends"}, [](const In& in) { return slice(in[0], 1, -3, -1); });
  calls.add("slice", {"clipped"}, [](const In& in) { return slice(in[0], 0, -9, 9); });
  calls.add("slice", {"nothing"}, [](const In& in) { return slice(in[0], 0, 2, 1); });
  calls.add("slice", {"step 3, middle"}, [](const In& in) { return slice(in[0], 1, {}, 5, 3); });
  calls.add("narrow", {"dim 0"}, [](const In& in) { return narrow(in[0], 0, 1, 2); });
  calls.add("narrow", {"dim -1, negative start"},
            [](const In& in) { return narrow(in[0], -1, -2, 2); });
  calls.add("narrow", {"nothing"}, [](const In& in) { return narrow(in[0], 1, 1, 0); });
  calls.add("select", {"dim 0"}, [](const In& in) { return select(in[0], 0, 1); });
  calls.add("select", {"dim -1, negative index"},
            [](const In& in) { return select(in[0], -1, -2); });
  calls.add("select", {"to 0-d"}, [](const In& in) { return select(in[0], 0, 2); });
  calls.add("select", {"zero-size"}, [](const In& in) { return select(in[0], 0, 0); });
  calls.add("select_scatter", {"dim 0"},
            [](const In& in) { return select_scatter(in[0], in[1], 0, 1); });
  calls.add("select_scatter", {"dim -1, negative index"},
            [](const In& in) { return select_scatter(in[0], in[1], -1, -2); });
  calls.add("select_scatter", {"an element"},
            [](const In& in) { return select_scatter(in[0], in[1], 0, 2); });
  calls.add("flip", {"dim 0"}, [](const In& in) { return flip(in[0], 0); });
  calls.add("flip", {"dims -1 and 0"}, [](const In& in) { return flip(in[0], {-1, 0}); });
  calls.add("flip", {"no dims"}, [](const In& in) { return flip(in[0], {}); });
  calls.add("flip", {"zero-size"}, [](const In& in) { return flip(in[0], 1); });
  calls.add("index", {"integer and range"}, [](const In& in) {
    return index(in[0], {1, Slice{0, 2}});
  });
  calls.add("index", {"ellipsis, step"}, [](const In& in) {
    return index(in[0], {Ellipsis{}, Slice{{}, {}, 2}});
  });
  calls.add("index", {"new axes"}, [](const In& in) {
    return index(in[0], {NewAxis{}, Slice{}, -1, NewAxis{}});
  });
  calls.add("index", {"to 0-d"}, [](const In& in) { return index(in[0], {-1, 2}); });
}

void add_indexing(GoldenCalls& calls) {
  calls.add("index_select", {"repeated", "no indices", "no columns"},
            [](const In& in) { return index_select(in[0], 0, in.ids[0]); });
  calls.add("index_select", {"dim -1"},
            [](const In& in) { return index_select(in[0], -1, in.ids[0]); });
  calls.add("index_select", {"middle"},
            [](const In& in) { return index_select(in[0], 1, in.ids[0]); });
  calls.add("gather", {"dim 0", "smaller off dim", "no indices", "0-d"},
            [](const In& in) { return gather(in[0], 0, in.ids[0]); });
  calls.add("gather", {"dim -1"}, [](const In& in) { return gather(in[0], -1, in.ids[0]); });
  calls.add("gather", {"no indices, another rank", "no indices, a larger rank"},
            [](const In& in) { return gather(in[0], 1, in.ids[0]); });
  calls.add("gather", {"3-d, middle"}, [](const In& in) { return gather(in[0], 1, in.ids[0]); });
  calls.add("scatter_add", {"dim 0", "no indices"},
            [](const In& in) { return scatter_add(in[0], 0, in.ids[0], in[1]); });
  calls.add("scatter_add", {"dim -1"},
            [](const In& in) { return scatter_add(in[0], -1, in.ids[0], in[1]); });
  calls.add("scatter_add", {"larger src"},
            [](const In& in) { return scatter_add(in[0], 1, in.ids[0], in[1]); });
  calls.add("scatter", {"dim 0", "no indices"},
            [](const In& in) { return scatter(in[0], 0, in.ids[0], in[1]); });
  calls.add("scatter", {"dim -1"},
            [](const In& in) { return scatter(in[0], -1, in.ids[0], in[1]); });
  calls.add("scatter", {"a number"},
            [](const In& in) { return scatter(in[0], 0, in.ids[0], -1.5); });
  calls.add("index_put",
            {"rows", "rows, one value each", "no indices", "elements", "rows and columns"},
            [](const In& in) { return index_put(in[0], in.ids, in[1]); });
  calls.add("index_put", {"added, some twice", "added, one value"},
            [](const In& in) { return index_put(in[0], in.ids, in[1], true); });
  calls.add("masked_select", {"same shape", "both broadcast", "0-d", "nothing"},
            [](const In& in) { return masked_select(in[0], in.masks[0]); });
  calls.add("masked_select", {"x[mask]", "x[mask] of rows"},
            [](const In& in) { return in[0][in.masks[0]]; });
  calls.add("index_add", {"repeated", "no indices"},
            [](const In& in) { return index_add(in[0], 0, in.ids[0], in[1]); });
  calls.add("index_add", {"dim -1"},
            [](const In& in) { return index_add(in[0], -1, in.ids[0], in[1]); });
  calls.add("index_add", {"middle"},
            [](const In& in) { return index_add(in[0], 1, in.ids[0], in[1]); });
  calls.add("embedding", {"table, some twice", "one id", "no ids", "one column"},
            [](const In& in) { return embedding(in.ids[0], in[0]); });
}

}  // namespace

void add_shape_calls(GoldenCalls& calls) {
  add_shapes(calls);
  add_arrangements(calls);
  add_parts(calls);
  add_indexing(calls);
}

}  // namespace xgrad::testing
