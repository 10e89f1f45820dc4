// The row of baddbmm.  Those of the other matrix products: matmul_rows.cpp.

#include <limits>

#include "autograd/ops/shape_rows.hpp"

namespace xgrad::testing {
namespace {

Sample added(std::string name, const Dims& x, const Dims& a, const Dims& b, double beta,
             double alpha) {
  return {std::move(name),
          {sample_randn(x, 1), sample_randn(a, 2), sample_randn(b, 3)},
          [=](const Inputs& in) { return baddbmm(in[0], in[1], in[2], beta, alpha); },
          [=](const Inputs& in) {
            const Shape out{in[1].size(0), in[1].size(1), in[2].size(2)};
            return build(out, [&](const At& at) {
              double sum = 0;
              const std::size_t inner = in[1].size(2);
              for (std::size_t k = 0; k < inner; ++k)
                sum += read(in[1], {at[0], at[1], k}) * read(in[2], {at[0], k, at[2]});
              const double x_here = in[0].data<double>()[broadcast_from(at, in[0].shape())];
              return (beta == 0 ? 0 : beta * x_here) + alpha * sum;
            });
          }};
}

}  // namespace

Row baddbmm_row();  // part of matmul_rows()

Row baddbmm_row() {
  Row row{"baddbmm",
          {added("usual", {2, 3, 2}, {2, 3, 4}, {2, 4, 2}, 1, 1),
           added("beta and alpha", {2, 3, 2}, {2, 3, 4}, {2, 4, 2}, -0.5, 2.5),
           added("a row, alpha", {2}, {2, 3, 4}, {2, 4, 2}, 1, 0.25),
           added("0-d", {}, {2, 3, 4}, {2, 4, 2}, 3, 1),
           added("beta 0", {3, 1}, {2, 3, 4}, {2, 4, 2}, 0, 2),
           added("no inner size", {2, 3, 2}, {2, 3, 0}, {2, 0, 2}, 2, 1),
           added("no batch", {0, 3, 2}, {0, 3, 4}, {0, 4, 2}, 1, 1),
           added("large", {9, 40, 30}, {9, 40, 50}, {9, 50, 30}, 0.5, 2)},
          {bad("inner sizes", Bad::shape,
               [] {
                 baddbmm(zeros(2), zeros({2, 2, 3}), zeros({2, 2, 3}));
               },
               {"baddbmm: a (2, 2, 3)", "(B, k, n)"}),
           bad("x larger", Bad::shape,
               [] {
                 baddbmm(zeros({2, 2, 2, 2}), zeros({2, 2, 3}), zeros({2, 3, 2}));
               },
               {"baddbmm: x (2, 2, 2, 2)", "(2, 2, 2)"}),
           bad("x of another shape", Bad::shape,
               [] {
                 baddbmm(zeros(3), zeros({2, 2, 3}), zeros({2, 3, 2}));
               },
               {"baddbmm", "(3,)", "(2, 2, 2)"}),
           bad("dtypes", Bad::dtype,
               [] {
                 baddbmm(zeros(2, DType::float64), zeros({2, 2, 3}), zeros({2, 3, 2}));
               },
               {"baddbmm", "float64", "float32"})}};
  Sample unread = added("beta 0 and an x that is NaN", {2, 3, 2}, {2, 3, 4}, {2, 4, 2}, 0, 1);
  unread.inputs[0] =
      sample_from({2, 3, 2}, [](std::size_t) { return std::numeric_limits<double>::quiet_NaN(); });
  unread.differentiable = false;
  row.samples.push_back(unread);
  return row;
}

}  // namespace xgrad::testing
