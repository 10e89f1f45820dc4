// Layers that are little more than their parameters and one op, and LoRA.

#include "layers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include "../autograd/fail.hpp"
#include "../autograd/mode.hpp"
#include "init.hpp"

namespace xgrad::nn {

// A size of a layer's parameters, which is not negative.
static Size sized(const char* layer, const char* argument, Size n) {
  check<ShapeError>(n >= 0, "{}: {} is {}; a size is not negative", layer, argument, n);
  return n;
}

Linear::Linear(Dim in_features, Dim out_features, const LinearOptions& options)
    : weight(zeros({sized("Linear", "out_features", out_features),
                    sized("Linear", "in_features", in_features)})) {
  init::kaiming_uniform_(weight, {.a = std::sqrt(5.0)}).requires_grad_();
  if (options.bias) {
    const double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0.0;
    bias = init::uniform_(zeros({out_features}), -bound, bound).requires_grad_();
  }
}
Linear::Linear(const Linear&) = default;
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(const Linear&) = default;
Linear& Linear::operator=(Linear&&) noexcept = default;
Linear::~Linear() = default;

// y plus product(A, B) of the adapters; the layer's rows lie along `dim`.
template <class F>
static Tensor adapted(const Linear& layer, const Tensor& y, std::int64_t dim, const F& product) {
  if (layer.lora_parts.empty())
    return y + product(layer.lora_A, layer.lora_B);
  const Size rank = layer.lora_B.size(1);
  std::vector<Tensor> all;
  Size end = 0, part = 0, held = 0;  // held: rows of lora_B
  const auto unchanged = [&](Size until) {
    if (until > end)
      all.push_back(narrow(y, dim, end, until - end));
  };
  for (const auto& [first, rows] : layer.lora_parts) {
    unchanged(first);
    all.push_back(
        narrow(y, dim, first, rows) +
        product(narrow(layer.lora_A, 0, part++ * rank, rank), narrow(layer.lora_B, 0, held, rows)));
    held += rows;
    end = first + rows;
  }
  unchanged(y.size(dim));
  return cat(all, dim);
}

Tensor Linear::operator()(const Tensor& x) const {
  const Tensor y = bfloat16.defined() ? bfloat16.linear(x, bias) : linear(x, weight, bias);
  if (!lora_A.defined())
    return y;
  return adapted(*this, y, -1, [&](const Tensor& A, const Tensor& B) {
    return linear(lora_scale * linear(x, A), B);
  });
}

Embedding::Embedding(Dim num_embeddings, Dim dim, const EmbeddingOptions& options)
    : weight(init::normal_(zeros(
          {sized("Embedding", "num_embeddings", num_embeddings), sized("Embedding", "dim", dim)}))),
      padding_idx(options.padding_idx) {
  check<ValueError>(
      !padding_idx || (*padding_idx >= -num_embeddings && *padding_idx < num_embeddings),
      "Embedding: padding_idx {} is not within -{} ... {}", padding_idx.value_or(0), num_embeddings,
      num_embeddings - 1);
  if (padding_idx)
    weight.copy_(select_scatter(weight, zeros(dim), 0, *padding_idx));
  weight.requires_grad_();
}
Tensor Embedding::operator()(const Indices& indices) const {
  return bfloat16.defined() ? bfloat16.rows(indices) : embedding(indices, weight, padding_idx);
}

LayerNorm::LayerNorm(const Dims& sizes, const LayerNormOptions& options)
    : normalized_shape(sizes),
      weight(ones(to_shape(sizes, "LayerNorm")).requires_grad_()),
      eps(options.eps) {
  if (options.bias)
    bias = zeros(sizes).requires_grad_();
}
Tensor LayerNorm::operator()(const Tensor& x) const {
  return layer_norm(x, normalized_shape, weight, bias, eps);
}

RMSNorm::RMSNorm(const Dims& sizes, const RMSNormOptions& options)
    : normalized_shape(sizes),
      weight(ones(to_shape(sizes, "RMSNorm")).requires_grad_()),
      eps(options.eps) {}
Tensor RMSNorm::operator()(const Tensor& x) const {
  return rms_norm(x, normalized_shape, weight, eps);
}

// Values of channels, (C,), in a shape that broadcasts with x (N, C, ...).
static Tensor along_channels(const Tensor& x, const Tensor& of_channels) {
  Shape shape(static_cast<std::size_t>(std::max<Size>(0, x.dim() - 1)), 1);
  if (!shape.empty())
    shape[0] = of_channels.numel();
  return reshape(of_channels, shape);
}

GroupNorm::GroupNorm(Dim groups, Dim num_channels, const GroupNormOptions& options)
    : num_groups(groups), eps(options.eps) {
  sized("GroupNorm", "num_channels", num_channels);
  check<ValueError>(groups > 0 && num_channels % groups == 0,
                    "GroupNorm: num_channels {} is not a multiple of num_groups {}", num_channels,
                    groups);
  if (options.affine) {
    weight = ones(num_channels).requires_grad_();
    bias = zeros(num_channels).requires_grad_();
  }
}
Tensor GroupNorm::operator()(const Tensor& x) const {
  const bool affine = weight.defined();
  const Size unit = affine ? weight.numel() : num_groups;
  if (x.dim() < 2 || (affine ? x.size(1) != unit : x.size(1) % unit != 0))
    fail<ShapeError>("GroupNorm: x is {}; it must be (N, {}{}, ...)", to_string(x.shape()),
                     affine ? "" : "a multiple of ", unit);
  if (x.size(1) == 0 || (x.size(0) > 0 && x.numel() == 0))
    fail<ShapeError>("GroupNorm: x is {}: a channel needs a value", to_string(x.shape()));
  check<ValueError>(x.numel() != num_groups, "GroupNorm: x is {}: {} groups of one value",
                    to_string(x.shape()), num_groups);
  Shape group = x.shape();  // (N, groups, ...) of x (N, C, ...)
  group[1] /= num_groups;
  group.erase(group.begin());
  Shape grouped = group;
  grouped.insert(grouped.begin(), num_groups);
  grouped.insert(grouped.begin(), x.shape().begin()[0]);
  const Tensor y = reshape(layer_norm(reshape(x, grouped), group, {}, {}, eps), x.shape());
  return affine ? y * along_channels(x, weight) + along_channels(x, bias) : y;
}

BatchNorm1d::BatchNorm1d(Dim features, const BatchNormOptions& o)
    : num_features(sized("BatchNorm1d", "num_features", features)), options(o) {
  if (o.affine) {
    weight = ones(features).requires_grad_();
    bias = zeros(features).requires_grad_();
  }
  if (o.track_running_stats) {
    running_mean = zeros(features);
    running_var = ones(features);
    num_batches_tracked = zeros(Dims());
  }
}

Tensor BatchNorm1d::operator()(const Tensor& x) const {
  if ((x.dim() != 2 && x.dim() != 3) || x.size(1) != num_features)
    fail<ShapeError>("BatchNorm1d: x is {}; it must be (N, {}) or (N, {}, L)", to_string(x.shape()),
                     num_features, num_features);
  const auto affine = [&](const Tensor& y) {
    return weight.defined() ? y * along_channels(x, weight) + along_channels(x, bias) : y;
  };
  const bool by_batch = training || !running_mean.defined();
  check<ValueError>(!(options.eps < 0 || (by_batch && options.eps == 0)),
                    "BatchNorm1d: eps is {}; it must be {}", options.eps,
                    by_batch ? "positive" : "positive or 0");
  if (!by_batch)
    return affine((x - along_channels(x, running_mean)) *
                  along_channels(x, rsqrt(running_var + options.eps)));

  const Size n = x.size(0), length = x.dim() == 3 ? x.size(2) : 1;
  check<ValueError>(n * length != 1, "BatchNorm1d: x is {}: a channel needs more than one value",
                    to_string(x.shape()));
  xgrad::detail::check_draws();                // a part of a batch has other statistics
  const Tensor channels = transpose(x, 0, 1);  // (C, N) or (C, N, L)
  const Dims batch = x.dim() == 3 ? Dims{n, length} : Dims{n};
  const Tensor y = affine(transpose(layer_norm(channels, batch, {}, {}, options.eps), 0, 1));
  if (running_mean.defined()) {
    const NoGrad no_grad;
    const Tensor count = num_batches_tracked + 1;
    const double share = options.momentum.value_or(1 / count.item());
    const auto moved = [&](const Tensor& running, const Tensor& of_batch) {
      return x.numel() == 0 ? running : (1 - share) * running + share * of_batch;
    };
    const Dims all = x.dim() == 3 ? Dims{0, 2} : Dims{0};
    const std::array values{moved(running_mean, mean(x, all)), moved(running_var, var(x, all)),
                            count};
    std::array buffers{running_mean, running_var, num_batches_tracked};  // copied handles
    for (std::size_t i = 0; i < values.size(); ++i)
      buffers[i].set_value(values[i].identity().value);
  }
  return y;
}

PReLU::PReLU(Dim num_parameters, double init)
    : weight(full(sized("PReLU", "num_parameters", num_parameters), init).requires_grad_()) {}
Tensor PReLU::operator()(const Tensor& x) const {
  const Size channels = x.dim() > 1 ? x.size(1) : 1;
  if (weight.numel() != 1 && weight.numel() != channels)
    fail<ShapeError>("PReLU: x {} has {} channels but there are {} weights", to_string(x.shape()),
                     channels, weight.numel());
  const Mask positive = x > 0;
  return where(positive, x, along_channels(x, weight) * masked_fill(x, positive, 0));
}

Tensor SwiGLU::operator()(const Tensor& x) const {
  return down_proj(silu(gate_proj(x)) * up_proj(x));
}

Dropout::Dropout(double probability) : p(probability) {
  check<ValueError>(p >= 0 && p <= 1, "Dropout: p is {}; a probability is in [0, 1]", p);
}
Tensor Dropout::operator()(const Tensor& x) const { return dropout(x, p, training); }

void detail::refuse_input(std::string_view type, const char* input) {
  type.remove_prefix(std::min(type.find("T = ") + 4, type.size()));  // "... [with T = NAME; ...]"
  fail<ValueError>("Sequential: {} does not take {}", type.substr(0, type.find_first_of(";]")),
                   input);
}

void detail::refuse_access(std::size_t i, std::size_t size, bool exists) {
  if (exists)
    fail<ValueError>("Sequential: layer {} is not of the requested type", i);
  fail<ValueError>("Sequential: there is no layer {}; there are {}", i, size);
}

template detail::AnyLayer::AnyLayer(Linear);
template detail::AnyLayer::AnyLayer(Embedding);
template detail::AnyLayer::AnyLayer(Dropout);
template detail::AnyLayer::AnyLayer(LayerNorm);
template detail::AnyLayer::AnyLayer(ReLU);
template detail::AnyLayer::AnyLayer(GELU);
template detail::AnyLayer::AnyLayer(Tanh);
template void detail::Collector::layer(const std::string&, Linear&);
template void detail::Collector::layer(const std::string&, Embedding&);
template void detail::Collector::layer(const std::string&, Dropout&);
template void detail::Collector::layer(const std::string&, LayerNorm&);
template void detail::Collector::layer(const std::string&, Sequential&);

Sequential::Sequential(std::initializer_list<detail::AnyLayer> layers) : layers_(layers) {}

void Sequential::push_back(detail::AnyLayer layer) { layers_.push_back(std::move(layer)); }
Tensor Sequential::run(Tensor x, std::size_t from) const {
  for (std::size_t i = from; i < layers_.size(); ++i)
    x = layers_[i](x);
  return x;
}

Tensor Sequential::operator()(const Indices& x) const {
  check<ValueError>(!layers_.empty(), "Sequential: Indices given, but there is no layer");
  return run(layers_[0](x), 1);
}

}  // namespace xgrad::nn

namespace xgrad::nn::detail {

std::vector<std::string> lora_targets(const std::vector<std::string>& names,
                                      const LoraOptions& options, bool all) {
  const auto chooses = [&](const std::string& target, const std::string& name) {
    if (target != "all-linear")
      return name == target || name.ends_with("." + target);
    return std::ranges::none_of(options.except, [&](const std::string& other) {
      return name == other || name.starts_with(other + ".");
    });
  };
  std::set<std::string> last, chosen;  // last: the last parts of names
  for (const std::string& name : names) {
    last.insert(name.substr(name.rfind('.') + 1));
    if (std::ranges::any_of(options.targets, [&](auto& target) { return chooses(target, name); }))
      chosen.insert(name);
  }
  for (const std::string& target : options.targets)
    check<ValueError>(
        !all || target == "all-linear" ||
            std::ranges::any_of(names, [&](auto& name) { return chooses(target, name); }),
        "add_lora: no layer is called '{}'; there are {}", printable_name(target),
        listed({last.begin(), last.end()}));
  return {chosen.begin(), chosen.end()};
}

void add_lora(const Members& members, const LoraOptions& options, Generator& generator) {
  std::vector<std::string> names;
  for (const auto& [name, linear] : members.linears)
    if (linear->weight.defined() || linear->bfloat16.defined())
      names.push_back(name);
  LoraLayers layers;
  for (const std::string& name : lora_targets(names, options))
    layers[name];
  add_lora(members, options, layers, &generator);
}

static std::string adapter_of(const std::string& weight) {
  return weight.substr(0, weight.size() - std::string("weight").size()) + "lora_A";
}

void add_lora(const Members& members, const LoraOptions& options, const LoraLayers& layers,
              Generator* generator) {
  const double alpha = options.alpha.value_or(static_cast<double>(options.rank));
  check<ValueError>(options.rank > 0, "add_lora: rank is {}; it must be at least 1", options.rank);
  check<ValueError>(alpha > 0 && std::isfinite(alpha), "add_lora: alpha is {}; it must be positive",
                    alpha);
  members.check_tensors("add_lora");
  std::map<std::string, Linear*> chosen;            // by the name of the weight
  std::map<const void*, std::string> weight_names;  // by the weight: the first of those tied
  for (const auto& [name, linear] : members.linears) {
    const std::string weight = name_below(name, "weight");
    check<ValueError>(!linear->lora_A.defined(),
                      "add_lora: {} has adapters already; merge_lora() merges them", weight);
    if (!layers.contains(name))
      continue;
    const auto smaller = std::min(linear->weight.size(0), linear->weight.size(1));
    const Size most = generator == nullptr ? std::max<Size>(smaller, 65536) : smaller;
    check<ValueError>(options.rank <= most,
                      "add_lora: rank is {}, above the smaller side of {}, {}", options.rank,
                      weight, to_string(linear->weight.shape()));
    chosen.emplace(weight, linear);
    weight_names.emplace(linear->weight.handle().get(), weight);
  }
  check<ValueError>(!chosen.empty(), "add_lora: the model has no Linear that may have adapters");
  for (const Member& m : members.tensors) {
    check<GraphError>(m.tensor.is_leaf(), "add_lora: {} is the result of an op, not a leaf",
                      m.name);
    const auto first = weight_names.find(m.tensor.handle().get());
    check<ValueError>(first == weight_names.end() || first->second == m.name ||
                          (chosen.contains(m.name) &&
                           members.tied(adapter_of(first->second), adapter_of(m.name))),
                      "add_lora: {} and {} are one Tensor, but each would have its own "
                      "adapters: .except or .targets must omit it",
                      m.name, first == weight_names.end() ? "" : first->second);
  }

  for (const Member& m : members.tensors) {
    Tensor x = m.tensor;
    if (!m.is_buffer)
      x.requires_grad_(false);
    x.zero_grad();
  }
  for (const auto& [name, linear] : members.linears) {
    if (chosen.count(name_below(name, "weight")) == 0)
      continue;
    const Tensor& W = linear->weight;
    linear->lora_scale = alpha / static_cast<double>(options.rank);
    linear->lora_parts = layers.at(name);
    if (const Linear& first = *chosen.at(weight_names.at(W.handle().get())); &first != linear) {
      linear->lora_A = first.lora_A;
      linear->lora_B = first.lora_B;
      continue;
    }
    const auto& parts = linear->lora_parts;
    Size rows = parts.empty() ? W.size(0) : 0;
    for (const LoraPart& part : parts)
      rows += part.rows;
    const Size stacked = options.rank * std::max<Size>(1, std::ssize(parts));
    linear->lora_A = zeros({stacked, W.size(1)}, W.dtype());
    linear->lora_B = zeros({rows, options.rank}, W.dtype()).requires_grad_();
    if (generator != nullptr)
      init::kaiming_uniform_(linear->lora_A, {.a = std::sqrt(5.0)}, *generator);
    linear->lora_A.requires_grad_();
  }
}

void merge_lora(const Members& members) {
  members.check_tensors("merge_lora");
  const NoGrad no_grad;
  std::map<const void*, Linear*> merged;
  for (const auto& [name, linear] : members.linears) {
    if (!linear->lora_A.defined())
      continue;
    const std::string weight = name_below(name, "weight");
    for (const Member& m : members.tensors)
      check<ValueError>(m.tensor.handle() != linear->weight.handle() || m.name == weight ||
                            members.tied(adapter_of(weight), adapter_of(m.name)),
                        "merge_lora: {} is also {}, which would change", weight, m.name);
    if (merged.emplace(linear->weight.handle().get(), linear).second)
      linear->weight.copy_(adapted(*linear, linear->weight, 0,
                                   [scale = linear->lora_scale](const Tensor& A, const Tensor& B) {
                                     return scale * matmul(B, A);
                                   }));
    linear->lora_A = linear->lora_B = Tensor();
    linear->lora_parts.clear();
  }
}

}  // namespace xgrad::nn::detail
