#pragma once
// A run of PyTorch can be the reference of compare() (autograd/check/compare.hpp), which then names
// the first value of a ported module that differs.
//
//   const ReferenceRun reference = io::load_reference("block.safetensors");
//   nn::load_state_dict(block, reference.state);
//   std::cout << compare(block, reference).message << '\n';

#include <string>
#include "../autograd/check/compare.hpp"

namespace xgrad::io {

/// Reads a run that scripts/pytorch/dump.py wrote.  Tensors have the names "state NAME", "input
/// NAME" and, in running order, "000012 SCOPE OP"; the metadata has for each op the names of its
/// inputs, and for "results" those of the results, one a line.  FileError as of load_safetensors(),
/// for a file without a result, and for an input that is in no earlier line.
ReferenceRun load_reference(const std::string& path);

}  // namespace xgrad::io
