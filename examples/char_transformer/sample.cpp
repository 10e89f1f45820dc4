#include "sample.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>
#include <xgrad/autograd/error.hpp>
#include <xgrad/autograd/random.hpp>
#include <xgrad/nn/sampling.hpp>

#include "command.hpp"
#include "output.hpp"
#include "prompt.hpp"
#include "trained_model.hpp"

namespace char_transformer {
namespace {

using xgrad::text::Characters;
using xgrad::text::Ids;

/// A row of the table of what is written: the probability that `token` was drawn with, the model's
/// own for it (at temperature 1, of all characters), its rank among those, itself, and the
/// likeliest others with the probabilities that they would have been drawn with.  `logits` are (1,
/// V).
void print_probabilities(const xgrad::Tensor& logits, std::int64_t token,
                         const SampleOptions& options, const Characters& characters) {
  const xgrad::Tensor drawn = xgrad::nn::next_token_probabilities(logits, options.drawing);
  const xgrad::Tensor model = xgrad::nn::next_token_probabilities(logits);
  const float *const of_drawn = drawn.data<float>(), *const of_model = model.data<float>();
  std::vector<std::size_t> order(characters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return of_model[i]; });

  const auto chosen = static_cast<std::size_t>(token);
  const auto at = std::ranges::find(order, chosen);
  const auto rank = at - order.begin() + 1;
  order.erase(at);
  std::erase_if(order, [&](std::size_t i) { return !(of_drawn[i] > 0); });
  order.resize(std::min<std::size_t>(order.size(), 3));
  const std::string name = shown(characters.list()[chosen]);
  std::string row = fmt::format("{:7.4f} {:7.4f} {:5}  {}", of_drawn[chosen], of_model[chosen],
                                rank, order.empty() ? name : fmt::format("{:<9}", name));
  for (const std::size_t i : order)
    row += fmt::format("  {} {:.4f}", shown(characters.list()[i]), of_drawn[i]);
  say(row + "\n");
}

/// The text of --stop; none without it.
std::vector<std::int64_t> stop_ids(const SampleOptions& options, const Characters& characters) {
  return list_of(encode_given("--stop", options.stop, characters));
}

void write_one(const xgrad::nn::GPT& model, const Characters& characters, const Ids& prompt,
               const SampleOptions& options, xgrad::Generator& generator) {
  const std::vector<std::int64_t> end = stop_ids(options, characters);
  std::vector<std::int64_t> written;
  std::string text = characters.decode(prompt);
  xgrad::nn::GenerateOptions drawing = options.drawing;
  xgrad::Tensor logits;
  drawing.on_logits = [&](const xgrad::Tensor& x) { logits = x; };
  drawing.on_token = [&](std::span<const std::int64_t> token) {
    written.push_back(token[0]);
    const std::string character = characters.decode(Ids(token));
    if (!options.show_probs)
      return say(character);
    print_probabilities(logits, token[0], options, characters);
    text += character;
  };
  drawing.stop = [&] {
    return output_error() != 0 || (!end.empty() && written.size() >= end.size() &&
                                   std::equal(end.rbegin(), end.rend(), written.rbegin()));
  };
  say(options.show_probs ? fmt::format("{:>7} {:>7} {:>5}  {:<9}  {}\n", "drawn", "model", "rank",
                                       "character", "instead")
                         : text);
  try {
    model.generate(as_row(list_of(prompt)), options.tokens, generator, drawing);
  } catch (const xgrad::ValueError& error) {
    throw xgrad::ValueError(fmt::format("it cannot write on: {}", reason(error)));
  }
  say(options.show_probs ? "\n" + text + "\n" : "\n");
}

/// All samples of a prompt, with a line between them.
void write(const xgrad::nn::GPT& model, const Characters& characters, const Ids& prompt,
           const SampleOptions& options, xgrad::Generator& generator) {
  for (std::size_t i = 0; i < options.num_samples && output_error() == 0; ++i) {
    if (i > 0)
      say("---------------\n");
    write_one(model, characters, prompt, options, generator);
  }
}

/// Each line of standard input is a prompt; the exit code: 1 if one that is not typed on a terminal
/// could not be.
int converse(const TrainedModel& trained, const SampleOptions& options) {
  const Characters& characters = trained.notes.characters;
  const bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  stop_ids(options, characters);  // what is wrong with it is no prompt's fault
  xgrad::Generator generator(options.seed);
  int code = 0;
  while (output_error() == 0) {
    say(terminal ? "> " : "");
    std::string line;
    if (!std::getline(std::cin, line))
      break;
    if (line.ends_with('\r'))
      line.pop_back();
    try {
      write(trained.model, characters, encode_prompt("the prompt", line, characters), options,
            generator);
    } catch (const xgrad::ValueError& error) {
      warn(error.what());
      code = terminal ? 0 : 1;
    }
  }
  say(terminal ? "\n" : "");
  return code;
}

}  // namespace

void print_sample(const xgrad::nn::GPT& model, const Characters& characters,
                  const SampleOptions& options) {
  const bool from_file = !options.file.empty();
  const Ids prompt =
      encode_prompt(from_file ? options.file : "--prompt",
                    from_file ? read_prompt(options.file) : options.prompt, characters);
  if (prompt.size() > model.config.block_size)
    warn(fmt::format("the prompt has {} characters, of which the model sees the last {}",
                     prompt.size(), model.config.block_size));
  xgrad::Generator generator(options.seed);
  write(model, characters, prompt, options, generator);
}

Command add_sample(CLI::App& program) {
  CLI::App& app = *program.add_subcommand("sample", "let a model write");
  const auto options = std::make_shared<SampleOptions>();
  auto& drawing = options->drawing;
  add_checkpoint(app, options->checkpoint);
  app.option_defaults()->group("What it continues, and how far");
  app.add_option("--prompt", options->prompt, "what it continues [a newline]");
  add_data(app, "--file", options->file, "a file with the prompt; -: standard input");
  add_bool(app, "--interactive", options->interactive,
           "each line of standard input is a prompt, until its end (Ctrl-D)");
  add_number(app, "--tokens", options->tokens, {0, many},
             fmt::format("characters that it adds, at most [{}]", options->tokens));
  add_number(app, "--num-samples", options->num_samples, {1, many},
             "samples of each prompt, one after another [1]");
  app.add_option("--stop", options->stop, "end where it has written this");
  app.option_defaults()->group("How it draws, in this order");
  add_number(app, "--temperature", drawing.temperature, {0, 100},
             fmt::format("0: always the likeliest; higher: wilder [{}]", drawing.temperature));
  add_number(app, "--top-k", drawing.top_k, {1, many},
             "draw among the k likeliest characters [all]");
  add_number(app, "--top-p", drawing.top_p, {0, 1, true, false},
             "draw among the likeliest that have this probability together [1: all]");
  add_number(app, "--min-p", drawing.min_p, {0, 1},
             "draw among those at least this many times as likely as the likeliest [0]");
  app.option_defaults()->group("Options");
  add_bool(app, "--show-probs", options->show_probs,
           "a table of the characters: probability, rank, what else could have been");
  add_seed(app, options->seed);
  add_threads(app, options->threads);
  return {&app, [options] {
            need("--checkpoint", options->checkpoint);
            const bool file = !options->file.empty(), prompt = !options->prompt.empty();
            if (file && prompt)
              throw UsageError("--prompt and --file are both prompts: leave one of them out");
            if (options->interactive && (file || prompt))
              throw UsageError(
                  "--interactive reads prompts from standard input: leave --prompt and --file out");
            const TrainedModel trained = load_trained_model(options->checkpoint);
            if (options->interactive)
              return converse(trained, *options);
            print_sample(trained.model, trained.notes.characters, *options);
            return 0;
          }};
}

}  // namespace char_transformer
