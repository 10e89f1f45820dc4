#include "training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <xgrad/autograd/check/anomaly.hpp>
#include <xgrad/autograd/mode.hpp>
#include <xgrad/autograd/ops.hpp>
#include <xgrad/lm/text.hpp>
#include <xgrad/nn/init.hpp>
#include <xgrad/nn/layers.hpp>

#include "commands.hpp"
#include "output.hpp"
#include "progress.hpp"

namespace program {

using xgrad::Generator;
using xgrad::Tensor;
using xgrad::lm::GPT;
using xgrad::lm::Ids;

std::string first_anomaly(const std::function<void()>& again) {
  try {
    const xgrad::DetectAnomaly guard;
    again();
  } catch (const xgrad::AnomalyError& error) {
    return error.what();
  }
  return "with anomaly detection, every op's values and gradients are finite";
}

/// All parameters, or the adapters alone.
static xgrad::nn::StateDict trained_parameters(const GPT& model) {
  xgrad::nn::StateDict trained = xgrad::nn::named_parameters(model);
  std::erase_if(trained, [](const auto& named) { return !named.second.requires_grad(); });
  return trained;
}

/// A model with its first weights; a resumed run's are loaded later, with everything else.
static GPT make_model(const Run& run) {
  GPT model = [&] {
    const Recipe& recipe = run.options.recipe;
    if (!run.info.model)
      return GPT(model_config(recipe, run.info.vocabulary.size()));
    xgrad::lm::GPTConfig config = *run.info.model;
    config.dropout = recipe.dropout;
    const xgrad::nn::init::SkipInit values_follow;
    return GPT(config);
  }();
  const auto& lora = run.info.lora;
  const bool tuned = run.from && std::ranges::any_of(run.from->model, [](const auto& named) {
                       return named.first.ends_with(".lora_A");
                     });
  if (tuned) {
    const xgrad::nn::init::SkipInit values_follow;
    add_adapters(model, *lora, true);
  }
  if (run.from && !run.resumed)
    xgrad::io::load_state(model, run.from->model, run.from->path);
  if (lora && !tuned)
    try {
      add_adapters(model, *lora);
    } catch (const ValueError& error) {
      fail<ValueError>("--lora-rank, --lora-targets: {}", reason(error));
    }
  return model;
}

xgrad::optim::Schedule schedule_of(const Recipe& recipe) {
  return xgrad::optim::warmup_cosine({.learning_rate = recipe.learning_rate,
                                      .min_lr = recipe.min_lr,
                                      .warmup_iters = recipe.warmup_iters,
                                      .lr_decay_iters = recipe.lr_decay_iters});
}

Learner::Learner(Run& run, Ranks& ranks)
    : recipe_(run.options.recipe),
      dataset_(run.dataset),
      model_(make_model(run)),
      parameters_([this] {
        std::vector<Tensor> list = xgrad::nn::parameters(model_);
        std::erase_if(list, [](const Tensor& x) { return !x.requires_grad(); });
        return list;
      }()),
      ranks_(ranks),
      optimizer_(xgrad::optim::decay_matrices(parameters_, {.lr = recipe_.learning_rate,
                                                            .betas = {recipe_.beta1, recipe_.beta2},
                                                            .weight_decay = recipe_.weight_decay})),
      rate_(schedule_of(recipe_)) {
  ranks_.share(trained_parameters(model_));
  if (run.resumed)
    xgrad::io::restore(*run.from, model_, optimizer_);
  run.from.reset();
}

/// Draws the step's batches and adds the gradient of the mean loss over them; returns that loss.
double Learner::add_gradients() {
  const std::size_t batches = recipe_.gradient_accumulation_steps;
  const auto n = static_cast<double>(batches);
  double sum = 0;
  for (std::size_t i = 0; i < batches && std::isfinite(sum); ++i) {
    const auto starts = xgrad::lm::random_starts(dataset_.ids.train, recipe_.block_size,
                                                 recipe_.batch_size, xgrad::default_generator());
    sum += ranks_.backward(recipe_.batch_size, [&](std::size_t begin, std::size_t end) {
      const Tensor mean =
          loss_at(model_, dataset_.ids.train, dataset_.document_end, recipe_.block_size,
                  std::span(starts).subspan(begin, end - begin));
      return n == 1 ? mean : mean / n;
    });
  }
  return sum;
}

/// Throws NotFinite; `generator` is its state before the step.
void Learner::stop_before_update(const std::string& what, const Generator& generator) {
  const std::string reason = first_anomaly([&] {
    xgrad::default_generator() = generator;
    optimizer_.zero_grad();
    add_gradients();
  });
  fail<NotFinite>(
      "{}; training stops before this step's update (a lower --learning-rate or a lower "
      "--grad-clip may help)\n{}",
      what, reason);
}

MetricsRow Learner::make_step(std::size_t step) {
  const auto begin = std::chrono::steady_clock::now();
  const Generator generator = xgrad::default_generator();
  MetricsRow row{.step = static_cast<double>(step), .lr = rate_(step)};
  optimizer_.set_learning_rate(*row.lr);
  optimizer_.zero_grad();
  row.loss = add_gradients();
  if (!std::isfinite(row.loss))
    stop_before_update(fmt::format("step {}: the loss is {}", step, row.loss), generator);
  const double limit =
      recipe_.grad_clip > 0 ? recipe_.grad_clip : std::numeric_limits<double>::infinity();
  row.grad_norm = xgrad::optim::clip_grad_norm_(parameters_, limit);
  if (!std::isfinite(*row.grad_norm))
    stop_before_update(fmt::format("step {}: the gradient's norm is {}", step, *row.grad_norm),
                       generator);
  optimizer_.step();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  row.ms = std::round(took.count()) / 1000;
  return row;
}

Tensor loss_at(const GPT& model, const Ids& part, std::span<const std::int64_t> document_end,
               std::size_t block_size, std::span<const std::size_t> starts) {
  const auto [x, y] = xgrad::lm::blocks_at(part, block_size, starts);
  return document_end.empty()
             ? model.loss(x, y)
             : model.loss(x, y, xgrad::lm::document_starts(part, block_size, starts, document_end));
}

namespace {

struct Interrupted {};

/// Throws Interrupted after an op once `stop` says so: a batch may take half a minute.
class Interrupter final : public xgrad::Observer {
 public:
  explicit Interrupter(const std::function<bool()>& stop) : stop_(stop) {}
  void on_forward(std::string_view /*op*/, std::span<const Tensor> /*inputs*/,
                  const Tensor& /*output*/, const xgrad::Forward& /*forward*/) override {
    if (stop_())
      throw Interrupted();
  }

 private:
  const std::function<bool()>& stop_;
};

/// The mean loss over `n` items; `batch(i)` is the next batch of items after i: the starts of its
/// blocks, and its number of items.
template <class Batch>
std::optional<double> mean_loss(const Evaluation& of, std::size_t items, const Stop& stop,
                                const Batch& batch) {
  GPT evaluated = of.model;  // copies the training flag, which is switched here
  xgrad::nn::eval(evaluated);
  Interrupter interrupter(stop.within);
  double total = 0;
  for (std::size_t done = 0; done < items;) {
    if (stop.between && stop.between(static_cast<double>(done) / static_cast<double>(items)))
      return std::nullopt;
    const std::pair<std::vector<std::size_t>, std::size_t> next = batch(done);
    const auto loss = [&](std::size_t begin, std::size_t end) {
      xgrad::Mode mode = xgrad::Mode::current();
      if (stop.within && mode.observer == nullptr)
        mode.observer = &interrupter;
      const xgrad::ModeGuard guard(mode);
      return loss_at(evaluated, of.part, of.document_end, of.block_size,
                     std::span(next.first).subspan(begin, end - begin));
    };
    try {
      total += static_cast<double>(next.second) * of.ranks.mean_loss(next.first.size(), loss);
    } catch (const Interrupted&) {
      return std::nullopt;
    }
    done += next.second;
  }
  return total / static_cast<double>(items);
}

}  // namespace

std::optional<double> Evaluation::over_blocks(std::size_t blocks, const Stop& stop) const {
  // Evaluation takes little more memory than training, or than the logits of one block.
  const std::size_t at_once =
      std::clamp<std::size_t>((1 << 24) / (block_size * model.config.vocab_size), 1, 16);
  return mean_loss(*this, blocks, stop, [&](std::size_t done) {
    std::vector<std::size_t> starts(std::min(at_once, blocks - done));
    for (std::size_t b = 0; b < starts.size(); ++b)
      starts[b] = (done + b) * block_size;
    return std::pair(starts, starts.size());
  });
}

std::optional<double> Evaluation::estimate(std::size_t batch_size, std::size_t batches,
                                           std::uint64_t seed, const Stop& stop) const {
  Generator generator(seed);
  return mean_loss(*this, batches, stop, [&](std::size_t) {
    return std::pair(xgrad::lm::random_starts(part, block_size, batch_size, generator),
                     std::size_t{1});
  });
}

std::string format_blocks(std::size_t blocks, std::size_t all) {
  return blocks < all
             ? fmt::format("the first {} of {} blocks", format_count(blocks), format_count(all))
         : all == 1 ? "the only block"
                    : "all " + format_count(all, "block");
}

void print_loss(const std::string& label, double loss, double bits_per_byte,
                const std::string& over, const std::optional<double>& entropy) {
  say(fmt::format("{} {:.9g} (perplexity {:.6g}, {:.6g} bits per byte)\nOver {}.\n", label, loss,
                  std::exp(loss), bits_per_byte, over));
  if (entropy)
    say(fmt::format(
        "The text itself has an entropy of {:.6f} per character, which no model can beat: distance "
        "from perfect {:.6f}.\n",
        *entropy, loss - *entropy));
}

void evaluate(const EvalOptions& options) {
  need_run(options.checkpoint);
  const TrainedModel trained = load_trained_model(options.checkpoint, options.base, options.raw);
  const CheckpointInfo& info = trained.info;
  const xgrad::Autocast precision(
      (options.dtype.empty() ? text_in(info.config, "dtype") : options.dtype) == "bfloat16");
  const bool named = !options.data.empty();
  const std::string split = options.split.empty() && !named ? "val" : options.split;
  const bool train = split == "train", val = split == "val";
  const Dataset dataset = named
                              ? open_dataset(options.data, "", "", info.vocabulary, 0, train || val)
                              : open_run_dataset("", "", trained.path, info, train || val);
  if (const std::string flag = other_text(dataset, info); flag == "--data")
    warn(fmt::format("{}: another text than the model was trained on", dataset.name));
  else if (!flag.empty() && !named)
    warn(fmt::format("{}: another text than the model was validated on", dataset.validation_name));

  const xgrad::lm::Ids& ids = train ? dataset.ids.train
                              : val ? dataset.ids.validation
                                    : dataset.all;
  const std::string& name = val     ? dataset.validation_name
                            : train ? dataset.training_name
                                    : dataset.name;
  const std::vector<std::int64_t> document_end = document_end_of(
      options.document_end.value_or(text_in(info.config, "document_end")), info.vocabulary);
  check_document_end(options.document_end.value_or(""), ids, name, info.vocabulary);
  // As in training.  For a named text and a pretrained model, the longest block that memory allows,
  // so that the model, its adapters' run and the exported folder have the same loss: the logits
  // have a number for every token of the vocabulary.
  const std::size_t most = trained.model.config.block_size;
  std::size_t block_size =
      value_in<std::size_t>(info.config, "--block-size", {1, static_cast<double>(most)})
          .value_or(most);
  if (options.block_size)
    block_size = *options.block_size;
  else if (info.model && named)
    block_size = std::min({most, std::size_t{1024}, std::max<std::size_t>(ids.size(), 2) - 1});
  if (block_size > most)
    fail<ValueError>("--block-size {} is given, but the model has {}", block_size, most);
  check_block(ids, name, block_size, info.vocabulary);
  const std::size_t blocks = xgrad::lm::block_count(ids, block_size);
  const Ranks one;
  Progress progress(0, 0, 0);
  const Evaluation evaluation{one, trained.model, ids, document_end, block_size};
  const auto show = [&](double done) {
    progress.evaluating(done);
    return false;
  };
  const auto measure = [&] { return evaluation.over_blocks(blocks, {.between = show}).value(); };
  const double loss = measure();
  progress.clear();
  if (!std::isfinite(loss))
    fail<NotFinite>("{}: the loss is {}\n{}", trained.path, loss,
                    first_anomaly([&] { measure(); }));
  print_loss(
      train || val ? split + "_loss" : "loss", loss,
      info.vocabulary.bits_per_byte(loss, ids, blocks * block_size,
                                    val ? dataset.unknown.validation : dataset.unknown.train),
      fmt::format("{} of {}, {} each", format_blocks(blocks, blocks), name,
                  info.vocabulary.count(block_size)),
      val ? dataset.entropy(blocks * block_size) : std::nullopt);
}

}  // namespace program
