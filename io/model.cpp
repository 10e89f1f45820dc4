#include <xgrad/autograd/check.hpp>
#include <xgrad/io/model.hpp>

namespace xgrad::io {

nn::StateDict read_state_dict(const std::string& path) {
  const TensorFile content = load_safetensors(path);
  check<FileError>(content.indices.empty(), "{}: '{}' holds I64, and a state dict F32 or F64", path,
                   content.indices.empty() ? "" : content.indices.begin()->first);
  return {content.tensors.begin(), content.tensors.end()};
}

}  // namespace xgrad::io
