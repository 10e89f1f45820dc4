#pragma once
// The layers: Linear, Embedding, Dropout, activations, norms, SwiGLU, losses, Sequential; LoRA.

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>
#include "../autograd/ops.hpp"
#include "../autograd/random.hpp"
#include "../autograd/tensor.hpp"
#include "module.hpp"

namespace xgrad::nn {

struct LinearOptions {
  bool bias = true;
};

/// Rows of a Linear's weight with adapters of their own, as the queries of stacked q, k and v.
struct LoraPart {
  Size first, rows;
};

/// y = x Wᵀ + b: x (..., in) -> (..., out).  Adapters (add_lora()) add lora_scale (x Aᵀ) Bᵀ.
struct Linear {
  Tensor weight;            ///< (out, in)
  Tensor bias;              ///< (out,), or undefined
  Bfloat16Matrix bfloat16;  ///< instead of the weight
  Tensor lora_A, lora_B;    ///< (rank, in) and (out, rank), or undefined
  double lora_scale = 1;
  /// If not empty, lora_A (parts * rank, in) and lora_B (their rows, rank) hold the matrices of
  /// these parts, in ascending order, and no other row has adapters.
  std::vector<LoraPart> lora_parts = {};

  /// Draws weight, then bias, from U(-1 / sqrt(in), 1 / sqrt(in)), as torch.nn.Linear.
  Linear(Dim in_features, Dim out_features, const LinearOptions& options = {});
  /// The bias by its place.  (A template, so that {} are options.)
  template <std::integral B>
  Linear(Dim in_features, Dim out_features, B with_bias)
      : Linear(in_features, out_features, LinearOptions{.bias = with_bias != 0}) {}
  Linear(const Linear&);  // these in layers.cpp, or each layer that has Linears compiles them
  Linear(Linear&&) noexcept;
  Linear& operator=(const Linear&);
  Linear& operator=(Linear&&) noexcept;
  ~Linear();
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", may_be_bfloat16(self.weight, self.bfloat16));
    v("bias", self.bias);
    v("lora_A", self.lora_A);
    v("lora_B", self.lora_B);
  }
};

struct EmbeddingOptions {
  OptionalDim padding_idx = {};  ///< a row that starts as zeros and stays so
};

/// A row of the weight for each index: (...) -> (..., dim).
struct Embedding {
  Tensor weight;            ///< (num_embeddings, dim)
  Bfloat16Matrix bfloat16;  ///< instead of the weight
  OptionalDim padding_idx;

  /// Draws the weight from N(0, 1), as torch.nn.Embedding; the row padding_idx gets no gradient.
  Embedding(Dim num_embeddings, Dim dim, const EmbeddingOptions& options = {});
  Tensor operator()(const Indices& indices) const;
  static void visit(auto& self, auto&& v) {
    v("weight", may_be_bfloat16(self.weight, self.bfloat16));
  }
};

/// In training, keeps each element with probability 1 - p and scales it by 1 / (1 - p).
struct Dropout {
  double p;
  bool training = true;

  /// ValueError unless 0 <= p <= 1.
  explicit Dropout(double probability = 0.5);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) { v("training", self.training); }
};

// Layers that compute nothing, for Sequential.

struct Identity {
  Tensor operator()(const Tensor& x) const { return x; }
  static void visit(auto&, auto&&) {}
};

struct Flatten {
  Dim start_dim = 1, end_dim = -1;
  Tensor operator()(const Tensor& x) const { return flatten(x, start_dim, end_dim); }
  static void visit(auto&, auto&&) {}
};

// Elementwise functions and softmax as layers, for Sequential.

/// A layer that is a function without options.
template <Tensor (*function)(const Tensor&)>
struct Function {
  Tensor operator()(const Tensor& x) const { return function(x); }
  static void visit(auto&, auto&&) {}
};
using ReLU = Function<relu>;
using SiLU = Function<silu>;
using Tanh = Function<xgrad::tanh>;
using Sigmoid = Function<sigmoid>;

struct GELU {
  Gelu approximate = Gelu::erf;
  Tensor operator()(const Tensor& x) const { return gelu(x, approximate); }
  static void visit(auto&, auto&&) {}
};

struct LeakyReLU {
  double negative_slope = 0.01;
  Tensor operator()(const Tensor& x) const { return leaky_relu(x, negative_slope); }
  static void visit(auto&, auto&&) {}
};

struct ELU {
  double alpha = 1;
  Tensor operator()(const Tensor& x) const { return elu(x, alpha); }
  static void visit(auto&, auto&&) {}
};

struct Softplus {
  double beta = 1, threshold = 20;
  Tensor operator()(const Tensor& x) const { return softplus(x, beta, threshold); }
  static void visit(auto&, auto&&) {}
};

/// x where x > 0, else weight * x; derivative weight at 0.  He et al., 2015.
struct PReLU {
  Tensor weight;  ///< (num_parameters,): one for all, or one for each channel (dimension 1 of x)

  explicit PReLU(Dim num_parameters = 1, double init = 0.25);
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) { v("weight", self.weight); }
};

struct Softmax {
  Dim dim = -1;
  Tensor operator()(const Tensor& x) const { return softmax(x, dim); }
  static void visit(auto&, auto&&) {}
};

struct LogSoftmax {
  Dim dim = -1;
  Tensor operator()(const Tensor& x) const { return log_softmax(x, dim); }
  static void visit(auto&, auto&&) {}
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;  ///< without it, the layer is nanoGPT's
};

/// (x - mean) / sqrt(biased variance + eps) * weight + bias over the last dimensions.
/// Ba, Kiros and Hinton, 2016.
struct LayerNorm {
  Dims normalized_shape;
  Tensor weight;  ///< (normalized_shape), ones
  Tensor bias;    ///< (normalized_shape), zeros, or undefined
  double eps;

  /// normalized_shape: the sizes of the last dimensions; one number for the last alone.
  LayerNorm(const Dims& sizes, const LayerNormOptions& options = {});
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
  }
};

struct RMSNormOptions {
  std::optional<double> eps = {};  ///< the dtype's epsilon by default
};

/// x / sqrt(mean(x^2) + eps) * weight over the last dimensions.  Zhang and Sennrich, 2019.
struct RMSNorm {
  Dims normalized_shape;
  Tensor weight;              ///< (normalized_shape), ones
  std::optional<double> eps;  ///< the dtype's epsilon by default

  RMSNorm(const Dims& sizes, const RMSNormOptions& options = {});
  /// eps by its place.  (A template, so that braces are options.)
  template <std::convertible_to<std::optional<double>> Eps>
  RMSNorm(const Dims& sizes, const Eps& epsilon) : RMSNorm(sizes, RMSNormOptions{.eps = epsilon}) {}
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) { v("weight", self.weight); }
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< weight and bias
};

/// (x - mean) / sqrt(biased variance + eps) * weight + bias: x (N, C, ...), with mean and variance
/// over each group of C / num_groups channels.  Wu and He, 2018.
struct GroupNorm {
  Size num_groups;
  Tensor weight;  ///< (C,), ones, or undefined
  Tensor bias;    ///< (C,), zeros, or undefined
  double eps;

  /// ValueError unless num_groups divides num_channels.
  GroupNorm(Dim groups, Dim num_channels, const GroupNormOptions& options = {});
  /// ShapeError unless x has C channels, if affine, and each channel a value; ValueError if all of
  /// its groups have a single value.
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
  }
};

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< none: running statistics are means over all batches
  bool affine = true;                    ///< weight and bias
  bool track_running_stats = true;       ///< if false, evaluation uses the batch's statistics
};

/// (x - mean) / sqrt(variance + eps) * weight + bias of each channel: x (N, C) or (N, C, L).  In
/// training mean and biased variance are the batch's, and a call updates the running statistics,
/// with the unbiased variance: running = (1 - momentum) * running + momentum * batch.  Evaluation
/// uses the running ones.  Copies of the layer share them, as they do parameters.
/// parallel::backward() does not shard such a batch.  Ioffe and Szegedy, 2015.
struct BatchNorm1d {
  Size num_features;
  BatchNormOptions options;
  Tensor weight, bias;               ///< (C,), ones and zeros, or undefined
  Tensor running_mean, running_var;  ///< (C,), zeros and ones, or undefined
  Tensor num_batches_tracked;        ///< ()
  bool training = true;

  explicit BatchNorm1d(Dim features, const BatchNormOptions& o = {});
  /// ShapeError for another x; ValueError if a channel has a single value, and unless eps is
  /// positive (with running statistics in evaluation: not negative).
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("weight", self.weight);
    v("bias", self.bias);
    v("running_mean", buffer(self.running_mean));
    v("running_var", buffer(self.running_var));
    v("num_batches_tracked", buffer(self.num_batches_tracked));
    v("training", self.training);
  }
};

/// The feed-forward part of the Llama family, with its names: down_proj(silu(gate_proj(x)) *
/// up_proj(x)), x (..., C) -> (..., C).  Also known as w1, w3 and w2.  Shazeer, 2020.
struct SwiGLU {
  Linear gate_proj, up_proj, down_proj;  ///< C -> hidden, C -> hidden, hidden -> C

  SwiGLU(Dim width, Dim hidden, bool bias = false)
      : gate_proj(width, hidden, bias),
        up_proj(width, hidden, bias),
        down_proj(hidden, width, bias) {}
  Tensor operator()(const Tensor& x) const;
  static void visit(auto& self, auto&& v) {
    v("gate_proj", self.gate_proj);
    v("up_proj", self.up_proj);
    v("down_proj", self.down_proj);
  }
};

// Losses as layers: loss(x, target).

/// The loss op as a layer: op(x, target, options).  Weights in the options are buffers.  A loss of
/// class indices has op_of_indices, too, or nothing else.
template <class Options, Tensor (*op)(const Tensor&, const Tensor&, Options),
          Tensor (*op_of_indices)(const Tensor&, const Indices&, Options) = nullptr>
struct Loss {
  template <auto f, class F = decltype(f)>  // GCC's -fsanitize=undefined refuses f != nullptr
  static constexpr bool given =
      !std::is_same_v<std::integral_constant<F, f>, std::integral_constant<F, nullptr>>;
  std::remove_cvref_t<Options> options = {};

  Tensor operator()(const Tensor& x, const Tensor& target) const
    requires(given<op>)
  {
    return op(x, target, options);
  }
  Tensor operator()(const Tensor& x, const Indices& target) const
    requires(given<op_of_indices>)
  {
    return op_of_indices(x, target, options);
  }
  static void visit(auto& self, auto&& v) {
    if constexpr (requires { self.options.weight; })
      v("weight", buffer(self.options.weight));
    if constexpr (requires { self.options.pos_weight; })
      v("pos_weight", buffer(self.options.pos_weight));
  }
};

using MSELoss = Loss<Reduction, mse_loss>;
using L1Loss = Loss<Reduction, l1_loss>;
using HuberLoss = Loss<const HuberLossOptions&, huber_loss>;
using SmoothL1Loss = Loss<const SmoothL1LossOptions&, smooth_l1_loss>;
using KLDivLoss = Loss<const KLDivLossOptions&, kl_div>;
using CrossEntropyLoss = Loss<const CrossEntropyOptions&, cross_entropy, cross_entropy>;
using NLLLoss = Loss<const NllLossOptions&, nullptr, nll_loss>;
using BCELoss = Loss<const BinaryCrossEntropyOptions&, binary_cross_entropy>;
using BCEWithLogitsLoss = Loss<const BinaryCrossEntropyOptions&, binary_cross_entropy_with_logits>;

struct LoraOptions;

namespace detail {

[[noreturn]] void refuse_input(std::string_view type, const char* input);
[[noreturn]] void refuse_access(std::size_t i, std::size_t size, bool exists);

// A layer of any type that takes a Tensor, Indices or both.
class AnyLayer {
 public:
  template <class M>
  AnyLayer(M layer);
  AnyLayer(const AnyLayer& other) : held_(other.held_->copy()) {}
  AnyLayer(AnyLayer&&) = default;
  AnyLayer& operator=(AnyLayer other) {
    held_ = std::move(other.held_);
    return *this;
  }

  Tensor operator()(const Tensor& x) const { return held_->call(x); }
  Tensor operator()(const Indices& x) const { return held_->call(x); }
  void collect(Collector& to, const std::string& name) { held_->collect(to, name); }
  template <class M>
  M* get() const {
    return held_->type() == &type_of<M> ? &static_cast<Held<M>*>(held_.get())->layer : nullptr;
  }

 private:
  // Its address is the type's: programs may be compiled without RTTI.
  template <class M>
  static inline char type_of = 0;
  struct Base {
    virtual ~Base() = default;
    virtual const char* type() const = 0;
    virtual std::unique_ptr<Base> copy() const = 0;
    virtual Tensor call(const Tensor& x) const = 0;
    virtual Tensor call(const Indices& x) const = 0;
    virtual void collect(Collector& to, const std::string& name) = 0;
  };
  template <class M>
  struct Held final : Base {
    explicit Held(M l) : layer(std::move(l)) {}
    const char* type() const override { return &type_of<M>; }
    std::unique_ptr<Base> copy() const override { return std::make_unique<Held>(layer); }
    Tensor call(const Tensor& x) const override {
      if constexpr (std::invocable<const M&, const Tensor&>)
        return layer(x);
      else
        refuse_input(type_name<M>(), "a Tensor");
    }
    Tensor call(const Indices& x) const override {
      if constexpr (std::invocable<const M&, const Indices&>)
        return layer(x);
      else
        refuse_input(type_name<M>(), "Indices");
    }
    void collect(Collector& to, const std::string& name) override { to.layer(name, layer); }
    M layer;
  };

  std::unique_ptr<Base> held_;
};
template <class F>
concept TakesOne = std::invocable<F, const Tensor&> || std::invocable<F, const Indices&>;
template <class M>
AnyLayer::AnyLayer(M layer) {
  check_call_type<M, TakesOne<const M&>, TakesOne<M&>>();
  if constexpr (check_layer_type<M>())
    held_ = std::make_unique<Held<M>>(std::move(layer));
}

/// The names that the options choose.  ValueError, if `all`, for a target that chooses none.
std::vector<std::string> lora_targets(const std::vector<std::string>& names,
                                      const LoraOptions& options, bool all = true);
/// Linears by name, with their parts.
using LoraLayers = std::map<std::string, std::vector<LoraPart>>;
/// Without a generator, the adapters are zeros, whose values follow, and may have any rank.
void add_lora(const Members& members, const LoraOptions& options, const LoraLayers& layers,
              Generator* generator);
void add_lora(const Members& members, const LoraOptions& options, Generator& generator);
void merge_lora(const Members& members);

}  // namespace detail

/// Layers applied one after the other: Sequential{Linear(2, 16), Tanh{}, Linear(16, 1)}.  The first
/// may take Indices.  Their names are "0", "1", ..., as in PyTorch.  A layer that occurs twice is
/// one layer: its Tensors are tied, as if visit said so.
///
/// Braces construct the layers from left to right, so random weights are drawn in that order.
/// Parentheses would leave the order to the compiler and do not compile.
class Sequential {
 public:
  Sequential(std::initializer_list<detail::AnyLayer> layers = {});
  template <class A, class B, class... More>
    requires(Layer<std::remove_cvref_t<A>> && Layer<std::remove_cvref_t<B>>)
  Sequential(A&&, B&&, More&&...) = delete;  // write Sequential{...}, with braces

  void push_back(detail::AnyLayer layer);
  std::size_t size() const { return layers_.size(); }
  /// Layer i by its type: net.at<Linear>(0).weight.  ValueError if it is not an M.
  template <Layer M>
  M& at(std::size_t i) {
    return get<M>(i);
  }
  template <Layer M>
  const M& at(std::size_t i) const {
    return get<M>(i);
  }

  Tensor operator()(const Tensor& x) const { return run(x, 0); }
  Tensor operator()(const Indices& x) const;
  static void visit(auto& self, auto&& v) {
    for (std::size_t i = 0; i < self.layers_.size(); ++i)
      v(std::to_string(i), self.layers_[i]);
  }

 private:
  Tensor run(Tensor x, std::size_t from) const;
  template <class M>
  M& get(std::size_t i) const {
    M* const layer = i < size() ? layers_[i].template get<M>() : nullptr;
    if (layer == nullptr)
      detail::refuse_access(i, size(), i < size());
    return *layer;
  }

  std::vector<detail::AnyLayer> layers_;
};

// Compiled in layers.cpp, not again in every program.
extern template detail::AnyLayer::AnyLayer(Linear);
extern template detail::AnyLayer::AnyLayer(Embedding);
extern template detail::AnyLayer::AnyLayer(Dropout);
extern template detail::AnyLayer::AnyLayer(LayerNorm);
extern template detail::AnyLayer::AnyLayer(ReLU);
extern template detail::AnyLayer::AnyLayer(GELU);
extern template detail::AnyLayer::AnyLayer(Tanh);
extern template void detail::Collector::layer(const std::string&, Linear&);
extern template void detail::Collector::layer(const std::string&, Embedding&);
extern template void detail::Collector::layer(const std::string&, Dropout&);
extern template void detail::Collector::layer(const std::string&, LayerNorm&);
extern template void detail::Collector::layer(const std::string&, Sequential&);

// Low-rank adaptation: a model's own weights are frozen, and each Linear learns the product of two
// small matrices that is added to its weight.  Hu et al., 2021 (arXiv 2106.09685).
//
//   nn::add_lora(model, {.rank = 8});
//   optim::AdamW optimizer(nn::parameters(model));  // frozen parameters have no gradient and stay
//   ...
//   nn::merge_lora(model);  // the original layers, with other weights

struct LoraOptions {
  Size rank = 8;
  /// `rank` by default, so that B A is not scaled: the paper's first choice and PEFT's default.
  /// Many use twice the rank.
  std::optional<double> alpha = {};
  /// Names of layers, by PEFT's rule: a layer is chosen if its name is one, or ends with "." and
  /// one.  "all-linear" chooses all but `except`.
  std::vector<std::string> targets = {"all-linear"};
  /// Names of layers that all-linear omits, as all layers in them; they need not exist.
  std::vector<std::string> except = {"lm_head"};
};

/// Gives each Linear the adapters lora_A (rank, in), from U(-1 / sqrt(in), 1 / sqrt(in)), and
/// lora_B (out, rank), zeros: y = x Wᵀ + b + (alpha / rank) (x Aᵀ) Bᵀ is unchanged at first.  All
/// other parameters are frozen and lose their gradients.  Linears that are tied as a whole share
/// adapters.  ValueError, before anything changes, for a rank of 0 or above a weight's smaller
/// side, an alpha that is not positive, a target that chooses no Linear, existing adapters, weights
/// in bfloat16, a weight that is also another Tensor of the model, and if no Linear is left.
template <MutableLayer M>
void add_lora(M& model, const LoraOptions& options = {},
              Generator& generator = default_generator()) {
  detail::add_lora(detail::members(model), options, generator);
}

/// Adds (alpha / rank) B A to each weight and removes the adapters, if there are any.  Frozen
/// parameters stay frozen.  ValueError for weights in bfloat16.
template <MutableLayer M>
void merge_lora(M& model) {
  detail::merge_lora(detail::members(model));
}

}  // namespace xgrad::nn
