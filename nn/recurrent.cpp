#include "recurrent.hpp"

#include <cmath>
#include <functional>
#include "../autograd/fail.hpp"
#include "../autograd/ops.hpp"
#include "../autograd/random.hpp"
#include "init.hpp"

namespace xgrad::nn {

std::vector<RecurrentCell> detail::recurrent_cells(const char* layer, Dim gates, Dim input_size,
                                                   Dim hidden_size,
                                                   const RecurrentOptions& options) {
  check<ValueError>(input_size > 0 && hidden_size > 0 && options.num_layers > 0,
                    "{}: input_size {}, hidden_size {} and num_layers {} must be positive", layer,
                    input_size, hidden_size, options.num_layers);
  check<ValueError>(options.dropout >= 0 && options.dropout <= 1,
                    "{}: dropout is {}; a probability is in [0, 1]", layer, options.dropout);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto drawn = [bound](const Dims& sizes) {
    return init::uniform_(zeros(sizes), -bound, bound).requires_grad_();
  };
  const Size directions = options.bidirectional ? 2 : 1, rows = gates * hidden_size;
  std::vector<RecurrentCell> cells(to_size(options.num_layers * directions));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].weight_ih =
        drawn({rows, std::cmp_less(i, directions) ? input_size.value : directions * hidden_size});
    cells[i].weight_hh = drawn({rows, hidden_size});
    if (options.bias) {
      cells[i].bias_ih = drawn(rows);
      cells[i].bias_hh = drawn(rows);
    }
  }
  return cells;
}

std::string detail::cell_suffix(std::size_t cell, bool bidirectional) {
  return bidirectional ? fmt::format("_l{}{}", cell / 2, cell % 2 == 0 ? "" : "_reverse")
                       : fmt::format("_l{}", cell);
}

namespace {

// The state that a cell passes from one position to the next, each (N, H): h, and an LSTM's c.
using Carried = std::vector<Tensor>;
// The next state, from W_ih x + b_ih (N, G * H), the previous state, and W_hh h + b_hh (N, G * H).
using Step = std::function<Carried(const Tensor&, const Carried&, const Tensor&)>;

template <class L>
struct Recurrence {
  const char* name;
  const L& layer;

  // The output, and the final state.
  std::vector<Tensor> operator()(const Tensor& x, Carried states, const Step& step) const {
    const auto& options = layer.options;
    const std::size_t directions = options.bidirectional ? 2 : 1;
    const bool batched = x.dim() == 3, turned = batched && options.batch_first;
    check_input(x);
    Tensor y = !batched ? unsqueeze(x, 1) : turned ? transpose(x, 0, 1) : x;  // (L, N, C)
    const Shape shape{layer.cells.size(), y.size(1), hidden()};
    for (Tensor& state : states)
      state = starting(state, shape, batched, x.dtype());

    std::vector<Carried> ends(states.size());
    for (std::size_t first = 0; first < layer.cells.size(); first += directions) {
      std::vector<Tensor> both;
      for (std::size_t i = first; i < first + directions; ++i)
        both.push_back(one_way(i, i != first, y, states, ends, step));
      y = directions == 1 ? both[0] : cat(both, -1);
      if (first + directions < layer.cells.size()) {
        if (layer.training && options.dropout > 0)
          xgrad::detail::check_draws();  // y's first dimension is not the batch's
        y = dropout(y, options.dropout, layer.training);
      }
    }
    std::vector<Tensor> results{!batched ? squeeze(y, 1) : turned ? transpose(y, 0, 1) : y};
    for (const Carried& end : ends)
      results.push_back(batched ? stack(end) : squeeze(stack(end), 1));
    return results;
  }

 private:
  Size hidden() const { return layer.cells[0].weight_hh.size(1); }

  // Runs cell i along y (L, N, C) -> (L, N, H); appends its final state to `ends`.
  Tensor one_way(std::size_t i, bool reverse, const Tensor& y, const Carried& states,
                 std::vector<Carried>& ends, const Step& step) const {
    const RecurrentCell& cell = layer.cells[i];
    const auto at = static_cast<Size>(i), length = y.size(0);
    const Tensor in = linear(y, cell.weight_ih, cell.bias_ih);  // (L, N, G * H)
    Carried carried;
    for (const Tensor& state : states)
      carried.push_back(state[at]);
    std::vector<Tensor> outputs(static_cast<std::size_t>(length));
    for (Size k = 0; k < length; ++k) {
      const Size t = reverse ? length - 1 - k : k;
      carried = step(in[t], carried, linear(carried[0], cell.weight_hh, cell.bias_hh));
      outputs[static_cast<std::size_t>(t)] = carried[0];
    }
    for (std::size_t s = 0; s < carried.size(); ++s)
      ends[s].push_back(carried[s]);
    return stack(outputs);
  }

  void check_input(const Tensor& x) const {
    const Size width = layer.cells[0].weight_ih.size(1);
    const bool fits = (x.dim() == 2 || x.dim() == 3) && x.size(-1) == width;
    const char* const batch = layer.options.batch_first ? "(N, L" : "(L, N";
    if (!fits || x.size(x.dim() == 3 && layer.options.batch_first ? 1 : 0) == 0)
      fail<ShapeError>("{}: x is {}; it must be {}, {}) or (L, {}), with L above 0", name,
                       to_string(x.shape()), batch, width, width);
  }

  // The given state (layers * directions, N, H); zeros if none is given.
  Tensor starting(const Tensor& given, const Shape& shape, bool batched, DType dtype) const {
    if (!given.defined())
      return zeros(shape, dtype);
    const Shape expected = batched ? shape : Shape{shape[0], shape[2]};
    if (given.shape() != expected)
      fail<ShapeError>("{}: h or c is {} but must be {}", name, to_string(given.shape()),
                       to_string(expected));
    return batched ? given : unsqueeze(given, 1);
  }
};

Carried lstm_step(const Tensor& in, const Carried& carried, const Tensor& of_h) {
  const auto [i, f, g, o] = chunk<4>(in + of_h, -1);
  const Tensor c = sigmoid(f) * carried[1] + sigmoid(i) * tanh(g);
  return {sigmoid(o) * tanh(c), c};
}

Carried gru_step(const Tensor& in, const Carried& carried, const Tensor& of_h) {
  const auto [in_r, in_z, in_n] = chunk<3>(in, -1);
  const auto [r, z, n] = chunk<3>(of_h, -1);
  const Tensor fresh = tanh(in_n + sigmoid(in_r + r) * n);
  return {fresh + sigmoid(in_z + z) * (carried[0] - fresh)};
}

}  // namespace

LSTM::LSTM(Dim input_size, Dim hidden_size, const RecurrentOptions& o)
    : options(o), cells(detail::recurrent_cells("LSTM", 4, input_size, hidden_size, o)) {}
LSTM::Result LSTM::operator()(const Tensor& x, const State& start) const {
  auto results = Recurrence<LSTM>{"LSTM", *this}(x, {start.h, start.c}, lstm_step);
  return {results[0], results[1], results[2]};
}

GRU::GRU(Dim input_size, Dim hidden_size, const RecurrentOptions& o)
    : options(o), cells(detail::recurrent_cells("GRU", 3, input_size, hidden_size, o)) {}
GRU::Result GRU::operator()(const Tensor& x, const Tensor& h) const {
  auto results = Recurrence<GRU>{"GRU", *this}(x, {h}, gru_step);
  return {results[0], results[1]};
}

}  // namespace xgrad::nn
