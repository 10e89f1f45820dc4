#pragma once
// Names of PyTorch's that are absent on purpose: using one does not compile, and the error says
// what to write.  One's own of the same name goes before.

namespace xgrad {

#define XGRAD_ABSENT(name, instead)                  \
  template <int absent = 0>                          \
  void name(...) {                                   \
    static_assert(absent > 0, #name "(): " instead); \
  }
XGRAD_ABSENT(conv1d, "there are no convolutions; write slices and matmul")
XGRAD_ABSENT(conv2d, "there are no convolutions; write slices and matmul")
XGRAD_ABSENT(max_pool2d, "there is no pooling; write reshape and amax")
XGRAD_ABSENT(from_numpy, "write Tensor(array) of an xtensor array")
XGRAD_ABSENT(no_grad, "write const NoGrad guard;")
#undef XGRAD_ABSENT

namespace nn {

#define XGRAD_ABSENT(name, instead)                                \
  struct name {                                                    \
    template <class... A>                                          \
    name(const A&...) {                                            \
      static_assert(sizeof...(A) > 99, "nn::" #name ": " instead); \
    }                                                              \
  };
XGRAD_ABSENT(Module, "a layer is a struct with a visit(): docs/write_a_layer.md")
XGRAD_ABSENT(Conv1d, "there are no convolutions; write slices and matmul")
XGRAD_ABSENT(Conv2d, "there are no convolutions; write slices and matmul")
XGRAD_ABSENT(MaxPool2d, "there is no pooling; write reshape and amax")
XGRAD_ABSENT(BatchNorm2d, "there are no images; nn::LayerNorm and nn::RMSNorm are norms")
XGRAD_ABSENT(DataParallel, "write parallel::backward(loss, x, y), or extras/mpi's DataParallel")
#undef XGRAD_ABSENT

}  // namespace nn
}  // namespace xgrad
