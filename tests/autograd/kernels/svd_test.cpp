// LAPACK is loaded when it is needed.  That its values are right: autograd/ops/extremum_rows.cpp.

#include <dlfcn.h>

#include <xgrad/autograd/ops.hpp>

#include "helpers/catch.hpp"
#include "helpers/faults.hpp"
#include "helpers/tensors.hpp"

using namespace xgrad;

namespace {

bool lapack_is_loaded() {
  return dlopen("libopenblas.so.0", RTLD_NOW | RTLD_NOLOAD) != nullptr ||
         dlopen("liblapack.so.3", RTLD_NOW | RTLD_NOLOAD) != nullptr;
}
const bool loaded_with_the_program = lapack_is_loaded();

}  // namespace

TEST_CASE("LAPACK is loaded by the first nuclear norm; without it, that is an Error", "[kernels]") {
  if (!FailingCall::possible())
    return;
  CHECK_FALSE(loaded_with_the_program);
  const Tensor x = tensor({{3, 0}, {0, 4}}, DType::float64);
  if (!lapack_is_loaded()) {  // or else another case has asked for it
    CHECK(matrix_norm(x).item() == 5);
    {
      const FailingCall no_library(0, true);
      CHECK_THROWS_WITH(matrix_norm(x, MatrixNorm::nuc),
                        ContainsSubstring("LAPACK") && ContainsSubstring("libopenblas.so.0"));
      CHECK(FailingCall::failed() == "dlopen");
    }
    CHECK_FALSE(lapack_is_loaded());
  }
  CHECK(matrix_norm(x, MatrixNorm::nuc).item() == 7);
  CHECK(lapack_is_loaded());
}
