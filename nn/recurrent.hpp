#pragma once
// Recurrent layers, with PyTorch's parameters, names, draws and layout.

#include <cstddef>
#include <string>
#include <vector>
#include "../autograd/tensor.hpp"

namespace xgrad::nn {

/// As torch.nn.LSTM's and GRU's, without proj_size.
struct RecurrentOptions {
  Size num_layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< (N, L, ...) instead of (L, N, ...), except in h and c
  double dropout = 0;        ///< of each layer's output but the last's, in training
  bool bidirectional = false;
};

/// The parameters of one layer in one direction, with G stacked gates (LSTM: 4, i, f, g, o; GRU: 3,
/// r, z, n); biases may be undefined.
struct RecurrentCell {
  Tensor weight_ih;         ///< (G * H, width of the input)
  Tensor weight_hh;         ///< (G * H, H)
  Tensor bias_ih, bias_hh;  ///< (G * H,)
};

namespace detail {
std::vector<RecurrentCell> recurrent_cells(const char* layer, Dim gates, Dim input_size,
                                           Dim hidden_size, const RecurrentOptions& options);
/// "_l1_reverse" for cell 3 of both directions.
std::string cell_suffix(std::size_t cell, bool bidirectional);

void visit_cells(auto& self, auto&& v) {
  for (std::size_t i = 0; i < self.cells.size(); ++i) {
    const std::string suffix = cell_suffix(i, self.options.bidirectional);
    v("weight_ih" + suffix, self.cells[i].weight_ih);
    v("weight_hh" + suffix, self.cells[i].weight_hh);
    v("bias_ih" + suffix, self.cells[i].bias_ih);
    v("bias_hh" + suffix, self.cells[i].bias_hh);
  }
  v("training", self.training);
}
}  // namespace detail

/// At each position, from the first on (reverse: from the last):
///   i, f, o = sigmoid(...), g = tanh(...)  of W_ih x + b_ih + W_hh h + b_hh
///   c = f * c + i * g,  h = o * tanh(c)
/// Hochreiter and Schmidhuber, 1997.
struct LSTM {
  RecurrentOptions options;
  std::vector<RecurrentCell> cells;  ///< one or two directions for each layer
  bool training = true;

  /// Draws all from U(-1 / sqrt(H), 1 / sqrt(H)).  ValueError unless input_size, hidden_size
  /// and num_layers are positive and dropout is a probability.
  LSTM(Dim input_size, Dim hidden_size, const RecurrentOptions& o = {});

  struct State {
    Tensor h, c;  ///< (layers * directions, N, H), or without N; zeros if undefined
  };
  struct Result {
    Tensor output;    ///< h of the last layer at each position, directions concatenated
    Tensor h_n, c_n;  ///< after the last position, as State
  };
  /// x (L, N, C), (N, L, C) if batch_first, or (L, C) -> output (..., directions * H).  ShapeError
  /// for another x, or h and c that do not fit it.
  Result operator()(const Tensor& x, const State& start) const;
  Result operator()(const Tensor& x) const { return (*this)(x, State{}); }
  static void visit(auto& self, auto&& v) { detail::visit_cells(self, v); }
};

/// The same with r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh) of their gates,
///   n = tanh(W_ih x + b_ih + r * (W_hh h + b_hh)),  h = (1 - z) * n + z * h
/// Cho et al., 2014.
struct GRU {
  RecurrentOptions options;
  std::vector<RecurrentCell> cells;
  bool training = true;

  GRU(Dim input_size, Dim hidden_size, const RecurrentOptions& o = {});

  struct Result {
    Tensor output, h_n;
  };
  Result operator()(const Tensor& x, const Tensor& h = {}) const;
  static void visit(auto& self, auto&& v) { detail::visit_cells(self, v); }
};

}  // namespace xgrad::nn
