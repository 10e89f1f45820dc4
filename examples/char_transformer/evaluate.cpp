#include "evaluate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <xgrad/autograd/random.hpp>
#include <xgrad/data/batches.hpp>
#include <xgrad/parallel/shards.hpp>

#include "trained_model.hpp"

namespace char_transformer {
namespace {

using xgrad::nn::GPT;

/// The same weights with dropout off; the model itself keeps its mode.
GPT without_dropout(const GPT& model) {
  GPT copy = model;
  xgrad::nn::eval(copy);
  return copy;
}

double mean_loss(const GPT& model, const xgrad::Indices& x, const xgrad::Indices& y) {
  return xgrad::parallel::mean_loss(
      [&](const auto& inputs, const auto& targets) { return model.loss(inputs, targets); }, x, y);
}

}  // namespace

std::optional<double> validation_loss(const GPT& model, const xgrad::data::Ids& part,
                                      const Stop& stop) {
  const GPT evaluated = without_dropout(model);
  const std::size_t block_size = model.config.block_size;
  const std::size_t blocks = xgrad::data::block_count(part, block_size);
  double total = 0;
  for (std::size_t done = 0; done < blocks;) {
    if (stop && stop())
      return std::nullopt;
    const auto [x, y] = xgrad::data::block_batch(part, block_size, done, blocks_at_once);
    total += mean_loss(evaluated, x, y) * static_cast<double>(x.size(0));
    done += x.size(0);
  }
  return total / static_cast<double>(blocks);
}

std::optional<double> estimate_loss(const GPT& model, const xgrad::data::Ids& part,
                                    std::size_t batch_size, std::size_t batches, std::uint64_t seed,
                                    const Stop& stop) {
  const GPT evaluated = without_dropout(model);
  xgrad::Generator generator(seed);
  double total = 0;
  for (std::size_t i = 0; i < batches; ++i) {
    if (stop && stop())
      return std::nullopt;
    const auto [x, y] =
        xgrad::data::random_batch(part, model.config.block_size, batch_size, generator);
    total += mean_loss(evaluated, x, y);
  }
  return total / static_cast<double>(batches);
}

void print_validation_loss(double loss, const Source& source, std::size_t block_size) {
  fmt::print("val_loss {:.9g}\n", loss);
  if (const auto entropy = source.entropy(block_size))
    fmt::print(
        "The text itself has an entropy of {:.6f} per character, which no model can beat: distance "
        "from perfect {:.6f}.\n",
        *entropy, loss - *entropy);
}

void evaluate(const EvalOptions& options) {
  const TrainedModel trained = load_trained_model(options.checkpoint);
  const std::size_t block_size = trained.model.config.block_size;
  const Source source = open_source(options.data.empty() ? trained.data : options.data, block_size,
                                    trained.characters);
  print_validation_loss(validation_loss(trained.model, source.ids.validation).value(), source,
                        block_size);
}

}  // namespace char_transformer
