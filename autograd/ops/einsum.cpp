// einsum: the equation is read here, the work is that of other ops.  Operands are taken from left
// to right, two at a time: labels that only these two have are summed in their product.

#include <algorithm>
#include <array>
#include <map>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/autograd/ops/elementwise.hpp>
#include <xgrad/autograd/ops/index.hpp>
#include <xgrad/autograd/ops/matmul.hpp>

namespace xgrad {
namespace {

// A dimension's name: its letter, or first_of_ellipsis + n for the n-th of those behind "...".
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_ellipsis = 256;

bool contains(const Labels& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}
std::size_t position(const Labels& labels, Label label) {
  return static_cast<std::size_t>(std::ranges::find(labels, label) - labels.begin());
}
Labels operator+(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
template <class F>
Labels filter(const Labels& labels, F wanted) {
  Labels result;
  std::ranges::copy_if(labels, std::back_inserter(result), wanted);
  return result;
}

// ---- the equation ----

std::string name(Label label) {
  return label < first_of_ellipsis
             ? fmt::format("'{}'", static_cast<char>(label))
             : fmt::format("dimension {} of '...'", label - first_of_ellipsis);
}

// One side of the arrow between two commas: letters, and where among them "..." stands.
struct Subscripts {
  Labels letters;
  std::optional<std::size_t> ellipsis;

  // The labels, with those of the last n of `all` dimensions in the place of "...".
  Labels labels(std::size_t n, std::size_t all) const {
    Labels result = letters;
    for (std::size_t i = 0; ellipsis && i < n; ++i)
      result.insert(result.begin() + static_cast<std::ptrdiff_t>(*ellipsis + i),
                    first_of_ellipsis + static_cast<Label>(all - n + i));
    return result;
  }
};

Subscripts read_subscripts(std::string_view equation, std::string_view text) {
  Subscripts result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ')
      continue;
    if (text.substr(i, 3) == "...") {
      check<ValueError>(!result.ellipsis, "einsum '{}': '...' stands twice in '{}'", equation,
                        text);
      result.ellipsis = result.letters.size();
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      result.letters.push_back(c);
    } else {
      fail<ValueError>("einsum '{}': '{}' is neither a letter nor part of '...'", equation, c);
    }
  }
  return result;
}

struct Equation {
  std::vector<Labels> operands;
  Labels output;
};

Labels implied_output(const std::vector<Subscripts>& operands, std::size_t ellipsis) {
  std::map<Label, int> uses;
  for (const Subscripts& s : operands)
    for (const Label letter : s.letters)
      ++uses[letter];
  Labels output = Subscripts{{}, 0}.labels(ellipsis, ellipsis);
  for (const auto& [letter, count] : uses)
    if (count == 1)
      output.push_back(letter);
  return output;
}

Labels read_output(std::string_view equation, std::string_view text,
                   const std::vector<Subscripts>& operands, std::size_t ellipsis) {
  const Subscripts output = read_subscripts(equation, text);
  for (std::size_t i = 0; i < output.letters.size(); ++i) {
    const Label letter = output.letters[i];
    const auto has = [letter](const Subscripts& s) { return contains(s.letters, letter); };
    check<ValueError>(std::ranges::any_of(operands, has),
                      "einsum '{}': {} of the output is in no operand", equation, name(letter));
    check<ValueError>(position(output.letters, letter) == i,
                      "einsum '{}': {} stands twice in the output", equation, name(letter));
  }
  return output.labels(ellipsis, ellipsis);
}

Equation read_equation(std::string_view equation, const std::vector<Tensor>& operands) {
  const std::size_t arrow = equation.find("->");
  std::vector<Subscripts> subscripts;
  std::string_view rest = equation.substr(0, arrow);
  for (std::size_t comma = 0; comma != std::string_view::npos;) {
    comma = rest.find(',');
    subscripts.push_back(read_subscripts(equation, rest.substr(0, comma)));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
  check<ValueError>(subscripts.size() == operands.size(),
                    "einsum '{}': the equation has {} operands but {} were given", equation,
                    subscripts.size(), operands.size());
  std::size_t ellipsis = 0;
  std::vector<std::size_t> covered;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t letters = subscripts[i].letters.size(), dim = operands[i].dim();
    if (subscripts[i].ellipsis ? letters > dim : letters != dim)
      fail<ShapeError>("einsum '{}': operand {} {} has {} dimensions but {} letters", equation, i,
                       to_string(operands[i].shape()), dim, letters);
    covered.push_back(dim - letters);
    ellipsis = std::max(ellipsis, covered.back());
  }
  Equation result;
  for (std::size_t i = 0; i < operands.size(); ++i)
    result.operands.push_back(subscripts[i].labels(covered[i], ellipsis));
  result.output = arrow == std::string_view::npos
                      ? implied_output(subscripts, ellipsis)
                      : read_output(equation, equation.substr(arrow + 2), subscripts, ellipsis);
  return result;
}

// The size of each label.  Sizes of 1 broadcast.
std::map<Label, std::size_t> read_sizes(std::string_view equation, const Equation& e,
                                        const std::vector<Tensor>& operands) {
  std::map<Label, std::size_t> sizes;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Labels& labels = e.operands[i];
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const std::size_t size = operands[i].shape()[d];
      const std::size_t first = operands[i].shape()[position(labels, labels[d])];
      if (size != first)
        fail<ShapeError>("einsum '{}': {} stands for sizes {} and {} of operand {} {}", equation,
                         name(labels[d]), first, size, i, to_string(operands[i].shape()));
      std::size_t& known = sizes.try_emplace(labels[d], size).first->second;
      if (known != size && known != 1 && size != 1)
        fail<ShapeError>("einsum '{}': {} has size {} in operand {} {} but {} before", equation,
                         name(labels[d]), size, i, to_string(operands[i].shape()), known);
      known = known == 1 ? size : known;
    }
  }
  return sizes;
}

// ---- the work ----

struct Term {
  Tensor x;
  Labels labels;
};

// The operand with each label once, on the diagonal of dimensions that share one, and without sizes
// of 1 that broadcast.
Term prepare(const Tensor& x, const Labels& labels, const std::map<Label, std::size_t>& sizes) {
  detail::Selection selection(x.shape());
  Labels kept = labels;
  for (std::size_t d = kept.size(); d-- > 0;) {
    const std::size_t first = position(kept, kept[d]);
    const bool broadcast = selection.shape[d] == 1 && sizes.at(kept[d]) != 1;
    if (first == d && !broadcast)
      continue;
    if (first != d)
      selection.strides[first] += selection.strides[d];
    selection.drop(d);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(d));
  }
  return {kept == labels ? x : detail::pick("einsum", x, std::move(selection)), std::move(kept)};
}

// x with its dimensions in this order.
Tensor arrange(const Term& term, const Labels& order) {
  if (term.labels == order)
    return term.x;
  Dims dims;
  for (const Label label : order)
    dims.push_back(static_cast<std::int64_t>(position(term.labels, label)));
  return permute(term.x, dims);
}

Tensor with_shape(const Tensor& x, const Dims& shape) {
  return Dims(x.shape()) == shape ? x : reshape(x, shape);
}

// Sums over the labels that neither the output nor a later operand has.
Term sum_unneeded(Term term, const Labels& needed) {
  const Labels kept = filter(term.labels, [&](Label l) { return contains(needed, l); });
  Dims dims;
  for (std::size_t d = 0; d < term.labels.size(); ++d)
    if (!contains(needed, term.labels[d]))
      dims.push_back(static_cast<std::int64_t>(d));
  return {dims.empty() ? term.x : sum(term.x, dims), kept};
}

// A product of two terms, sorted by which of them has each label.
class Pair {
 public:
  Pair(Term a, Term b, const Labels& needed) : a_(std::move(a)), b_(std::move(b)) {
    for (const Term* term : {&a_, &b_})
      for (std::size_t d = 0; d < term->labels.size(); ++d)
        sizes_[term->labels[d]] = static_cast<std::int64_t>(term->x.shape()[d]);
    const auto shared = [&](Label l) { return contains(a_.labels, l) && contains(b_.labels, l); };
    batch_ = filter(a_.labels, [&](Label l) { return shared(l) && contains(needed, l); });
    summed_ = filter(a_.labels, [&](Label l) { return shared(l) && !contains(needed, l); });
    left_ = filter(a_.labels, [&](Label l) { return !shared(l); });
    right_ = filter(b_.labels, [&](Label l) { return !shared(l); });
  }

  Term multiply() const {
    const bool elementwise =
        summed_.empty() || (left_.empty() && right_.empty() && !batch_.empty());
    return {elementwise ? by_elements() : by_matrices(), batch_ + left_ + right_};
  }

 private:
  Dims shape(const Labels& labels) const {
    Dims result;
    for (const Label label : labels)
      result.push_back(sizes_.at(label));
    return result;
  }
  std::int64_t count(const Labels& labels) const {
    std::int64_t n = 1;
    for (const Label label : labels)
      n *= sizes_.at(label);
    return n;
  }

  // a (batch, left, 1 ..., summed) times b (batch, 1 ..., right, summed)
  Tensor by_elements() const {
    Dims a_shape = shape(batch_ + left_);
    a_shape.insert(a_shape.end(), right_.size(), 1);
    Dims b_shape = shape(batch_);
    b_shape.insert(b_shape.end(), left_.size(), 1);
    Dims dims;
    for (const Label label : right_)
      b_shape.push_back(sizes_.at(label));
    for (const Label label : summed_) {
      a_shape.push_back(sizes_.at(label));
      b_shape.push_back(sizes_.at(label));
      dims.push_back(-1 - static_cast<std::int64_t>(dims.size()));
    }
    const Tensor y = mul(with_shape(arrange(a_, batch_ + left_ + summed_), a_shape),
                         with_shape(arrange(b_, batch_ + right_ + summed_), b_shape));
    return dims.empty() ? y : sum(y, dims);
  }

  // a (batch, left, summed) or transposed, b (batch, summed, right) or transposed
  Tensor by_matrices() const {
    const bool transpose_a = a_.labels == batch_ + summed_ + left_ && !left_.empty();
    const bool transpose_b = b_.labels == batch_ + right_ + summed_ && !right_.empty();
    const std::int64_t m = count(left_), n = count(right_), k = count(summed_);
    // Without a batch, the left dimensions may stay as they are: they are a batch with one b.
    const bool fold = batch_.empty() && !transpose_a && !left_.empty();
    Dims a_shape = fold ? shape(left_) : shape(batch_), b_shape = shape(batch_);
    if (!fold)
      a_shape.push_back(transpose_a ? k : m);
    a_shape.push_back(transpose_a ? m : k);
    b_shape.push_back(transpose_b ? n : k);
    b_shape.push_back(transpose_b ? k : n);
    const Tensor a = arrange(a_, transpose_a ? a_.labels : batch_ + left_ + summed_);
    const Tensor b = arrange(b_, transpose_b ? b_.labels : batch_ + summed_ + right_);
    return with_shape(detail::product("einsum", with_shape(a, a_shape), transpose_a,
                                      with_shape(b, b_shape), transpose_b),
                      shape(batch_ + left_ + right_));
  }

  Term a_, b_;
  std::map<Label, std::int64_t> sizes_;
  Labels batch_, summed_, left_, right_;
};

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  check<ValueError>(!operands.empty(), "einsum '{}': no operands", equation);
  detail::check_operands("einsum", operands);
  const Equation e = read_equation(equation, operands);
  const auto sizes = read_sizes(equation, e, operands);
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operands.size(); ++i)
    terms.push_back(prepare(operands[i], e.operands[i], sizes));
  // The labels of the output and of the operands from the i-th on.
  const auto needed_from = [&](std::size_t i) {
    Labels needed = e.output;
    for (; i < terms.size(); ++i)
      needed = needed + terms[i].labels;
    return needed;
  };
  Term result = sum_unneeded(std::move(terms[0]), needed_from(1));
  for (std::size_t i = 1; i < terms.size(); ++i) {
    const Labels needed = needed_from(i + 1);
    Term next = sum_unneeded(terms[i], needed + result.labels);
    result = Pair(std::move(result), std::move(next), needed).multiply();
  }
  return arrange(result, e.output);
}

}  // namespace xgrad
