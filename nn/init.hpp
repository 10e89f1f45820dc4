#pragma once
// Fills Tensors with initial values, in place, with PyTorch's names, formulas and order of draws.
//
// Each takes a handle, changes its Tensor's value as update() does and returns the handle.

#include "../autograd/random.hpp"
#include "../autograd/tensor.hpp"

namespace xgrad::nn::init {

/// While one lives, these functions change and draw nothing on this thread: for a model whose
/// values are loaded from a file (torch.nn.utils.skip_init).
class SkipInit {
 public:
  SkipInit();
  SkipInit(const SkipInit&) = delete;
  SkipInit& operator=(const SkipInit&) = delete;
  ~SkipInit();

 private:
  bool before_;
};

Tensor constant_(Tensor x, double value);
Tensor zeros_(Tensor x);
Tensor ones_(Tensor x);
/// Uniform in [low, high).  ValueError if low > high or either is not finite.
Tensor uniform_(Tensor x, double low = 0, double high = 1,
                Generator& generator = default_generator());
/// ValueError if std is negative.
Tensor normal_(Tensor x, double mean = 0, double std = 1,
               Generator& generator = default_generator());
/// N(mean, std) truncated to [a, b].  ValueError unless std is positive and a <= b.
Tensor trunc_normal_(Tensor x, double mean = 0, double std = 1, double a = -2, double b = 2,
                     Generator& generator = default_generator());

// fan_in is the size of dimension 1 and fan_out that of dimension 0, each times the sizes of
// dimensions 2 and on; ShapeError for fewer than two dimensions.

/// U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out)).  Glorot and Bengio, 2010.
Tensor xavier_uniform_(Tensor x, double gain = 1, Generator& generator = default_generator());
/// N(0, s) with s = gain * sqrt(2 / (fan_in + fan_out)).
Tensor xavier_normal_(Tensor x, double gain = 1, Generator& generator = default_generator());
enum class Nonlinearity { linear, sigmoid, tanh, relu, selu, leaky_relu };
/// The factor that preserves the variance through a nonlinearity: 1, 1, 5/3, sqrt(2), 3/4, and
/// sqrt(2 / (1 + param^2)) for a slope param.
double calculate_gain(Nonlinearity nonlinearity, double param = 0.01);
enum class Fan { in, out };
struct KaimingOptions {
  double a = 0;  ///< the negative slope of leaky_relu
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
};
/// U(-b, b) with b = gain * sqrt(3 / fan).  He et al., 2015.  nn::Linear uses a = sqrt(5), which
/// makes b = 1 / sqrt(fan_in).
Tensor kaiming_uniform_(Tensor x, const KaimingOptions& options = {},
                        Generator& generator = default_generator());
/// N(0, s) with s = gain / sqrt(fan).
Tensor kaiming_normal_(Tensor x, const KaimingOptions& options = {},
                       Generator& generator = default_generator());

}  // namespace xgrad::nn::init
