// Files in the safetensors format.

#include <xgrad/autograd/error.hpp>
#include <xgrad/io/reference.hpp>
#include <xgrad/io/safetensors.hpp>

#include "files.hpp"
#include "helpers/safetensors.hpp"
#include "target.hpp"

namespace fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string& path = file_with(bytes);
  const bool bad = refused<xgrad::FileError>([&] {
    const xgrad::io::SafetensorsFile file(path);
    for (const auto& entry : file.tensors())
      for (const xgrad::DType dtype : {xgrad::DType::float32, xgrad::DType::float64})
        refused<xgrad::FileError>([&] {  // an unsupported dtype
          demand(file.tensor(entry.first, dtype).shape() == entry.second.shape,
                 "a tensor of another shape");
        });
  });
  refused<xgrad::FileError>([&] {
    const xgrad::ReferenceRun reference = xgrad::io::load_reference(path);
    demand(!bad && !reference.results.empty(), "a run without results is loaded");
  });
  refused<xgrad::FileError>([&] {
    const xgrad::io::TensorFile content = xgrad::io::load_safetensors(path);
    demand(!bad, "a file is refused and loaded");
    std::size_t values = 0;
    for (const auto& [name, x] : content.tensors)
      values += x.numel() * (x.dtype() == xgrad::DType::float32 ? 4 : 8);
    for (const auto& [name, ids] : content.indices)
      values += ids.numel() * 8;
    demand(values <= bytes.size(), "more values than the file has");
  });
}

std::vector<std::string> seeds() {
  const std::string eight(8, '\1');
  std::string ones;
  while (ones.size() < 60'000)
    ones += ",1";
  return {
      "",
      file_of("{}"),
      file_of(R"({"__metadata__":{"format":"pt","a":"\u001b[2J\n"}}   )"),
      file_of(R"({"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", eight),
      file_of(R"({"__metadata__":{"1  exp":"input 0","results":"1  exp"},)"
              R"("1  exp":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("input 0":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
              eight),
      file_of(R"({"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})", eight),
      file_of(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", eight),
      file_of(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},)"
              R"("b":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]}})",
              eight),
      file_of(R"({"a":{"dtype":"F4","shape":[16],"data_offsets":[0,8]}})", eight),
      file_of(R"({"a":{"dtype":"F32","shape":[0,9223372036854775807],"data_offsets":[0,0]}})"),
      file_of(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})"),
      file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
              R"("b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
              eight),
      file_of(R"({"a":{"dtype":"F32","data_offsets":[0,8],"shape":[1)" + ones + "]}}", eight),
      file_of(R"({"a":[[[[[[[[]]]]]]]]})"),
      file_of(R"({"a":1e999,"a":NaN})"),
      std::string(8, '\xff') + "{}",
  };
}

}  // namespace

const Target safetensors{"safetensors", run, seeds};

}  // namespace fuzz
