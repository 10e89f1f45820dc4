#include <xgrad/nn/masks.hpp>

#include <xgrad/autograd/ops.hpp>

namespace xgrad::nn {

Mask future(std::size_t queries, std::size_t keys) { return triu(zeros({queries, keys}) == 0, 1); }

}  // namespace xgrad::nn
