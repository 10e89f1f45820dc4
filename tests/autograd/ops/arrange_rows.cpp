// Rows of the test table: dimensions moved, elements turned, diagonals, padding and grids.

#include "autograd/ops/shape_rows.hpp"

namespace xgrad::testing {
namespace {

// Dimension 0 of three and the last exchanged; `beyond` names dimension 3.
Row moved_row(const std::string& op, const Op& f, const Op& beyond) {
  return {op,
          {sample("3-d", {2, 3, 4}, f, {4, 3, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[2], at[1], at[0]});
                  }),
           in_order("no elements", {0, 3, 1}, f, {1, 3, 0})},
          {out_of_range(beyond, {2, 3, 4})}};
}

Row movedim_row() {
  const auto to = [](const Dims& source, const Dims& destination) {
    return [=](const Tensor& x) { return movedim(x, source, destination); };
  };
  Row row = moved_row("movedim", to({0, -1}, {2, 0}), to(0, 3));
  row.samples.push_back(
      sample("one", {2, 3, 4}, to(0, -1), {3, 4, 2}, [](const Tensor& x, const At& at) {
        return read(x, {at[2], at[0], at[1]});
      }));
  row.samples.push_back(in_order("none", {2, 3}, to({}, {}), {2, 3}));
  row.samples.push_back(in_order("0-d", {}, to(0, -1), {}));
  row.bad.push_back(bad("another number", Bad::value,
                        [=] {
                          to({0, 1}, 0)(zeros({2, 3}));
                        },
                        {"movedim", "(0, 1)", "(0)"}));
  row.bad.push_back(bad("twice", Bad::value,
                        [=] {
                          to({0, 1}, {0, 0})(zeros({2, 3}));
                        },
                        {"movedim", "twice"}));
  return row;
}

Row expanded_row(const std::string& op, const Op& f) {  // to (2, 3, 4)
  return {op,
          {sample("a row", {4}, f, {2, 3, 4},
                  [](const Tensor& x, const At& at) { return read(x, {at[2]}); }),
           sample("a column", {3, 1}, f, {2, 3, 4},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[1], 0});
                  }),
           in_order("the same", {2, 3, 4}, f, {2, 3, 4})},
          {bad("does not broadcast", Bad::shape,
               [f] {
                 f(zeros({3, 2}));
               },
               {"(2, 3, 4)", "(3, 2)"})}};
}

Row unbind_row() {
  const auto part = [](std::size_t i, std::int64_t dim) {
    return [=](const Tensor& x) { return unbind(x, dim).at(i); };
  };
  return {"unbind",
          {sample("first", {3, 2}, part(1, 0), {2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {1, at[0]});
                  }),
           sample("last", {3, 2}, part(0, -1), {3},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], 0});
                  }),
           sample("to 0-d", {3}, part(2, 0), {},
                  [](const Tensor& x, const At&) { return read(x, {2}); })},
          {out_of_range(part(0, 2)),
           bad("0-d", Bad::shape, [=] { part(0, 0)(zeros({})); }, {"unbind", "0-d"})}};
}

Row roll_row() {
  const auto by = [](const Dims& shifts, const Dims& dims = {}) {
    return [=](const Tensor& x) { return roll(x, shifts, dims); };
  };
  return {"roll",
          {sample("columns", {2, 5}, by(2, -1), {2, 5},
                  [](const Tensor& x, const At& at) {
                    return read(x, {at[0], (at[1] + 3) % 5});
                  }),
           sample("backwards, twice around", {5, 2}, by(-11, 0), {5, 2},
                  [](const Tensor& x, const At& at) {
                    return read(x, {(at[0] + 1) % 5, at[1]});
                  }),
           sample("both", {3, 4}, by({1, -1}, {0, 1}), {3, 4},
                  [](const Tensor& x, const At& at) {
                    return read(x, {(at[0] + 2) % 3, (at[1] + 1) % 4});
                  }),
           sample("flattened", {2, 3}, by(1), {2, 3},
                  [](const Tensor& x, const At& at) {
                    return x.data<double>()[(3 * at[0] + at[1] + 5) % 6];
                  }),
           in_order("all around", {2, 3}, by(6, 1), {2, 3}), in_order("0-d", {}, by(1), {}),
           in_order("no elements", {0, 3}, by(1, 0), {0, 3})},
          {out_of_range(by(1, 2)), bad("another number", Bad::value,
                                       [=] {
                                         by({1, 2}, 0)(zeros({2, 3}));
                                       },
                                       {"roll: 2 shifts for 1 dimension"})}};
}

Row diag_row() {
  const auto of = [](std::int64_t diagonal) {
    return [=](const Tensor& x) { return diag(x, diagonal); };
  };
  const auto taken = [&](const std::string& name, const Dims& sizes, std::int64_t diagonal,
                         std::size_t n) {
    return sample(name, sizes, of(diagonal), {n}, [=](const Tensor& x, const At& at) {
      return read(x, {at[0] + static_cast<std::size_t>(std::max<std::int64_t>(-diagonal, 0)),
                      at[0] + static_cast<std::size_t>(std::max<std::int64_t>(diagonal, 0))});
    });
  };
  const auto made = [&](const std::string& name, std::size_t n, std::int64_t diagonal) {
    const std::size_t size = n + static_cast<std::size_t>(std::abs(diagonal));
    return sample(name, n, of(diagonal), {size, size}, [=](const Tensor& x, const At& at) {
      const auto i = static_cast<std::int64_t>(at[0]), j = static_cast<std::int64_t>(at[1]);
      return j - i == diagonal ? read(x, {std::min(at[0], at[1])}) : 0.0;
    });
  };
  return {"diag",
          {taken("square", {3, 3}, 0, 3), taken("wide", {2, 4}, 1, 2),
           taken("wide, at the end", {2, 4}, 3, 1), taken("tall", {4, 2}, -1, 2),
           taken("at the corner", {2, 3}, 3, 0), taken("beyond it", {2, 3}, -3, 0),
           taken("no rows", {0, 3}, 0, 0), made("matrix", 3, 0), made("matrix above", 2, 2),
           made("matrix below", 2, -1), made("of nothing", 0, 1)},
          {bad("3-d", Bad::shape,
               [] {
                 diag(zeros({2, 2, 2}));
               },
               {"diag", "(2, 2, 2)"})}};
}

Row pad_row() {
  const auto by = [](const Dims& sizes, double value = 0) {
    return [=](const Tensor& x) { return pad(x, sizes, value); };
  };
  // x moved down and right by the first pads, with a value where it is not
  const auto around = [](std::int64_t top, std::int64_t left, double value = 0) {
    return [=](const Tensor& x, const At& at) {
      const auto i = static_cast<std::int64_t>(at[0]) - top,
                 j = static_cast<std::int64_t>(at[1]) - left;
      return i < 0 || j < 0 || i >= x.size(0) || j >= x.size(1)
                 ? value
                 : read(x, {static_cast<std::size_t>(i), static_cast<std::size_t>(j)});
    };
  };
  return {"pad",
          {sample("last", {2, 3}, by({1, 2}), {2, 6}, around(0, 1)),
           sample("both, a value", {2, 3}, by({1, 0, 2, 1}, -1.5), {5, 4}, around(2, 1, -1.5)),
           sample("cut and filled", {3, 4}, by({-1, 2}), {3, 5}, around(0, -1)),
           sample("cut", {3, 4}, by({-1, -2, -2, 0}), {1, 1}, around(-2, -1)),
           sample("all cut, then filled", {2, 2}, by({-2, 3}), {2, 3}, around(0, -2)),
           sample("no rows", {0, 2}, by({0, 0, 1, 1}, 3), {2, 2}, around(1, 0, 3)),
           in_order("none", {2, 3}, by({}), {2, 3})},
          {bad("no pairs", Bad::value,
               [=] {
                 by(1)(zeros({2, 3}));
               },
               {"pad", "(1)", "(2, 3)"}),
           bad("more than dimensions", Bad::value,
               [=] {
                 by({1, 1, 1, 1})(zeros(2));
               },
               {"pad", "(1, 1, 1, 1)"}),
           bad("more cut than there is", Bad::shape,
               [=] {
                 by({-2, -1})(zeros(2));
               },
               {"pad", "-2", "-1", "dimension 0"})}};
}

Row meshgrid_row() {
  Row row{"meshgrid", {}, {}};
  for (const bool xy : {false, true})
    for (const std::size_t k : {0U, 1U, 2U}) {
      Shape out = xy ? Shape{3, 2, 2} : Shape{2, 3, 2};
      row.samples.push_back(
          {std::string(xy ? "xy, " : "ij, ") + std::to_string(k),
           {sample_randn(2, 1), sample_randn(3, 2), sample_randn(2, 3)},
           [=](const Inputs& in) { return meshgrid(in, xy ? Meshgrid::xy : Meshgrid::ij).at(k); },
           [=](const Inputs& in) {
             return build(out,
                          [&](const At& at) { return read(in[k], {at[xy && k < 2 ? 1 - k : k]}); });
           }});
    }
  row.samples.push_back({"one, 0-d",
                         {sample_randn({}, 1)},
                         [](const Inputs& in) { return meshgrid(in, Meshgrid::xy).at(0); },
                         [](const Inputs& in) { return reshape(in[0], 1); }});
  row.bad = {bad("2-d", Bad::shape,
                 [] {
                   meshgrid({zeros(2), zeros({2, 1})});
                 },
                 {"meshgrid: axis 1", "(2, 1)"})};
  return row;
}

}  // namespace

std::vector<Row> arrange_rows() {
  return {moved_row(
              "swapaxes", [](const Tensor& x) { return swapaxes(x, 0, -1); },
              [](const Tensor& x) { return swapaxes(x, 3, 0); }),
          movedim_row(),
          expanded_row("broadcast_to",
                       [](const Tensor& x) {
                         return broadcast_to(x, {2, 3, 4});
                       }),
          expanded_row("expand_as",
                       [](const Tensor& x) {
                         return expand_as(x, zeros({2, 3, 4}));
                       }),
          {"contiguous", {in_order("itself", {2, 3}, contiguous, {2, 3})}, {}},
          unbind_row(),
          roll_row(),
          diag_row(),
          pad_row(),
          meshgrid_row()};
}

}  // namespace xgrad::testing
