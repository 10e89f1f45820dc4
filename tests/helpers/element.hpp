#pragma once
// An element of a Tensor, also of a temporary one.

#include <xgrad/autograd/tensor.hpp>

template <class T>
T element(const xgrad::Tensor& x, std::size_t i) {
  return x.data<T>()[i];
}
