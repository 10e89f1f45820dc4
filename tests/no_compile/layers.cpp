// Mistakes in a layer that must not compile, one for each CASE; CASE 0 must.  A function that
// notices it for each USE.
#include <xgrad/io/checkpoint.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/nn/layers.hpp>

using namespace xgrad;

struct Scaled {
  nn::Linear fc{4, 4};
#if CASE == 5
  Tensor forward(const Tensor& x) const { return fc(x); }
#elif CASE == 4
  Tensor operator()(const Tensor& x) { return fc(x); }
#else
  Tensor operator()(const Tensor& x) const { return fc(x); }
#endif
#if CASE == 2
  void visit(auto& self, auto&& v) { v("fc", self.fc); }
#elif CASE == 6
  void visit(auto&& v) { v("fc", fc); }
#elif CASE == 3  // v("fc", ...) is called with a temporary
  static void visit(auto& self, auto& v) { v("fc", self.fc); }
#elif CASE != 1
  static void visit(auto& self, auto&& v) { v("fc", self.fc); }
#endif
};

void use(Scaled& layer, const Tensor& x) {
  static_cast<void>(x);
#if USE == 1
  nn::check_layer(layer, x);
#elif USE == 2
  nn::check_layer(layer, {x});
#elif USE == 3
  nn::gradcheck(layer, {x});
#elif USE == 4
  nn::explain_gradient(layer, {x}, {.seed = 1});
#elif USE == 5
  nn::Sequential{layer, nn::ReLU()};
#elif USE == 6
  nn::parameters(layer);
#elif USE == 7
  nn::eval(layer);
#elif USE == 8
  io::save(layer, "a.safetensors");
#elif USE == 9
  nn::gradcheck(layer, layer.fc, {x});
#elif USE == 10
  nn::explain_gradient(layer, [&](const Tensor& in) { return layer.fc(in); }, {x}, {.seed = 1});
#endif
}
