// Losses under GCC's -fsanitize=undefined, where no function's address is a constant.
#include <xgrad/nn/layers.hpp>
static_assert(std::is_invocable_v<xgrad::nn::MSELoss, xgrad::Tensor, xgrad::Tensor>);
static_assert(!std::is_invocable_v<xgrad::nn::NLLLoss, xgrad::Tensor, xgrad::Tensor>);
