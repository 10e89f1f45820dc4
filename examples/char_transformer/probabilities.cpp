#include "probabilities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "output.hpp"
#include "prompt.hpp"

namespace char_transformer {

void print_probabilities_head() {
  say(fmt::format("{:>7} {:>7} {:>5}  {:<9}  {}\n", "drawn", "model", "rank", "character",
                  "instead"));
}

void print_probabilities(const xgrad::Tensor& logits, std::int64_t token,
                         const xgrad::nn::GenerateOptions& options,
                         const xgrad::text::Characters& characters) {
  constexpr std::size_t alternatives = 3;
  const xgrad::Tensor drawn = xgrad::nn::next_token_probabilities(logits, options);
  const xgrad::Tensor model = xgrad::nn::next_token_probabilities(logits);
  const float* const of_drawn = drawn.data<float>();
  const float* const of_model = model.data<float>();
  std::vector<std::size_t> order(characters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return of_model[i]; });

  const auto chosen = static_cast<std::size_t>(token);
  const auto rank = std::ranges::find(order, chosen) - order.begin() + 1;
  std::string row = fmt::format("{:7.4f} {:7.4f} {:5}  {:<9}", of_drawn[chosen], of_model[chosen],
                                rank, shown(characters.list()[chosen]));
  std::size_t named = 0;
  for (const std::size_t i : order)
    if (i != chosen && of_drawn[i] > 0 && named < alternatives) {
      row += fmt::format("  {} {:.4f}", shown(characters.list()[i]), of_drawn[i]);
      ++named;
    }
  row.erase(row.find_last_not_of(' ') + 1);
  say(row + "\n");
}

}  // namespace char_transformer
