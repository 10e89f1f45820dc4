#pragma once
// Short descriptions of a Tensor, and of the relation of two, for messages of anomaly.cpp,
// explain.cpp, compare.cpp and function_checks.cpp.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>
#include "../tensor.hpp"

namespace xgrad {

/// A summary of a Tensor's elements.
struct ValueSummary {
  bool defined = false;
  Shape shape;
  DType dtype = DType::float32;
  double min = 0, max = 0;  ///< of the finite elements; 0 if there are none
  std::size_t finite = 0, nan = 0, inf = 0, minus_inf = 0;  ///< numbers of elements
  bool all_finite() const { return nan + inf + minus_inf == 0; }
};

ValueSummary summarize(const Tensor& x);
/// "(2, 3) float32, -1 ... 4, 2 NaN, 1 -inf"; "undefined" for an undefined Tensor.
std::string to_string(const ValueSummary& summary);

namespace detail {

/// The elements of a Tensor of either dtype.
std::vector<double> elements(const Tensor& x);
/// The position of the flat-th element of this shape, as "(0, 1, 2)".
std::string place(std::size_t flat, const Shape& shape);
/// The largest magnitude among the finite elements.
double scale_of(std::span<const double> a);
/// The same shape, dtype and bits.
bool same_bits(const Tensor& a, const Tensor& b);
/// The first differing element of two Tensors of one shape; NaN equals NaN.
std::optional<std::size_t> first_difference(const Tensor& a, const Tensor& b);
/// Where x is infinite.
Mask infinite(const Tensor& x);
/// x, or 0.5 where it is infinite.
Tensor made_finite(const Tensor& x);
/// |a - b| <= tolerance for all elements; equal infinities, and two NaN, agree.
bool close(std::span<const double> a, std::span<const double> b, double tolerance);
/// "1/8 = 1/√64", "√8", "√(2/π)": the name of a likely missing or extra factor; empty without one.
std::string number_name(double c);
/// "0.125 (1/8 = 1/√64)", "2.82843 (√8)", "1.5 (3/2)", "1.2345".
std::string factor(double ratio);
/// a's dimensions in this order.
std::vector<double> permuted(std::span<const double> a, const Shape& shape,
                             const std::vector<std::size_t>& order);
/// The c with a = c b, up to rtol of the largest element; none if it is 1 or not found.
std::optional<double> ratio(std::span<const double> a, std::span<const double> b,
                            double rtol = 1e-4);
/// A short description of how a differs from b, both of this shape: "is 0.5 (1/2) times the other",
/// "has the other sign", "is zero", "is the other transposed", "holds the same numbers in another
/// order: ...".  Empty if they agree or none fits.
std::string relation(std::span<const double> a, std::span<const double> b, const Shape& shape,
                     double rtol = 1e-4);

}  // namespace detail
}  // namespace xgrad
