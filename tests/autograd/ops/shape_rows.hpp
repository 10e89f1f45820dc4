#pragma once
// How the rows of shape ops are written: the reference of each says where every element of the
// output comes from.

#include <utility>

#include "autograd/ops/op_table.hpp"
#include "helpers/positions.hpp"

namespace xgrad::testing {

using At = Position;
using Op = std::function<Tensor(const Tensor&)>;
using Element = std::function<double(const Tensor& x, const At& at)>;

// ---- the reference: every element of the output by its indices

inline double read(const Tensor& x, const At& at) { return x.data<double>()[flat(at, x.shape())]; }

inline Tensor build(const Shape& shape, const std::function<double(const At&)>& element) {
  return sample_from(shape, [&](std::size_t i) { return element(position(i, shape)); });
}

inline Sample sample(std::string name, const Dims& sizes, const Op& op, const Shape& out,
                     const Element& element) {
  return {std::move(name),
          {sample_randn(sizes, 1)},
          [op](const Inputs& in) { return op(in[0]); },
          [out, element](const Inputs& in) {
            return build(out, [&](const At& at) { return element(in[0], at); });
          }};
}

// The same elements in the same order.
inline Sample in_order(std::string name, const Dims& sizes, const Op& op, const Shape& out) {
  return {std::move(name),
          {sample_randn(sizes, 1)},
          [op](const Inputs& in) { return op(in[0]); },
          [out](const Inputs& in) {
            return sample_from(out, [&](std::size_t i) { return in[0].data<double>()[i]; });
          }};
}

inline Bad bad(std::string name, Bad::Kind kind, const std::function<void()>& call,
               std::vector<std::string> fragments) {
  return {std::move(name), call, kind, std::move(fragments)};
}

inline Bad out_of_range(const Op& op, const Dims& sizes = {2, 3}) {
  return bad("dimension out of range", Bad::value, [=] { op(zeros(sizes)); }, {"out of range"});
}

/// The rows of ops that take Tensors apart or join them; part of shape_rows().
std::vector<Row> slice_cat_rows();
/// Those that use each element several times; part of shape_rows().
std::vector<Row> repeat_rows();
/// arrange_rows.cpp; part of shape_rows().
std::vector<Row> arrange_rows();

}  // namespace xgrad::testing
