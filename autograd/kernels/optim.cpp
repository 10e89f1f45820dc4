#include <xgrad/autograd/kernels/optim.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>
#include <xgrad/autograd/kernels/elementwise.hpp>
#include <xgrad/autograd/kernels/parallel.hpp>

namespace xgrad::kernels {

namespace {

constexpr std::size_t grain = elementwise_grain;

// Cuts every task into pieces and runs them all together, so that many small parameters keep all
// threads as busy as one large one.  Allocates nothing, so that a step cannot fail half-way.
template <class Task, class F>
void run_pieces(std::span<const Task> tasks, const F& f) {
  const auto pieces_of = [](const Task& task) { return (task.n + grain - 1) / grain; };
  std::size_t pieces = 0;
  for (const Task& task : tasks)
    pieces += pieces_of(task);
  parallel(pieces, [&](std::size_t i) {
    auto task = tasks.begin();
    for (; i >= pieces_of(*task); ++task)
      i -= pieces_of(*task);
    f(*task, i * grain, std::min((i + 1) * grain, task->n));
  });
}

// f(gradient, registers...) changes its registers, which are then stored: one pass over several
// arrays.  The last elements go through padded registers, so that every element sees the same
// instructions.
template <class T, std::size_t N, class F>
void sweep(const T* gradient, const std::array<T*, N>& data, std::size_t begin, std::size_t end,
           const F& f) {
  using Lanes = simd::Batch<T>;
  constexpr std::size_t width = Lanes::size;
  const auto apply = [&](std::size_t i, const auto& load, const auto& store) {
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      std::array<Lanes, N> x{load(data[K] + i)...};
      f(load(gradient + i), x[K]...);
      (store(x[K], data[K] + i), ...);
    }
    (std::make_index_sequence<N>());
  };
  std::size_t i = begin;
  for (; i + width <= end; i += width)
    apply(
        i, [](const T* from) { return Lanes::load_unaligned(from); },
        [](const Lanes& x, T* to) { x.store_unaligned(to); });
  if (i < end)
    apply(
        i, [n = end - i](const T* from) { return load_first(from, n); },
        [n = end - i](const Lanes& x, T* to) { store_first(x, to, n); });
}

}  // namespace

template <class T>
void adam(std::span<const AdamTask<T>> tasks) {
  run_pieces(tasks, [](const AdamTask<T>& t, std::size_t begin, std::size_t end) {
    using Lanes = simd::Batch<T>;
    const Lanes keep(t.keep), decay(t.decay), beta1(t.beta1), beta2(t.beta2), rest1(t.rest1),
        rest2(t.rest2), step_size(t.step_size), correction(t.correction), eps(t.eps);
    const std::array<T*, 3> data{t.parameter, t.exp_avg, t.exp_avg_sq};
    sweep(t.gradient, data, begin, end, [&](const Lanes& gradient, Lanes& p, Lanes& m, Lanes& v) {
      p = p * keep;
      const Lanes g = gradient + decay * p;
      m = m * beta1 + rest1 * g;
      v = v * beta2 + rest2 * g * g;
      p = p - step_size * m / (sqrt(v) / correction + eps);
    });
  });
}

template <class T>
void sgd(std::span<const SgdTask<T>> tasks) {
  run_pieces(tasks, [](const SgdTask<T>& t, std::size_t begin, std::size_t end) {
    using Lanes = simd::Batch<T>;
    const Lanes lr(t.lr), decay(t.weight_decay), momentum(t.momentum), rest(t.rest);
    if (t.momentum_buffer == nullptr) {
      sweep<T, 1>(t.gradient, {t.parameter}, begin, end,
                  [&](const Lanes& gradient, Lanes& p) { p = p - lr * (gradient + decay * p); });
      return;
    }
    sweep<T, 2>(t.gradient, {t.parameter, t.momentum_buffer}, begin, end,
                [&](const Lanes& gradient, Lanes& p, Lanes& b) {
                  const Lanes g = gradient + decay * p;
                  b = momentum * b + rest * g;
                  p = p - lr * (t.nesterov ? g + momentum * b : b);
                });
  });
}

// A few blocks, of which each level of the tree holds one, stay in the first cache.
constexpr std::size_t tree_block = 1024;

// Where the sum of elements [begin, begin + n) lies: in a part, or in `room`.
template <class T>
const T* sum_subtree(std::span<const T* const> parts, std::size_t begin, std::size_t n, T* room) {
  if (parts.size() == 1)
    return parts.front() == nullptr ? nullptr : parts.front() + begin;
  std::array<T, tree_block> other;
  const T* const first = sum_subtree(parts.first(parts.size() / 2), begin, n, room);
  const T* const second = sum_subtree(parts.subspan(parts.size() / 2), begin, n, other.data());
  if (second == nullptr)
    return first;
  if (first != nullptr)
    for (std::size_t i = 0; i < n; ++i)
      room[i] = first[i] + second[i];
  else if (second == other.data())
    std::copy_n(second, n, room);
  else
    return second;
  return room;
}

template <class T>
void sum_tree(std::span<const SumTask<T>> tasks) {
  run_pieces(tasks, [](const SumTask<T>& t, std::size_t begin, std::size_t end) {
    for (; begin < end; begin += tree_block) {
      const std::size_t n = std::min(end - begin, tree_block);
      const T* const sum = sum_subtree<T>(t.parts, begin, n, t.sum + begin);
      if (sum != nullptr && sum != t.sum + begin)
        std::copy_n(sum, n, t.sum + begin);
    }
  });
}

template <class T>
double sum_of_squares(const T* x, std::size_t n) {
  std::vector<double> sums((n + grain - 1) / grain);
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
    constexpr std::size_t chains = 16;  // independent sums, which the compiler puts in registers
    double part[chains] = {};
    std::size_t i = begin;
    for (; i + chains <= end; i += chains)
      for (std::size_t k = 0; k < chains; ++k) {
        const double v = x[i + k];
        part[k] += v * v;
      }
    for (std::size_t k = 0; i + k < end; ++k) {
      const double v = x[i + k];
      part[k] += v * v;
    }
    double sum = 0;
    for (const double p : part)
      sum += p;
    sums[begin / grain] = sum;
  });
  double total = 0;
  for (const double sum : sums)
    total += sum;
  return total;
}

template <class T>
double sum_of_powers(const T* x, std::size_t n, double p) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += std::pow(std::abs(double{x[i]}), p);
  return sum;
}

template <class T>
double largest_magnitude(const T* x, std::size_t n, double least) {
  for (std::size_t i = 0; i < n; ++i) {
    const double size = std::abs(double{x[i]});
    if (!(size <= least) && !std::isnan(least))  // NaN stays
      least = size;
  }
  return least;
}

template <class T>
void scale(T* x, std::size_t n, T factor) {
  using Lanes = simd::Batch<T>;
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
    map_row<T, 1>(x + begin, {x + begin}, {1}, end - begin,
                  [factor](const Lanes& v) { return v * Lanes(factor); });
  });
}

template <class T>
void clamp(T* x, std::size_t n, T limit) {
  using Lanes = simd::Batch<T>;
  parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
    map_row<T, 1>(x + begin, {x + begin}, {1}, end - begin, [limit](const Lanes& v) {
      return maximum(minimum(v, Lanes(limit)), Lanes(-limit));
    });
  });
}

template void adam(std::span<const AdamTask<float>>);
template void adam(std::span<const AdamTask<double>>);
template void sgd(std::span<const SgdTask<float>>);
template void sgd(std::span<const SgdTask<double>>);
template void sum_tree(std::span<const SumTask<float>>);
template void sum_tree(std::span<const SumTask<double>>);
template double sum_of_squares(const float*, std::size_t);
template double sum_of_squares(const double*, std::size_t);
template double sum_of_powers(const float*, std::size_t, double);
template double sum_of_powers(const double*, std::size_t, double);
template double largest_magnitude(const float*, std::size_t, double);
template double largest_magnitude(const double*, std::size_t, double);
template void scale(float*, std::size_t, float);
template void scale(double*, std::size_t, double);
template void clamp(float*, std::size_t, float);
template void clamp(double*, std::size_t, double);

}  // namespace xgrad::kernels
