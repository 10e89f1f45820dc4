#pragma once
// Normalisation of the rows of a matrix, and its derivative.
//
// layer norm:  y = (x - mean) r w + b,  r = 1 / sqrt(mean((x - mean)^2) + eps)
// rms norm:    y = x r w,               r = 1 / sqrt(mean(x^2) + eps)

#include <cstddef>

namespace xgrad::kernels {

enum class Norm { layer, rms };

struct NormSizes {
  std::size_t rows, n;  ///< n: elements that are normalised together
};

/// What goes in.  weight and bias have n elements, or are null.
template <class T>
struct NormInputs {
  const T* x;
  const T* weight;
  const T* bias;
  T eps;
};

/// Where gradients go; null where none is wanted.
template <class T>
struct NormGradients {
  T* dx;
  T* dweight;
  T* dbias;
};

template <class T>
void normalize(Norm norm, NormSizes sizes, const NormInputs<T>& in, T* y);
/// Of the output's gradient g.  Mean and r are computed again, which costs less than keeping them.
template <class T>
void normalize_backward(Norm norm, NormSizes sizes, const NormInputs<T>& in, const T* g,
                        const NormGradients<T>& out);

}  // namespace xgrad::kernels
