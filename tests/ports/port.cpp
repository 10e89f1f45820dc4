#include "ports/port.hpp"

#include <algorithm>

namespace xgrad::testing {

void run_port(const std::string& name, const std::function<void(Port&)>& port) {
  const GoldenFile file("../ports/ports");
  const std::vector<std::string> all = file.unused();
  for (const auto& [label, dtype] : {std::pair("/f64/", DType::float64), {"/f32/", DType::float32}})
    if (std::ranges::any_of(all, [&, label = label](const std::string& value) {
          return value.starts_with(name + label);
        })) {
      Port one(file, name, dtype);
      port(one);
    }
  for (const std::string& value : file.unused())
    if (value.starts_with(name + "/"))
      FAIL_CHECK(value << " was compared with nothing");
}

}  // namespace xgrad::testing
