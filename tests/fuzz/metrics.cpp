// Metrics files, and their pictures, reports, comparisons.

#include <fmt/format.h>

#include <xgrad/autograd/error.hpp>
#include <xgrad/viz/chart.hpp>
#include <xgrad/viz/page.hpp>

#include <xgrad/lm/program/runs/runs.hpp>
#include "files.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  refused<xgrad::FileError>([&] {
    const std::vector<runs::Run> all = runs::read_runs({file_with(bytes)});
    const runs::Curves curves = runs::loss_curves(all);
    refused<xgrad::ValueError>([&] {  // no axis
      const std::string svg = xgrad::viz::line_chart(curves.lines, curves.options);
      demand(svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos,
             "a picture with numbers that are not finite");
      demand(svg.size() < 100'000 + 1000 * bytes.size(), "a huge picture");
    });
    demand(xgrad::viz::to_html(runs::page(all)).size() < 2'000'000 + 1000 * bytes.size(),
           "a huge page");
    demand(runs::table_text(all).size() < 20'000, "a huge table");
  });
}

std::vector<std::string> seeds() {
  std::string many;
  for (int i = 0; i < 300; ++i)
    many += fmt::format(
        R"({{"step": {}, "loss": {}, "lr": 1e-3, "grad_norm": {}, "ms": {}, "val_loss": {}}})"
        "\n",
        i, 300 - i, i * i, i % 7, i % 3 == 0 ? "NaN" : "2.5");
  return {"{\"step\": 0, \"loss\": 2.5}\n{\"step\": 1, \"loss\": 2, \"val_loss\": 2.25}\n",
          "{\"step\": 0, \"loss\": 1e308}\n{\"step\": 1e308, \"loss\": -1e308}\n",
          "{\"step\": -1e308, \"loss\": 1e-308}\n{\"step\": 1e308, \"loss\": 1e308}\n",
          "{\"step\": 5e-324, \"loss\": 5e-324}\n{\"step\": 0, \"loss\": 0}\n",
          "{\"step\": 1e17, \"loss\": 1e17}\n{\"step\": 100000000000000016, \"loss\": "
          "100000000000000016}\n",
          "{\"step\": 0, \"loss\": NaN}\n{\"step\": 1, \"loss\": -Infinity, \"ms\": 1e-308}\n",
          "{\"step\": 0, \"loss\": 1, \"loss\": 2}\n",
          "{\"step\": 0, \"loss\": 1, \"ms\": 0, \"lr\": null, \"grad_norm\": -1}\n{\"step\": 1",
          many,
          many + "no row\n" + many + std::string(70'000, 'x') + "\n" + many,
          "\n",
          ""};
}

}  // namespace

const Target metrics{"metrics", run, seeds};

}  // namespace fuzz
