// Printing, compared with PyTorch's.

#include <sstream>
#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

struct Printed {
  const char* name;
  std::string (*print)();
  PrintOptions options;
  std::string text;
};

// zeros(10, 100): 24 numbers to a line.
std::string zeros_10_100() {
  std::string row = "[0.";
  for (int i = 1; i < 100; ++i)
    row += i % 24 == 0 ? ",\n         0." : ", 0.";
  row += "]";
  std::string text = "tensor([" + row;
  for (int i = 1; i < 10; ++i)
    text += ",\n        " + row;
  return text + "])";
}

const Printed table[] = {
    // clang-format off
{"0-d", [] { return to_string(scalar(1.5)); }, {},
 R"(tensor(1.5000))"},
{"0-d whole", [] { return to_string(scalar(-3)); }, {},
 R"(tensor(-3.))"},
{"whole numbers", [] { return to_string(tensor({{1, 2}, {3, 4}})); }, {},
 R"(tensor([[1., 2.],
        [3., 4.]]))"},
{"whole numbers and zero", [] { return to_string(tensor({0, -1, 10})); }, {},
 R"(tensor([ 0., -1., 10.]))"},
{"zeros", [] { return to_string(zeros({2, 2})); }, {},
 R"(tensor([[0., 0.],
        [0., 0.]]))"},
{"minus zero", [] { return to_string(tensor({-0.0, 0.0})); }, {},
 R"(tensor([-0., 0.]))"},
{"fractions", [] { return to_string(tensor({0.5, -1.25, 100})); }, {},
 R"(tensor([  0.5000,  -1.2500, 100.0000]))"},
{"rounded", [] { return to_string(tensor({0.12345, 2.0 / 3})); }, {},
 R"(tensor([0.1235, 0.6667]))"},
{"large ratio", [] { return to_string(tensor({0.5, 1000})); }, {},
 R"(tensor([5.0000e-01, 1.0000e+03]))"},
{"ratio of exactly 1000", [] { return to_string(tensor({1, 1000})); }, {},
 R"(tensor([   1., 1000.]))"},
{"whole numbers, ratio above 1000", [] { return to_string(tensor({1, 1001, -3})); }, {},
 R"(tensor([ 1.0000e+00,  1.0010e+03, -3.0000e+00]))"},
{"large", [] { return to_string(tensor({1e8, 2e8})); }, {},
 R"(tensor([1.0000e+08, 2.0000e+08]))"},
{"not quite large", [] { return to_string(tensor({1e8, 3e7})); }, {},
 R"(tensor([100000000.,  30000000.]))"},
{"small", [] { return to_string(tensor({1e-5, 2.5e-5})); }, {},
 R"(tensor([1.0000e-05, 2.5000e-05]))"},
{"not quite small", [] { return to_string(tensor({0.00010001, 0.0002})); }, {},
 R"(tensor([0.0001, 0.0002]))"},
{"three digits in the exponent", [] { return to_string(tensor({1e-200, 1e200}, DType::float64)); }, {},
 R"(tensor([1.0000e-200, 1.0000e+200], dtype=torch.float64))"},
{"not finite, whole", [] { return to_string(tensor({1, not_a_number, inf, -inf})); }, {},
 R"(tensor([1., nan, inf, -inf]))"},
{"not finite, fractions", [] { return to_string(tensor({0.5, not_a_number, inf, -inf})); }, {},
 R"(tensor([0.5000,    nan,    inf,   -inf]))"},
{"not finite, scientific", [] { return to_string(tensor({0.5, not_a_number, -inf, 1e9})); }, {},
 R"(tensor([5.0000e-01,        nan,       -inf, 1.0000e+09]))"},
{"only NaN", [] { return to_string(tensor({not_a_number, not_a_number})); }, {},
 R"(tensor([nan, nan]))"},
{"only infinities", [] { return to_string(tensor({inf, 0, -inf})); }, {},
 R"(tensor([inf, 0., -inf]))"},
{"float64", [] { return to_string(tensor({0.1, 0.2}, DType::float64)); }, {},
 R"(tensor([0.1000, 0.2000], dtype=torch.float64))"},
{"requires a gradient", [] { return to_string(tensor({1, 2}).requires_grad_()); }, {},
 R"(tensor([1., 2.], requires_grad=True))"},
{"result of an op", [] { return to_string(tensor({1, 2}).requires_grad_() * 2); }, {},
 R"(tensor([2., 4.], grad_fn=<MulBackward0>))"},
{"result of an op, float64", [] { return to_string(exp(tensor({0}, DType::float64).requires_grad_())); }, {},
 R"(tensor([1.], dtype=torch.float64, grad_fn=<ExpBackward0>))"},
{"no elements", [] { return to_string(tensor({})); }, {},
 R"(tensor([]))"},
{"no elements, a shape", [] { return to_string(zeros({2, 0})); }, {},
 R"(tensor([], size=(2, 0)))"},
{"no elements, float64", [] { return to_string(zeros({0, 3}, DType::float64)); }, {},
 R"(tensor([], size=(0, 3), dtype=torch.float64))"},
{"no elements, a gradient", [] { return to_string(zeros({0, 1}).requires_grad_()); }, {},
 R"(tensor([], size=(0, 1), requires_grad=True))"},
{"lines", [] { return to_string(arange(30)); }, {},
 R"(tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,
        28., 29.]))"},
{"lines of fractions", [] { return to_string(arange(0, 15, 0.5)); }, {},
 R"(tensor([ 0.0000,  0.5000,  1.0000,  1.5000,  2.0000,  2.5000,  3.0000,  3.5000,
         4.0000,  4.5000,  5.0000,  5.5000,  6.0000,  6.5000,  7.0000,  7.5000,
         8.0000,  8.5000,  9.0000,  9.5000, 10.0000, 10.5000, 11.0000, 11.5000,
        12.0000, 12.5000, 13.0000, 13.5000, 14.0000, 14.5000]))"},
{"the suffix on a line of its own", [] { return to_string(arange(0, 16, 1, DType::float64)); }, {},
 R"(tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,
        14., 15.], dtype=torch.float64))"},
{"the suffix just fits", [] { return to_string(full({5}, 123.4567, DType::float64)); }, {},
 R"(tensor([123.4567, 123.4567, 123.4567, 123.4567, 123.4567], dtype=torch.float64))"},
{"three dimensions", [] { return to_string(arange(12).reshape({2, 3, 2})); }, {},
 R"(tensor([[[ 0.,  1.],
         [ 2.,  3.],
         [ 4.,  5.]],

        [[ 6.,  7.],
         [ 8.,  9.],
         [10., 11.]]]))"},
{"four dimensions", [] { return to_string(arange(4).reshape({2, 1, 2, 1})); }, {},
 R"(tensor([[[[0.],
          [1.]]],


        [[[2.],
          [3.]]]]))"},
{"not yet summarised", [] { return to_string(zeros({10, 100})); }, {},
 zeros_10_100()},
{"summarised", [] { return to_string(arange(1001)); }, {},
 R"(tensor([   0.,    1.,    2.,  ...,  998.,  999., 1000.]))"},
{"summarised by what is shown", [] { return to_string(arange(0, 200000, 0.5)); }, {},
 R"(tensor([0.0000e+00, 5.0000e-01, 1.0000e+00,  ..., 2.0000e+05, 2.0000e+05,
        2.0000e+05]))"},
{"summarised in two dimensions", [] { return to_string(arange(1200).reshape({30, 40})); }, {},
 R"(tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 3.7000e+01, 3.8000e+01,
         3.9000e+01],
        [4.0000e+01, 4.1000e+01, 4.2000e+01,  ..., 7.7000e+01, 7.8000e+01,
         7.9000e+01],
        [8.0000e+01, 8.1000e+01, 8.2000e+01,  ..., 1.1700e+02, 1.1800e+02,
         1.1900e+02],
        ...,
        [1.0800e+03, 1.0810e+03, 1.0820e+03,  ..., 1.1170e+03, 1.1180e+03,
         1.1190e+03],
        [1.1200e+03, 1.1210e+03, 1.1220e+03,  ..., 1.1570e+03, 1.1580e+03,
         1.1590e+03],
        [1.1600e+03, 1.1610e+03, 1.1620e+03,  ..., 1.1970e+03, 1.1980e+03,
         1.1990e+03]]))"},
{"summarised in one of three", [] { return to_string(arange(1800).reshape({3, 300, 2})); }, {},
 R"(tensor([[[0.0000e+00, 1.0000e+00],
         [2.0000e+00, 3.0000e+00],
         [4.0000e+00, 5.0000e+00],
         ...,
         [5.9400e+02, 5.9500e+02],
         [5.9600e+02, 5.9700e+02],
         [5.9800e+02, 5.9900e+02]],

        [[6.0000e+02, 6.0100e+02],
         [6.0200e+02, 6.0300e+02],
         [6.0400e+02, 6.0500e+02],
         ...,
         [1.1940e+03, 1.1950e+03],
         [1.1960e+03, 1.1970e+03],
         [1.1980e+03, 1.1990e+03]],

        [[1.2000e+03, 1.2010e+03],
         [1.2020e+03, 1.2030e+03],
         [1.2040e+03, 1.2050e+03],
         ...,
         [1.7940e+03, 1.7950e+03],
         [1.7960e+03, 1.7970e+03],
         [1.7980e+03, 1.7990e+03]]]))"},
{"Indices", [] { return to_string(Indices{3, -1, 200}); }, {},
 R"(tensor([  3,  -1, 200]))"},
{"Indices, matrix", [] { return to_string(Indices{{0, 1}, {2, 3}}); }, {},
 R"(tensor([[0, 1],
        [2, 3]]))"},
{"Indices, none", [] { return to_string(Indices{}); }, {},
 R"(tensor([], dtype=torch.int64))"},
{"Indices, summarised", [] { return to_string(arange_indices(0, 2000)); }, {},
 R"(tensor([   0,    1,    2,  ..., 1997, 1998, 1999]))"},
{"Mask", [] { return to_string(Mask{true, false}); }, {},
 R"(tensor([ True, False]))"},
{"Mask, all true", [] { return to_string(Mask{{true}, {true}}); }, {},
 R"(tensor([[True],
        [True]]))"},
{"Mask, 0-d", [] { return to_string(Mask(copy_of(std::array{true}.data(), Shape{}))); }, {},
 R"(tensor(True))"},
{"Mask, none", [] { return to_string(Mask(empty_array<bool>({0, 2}))); }, {},
 R"(tensor([], size=(0, 2), dtype=torch.bool))"},
{"precision", [] { return to_string(tensor({0.125, 3.14159})); }, {.precision = 2},
 R"(tensor([0.12, 3.14]))"},
{"precision 0", [] { return to_string(tensor({0.5, 3.14159})); }, {.precision = 0},
 R"(tensor([0, 3]))"},
{"threshold and edgeitems", [] { return to_string(arange(6)); }, {.threshold = 5, .edgeitems = 1},
 R"(tensor([0.,  ..., 5.]))"},
{"edgeitems beyond any size", [] { return to_string(arange(3)); }, {.threshold = 2, .edgeitems = ~std::size_t{0} / 2 + 1},
 R"(tensor([0., 1., 2.]))"},
{"the suffix just does not fit", [] { return to_string(full({3}, 0.5, DType::float64)); }, {.precision = 13},
 R"(tensor([0.5000000000000, 0.5000000000000, 0.5000000000000],
       dtype=torch.float64))"},
{"linewidth", [] { return to_string(tensor({0.5, 1.5, 2.5, 3.5}, DType::float64)); }, {.linewidth = 20},
 R"(tensor([0.5000,
        1.5000,
        2.5000,
        3.5000],
       dtype=torch.float64))"},
{"narrower than one number", [] { return to_string(tensor({0.5, 1.5})); }, {.linewidth = 4},
 R"(tensor([0.5000,
        1.5000]))"},
{"always scientific", [] { return to_string(tensor({0.5, 1})); }, {.sci_mode = true},
 R"(tensor([5.0000e-01, 1.0000e+00]))"},
{"never scientific", [] { return to_string(tensor({0.5, 1e9})); }, {.sci_mode = false},
 R"(tensor([    0.5000, 1000000000.0000]))"},
    // clang-format on
};

// Sets the options and puts the old ones back.
class Options {
 public:
  explicit Options(const PrintOptions& options) : before_(print_options()) {
    print_options() = options;
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options() { print_options() = before_; }

 private:
  PrintOptions before_;
};

}  // namespace

TEST_CASE("printing is PyTorch's", "[print]") {
  for (const Printed& printed : table) {
    INFO(printed.name);
    const Options options(printed.options);
    CHECK(printed.print() == printed.text);
  }
}

TEST_CASE("streams print the same", "[print]") {
  std::ostringstream out;
  out << tensor({1, 2}) << '\n' << Indices{1, 2} << '\n' << Mask{true, false};
  CHECK(out.str() == "tensor([1., 2.])\ntensor([1, 2])\ntensor([ True, False])");
}

TEST_CASE("the name of an op's node", "[print]") {
  const Tensor x = tensor({{1, 2}, {3, 4}}).requires_grad_();
  CHECK(to_string(masked_fill(x, Mask{true, false}, 0)) ==
        "tensor([[0., 2.],\n        [0., 4.]], grad_fn=<MaskedFillBackward0>)");
  CHECK_THROWS_AS(to_string(Tensor()), ValueError);
}
