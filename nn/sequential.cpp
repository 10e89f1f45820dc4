#include <xgrad/nn/sequential.hpp>

#include <cxxabi.h>

#include <cstdlib>
#include <xgrad/autograd/fail.hpp>

namespace xgrad::nn {

void detail::refuse_input(const char* type, const char* input) {
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(type, nullptr, nullptr, nullptr), std::free);
  fail<ValueError>("Sequential: {} does not take {}", name ? name.get() : type, input);
}

void detail::refuse_access(std::size_t i, std::size_t size, bool exists) {
  if (exists)
    fail<ValueError>("Sequential: layer {} is of another type than asked for", i);
  fail<ValueError>("Sequential: there is no layer {}; there are {}", i, size);
}

Tensor Sequential::run(Tensor x, std::size_t from) const {
  for (std::size_t i = from; i < layers_.size(); ++i)
    x = layers_[i](x);
  return x;
}

Tensor Sequential::operator()(const Indices& x) const {
  check<ValueError>(!layers_.empty(), "Sequential: Indices given, but there is no layer");
  return run(layers_[0](x), 1);
}

}  // namespace xgrad::nn
