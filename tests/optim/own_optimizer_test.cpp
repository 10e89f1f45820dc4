// The code of docs/write_an_optimizer.md, between the lines "// ----".

#include <regex>

// ----
#include <xgrad/autograd/update_formula.hpp>
#include <xgrad/xgrad.hpp>

namespace {

using namespace xgrad;

struct SignSGDOptions {
  double lr = 1e-3;
  double momentum = 0.9;

  static constexpr const char* name = "SignSGD";
  std::vector<optim::Option> options() { return {{"lr", &lr}, {"momentum", &momentum, 0, 1}}; }
  std::vector<std::string> state_names() const { return {"momentum_buffer"}; }
  ElementUpdate update(const optim::Parameter& p) const {
    const auto formula = [o = *this](auto x, auto b, auto g) {
      b = c(b, o.momentum) * b + c(g, 1 - o.momentum) * g;
      const auto zero = c(b, 0), one = c(b, 1);
      x = x - c(x, o.lr) * where(b > zero, one, where(b < zero, -one, zero));
      return std::array{x, b};
    };
    return element_update(formula, p.value, p.state[0], p.gradient);
  }
};
using SignSGD = optim::OptimizerOf<SignSGDOptions>;

// One number a parameter, with the test's name and count.
struct OddOptions {
  double lr = 1;
  std::string state = "scale";
  std::size_t states = 1;
  bool says_its_shape = true, undefined = false;

  static constexpr const char* name = "Odd";
  std::vector<optim::Option> options() { return {{"lr", &lr}}; }
  std::vector<std::string> state_names(const Tensor& p) const {
    return p.dim() > 0 ? std::vector<std::string>{"step", state} : std::vector<std::string>{};
  }
  bool state_fits(const std::string&, const Tensor& of_name, const Tensor& p) const {
    return says_its_shape ? of_name.dim() == 0 : of_name.shape() == p.shape();
  }
  ElementUpdate update(const optim::Parameter& p) const {
    p.state.assign(p.value.dim() > 0 ? states : 0, undefined ? Tensor() : p.gradient.abs().max());
    return element_update([](auto x, auto g) { return x - g; }, p.value, p.gradient);
  }
};
using Odd = optim::OptimizerOf<OddOptions>;

}  // namespace

// ----

#include "helpers/catch.hpp"
#include "helpers/paths.hpp"
#include "helpers/temporary_folder.hpp"
#include "helpers/tensors.hpp"

TEST_CASE("an optimizer of one's own steps, saves and loads", "[optim][docs]") {
  Tensor p = tensor({1, -2, 3}).requires_grad_();
  SignSGD optimizer({p}, {.lr = 0.5});
  const auto step = [&p](optim::Optimizer& o, const Values& gradient) {
    p.set_grad(tensor(gradient));
    o.step();
  };
  step(optimizer, {4, -0.25, 0});
  CHECK(numbers(p) == std::vector<double>{0.5, -1.5, 3});
  const optim::OptimizerState state = optimizer.state_dict();
  REQUIRE(state.parameters.at(0).tensors.size() == 1);
  CHECK(state.parameters[0].tensors[0].first == "momentum_buffer");

  SignSGD resumed({p}, {.lr = 7});
  resumed.load_state_dict(state);
  CHECK(resumed.learning_rate() == 0.5);
  step(resumed, {-1, 0, 0});  // momentum outweighs the gradient
  CHECK(numbers(p) == std::vector<double>{0, -1, 3});
  CHECK_THROWS_WITH(SignSGD({p}, {.momentum = 1}),
                    ContainsSubstring("SignSGD: momentum is 1; it must be finite and in [0, 1)"));
}

TEST_CASE("an optimizer's state has the names and shapes that it says", "[optim]") {
  Tensor p = tensor({1, -2, 3}).requires_grad_(), number = scalar(1).requires_grad_();
  const auto step = [&](const OddOptions& options) {
    Odd optimizer({p, number}, options);
    p.set_grad(tensor({1, 1, -4}));
    number.set_grad(scalar(1));
    optimizer.step();
    return optimizer.state_dict();
  };
  optim::OptimizerState state = step({});
  REQUIRE(state.parameters.at(0).tensors.size() == 1);
  CHECK(state.parameters[0].tensors[0].first == "scale");
  CHECK(state.parameters.at(1).tensors.empty());
  Odd resumed({p, number});
  resumed.load_state_dict(state);
  CHECK(resumed.state_dict().parameters[0].tensors.at(0).second.item() == 4);
  state.parameters[0].tensors[0].second = zeros(3);
  CHECK_THROWS_WITH(resumed.load_state_dict(state),
                    ContainsSubstring("wrong shape: state.0.scale is (3,) and the parameter (3,)"));

  // Each of these would be saved but could never be restored.
  const std::vector<double> before = numbers(p);
  CHECK_THROWS_WITH(step({.says_its_shape = false}),
                    ContainsSubstring("Odd: update() makes state.0.scale () of a parameter (3,)"));
  CHECK_THROWS_WITH(step({.states = 2}), ContainsSubstring("Odd: update() leaves 2 states"));
  CHECK_THROWS_WITH(step({.state = "a.b"}), ContainsSubstring("Odd: the state name 'a.b'"));
  CHECK_THROWS_WITH(step({.state = "step"}), ContainsSubstring("state_names() has 'step' twice"));
  CHECK_THROWS_WITH(step({.undefined = true}), ContainsSubstring("leaves state.0.scale undefined"));
  CHECK(numbers(p) == before);
}

TEST_CASE("docs/write_an_optimizer.md shows the code of this test", "[optim][docs]") {
  const std::string page = read_bytes(source_dir + "/docs/write_an_optimizer.md");
  const std::string text = read_bytes(source_dir + "/tests/optim/own_optimizer_test.cpp");
  static const std::regex block("```cpp\n([^`]*)```");
  std::size_t blocks = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), block), end; at != end; ++at, ++blocks)
    CHECK_THAT(text, ContainsSubstring((*at)[1].str()));
  CHECK(blocks == 2);
}
