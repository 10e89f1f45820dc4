// Headers that the sources of this folder include.
#include <xgrad/autograd/xtensor.hpp>
#include <xgrad/nn/check.hpp>
#include <xgrad/xgrad.hpp>
