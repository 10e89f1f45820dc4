// Matrix products.  All are one op, product(), whose derivative is made of the same op.

#include "matmul.hpp"
#include "../fused.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include "../fail.hpp"
#include "../kernels/gemm.hpp"
#include "../kernels/odometer.hpp"
#include "../kernels/parallel.hpp"
#include "elementwise.hpp"
#include "index.hpp"
#include "rules.hpp"

namespace xgrad {

// ---- batches ----

Shape detail::leading(const Shape& shape, std::size_t n) {
  return Shape(shape.begin(), shape.end() - static_cast<std::ptrdiff_t>(n));
}

Shape detail::with_matrix(const Shape& batch, std::size_t rows, std::size_t columns) {
  Shape shape(batch.size() + 2, 0);
  std::ranges::copy(batch, shape.begin());
  shape[batch.size()] = rows;
  shape[batch.size() + 1] = columns;
  return shape;
}

detail::Blocks detail::broadcast_blocks(const Shape& own, const Shape& batch) {
  Blocks blocks{static_cast<std::size_t>(numel(own)),
                std::vector<std::size_t>(static_cast<std::size_t>(numel(batch)))};
  if (blocks.of_item.empty())
    return blocks;
  const kernels::Rows<1> rows(batch, {&own});
  kernels::Odometer<1> row(rows.outer);
  auto block = blocks.of_item.begin();
  for (std::size_t r = 0; r < rows.count; ++r, row.advance())
    for (std::size_t i = 0; i < rows.length; ++i)
      *block++ = static_cast<std::size_t>(row[0]) + i * rows.step[0];
  return blocks;
}

namespace {

using detail::Blocks;
using detail::broadcast_blocks;
using detail::leading;
using detail::with_matrix;

// Calls f<E>() with the type of the elements that products of T read: bfloat16 under Autocast.
template <class T, class F>
void with_operands(bool autocast, const F& f) {
  if constexpr (std::is_same_v<T, float>)
    if (autocast)
      return f.template operator()<std::uint16_t>();
  f.template operator()<T>();
}

// The elements of an operand: x's own or, for std::uint16_t, rounded to bfloat16.
template <class E>
const E* operand_elements(const Saved& x) {
  if constexpr (std::is_same_v<E, std::uint16_t>)
    return x.value->bfloat16();
  else
    return x.value->data<E>();
}

// The sizes of c = op(a) op(b): op(a) (m, k), op(b) (k, n).
struct GemmSizes {
  bool transpose_a, transpose_b;
  std::size_t m, n, k;
};

// c[C(i)] = beta * c + the sum of op(a[A(i)]) op(b[B(i)]) over the items i of each block of c, plus
// the bias in each row if there is one b for all.
template <class T, class E>
void multiply(GemmSizes s, const E* a, const Blocks& a_blocks, const E* b, const Blocks& b_blocks,
              T beta, T* c, const Blocks& c_blocks, const T* bias = nullptr) {
  std::size_t items = a_blocks.of_item.size();
  if (items == 0 || s.m * s.n == 0) {
    if (beta == T(0))
      std::fill_n(c, c_blocks.count * s.m * s.n, T(0));
    return;
  }
  const auto in_order = [items](const Blocks& blocks) { return blocks.count == items; };
  if (!s.transpose_a && b_blocks.count == 1 && in_order(a_blocks) && in_order(c_blocks)) {
    s.m *= items;  // one b for all: the rows of all a are stacked
    items = 1;
  } else if (s.transpose_a && !s.transpose_b && c_blocks.count == 1 && in_order(a_blocks) &&
             in_order(b_blocks)) {
    s.k *= items;  // one c for all: the sum over items is part of the sum over k
    items = 1;
  }
  const std::size_t lda = std::max<std::size_t>(1, s.transpose_a ? s.m : s.k);
  const std::size_t ldb = std::max<std::size_t>(1, s.transpose_b ? s.k : s.n);
  if (items == 1) {
    kernels::gemm_parallel(s.transpose_a, s.transpose_b, s.m, s.n, s.k, T(1), a, lda, b, ldb, beta,
                           c, s.n, bias);
    return;
  }
  // Items by block of c, in their order within a block.
  std::vector<std::size_t> order(items);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!in_order(c_blocks))
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return c_blocks.of_item[i]; });
  const std::size_t terms = items / c_blocks.count;
  const std::size_t work = terms * s.m * s.n * s.k;
  const auto run = [&](std::size_t block, auto&& gemm) {
    for (std::size_t term = 0; term < terms; ++term) {
      const std::size_t i = order[block * terms + term];
      gemm(s.transpose_a, s.transpose_b, s.m, s.n, s.k, T(1), a + a_blocks.of_item[i] * s.m * s.k,
           lda, b + b_blocks.of_item[i] * s.k * s.n, ldb, term == 0 ? beta : T(1),
           c + c_blocks.of_item[i] * s.m * s.n, s.n);
    }
  };
  constexpr std::size_t piece = 262'144;  // multiplications that are worth a thread
  if (c_blocks.count < 8 && work >= 16 * piece)
    for (std::size_t block = 0; block < c_blocks.count; ++block)
      run(block, [](auto... arguments) { kernels::gemm_parallel(arguments...); });
  else
    kernels::parallel_for(c_blocks.count,
                          std::max<std::size_t>(1, piece / std::max(work, piece / 64)),
                          [&](std::size_t begin, std::size_t end) {
                            for (std::size_t block = begin; block < end; ++block)
                              run(block, [](auto... arguments) { kernels::gemm(arguments...); });
                          });
}

// The layout of one product's operands and result.
struct ProductLayout {
  GemmSizes sizes;
  Shape out;
  Blocks a, b, c;
};

ProductLayout layout(const char* op, const Shape& a, bool transpose_a, const Shape& b,
                     bool transpose_b) {
  if (a.size() == 1) {
    ProductLayout row = layout(op, {1, a[0]}, transpose_a, b, transpose_b);
    row.out = {row.sizes.n};
    return row;
  }
  const auto row = [](const Shape& x, bool transposed) -> std::size_t {
    return x[x.size() - (transposed ? 1 : 2)];
  };
  const auto col = [](const Shape& x, bool transposed) -> std::size_t {
    return x[x.size() - (transposed ? 2 : 1)];
  };
  const GemmSizes sizes{transpose_a, transpose_b, row(a, transpose_a), col(b, transpose_b),
                        col(a, transpose_a)};
  const Shape a_batch = leading(a, 2), b_batch = leading(b, 2);
  const Shape batch = broadcast_shapes(a_batch, b_batch, op);
  return {sizes, with_matrix(batch, sizes.m, sizes.n), broadcast_blocks(a_batch, batch),
          broadcast_blocks(b_batch, batch), broadcast_blocks(batch, batch)};
}

// A dimension's name: its letter, first_of_ellipsis + n for the n-th one of "...", or of_size_1.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label first_of_ellipsis = 256, of_size_1 = -1;

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

// One operand or the output of the equation: letters, and the position of "..." among them.
struct Subscripts {
  Labels letters;
  std::optional<std::size_t> ellipsis;

  // The labels, with "..." replaced by those of the last n of `all` dimensions.
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
      check<ValueError>(!result.ellipsis, "einsum '{}': '...' appears twice in '{}'", equation,
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
                      "einsum '{}': {} appears twice in the output", equation, name(letter));
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

// The operand with each label once: takes the diagonal of dimensions that share a label and drops
// sizes of 1 that broadcast.
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
  return {kept == labels ? x : detail::as_strided("einsum", x, std::move(selection)),
          std::move(kept)};
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

// Sums over labels that neither the output nor a later operand has.
Term sum_unneeded(Term term, const Labels& needed) {
  const Labels kept = filter(term.labels, [&](Label l) { return contains(needed, l); });
  Dims dims;
  for (std::size_t d = 0; d < term.labels.size(); ++d)
    if (!contains(needed, term.labels[d]))
      dims.push_back(static_cast<std::int64_t>(d));
  return {dims.empty() ? term.x : sum(term.x, dims), kept};
}

// A product of two terms; labels are grouped by the terms that have them.
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
    const Labels a = batch_ + left_ + Labels(right_.size(), of_size_1) + summed_,
                 b = batch_ + Labels(left_.size(), of_size_1) + right_ + summed_;
    Dims dims;
    for (const Label label : summed_)
      dims.push_back(static_cast<std::int64_t>(position(a, label)));
    const Tensor y = mul(with_shape(arrange(a_, batch_ + left_ + summed_), shape(a)),
                         with_shape(arrange(b_, batch_ + right_ + summed_), shape(b)));
    return dims.empty() ? y : sum(y, dims);
  }

  // a (batch, left, summed) or transposed, b (batch, summed, right) or transposed
  Tensor by_matrices() const {
    const bool transpose_a = a_.labels == batch_ + summed_ + left_ && !left_.empty();
    const bool transpose_b = b_.labels == batch_ + right_ + summed_ && !right_.empty();
    const std::int64_t m = count(left_), n = count(right_), k = count(summed_);
    // Without a batch, the left dimensions may stay as they are: they serve as a batch with one b.
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
  std::map<Label, std::int64_t> sizes_{{of_size_1, 1}};
  Labels batch_, summed_, left_, right_;
};

}  // namespace

// c = op(a) op(b) has da = dc op(b)ᵀ and db = op(a)ᵀ dc, transposed if the operand is.
Tensor detail::product(const char* op, const Tensor& a, bool transpose_a, const Tensor& b,
                       bool transpose_b, const Tensor& bias) {
  check_operands(op, std::array{a, b, bias.defined() ? bias : a});
  const bool autocast = Mode::current().autocast;
  const auto run = [op, transpose_a, transpose_b, autocast]<class T>(std::span<const Tensor> in) {
    const ProductLayout at = layout(op, in[0].shape(), transpose_a, in[1].shape(), transpose_b);
    auto c = empty_array<T>(at.out);
    with_operands<T>(autocast, [&]<class E>() {
      multiply(at.sizes, operand_elements<E>(in[0]), at.a, operand_elements<E>(in[1]), at.b, T(0),
               c.data(), at.c, in.size() > 2 ? in[2].data<T>() : nullptr);
    });
    return c;
  };
  const auto saved_if = [](const Tensor& x, bool wanted) { return wanted ? Saved(x) : Saved(); };
  const auto backward = [op, transpose_a, transpose_b, autocast, a_shape = a.shape(),
                         b_shape = b.shape(), has_bias = bias.defined(),
                         a = saved_if(a, b.requires_grad()),
                         b = saved_if(b, a.requires_grad())](Context& ctx) {
    const Tensor& g = ctx.gradient();
    const auto ops = [&] {
      const Autocast same(autocast);
      if (ctx.needs(0))
        ctx.add(0, transpose_a ? product(op, b.tensor(), transpose_b, g, true)
                               : product(op, g, false, b.tensor(), !transpose_b));
      if (!ctx.needs(1))
        return;
      Tensor x = a.tensor(), dy = g;
      if (b_shape.size() == 2 && x.dim() != 2 && !transpose_a) {  // one sum instead of many
        const std::size_t rows = numel(leading(x.shape(), 1));
        x = reshape(x, {rows, x.size(-1)});
        dy = reshape(dy, {rows, dy.size(-1)});
      }
      ctx.add(1, transpose_b ? product(op, dy, true, x, transpose_a)
                             : product(op, x, !transpose_a, dy, false));
    };
    const auto kernel = [&]<class T>() {
      with_operands<T>(autocast, [&]<class E>() {
        const ProductLayout at = layout(op, a_shape, transpose_a, b_shape, transpose_b);
        const std::size_t m = at.sizes.m, n = at.sizes.n, k = at.sizes.k;
        const E* const dc = operand_elements<E>(g);
        if (ctx.needs(0)) {
          const E* const y = operand_elements<E>(b);
          const GradientBuffer<T> da = ctx.buffer<T>(0);
          if (transpose_a)
            multiply({transpose_b, true, k, m, n}, y, at.b, dc, at.c, da.beta, da.data, at.a);
          else
            multiply({false, !transpose_b, m, k, n}, dc, at.c, y, at.b, da.beta, da.data, at.a);
        }
        if (ctx.needs(1)) {
          const E* const x = operand_elements<E>(a);
          const GradientBuffer<T> db = ctx.buffer<T>(1);
          if (transpose_b)
            multiply({true, transpose_a, n, k, m}, dc, at.c, x, at.a, db.beta, db.data, at.b);
          else
            multiply({!transpose_a, false, k, n, m}, x, at.a, dc, at.c, db.beta, db.data, at.b);
        }
      });
    };
    ops_or_kernel(ctx, ops, kernel);
    if (has_bias)
      ctx.add(2, g);  // the engine sums it to the bias's shape
  };
  const std::array inputs{a, b, bias};
  return record(op, std::span(inputs).first(bias.defined() ? 3 : 2), run, backward,
                {.broadcasts = true});
}

// ---- of the catalogue ----

XGRAD_RULE(
    matmul, "a b", {"g bᵀ", "aᵀ g"},
    "Each factor gets the upstream gradient times the other, transposed so that the shapes fit.");
Tensor matmul(const Tensor& a, const Tensor& b) {
  if (a.dim() == 0 || b.dim() == 0)
    fail<ShapeError>(
        "matmul: a {} and b {}: both need at least one dimension; multiply by a 0-d tensor with "
        "mul()",
        to_string(a.shape()), to_string(b.shape()));
  const bool row = a.dim() == 1, column = b.dim() == 1;
  const std::size_t inner = b.size(column ? 0 : -2);
  if (std::cmp_not_equal(a.size(-1), inner))
    fail<ShapeError>(
        "matmul: a {} and b {}: the last dimension of a, {}, must equal the {} of b, {}",
        to_string(a.shape()), to_string(b.shape()), a.size(-1), column ? "only one" : "second last",
        inner);
  Tensor c = detail::product("matmul", row ? reshape(a, {1, a.size(0)}) : a, false,
                             column ? reshape(b, {b.size(0), 1}) : b, false);
  if (!row && !column)
    return c;
  Dims out(leading(c.shape(), 2));
  if (!row)
    out.push_back(static_cast<std::int64_t>(c.size(-2)));
  if (!column)
    out.push_back(static_cast<std::int64_t>(c.size(-1)));
  return reshape(c, out);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  if (a.dim() != 2 || b.dim() != 2 || a.size(1) != b.size(0))
    fail<ShapeError>("mm: a {} and b {} are not (m, k) and (k, n); matmul() takes other ranks",
                     to_string(a.shape()), to_string(b.shape()));
  return detail::product("mm", a, false, b, false);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  if (a.dim() != 3 || b.dim() != 3 || a.size(0) != b.size(0) || a.size(2) != b.size(1))
    fail<ShapeError>(
        "bmm: a {} and b {} are not (B, m, k) and (B, k, n); matmul() broadcasts batches",
        to_string(a.shape()), to_string(b.shape()));
  return detail::product("bmm", a, false, b, false);
}

Tensor dot(const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1 || a.size(0) != b.size(0))
    fail<ShapeError>("dot: a {} and b {} are not two vectors of one length", to_string(a.shape()),
                     to_string(b.shape()));
  return reshape(
      detail::product("dot", reshape(a, {1, a.size(0)}), false, reshape(b, {b.size(0), 1}), false),
      {});
}

void detail::check_linear(const char* op, const Tensor& x, const Shape& weight,
                          const Tensor& bias) {
  if (weight.size() != 2)
    fail<ShapeError>("{}: weight {} is not (out, in)", op, to_string(weight));
  if (x.dim() == 0)
    fail<ShapeError>("{}: x is 0-d; it needs a last dimension of size {}", op, weight[1]);
  if (x.size(-1) != weight[1])
    fail<ShapeError>("{}: x {} has last dimension {} but weight {} expects {}", op,
                     to_string(x.shape()), x.size(-1), to_string(weight), weight[1]);
  if (bias.defined() && bias.shape() != Shape{weight[0]})
    fail<ShapeError>("{}: bias {} does not fit weight {}: it must be ({},)", op,
                     to_string(bias.shape()), to_string(weight), weight[0]);
}

XGRAD_RULE(linear, "a bᵀ + c (x Wᵀ + bias)", {"g b", "gᵀ a", "Σ g over rows"},
           "x gets g W; the weight gets gᵀ x, summed over all rows; the bias gets the sum of the "
           "rows of g.");
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.dim() == 1) {
    if (bias.defined() && bias.dim() != 0)
      fail<ShapeError>("linear: bias {} does not fit weight {}: it must be ()",
                       to_string(bias.shape()), to_string(weight.shape()));
    const Tensor row = bias.defined() ? reshape(bias, {1}) : bias;
    return squeeze(linear(x, unsqueeze(weight, 0), row), {-1});
  }
  detail::check_linear("linear", x, weight.shape(), bias);
  return detail::product("linear", x, false, weight, true, bias);
}

Tensor outer(const Tensor& a, const Tensor& b) {
  if (a.dim() != 1 || b.dim() != 1)
    fail<ShapeError>("outer: a {} and b {} are not two vectors", to_string(a.shape()),
                     to_string(b.shape()));
  return mul(reshape(a, {a.size(0), 1}), b);
}

Bfloat16Matrix::Bfloat16Matrix(const Shape& shape) : shape_(shape) {
  const std::size_t rows = shape[0], columns = shape[1], whole = kernels::bfloat16_columns;
  stride_ = (columns + whole - 1) / whole * whole;
  const std::size_t n = rows * stride_;
  Allocator<std::uint16_t> allocator;
  memory_ = {allocator.allocate(n),
             [n](std::uint16_t* block) { Allocator<std::uint16_t>().deallocate(block, n); }};
  for (std::size_t i = 0; i < rows; ++i)
    std::fill_n(memory_.get() + i * stride_ + columns, stride_ - columns, std::uint16_t{0});
}

bool Bfloat16Matrix::put(std::size_t row, std::size_t column, const Tensor& x) {
  const std::size_t n = x.size(0), m = x.size(1);
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i)
    finite &= kernels::to_bfloat16(m, x.data<float>() + i * m,
                                   memory_.get() + (row + i) * stride_ + column);
  return finite;
}

Tensor Bfloat16Matrix::linear(const Tensor& x, const Tensor& bias) const {
  detail::check_linear("linear", x, shape_, bias);
  const std::array inputs{x, bias};
  for (const Tensor& in : inputs)
    check<DTypeError>(!in.defined() || in.dtype() == DType::float32,
                      "linear: a weight in bfloat16 is for float32, and this is float64");
  if (detail::any_requires_grad(inputs))
    throw GraphError(
        "linear: a weight in bfloat16 has no gradient; use NoGrad, or a model in float32");
  const auto forward = [w = *this](std::span<const Tensor> in) {
    Shape shape = in[0].shape();
    shape.back() = w.shape_[0];
    auto y = empty_array<float>(shape);
    kernels::linear_bfloat16(numel(shape) / std::max<std::size_t>(w.shape_[0], 1), w.shape_[0],
                             w.shape_[1], in[0].data<float>(), w.memory_.get(), w.stride_,
                             in[1].defined() ? in[1].data<float>() : nullptr, y.data());
    return Tensor(std::move(y));
  };
  return record("linear_bfloat16", inputs, forward, [](Context&) {});
}

Tensor Bfloat16Matrix::rows(const Indices& indices) const {
  detail::check_range("embedding", indices, shape_[0]);
  Shape shape = indices.shape();
  shape.push_back(shape_[1]);
  auto y = empty_array<float>(shape);
  float* to = y.data();
  for (const std::int64_t row : std::span(indices.data(), indices.numel())) {
    const std::uint16_t* const from = memory_.get() + static_cast<std::size_t>(row) * stride_;
    to = std::transform(from, from + shape_[1], to, kernels::from_bfloat16);
  }
  return Tensor(std::move(y));
}

// einsum: this file parses the equation, and other ops compute.  Operands are contracted from left
// to right, two at a time: labels that only these two have are summed in their product.

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
