// First and second derivatives of every layer, by its inputs and all parameters, over the table of
// layers.  golden/layers_test.cpp checks each layer's numbers.

#include <filesystem>
#include <regex>
#include <set>

#include "autograd/ops/derivative_orders.hpp"
#include "golden/layer_calls.hpp"
#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"

using namespace xgrad;
using namespace xgrad::testing;

TEST_CASE("first and second derivatives of every layer", "[nn][gradcheck]") {
  for (const LayerSample& sample : layer_samples()) {
    INFO(sample.layer << ' ' << sample.name);
    for (const int order : {1, 2}) {
      const auto report = check_order(order, sample.d, sample.large);
      CHECK((report.ok ? "" : report.message) == "");
      INFO("an empty sample needs differences=False in its table");
      CHECK(report.checked > 0);
    }
  }
}

TEST_CASE("every layer is differentiated", "[nn][gradcheck]") {
  std::set<std::string> with_sample;
  for (const LayerSample& sample : layer_samples())
    with_sample.insert(sample.layer);
  // a struct with a static visit in a header of a table's folder is a layer
  std::set<std::string> layers;
  const std::regex declaration(R"(\n(?:struct|class) (\w+)(?: \w+)? \{)");
  const std::regex loss(R"(\nusing (\w+) = (?:Loss|Function)<)");
  std::set<std::filesystem::path> headers;
  for (const LayerTable& table : layer_tables())
    for (const auto& file : std::filesystem::directory_iterator(source_dir + "/" + table.headers))
      if (file.path().extension() == ".hpp" && file.path().filename() != "module.hpp")
        headers.insert(file.path());
  for (const std::filesystem::path& header : headers) {
    const std::string content = read_bytes(header.string());
    for (std::sregex_iterator at(content.begin(), content.end(), declaration), none; at != none;
         ++at) {
      const auto begin = static_cast<std::size_t>(at->position());
      const std::string body = content.substr(begin, content.find("\n};", begin) - begin);
      if (body.find("static void visit(") != std::string::npos)
        layers.insert((*at)[1]);
    }
    for (std::sregex_iterator at(content.begin(), content.end(), loss), none; at != none; ++at)
      layers.insert((*at)[1]);
  }
  CHECK(layers.erase("Loss") + layers.erase("Function") == 2);  // represent those
  for (const std::string& layer : with_sample) {
    INFO(layer << " is not found in the headers of nn/ and lm/");
    CHECK((layers.contains(layer) || layer == "RotaryEmbedding" || layer == "alibi_bias"));
  }
  const std::string page =
      read_bytes(source_dir + "/docs/pytorch.md");  // rows are of PyTorch's layers
  const std::set<std::string> not_pytorchs{
      "CausalSelfAttention", "GPT", "MLP", "Norm", "SelfAttention", "Sequential",
      "TransformerBlock"};
  for (const std::string& layer : layers) {
    INFO(layer << " has no sample in tests/golden/table_layers.py or table_lm.py");
    CHECK(with_sample.contains(layer));
    INFO(layer << " stands in no row of docs/pytorch.md");
    CHECK((not_pytorchs.contains(layer) ||
           std::regex_search(page, std::regex("\\n\\|.*\\b" + layer + "\\b"))));
  }
}
