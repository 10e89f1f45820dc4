#include <xgrad/autograd/kernels/reduce.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/kernels/lanes.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>

namespace xgrad::kernels {
namespace {

// Elements of a contiguous row that are summed in one go: 32 or fewer one after the other, whatever
// registers the machine has, for that is what errors grow with.
template <class T>
constexpr std::size_t row_block = std::min<std::size_t>(1024, 32 * 4 * simd::Batch<T>::size);
constexpr std::size_t column_block = 128;  // rows that are summed in one go
constexpr std::size_t column_tile = 512;   // columns of them
constexpr std::size_t piece = 16384;       // elements that are worth handing to a thread

// ---- what is reduced: a way to combine two values, for registers and for single elements ----

template <std::floating_point T>
T pick(bool condition, T a, T b) {
  return condition ? a : b;
}
template <Lanes B>
B pick(const typename B::batch_bool_type& condition, const B& a, const B& b) {
  return xsimd::select(condition, a, b);
}

// Not a != a, which xsimd takes for an ordered comparison: false for NaN.
template <std::floating_point T>
bool is_nan(T a) {
  return std::isnan(a);
}
template <Lanes B>
auto is_nan(const B& a) {
  return xsimd::isnan(a);
}

struct Add {
  static constexpr double identity = 0;
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a + b;
  }
};
struct Multiply {
  static constexpr double identity = 1;
  template <class V>
  V operator()(const V& a, const V& b) const {
    return a * b;
  }
};
// Once a is NaN it stays: no comparison with it holds.
struct Largest {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  template <class V>
  V operator()(const V& a, const V& b) const {
    return pick((b > a) | is_nan(b), b, a);
  }
};
struct Smallest {
  static constexpr double identity = std::numeric_limits<double>::infinity();
  template <class V>
  V operator()(const V& a, const V& b) const {
    return pick((b < a) | is_nan(b), b, a);
  }
};

// ---- and of what: a function of the element ----

struct Same {
  template <Lanes B>
  B operator()(const B& x) const {
    return x;
  }
};
struct Square {
  template <Lanes B>
  B operator()(const B& x) const {
    return x * x;
  }
};
struct Power {
  double p;
  explicit Power(double exponent) : p(exponent) {}
  template <Lanes B>
  B operator()(const B& x) const {
    using T = typename B::value_type;
    return by_lane([e = static_cast<T>(p)](T v) { return std::pow(std::abs(v), e); }, x);
  }
};
// ---- contiguous rows ----

template <class T, class F, class M>
T reduce_row(const T* x, std::size_t n, const F& f, const M& map) {
  using B = simd::Batch<T>;
  constexpr std::size_t width = B::size;
  const auto load = [&](std::size_t at) { return map(B::load_unaligned(x + at)); };
  B a(static_cast<T>(F::identity)), b = a, c = a, d = a;
  std::size_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    a = f(a, load(i));
    b = f(b, load(i + width));
    c = f(c, load(i + 2 * width));
    d = f(d, load(i + 3 * width));
  }
  for (; i + width <= n; i += width)
    a = f(a, load(i));
  if (i < n) {
    alignas(64) T mapped[width];
    map(load_first(x + i, n - i, x[i])).store_aligned(mapped);
    b = f(b, load_first(mapped, n - i, static_cast<T>(F::identity)));
  }
  return combine_lanes<T>(f(f(a, b), f(c, d)), f);
}

// Rows of a few elements each: a register of rows at a time.
template <class T, class F, class M>
void reduce_short_rows(const T* x, std::size_t rows, std::size_t n, T* y, const F& f,
                       const M& map) {
  using B = simd::Batch<T>;
  constexpr std::size_t width = B::size;
  alignas(64) T column[width];
  std::size_t r = 0;
  for (; r + width <= rows; r += width) {
    B a(static_cast<T>(F::identity));
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < width; ++k)
        column[k] = x[(r + k) * n + j];
      a = f(a, map(B::load_aligned(column)));
    }
    a.store_unaligned(y + r);
  }
  for (; r < rows; ++r)
    y[r] = reduce_row(x + r * n, n, f, map);
}

template <class T, class F, class M>
void reduce_rows(Axis axis, std::size_t blocks, const T* x, T* y, const F& f, const M& map) {
  constexpr std::size_t few = 8;
  const std::size_t grain = std::max<std::size_t>(1, piece / std::min(axis.n, row_block<T>));
  parallel_for(axis.outer * blocks, grain, [&](std::size_t begin, std::size_t end) {
    if (axis.n <= few) {
      reduce_short_rows(x + begin * axis.n, end - begin, axis.n, y + begin, f, map);
      return;
    }
    for (std::size_t b = begin; b < end; ++b) {
      const std::size_t row = b / blocks, from = b % blocks * row_block<T>;
      y[b] = reduce_row(x + row * axis.n + from, std::min(row_block<T>, axis.n - from), f, map);
    }
  });
}

// ---- columns ----

// Eight rows at a time, so that what is read comes in order and y, which stays in the first-level
// cache, is touched once for eight.
template <class T, class F, class M>
void reduce_columns(const T* x, std::size_t rows, std::size_t stride, std::size_t columns, T* y,
                    const F& f, const M& map) {
  using B = simd::Batch<T>;
  constexpr std::size_t width = B::size;
  const std::size_t whole = columns / width * width, rest = columns - whole;
  const auto load = [](const T* p) { return B::load_unaligned(p); };
  const auto load_rest = [rest](const T* p) { return load_first(p, rest); };
  const auto pass = [&](const T* first, auto eight) {
    const auto combined = [&](std::size_t c, const auto& get) {
      const auto v = [&](std::size_t k) { return map(get(first + k * stride + c)); };
      const B before = get(y + c);
      if constexpr (eight)
        return f(before, f(f(f(v(0), v(1)), f(v(2), v(3))), f(f(v(4), v(5)), f(v(6), v(7)))));
      else
        return f(before, v(0));
    };
    for (std::size_t c = 0; c < whole; c += width)
      combined(c, load).store_unaligned(y + c);
    if (rest > 0)
      store_first(combined(whole, load_rest), y + whole, rest);
  };
  std::fill_n(y, columns, static_cast<T>(F::identity));
  std::size_t r = 0;
  for (; r + 8 <= rows; r += 8)
    pass(x + r * stride, std::true_type());
  for (; r < rows; ++r)
    pass(x + r * stride, std::false_type());
}

template <class T, class F, class M>
void reduce_blocks(Axis axis, std::size_t blocks, const T* x, T* y, const F& f, const M& map) {
  const std::size_t tiles = (axis.inner + column_tile - 1) / column_tile;
  const std::size_t work = std::min(axis.n, column_block) * std::min(axis.inner, column_tile);
  const std::size_t grain = std::max<std::size_t>(1, piece / work);
  parallel_for(axis.outer * blocks * tiles, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      const std::size_t b = t / tiles, column = t % tiles * column_tile;
      const std::size_t o = b / blocks, from = b % blocks * column_block;
      reduce_columns(x + (o * axis.n + from) * axis.inner + column,
                     std::min(column_block, axis.n - from), axis.inner,
                     std::min(column_tile, axis.inner - column), y + b * axis.inner + column, f,
                     map);
    }
  });
}

// ---- both ----

template <class T, class F, class M>
void reduce(Axis axis, const T* x, T* y, const F& f, const M& map, bool by_long_rows = true);

// Many rows of a few columns: several of them make one long row.
template <class T, class F, class M>
void reduce_narrow(Axis axis, std::size_t together, const T* x, T* y, const F& f, const M& map) {
  const std::size_t rows = axis.n / together, long_row = together * axis.inner;
  Scratch<T> partial(axis.outer * (together + 1) * axis.inner);
  const std::size_t grain = std::max<std::size_t>(1, piece / (axis.n * axis.inner));
  parallel_for(axis.outer, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t o = begin; o < end; ++o) {
      const T* const from = x + o * axis.n * axis.inner;
      T* const to = partial.data() + o * (long_row + axis.inner);
      reduce<T>({1, rows, long_row}, from, to, f, map);
      reduce<T>({1, axis.n % together, axis.inner}, from + rows * long_row, to + long_row, f, map);
    }
  });
  reduce<T>({axis.outer, together + 1, axis.inner}, partial.data(), y, f, Same());
}

template <class T, class F, class M>
void reduce(Axis axis, const T* x, T* y, const F& f, const M& map, bool by_long_rows) {
  constexpr std::size_t narrow = 32;
  if (axis.n == 0)
    std::fill_n(y, axis.outer * axis.inner, static_cast<T>(F::identity));
  if (axis.numel() == 0)
    return;
  const std::size_t together = 4 * narrow / axis.inner;
  if (by_long_rows && axis.inner > 1 && axis.inner <= narrow && axis.n >= 4 * together)
    return reduce_narrow(axis, together, x, y, f, map);
  const std::size_t block = axis.inner == 1 ? row_block<T> : column_block;
  const std::size_t blocks = (axis.n + block - 1) / block;
  Scratch<T> partial(blocks > 1 ? axis.outer * blocks * axis.inner : 0);
  T* const out = blocks > 1 ? partial.data() : y;
  if (axis.inner == 1)
    reduce_rows(axis, blocks, x, out, f, map);
  else
    reduce_blocks(axis, blocks, x, out, f, map);
  if (blocks > 1)
    reduce<T>({axis.outer, blocks, axis.inner}, out, y, f, Same());
}

}  // namespace

template <class T>
void sum(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Add(), Same());
}
template <class T>
void prod(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Multiply(), Same());
}
template <class T>
void max(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Largest(), Same());
}
template <class T>
void min(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Smallest(), Same());
}
template <class T>
void sum_squares(Axis axis, const T* x, T* y) {
  reduce<T>(axis, x, y, Add(), Square());
}
template <class T>
void sum_powers(Axis axis, const T* x, double p, T* y) {
  reduce<T>(axis, x, y, Add(), Power(p));
}
template <class T>
void logsumexp(Axis axis, const T* x, T* y) {
  const std::size_t n = axis.outer * axis.inner;
  Scratch<T> centre(n);
  max(axis, x, centre.data());
  for (T& c : centre)  // inf - inf would be NaN
    c = std::isfinite(c) ? c : T(0);
  const Shape all{axis.outer, axis.n, axis.inner}, one{axis.outer, 1, axis.inner};
  Scratch<T> exponentials(axis.numel());
  map<T, 2>(all, exponentials.data(), {{{all, x}, {one, centre.data()}}},
            [](const auto& v, const auto& c) { return exp(v - c); });
  reduce<T>(axis, exponentials.data(), y, Add(), Same(), false);
  for (std::size_t i = 0; i < n; ++i)
    y[i] = std::log(y[i]) + centre[i];
}

template <class T>
void arg_extremum(Axis axis, const T* x, bool largest, std::int64_t* y) {
  Scratch<T> extremum(axis.outer * axis.inner);
  (largest ? max<T> : min<T>)(axis, x, extremum.data());
  const auto is = [](T v, T wanted) { return v == wanted || std::isnan(v); };
  const std::size_t tiles = (axis.inner + column_tile - 1) / column_tile;
  const std::size_t work = std::max<std::size_t>(1, axis.n * std::min(axis.inner, column_tile));
  const std::size_t grain = std::max<std::size_t>(1, piece / work);
  parallel_for(axis.outer * tiles, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t t = begin; t < end; ++t) {
      const std::size_t o = t / tiles, from = t % tiles * column_tile;
      const std::size_t to = std::min(from + column_tile, axis.inner);
      const T* const rows = x + o * axis.n * axis.inner;
      const T* const wanted = extremum.data() + o * axis.inner;
      std::int64_t* const out = y + o * axis.inner;
      if (axis.inner == 1) {
        const T* const at = std::find_if(rows, rows + axis.n, [&](T v) { return is(v, *wanted); });
        *out = at - rows;
        continue;
      }
      std::fill(out + from, out + to, 0);
      for (std::size_t j = axis.n; j-- > 0;)  // backwards: the first of equals is written last
        for (std::size_t c = from; c < to; ++c)
          out[c] = is(rows[j * axis.inner + c], wanted[c]) ? static_cast<std::int64_t>(j) : out[c];
    }
  });
}

#define XGRAD_INSTANTIATE(T)                               \
  template void sum<T>(Axis, const T*, T*);                \
  template void prod<T>(Axis, const T*, T*);               \
  template void max<T>(Axis, const T*, T*);                \
  template void min<T>(Axis, const T*, T*);                \
  template void sum_squares<T>(Axis, const T*, T*);        \
  template void sum_powers<T>(Axis, const T*, double, T*); \
  template void logsumexp<T>(Axis, const T*, T*);          \
  template void arg_extremum<T>(Axis, const T*, bool, std::int64_t*);
XGRAD_INSTANTIATE(float)
XGRAD_INSTANTIATE(double)
#undef XGRAD_INSTANTIATE

}  // namespace xgrad::kernels
