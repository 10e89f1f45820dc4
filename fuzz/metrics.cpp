// Metrics files, and the pictures that plot_losses makes of them.

#include <xgrad/autograd/error.hpp>
#include <xgrad/io/picture.hpp>

#include "files.hpp"
#include "plot_losses/metrics.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  refused<xgrad::FileError>([&] {
    const plot_losses::Metrics metrics = plot_losses::read_metrics(file_with(bytes));
    for (const bool log : {false, true})
      refused<xgrad::ValueError>([&] {  // no logarithm
        const std::string svg =
            xgrad::io::line_chart({metrics.loss, metrics.validation}, {.log_y = log});
        demand(svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos,
               "a picture with numbers that are not finite");
        demand(svg.size() < 100'000 + 1000 * bytes.size(), "a huge picture");
      });
  });
}

std::vector<std::string> seeds() {
  return {"{\"step\": 0, \"loss\": 2.5}\n{\"step\": 1, \"loss\": 2, \"val_loss\": 2.25}\n",
          "{\"step\": 0, \"loss\": 1e308}\n{\"step\": 1e308, \"loss\": -1e308}\n",
          "{\"step\": -1e308, \"loss\": 1e-308}\n{\"step\": 1e308, \"loss\": 1e308}\n",
          "{\"step\": 5e-324, \"loss\": 5e-324}\n{\"step\": 0, \"loss\": 0}\n",
          "{\"step\": 1e17, \"loss\": 1e17}\n{\"step\": 100000000000000016, \"loss\": "
          "100000000000000016}\n",
          "{\"step\": 0, \"loss\": NaN}\n",
          "{\"step\": 0, \"loss\": 1, \"loss\": 2}\n",
          "\n",
          ""};
}

}  // namespace

const Target metrics{"metrics", run, seeds};

}  // namespace fuzz
