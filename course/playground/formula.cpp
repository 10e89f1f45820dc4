#include "formula.hpp"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <xgrad/autograd/check/describe.hpp>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/nn/attention.hpp>

#include "exercise.hpp"

// The mistakes of stage 11: those of the exercises themselves.
namespace softmax_mistake {
#include "exercises/mistakes/01_softmax.cpp"
}
namespace scores_mistake {
#include "exercises/mistakes/02_scores.cpp"
}
namespace scaled_scores_mistake {
#include "exercises/mistakes/03_scaled_scores.cpp"
}
namespace mask_mistake {
#include "exercises/mistakes/04_mask.cpp"
}
namespace bias_mistake {
#include "exercises/mistakes/05_bias.cpp"
}
namespace merge_heads_mistake {
#include "exercises/mistakes/06_merge_heads.cpp"
}

namespace playground {

using namespace xgrad;

namespace {

using Arguments = std::vector<Tensor>;

// A whole number, as a dimension is.
std::int64_t whole(const Tensor& x) {
  const double n = x.numel() == 1 ? x.item() : std::nan("");
  check<ValueError>(n == std::floor(n) && std::abs(n) < 1e9,
                    "a dimension, or a size, is one whole number");
  return static_cast<std::int64_t>(n);
}
// The arguments after the first.
Dims dims_from(const Arguments& x) {
  std::vector<std::int64_t> dims;
  std::transform(x.begin() + 1, x.end(), std::back_inserter(dims), whole);
  return Dims(dims);
}

Indices indices_of(const Tensor& x) {
  std::vector<std::int64_t> ids;
  for (const double id : xgrad::detail::elements(x))
    ids.push_back(whole(scalar(id, DType::float64)));
  return reshape(Indices(ids), Dims(x.shape()));
}
Tensor classes_loss(const Arguments& x) {
  return x[0].shape() == x[1].shape() ? cross_entropy(x[0], x[1])
                                      : cross_entropy(x[0], indices_of(x[1]));
}
Tensor normalized(const Arguments& x) {
  return layer_norm(x[0], {x[0].size(-1)}, x.size() > 1 ? x[1] : Tensor(),
                    x.size() > 2 ? x[2] : Tensor());
}

struct Function {
  std::size_t least, most;  // arguments
  std::function<Tensor(const Arguments&)> run;
};
Function of(Tensor (*f)(const Tensor&)) {
  return {1, 1, [f](const Arguments& x) { return f(x[0]); }};
}
Function of(Tensor (*f)(const Tensor&, const Tensor&)) {
  return {2, 2, [f](const Arguments& x) { return f(x[0], x[1]); }};
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all{
      {"exp", of(exp)},
      {"log", of(log)},
      {"sqrt", of(sqrt)},
      {"sin", of(sin)},
      {"cos", of(cos)},
      {"tanh", of(tanh)},
      {"sigmoid", of(sigmoid)},
      {"relu", of(relu)},
      {"maximum", of(maximum)},
      {"pow", of(pow)},
      {"cross_entropy", {2, 2, classes_loss}},
      {"layer_norm", {1, 3, normalized}},
      {"gelu", {1, 1, [](const Arguments& x) { return gelu(x[0]); }}},
      {"mse_loss", {2, 2, [](const Arguments& x) { return mse_loss(x[0], x[1]); }}},
      {"sum", {1, 9, [](const Arguments& x) { return sum(x[0], dims_from(x)); }}},
      {"mean", {1, 9, [](const Arguments& x) { return mean(x[0], dims_from(x)); }}},
      {"reshape", {2, 9, [](const Arguments& x) { return reshape(x[0], dims_from(x)); }}},
      {"softmax",
       {1, 2, [](const Arguments& x) { return softmax(x[0], x.size() > 1 ? whole(x[1]) : -1); }}},
      {"where", {3, 3, [](const Arguments& x) { return where(x[0] != 0, x[1], x[2]); }}},
      {"masked_fill",
       {3, 3, [](const Arguments& x) { return masked_fill(x[0], x[1] != 0, x[2]); }}},
      {"my_softmax", of(softmax_mistake::my_softmax)},
      {"my_scores", of(scores_mistake::my_scores)},
      {"my_scaled_scores", of(scaled_scores_mistake::my_scores)},
      {"my_mask", of(mask_mistake::my_mask)},
      {"my_bias", of(bias_mistake::my_bias)},
      {"my_merge_heads", of(merge_heads_mistake::my_merge_heads)}};
  return all;
}

class Reader {
 public:
  Reader(const std::string& text, Names& names) : text_(text), names_(names) {}

  Tensor statements() {
    Tensor y;
    do {
      while (take(';')) {
      }
      if (peek() == '\0')
        break;
      const std::size_t begin = at_;
      if (const std::string name = word(); !name.empty() && take('='))
        names_[name] = y = sums();
      else
        at_ = begin, y = sums();
    } while (take(';'));
    if (at_ < text_.size())
      wrong(fmt::format("`{}` is unexpected{}", character(), hint()));
    check<ValueError>(y.defined(), "the formula is empty");
    return y;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    xgrad::fail<ValueError>("the formula, at character {}: {}", at_ + 1, what);
  }
  // The next character after spaces; '\0' at the end, ';' for a line's end outside of brackets.
  char peek() {
    while (at(at_) == ' ' || at(at_) == '\t' || at(at_) == '\r' || (at(at_) == '\n' && open_ > 0))
      ++at_;
    return at(at_) == '\n' ? ';' : at(at_);
  }
  bool take(char c) {
    if (peek() != c || at_ >= text_.size())
      return false;
    ++at_;
    return true;
  }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  static bool is_part(char c) {  // of a name
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  char at(std::size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  std::string character() const {  // whole, in UTF-8
    std::size_t end = at_ + 1;
    while ((at(end) & 0xC0) == 0x80)
      ++end;
    return text_.substr(at_, end - at_);
  }
  // A hint names what stands here for an operator of Python, or for none.
  const char* hint() const {
    const char c = at(at_);
    if (c == '^' || (c == '*' && at(at_ - 1) == '*'))
      return ": a power is pow(x, 2)";
    return is_part(c) || c == '(' ? ": write * between two values" : "";
  }
  std::string word() {
    std::string name;
    if (!is_digit(peek()))
      while (is_part(at(at_)))
        name += text_[at_++];
    return name;
  }
  bool begins_number() const {
    return is_digit(at(at_)) || at(at_) == '.' ||
           (text_.compare(at_, 3, "inf") == 0 && !is_part(at(at_ + 3)));
  }
  Tensor made(Tensor y) {
    if (++ops_ > most_ops)
      wrong(fmt::format("it has more than {} ops and constants", most_ops));
    check_size("a value of the formula", y.shape());
    return y;
  }

  Tensor sums() {
    Tensor y = products();
    for (char c = peek(); (c == '+' || c == '-') && take(c); c = peek()) {
      const Tensor x = products();
      y = made(c == '+' ? y + x : y - x);
    }
    return y;
  }
  Tensor products() {
    Tensor y = sign();
    for (char c = peek(); (c == '*' || c == '/' || c == '@') && take(c); c = peek()) {
      const Tensor x = sign();
      y = made(c == '*' ? y * x : c == '/' ? y / x : matmul(y, x));
    }
    return y;
  }
  Tensor sign() {
    const std::size_t begin = at_;
    if (!take('-'))
      return transposed();
    if (peek(), begins_number()) {
      at_ = begin;
      return made(scalar(number(), DType::float64));
    }
    deeper();
    const Tensor x = sign();
    --depth_;
    return made(-x);
  }
  Tensor transposed() {
    Tensor y = operand();
    while (take('.')) {
      if (word() != "T")
        wrong("`.T`, the transpose, is the only word after a dot");
      y = made(y.mT());
    }
    return y;
  }
  Tensor operand() {
    const char c = peek();
    if (take('(')) {
      open();
      const Tensor y = sums();
      close(')');
      return y;
    }
    if (c == '[') {
      std::vector<double> elements;
      const Shape shape = table(elements);
      return made(reshape(Tensor(std::move(elements)), Dims(shape)));
    }
    if (begins_number())
      return made(scalar(number(), DType::float64));
    const std::string name = word();
    if (name.empty())
      wrong(c == '\0' || c == ';'
                ? "it ends where a value is missing"
                : fmt::format("`{}` where a value is missing{}", character(), hint()));
    if (take('('))
      return call(name);
    if (const auto known = names_.find(name); known != names_.end())
      return known->second;
    if (at(at_) == '.' && at(at_ + 1) != 'T')
      wrong("a call has no module before it: write relu(x)");
    throw UnknownName(fmt::format("`{}` has no value: it is neither a leaf nor named above", name),
                      name);
  }
  Tensor call(const std::string& name) {
    const auto found = functions().find(name);
    if (found == functions().end()) {
      std::string all;
      for (const auto& [known, f] : functions())
        all += (all.empty() ? "" : ", ") + known;
      at_ = text_.rfind(name, at_);
      wrong(fmt::format("there is no `{}`; there are {}", name, all));
    }
    Arguments arguments;
    open();
    if (peek() != ')')
      do
        arguments.push_back(sums());
      while (take(','));
    close(')');
    const auto& [least, most, run] = found->second;
    if (arguments.size() < least || arguments.size() > most)
      wrong(fmt::format("{} takes {} argument{}, and has {}", name, least,
                        least == most ? "" : " or more", arguments.size()));
    return made(run(arguments));
  }
  // A table of numbers: the shape, and its elements.
  Shape table(std::vector<double>& elements) {
    Shape inner;
    std::size_t n = 0;
    take('[');
    open();
    do {
      Shape shape;
      if (peek() == '[')
        shape = table(elements);
      else
        elements.push_back(number());
      if (n++ > 0 && shape != inner)
        wrong("the rows of a table have one length");
      inner = shape;
    } while (take(','));
    close(']');
    inner.insert(inner.begin(), n);
    check_size("a table", inner);
    return inner;
  }
  double number() {
    const bool negative = take('-');
    const char* const begin = text_.c_str() + (peek(), at_);
    char* end = nullptr;
    const double x = std::strtod(begin, &end);
    if (end == begin)
      wrong("a number is missing");
    at_ += static_cast<std::size_t>(end - begin);
    return negative ? -x : x;
  }
  void deeper() {
    if (++depth_ > most_depth)
      wrong(fmt::format("it is nested more than {} deep", most_depth));
  }
  void open() {  // a bracket, in which a line's end is a space
    ++open_;
    deeper();
  }
  void close(char c) {
    if (!take(c))
      wrong(fmt::format("`{}` is missing", c));
    --open_;
    --depth_;
  }

  const std::string& text_;
  Names& names_;
  std::size_t at_ = 0, depth_ = 0, open_ = 0, ops_ = 0;
};

}  // namespace

Tensor evaluate(const std::string& formula, Names& names) {
  check<ValueError>(formula.size() <= most_bytes,
                    "a formula has at most {} bytes, and this one has {}", most_bytes,
                    formula.size());
  return Reader(formula, names).statements();
}

void check_size(const std::string& what, const Shape& shape) {
  const double n = std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>());
  check<ValueError>(
      n <= double{most_elements} && shape.size() <= 6,
      "{} has the shape {}: the playground takes at most {} elements and 6 dimensions", what,
      to_string(shape), most_elements);
}

double number_of(const std::string& what, const std::string& text) {
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  check<ValueError>(!text.empty() && *end == '\0', "{}: `{}` is not a number", what, text);
  return x;
}

}  // namespace playground
