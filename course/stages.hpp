#pragma once
// The stages of the course and their exercises.

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace learn {

struct Stage {
  std::string number;     ///< "5"; "11.3" is the third of the layers with a mistake of stage 11
  std::string file;       ///< below exercises/: "05_softmax", "mistakes/03_scaled_scores"
  std::string title;      ///< "softmax and its Jacobian"
  std::string signature;  ///< of the function that the file must define
  std::array<std::string, 3> hints;
  std::string next;  ///< to read after it is right
};

/// All stages, in order: 1 ... 12, with stage 11's layers after it.
const std::vector<Stage>& stages();
/// ValueError lists the existing ones.
const Stage& stage(std::string_view number);
/// The page of a stage: "course/pages/05_softmax.md".
std::string page_of(const Stage& stage);

}  // namespace learn
