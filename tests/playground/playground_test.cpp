// The playground's engine: each answer against direct calls of the engine, and requests that try to
// break it.

#include "playground/playground.hpp"

#include <fmt/format.h>

#include <regex>
#include <xgrad/lm/gpt.hpp>
#include <xgrad/xgrad.hpp>

#include "lm/program/run.hpp"
#include "playground/formula.hpp"

using namespace xgrad;

namespace {

Json ask(const Json& request) { return Json::parse(playground::call(request.dump())); }

Json ask(Json request, const char* what) {
  request["do"] = what;
  return ask(request);
}

Json leaf(const char* name, std::vector<Size> shape, std::vector<std::string> cells,
          bool constant = false) {
  return {{"name", name}, {"shape", shape}, {"cells", cells}, {"constant", constant}};
}
Json formula(const std::string& text, std::vector<Json> leaves = {leaf("x", {}, {"3"})}) {
  return {{"do", "evaluate"}, {"formula", text}, {"leaves", leaves}};
}
std::string error_of(const Json& request) { return ask(request).value("error", ""); }

// The data of the graph page in an answer.
Json graph_in(const Json& answer) {
  const std::string html = answer.at("html"), begin = "id=\"data\">";
  const std::size_t at = html.find(begin) + begin.size();
  return Json::parse(html.substr(at, html.find("</script>", at) - at));
}

Json examples() { return Json::parse(read_bytes(source_dir + "/course/playground/examples.json")); }

Tensor tensor_of(const Json& leaf) {
  std::vector<double> cells;
  for (const std::string cell : leaf.at("cells"))
    cells.push_back(std::strtod(cell.c_str(), nullptr));
  return Tensor(std::move(cells), Dims(leaf.at("shape").get<std::vector<Size>>()))
      .requires_grad_(!leaf.value("constant", false));
}

std::vector<double> values(const Json& list) { return list.get<std::vector<double>>(); }
std::vector<double> values(const Tensor& x) { return detail::elements(x); }

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && values(a) == values(b);
}

// A text of about a thousand characters.
std::string verses() {
  std::string text;
  for (int i = 0; i < 8; ++i)
    text += fmt::format(
        "{} roses are roses; the river does not know the word for stone: it goes around it, "
        "alone.\n",
        i);
  return text;
}

}  // namespace

TEST_CASE("the playground's examples have the values and gradients of direct calls") {
  const auto direct = [](const std::string& title, const std::vector<Tensor>& in) {
    if (title == "a neuron") {
      const Tensor h = tanh(in[0] * in[1] + in[2]);
      return h * h;
    }
    if (title == "softmax with cross-entropy")
      return cross_entropy(matmul(in[0], in[1]), Indices(std::vector<Size>{2, 1}));
    if (title == "one attention head with its mask")
      return matmul(softmax(matmul(in[0], in[1].mT()) / std::sqrt(2.0) + in[3], -1), in[2]);
    REQUIRE(title == "layer norm");
    return mse_loss(layer_norm(in[0], {3}, in[1], in[2]), in[3]);
  };
  const Json all = examples();
  CHECK(all["formulas"].size() == 4);
  for (const Json& example : all["formulas"]) {
    const std::string title = example["title"];
    INFO(title);
    std::vector<Tensor> in;
    for (const Json& one : example["leaves"])
      in.push_back(tensor_of(one));
    const Tensor y = direct(title, in);
    y.sum().backward();
    const Json answer = ask(example, "evaluate");
    INFO(answer.value("error", ""));
    CHECK(answer["shape"].get<std::vector<Size>>() ==
          std::vector<Size>(y.shape().begin(), y.shape().end()));
    const Json graph = graph_in(answer);
    const auto shown = values(graph["nodes"][graph["root"].get<std::size_t>()]["value"]);
    REQUIRE(shown.size() == static_cast<std::size_t>(y.numel()));
    for (std::size_t i = 0; i < shown.size(); ++i)
      CHECK(shown[i] == Approx(values(y)[i]).epsilon(1e-6));
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in[i].requires_grad())
        CHECK(values(answer["gradients"][example["leaves"][i]["name"]]) == values(in[i].grad()));
    CHECK(answer["wrong"] == 0);
    CHECK(graph["order"].size() >= 4);  // steps of the backward, in the engine's order
    CHECK(graph["rules"].size() >= 1);
    const Json checked = ask(example, "check");
    CHECK(checked["ok"] == true);
    CHECK(checked["leaves"].size() == answer["gradients"].size());
  }
}

TEST_CASE("the playground's language is one op of the engine for each sign and call") {
  const auto value = [](const std::string& text) {
    playground::Names names{{"x", tensor({{1, 2}, {3, 4}}, DType::float64)}};
    return playground::evaluate(text, names);
  };
  const Tensor x = tensor({{1, 2}, {3, 4}}, DType::float64);
  CHECK(value("1 + 2 * 3 - 4 / 2").item() == 5);
  CHECK(value("-(2 - 5) - -1 - 1e-1 * .5e1").item() == 3.5);
  CHECK(same(value("--x"), x));
  CHECK(same(value("x.T @ x"), matmul(x.mT(), x)));
  CHECK(same(value("-x.T"), (-x.mT())));
  CHECK(same(value("y = x + 1;\n\n y * y ;"), ((x + 1) * (x + 1))));
  CHECK(same(value("sum(\n x,\n 0)"), sum(x, {0})));
  CHECK(same(value("[[1, -2], [inf, 4e0]]"), tensor({{1, -2}, {INFINITY, 4}}, DType::float64)));
  CHECK(same(value("softmax(masked_fill(x, [[0, 1], [0, 0]], -inf))"),
             softmax(tensor({{1, -INFINITY}, {3, 4}}, DType::float64), -1)));
  CHECK(same(value("where(x, x, 0)"), x));
  CHECK(value("reshape(x, 4)").shape() == Shape{4});
  CHECK(value("infinity = 2; infinity").item() == 2);
}

TEST_CASE("the playground answers hostile formulas with a sentence") {
  const auto says = [](const std::string& text, const std::string& sentence) {
    INFO(text.substr(0, 100));
    CHECK_THAT(error_of(formula(text)), ContainsSubstring(sentence));
  };
  says("", "the formula is empty");
  says(" ;\n; ", "the formula is empty");
  says("x +", "at character 4: it ends where a value is missing");
  says("x ** x", "`*` where a value is missing: a power is pow(x, 2)");
  says("(x", "`)` is missing");
  says("x)", "`)` is unexpected");
  says("2x", "at character 2: `x` is unexpected: write * between two values");
  says("x $ x", "`$` is unexpected");
  says("x²", "`²` is unexpected");
  says("x ^ 2", "`^` is unexpected: a power is pow(x, 2)");
  says("x * −1", "`−` where a value is missing");
  says("[1, [2]]", "rows of a table");
  says("[]", "a number is missing");
  says("1.2.3", "`.T`");
  says("1e", "`e` is unexpected");
  says("y", "`y` has no value");
  says("frobnicate(x)", "at character 1: there is no `frobnicate`; there are cos, cross_entropy,");
  says("exp(x, x)", "exp takes 1 argument, and has 2");
  says("sum(x, 0.5)", "one whole number");
  says("sum(x, 1e300)", "one whole number");
  says("torch.relu(x)", "a call has no module before it");
  says("x.U", "`.T`");
  says("x.T", "mT: x () has no last two dimensions");
  says("[1, 2] + [1, 2, 3]", "(2,)");
  says("[[1, 2]] @ [[1, 2]]", "matmul");
  says("cross_entropy([[1, 2]], [7])", "7");
  says("2 * 3", "requires a gradient");
  says(std::string(5000, 'x'), "at most 4000 bytes");
  for (const char opening : {'(', '[', '-'})
    says(std::string(100, opening) + "1", "nested more than 32 deep");
  says(
      [] {
        std::string deep = "x";
        for (int i = 0; i < 100; ++i)
          deep = "exp(" + deep + ")";
        return deep;
      }(),
      "nested more than 32 deep");
  std::string chain = "x";
  for (int i = 0; i < 300; ++i)
    chain += "+x";
  says(chain, "more than 200 ops");
  says(
      "y = [1,2,3,4,5,6,7,8] * x; y = reshape(y, 8, 1) * y; y = reshape(y, 64, 1) * reshape(y, 64)",
      "at most 1024 elements");
  CHECK(Json::parse(playground::call("{\"do\": \"evaluate\", \"formula\": \"\xff\"}"))
            .contains("error"));
  CHECK(Json::parse(playground::call(R"({"do": "evaluate", "formula": "é\u0000x", "leaves": []})"))
            .contains("error"));
  CHECK_THAT(error_of(formula("x\n* x")), ContainsSubstring("`*` where a value is missing"));
  CHECK(ask(formula("x + nn"))["unknown"] == "nn");
  CHECK(ask(formula("exp(1000 * x)")).contains("html"));  // infinity is a value
}

TEST_CASE("the playground answers hostile requests with a sentence") {
  const auto says = [](const std::string& request, const std::string& sentence) {
    INFO(request.substr(0, 100));
    CHECK_THAT(Json::parse(playground::call(request)).value("error", ""),
               ContainsSubstring(sentence));
  };
  says("", "is not JSON");
  says("[]", "no \"do\"");
  says(std::string(1000, '['), "");
  says(R"({"do": "fly"})", "is none of those");
  says(R"({"do": "step"})", "nothing is trained yet: start with a text");
  says(R"({"do": 3})", "\"do\" is not a text");
  says(R"({"do": "evaluate", "formula": "x"})", "no \"leaves\"");
  says(R"({"do": "evaluate", "formula": "x", "leaves": {}})", "\"leaves\" is not a list");
  const auto of_leaf = [](const Json& one) { return formula("x", {one}).dump(); };
  says(of_leaf(leaf("x", {2}, {"1"})), "1 cells that are texts for the shape (2,)");
  says(of_leaf(leaf("x", {}, {"1e"})), "x: `1e` is not a number");
  says(of_leaf(leaf("x", {}, {""})), "x: `` is not a number");
  says(of_leaf(leaf("x", {0}, {})), "whole number from 1 to 1024");
  says(of_leaf(leaf("x", {-1}, {})), "whole number from 1 to 1024");
  says(of_leaf(leaf("x", {1024, 1024, 1024}, {})), "at most 1024 elements");
  says(of_leaf(leaf("x", {1, 1, 1, 1, 1, 1, 1}, {"1"})), "6 dimensions");
  CHECK(ask(formula("x * x", {leaf("x", {}, {"inf"})})).contains("html"));
  CHECK(ask(formula("x * x", {leaf("x", {}, {"inf"})}))["gradients"]["x"][0] == "inf");
  CHECK(ask(formula("x * y", {leaf("x", {}, {"1"}), leaf("y", {}, {"2"}),
                              leaf("z", {}, {"3"})}))["gradients"]["z"]
            .is_null());
}

TEST_CASE("each mistake of the course is named where it is planted") {
  const Json all = examples();
  CHECK(all["mistakes"].size() == 6);
  for (const Json& mistake : all["mistakes"]) {
    const std::string text = mistake["formula"];
    INFO(text);
    std::smatch name;
    REQUIRE(std::regex_search(text, name, std::regex("my_\\w+")));
    const std::string op = name.str() == "my_scaled_scores" ? "my_scores" : name.str();
    const Json answer = ask(mistake, "evaluate"), checked = ask(mistake, "check");
    INFO(answer.value("error", "") + checked.value("error", ""));
    // Softmax gives nothing back to a hidden score, so the whole gradient is right by luck.
    CHECK((answer["wrong"] > 0) == (op != "my_mask"));
    CHECK(checked["ok"] == false);
    CHECK(checked["wrong"] == op);
    CHECK_THAT(checked["message"].get<std::string>(), ContainsSubstring(op));
    // In the form in which it is planted into another formula.
    if (mistake.contains("replaces"))
      CHECK(text.find(mistake["by"].get<std::string>()) != std::string::npos);
  }
}

TEST_CASE("exercises of the playground are judged by differences") {
  const Json all = examples()["exercises"];
  const std::vector<Json> right{{{"x", "3 * x * x - 2"}},
                                {{"a", "b + cos(a)"}, {"b", "a"}},
                                {{"w", "2 * h * (1 - h * h) * x"},
                                 {"x", "2 * h * (1 - h * h) * w"},
                                 {"b", "2 * h * (1 - h * h)"}},
                                {{"x", "g"}, {"bias", "sum(g, 0, 1)"}}};
  const std::vector<std::pair<Json, const char*>> wrong{
      {{{"x", "10"}}, "wrong"},  // right at 2 alone
      {{{"a", "b"}, {"b", "a"}}, "wrong"},
      {{{"w", "2 * h * x"}, {"x", "2 * h * (1 - h * h) * w"}, {"b", "2 * h * (1 - h * h)"}},
       "wrong"},
      {{{"x", "g"}, {"bias", "mean(g, 0, 1)"}}, "wrong"}};
  REQUIRE(all.size() == right.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    Json request = all[i];
    INFO(request["title"]);
    request["answers"] = right[i];
    const Json yes = ask(request, "answer");
    INFO(yes.dump());
    CHECK(yes["ok"] == true);
    request["answers"] = wrong[i].first;
    const Json no = ask(request, "answer");
    INFO(no.dump());
    CHECK(no["ok"] == false);
    request["answers"].begin().value() = "";
    CHECK_THAT(ask(request, "answer").dump(), ContainsSubstring("empty"));
    request["answers"].begin().value() = "nowhere";
    CHECK(ask(request, "answer")["unknown"] == "nowhere");
  }
  // Where nothing can be compared nothing is right.
  const Json square = formula("x * x", {leaf("x", {}, {"inf"})});
  CHECK(ask(square, "check")["ok"] == false);
  CHECK_THAT(ask(square, "check")["message"].get<std::string>(),
             ContainsSubstring("nothing is compared"));
  Json cube = formula("x * x * x", {leaf("x", {}, {"2"})});
  cube["answers"] = {{"x", "3 * x * x * g"}};
  cube["slopes"] = false;
  CHECK(ask(cube, "answer")["ok"] == true);
  cube["slopes"] = true;
  CHECK(ask(cube, "answer")["ok"] == false);
  Json never = formula("log(-x * x)", {leaf("x", {}, {"2"})});
  never["answers"] = {{"x", "g"}};
  CHECK(ask(never, "answer")["ok"] == false);
  Json shape = all[3];  // a gradient of another shape than its leaf's
  shape["answers"] = {{"x", "g"}, {"bias", "g"}};
  CHECK(ask(shape, "answer").dump().find("(3,)") != std::string::npos);
}

TEST_CASE("the playground trains the transformer of the example") {
  const TemporaryFolder folder;
  write_bytes(folder / "text.txt", verses());
  const Result example = Process(folder, [] {},
                                 {PLAYGROUND_EXAMPLE, folder / "text.txt", "--steps", "20",
                                  "--every", "1", "--out", folder / "example.safetensors"})
                             .wait();
  REQUIRE(example.code == 0);
  const Json start{{"do", "start"}, {"text", verses()}, {"seed", 1337}, {"steps", 20}};
  const Json begun = ask(start);
  INFO(begun.dump());
  CHECK(begun["characters"] == 31);
  const std::string path = folder / "playground.safetensors";
  const auto step = [&](std::size_t i) {
    const Json now = ask({{"do", "step"}});
    REQUIRE(now["step"] == i);
    CHECK_THAT(example.out, ContainsSubstring(fmt::format("step {} loss {:.6f}\n", i,
                                                          now["loss"].get<double>())));
  };
  for (std::size_t i = 0; i < 20; ++i) {
    if (i == 7) {  // a sample and attention leave the run as it is
      const Json sample = ask({{"do", "sample"}, {"prompt", "the "}, {"length", 12}});
      CHECK(sample["text"].get<std::string>().size() == 12);
      const Json seen = ask({{"do", "attention"}, {"prompt", "roses"}});
      REQUIRE(seen["layers"].size() == 4);
      CHECK(seen["characters"] == Json({"r", "o", "s", "e", "s"}));
      for (const Json& layer : seen["layers"]) {
        REQUIRE(layer.size() == 4);
        for (const Json& head : layer) {
          const auto weights = values(head);
          REQUIRE(weights.size() == 25);
          CHECK(weights[1] == 0);  // the future
          CHECK(weights[0] == 1);
          CHECK(std::accumulate(weights.end() - 5, weights.end(), 0.0) == Approx(1));
        }
      }
    }
    if (i == 12)
      CHECK(ask({{"do", "save"}, {"path", path}})["step"] == 12);
    step(i);
  }

  Json from = start;
  from["path"] = path;
  SECTION("a checkpoint goes on with the same losses, also after a start that fails") {
    CHECK(ask(from)["step"] == 12);
    step(12);
    Json bad = from;
    bad["seed"] = 1;
    CHECK_THAT(error_of(bad), ContainsSubstring("of another text or seed"));
    write_bytes(folder / "damaged", read_bytes(path).substr(0, 1000));
    for (const char* const name : {"damaged", "none"}) {
      bad["path"] = folder / name;
      CHECK(ask(bad).contains("error"));
    }
    for (std::size_t i = 13; i < 20; ++i)
      step(i);
  }
  SECTION("a checkpoint is a model that `xgrad sample` reads") {
    const Result sampled =
        Process(folder, {"sample", path, "--prompt", "the ", "--tokens", "20"}).wait();
    INFO(sampled.err);
    CHECK(sampled.code == 0);
    CHECK(sampled.out.starts_with("the "));
    // lm::GPT with these weights pays the attention that the page shows.
    ask(from);
    const Json seen = ask({{"do", "attention"}, {"prompt", "roses are"}});
    const io::Checkpoint checkpoint = io::load_checkpoint(path);
    lm::GPT gpt({.block_size = 64, .vocab_size = 31, .n_layer = 4, .n_head = 4, .n_embd = 128});
    io::load_state(gpt, checkpoint.model, path);
    std::vector<Size> ids;
    const auto characters = checkpoint.user.find<std::string>("characters");
    REQUIRE(characters != nullptr);
    for (const char c : std::string("roses are"))
      ids.push_back(static_cast<Size>(characters->find(c)));
    const NoGrad no_grad;
    const Decompose plain;
    const Trace trace;
    gpt(Indices(ids).unsqueeze(0));
    std::size_t layer = 0;
    for (const Trace::Event& event : trace.events())
      if (event.op == "softmax" && layer < 4) {
        for (Size head = 0; head < 4; ++head) {
          const auto page = values(seen["layers"][layer][static_cast<std::size_t>(head)]);
          const auto program = values(event.output.select(0, 0)[head]);
          REQUIRE(page.size() == program.size());
          for (std::size_t i = 0; i < page.size(); ++i)
            CHECK(page[i] == Approx(program[i]).margin(1e-5));
        }
        ++layer;
      }
    CHECK(layer == 4);
  }
}

TEST_CASE("the playground answers hostile texts with a sentence") {
  const auto says = [](const Json& request, const std::string& sentence) {
    CHECK_THAT(error_of(request), ContainsSubstring(sentence));
  };
  const auto start = [](const std::string& text) {
    return Json{{"do", "start"}, {"text", text}, {"seed", 1}, {"steps", 10}};
  };
  CHECK(ask(start(""))["characters"] == 34);  // the example's own verses
  says(start("a rose"), "too short");
  says(start(std::string(3 << 20, 'a')), "the page takes");
  Json bad = start(verses());
  bad["steps"] = -1;
  says(bad, "\"steps\" is not a whole number from 1 to");
  bad["steps"] = 0;
  says(bad, "\"steps\" is not a whole number from 1 to");
  bad.erase("steps");
  says(bad, "no \"steps\"");
  CHECK(playground::call("{\"do\": \"start\", \"text\": \"\xff\"}").find("error") !=
        std::string::npos);
  CHECK(ask(start(std::string(1000, 'a')))["characters"] == 1);
  CHECK(ask({{"do", "step"}})["loss"] == 0);
  std::string every;  // each character once, of two bytes: none of the validation's is known
  for (int i = 0; i < 900; ++i)
    every +=
        fmt::format("{}{}", static_cast<char>(0xC4 + i / 64), static_cast<char>(0x80 + i % 64));
  CHECK(ask(start(every))["characters"] == 900);
  CHECK(ask({{"do", "step"}})["loss"].get<double>() == Approx(std::log(900)).margin(0.5));
  says({{"do", "sample"}, {"prompt", "x"}, {"length", 1}}, "`x` does not occur");
  says({{"do", "sample"}, {"prompt", ""}, {"length", 1e9}}, "\"length\" is not a whole number");
  CHECK(ask({{"do", "attention"}, {"prompt", ""}})["characters"].size() == 1);
}
