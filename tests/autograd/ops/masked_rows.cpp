// Rows of the test table: elements by a mask.

#include "autograd/ops/index_samples.hpp"

namespace xgrad::testing {
namespace {

struct MaskCase {
  std::string name;
  Shape x, mask;
};
const std::vector<MaskCase>& mask_cases() {
  static const std::vector<MaskCase> cases = {
      {"same shape", {3, 7}, {3, 7}},   {"0-d", {}, {}},
      {"mask row", {3, 7}, {7}},        {"mask column", {3, 7}, {3, 1}},
      {"mask 0-d", {2, 3}, {}},         {"mask larger", {4}, {2, 3, 4}},
      {"both ways", {3, 1}, {2, 1, 4}}, {"zero-size", {0, 3}, {3}},
      {"large", {150, 260}, {150, 260}}};
  return cases;
}

// True in an irregular pattern, at the first place too.
Mask irregular(const Shape& shape) {
  auto m = empty_array<bool>(shape);
  for (std::size_t i = 0; i < m.size(); ++i)
    m.data()[i] = i % 3 == 0 || i % 7 == 2;
  return Mask(std::move(m));
}

// The elements of x and mask at each place of the shape to which both broadcast.
template <class F>
void each_place(const Tensor& x, const Mask& mask, const F& f) {
  const Shape shape = common_shape(x.shape(), mask.shape());
  for (Size i = 0; i < numel(shape); ++i) {
    const At at = position(static_cast<std::size_t>(i), shape);
    f(x.data<double>()[broadcast_from(at, x.shape())],
      mask.data()[broadcast_from(at, mask.shape())]);
  }
}

Row masked_select_row() {
  Row row{"masked_select", {}, {}};
  for (const MaskCase& c : mask_cases())
    row.samples.push_back(
        {c.name,
         {sample_randn(c.x, 1)},
         [m = irregular(c.mask)](const Inputs& in) { return masked_select(in[0], m); },
         [m = irregular(c.mask)](const Inputs& in) {
           std::vector<double> y;
           each_place(in[0], m, [&](double v, bool chosen) {
             if (chosen)
               y.push_back(v);
           });
           return from_list({y.size()}, y);
         }});
  row.samples.push_back({"nothing",
                         {sample_randn({2, 3}, 2)},
                         [](const Inputs& in) { return masked_select(in[0], Mask{false}); },
                         [](const Inputs&) { return zeros(0, DType::float64); }});
  row.samples.push_back({"x[mask], of rows",
                         {sample_randn({3, 2}, 3)},
                         [](const Inputs& in) {
                           return in[0][Mask{true, false, true}];
                         },
                         [](const Inputs& in) {
                           const std::vector<double> x = list_of(in[0]);
                           return from_list({2, 2}, {x[0], x[1], x[4], x[5]});
                         }});
  row.samples.push_back({"x[mask], of 0-d",
                         {sample_randn({2}, 4)},
                         [](const Inputs& in) { return in[0][Mask{true}[0]]; },
                         [](const Inputs& in) {
                           return from_list({1, 2}, list_of(in[0]));
                         }});
  row.bad = {bad("shapes", Bad::shape,
                 [] {
                   masked_select(zeros(3), Mask{true, false});
                 },
                 {"masked_select:", "(3,)", "(2,)"}),
             bad("x[mask] that broadcasts", Bad::shape,
                 [] {
                   (void)zeros({2, 3})[Mask{true, false, true}];
                 },
                 {"operator[]: the mask (3,)", "first sizes of x (2, 3)"}),
             bad("x[mask] of more dimensions", Bad::shape, [] { (void)zeros(1)[Mask{{true}}]; },
                 {"operator[]: the mask (1, 1)", "x (1,)"})};
  return row;
}

}  // namespace

std::vector<Row> masked_rows() { return {masked_select_row()}; }

}  // namespace xgrad::testing
